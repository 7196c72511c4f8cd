"""What the rules of operations with programs inside share: one of several programs runs, or a loop.

Stands on the interpreters.  Chapter 09, *Control flow*.
In JAX: `jax/_src/lax/control_flow/common.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import Axis, Undefined, Zero
from minijax.interpreters.jvp import jvp_jaxpr
from minijax.interpreters.transpose import transpose_jaxpr
from minijax.interpreters.vmap import Dim, batch_jaxpr
from minijax.jaxpr import ClosedJaxpr
from minijax.primitives.emitted import instantiate, move_axis

Flags = Sequence[bool]
Apply = Callable[[Sequence[ClosedJaxpr], Sequence[Any]], list]  # bind with programs, operands


def fixpoint(flags: Sequence[bool], step: Callable[[list[bool]], Sequence[bool]]) -> list[bool]:
    """The least flags at or above the given ones that `step` does not raise any more."""
    current = list(flags)
    while True:
        found = [a or b for a, b in zip(current, step(current), strict=True)]
        if found == current:
            return current
        current = found


def chosen(items: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [x for x, flag in zip(items, flags, strict=True) if flag]


def has_tangent(tangents: Sequence[Any]) -> list[bool]:
    """Which tangents, or cotangents, are no symbolic zeros."""
    return [not isinstance(t, Zero) for t in tangents]


def cut(items: Sequence[Any], *sizes: int) -> list[list[Any]]:
    """The items in consecutive pieces of these sizes, and what is left."""
    pieces, start = [], 0
    for size in sizes:
        pieces.append(list(items[start:start + size]))
        start += size
    return [*pieces, list(items[start:])]


def rearranged(closed: ClosedJaxpr, inputs: Sequence[int] | None = None,
               outputs: Sequence[int] | None = None) -> ClosedJaxpr:
    """The same program with its inputs and outputs taken in another order."""
    jaxpr = closed.jaxpr
    ins = jaxpr.invars if inputs is None else tuple(jaxpr.invars[i] for i in inputs)
    outs = jaxpr.outvars if outputs is None else tuple(jaxpr.outvars[i] for i in outputs)
    return ClosedJaxpr(jaxpr.replace(invars=ins, outvars=outs), closed.consts)


# ── One of several programs runs ─────────────────────────────────────────────────────────────

def joined(flags: Any) -> list[bool]:
    """Where any of several lists of flags is true."""
    return [any(column) for column in zip(*flags, strict=True)]


def _agreeing(derive: Callable[[ClosedJaxpr, Flags | None], tuple[ClosedJaxpr, Flags]],
              programs: Sequence[ClosedJaxpr]) -> tuple[list[ClosedJaxpr], list[bool]]:
    """Programs derived from each, returning what any of them returns; and what that is."""
    made = [derive(closed, None) for closed in programs]
    flags = joined(own for _, own in made)
    return [new if list(own) == flags else derive(closed, flags)[0]
            for closed, (new, own) in zip(programs, made, strict=True)], flags


def jvp_of(programs: Sequence[ClosedJaxpr], primals: Sequence[Any], tangents: Sequence[Any],
           apply: Apply) -> tuple[list, list]:
    """Outputs and their tangents, for an operation that runs one of the programs."""
    has = has_tangent(tangents)
    new, out_has = _agreeing(lambda closed, keep: jvp_jaxpr(closed, has, keep), programs)
    outs = apply(new, [*primals, *chosen(tangents, has)])
    rest = iter(outs[len(out_has):])
    return outs[:len(out_has)], [
        next(rest) if h else Zero(aval.to_tangent_aval())
        for h, aval in zip(out_has, programs[0].out_avals, strict=True)]


def batch_of(programs: Sequence[ClosedJaxpr], axis: Axis, args: Sequence[Any],
             dims: Sequence[Dim], apply: Apply) -> tuple[list, list]:
    """Batched outputs and where their batch axis is, for an operation that runs one of them."""
    batched = [d is not None for d in dims]
    new, out_batched = _agreeing(lambda closed, keep: batch_jaxpr(closed, axis, batched, keep),
                                 programs)
    outs = apply(new, [x if d is None else move_axis(x, d, 0)
                       for x, d in zip(args, dims, strict=True)])
    return outs, [0 if b else None for b in out_batched]


def transpose_of(programs: Sequence[ClosedJaxpr], cotangents: Sequence[Any], args: Sequence[Any],
                 apply: Apply) -> list:
    """The cotangents of the arguments, for an operation that runs one of the programs."""
    linear = [isinstance(x, Undefined) for x in args]
    has = has_tangent(cotangents)
    new, out_has = _agreeing(lambda closed, keep: transpose_jaxpr(closed, linear, has, keep),
                             programs)
    fixed = [x for x in args if not isinstance(x, Undefined)]
    outs, found = iter(apply(new, [*fixed, *chosen(cotangents, has)])), iter(out_has)
    return [None if not lin else next(outs) if next(found) else Zero(x.aval)
            for x, lin in zip(args, linear, strict=True)]


# ── A program runs again and again ───────────────────────────────────────────────────────────

class BodyWithTangents:
    """A loop on primals and tangents: its operands, and the body as a program on both.

    The body takes [constants, carry, rows] and returns [carry, rows]; in each of these groups
    the tangents that exist come behind the primals.
    """

    def __init__(self, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int,
                 primals: Sequence[Any], tangents: Sequence[Any]):
        sizes = num_consts, num_carry
        consts_has, init_has, xs_has = cut(has_tangent(tangents), *sizes)
        rows = [False] * (len(jaxpr.out_avals) - num_carry)

        def derived(carry_has: Flags) -> tuple[ClosedJaxpr, Flags]:
            return jvp_jaxpr(jaxpr, [*consts_has, *carry_has, *xs_has], [*carry_has, *rows])

        carry_has = fixpoint(init_has, lambda flags: derived(flags)[1][:num_carry])
        program, self.out_has = derived(carry_has)
        has = [*consts_has, *carry_has, *xs_has]
        self.out_order = _tangents_behind(self.out_has, [num_carry])
        self.program = program.derived(("loop", *sizes), lambda: rearranged(
            program, _tangents_behind(has, sizes), self.out_order))
        self.operands = [
            [*group, *map(instantiate, chosen(dots, flags))] for group, dots, flags in
            zip(cut(primals, *sizes), cut(tangents, *sizes), cut(has, *sizes), strict=True)]

    def primals_and_tangents(self, outs: Sequence[Any]) -> tuple[list, list]:
        """What the loop returns, each with its tangent."""
        by_place = dict(zip(self.out_order, outs, strict=True))
        primals = [by_place[i] for i in range(len(self.out_has))]
        dots = iter([by_place[i] for i in range(len(primals), len(outs))])
        return primals, [next(dots) if has else Zero(x.aval.to_tangent_aval())
                         for x, has in zip(primals, self.out_has, strict=True)]


def _tangents_behind(has: Flags, sizes: Sequence[int]) -> list[int]:
    """From [all primals, tangents that exist]: each group's primals, then its tangents."""
    places = iter(range(len(has), len(has) + sum(has)))
    tangents = [next(places) if h else None for h in has]
    pairs = zip(cut(range(len(has)), *sizes), cut(tangents, *sizes), strict=True)
    return [i for primals, dots in pairs for i in (*primals, *dots) if i is not None]
