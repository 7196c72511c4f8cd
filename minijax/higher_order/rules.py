"""What the rules of operations with programs inside share: one of several programs runs, or a loop.

Stands on the interpreters.  Chapter 09, *Control flow*.
In JAX: `jax/_src/lax/control_flow/common.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import Axis, ShapedArray, Undefined, Zero
from minijax.interpreters.jvp import jvp_jaxpr
from minijax.interpreters.transpose import transpose_jaxpr
from minijax.interpreters.vmap import Dim, batch_jaxpr
from minijax.jaxpr import ClosedJaxpr, Var
from minijax.primitives.emitted import move_axis

Flags = Sequence[bool]
Apply = Callable[[Sequence[ClosedJaxpr], Sequence[Any]], list]  # bind with programs, operands


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


def rearranged(closed: ClosedJaxpr, inputs: Sequence[int | ShapedArray] | None = None,
               outputs: Sequence[int] | None = None) -> ClosedJaxpr:
    """The same program with its inputs and outputs, or some of them, in another order.

    A type among the inputs is that of one at which the program does not look.
    """
    jaxpr = closed.jaxpr
    ins = jaxpr.invars if inputs is None else tuple(
        Var(i) if isinstance(i, ShapedArray) else jaxpr.invars[i] for i in inputs)
    outs = jaxpr.outvars if outputs is None else tuple(jaxpr.outvars[i] for i in outputs)
    return ClosedJaxpr(jaxpr.replace(invars=ins, outvars=outs), closed.consts)


def with_zeros(outs: Sequence[Any], has: Flags) -> tuple[list, list]:
    """From [all outputs, tangents that exist]: the outputs, and the tangent of each."""
    dots = iter(outs[len(has):])
    return list(outs[:len(has)]), [next(dots) if h else Zero(x.aval.to_tangent_aval())
                                   for x, h in zip(outs, has, strict=False)]


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
    return with_zeros(apply(new, [*primals, *chosen(tangents, has)]), out_has)


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
