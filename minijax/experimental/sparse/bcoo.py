"""The sparse array `BCOO`, and operations that rearrange what it stores.

Its axes are ``(*batch, *sparse, *dense)``, those of its data ``(*batch, nse, *dense)``.  Where
indices are repeated, the data are summed; indices out of bounds are padding.
Builds on `numpy`, `lax`, `vmap`.  In JAX: `jax/experimental/sparse/bcoo.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes, lax, numpy as jnp, random, tree_util
from minijax.extend.vmappable import register_vmappable
from minijax.numpy.arguments import static_value
from minijax.primitives.axes import canonical_shape, with_item, without
from minijax.primitives.shape import squeezed_shape
from minijax.transforms.api import vmap

Shape = tuple[int, ...]


class SparseEfficiencyError(ValueError):
    """An operation would store far more elements than the array has."""


class SparseEfficiencyWarning(UserWarning):
    """An operation may be slow."""


class JAXSparse:
    """The class of sparse arrays."""

    data: Any
    shape: Shape
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100  # NumPy leaves operators to us

    size = property(lambda self: math.prod(self.shape))
    ndim = property(lambda self: len(self.shape))
    dtype = property(lambda self: self.data.dtype)

    def __len__(self) -> int:
        return self.shape[0]


class _Info(dict):
    """What of a sparse array is no data, by name."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


@tree_util.register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array: the values and indices of its elements, perhaps in batches.

    >>> x = BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))
    >>> x, x.data, x.indices.tolist()
    (BCOO(float32[2, 2], nse=2), Array([2., 3.], dtype=float32), [[0, 1], [1, 0]])
    >>> (x @ jnp.ones(2)).tolist(), (2 * x).todense().tolist()
    ([2.0, 3.0], [[0.0, 4.0], [6.0, 0.0]])

    Args:
      args: the data, of shape (*batch, nse, *dense), and the indices, (*batch, nse, n_sparse).
      shape: of the whole array.
      indices_sorted, unique_indices: whether the indices are in order, and none is repeated.

    Raises:
      ValueError: where the shapes do not fit.
    """

    def __init__(self, args: tuple[Any, Any], *, shape: Sequence[int],
                 indices_sorted: bool = False, unique_indices: bool = False) -> None:
        self.data, self.indices = map(jnp.asarray, args)
        self.shape = canonical_shape(tuple(shape))
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        _check(self)

    nse = property(lambda self: self.indices.shape[-2])
    n_batch = property(lambda self: self.indices.ndim - 2)
    n_sparse = property(lambda self: self.indices.shape[-1])
    n_dense = property(lambda self: self.ndim - self.n_batch - self.n_sparse)
    T = property(lambda self: self.transpose())

    def __repr__(self) -> str:
        name = type(self).__name__
        if not hasattr(self.data, "dtype") or not hasattr(self.indices, "ndim"):
            return f"{name}(<invalid>)"
        counts = {"nse": self.nse, "n_batch": self.n_batch, "n_dense": self.n_dense}
        more = "".join(f", {n}={k}" for n, k in counts.items() if k or n == "nse")
        text = f"{name}({self.dtype}{list(self.shape)}{more})"
        traced = isinstance(self.data, core.Tracer)
        return f"{type(self.data).__name__}[{text}]" if traced else text

    def tree_flatten(self) -> tuple[tuple, _Info]:
        return (self.data, self.indices), _Info(
            shape=self.shape, indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices)

    @classmethod
    def tree_unflatten(cls, aux: dict[str, Any], children: Sequence[Any]) -> BCOO:
        new = object.__new__(cls)  # the children may be no arrays
        new.data, new.indices = children
        vars(new).update(aux)
        return new

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32,
                  n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """The elements of an array that are not zero; see `bcoo_fromdense`."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense,
                              n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0,
                          n_batch: int = 0) -> BCOO:
        """One of SciPy's sparse matrices."""
        if n_dense or n_batch:
            raise NotImplementedError("BCOO.fromscipy with nonzero n_dense/n_batch; call "
                                      "bcoo_fromdense with a dense array")
        coo = mat.tocoo()
        indices = jnp.column_stack((coo.row, coo.col)).astype(index_dtype or np.int32)
        return cls((coo.data, indices), shape=coo.shape)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """The same with its axes reversed, or in this order."""
        return bcoo_transpose(self, permutation=axes or tuple(range(self.ndim))[::-1])

    def block_until_ready(self) -> BCOO:
        """The array itself, once its values are there."""
        for x in (self.data, self.indices):
            x.block_until_ready()
        return self


