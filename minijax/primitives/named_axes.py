"""Named axes: which there are, and what varies along them.

Inside of `shard_map` a type says along which axes of the mesh its values vary, its `vma`.
Builds on `core`, `ad_util`; the collectives build on it.  Chapter 11, *Named axes*.
In JAX: `jax/_src/core.py` (`pvary`), `jax/_src/lax/parallel.py`.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from minijax import core, errors
from minijax.core import Array, Axis, NamedAxisEffect, Outs, Params, Primitive, ShapedArray
from minijax.primitives import algebra, axes
from minijax.primitives.ad_util import linear, reduce_sum_p, transposed


# ── The axes ─────────────────────────────────────────────────────────────────────────────────

def unbound_axis(name: object, operation: str | None = None) -> NameError:
    """The error for an axis name that no enclosing transformation binds.

    >>> print(unbound_axis("i"))
    unbound axis name: i
    """
    message = f"unbound axis name: {name}" if operation is None else (
        f"Found an unbound axis name: {name}. To fix this, please call {operation} under "
        "`jax.shard_map`.")
    return errors.with_cure(NameError(message),
                            f"An axis bears that name inside of vmap(f, axis_name={name!r}).")


def find_axis(name: Any, operation: str | None = None) -> Axis:
    """The innermost mapped axis of that name.

    Raises:
      NameError: when no enclosing `vmap` binds the name.
    """
    for axis in reversed(core.current_trace.get().axes):
        if axis.name == name:
            return axis
    raise unbound_axis(name, operation)


def names_of(axis_name: Any) -> tuple:
    return tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)


def checks_vma(axis: Axis) -> bool:
    """Whether types say what varies along the axis: one of `shard_map` with `check_vma`."""
    return axis.vma_trace is not None


def checked_names(names: Collection) -> tuple:
    """Those of the names along whose axes types say what varies, in the order of the mesh."""
    return tuple(axis.name for axis in core.current_trace.get().axes
                 if axis.name in names and checks_vma(axis))


def in_order(vma: frozenset) -> tuple:
    """Names of axes in the order of the mesh; those of no axis here at the end."""
    known = checked_names(vma)
    return *known, *sorted(vma - {*known}, key=str)


def vma_text(aval: ShapedArray) -> str:
    """The axes along which values of a type vary, as a type is printed with them.

    >>> vma_text(ShapedArray((), np.float32, vma=frozenset("ij")))
    '{V:(i,j)}'
    """
    names = in_order(aval.vma)
    listed = ",".join(map(str, names))
    return f"{{V:{listed if len(names) == 1 else f'({listed})'}}}"


# ── Collectives ──────────────────────────────────────────────────────────────────────────────

LINEAR = linear(0)


def _unbound(*_: Any, axis_name: Any, **__: Any) -> Any:
    raise unbound_axis(axis_name)


def collective(name: str, *, type_of: Callable[..., ShapedArray], transpose: Any, batch: Any,
               jvp: Any = LINEAR, may_produce_nan: bool = False,
               vma: Callable[[frozenset, Sequence], frozenset] = lambda vma, names: vma,
               printed: Callable[..., Params] | None = None) -> Primitive:
    """A primitive along named axes, which only a `vmap` that names the axes can evaluate.

    Args:
      name, transpose, batch, jvp, may_produce_nan, printed: as of `Primitive`.
      type_of: ``(*avals, **params) -> aval``, without the axes.
      vma: ``(vma, names) -> vma``: the axes of the mesh along which the result varies, from those
        along which `type_of` has it vary.
    """
    def abstract_eval(*avals: ShapedArray, axis_name: Any, **params: Any) -> list[ShapedArray]:
        out = type_of(*avals, **params)
        return [out.update(vma=vma(out.vma, names_of(axis_name)))]

    return Primitive(
        name, impl=_unbound, abstract_eval=abstract_eval, jvp=jvp, transpose=transpose,
        batch=batch, loop=_unbound, examples=list, may_produce_nan=may_produce_nan,
        effects=lambda axis_name, **_: frozenset(map(NamedAxisEffect, names_of(axis_name))),
        printed=printed, standard_vma=False)


def varies_no_more(vma: frozenset, names: Sequence) -> frozenset:
    return vma - {*names}


def as_axes(*, axis_name: tuple, **params: Any) -> Params:
    return {"axes": axis_name, **params}


# ── What does not vary, taken as varying; the sum of what varies ─────────────────────────────

def _pvary_batch(axis: Axis, args: list, dims: list, *, axis_name: tuple) -> Outs:
    rest = axes.without(axis_name, [i for i, name in enumerate(axis_name) if name == axis.name])
    return [pvary_p.bind(*args, axis_name=rest)] if rest else args, dims


pvary_p = collective(
    "pvary", type_of=lambda x: x,
    vma=lambda vma, names: vma | {*names},
    transpose=transposed(lambda ct, x, axis_name: psum_invariant_p.bind(ct, axis_name=axis_name)),
    batch=_pvary_batch,
    printed=as_axes)


def _sum_batch(axis: Axis, args: list, dims: list, *, axis_name: tuple) -> Outs:
    [x], [dim] = args, dims
    rest = axes.without(axis_name, [i for i, name in enumerate(axis_name) if name == axis.name])
    if len(rest) < len(axis_name):
        x = sum_of_copies(x, axis.size) if dim is None else reduce_sum_p.bind(x, axes=(dim,))
        dim = None
    return [psum_invariant_p.bind(x, axis_name=rest) if rest else x], [dim]


psum_invariant_p = collective(
    "psum_invariant", type_of=lambda x: x,
    vma=varies_no_more,
    transpose=transposed(lambda ct, x, axis_name: pvary_p.bind(ct, axis_name=axis_name)),
    batch=_sum_batch,
    may_produce_nan=True,
    printed=as_axes)


def sum_of_copies(x: Array, size: int) -> Array:
    """The sum of `size` copies of `x`; as in JAX, its factor is weak for a scalar only."""
    count = core.ArrayImpl(np.asarray(size, x.dtype), ShapedArray((), x.dtype, not x.ndim), True)
    return algebra.mul_p.bind(x, count)


def pvary(x: Array, names: Collection) -> Array:
    """`x`, taken as varying along those of the axes along which it does not, as far as types say.
    """
    missing = [name for name in checked_names(names) if name not in x.aval.vma]
    return pvary_p.bind(x, axis_name=tuple(missing)) if missing else x


def varying_along(ct: Array, vma: frozenset) -> Array:
    """The cotangent of a value that varies along these axes: a sum over the others."""
    others = checked_names(ct.aval.vma - vma)
    return pvary(psum_invariant_p.bind(ct, axis_name=others) if others else ct, vma)


def cast_operands(values: Sequence[Array]) -> Sequence[Array]:
    """The operands of an operation, all taken as varying along the axes along which any varies."""
    vma = frozenset().union(*(x.aval.vma for x in values))
    return [x if x.aval.vma == vma else pvary(x, vma) for x in values] if vma else values
