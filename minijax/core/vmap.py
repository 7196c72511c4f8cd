"""Vectorisation: carry a whole batch and its batch dimension.

Builds on `core`, `tracing`.  Chapter 04, *Vectorising*.
In JAX: `jax/_src/interpreters/batching.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax import core
from minijax.core import (Array, Axis, Level, NamedAxisEffect, Params, Primitive, RuleTrace,
                          ShapedArray, Trace, Tracer)
from minijax.core.jaxpr import ClosedJaxpr, cached_on_jaxpr, jaxpr_as_fun, subjaxprs
from minijax.util.source_info import DebugInfo
from minijax.core.tracing import run_flat, stage_with_aux

Dim = int | None  # the batch dimension; None: one value for the whole batch


class BatchTracer(Tracer):
    """One example's view of a batch of values."""

    __slots__ = ("batch_dim", "value")

    def __init__(self, trace: BatchTrace, value: Array, batch_dim: int):
        super().__init__(trace, without_axis(value.aval, batch_dim))
        self.value, self.batch_dim = value, batch_dim

    def __repr__(self) -> str:
        return (f"{super().__repr__()} with\n  val = {self.value!r}\n"
                f"  batch_dim = {self.batch_dim}")


class BatchTrace(RuleTrace):
    """Runs a primitive's batching rule on whole batches instead of the primitive."""

    vma_trace: Any = None  # in a subclass: itself

    def __init__(self, parent: Trace, size: int, name: Any = None,
                 debug_info: DebugInfo | None = None, level: Level | None = None,
                 on_devices: bool = False):
        super().__init__(level or Level(parent, debug_info), parent)
        self.axis = Axis(size, name, self.level, on_devices, self.vma_trace)
        if name is not None:
            self.axes = (*self.axes, self.axis)

    def join(self, value: Array, dim: Dim) -> Array:
        return value if dim is None else BatchTracer(self, value, dim)

    def split(self, x: Array) -> tuple[Array, Dim]:
        return (x.value, x.batch_dim) if self.owns(x) else (x, None)

    def concerns(self, primitive: Primitive, args: Sequence[Array], params: Params) -> bool:
        """Whether an argument is batched, or the operation must be batched without."""
        name = self.axis.name
        return (super().concerns(primitive, args, params) or primitive.calls_python(params)
                or name is not None and (NamedAxisEffect(name) in primitive.effects(**params)
                                         or any(name in aval.vma for program in subjaxprs(params)
                                                for aval in program.in_avals + program.out_avals)))

    def process_primitive(self, primitive: Primitive, args: Sequence[Array],
                          params: Params) -> list:
        values, dims = zip(*map(self.split, args), strict=True) if args else ((), ())
        try:
            outs, out_dims = core.base_trace.wrap("batch", self.run_rule)(
                primitive, values, dims, params)
        except Exception:
            refuse_example(primitive, [x.aval for x in args], params)
            raise
        return [self.join(x, d) for x, d in zip(outs, out_dims, strict=True)]

    def run_rule(self, primitive: Primitive, values: Sequence[Array], dims: Sequence[Dim],
                 params: Params) -> tuple[list, list]:
        outs: tuple[list, list] = primitive.rule("batch")(self.axis, list(values), list(dims),
                                                          **params)
        return outs


def refuse_example(primitive: Primitive, avals: Sequence[ShapedArray],
                   params: dict[str, Any]) -> None:
    """After a batching rule has failed: raise the type error of one example, if it has one.

    The user knows the shapes of one example.
    """
    if primitive.split is not None or not callable(primitive.abstract_eval):
        return  # a program inside was checked when it was recorded
    try:
        primitive.type_of(avals, params)
    except (TypeError, ValueError, IndexError) as error:
        raise error from None


def without_axis(aval: ShapedArray, dim: int) -> ShapedArray:
    return aval.update(shape=aval.shape[:dim] + aval.shape[dim + 1:], sharding=(
        aval.explicit_sharding and aval.explicit_sharding.without_axis(dim)))


def with_axis(aval: ShapedArray, dim: Dim, size: int, name: Any = None, sharding: Any = None
              ) -> ShapedArray:
    """The type of a batch, which does not vary along an axis of that name.

    Args:
      sharding: that of the axis, as of a vector.
    """
    shape = aval.shape if dim is None else (*aval.shape[:dim], size, *aval.shape[dim:])
    return aval.update(shape=shape, vma=aval.vma - {name}, sharding=(
        sharding or aval.explicit_sharding) and aval.shardings.of_batch(aval, dim, sharding))


def vmap_flat(fun: Callable[..., Sequence[Any]], axis_size: int, axis_name: Any,
              args: Sequence[Array], dims: Sequence[Dim], debug_info: DebugInfo | None = None,
              level: Level | None = None, on_devices: bool = False, vma_trace: Any = None
              ) -> tuple[list[Array], list[Dim]]:
    """Batched outputs and their batch dimensions, for a function of flat arguments.

    A custom rule re-enters its transformation: with the same `level`, so that what the rule's
    function closed over is still recognised.
    """
    trace = (vma_trace or BatchTrace)(core.current_trace.get(), axis_size, axis_name, debug_info,
                                      level, on_devices)
    if any(d is not None and x.aval.explicit_sharding for x, d in zip(args, dims, strict=True)):
        trace.axis = trace.axis._replace(sharding=ShapedArray.shardings.of_axis(args, dims))
    outs = list(map(trace.split, run_flat(trace, fun, list(map(trace.join, args, dims)))))
    return [x for x, _ in outs], [d for _, d in outs]


@cached_on_jaxpr
def batch_jaxpr(closed: ClosedJaxpr, axis: tuple, batched: Sequence[bool],
                keep: Sequence[bool] | None = None) -> tuple[ClosedJaxpr, Sequence[bool]]:
    """The program on a batch, every batch axis leading.

    Args:
      closed: a program.
      axis: the `cache_key` of the batch axis.
      batched: which inputs have it.
      keep: the outputs that must have it.

    Returns:
      The batched program, and which of its outputs have the batch axis.
    """
    (size, name, sharding), in_dims = axis, [0 if b else None for b in batched]

    def on_batch(*args: Array) -> tuple[list[Array], tuple[bool, ...]]:
        outs, dims = vmap_flat(jaxpr_as_fun(closed), size, name, args, in_dims)
        kept = keep or [False] * len(outs)
        out_batched = tuple(k or d is not None for k, d in zip(kept, dims, strict=True))
        return [core.batch_to(x, d, 0, size) if b else x
                for x, d, b in zip(outs, dims, out_batched, strict=True)], out_batched

    in_avals = [with_axis(aval, dim, size, name, sharding)
                for aval, dim in zip(closed.in_avals, in_dims, strict=True)]
    return stage_with_aux(on_batch, in_avals, closed.jaxpr.debug_info)