def _check(mat: BCOO) -> None:
    """Refuse data and indices that do not fit the shape."""
    data, indices, shape = mat.data, mat.indices, mat.shape
    if not dtypes.issubdtype(indices.dtype, np.integer) or indices.ndim < 2 or mat.n_dense < 0:
        raise ValueError(f"indices must be integers of shape (*batch, nse, n_sparse), got "
                         f"{indices.dtype}{list(indices.shape)} for {shape=}")
    for name, x in (("data", data), ("indices", indices)):
        batch = x.shape[:mat.n_batch]
        if any(n not in (1, whole) for n, whole in zip(batch, shape, strict=False)):
            raise ValueError(f"{name} batch dimensions not compatible for {name}.shape={x.shape}, "
                             f"{shape=}")
    if data.shape[mat.n_batch:] != (mat.nse, *shape[mat.n_batch + mat.n_sparse:]):
        raise ValueError(f"Invalid data.shape={data.shape} for nse={mat.nse}, "
                         f"n_batch={mat.n_batch}, n_dense={mat.n_dense}")


def with_batch(x: Any, batch: Shape) -> Any:
    """An array of which some batch axes may have size one, with this batch."""
    return jnp.broadcast_to(x, (*batch, *x.shape[len(batch):]))


def of_each_batch(mat: BCOO, f: Callable[..., Any], *arrays: Any) -> Any:
    """``f(indices, *arrays)`` of each part of the batch, whose axes the arrays have, too."""
    batch = mat.shape[:mat.n_batch]
    for _ in batch:
        f = vmap(f)
    return f(*(with_batch(x, batch) for x in (mat.indices, *arrays)))


def like(mat: BCOO, buffers: tuple[Any, Any], shape: Sequence[int], keeps_order: bool = False,
         keeps_unique: bool = False) -> BCOO:
    """A sparse array of other buffers, with as much known of its indices."""
    return BCOO(buffers, shape=shape, indices_sorted=keeps_order and mat.indices_sorted,
                unique_indices=keeps_unique and mat.unique_indices)


def with_data(mat: BCOO, data: Any) -> BCOO:
    """The sparse array with other data at its indices."""
    return like(mat, (data, mat.indices), mat.shape, True, True)


# ── From and to dense arrays ─────────────────────────────────────────────────────────────────

def bcoo_fromdense(mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: Any = np.int32) -> BCOO:
    """The elements of a dense array that are not zero.

    Args:
      mat: an array.
      nse: how many to store of each part of the batch; by default as many as there are.
      n_batch, n_dense: how many first axes are of the batch, and how many last ones are stored
        as a whole.
      index_dtype: of the indices.

    Raises:
      ConcretizationTypeError: when the array is traced and `nse` is not given.

    >>> bcoo_fromdense(jnp.array([0., 5., 6.])).indices.tolist()
    [[1], [2]]
    """
    mat = jnp.asarray(mat)
    dense = tuple(range(mat.ndim - n_dense, mat.ndim))
    is_some: Any = (mat != 0).any(dense) if dense else mat != 0
    if nse is None:
        counts = is_some.sum(tuple(range(n_batch, is_some.ndim)))
        nse = int(static_value(
            counts.max(initial=0), "The error arose in argument 'nse' of BCOO.fromdense: "
            "name it, to make it known while tracing."))
    sparse = is_some.shape[n_batch:]

    def places(mask: Any) -> Any:
        if not sparse:
            return jnp.where(mask, 0, 1)[None, None].astype(index_dtype)[:nse, :0]
        coordinates = jnp.nonzero(mask, size=nse, fill_value=sparse)
        return jnp.stack([x.astype(index_dtype) for x in coordinates], -1)
    for _ in range(n_batch):
        places = vmap(places)
    aux = {"shape": mat.shape, "indices_sorted": True, "unique_indices": True}
    new = BCOO.tree_unflatten(aux, (None, places(is_some)))
    new.data = of_each_batch(new, elements_at, mat)
    return new


