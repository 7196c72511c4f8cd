"""What a policy keeps of a program for its second run, inside of loops and branches, too.

Stands on `program_rules`.  Chapter 10, *Your own rules and checkpointing*.
In JAX: `jax/_src/interpreters/partial_eval.py` (`partial_eval_jaxpr_custom`, `dce_jaxpr`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.core import ShapedArray
from minijax.control_flow.program_rules import Flags, joined, rearranged
from minijax.core.vmap import with_axis
from minijax.core.jaxpr import (ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, effects_of, eval_jaxpr,
                                partition_list)
from minijax.primitives.ad_util import zeros
from minijax.core.tracing import stage

Policy = Callable[..., Any]


class Kept(NamedTuple):
    """The program of the first run, whose last results are kept; that of the second, whose last
    inputs they are.
    """

    first: ClosedJaxpr
    second: ClosedJaxpr
    avals: list[ShapedArray]


class _Inside:
    """The programs of an equation that runs them, once or as often as a loop turns."""

    def __init__(self, eqn: JaxprEqn):
        params = eqn.params
        self.eqn, self.field = eqn, "branches" if "branches" in params else "jaxpr"
        self.programs: Sequence[ClosedJaxpr] = (
            params["branches"] if "branches" in params else (params["jaxpr"],))
        self.leading = len(eqn.invars) - len(self.programs[0].in_avals)  # they choose one
        self.num_consts = params.get("num_consts", 0)
        self.num_carry = params.get("num_carry", 0)

    @classmethod
    def of(cls, eqn: JaxprEqn) -> _Inside | None:
        known = callable(eqn.primitive.split) and not {"branches", "jaxpr"}.isdisjoint(eqn.params)
        return cls(eqn) if known and not eqn.effects else None

    def unknown(self, unknown: Flags, unknown_out: Flags) -> list[bool]:
        """Which inputs of the programs are unknown: a carry is, where it becomes so."""
        flags = list(unknown[self.leading:])
        flags[self.num_consts:self.num_consts + self.num_carry] = unknown_out[:self.num_carry]
        return flags

    def stacked(self, avals: Sequence[ShapedArray]) -> tuple[Var, ...]:
        """Variables for what is kept of every turn."""
        length = self.eqn.params.get("length")
        return tuple(Var(a if length is None else with_axis(a, 0, length)) for a in avals)

    def replaced(self, programs: Sequence[ClosedJaxpr], num_consts: int | None = None,
                 **changes: Any) -> JaxprEqn:
        new = tuple(programs) if self.field == "branches" else programs[0]
        params = {**self.eqn.params, self.field: new}
        if num_consts is not None and "num_consts" in params:
            params["num_consts"] = num_consts
        return self.eqn.replace(params=params, **changes)

    def keeping(self, unknown: Flags, unknown_out: Flags, policy: Policy, inline_calls: Any
                ) -> tuple[JaxprEqn, JaxprEqn, tuple[Var, ...]]:
        """The equation of the first run, that of the second, and what the one hands the other."""
        flags = self.unknown(unknown, unknown_out)
        halves = _in_common([keeping(inline_calls(p), flags, policy, inline_calls)
                             for p in self.programs])
        kept = self.stacked(halves[0].avals)
        return (self.replaced([h.first for h in halves], outvars=(*self.eqn.outvars, *kept)),
                self.replaced([h.second for h in halves], invars=(*self.eqn.invars, *kept)), kept)

    def with_live(self, live: set) -> JaxprEqn:
        """The equation without results that nobody reads, and operands that it does not."""
        wanted = [i for i, v in enumerate(self.eqn.outvars) if i < self.num_carry or v in live]
        programs = [needed_of(rearranged(p, outputs=wanted)) for p in self.programs]
        carried = range(self.num_consts, self.num_consts + self.num_carry)
        inputs = [i for i, read in enumerate(joined(map(reads, programs)))
                  if read or i in carried]
        first, rest = self.eqn.invars[:self.leading], self.eqn.invars[self.leading:]
        return self.replaced([rearranged(p, inputs) for p in programs],
                             num_consts=sum(i < self.num_consts for i in inputs),
                             invars=(*first, *(rest[i] for i in inputs)),
                             outvars=tuple(self.eqn.outvars[i] for i in wanted))


def reads(closed: ClosedJaxpr) -> list[bool]:
    """Which inputs a program reads."""
    read = {*closed.jaxpr.outvars}.union(*(eqn.invars for eqn in closed.eqns))
    return [v in read for v in closed.jaxpr.invars]


def needed_of(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without dead equations, also inside of loops, branches and calls."""
    live = {v for v in closed.jaxpr.outvars if isinstance(v, Var)}
    eqns: list[JaxprEqn] = []
    for eqn in reversed(closed.eqns):
        if live.isdisjoint(eqn.outvars) and not any(e.observable for e in eqn.effects):
            continue
        inside = _Inside.of(eqn)
        eqns.insert(0, inside.with_live(live) if inside else eqn)
        live.update(v for v in eqns[0].invars if not isinstance(v, Literal))
    flags = [v in live for v in closed.jaxpr.constvars]
    return ClosedJaxpr(closed.jaxpr.replace(
        eqns=tuple(eqns), effects=effects_of(eqns),
        constvars=partition_list(closed.jaxpr.constvars, flags)[True]),
        tuple(partition_list(closed.consts, flags)[True]))


