"""A nan or an infinity, found at the operation that makes it: eager, compiled, batched, in a loop.

Compiled code is looked at from outside.  Where its outputs are bad the program is run by its
equations, and followed back from the output to the equation where the bad number came up.
Stands on `jaxpr`, `findings`, `origins`.  Chapter 19, *NaNs*.  In JAX: `jax/_src/dispatch.py`.
"""

import contextvars
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from minijax import config, core, errors, tree_util
from minijax.context import with_values
from minijax.core import ArrayImpl, Params, Primitive
from minijax.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, all_values
from minijax.primitives import emitted, slicing
from minijax.sharp_bits.findings import (Finding, Step, current_steps, in_step, is_collecting,
                                         quoted, report, sharp_bits)
from minijax.sharp_bits.origins import (KINDS, Origin, bad_places, frames_inside, is_bad,
                                        is_new_in_the_backward_pass, origin, without_bad)
from minijax.source_info import SourceInfo

T = TypeVar("T")

# What happens when something bad is found: it is told to the user; or it ends the run with
# `_Found`, for whoever is looking for its origin; or nobody looks.
REPORT, FIND, OFF = "report", "find", "off"


class _Look(NamedTuple):
    """How the program that runs now is looked at."""

    mode: str = REPORT
    wanted: Sequence[SourceInfo | None] | None = None  # the only lines still of interest, if any
    noticed: list[str] | None = None  # while nobody looks: the bad outputs that came by
    again: bool = False  # it has run before, in earnest, and consumed its random keys then


_REPORTING = _Look()
_look: contextvars.ContextVar[_Look] = contextvars.ContextVar("minijax_nans", default=_REPORTING)