def bcoo_todense(mat: BCOO) -> core.Array:
    """The dense array of a sparse one."""
    shape = mat.shape[mat.n_batch:]

    def dense(indices: Any, data: Any) -> Any:
        if not mat.n_sparse:
            return data.sum(0)
        out = jnp.zeros(shape, data.dtype)
        return out.at[columns(indices)].add(data, mode="drop")
    return of_each_batch(mat, dense, mat.data)


def columns(indices: Any) -> tuple:
    """The indices along each axis."""
    return tuple(indices[..., k] for k in range(indices.shape[-1]))


def elements_at(indices: Any, arr: Any) -> Any:
    """The elements of a dense array at the indices; zeros at those that are padding."""
    if not indices.shape[-1]:
        return jnp.broadcast_to(arr, (indices.shape[0], *arr.shape))
    return arr.at[columns(indices)].get(mode="fill", fill_value=0)


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array where a sparse one stores its own.

    Args:
      assume_unique: that no index is repeated; of others all but the first would count twice, and
        are zero.
    """
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(f"bcoo_extract requires arr.shape == sparr.shape; got {arr.shape} and "
                         f"{sparr.shape}")
    data = of_each_batch(sparr, elements_at, arr)
    if not (sparr.unique_indices if assume_unique is None else assume_unique):
        def first(indices: Any, data: Any) -> Any:
            same = (indices[:, None] == indices[None]).all(-1)
            repeated = jnp.tril(same, -1).any(-1)
            return jnp.where(jnp.expand_dims(repeated, range(1, data.ndim)), 0, data)
        data = of_each_batch(sparr, first, data)
    return with_data(sparr, data)


def todense(arr: Any) -> Any:
    """A dense array, of a sparse or a dense one."""
    return bcoo_todense(arr) if isinstance(arr, BCOO) else arr


# ── Making arrays ────────────────────────────────────────────────────────────────────────────

def empty(shape: Sequence[int], dtype: Any = None, index_dtype: Any = "int32",
          sparse_format: str = "bcoo", **kwds: Any) -> BCOO:
    """A sparse array without elements.

    Args:
      kwds: `nse`, `n_batch`, `n_dense`.

    >>> empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    _check_format(sparse_format)
    nse, n_batch, n_dense = (kwds.get(name, 0) for name in ("nse", "n_batch", "n_dense"))
    shape = tuple(shape)
    n_sparse = len(shape) - n_batch - n_dense
    if n_sparse < 0 or n_batch < 0 or n_dense < 0:
        raise ValueError(f"Invalid inputs: {shape=}, {n_batch=}, {n_dense=}")
    sparse = jnp.array(shape[n_batch:n_batch + n_sparse], index_dtype)
    indices = jnp.broadcast_to(sparse, (*shape[:n_batch], nse, n_sparse))
    data = jnp.zeros((*shape[:n_batch], nse, *shape[n_batch + n_sparse:]), dtype)
    return BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=True)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, index_dtype: Any = "int32",
        sparse_format: str = "bcoo", **kwds: Any) -> BCOO:
    """A sparse matrix with ones on a diagonal.

    >>> eye(2, dtype="int32").todense().tolist()
    [[1, 0], [0, 1]]
    """
    _check_format(sparse_format)
    columns_of = N if M is None else M
    count = max(0, min(N + min(k, 0), columns_of - max(k, 0)))
    place = jnp.arange(count, dtype=index_dtype)
    indices = jnp.stack([place - min(k, 0), place + max(k, 0)], -1)
    mat = BCOO((jnp.ones(count, dtype), indices), shape=(N, columns_of), indices_sorted=True,
               unique_indices=True)
    if kwds.get("n_batch", 0) or kwds.get("n_dense", 0):
        return bcoo_fromdense(bcoo_todense(mat), index_dtype=index_dtype, **kwds)
    return mat


def _check_format(sparse_format: str) -> None:
    if sparse_format != "bcoo":
        raise ValueError(f"sparse_format={sparse_format!r} not recognized; must be 'bcoo', the one "
                         "format of minijax")


