"""Products of sparse arrays with dense and with sparse ones.

Builds on `bcoo`.  In JAX: `jax/experimental/sparse/bcoo.py`.
"""

import math
from typing import Any

from minijax import numpy as jnp
from minijax.core import Array, refuse
from minijax.experimental.sparse.bcoo import (BCOO, bcoo_sum_duplicates, bcoo_update_layout,
                                              bcoo_todense, elements_at, flat_indices,
                                              of_each_batch, with_data)
from minijax.primitives.axes import as_dims, without

Axes = tuple[tuple[int, ...], tuple[int, ...]]  # of both factors


# ── Contractions ─────────────────────────────────────────────────────────────────────────────

def bcoo_dot_general(lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any = None,
                     preferred_element_type: Any = None, out_sharding: Any = None) -> Any:
    """The product of `lax.dot_general`, of which one factor or both are sparse.

    Returns:
      A dense array; a sparse one of two sparse ones.

    Raises:
      TypeError: for axes that do not fit.
      NotImplementedError: for dense axes of two sparse arrays.

    >>> x = BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))
    >>> bcoo_dot_general(x, jnp.ones(2), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([2., 3.], dtype=float32)
    """
    (left, right), (left_batch, right_batch) = (map(as_dims, pair) for pair in dimension_numbers)
    for axes, others in ((left, right), (left_batch, right_batch)):
        sizes = tuple(lhs.shape[d] for d in axes), tuple(rhs.shape[d] for d in others)
        if sizes[0] != sizes[1]:
            raise TypeError("dot_general requires contracting and batch dimensions to have the "
                            f"same shape, got {sizes[0]} and {sizes[1]}.")
    if not isinstance(lhs, BCOO):
        out = _sparse_times_dense(rhs, lhs, (right, left), (right_batch, left_batch))
        free = rhs.ndim - len(right) - len(right_batch)
        batch, rank = len(left_batch), out.ndim
        order = (*range(batch), *range(batch + free, rank), *range(batch, batch + free))
        out = out.transpose(order)
    elif isinstance(rhs, BCOO):
        return _sparse_times_sparse(lhs, rhs, (left, right), (left_batch, right_batch))
    else:
        out = _sparse_times_dense(lhs, rhs, (left, right), (left_batch, right_batch))
    return out if preferred_element_type is None else out.astype(preferred_element_type)


def _sparse_times_dense(lhs: BCOO, rhs: Any, contracted: Axes, batch: Axes) -> Array:
    """Rows of the dense factor at the indices, times the data, added where they belong."""
    lhs = bcoo_update_layout(lhs, n_batch=0, n_dense=0)
    used = (*batch[0], *contracted[0])
    free = without(range(lhs.ndim), used)
    rhs = jnp.asarray(rhs)
    axes = (*batch[1], *contracted[1])
    rhs = rhs.transpose((*axes, *without(range(rhs.ndim), axes)))
    rows = elements_at(lhs.indices[:, used], rhs)
    data = jnp.expand_dims(lhs.data, range(1, rows.ndim)) * rows
    kept = (*batch[0], *free)
    shape = (*(lhs.shape[d] for d in kept), *(rhs.shape[len(axes):]))
    is_out = (lhs.indices >= jnp.array(lhs.shape, lhs.indices.dtype)).any(-1)
    data = jnp.where(jnp.expand_dims(is_out, range(1, data.ndim)), 0, data)
    return bcoo_todense(BCOO((data, lhs.indices[:, kept]), shape=shape))


