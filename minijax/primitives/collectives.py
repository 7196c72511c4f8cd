"""Operations along a named axis: its index, and sums and extremes over it.

Stands on `core`, `shape`.  Chapter 11, *Named axes*.  In JAX: `jax/_src/lax/parallel.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import core, tree_util
from minijax.core import (Array, Axis, NamedAxisEffect, Primitive, ShapedArray, Undefined,
                          Zero, cannot)
from minijax.primitives.elementwise import div_p, mul_p
from minijax.primitives.reduce import reduce_max_p, reduce_min_p, reduce_sum_p
from minijax.primitives.shape import iota_p

def _names_axis(*, axis_name: Any, **_: Any) -> core.Effects:
    return frozenset([NamedAxisEffect(axis_name)])


def _unbound(*_: Any, axis_name: Any, **__: Any) -> Any:
    raise NameError(f"unbound axis name: {axis_name}")


# ── The index along the axis ─────────────────────────────────────────────────────────────────

def _index_batch(axis: Axis, args: Sequence[Any], dims: Sequence[Any], *, axis_name: Any
                 ) -> tuple[list, list]:
    index = iota_p.bind(dtype=np.dtype(np.int32), shape=(axis.size,), dimension=0)
    return [index], [0]


axis_index_p = Primitive(
    "axis_index",
    impl=_unbound,
    abstract_eval=lambda *, axis_name: [ShapedArray((), np.int32)],
    jvp=cannot("it takes no arguments"),
    transpose=cannot("it takes no arguments"),
    batch=_index_batch,
    loop=_unbound,
    effects=_names_axis,
    examples=list)  # it has a meaning only under a `vmap` that names its axis


def axis_index(axis_name: Any) -> Any:
    """The place of this example along a named axis.

    Raises:
      NameError: when no enclosing `vmap` bears the name.

    >>> import minijax as jax
    >>> jax.vmap(lambda x: x * axis_index('i'), axis_name='i')(np.arange(3, 6))
    Array([ 0,  4, 10], dtype=int32)
    """
    core.find_axis(axis_name)
    return axis_index_p.bind(axis_name=axis_name)


def axis_size(axis_name: Any) -> int:
    """The size of a named axis.

    Raises:
      NameError: when no enclosing `vmap` bears the name.
    """
    return core.find_axis(axis_name).size


# ── Reductions over the axis ─────────────────────────────────────────────────────────────────

def _along_axis(name: str, reduce: Primitive, linear: bool) -> Primitive:
    """A reduction over a named axis, as the reduction over the batch axis it stands for."""
    def batch(axis: Axis, args: Sequence[Any], dims: Sequence[Any], *, axis_name: Any
              ) -> tuple[list, list]:
        (x,), (dim,) = args, dims
        if axis.name != axis_name:  # another axis is mapped: the reduction waits for its own
            return [primitive.bind(x, axis_name=axis_name)], [dim]
        if dim is None:
            return [_of_copies(x, axis.size) if linear else x], [None]
        return [reduce.bind(x, axes=(dim,))], [None]

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axis_name: Any
            ) -> tuple[list, list]:
        (x,), (t,) = primals, tangents
        out = primitive.bind(x, axis_name=axis_name)
        return [out], [t if isinstance(t, Zero) else primitive.bind(t, axis_name=axis_name)]

    def transpose(cotangents: Sequence[Any], x: Undefined, *, axis_name: Any) -> list:
        return [primitive.bind(ct, axis_name=axis_name) for ct in cotangents]

    not_linear = cannot("only sums along a named axis have a derivative here")
    primitive = Primitive(
        name, impl=_unbound, abstract_eval=lambda x, *, axis_name: [x],
        jvp=jvp if linear else not_linear, transpose=transpose if linear else not_linear,
        batch=batch, loop=_unbound, effects=_names_axis, examples=list)
    return primitive


def _of_copies(x: Array, size: int) -> Array:
    """The sum of `size` copies of `x`."""
    count = core.ArrayImpl(np.asarray(size, x.dtype), core.ShapedArray((), x.dtype), True)
    return mul_p.bind(x, count)


psum_p = _along_axis("psum", reduce_sum_p, linear=True)
pmax_p = _along_axis("pmax", reduce_max_p, linear=False)
pmin_p = _along_axis("pmin", reduce_min_p, linear=False)


def _over_axis(primitive: Primitive, what: str) -> Callable[[Any, Any], Any]:
    def collective(x: Any, axis_name: Any) -> Any:
        names = axis_name if isinstance(axis_name, tuple | list) else (axis_name,)
        for name in names:
            core.find_axis(name)
            x = tree_util.tree_map(lambda leaf, n=name: primitive.bind(leaf, axis_name=n), x)
        return x
    collective.__name__ = collective.__qualname__ = primitive.name
    collective.__doc__ = f"""{what} over the examples along a named axis.

    Args:
      x: an array or a tree of arrays.
      axis_name: the name given to `vmap`, or a tuple of names.

    Returns:
      The same tree; the value no longer depends on the place along the axis.

    Raises:
      NameError: when no enclosing `vmap` bears the name.
    """
    return collective


psum = _over_axis(psum_p, "The sum")
pmax = _over_axis(pmax_p, "The largest")
pmin = _over_axis(pmin_p, "The smallest")


def pmean(x: Any, axis_name: Any) -> Any:
    """The mean over the examples along a named axis.

    >>> import minijax as jax
    >>> jax.vmap(lambda x: x - pmean(x, 'i'), axis_name='i')(np.array([1., 3.], np.float32))
    Array([-1.,  1.], dtype=float32)
    """
    names = axis_name if isinstance(axis_name, tuple | list) else (axis_name,)
    size = int(np.prod([axis_size(n) for n in names]))
    return tree_util.tree_map(
        lambda s: div_p.bind(s, np.asarray(size, s.dtype)[()]), psum(x, axis_name))
