"""Elements joined by a function of the user's: along axes, and in windows that slide.

Stands on `control_flow`, and on the reductions that have names.  Chapter 09, *Control flow*.
In JAX: `jax/_src/lax/lax.py` (`reduce`), `jax/_src/lax/windowed_reductions.py`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import core, tree_util
from minijax.core import Array, ArrayImpl
from minijax.higher_order.control_flow import scan
from minijax.interpreters.vmap import batch_to, vmap_flat
from minijax.primitives import emitted, reduce as reductions, sliding
from minijax.primitives.axes import as_dims, without
from minijax.primitives.convert import converted
from minijax.primitives.sliding import (in_windows, padtype_to_pads,
                                        reduce_window_max_p, reduce_window_min_p,
                                        reduce_window_sum_p, spanned)
from minijax.stage import FlatFunction, stage


def named(join: Callable, aval: core.ShapedArray) -> str:
    """The name of the primitive that a function of two elements is, if it is one."""
    jaxpr = stage(join, [aval, aval]).jaxpr
    if len(jaxpr.eqns) != 1 or jaxpr.outvars != jaxpr.eqns[0].outvars or (
            set(jaxpr.eqns[0].invars) != set(jaxpr.invars)):
        return ""
    return jaxpr.eqns[0].primitive.name


class _Join:
    """A function of two elements, or of two trees of them, and the values it begins with."""

    def __init__(self, name: str, operands: Any, init_values: Any, computation: Callable) -> None:
        self.operands, tree = tree_util.tree_flatten(operands)
        inits, init_tree = tree_util.tree_flatten(init_values)
        if tree != init_tree:
            raise ValueError("Operands must have the same tree structure as init_values: "
                             f"{tree} vs. {init_tree}")
        self.operands = [core.as_value(x) for x in self.operands]
        inits = [core.as_value(x) for x in inits]
        if any(x.ndim for x in inits):
            raise TypeError(f"{name} expected init_values to be scalars but init_values have shapes"
                            f" {[x.shape for x in inits]}.")
        if len({x.shape for x in self.operands}) > 1:
            raise ValueError(f"{name} expected all operands to have one shape, got "
                             f"{[x.shape for x in self.operands]}.")
        self.inits = [converted(v, x.dtype) if v.weak_type else v
                      for v, x in zip(inits, self.operands, strict=True)]
        self.flat = FlatFunction(computation, tree_util.tree_structure(((operands, operands), {})))

    def primitive(self) -> str:
        """The name of the primitive that the function is, if it is one that begins from nothing."""
        [init, *more] = self.inits
        if more or not isinstance(init, ArrayImpl):
            return ""
        dtype, start = self.operands[0].dtype, np.asarray(init)
        name = named(self.flat, core.ShapedArray((), dtype))
        from_nothing = {
            "add": lambda: 0, "mul": lambda: 1, "or": lambda: 0, "xor": lambda: 0,
            "and": lambda: True if dtype.kind == "b" else -1, "max": lambda: sliding.lowest(dtype),
            "min": lambda: sliding.highest(dtype)}.get(name)
        same = from_nothing and dtype.kind != "c" and (
            start == np.array(from_nothing()).astype(dtype))
        return name if same else ""

    def along(self, rows: Sequence[Array]) -> Any:
        """The rows joined one after the other, element by element."""
        shape, [*inits] = rows[0].shape[1:], self.inits
        size = math.prod(shape)

        def step(carry: list, row: list) -> tuple[list, None]:
            outs, dims = vmap_flat(self.flat, size, None, [*carry, *row], [0] * 2 * len(row))
            return [batch_to(y, d, 0, size) for y, d in zip(outs, dims, strict=True)], None

        flat = [emitted.reshaped(x, (x.shape[0], size)) for x in rows]
        outs, _ = scan(step, [emitted.spread(x, (), (size,)) for x in inits], flat)
        return self.flat.result([emitted.reshaped(x, shape) for x in outs])


def reduce(operands: Any, init_values: Any, computation: Callable[[Any, Any], Any],
           dimensions: Sequence[int], out_sharding: Any = None) -> Any:
    """All elements along some axes, joined by a function of two.

    Args:
      operands: an array, or a tree of arrays of one shape.
      init_values: what to begin with: a scalar, or a tree of them.
      computation: takes two elements, or two trees of them, and returns one; the order in which it
        is applied must not matter.
      dimensions: the axes.

    Returns:
      An array, or a tree of them, without these axes.

    Raises:
      ValueError: for axes that are not there, and trees that do not fit.

    >>> reduce(np.array([[1, 2], [3, 4]]), 0, lambda x, y: x + y, (0,))
    Array([4, 6], dtype=int32)
    """
    join, axes = _Join("reduce", operands, init_values, computation), as_dims(dimensions)
    emitted.check_axes(join.operands[0].aval, axes)
    name = join.primitive()
    if name:
        sums = emitted.reduce_sum_p if name == "add" else getattr(
            reductions, f"reduce_{'prod' if name == 'mul' else name}_p")
        return sums.bind(join.operands[0], axes=axes)
    rows = []
    for x in join.operands:
        kept = without(range(x.ndim), axes)
        turned = emitted.transpose_p.bind(x, permutation=(*axes, *kept))
        rows.append(emitted.reshaped(turned, (math.prod(x.shape[d] for d in axes),
                                              *(x.shape[d] for d in kept))))
    return join.along(rows)


_POOLS = {"add": reduce_window_sum_p, "max": reduce_window_max_p, "min": reduce_window_min_p}


def reduce_window(operand: Any, init_value: Any, computation: Callable,
                  window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                  padding: Any = "VALID", base_dilation: Sequence[int] | None = None,
                  window_dilation: Sequence[int] | None = None) -> Any:
    """The elements of each window that slides over an array, joined by a function of two.

    Args:
      operand: an array, or a tree of arrays of one shape.
      init_value: what to begin with, and what lies outside: a scalar, or a tree of them.
      computation: takes two elements, or two trees of them, and returns one.
      window_dimensions: the size of a window, along every axis.
      window_strides: how far apart windows are; one by default.
      padding: "VALID", "SAME", "SAME_LOWER", or how much to add before and after each axis.
      base_dilation, window_dilation: how far apart the elements of the operand, and of a window,
        are set.

    Returns:
      An array, or a tree of them, with an element for each window.

    Raises:
      TypeError, ValueError: where sizes do not fit.

    >>> from minijax import lax
    >>> reduce_window(np.array([1., 3., 2., 5.]), -np.inf, lax.max, (2,), (2,))
    Array([3., 5.], dtype=float32)
    """
    join = _Join("reduce_window", operand, init_value, computation)
    shape = join.operands[0].shape
    ones = (1,) * len(shape)
    sizes = {"window_dimensions": as_dims(window_dimensions),
             "window_strides": as_dims(window_strides or ones),
             "base_dilation": as_dims(base_dilation or ones),
             "window_dilation": as_dims(window_dilation or ones)}
    sliding.check_windows(len(shape), sizes)
    around = padding
    if isinstance(padding, str):
        around = padtype_to_pads(
            list(map(spanned, shape, sizes["base_dilation"])),
            list(map(spanned, sizes["window_dimensions"], sizes["window_dilation"])),
            sizes["window_strides"], padding)
    pads: Any = tuple(map(as_dims, around))
    sliding.check_windows(len(shape), {"padding": pads})
    pool = _POOLS.get(join.primitive())
    if pool and join.operands[0].dtype != bool:
        return pool.bind(join.operands[0], padding=pads, **sizes)
    rows = []
    for x, init in zip(join.operands, join.inits, strict=True):
        found = in_windows(x, init, padding=pads, **sizes)
        inner = range(x.ndim, 2 * x.ndim)
        turned = emitted.transpose_p.bind(found, permutation=(*inner, *range(x.ndim)))
        rows.append(emitted.reshaped(turned, (math.prod(turned.shape[:x.ndim]),
                                              *turned.shape[x.ndim:])))
    return join.along(rows)