def random_bcoo(key: Any, shape: Sequence[int], *, dtype: Any = np.float32,
                indices_dtype: Any = None, nse: float = 0.2, n_batch: int = 0, n_dense: int = 0,
                unique_indices: bool = True, sorted_indices: bool = False,
                generator: Callable[..., Any] = random.uniform, **kwds: Any) -> BCOO:
    """A sparse array of random numbers at random places.

    Args:
      nse: how many to store of each part of the batch, or which part of all, below 1.
      generator: takes a key, a shape and a dtype, and `kwds`.

    >>> random_bcoo(random.key(0), (4, 5), nse=3)
    BCOO(float32[4, 5], nse=3)
    """
    shape = canonical_shape(tuple(shape))
    batch, dense = shape[:n_batch], shape[len(shape) - n_dense:]
    sparse = shape[n_batch:len(shape) - n_dense]
    total = math.prod(sparse)
    if not 0 <= nse < total:
        raise ValueError(f"got {nse=}, expected to be between 0 and {total}")
    count = math.ceil(nse * total) if 0 < nse < 1 else operator.index(nse)  # type: ignore[arg-type]
    keys = random.split(key, math.prod(batch) + 1)
    dtype_of = indices_dtype or dtypes.default_int_dtype()

    def places(key: Any) -> Any:
        flat = random.choice(key, total, (count,), replace=not unique_indices).astype(dtype_of)
        coordinates = jnp.unravel_index(flat, sparse) if sparse else ()
        return jnp.stack(coordinates, -1) if coordinates else jnp.zeros((count, 0), dtype_of)
    indices = vmap(places)(keys[1:]).reshape((*batch, count, len(sparse)))
    data = generator(keys[0], shape=(*batch, count, *dense), dtype=dtype, **kwds)
    mat = BCOO((data, indices), shape=shape, unique_indices=unique_indices)
    return bcoo_sort_indices(mat) if sorted_indices else mat


# ── The order of what is stored ──────────────────────────────────────────────────────────────

def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The same array with its indices in lexicographic order."""
    def in_order(indices: Any, data: Any) -> tuple:
        if not mat.n_sparse:
            return data, indices
        order = jnp.lexsort(columns(indices)[::-1])
        return data[order], indices[order]
    return BCOO(of_each_batch(mat, in_order, mat.data), shape=mat.shape, indices_sorted=True,
                unique_indices=mat.unique_indices)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
    """The same array, with one element where an index was repeated, in order.

    Args:
      nse: how many elements to store; by default as many as there are, which must be concrete.
      remove_zeros: whether to leave out elements that are zero.

    Raises:
      ValueError: when indices are traced and `nse` is not given.
    """
    sparse = mat.shape[mat.n_batch:mat.n_batch + mat.n_sparse]

    def padded(indices: Any, data: Any) -> tuple:
        out = (indices >= jnp.array(sparse, indices.dtype)).any(-1)
        if remove_zeros:
            out = out | (data == 0).all(tuple(range(1, data.ndim)))
        return (jnp.where(jnp.expand_dims(out, range(1, data.ndim)), 0, data),
                jnp.where(out[:, None], jnp.array(sparse, indices.dtype), indices))
    whole = like(mat, of_each_batch(mat, padded, mat.data), mat.shape)
    if nse is None:
        nse = _count_distinct(whole, sparse)

    def summed(indices: Any, data: Any) -> tuple:
        if not sparse:
            return data.sum(0, keepdims=True)[:nse], indices[:1][:nse]
        rows, place = jnp.unique(indices, axis=0, return_inverse=True, size=nse,
                                 fill_value=jnp.array(sparse, indices.dtype))
        total = jnp.zeros((nse, *data.shape[1:]), data.dtype)
        return total.at[place.reshape(-1)].add(data, mode="drop"), rows
    return BCOO(of_each_batch(whole, summed, whole.data), shape=mat.shape, indices_sorted=True,
                unique_indices=True)


def _count_distinct(mat: BCOO, sparse: Shape) -> int:
    """The largest number of distinct indices in bounds in any part of the batch."""
    if isinstance(mat.indices, core.Tracer):
        raise ValueError("bcoo_sum_duplicates: nse must be specified when using the function "
                         "within jit, vmap, and other transformations requiring abstract "
                         "evaluation.")
    rows = np.asarray(mat.indices).reshape(-1, mat.nse, mat.n_sparse)
    if not sparse:
        return min(1, mat.nse)
    return max((len(np.unique(part[(part < sparse).all(-1)], axis=0)) for part in rows), default=0)


def bcoo_update_layout(mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
                       on_inefficient: str | None = "error") -> BCOO:
    """The same array with fewer batch or dense axes, which become sparse ones.

    Raises:
      NotImplementedError: for more of them: make the array of a dense one.
    """
    n_batch = mat.n_batch if n_batch is None else operator.index(n_batch)
    n_dense = mat.n_dense if n_dense is None else operator.index(n_dense)
    if min(n_batch, n_dense) < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(f"Invalid n_batch={n_batch}, n_dense={n_dense} for {mat.ndim} axes")
    if n_batch > mat.n_batch or n_dense > mat.n_dense:
        raise NotImplementedError("bcoo_update_layout to more batch or dense axes: call "
                                  "bcoo_fromdense(mat.todense(), n_batch=…, n_dense=…)")
    for _ in range(mat.n_dense - n_dense):
        mat = _dense_to_sparse(mat)
    for _ in range(mat.n_batch - n_batch):
        mat = _batch_to_sparse(mat)
    return mat


def _dense_to_sparse(mat: BCOO) -> BCOO:
    """The first dense axis becomes the last sparse one."""
    n, shape = mat.data.shape[mat.n_batch + 1], mat.indices.shape
    rows = jnp.broadcast_to(mat.indices[..., None, :], (*shape[:-1], n, mat.n_sparse))
    return _stored_side_by_side(mat, mat.data, rows, mat.n_batch, mat.n_batch + 1)


def _batch_to_sparse(mat: BCOO) -> BCOO:
    """The last batch axis becomes the first sparse one."""
    b = mat.n_batch - 1
    data, indices = (jnp.broadcast_to(x, (*x.shape[:b], mat.shape[b], *x.shape[b + 1:]))
                     for x in (mat.data, mat.indices))
    return _stored_side_by_side(mat, data, indices, b, b)


def _stored_side_by_side(mat: BCOO, data: Any, indices: Any, b: int, axis: int) -> BCOO:
    """Axes b and b + 1 of the buffers as one; that of them which was no element's is sparse."""
    place = lax.broadcasted_iota(indices.dtype, (*indices.shape[:-1], 1), axis)
    rows = jnp.concatenate([place, indices] if axis == b else [indices, place], -1)
    data, rows = (x.reshape((*x.shape[:b], x.shape[b] * x.shape[b + 1], *x.shape[b + 2:]))
                  for x in (data, rows))
    return like(mat, (data, rows), mat.shape, True, True)