def keeping(closed: ClosedJaxpr, unknown: Flags, policy: Policy,
            inline_calls: Callable[[ClosedJaxpr], ClosedJaxpr]) -> Kept:
    """A program for both runs.

    Args:
      closed: a program.
      unknown: which of its inputs are not there in the first run.
      policy: says of an equation whether its results are kept.
      inline_calls: puts what is called in place of the calls.
    """
    jaxpr = closed.jaxpr
    later = {v for v, u in zip(jaxpr.invars, unknown, strict=True) if u}
    kept: list[Var] = []
    first: list[JaxprEqn] = []
    second: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        flags = [v in later for v in eqn.invars]
        unknown_out = _unknown_out(eqn, flags)
        later.update(v for v, u in zip(eqn.outvars, unknown_out, strict=True) if u)
        inside = _Inside.of(eqn) if not all(unknown_out) else None  # else nothing is known
        if not any(flags) and not eqn.effects and policy(
                eqn.primitive, *(v.aval for v in eqn.invars), **eqn.params):
            first.append(eqn)
            kept += eqn.outvars
        elif inside:
            one, other, found = inside.keeping(flags, unknown_out, policy, inline_calls)
            first.append(one)
            second.append(other)
            kept += found
        else:
            first.append(eqn)
            second.append(eqn)

    def program(jaxpr: Jaxpr, **changes: Any) -> ClosedJaxpr:
        return ClosedJaxpr(jaxpr.replace(**changes), closed.consts)
    return Kept(program(jaxpr, eqns=tuple(first), outvars=(*jaxpr.outvars, *kept)),
                program(jaxpr, eqns=tuple(second), invars=(*jaxpr.invars, *kept)),
                [v.aval for v in kept])


def _unknown_out(eqn: JaxprEqn, unknown: Flags) -> Sequence[bool]:
    """Which results of an equation are unknown."""
    if any(unknown) and not all(unknown) and callable(eqn.primitive.split):
        halves = eqn.primitive.split(unknown, eqn.invars, **eqn.params)
        if halves is not None:
            return halves.unknown_out
    return [any(unknown)] * len(eqn.outvars)


# ── Branches keep different things; each hands on what any of them keeps ──────────────────────

def _in_common(halves: Sequence[Kept]) -> list[Kept]:
    """The same programs, which all keep values of the same types: zeros where they have none."""
    slots: list[ShapedArray] = []
    places = []
    for half in halves:
        free = list(range(len(slots)))
        own = []
        for aval in half.avals:
            place = next((i for i in free if slots[i] == aval), len(slots))
            free = [i for i in free if i != place]
            slots += [aval] if place == len(slots) else []
            own.append(place)
        places.append(own)
    return [half if own == [*range(len(slots))] else Kept(
        _handing(half, own, slots), _taking(half, own, slots), slots)
        for half, own in zip(halves, places, strict=True)]


def _handing(half: Kept, places: Sequence[int], slots: Sequence[ShapedArray]) -> ClosedJaxpr:
    def run(*args: Any) -> list:
        outs = eval_jaxpr(half.first.jaxpr, half.first.consts, *args)
        plain = len(outs) - len(places)
        own = dict(zip(places, outs[plain:], strict=True))
        return [*outs[:plain], *(own[i] if i in own else zeros(aval)
                                 for i, aval in enumerate(slots))]
    return stage(run, half.first.in_avals, half.first.jaxpr.debug_info)


def _taking(half: Kept, places: Sequence[int], slots: Sequence[ShapedArray]) -> ClosedJaxpr:
    plain = len(half.second.in_avals) - len(places)
    own = {place: plain + i for i, place in enumerate(places)}
    return rearranged(half.second, [*range(plain), *(own.get(i, aval)
                                                     for i, aval in enumerate(slots))])
