"""`sparsify`: functions of `jax.numpy` applied to sparse arrays, operation by operation.

Builds on `bcoo`, `products`.  In JAX: `jax/experimental/sparse/transform.py`.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import core, numpy as jnp, tree_util
from minijax.custom.remat import eval_jaxpr_with
from minijax.core.jaxpr import JaxprEqn, subjaxprs
from minijax.experimental.sparse import bcoo, products
from minijax.experimental.sparse.bcoo import BCOO, JAXSparse, like, with_data
from minijax.primitives.ad_util import batch_elementwise
from minijax.transforms.api import make_jaxpr
from minijax.transforms.stages import ShapeDtypeStruct


def sparsify(f: Callable, use_tracer: bool = False) -> Callable:
    """The function, also of sparse arrays: each operation keeps what it can sparse.

    Args:
      f: of trees of arrays.
      use_tracer: accepted for JAX's sake.

    Raises:
      NotImplementedError: where an operation has no rule for sparse arrays, or its result would be
        dense: call `todense` on the argument.

    >>> x = BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))
    >>> sparsify(lambda x: jnp.sin(x.T) * 2)(x)
    BCOO(float32[2, 2], nse=2)
    """
    @functools.wraps(f)
    def of_sparse(*args: Any, **params: Any) -> Any:
        leaves, tree = tree_util.tree_flatten(args, _is_sparse)
        values = [_alone(x) if _is_sparse(x) else core.as_value(x) for x in leaves]
        types = [ShapeDtypeStruct(x.shape, x.dtype, weak_type=getattr(x, "weak_type", False))
                 for x in values]

        def flat(*leaves: Any) -> Any:
            return f(*tree_util.tree_unflatten(tree, leaves), **params)
        closed, shape = make_jaxpr(flat, return_shape=True)(*types)
        outs = eval_jaxpr_with(_evaluate, closed, values)
        return tree_util.tree_unflatten(tree_util.tree_structure(shape), outs)
    return of_sparse


def _alone(mat: BCOO) -> BCOO:
    """The same, known to share its indices with what the function makes of it alone."""
    return like(mat, (mat.data, core.alias(mat.indices)), mat.shape, True, True)


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def _evaluate(eqn: JaxprEqn, values: list) -> list[Any]:
    """The results of one operation, whose operands may be sparse."""
    p, params = eqn.primitive, eqn.params
    if not any(map(_is_sparse, values)):
        return p.bind_list(*values, **params)
    if p.name in _CALLS:
        [inner] = subjaxprs(params)
        return eval_jaxpr_with(_evaluate, inner, values)
    if p.name in _RULES:
        return [_RULES[p.name](*values, **params)]
    if getattr(p.batch, "__func__", None) is not batch_elementwise.rule:
        raise NotImplementedError(f"sparse rule for {p.name} is not implemented.")
    return [_elementwise(p, values, params)]


_CALLS = ("jit", "custom_jvp_call", "custom_vjp_call", "checkpoint")


def _elementwise(p: core.Primitive, values: list, params: dict) -> Any:
    """An operation of one sparse array, and of scalars, that keeps zeros."""
    [sparse, *more] = filter(_is_sparse, values)
    scalars = [x for x in values if not _is_sparse(x)]
    keeps = not more and all(x.ndim == 0 and isinstance(x, core.ArrayImpl) for x in scalars)
    if keeps:
        zero = np.zeros((), sparse.dtype)
        [out] = p.bind_list(*(zero if _is_sparse(x) else x for x in values), **params)
        keeps = out.dtype != bool and bool(out == 0)
    if not keeps:
        raise NotImplementedError(f"sparse rule for {p.name} is not implemented because it would "
                                  "result in dense output. If this is your intent, use "
                                  "sparse.todense() to convert your arguments to dense matrices.")
    mat = sparse if sparse.unique_indices or not p.may_produce_nan and p.name in _LINEAR else (
        bcoo.bcoo_sum_duplicates(sparse, nse=sparse.nse, remove_zeros=False))
    [data] = p.bind_list(*(mat.data if _is_sparse(x) else x for x in values), **params)
    return with_data(mat, data)


_LINEAR = ("neg", "copy", "real")  # of repeated elements as of their sum


# ── The rules ────────────────────────────────────────────────────────────────────────────────

def _convert(x: BCOO, *, new_dtype: Any, weak_type: bool) -> BCOO:
    return with_data(x, x.data.astype(new_dtype))


def _add(x: Any, y: Any) -> Any:
    if not (_is_sparse(x) and _is_sparse(y)):
        sparse, dense = (x, y) if _is_sparse(x) else (y, x)
        if dense.shape != sparse.shape:
            raise NotImplementedError(
                "Addition between a sparse array X and a dense array Y is not implemented when the "
                "output shape is larger than Y.shape. This is to prevent silent densification of a "
                "large sparse array. If this is your intent, you can explicitly cast the sparse "
                "array to a dense matrix.")
        return sparse.todense() + dense
    core.refuse((x.shape != y.shape, "Addition between sparse matrices of different shapes."),
                ((x.n_batch, x.n_dense) != (y.n_batch, y.n_dense), "Addition between sparse "
                 "matrices with different batch/dense dimensions."), error=NotImplementedError)
    if x.indices is y.indices:
        return with_data(x, x.data + y.data)
    buffers = bcoo.joined(([x.data, y.data], [x.indices, y.indices]), x.shape[:x.n_batch])
    return BCOO(buffers, shape=x.shape)


def _sub(x: Any, y: Any) -> Any:
    if not (_is_sparse(x) and _is_sparse(y)):
        raise NotImplementedError("Subtraction between sparse and dense array.")
    return _add(x, with_data(y, -y.data))


def _mul(x: Any, y: Any) -> Any:
    if _is_sparse(x) and _is_sparse(y):
        if x.indices is y.indices and x.unique_indices:
            return with_data(x, x.data * y.data)
        return products.bcoo_multiply_sparse(x, y)
    sparse, dense = (x, y) if _is_sparse(x) else (y, x)
    return with_data(sparse, products.bcoo_multiply_dense(sparse, dense))


def _div(x: Any, y: Any) -> Any:
    if _is_sparse(y):
        raise NotImplementedError("Division by a sparse array is not implemented because it would "
                                  "result in dense output. If this is your intent, use "
                                  "sparse.todense() to convert your arguments to a dense array.")
    return _mul(x, 1 / y)


def _reduce_sum(x: BCOO, *, axes: Sequence[int]) -> Any:
    """Sums over all axes are dense, as are those that leave only dense ones."""
    out = bcoo.bcoo_reduce_sum(x, axes=axes)
    return out if out.ndim else bcoo.bcoo_todense(out)


def _concatenate(*operands: Any, dimension: int) -> BCOO:
    if not all(map(_is_sparse, operands)):
        raise NotImplementedError("Concatenation of sparse and dense arrays is not implemented; "
                                  "make the dense ones sparse by BCOO.fromdense")
    return bcoo.bcoo_concatenate(operands, dimension=dimension)


def bcoo_broadcast_in_dim(mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int],
                          sharding: Any = None) -> BCOO:
    """The sparse array, repeated along new axes and along those of size one.

    Axes that are added in front are batch axes.  Others that are added or repeated are sparse ones,
    as then are those of the batch.
    """
    shape, kept = tuple(map(operator.index, shape)), tuple(broadcast_dimensions)
    if first := min(kept, default=0):
        part = bcoo_broadcast_in_dim(mat, shape=shape[first:],
                                     broadcast_dimensions=[d - first for d in kept])
        data = jnp.broadcast_to(part.data, (*shape[:first], *part.data.shape))
        return like(part, (data, part.indices[(None,) * first]), shape, True, True)
    if mat.shape == shape:
        return mat
    mat = bcoo.bcoo_update_layout(mat, n_batch=0, n_dense=0)
    grown = [d for d, n in enumerate(shape) if d not in kept or mat.shape[kept.index(d)] != n]
    count = int(np.prod([shape[d] for d in grown], dtype=int))
    steps = np.indices([shape[d] for d in grown]).reshape(len(grown), count)
    inside = (mat.indices < jnp.array(mat.shape, mat.indices.dtype)).all(-1)
    rows = []
    for d, n in enumerate(shape):
        row = (jnp.asarray(steps[grown.index(d)], mat.indices.dtype)[None] if d in grown else
               mat.indices[:, kept.index(d), None])
        rows.append(jnp.where(inside[:, None], jnp.broadcast_to(row, (mat.nse, count)), n))
    indices = jnp.stack(rows, -1).reshape(mat.nse * count, len(shape))
    return like(mat, (jnp.repeat(mat.data, count), indices), shape, keeps_unique=True)


# The operations of primitives on sparse arrays, by their names.
_RULES: dict[str, Callable[..., Any]] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "convert_element_type": _convert,
    "transpose": bcoo.bcoo_transpose, "reshape": bcoo.bcoo_reshape, "squeeze": bcoo.bcoo_squeeze,
    "slice": bcoo.bcoo_slice, "rev": bcoo.bcoo_rev, "concatenate": _concatenate,
    "broadcast_in_dim": bcoo_broadcast_in_dim, "reduce_sum": _reduce_sum,
    "dot_general": products.bcoo_dot_general}


# ── The operators and methods of BCOO ────────────────────────────────────────────────────────

def _swapped(f: Callable) -> Callable:
    return lambda x, y: f(y, x)


def _method_of_arrays(name: str, doc: str) -> Callable:
    """A method of arrays whose further arguments are no arrays."""
    def method(self: BCOO, *args: Any, **named: Any) -> Any:
        return sparsify(lambda x: getattr(x, name)(*args, **named))(self)
    method.__doc__ = doc
    return method


_ALONE: dict[str, Callable] = {"abs": jnp.abs, "neg": jnp.negative, "pos": jnp.positive,
                               "gt": jnp.greater, "ge": jnp.greater_equal, "lt": jnp.less,
                               "le": jnp.less_equal, "eq": jnp.equal, "ne": jnp.not_equal}
_EITHER_SIDE: dict[str, Callable] = {"matmul": jnp.matmul, "mul": jnp.multiply, "add": jnp.add,
                                     "truediv": jnp.divide, "sub": jnp.subtract}
_METHODS: dict[str, Callable] = {
    **{name: _method_of_arrays(name, doc) for name, doc in {
        "sum": "The sum, or the sums along axes, as those of `jax.numpy`.",
        "reshape": "The same elements in another shape.",
        "astype": "The same with its elements converted.",
        "__getitem__": "`x[index]`, for integers, slices, None and Ellipsis.",
        "__pow__": "`x ** n`, for a number."}.items()},
    **{name: getattr(bcoo, f"bcoo_{name}")
       for name in ("sort_indices", "sum_duplicates", "todense", "update_layout")},
    "__iter__": lambda self: iter([self[i] for i in range(self.shape[0])]),
    **{f"__{name}__": sparsify(f) for name, f in {**_ALONE, **_EITHER_SIDE}.items()},
    **{f"__r{name}__": sparsify(_swapped(f)) for name, f in _EITHER_SIDE.items()}}
for _name, _method in _METHODS.items():
    setattr(BCOO, _name, _method)
