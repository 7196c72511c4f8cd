"""A program on its way through the simplifier: what becomes of each equation.

Builds on `compiler.simplify`, whose decisions it records.  Chapter 22.  JAX has no counterpart.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.compiler.simplify import CALLS, Simplifier
from minijax.core.jaxpr import Atom, JaxprEqn, Literal
from minijax.notebook.drawing import BLUE, INK, LETTER, ORANGE, box, words
from minijax.notebook.film import Film, Frame
from minijax.util.jaxpr_text import Names

SIZE, ROW, TOP, INDENT = 14, 26, 34, 18  # of letters; from line to line; inside a call


class Decision(NamedTuple):
    """What became of one equation.

    Args:
      line: its text.
      depth: how many calls it is inside of.
      outcome: "inlined", "evaluated", "rewritten", "shared" or "kept".
      results: the atoms that stand for its outputs.
      kept: how many equations are kept by now.
    """

    line: str
    depth: int
    outcome: str
    results: Sequence[Atom]
    kept: int


class Recorder(Simplifier):
    """The simplifier, which also notes its decisions, a call before the equations inside."""

    def __init__(self, names: Names) -> None:
        super().__init__()
        self.names, self.decisions, self.depth = names, list[Decision](), 0
        self.law_applies = False

    def results(self, eqn: JaxprEqn) -> Sequence[Atom]:
        place, kept = len(self.decisions), len(self.eqns)
        if called := eqn.params.get(CALLS.get(eqn.primitive.name, "")):
            # Its variables are named anew at each call, its inputs and outputs as outside.
            inner = called.jaxpr
            for v in (v for each in inner.eqns for v in each.outvars):
                self.names.variables.pop(v, None)
            self._rename(inner.invars, eqn.invars)
            self._rename(inner.outvars, eqn.outvars)
        line = text(eqn, self.names)
        self.decisions.append(Decision(line, self.depth, "inlined", (), kept))
        self.depth += 1
        self.law_applies = False
        results = super().results(eqn)
        self.depth -= 1
        if len(self.decisions) == place + 1:  # nothing is inside
            is_new = len(self.eqns) > kept
            outcome = "rewritten" if self.law_applies else "kept" if is_new else (
                "evaluated" if all(isinstance(x, Literal) for x in results) else "shared")
            if is_new:
                self._rename(results, eqn.outvars)
            self.decisions[place] = Decision(line, self.depth, outcome, results, len(self.eqns))
        return results

    def by_law(self, eqn: JaxprEqn) -> Atom | None:
        result = super().by_law(eqn)
        self.law_applies |= result is not None
        return result

    def _rename(self, variables: Sequence[Atom], others: Sequence[Atom]) -> None:
        for v, other in zip(variables, others, strict=False):
            if v.text is None:
                self.names.variables[v] = self.names.of(other).partition(":")[0]


def simplifying(fun: Callable, *args: Any) -> Film:
    """The equations of a function's program, one by one, and those that are kept.

    >>> from minijax import numpy as jnp
    >>> simplifying(lambda x: jnp.sin(x) * jnp.sin(x) + jnp.exp(0.0), 1.0)
    1  b = sin a is new, so it is kept.
    2  c = sin a computes what b is already: b takes its place.
    3  d = mul b c is new, so it is kept.
    4  e = exp 0.0 has only known arguments. It is computed now: 1.0.
    5  f = add d e is new, so it is kept.
    6  All that is kept is read. Of 5 equations 3 are left.
    """
    from minijax import make_jaxpr
    closed = make_jaxpr(fun)(*args)
    names = Names(closed.jaxpr)
    recorder = Recorder(names)
    inputs = [*map(names.of, closed.jaxpr.invars)]
    simplified = recorder.program(closed)
    names.variables.update(zip(simplified.jaxpr.invars, inputs, strict=False))
    decisions = recorder.decisions
    kept = [(eqn, text(eqn, names)) for eqn in recorder.eqns]
    end = [(eqn, text(eqn, names)) for eqn in simplified.jaxpr.eqns]
    read = {v for eqn, _ in end for v in eqn.outvars}
    gone = [line for eqn, line in kept if read.isdisjoint(eqn.outvars)]
    left = 44 + max([INDENT * d.depth + LETTER * SIZE * len(d.line) for d in decisions], default=0)
    width = left + LETTER * SIZE * max([len(line) for _, line in kept], default=0) + 34
    height = TOP + ROW * max(len(decisions), 1) + 6

    def drawn(at: int, right: Sequence[tuple[JaxprEqn, str]], lit: Sequence[Atom]) -> list[str]:
        parts = [words(8, 18, "equations", size=13, anchor="start", opacity=0.7),
                 words(left + 8, 18, "kept", size=13, anchor="start", opacity=0.7)]
        for k, d in enumerate(decisions):
            x = 4 + INDENT * d.depth
            parts.append(row(x, k, left - 24 - x, d.line, INK, k == at, 0.35 if k < at else 1,
                             data_place=k))
        return parts + [row(left, k, width - left - 8, line,
                            ORANGE if at == len(decisions) and line in gone else BLUE,
                            not {*lit}.isdisjoint(eqn.outvars))
                        for k, (eqn, line) in enumerate(right)]

    frames = [Frame(said(d, names, kept[:d.kept]), drawn(k, kept[:d.kept], d.results))
              for k, d in enumerate(decisions)]
    if gone:
        which = ", ".join(f"`{line}`" for line in gone)
        frames.append(Frame(f"Nothing that is left reads the result of {which}.",
                            drawn(len(decisions), kept, ())))
    count = sum(d.outcome != "inlined" for d in decisions)
    last = "" if gone else "All that is kept is read. "
    frames.append(Frame(f"{last}Of {count} equations {len(end)} are left.",
                        drawn(len(decisions), end, ())))
    return Film((width, height), {(): frames})


def text(eqn: JaxprEqn, names: Names) -> str:
    """An equation without types and parameters."""
    results = " ".join(map(names.of, eqn.outvars))
    operands = " ".join(names.of(x).partition(":")[0] for x in eqn.invars)
    return f"{results} = {eqn.params.get('name', eqn.primitive.name)} {operands}"


def said(d: Decision, names: Names, kept: Sequence[tuple[JaxprEqn, str]]) -> str:
    new = [f"`{line}`" for eqn, line in kept if not {*d.results}.isdisjoint(eqn.outvars)]
    there = ", ".join(f"`{names.of(x).partition(':')[0]}`" for x in d.results)
    return {
        "inlined": f"`{d.line}` calls a program, whose equations take its place.",
        "evaluated": f"`{d.line}` has only known arguments. It is computed now: "
                     f"{there.replace('`', '')}.",
        "rewritten": f"By a law of real numbers `{d.line}` is {(new or [there])[0]}.",
        "shared": f"`{d.line}` computes what {there} is already: {there} takes its place.",
        "kept": f"`{d.line}` is new, so it is kept."}[d.outcome]


def row(x: float, k: int, width: float, line: str, colour: str, lit: bool, opacity: float = 1,
        **facts: Any) -> str:
    """A line of a program in a box."""
    y = TOP + ROW * k
    return box(x, y, width, ROW - 5, colour, lit=lit, round=3, opacity=opacity, **facts) + words(
        x + 8, y + 16, line, size=SIZE, code=True, anchor="start", opacity=opacity,
        pointer_events="none")
