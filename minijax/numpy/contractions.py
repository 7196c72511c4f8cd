"""Products of matrices and vectors, and tensor contractions: matmul, einsum, ….

Builds on `arguments` and `lax.dot_general`.  Chapters 20, *Precision*, and 23, *An array is a
function of an index*.  In JAX: `jax/_src/numpy/tensor_contractions.py`, `einsum.py`; there
`opt_einsum` chooses the order.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.util import caches
from minijax import dtypes, lax
from minijax.core import Array, refuse
from minijax.numpy import reductions, unary
from minijax.numpy.arguments import (Alike, ArrayLike, as_arrays, canonical_axis, check_axis_index,
                                     check_loop_ranks, check_promotion, choose, convert,
                                     diagonal_offset, indices_along, like, public, result_dtype)
from minijax.numpy.shaping import moveaxis, ravel

Labels = Sequence[Any]  # a letter for each axis, or a number


# ── Two labelled arrays ──────────────────────────────────────────────────────────────────────

def _result_type(preferred_element_type: Any, *operands: Any) -> tuple[Any, bool]:
    """The dtype of a product, and its weak type: those of the operands if none is preferred."""
    if preferred_element_type is None:
        return result_dtype(*operands)
    return dtypes.check_user_dtype_supported(preferred_element_type, "dot"), False


def _sum_of_products(x: Any, y: Any, axes: Any, precision: Any, preferred_element_type: Any) -> Any:
    """`lax.dot_general` over pairs of axes, with the dtype and weak type of its operands."""
    dtype, weak_type = _result_type(preferred_element_type, x, y)
    return convert(lax.dot_general(x, y, (axes, ([], [])), precision, dtype), dtype, weak_type)


def _contract_pair(x: Any, x_labels: Labels, y: Any, y_labels: Labels, result: Labels,
                   dtype: Any, precision: Any, product: Callable[..., Any]) -> Any:
    """The product of two arrays, summed over the labels of both that the result lacks."""
    shared = {*x_labels} & {*y_labels}
    groups = sorted(shared.difference(result)), [label for label in result if label in shared]
    x_axes, y_axes = ([[labels.index(label) for label in group] for group in groups]
                      for labels in (x_labels, y_labels))
    out = product(x, y, tuple(zip(x_axes, y_axes, strict=True)), precision,
                  preferred_element_type=dtype)
    return _in_order(out, _labels_of_product(x_labels, y_labels, result), result)


def _labels_of_product(x_labels: Labels, y_labels: Labels, result: Labels) -> list:
    """The labels of a product before it has the order of the result: first those of both arrays."""
    shared = {*x_labels} & {*y_labels}
    return [*(label for label in result if label in shared),
            *(label for label in (*x_labels, *y_labels) if label not in shared)]


def _in_order(x: Any, labels: Labels, result: Labels) -> Any:
    """The array with the axes of the result; those that it lacks have size one."""
    x = lax.transpose(x, [labels.index(label) for label in result if label in labels])
    new = [d for d, label in enumerate(result) if label not in labels]
    return lax.expand_dims(x, new) if new else x


def _squeeze(x: Any, labels: Labels, ones: Sequence[int]) -> tuple[Any, list]:
    """Drop some axes of size one."""
    return lax.squeeze(x, ones), [label for d, label in enumerate(labels) if d not in ones]


def _sum_unneeded(x: Any, labels: Labels, needed: set, dtype: Any) -> tuple[Any, list]:
    """Sum over the axes whose labels are not needed, in a dtype."""
    axes = tuple(d for d, label in enumerate(labels) if label not in needed)
    return (_sum(x, axes, dtype) if axes else x), [label for label in labels if label in needed]


def _sum(x: Any, axes: tuple[int, ...], dtype: Any) -> Any:
    """The sum in a dtype, unless that of `x` is wider; of bools, their disjunction."""
    x = x if dtypes.promote_types(x.dtype, dtype) == x.dtype else convert(x, dtype)
    return (lax.reduce_or if x.dtype == bool else lax.reduce_sum)(x, axes)


# ── Products ─────────────────────────────────────────────────────────────────────────────────────

def dot(a: ArrayLike, b: ArrayLike, *, precision: Any = None,
        preferred_element_type: Any = None) -> Array:
    """The last axis of `a` against the last but one of `b`; with a scalar, the product.

    >>> dot(np.array([1, 2]), np.array([3, 4]))
    Array(11, dtype=int32)

    Raises:
      TypeError: where the sizes differ.
    """
    axes: Any = ([a.ndim - 1], [max(b.ndim - 2, 0)]) if a.ndim and b.ndim else ([], [])
    return _sum_of_products(a, b, axes, precision, preferred_element_type)


def matmul(a: ArrayLike, b: ArrayLike, *, precision: Any = None,
           preferred_element_type: Any = None) -> Array:
    """The product of two matrices, of a matrix and a vector, or of stacks of these.

    >>> matmul(np.array([[1, 0], [1, 1]]), np.array([5, 7]))
    Array([ 5, 12], dtype=int32)

    Raises:
      ValueError: for scalars, and for stacks that do not broadcast.
      TypeError: where the inner sizes differ.
    """
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"matmul input operand {int(a.ndim > 0)} must have ndim at least 1, "
                         "but it has ndim 0")
    if a.ndim <= 2 and b.ndim <= 2:
        axes = [a.ndim - 1], [max(b.ndim - 2, 0)]
        return _sum_of_products(a, b, axes, precision, preferred_element_type)
    stacks = zip(a.shape[-3::-1], b.shape[-3::-1], strict=False)  # from the last axis on
    refuse((any(m != n and 1 not in (m, n) for m, n in stacks), "Incompatible types for matmul "
            f"arguments: {a.aval.str_short()} and {b.aval.str_short()}"), error=ValueError)
    return _product_of_stacks(a, "ij"[-a.ndim:], b, "jk"[:b.ndim], precision,
                              preferred_element_type)


def _check_core(signature: str, name: str, first: int, second: int) -> None:
    refuse((first != second, f"inconsistent size for core dimension '{name}': {second} vs {first} "
            f"on vectorized function with excluded=frozenset() and signature={signature!r}"),
           error=ValueError)


def _product_of_stacks(a: Any, a_axes: str, b: Any, b_axes: str, precision: Any = None,
                       preferred_element_type: Any = None) -> Array:
    """The products of the matrices, or vectors, in two stacks, summed over the axis `j`."""
    ranks = a.ndim - len(a_axes), b.ndim - len(b_axes)
    left, right = (_squeeze(x, [*range(-n, 0), *axes], [  # ones of axes that both stacks have
        d for d in range(n - min(ranks), n) if x.shape[d] == 1])
        for x, axes, n in zip((a, b), (a_axes, b_axes), ranks, strict=True))
    stack = lax.broadcast_shapes(a.shape[:ranks[0]], b.shape[:ranks[1]])
    result = [*range(-len(stack), 0), *(a_axes + b_axes).replace("j", "")]
    dtype, weak_type = _result_type(preferred_element_type, a, b)
    product = _contract_pair(*left, *right, result, dtype, precision, lax.dot_general)
    return convert(product, dtype, weak_type)


def vdot(a: ArrayLike, b: ArrayLike, *, precision: Any = None,
         preferred_element_type: Any = None) -> Array:
    """The product of two arrays taken as vectors; of complex ones, the first conjugated.

    >>> vdot(np.array([[1, 2]]), np.array([[3], [4]]))
    Array(11, dtype=int32)
    """
    return _sum_of_products(ravel(unary.conjugate(a)), ravel(b), ([0], [0]), precision,
                            preferred_element_type)


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None,
           preferred_element_type: Any = None) -> Array:
    """The products of the vectors along an axis of two arrays.

    >>> vecdot(np.array([[1, 2], [3, 4]]), np.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    check_axis_index(axis, ndim=np.ndim(x1))
    refuse((np.shape(x1)[axis] != np.shape(x2)[axis], "axes must match; got shapes "
            f"{np.shape(x1)} and {np.shape(x2)} with {axis=}"), error=ValueError)
    a, b = (moveaxis(x, axis, -1) for x in (x1, x2))
    check_loop_ranks("(n),(n)->()", (a.shape[:-1], b.shape[:-1]), (a, b))
    return _product_of_stacks(unary.conjugate(a), "j", b, "j", precision, preferred_element_type)


def inner(a: ArrayLike, b: ArrayLike, *, precision: Any = None,
          preferred_element_type: Any = None) -> Array:
    """The last axis of `a` against the last axis of `b`.

    >>> inner(np.array([1, 2]), np.array([3, 4]))
    Array(11, dtype=int32)
    """
    if a.ndim == 0 or b.ndim == 0:
        check_promotion(a, b)
        return a * b
    return _sum_of_products(a, b, ([a.ndim - 1], [b.ndim - 1]), precision, preferred_element_type)


def outer(a: Alike, b: Alike, out: None = None) -> Array:
    """All products of an element of `a` and one of `b`.

    >>> outer(np.array([1, 2]), np.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    return lax.expand_dims(ravel(a), (1,)) * lax.expand_dims(ravel(b), (0,))


def tensordot(a: ArrayLike, b: ArrayLike, axes: Any = 2, *, precision: Any = None,
              preferred_element_type: Any = None) -> Array:
    """The sum of products over some axes of `a` and as many of `b`.

    >>> tensordot(np.ones((2, 3)), np.ones((3, 4)), 1).shape
    (2, 4)

    Args:
      axes: how many of the last axes of `a` and the first of `b`; or the axes of `a` and of `b`.
    """
    if isinstance(axes, (tuple, list)) and len(axes) == 2:
        a_axes, b_axes = ([each] if isinstance(each, int) else each for each in axes)
        if not (isinstance(a_axes, list | tuple) and isinstance(b_axes, list | tuple)):
            raise TypeError("tensordot requires both axes lists to be either ints, tuples or "
                            f"lists, got {a_axes} and {b_axes}")
    elif isinstance(axes, int) and not isinstance(axes, bool):
        if axes > min(a.ndim, b.ndim):
            raise TypeError(f"Number of tensordot axes (axes {axes}) exceeds input ranks "
                            f"({a.shape} and {b.shape})")
        a_axes, b_axes = range(a.ndim - axes, a.ndim), range(axes)
    else:
        raise TypeError("tensordot axes argument must be an int, a pair of ints, or a pair of "
                        "lists/tuples of ints.")
    if len(a_axes) != len(b_axes):
        raise TypeError("tensordot requires axes lists to have equal length, "
                        f"got {a_axes} and {b_axes}.")
    dims = [[canonical_axis(d, x.ndim) for d in axes] for x, axes in ((a, a_axes), (b, b_axes))]
    return _sum_of_products(a, b, dims, precision, preferred_element_type)


def kron(a: Alike, b: Alike) -> Array:
    """The Kronecker product: `b` in the place of every element of `a`, multiplied by it.

    >>> kron(np.array([1, 10]), np.array([1, 2]))
    Array([ 1,  2, 10, 20], dtype=int32)
    """
    rank = max(a.ndim, b.ndim)
    a, b = lax.broadcast_to_rank(a, rank), lax.broadcast_to_rank(b, rank)
    product = lax.expand_dims(a, range(1, 2 * rank, 2)) * lax.expand_dims(b, range(0, 2 * rank, 2))
    return lax.reshape(product, [n * m for n, m in zip(a.shape, b.shape, strict=True)])


def cross(a: Alike, b: Alike, axisa: int = -1, axisb: int = -1, axisc: int = -1,
          axis: int | None = None) -> Array:
    """The cross product of vectors of three components, or of two.

    >>> cross(np.array([1, 0, 0]), np.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    xs, ys = ([*moveaxis(convert(x, x.dtype), vector_axis, 0)]
              for x, vector_axis in ((a, axisa), (b, axisb)))
    if len(xs) not in (2, 3) or len(ys) not in (2, 3):
        raise ValueError("Dimension must be either 2 or 3 for cross product")
    pairs = [(0, 1)] if len(xs) == len(ys) == 2 else [(1, 2), (2, 0), (0, 1)]
    xs, ys = ([*parts, like(0, parts[0])] for parts in (xs, ys))  # a missing third one is 0
    components = [xs[i] * ys[j] - xs[j] * ys[i] for i, j in pairs]
    return moveaxis(lax.stack(components), 0, axisc) if len(components) == 3 else components[0]


def trace(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None,
          out: None = None) -> Array:
    """The sum of the diagonal.

    >>> trace(np.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    if canonical_axis(axis1, a.ndim) == canonical_axis(axis2, a.ndim):
        raise ValueError(f"axis1 and axis2 can not be same. axis1={axis1} and axis2={axis2}")
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    i, j = indices_along(a.shape[-2:], 0, 1)
    masked = choose(i + diagonal_offset(offset) == j, a, convert(0, a.dtype))
    return reductions.sum(masked, axis=(-2, -1), dtype=dtype)


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of matrices with vectors, both in stacks.

    >>> matvec(np.array([[1, 0], [1, 1]]), np.array([5, 7]))
    Array([ 5, 12], dtype=int32)
    """
    check_loop_ranks("(n,m),(m)->(n)", (x1.shape[:-2], x2.shape[:-1]), (x1, x2))
    _check_core("(n,m),(m)->(n)", "m", x1.shape[-1], x2.shape[-1])
    return _product_of_stacks(x1, "ij", x2, "j")


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of conjugated vectors with matrices, both in stacks.

    >>> vecmat(np.array([1, 2]), np.array([[1, 0], [1, 1]]))
    Array([3, 2], dtype=int32)
    """
    check_loop_ranks("(n),(n,m)->(m)", (x1.shape[:-1], x2.shape[:-2]), (x1, x2))
    _check_core("(n),(n,m)->(m)", "n", x1.shape[-1], x2.shape[-2])
    return _product_of_stacks(unary.conjugate(x1), "j", x2, "jk")


# ── einsum ───────────────────────────────────────────────────────────────────────────────────

def einsum(subscripts: Any, /, *operands: ArrayLike, out: None = None, optimize: Any = "auto",
           precision: Any = None, preferred_element_type: Any = None,
           _dot_general: Callable[..., Array] = lax.dot_general) -> Array:
    """Sums of products: a letter for each axis, and a sum over each that the result lacks.

    Args:
      optimize: the contraction path: for each step the positions of its operands, whose product is
        appended to the others; False: from left to right; otherwise the order of least work.
      _dot_general: the product of two arrays, called like `lax.dot_general`.

    >>> x, y = np.ones((2, 3)), np.ones((3, 4))
    >>> einsum("ij,jk->ik", x, y).shape
    (2, 4)
    >>> einsum("ii->i", np.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)

    Raises:
      ValueError: where sizes of one letter differ, or the letters do not fit the arrays.
    """
    subscripts, operands = _as_subscripts(subscripts, operands)
    arrays = as_arrays("einsum", *operands)
    terms, result = _parse(subscripts, tuple(x.ndim for x in arrays))
    dtype, weak_type = _result_type(preferred_element_type, *arrays)
    sizes = _sizes(terms, [x.shape for x in arrays])
    remaining = []
    for x, term in zip(arrays, terms, strict=True):
        broadcast = [d for d, label in enumerate(term) if x.shape[d] != sizes[label]]
        remaining.append(_diagonal(*_squeeze(x, term, broadcast), dtype))
    shapes = [x.shape for x, _ in remaining]
    for step in _path(optimize, [labels for _, labels in remaining], shapes, result):
        (x, labels), *others = [remaining.pop(position) for position in sorted(step, reverse=True)]
        while others:
            (y, y_labels), *others = others
            rest = [*remaining, *others]
            needed = {*result}.union(*(labels for _, labels in rest))
            x, labels = _sum_unneeded(x, labels, {*needed, *y_labels}, dtype)
            y, y_labels = _sum_unneeded(y, y_labels, {*needed, *labels}, dtype)
            every = dict.fromkeys((*labels, *y_labels)) if rest else result
            order = [label for label in every if label in needed]
            # As in JAX the operands change places, unless the product would be transposed then.
            pair = y, y_labels, x, labels
            if _labels_of_product(y_labels, labels, order) != order:
                pair = x, labels, y, y_labels
            x, labels = _contract_pair(*pair, order, dtype, precision, _dot_general), order
        remaining.append((x, labels))
    x, labels = _sum_unneeded(*remaining[0], {*result}, dtype)
    return convert(_in_order(x, labels, result), dtype, weak_type)


def einsum_path(subscripts: Any, /, *operands: ArrayLike, optimize: Any = "auto"
                ) -> tuple[list[tuple[int, ...]], Any]:
    """The contraction path of `einsum`, pairs of operands, and a report of its cost.

    >>> einsum_path("ij,jk,k", np.ones((2, 3)), np.ones((3, 4)), np.ones(4))[0]
    [(1, 2), (0, 1)]
    """
    subscripts, operands = _as_subscripts(subscripts, operands)
    shapes = [np.shape(x) for x in operands]
    terms, result = _parse(subscripts, tuple(map(len, shapes)))
    _sizes(terms, shapes)  # raises if sizes differ
    path = [tuple(step) for step in _path(optimize, terms, shapes, result)]
    return path, _path_of_numpy(terms, shapes, result, ["einsum_path", *path])[1]


# The strategies of opt_einsum, which JAX uses; here NumPy's "greedy" and "optimal".
_GREEDY = ("greedy", "eager", "opportunistic")
_OPTIMAL = ("auto", "auto-hq", "optimal", "dp", "dynamic-programming", "branch-all", "branch-1",
            "branch-2", "random-greedy", "random-greedy-128")


Path = Sequence[Sequence[int]]  # the places of the operands of each product


def _path(optimize: Any, terms: Sequence[Labels], shapes: Sequence[tuple], result: Labels) -> Path:
    """The contraction path: the positions of the operands of each step."""
    optimize = "auto" if optimize is None else optimize
    if not isinstance(optimize, str | bool):
        if any(len(step) > 2 for step in optimize):
            raise NotImplementedError("jax.numpy.einsum does not support simultaneous contraction "
                                      "of 3 or more operands. Typically this means you've passed "
                                      "an unsupported path to the einsum optimize parameter.")
        count = len(terms) - sum(len(step) - 1 for step in optimize)
        if count != 1:
            raise ValueError(f"the steps {optimize} leave {count} arrays instead of one; "
                             "optimize=True finds steps.")
        return optimize
    if len(terms) < 3:
        return [tuple(range(len(terms)))]
    if optimize not in (True, False, *_GREEDY, *_OPTIMAL):
        raise KeyError(f"Path optimizer '{optimize}' not found, valid options are "
                       f"{ {*_GREEDY, *_OPTIMAL} }")
    if optimize is False or len(set().union(*terms)) > len(string.ascii_letters):
        return [(0, 1)] * (len(terms) - 1)
    return _optimal_path(tuple(map("".join, terms)), tuple(shapes), "".join(result),
                         optimize not in _GREEDY and len(terms) <= 5)


@caches.remembered(maxsize=256)
def _optimal_path(terms: tuple, shapes: tuple, result: str, is_optimal: bool) -> Path:
    """NumPy's contraction path; if `is_optimal`, the best of all."""
    search = "optimal" if is_optimal else "greedy"
    return tuple(_path_of_numpy(terms, shapes, result, (search, 1 << 60))[0][1:])


def _path_of_numpy(terms: Sequence[Labels], shapes: Sequence[tuple], result: Labels,
                   optimize: Any) -> tuple[list, str]:
    """`np.einsum_path` of an equation, with its labels replaced by ASCII letters."""
    text = f"{','.join(map(''.join, terms))}->{''.join(result)}"
    labels = sorted(set(text) - set(",->"))
    if not set(labels) <= set(string.ascii_letters):
        text = text.translate(dict(zip(map(ord, labels), string.ascii_letters, strict=False)))
    arrays = [np.broadcast_to(np.float32(0), shape) for shape in shapes]
    return np.einsum_path(text, *arrays, optimize=optimize)


def _diagonal(x: Any, labels: Labels, dtype: Any) -> tuple[Any, list]:
    """The elements at which axes of the same label have the same index."""
    remaining: list = []
    for label in labels:
        if label in remaining:
            i, j = indices_along(x.shape, remaining.index(label), len(remaining))
            x = _sum(lax.select(i == j, x, lax.full_like(x, 0)), (len(remaining),), dtype)
        else:
            remaining.append(label)
    return x, remaining


def _symbol(index: int) -> str:
    """The letter of a label; the first ones are those of the alphabet."""
    letters = string.ascii_letters
    return letters[index] if index < len(letters) else chr(140 + index)


def _as_subscripts(subscripts: Any, operands: tuple) -> tuple[str, tuple]:
    """The subscripts and the arrays of an equation, which may be ``x, [0, 1], y, [1, 2], [0, 2]``.

    Such labels become letters, in ascending order.
    """
    if isinstance(subscripts, str):
        return subscripts, operands
    interleaved, arrays_end = (subscripts, *operands), (len(operands) + 1) // 2 * 2
    lists, count = [*interleaved[1:arrays_end:2], *interleaved[arrays_end:]], arrays_end // 2
    try:
        labels = sorted({label for each in lists[:count] for label in each
                         if label is not Ellipsis})
    except TypeError:
        raise TypeError("For this input type lists must contain either Ellipsis or hashable and "
                        "comparable object (e.g. int, str).") from None
    symbols = {label: _symbol(i) for i, label in enumerate(labels)} | {Ellipsis: "..."}
    terms = ["".join(symbols[label] for label in each) for each in lists]
    return "->".join([",".join(terms[:count]), *terms[count:]]), interleaved[:arrays_end:2]


@caches.remembered(maxsize=256)
def _parse(subscripts: str, ranks: tuple[int, ...]) -> tuple[list[str], str]:
    """The letters of every operand and of the result, with new ones in place of "..."."""
    subscripts = subscripts.replace(" ", "")
    inputs, arrow, result = subscripts.partition("->")
    terms = inputs.split(",")
    refuse((not {"-", ">"}.isdisjoint(inputs + result), "Subscripts can only contain one '->'."),
           (len(terms) != len(ranks), f"Number of einsum subscripts, {len(terms)}, must be equal "
            f"to the number of operands, {len(ranks)}."), error=ValueError)
    counts = [_ellipsis_rank(term, rank) for term, rank in zip(terms, ranks, strict=True)]
    new = [symbol for symbol in map(_symbol, range(len(subscripts) + max(counts)))
           if symbol not in subscripts][:max(counts)]
    terms = [term.replace("...", "".join(new[len(new) - count:]))
             for term, count in zip(terms, counts, strict=True)]
    if arrow:
        result = result.replace("...", "".join(new))
    else:
        every = "".join(terms)
        result = "".join([*new, *sorted(c for c in {*every} - {*new} if every.count(c) == 1)])
    for label in result:
        if result.count(label) > 1:
            raise ValueError(f"Output character '{label}' appeared more than once in the output.")
        if label not in "".join(terms):
            raise ValueError(f"Output character '{label}' did not appear in the input")
    return terms, result


def _ellipsis_rank(term: str, rank: int) -> int:
    """The number of axes that "..." represents."""
    if "." not in term:
        return 0
    refuse((term.count(".") != 3 or "..." not in term, "Invalid Ellipses."),
           (rank < len(term) - 3, "Ellipses lengths do not match."), error=ValueError)
    return rank - (len(term) - 3)


def _sizes(terms: Sequence[Labels], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """The size of the axes of each label; ones broadcast."""
    sizes: dict[str, int] = {}
    for position, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        if len(term) != len(shape):
            raise ValueError(f"Einstein sum subscript '{term}' does not contain the correct number "
                             f"of indices for operand {position}.")
        for label, size in zip(term, shape, strict=True):
            previous = sizes.setdefault(label, size)
            if 1 not in (previous, size) and previous != size:
                raise ValueError(f"Size of label '{label}' for operand {position} ({previous}) "
                                 f"does not match previous terms ({size}).")
            sizes[label] = size if previous == 1 else previous
    return sizes


public(globals())
