"""Helpers for the rules of primitives with jaxprs inside, and the rules of those that run one.

Builds on `core`.  Chapter 09, *Control flow*.
In JAX: `jax/_src/lax/control_flow/common.py`.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from minijax import core
from minijax.core import (Avals, Axis, ForPrimitive, Outs, Params, Primitive, ShapedArray,
                          Undefined, Zero, tracing, vmap)
from minijax.core.jvp import jvp_jaxpr
from minijax.core.partial_eval import partial_eval_jaxpr
from minijax.core.transpose import transpose_jaxpr
from minijax.core.jaxpr import (ClosedJaxpr, Var, cached_on_jaxpr, eval_jaxpr, jaxpr_as_fun,
                                merge_lists, partition_list)

Flags = Sequence[bool]


def has_tangent(tangents: Sequence[Any]) -> list[bool]:
    """Which tangents, or cotangents, are not symbolic zeros."""
    return [not isinstance(t, Zero) for t in tangents]


def types_of(cotangents: list) -> list[ShapedArray | None]:
    """Their types, None for symbolic zeros."""
    return [None if isinstance(ct, Zero) else ct.aval for ct in cotangents]


def split_list(items: Sequence[Any], *sizes: int) -> list[list[Any]]:
    """The items in consecutive pieces of these sizes, and the rest."""
    ends = [*itertools.accumulate(sizes, initial=0), None]
    return [list(items[start:end]) for start, end in itertools.pairwise(ends)]


def split_half(items: Sequence[Any]) -> list[list[Any]]:
    return split_list(items, len(items) // 2)


@cached_on_jaxpr
def rearranged(closed: ClosedJaxpr, inputs: Sequence[int | ShapedArray] | None = None,
               outputs: Sequence[int] | None = None) -> ClosedJaxpr:
    """The same program with its inputs and outputs, or some of them, in another order.

    A type among the inputs stands for a new input that the program ignores.
    """
    jaxpr = closed.jaxpr
    ins = jaxpr.invars if inputs is None else tuple(
        Var(i) if isinstance(i, ShapedArray) else jaxpr.invars[i] for i in inputs)
    outs = jaxpr.outvars if outputs is None else tuple(jaxpr.outvars[i] for i in outputs)
    return ClosedJaxpr(jaxpr.replace(invars=ins, outvars=outs), closed.consts)


def refusing(error: type[Exception], message: str) -> Callable[..., Any]:
    """A rule that raises an error."""
    def refuse(*_: Any, **__: Any) -> Any:
        raise error(message)
    return refuse


def with_zeros(outs: Sequence[Any], has: Flags) -> Outs:
    """From [all outputs, tangents that exist]: the outputs, and the tangent of each."""
    dots = iter(outs[len(has):])
    return list(outs[:len(has)]), [next(dots) if h else Zero(x.aval.to_tangent_aval())
                                   for x, h in zip(outs, has, strict=False)]


def batch_axes_first(args: list, dims: list) -> list[Any]:
    """The arguments, the batched ones with their batch axis in front."""
    return [x if d is None else core.move_axis(x, d, 0) for x, d in zip(args, dims, strict=True)]


@cached_on_jaxpr
def separate_known_eqns(closed: ClosedJaxpr, unknown_in: Sequence[bool]) -> ClosedJaxpr:
    """The same program, in which no equation computes known and unknown values together."""
    def both(*args: Any) -> list:
        halves = partial_eval_jaxpr(closed, unknown_in)
        known_args, unknown_args = partition_list(args, unknown_in)
        outs = jaxpr_as_fun(halves.known)(*known_args)
        count = halves.unknown_out.count(False)
        rest = jaxpr_as_fun(halves.unknown)(*halves.needed(args, outs[count:]), *unknown_args)
        return merge_lists((outs[:count], rest), halves.unknown_out)
    return tracing.stage(both, closed.in_avals, closed.jaxpr.debug_info)


# ── One of several programs runs ─────────────────────────────────────────────────────────────

def elementwise_or(flags: Any) -> list[bool]:
    """The elementwise or of lists of flags."""
    return [any(column) for column in zip(*flags, strict=True)]


Halves = tuple[ClosedJaxpr, ClosedJaxpr, Avals]


def join_residuals(branches: Sequence[Halves], start: int) -> list[Halves]:
    """The halves of branches, changed so that all branches hand over residuals of the same types.

    Args:
      branches: for each branch the first half, whose last outputs are its residuals; the second
        half, which takes them from input `start` on; and their types.
    """
    numbered = [[(aval, avals[:i].count(aval)) for i, aval in enumerate(avals)]
                for _, _, avals in branches]
    slots = list(dict.fromkeys(itertools.chain(*numbered)))
    slot_avals = [aval for aval, _ in slots]
    joined: list[Halves] = []
    for (first, second, _), own in zip(branches, numbered, strict=True):
        places = [slots.index(each) for each in own]
        if places != [*range(len(slots))]:
            first = _returning_residuals(first, places, slot_avals)
            second = _taking_residuals(second, start, places, slot_avals)
        joined.append((first, second, slot_avals))
    return joined


@cached_on_jaxpr
def _returning_residuals(first: ClosedJaxpr, places: Sequence[int],
                         slot_avals: Avals) -> ClosedJaxpr:
    """A first half with its residuals at these places among those of all branches, else zeros."""
    def run(*args: Any) -> list:
        outs = eval_jaxpr(first.jaxpr, first.consts, *args)
        outs, residuals = split_list(outs, len(outs) - len(places))
        own = dict(zip(places, residuals, strict=True))
        return [*outs, *(own[i] if i in own else core.zeros(aval)
                         for i, aval in enumerate(slot_avals))]
    return tracing.stage(run, first.in_avals, first.jaxpr.debug_info)


def _taking_residuals(second: ClosedJaxpr, start: int, places: Sequence[int],
                      slot_avals: Avals) -> ClosedJaxpr:
    """A second half that takes the residuals of all branches, and uses its own."""
    before, residuals, after = split_list(range(len(second.in_avals)), start, len(places))
    own = dict(zip(places, residuals, strict=True))
    return rearranged(second, [
        *before, *(own.get(i, aval) for i, aval in enumerate(slot_avals)), *after])


def running_one_of(field: str, leading: int = 0, recomputes: bool = False) -> dict[str, Any]:
    """The rules of a primitive that runs one of the programs in a parameter.

    Args:
      field: the parameter: a program, or a tuple of several.
      leading: the number of operands that choose a program and are not passed to it.
      recomputes: whether programs that are transposed compute known values, too.
    """
    def apply(p: Primitive, params: Params, operands: Sequence[Any],
              derive: Callable[[ClosedJaxpr, Flags | None], tuple[ClosedJaxpr, Flags]]
              ) -> tuple[list, list[bool]]:
        """The outputs of other programs, derived from each to return what any of them returns."""
        value = params[field]
        programs = value if isinstance(value, tuple) else (value,)
        derived = [derive(closed, None) for closed in programs]
        flags = elementwise_or(own for _, own in derived)
        new = tuple(program if list(own) == flags else derive(closed, flags)[0]
                    for closed, (program, own) in zip(programs, derived, strict=True))
        return p.bind(*operands, **params | {
            field: new if isinstance(value, tuple) else new[0]}), flags

    @ForPrimitive
    def jvp(p: Primitive, primals: list, tangents: list, /, **params: Any) -> Outs:
        has = has_tangent(tangents[leading:])
        outs, out_has = apply(p, params, [*primals, *partition_list(tangents[leading:], has)[True]],
                              lambda closed, keep: jvp_jaxpr(closed, has, keep))
        return with_zeros(outs, out_has)

    @ForPrimitive
    def batch(p: Primitive, axis: Axis, args: list, dims: list, /, **params: Any) -> Outs:
        batched = [d is not None for d in dims[leading:]]
        outs, out_batched = apply(
            p, params, batch_axes_first(args, dims),
            lambda closed, keep: vmap.batch_jaxpr(closed, axis.cache_key, batched, keep))
        return outs, [0 if b else None for b in out_batched]

    @ForPrimitive
    def transpose(p: Primitive, cotangents: list, /, *args: Any, **params: Any) -> list:
        linear, has = [isinstance(x, Undefined) for x in args], has_tangent(cotangents)
        fixed, linear_args = partition_list(args, linear)

        def derive(closed: ClosedJaxpr, keep: Flags | None) -> tuple[ClosedJaxpr, Flags]:
            ct_avals = types_of(cotangents)
            if recomputes:  # for cotangents of its results' types, as in JAX
                closed = separate_known_eqns(closed, linear[leading:])
                ct_avals = [ct and out for ct, out in zip(ct_avals, closed.out_avals, strict=True)]
            return transpose_jaxpr(closed, linear[leading:], ct_avals, keep)
        outs, out_has = apply(p, params, [*fixed, *partition_list(cotangents, has)[True]], derive)
        vanishing = [Zero(x.aval) for x in partition_list(linear_args, out_has)[False]]
        return merge_lists(([None] * len(fixed), merge_lists((vanishing, outs), out_has)), linear)

    @ForPrimitive
    def extend(p: Primitive, derive: Callable[[ClosedJaxpr], ClosedJaxpr], count: Callable,
               args: list, companions: list[list], /, **params: Any) -> list:
        value = params[field]
        derived = tuple(map(derive, value)) if isinstance(value, tuple) else derive(value)
        return p.bind(*args, *itertools.chain(*companions[leading:]), **params | {field: derived})

    return {"jvp": jvp, "batch": batch, "transpose": transpose, "extend": extend}
