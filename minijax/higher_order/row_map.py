"""`map`: a function on each row of arrays, one after the other or in batches.

Stands on `scan`.  Chapter 09, *Control flow*.  In JAX: `jax/_src/lax/control_flow/loops.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


from minijax import core, tree_util
from minijax.higher_order.scan import loop_length, scan
from minijax.interpreters.vmap import batch_to, vmap_flat
from minijax.primitives.emitted import reshaped
from minijax.primitives.slicing import concatenate_p, slice_p
from minijax.stage import FlatFunction


def map(f: Callable, xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply a function to each row of arrays, one after the other, and stack the results.

    Args:
      f: a function of one row (a tree of arrays).
      xs: a tree of arrays with the same leading axis.
      batch_size: how many rows to take at a time, by `vmap`; None or 0 for one, without it.

    Returns:
      The tree of results, stacked along a leading axis.

    Raises:
      ValueError: when the leading axes differ or there is none.

    >>> import numpy as np
    >>> map(lambda x: x * x, np.arange(4))
    Array([0, 1, 4, 9], dtype=int32)
    """
    if not batch_size:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    rows = [core.as_value(x) for x in tree_util.tree_leaves(xs)]
    count, left = divmod(loop_length(rows, None), batch_size)
    tree = tree_util.tree_structure(xs)

    def part(start: int, stop: int) -> list:
        return [slice_p.bind(x, start_indices=(start, *[0] * (x.ndim - 1)),
                             limit_indices=(stop, *x.shape[1:]), strides=None) for x in rows]
    pieces = []
    if count:
        whole = [reshaped(x, (count, batch_size, *x.shape[1:]))
                 for x in part(0, count * batch_size)]
        stacked = scan(lambda _, x: (None, _each_row(f, x, batch_size)), None,
                       tree_util.tree_unflatten(tree, whole))[1]
        pieces.append(tree_util.tree_map(
            lambda y: reshaped(y, (count * batch_size, *y.shape[2:])), stacked))
    if left or not count:
        rest = tree_util.tree_unflatten(tree, part(count * batch_size, count * batch_size + left))
        pieces.append(_each_row(f, rest, left))
    return tree_util.tree_map(lambda *ys: concatenate_p.bind(*ys, dimension=0), *pieces)


def _each_row(f: Callable, rows: Any, count: int) -> Any:
    """The function on every row of a batch at once."""
    leaves, in_tree = tree_util.tree_flatten(((rows,), {}))
    flat = FlatFunction(f, in_tree)
    outs, dims = vmap_flat(flat, count, None, leaves, [0] * len(leaves))
    assert flat.out_tree is not None
    return tree_util.tree_unflatten(
        flat.out_tree, [batch_to(x, d, 0, count) for x, d in zip(outs, dims, strict=True)])