# ── The arrangement of axes ──────────────────────────────────────────────────────────────────

def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The same array with its axes in another order, each kind of them among themselves.

    Raises:
      NotImplementedError: where axes of different kinds change places.
    """
    order = tuple(d % mat.ndim for d in map(operator.index, permutation))
    if sorted(order) != list(range(mat.ndim)):
        raise ValueError(f"transpose permutation isn't a permutation of operand dimensions, got "
                         f"permutation {order} for shape {mat.shape}.")
    b, s = mat.n_batch, mat.n_sparse
    batch, sparse, dense = order[:b], order[b:b + s], order[b + s:]
    kinds = {"batch": (batch, 0), "sparse": (sparse, b), "dense": (dense, b + s)}
    for name, (axes, start) in kinds.items():
        if sorted(axes) != list(range(start, start + len(axes))):
            raise NotImplementedError(f"transposition permutation includes permutation of {name} "
                                      f"dimensions with others: {order} for {mat!r}; call "
                                      "update_layout(n_batch=0, n_dense=0) first")
    indices = mat.indices.transpose((*batch, b, b + 1))[..., np.array(sparse, int) - b]
    data = mat.data.transpose((*batch, b, *(d - s + 1 for d in dense)))
    shape = tuple(mat.shape[d] for d in order)
    return like(mat, (data, indices), shape, sparse == tuple(range(b, b + s)), True)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sums along some axes, as a sparse array."""
    along = sorted({operator.index(d) % mat.ndim for d in axes})
    shape = without(mat.shape, along)
    b, s = mat.n_batch, mat.n_sparse
    data = mat.data.sum(tuple(d - s + 1 for d in along if d >= b + s)) if mat.n_dense else mat.data
    indices = mat.indices[..., without(range(s), [d - b for d in along])]
    batch = [d for d in along if d < b]
    if not batch:
        return like(mat, (data, indices), shape)
    # what is summed over the batch is stored side by side
    wide = [with_batch(x, mat.shape[:b]) for x in (data, indices)]
    kept, count = without(range(b), batch), math.prod(mat.shape[d] for d in batch)
    buffers = [x.transpose((*kept, *batch, *range(b, x.ndim))).reshape(
        (*(mat.shape[d] for d in kept), count * mat.nse, *x.shape[b + 1:])) for x in wide]
    return like(mat, (buffers[0], buffers[1]), shape)


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None
                 ) -> BCOO:
    """The same elements in another shape, with the same batch axes.

    Raises:
      NotImplementedError: for dense axes, other batch axes, and more than 2**31 - 1 elements.
    """
    b, sizes = mat.n_batch, tuple(map(operator.index, new_sizes))
    if dimensions is not None and tuple(dimensions) != tuple(range(mat.ndim)):
        return bcoo_reshape(bcoo_transpose(mat, permutation=dimensions), new_sizes=sizes)
    if math.prod(sizes) != mat.size:
        raise ValueError(f"cannot reshape array of shape {mat.shape} (size {mat.size}) into shape "
                         f"{sizes} (size {math.prod(sizes)})")
    if mat.n_dense or sizes[:b] != mat.shape[:b] or math.prod(sizes[b:]) >= 2 ** 31:
        raise NotImplementedError(f"reshape of {mat!r} to {sizes}: batch and dense axes must stay "
                                  "as they are; call update_layout(n_batch=0, n_dense=0) first")
    flat, is_out = flat_indices(mat)
    parts = jnp.unravel_index(flat, sizes[b:]) if sizes[b:] else ()
    new = [jnp.where(is_out, n, x).astype(mat.indices.dtype)
           for x, n in zip(parts, sizes[b:], strict=True)]
    indices = jnp.stack(new, -1) if new else mat.indices[..., :0]
    return like(mat, (mat.data, indices), sizes, True, True)