def _looking(how: dict[str, Any], f: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """`f(*args, **kwargs)`, looked at as before but for what `how` says."""
    return with_values({_look: _look.get()._replace(**how)}, f, *args, **kwargs)


class _Found(Exception):
    """Ends a run in mode `FIND`."""

    def __init__(self, origins: list[Origin]):
        self.origins = origins


def _kinds() -> list[str]:
    """What to look for, of "nan" and "inf"."""
    return [kind for kind, (flag, _) in KINDS.items() if flag.value]


def _found_in(values: Sequence[Any]) -> list[str]:
    """What of that is among some values."""
    return [kind for kind in _kinds() if is_bad(values, kind)]


def _only_what_is_made() -> bool:
    """Whether bad numbers may be handed on, as those of a program that uses them as data.

    JAX raises for each operation that has a nan among its outputs, and so does `debug_nans`.
    Under the one switch for all checks a correct program must give no alarm.
    """
    return bool(sharp_bits.value)


def _unseen(f: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """`f(*args, **kwargs)`, at whose operations nobody looks."""
    return _looking({"mode": OFF, "noticed": None}, f, *args, **kwargs)


def _find(f: Callable, *args: Any, **kwargs: Any) -> list[Origin]:
    """Where something bad first comes up in a run of `f`: each independent place."""
    try:
        _looking({"mode": FIND, "again": True}, f, *args, **kwargs)
    except _Found as found:
        return found.origins
    return []


# ── One operation ────────────────────────────────────────────────────────────────────────────

def evaluated(evaluate: Callable, primitive: Primitive, args: Sequence[Any], params: Params
              ) -> list:
    """The outputs of an operation on numbers, after a look at them."""
    if primitive.calls_python(params):  # whose operations come by here one by one
        return evaluate(primitive, args, params)
    run: Callable = primitive.evaluate if _look.get().again else partial(evaluate, primitive)
    outs = _unseen(run, args, params)  # which may be a program
    mode, _, noticed, _ = _look.get()
    if mode != OFF:
        look(primitive, args, params, outs)
    elif noticed is not None:
        noticed += _found_in(outs)
    return outs


def _is_program(primitive: Primitive) -> bool:
    """Whether an operation has programs inside, which it runs."""
    return primitive.split is not None


def look(primitive: Primitive, args: Sequence[ArrayImpl], params: Params, outs: Sequence[Any]
         ) -> None:
    """Report what is bad among the outputs of an operation."""
    for kind in _found_in(outs):
        if _is_program(primitive):
            _tell(_find(primitive.rule("impl"), *[x._buffer for x in args], **params))
        elif (not _only_what_is_made() or _is_made(primitive, args, params, kind)
              or is_new_in_the_backward_pass(kind)):
            _tell([origin(kind, primitive, args, outs)])


def _is_made(primitive: Primitive, args: Sequence[ArrayImpl], params: Params, kind: str) -> bool:
    """Whether an operation whose output is bad made it, and was not just handed it.

    What is asked: would the output be bad if the operands were not?
    """
    return not _is_asked_for(args, params, kind) and is_bad(
        _without(primitive, args, params, kind, range(len(args))), kind)


def _without(primitive: Primitive, args: Sequence[ArrayImpl], params: Params, kind: str,
             places: Collection[int]) -> list:
    """The outputs of an operation if the operands at these places were good."""
    clean = [without_bad(x, kind) if i in places else x for i, x in enumerate(args)]
    return _unseen(primitive.evaluate, clean, params)


def _is_asked_for(args: Sequence[ArrayImpl], params: Params, kind: str) -> bool:
    """Whether a bad number is no accident: the maximum of nothing, a filling with nans."""
    return not any(x.size for x in args) or any(
        isinstance(p, float | np.inexact) and KINDS[kind][1](p) for p in params.values())


def _tell(origins: list[Origin]) -> None:
    """Report origins, unless a search for them, or for others, is under way."""
    mode, wanted, *_ = _look.get()
    if origins and mode == FIND:
        raise _Found(origins)
    for kind, source, found in origins:
        if wanted is None or source in wanted:
            _report(found, errors.NonFiniteError(found.message, quoted(source), found.fix), kind)


def whole_functions_running() -> int:
    """How many functions are running, one called by the other, that are one operation to users.

    >>> whole_functions_running()
    0
    """
    return sum(frame.f_code.co_name == "boundary" and bool(frame.f_locals.get("is_whole"))
               for frame in frames_inside())


def _report(found: Finding, error: errors.NonFiniteError, kind: str, settled: int = 0) -> None:
    """Report what was found; but first each function of the package around it has a say in it."""
    if whole_functions_running() > settled:
        error.settle = partial(_settle, found, error, kind)
        raise error
    error.settle = None
    report(found, error)


def _settle(found: Finding, error: errors.NonFiniteError, kind: str, fun: Callable, args: tuple,
            kwargs: dict) -> tuple | None:
    """What a function of the package returns, in a tuple; None where the error in it stands.

    What a bad number inside it was chosen away from, or stands for a bad argument, is its affair.
    """
    def is_good(tree: Any) -> bool:
        return not any(is_bad(tree_util.tree_leaves(tree), each) for each in (kind, "nan"))

    again = partial(_looking, {"mode": OFF, "again": True}, fun)
    result = again(*args, **kwargs)
    if is_good(result):
        return (result,)
    if _only_what_is_made() and not is_good((args, kwargs)):
        clean_args, clean_kwargs = tree_util.tree_map(
            lambda x: without_bad(without_bad(x, kind), "nan"), (args, kwargs))
        if is_good(again(*clean_args, **clean_kwargs)):
            return (result,)
    try:
        _report(found, error, kind, settled=1)
    except errors.NonFiniteError:
        return None
    return (result,)


# ── Programs ─────────────────────────────────────────────────────────────────────────────────

def interpreted(interpret: Callable, closed: ClosedJaxpr, args: Sequence[ArrayImpl],
                compiled: Callable[[], list[ArrayImpl]]) -> list[ArrayImpl]:
    """What a program returns for these arguments; in mode `FIND`, where a bad output came up.

    Args:
      interpret: runs it equation by equation.
      closed, args: the program, and its inputs.
      compiled: runs it compiled.
    """
    if _look.get().mode != FIND:
        return interpret(closed, args, compiled)
    outs = _unseen(compiled)
    for kind in _found_in(outs):
        core.run_with(core.base_trace, _blame, closed, args, kind)
    return outs


def _blame(closed: ClosedJaxpr, args: Sequence[ArrayImpl], kind: str) -> None:
    """Look at the equations of a program where its bad outputs came up."""
    read = _unseen(all_values, closed.jaxpr, closed.consts, args).__getitem__
    origins: list[Origin] = []
    for eqn in _makers(closed.jaxpr, read, kind):
        origins += with_values({core.current_source: eqn.source_info}, _find, look, eqn.primitive,
                               [*map(read, eqn.invars)], eqn.params, [*map(read, eqn.outvars)])
    _tell(origins)


def _makers(jaxpr: Jaxpr, read: Callable[[Atom], Any], kind: str) -> list[JaxprEqn]:
    """The equations that made what is bad in the outputs; where it came in, those that took it."""
    made_by: dict[Atom, JaxprEqn] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    pending: list[tuple[Atom, np.ndarray]] = [
        (v, bad_places(read(v), kind)) for v in jaxpr.outvars if is_bad([read(v)], kind)]
    makers, seen = set(), set()
    while pending:
        atom, places = pending.pop()
        if atom not in made_by or atom in seen:
            continue
        seen.add(atom)
        eqn = made_by[atom]
        args, number = [read(v) for v in eqn.invars], eqn.outvars.index(atom)
        guilty = _guilty(eqn, args, kind, number, places)
        came_in = all(eqn.invars[i] not in made_by for i in guilty)
        if not guilty or (came_in and not _only_what_is_made()):
            makers.add(eqn)
        pending += [(eqn.invars[i], _narrowed(bad_places(args[i], kind), places))
                    for i in guilty]
    return [eqn for eqn in jaxpr.eqns if eqn in makers]


def _guilty(eqn: JaxprEqn, args: Sequence[ArrayImpl], kind: str, number: int, places: np.ndarray
            ) -> list[int]:
    """The operands that handed on what is bad at these places of an output; none: it was made."""
    def remains(good: Collection[int]) -> np.ndarray:
        outs = _without(eqn.primitive, args, eqn.params, kind, good)
        return bad_places(outs[number], kind) & places

    suspects = [i for i, x in enumerate(args) if is_bad([x], kind)]
    if not _is_asked_for(args, eqn.params, kind) and remains(suspects).any():
        return []
    # several, any one of which would do
    return [i for i in suspects if (places & ~remains([i])).any()] or suspects


def _narrowed(bad: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Of the bad places of an operand, those that matter for these places of the output."""
    if bad.shape == places.shape and (bad & places).any():
        return bad & places
    return bad


# ── Functions that are compiled, and can be run as Python ────────────────────────────────────

def called(call: Callable[..., T], python: Callable[[], Any], function: str | None) -> T:
    """What a compiled function returns; where that is bad, its Python is run to show the line.

    The arguments are those of `higher_order.compiled.called`.
    """
    compiled = partial(call, python, function)
    mode, wanted, *_ = _look.get()
    if mode == OFF:
        return compiled()
    noticed: list[str] = []  # among what is kept for the derivative, too
    result = _looking({"mode": OFF, "noticed": noticed}, compiled)
    shown = _found_in(tree_util.tree_leaves(result))
    for kind in dict.fromkeys((*shown, *noticed)):
        origins = _find(compiled)
        if mode == FIND:
            _tell(origins)
        elif not origins and kind in shown and not _only_what_is_made():
            _announce(kind, function, came_in=True)
        elif origins and (wanted is None or any(o.source in wanted for o in origins)):
            _announce(kind, function)
            _run_again(python, origins)
    return result


def called_back(function: Callable[..., T], *arrays: Any) -> T:
    """What a Python function that compiled code calls returns: it is looked at, whatever is done
    to the code.
    """
    how = {} if _look.get().again else {"mode": REPORT, "wanted": None}
    return _looking(how, function, *arrays)


def _run_again(python: Callable[[], Any], origins: list[Origin]) -> None:
    """Run the Python of what was compiled, so that the error comes from the user's own line."""
    try:
        with config.debug_recompiles(False):
            _looking({"wanted": [o.source for o in origins], "again": True}, python)
    except Exception as error:  # what else Python does that is not traced is not the question here
        if isinstance(error, errors.NonFiniteError):
            raise
    _tell(origins)


def _announce(kind: str, function: str | None, came_in: bool = False) -> None:
    is_first = _look.get().wanted is None  # of those that are jitted inside nothing is said
    if function is not None and is_first and not is_collecting():
        print(f"Invalid {kind} value encountered in the output of a {function} function. "
              "Calling the de-optimized version.")
        if came_in:
            print(f"The de-optimized version made no {kind}: it came in with an argument or is "
                  "written in the program, or only the compiled code gives it. Going on.")


# ── Batches ──────────────────────────────────────────────────────────────────────────────────

def entered(level: core.Level) -> None:
    """Have a new level remember how many of the steps are around it."""
    level.steps_outside = len(current_steps.get())


def batched(rule: Callable[..., tuple[list, list]], primitive: Primitive, values: Sequence[Any],
            dims: Sequence[int | None], params: Params) -> tuple[list, list]:
    """What a batching rule returns; where that is bad, the operation on one example at a time.

    So a finding names the example, and what a batch computes for the branches that an example
    does not take gives none.

    Args:
      rule: applies the batching rule: a method of the `BatchTrace`.
      primitive, values, dims, params: the operation, and the operands with their batch axes.
    """
    apply_rule = partial(rule, primitive, values, dims, params)
    if _look.get().mode == OFF:
        return apply_rule()
    trace: Any = rule.__self__  # type: ignore[attr-defined]

    def operation(i: int) -> Any:
        if trace.axis.name is not None and trace.concerns(primitive, (), params):
            return apply_rule()  # the examples need each other
        example = _unseen(core.run_with, trace.parent, lambda: [
            x if d is None else slicing.index_leading(emitted.move_axis(x, d, 0), i)
            for x, d in zip(values, dims, strict=True)])
        return core.run_with(trace.parent, primitive.bind_list, *example, **params)

    outs, out_dims = _unseen(apply_rule)
    for kind in _kinds():
        bad = _bad_examples(outs, out_dims, kind)
        for i in bad[:3]:
            step = Step("vmap", i, trace.axis.size, tuple(k for k in bad if k != i))
            _looking({"again": True}, in_step, step, operation, i,
                     outside=getattr(trace.level, "steps_outside", None))
    return outs, out_dims


def _bad_examples(outs: Sequence[Any], dims: Sequence[int | None], kind: str) -> list[int]:
    """Which examples are bad."""
    found: set[int] = set()
    for x, dim in zip(outs, dims, strict=True):
        bad = bad_places(x, kind)
        others = tuple(d for d in range(bad.ndim) if d != dim)  # all, if it is for all examples
        found.update(np.flatnonzero(bad.any(axis=others)).tolist())
    return sorted(found)
