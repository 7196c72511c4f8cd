"""`minijax.numpy.linalg`: matrices, their norms, factors, equations and products.

Builds on `factorisations`, `equations`, `contractions`.
In JAX: `jax/numpy/linalg.py`.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from minijax.core import Array, refuse as _refuse
from minijax.numpy import contractions, diagonals
from minijax.numpy.arguments import ArrayLike, as_arrays, check_promotion as _check_promotion
from minijax.numpy.contractions import vecdot
from minijax.numpy.equations import (SlogdetResult, cond, det, inv, lstsq, matrix_power,
                                     matrix_rank, pinv, slogdet, solve, tensorinv, tensorsolve)
from minijax.numpy.factorisations import (EigResult, EighResult, QRResult, SVDResult, cholesky, eig,
                                          eigh, eigvals, eigvalsh, matrix_norm, norm, qr, svd,
                                          svdvals, vector_norm)
from minijax.numpy.shaping import matrix_transpose
from minijax.placement.out_sharding import exported as _exported
from minijax.util.exports import export_all as _export_all


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """All products of an element of one vector and one of another.

    >>> import numpy as np
    >>> outer(np.array([1, 2]), np.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    x1, x2 = as_arrays("jnp.linalg.outer", x1, x2)
    _check_promotion(x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError("Input arrays must be one-dimensional, but they are "
                         f"x1.ndim={x1.ndim} x2.ndim={x2.ndim}")
    return contractions.outer(x1, x2)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of three components.

    >>> import numpy as np
    >>> cross(np.array([1, 0, 0]), np.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    x1, x2 = as_arrays("jnp.linalg.outer", x1, x2)
    _check_promotion(x1, x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they have "
            f"x1.shape[axis]={x1.shape[axis]} and x2.shape[axis]={x2.shape[axis]}")
    return contractions.cross(x1, x2, axis=axis)


def matmul(x1: ArrayLike, x2: ArrayLike, /, *, precision: Any = None,
           preferred_element_type: Any = None) -> Array:
    """The products of matrices in stacks, as `numpy.matmul`.

    >>> import numpy as np
    >>> matmul(np.array([[1, 2]]), np.array([[3], [4]]))
    Array([[11]], dtype=int32)
    """
    _check_promotion(x1, x2)
    return contractions.matmul(x1, x2, precision=precision,
                               preferred_element_type=preferred_element_type)


def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: Any = 2, precision: Any = None,
              preferred_element_type: Any = None) -> Array:
    """The sums of products over some axes of both arrays, as `numpy.tensordot`.

    >>> import numpy as np
    >>> tensordot(np.array([1, 2]), np.array([3, 4]), axes=1)
    Array(11, dtype=int32)
    """
    _check_promotion(x1, x2)
    return contractions.tensordot(x1, x2, axes, precision=precision,
                                  preferred_element_type=preferred_element_type)


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array:
    """The product of several matrices, in the order of least work; first and last may be vectors.

    Raises:
      ValueError: for no arrays, or those that do not fit.

    >>> import numpy as np
    >>> multi_dot([np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 1))]).shape
    (2, 1)
    """
    arrays = as_arrays("multi_dot", *arrays)
    shapes = [x.shape for x in arrays]
    _refuse((not arrays, "multi_dot requires at least two arrays; got len(arrays)=0"),
            (any(len(shape) not in (1, 2) for shape in shapes)
             or any(len(shape) == 1 for shape in shapes[1:-1]), "multi_dot: input arrays must all "
             "be two-dimensional, except for the first and last array which may be 1 or 2 "
             f"dimensional. Got array shapes {shapes}"),
            (any(x[-1:] != y[:1] for x, y in itertools.pairwise(shapes)), "multi_dot: last "
             "dimension of each array must match first dimension of following array. Got array "
             f"shapes {shapes}"), error=ValueError)
    axes = [[k, k + 1][:x.ndim] if k else [0, 1][-x.ndim:] for k, x in enumerate(arrays)]
    _check_promotion(*arrays)
    return contractions.einsum(*itertools.chain(*zip(arrays, axes, strict=True)),
                               precision=precision)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sums of the diagonals of a stack of matrices.

    >>> import numpy as np
    >>> trace(np.ones((4, 2, 2))).shape
    (4,)
    """
    return contractions.trace(x, offset, -2, -1, dtype)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of a stack of matrices.

    >>> import numpy as np
    >>> diagonal(np.ones((4, 2, 3))).shape
    (4, 2)
    """
    return diagonals.diagonal(x, offset, axis1=-2, axis2=-1)


_export_all(globals(), _exported(__name__))