def flat_indices(mat: BCOO) -> tuple[Any, Any]:
    """The row-major number of each index among the sparse axes, and whether it is padding."""
    sparse = mat.shape[mat.n_batch:mat.n_batch + mat.n_sparse]
    is_out = (mat.indices >= jnp.array(sparse, mat.indices.dtype)).any(-1)
    flat = jnp.zeros(mat.indices.shape[:-1], np.int32)
    for k, n in enumerate(sparse):
        flat = flat * n + mat.indices[..., k].astype(np.int32)
    return jnp.where(is_out, math.prod(sparse), flat), is_out


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The same array without axes of size one."""
    along = tuple(sorted({operator.index(d) % arr.ndim for d in dimensions}))
    shape = squeezed_shape(arr, along)
    b, s = arr.n_batch, arr.n_sparse
    batch = [d for d in along if d < b]
    columns_kept = without(range(s), [d - b for d in along])
    data = jnp.squeeze(arr.data, (*batch, *(d - s + 1 for d in along if d >= b + s)))
    # where an index is out of bounds along a removed axis, so are then the others
    sparse = jnp.array(arr.shape[b:b + s], arr.indices.dtype)
    rows = jnp.where((arr.indices >= sparse).any(-1, keepdims=True), sparse, arr.indices)
    indices = jnp.squeeze(rows[..., columns_kept], tuple(batch))
    return like(arr, (data, indices), shape, True, True)


def bcoo_slice(mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int],
               strides: Sequence[int] | None = None) -> BCOO:
    """A part of the array; elements outside of it become padding."""
    b, s = mat.n_batch, mat.n_sparse
    steps = tuple(strides) if strides is not None else (1,) * mat.ndim
    cuts = list(zip(start_indices, limit_indices, steps, strict=True))
    shape = tuple(max(0, -(-(stop - start) // step)) for start, stop, step in cuts)
    slices = [slice(*cut) for cut in cuts]
    batch = [[cut if n != 1 else slice(None) for cut, n in zip(slices, x.shape[:b], strict=False)]
             for x in (mat.data, mat.indices)]
    data = mat.data[(*batch[0], slice(None), *slices[b + s:])]
    indices, rows = mat.indices[tuple(batch[1])], []
    is_out: Any = False
    for k, (start, stop, step) in enumerate(cuts[b:b + s]):
        x = indices[..., k]
        is_out = is_out | (x < start) | (x >= stop) | ((x - start) % step != 0)
        rows.append((x - start) // step)
    if rows:
        indices = jnp.stack([jnp.where(is_out, n, x).astype(indices.dtype)
                             for x, n in zip(rows, shape[b:b + s], strict=True)], -1)
        data = jnp.where(jnp.expand_dims(is_out, range(b + 1, data.ndim)), 0, data)
    out = like(mat, (data, indices), shape, False, True)
    most = math.prod(shape[b:b + s])
    return bcoo_sum_duplicates(out, nse=most, remove_zeros=False) if most < mat.nse else out


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array with some axes reversed."""
    b, s = operand.n_batch, operand.n_sparse
    batch = [d for d in dimensions if d < b]
    dense = [d - s + 1 for d in dimensions if d >= b + s]
    data = lax.rev(operand.data, (*(d for d in batch if operand.data.shape[d] > 1), *dense))
    indices = lax.rev(operand.indices, [d for d in batch if operand.indices.shape[d] > 1])
    for d in dimensions:
        if b <= d < b + s:
            x, n = indices[..., d - b], operand.shape[d]
            indices = indices.at[..., d - b].set(jnp.where(x < n, n - 1 - x, n))
    return like(operand, (data, indices), operand.shape, False, True)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Sparse arrays joined along a sparse axis.

    Raises:
      NotImplementedError: for another axis, or arrays of different kinds of axes.
    """
    operands, first = list(operands), operands[0]
    b, s = first.n_batch, first.n_sparse
    dimension = operator.index(dimension) % first.ndim
    if {(x.n_batch, x.n_sparse) for x in operands} != {(b, s)} or not b <= dimension < b + s:
        raise NotImplementedError("Concatenation of batched matrices along batch or dense axes, or "
                                  "of different layouts; call update_layout(n_batch=0, n_dense=0)")
    starts = np.cumsum([0, *(x.shape[dimension] for x in operands)])
    if len({without(x.shape, [dimension]) for x in operands}) > 1:
        raise ValueError("Cannot concatenate arrays with shapes that differ in dimensions other "
                         f"than the one being concatenated: {[x.shape for x in operands]}")
    shape = (*first.shape[:dimension], int(starts[-1]), *first.shape[dimension + 1:])
    rows = []
    for x, start in zip(operands, starts[:-1], strict=True):
        place = x.indices[..., dimension - b]
        moved = jnp.where(place < x.shape[dimension], place + int(start), shape[dimension])
        rows.append(x.indices.at[..., dimension - b].set(moved))
    buffers = joined(([x.data for x in operands], rows), shape[:b])
    return BCOO(buffers, shape=shape, unique_indices=all(x.unique_indices for x in operands))


def joined(buffers: tuple[Sequence, Sequence], batch: Shape) -> tuple[Any, Any]:
    """The data and indices of several arrays side by side."""
    data, indices = (jnp.concatenate([with_batch(x, batch) for x in some], len(batch))
                     for some in buffers)
    return data, indices


# ── Under vmap: batch axes are mapped ────────────────────────────────────────────────────────

def _example(part: Callable, _: Any, value: BCOO, axis: int | None) -> BCOO:
    if axis is None:
        return value
    if not 0 <= axis < value.n_batch:
        raise ValueError(f"Cannot map in_axis={axis} for BCOO array with n_batch={value.n_batch}. "
                         "in_axes for batched BCOO operations must correspond to a batched "
                         "dimension.")
    aux = value.tree_flatten()[1] | {"shape": without(value.shape, [axis])}
    return BCOO.tree_unflatten(aux, (part(value.data, axis), part(value.indices, axis)))


def _batched(joined: Callable, size: int, example: BCOO, axis: int | None) -> BCOO:
    if axis is None:
        return example
    if not 0 <= axis <= example.n_batch:
        raise ValueError(f"BCOO: cannot add out_axis={axis} for BCOO array with "
                         f"n_batch={example.n_batch}. BCOO batch axes must be a contiguous block "
                         "of leading dimensions.")
    data, indices = (joined(size, x, axis) for x in (example.data, example.indices))
    aux = example.tree_flatten()[1] | {"shape": with_item(example.shape, axis, size)}
    return BCOO.tree_unflatten(aux, (data, indices))


register_vmappable(BCOO, int, int, _example, _batched, None)