def _sparse_times_sparse(lhs: BCOO, rhs: BCOO, contracted: Axes, batch: Axes) -> BCOO:
    """All pairs of elements; those whose indices differ where they must agree are padding."""
    if lhs.n_dense or rhs.n_dense:
        raise NotImplementedError("bcoo_spdot_general with n_dense != 0; call "
                                  "update_layout(n_dense=0) first")
    lhs, rhs = (bcoo_update_layout(x, n_batch=0) for x in (lhs, rhs))
    same: Any = True
    for d, e in zip((*contracted[0], *batch[0]), (*contracted[1], *batch[1]), strict=True):
        same = same & (lhs.indices[:, None, d] == rhs.indices[None, :, e])
    inside = [(x.indices < jnp.array(x.shape, x.indices.dtype)).all(-1) for x in (lhs, rhs)]
    same = same & inside[0][:, None] & inside[1][None]
    free = (without(range(lhs.ndim), (*batch[0], *contracted[0])),
            without(range(rhs.ndim), (*batch[1], *contracted[1])))
    shape = (*(lhs.shape[d] for d in (*batch[0], *free[0])), *(rhs.shape[d] for d in free[1]))
    pairs = (lhs.nse, rhs.nse)
    rows = [jnp.broadcast_to(lhs.indices[:, None, d], pairs) for d in (*batch[0], *free[0])]
    rows += [jnp.broadcast_to(rhs.indices[None, :, d], pairs) for d in free[1]]
    rows = [jnp.where(same, x, n) for x, n in zip(rows, shape, strict=True)]
    data = jnp.where(same, lhs.data[:, None] * rhs.data[None], 0).reshape(-1)
    count = math.prod(pairs)
    indices = jnp.stack(rows, -1) if rows else jnp.zeros((*pairs, 0), lhs.indices.dtype)
    out = BCOO((data, indices.reshape(count, len(shape))), shape=shape)
    return bcoo_sum_duplicates(out, nse=min(count, math.prod(shape)), remove_zeros=False)


# ── Products of elements ─────────────────────────────────────────────────────────────────────

def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Array:
    """The data of the product with a dense array that broadcasts to the shape of the sparse one.

    >>> bcoo_multiply_dense(BCOO.fromdense(jnp.array([0., 2., 3.])), 10.)
    Array([20., 30.], dtype=float32)
    """
    v = jnp.asarray(v)
    if v.ndim == 0:
        return sp_mat.data * v
    if v.ndim > sp_mat.ndim or any(n not in (1, m) for n, m in zip(
            v.shape[::-1], sp_mat.shape[::-1], strict=False)):
        raise NotImplementedError("multiplication between sparse and dense is only implemented for "
                                  f"cases where the output shape matches the sparse matrix shape; "
                                  f"got shape={sp_mat.shape}, v.shape={v.shape}")
    v = jnp.expand_dims(v, range(sp_mat.ndim - v.ndim))

    def factors(indices: Any, v: Any) -> Any:
        is_one = jnp.array(v.shape[:indices.shape[-1]], int) == 1
        return elements_at(jnp.where(is_one, 0, indices), v)
    return sp_mat.data * of_each_batch(sp_mat, factors, v)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The product of the elements of two sparse arrays of one shape.

    Raises:
      NotImplementedError: for different shapes, and more than 2**31 - 1 elements.
    """
    refuse((lhs.shape != rhs.shape, "multiplication between sparse matrices of different shapes: "
            f"{lhs.shape} and {rhs.shape}"),
           (lhs.size >= 2 ** 31, "multiplication of sparse arrays of more than 2**31 - 1 elements"),
           error=NotImplementedError)
    lhs, rhs = (bcoo_update_layout(x, n_batch=0, n_dense=0) for x in (lhs, rhs))
    rhs = bcoo_sum_duplicates(rhs, nse=rhs.nse, remove_zeros=False)
    (flat_lhs, is_out), (flat_rhs, _) = flat_indices(lhs), flat_indices(rhs)
    place: Any = jnp.searchsorted(flat_rhs, flat_lhs)
    hit = (flat_rhs.at[place].get(mode="fill", fill_value=-1) == flat_lhs) & ~is_out
    others = rhs.data.at[place].get(mode="fill", fill_value=0)
    return with_data(lhs, lhs.data * jnp.where(hit, others, 0))
