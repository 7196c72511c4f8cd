"""`minijax.numpy`: NumPy's functions for arrays and tracers, as composites over `lax`.

One file per family; importing it puts operators and methods on arrays.
In JAX: `jax/numpy/__init__.py`.
"""

import sys as _sys

import numpy as _np

from minijax.core import Array as ndarray
from minijax.core import get_aval as _get_aval
from minijax.dtypes import finfo, float0, iinfo, issubdtype, promote_types, result_type
from minijax.numpy import linalg
from minijax.numpy.arithmetic import (add, arctan2, atan2, clip, copysign, divide, divmod,
                                      float_power, floor_divide, fmax, fmin, fmod, heaviside,
                                      hypot, ldexp, logaddexp, logaddexp2, maximum, minimum, mod,
                                      multiply, nextafter, pow, power, remainder, sinc, subtract,
                                      true_divide)
from minijax.numpy.contractions import (cross, dot, einsum, inner, kron, matmul, matvec, outer,
                                        tensordot, trace, vdot, vecdot)
from minijax.numpy.creation import (arange, array, asarray, astype, copy, empty, empty_like,
                                    from_dlpack, full, full_like, geomspace, linspace, logspace,
                                    ones, ones_like, zeros, zeros_like)
from minijax.numpy.diagonals import (diag, diag_indices, diagflat, diagonal, eye, fill_diagonal,
                                     identity, indices, meshgrid, tri, tril, tril_indices, triu,
                                     triu_indices, vander)
from minijax.numpy.joining import (append, array_split, column_stack, concat, concatenate, delete,
                                   dsplit, dstack, hsplit, hstack, pad, repeat, split, stack, tile,
                                   unstack, vsplit, vstack)
from minijax.numpy.logic import (allclose, array_equal, array_equiv, bitwise_and, bitwise_invert,
                                 bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift,
                                 bitwise_xor, equal, greater, greater_equal, invert, isclose,
                                 left_shift, less, less_equal, logical_and, logical_not,
                                 logical_or, logical_xor, not_equal, right_shift)
from minijax.numpy.operators import install_operators
from minijax.numpy.reductions import (all, amax, amin, any, argmax, argmin, average, count_nonzero,
                                      cumprod, cumsum, max, mean, min, nanargmax, nanargmin,
                                      nancumsum, nanmax, nanmean, nanmin, nanprod, nanstd, nansum,
                                      nanvar, prod, ptp, std, sum, var)
from minijax.numpy.scalar_types import can_cast, isdtype
from minijax.numpy.scalar_types import (bfloat16, bool_, cdouble, complex128, complex64, complex_,
                                        complexfloating, csingle, double, e, euler_gamma, float16,
                                        float32, float64, float_, floating, generic, inexact, inf,
                                        int16, int32, int64, int8, int_, integer, nan, newaxis,
                                        number, pi, signedinteger, single, uint, uint16, uint32,
                                        uint64, uint8, unsignedinteger)
from minijax.numpy.searching import (argwhere, bincount, compress, digitize, extract, flatnonzero,
                                     histogram, histogram_bin_edges, nonzero, piecewise, select,
                                     take, take_along_axis, where)
from minijax.numpy.sequences import convolve, diff, ediff1d, gradient, interp, polyval, trapezoid
from minijax.numpy.sets import (intersect1d, isin, setdiff1d, setxor1d, union1d, unique,
                                unique_all, unique_counts, unique_inverse, unique_values)
from minijax.numpy.shaping import (atleast_1d, atleast_2d, atleast_3d, broadcast_arrays,
                                   broadcast_shapes, broadcast_to, expand_dims, flip, fliplr,
                                   flipud, matrix_transpose, moveaxis, ndim, permute_dims, ravel,
                                   reshape, roll, rollaxis, rot90, shape, size, squeeze, swapaxes,
                                   transpose)
from minijax.numpy.sorting import argsort, lexsort, median, percentile, quantile, searchsorted, sort
from minijax.numpy.unary import (abs, absolute, acos, acosh, angle, arccos, arccosh, arcsin,
                                 arcsinh, arctan, arctanh, around, asin, asinh, atan, atanh, cbrt,
                                 ceil, conj, conjugate, cos, cosh, deg2rad, degrees, exp, exp2,
                                 expm1, fabs, floor, imag, iscomplex, iscomplexobj, isfinite,
                                 isinf, isnan, isneginf, isposinf, isreal, isrealobj, isscalar,
                                 iterable, log, log10, log1p, log2, nan_to_num, negative, positive,
                                 rad2deg, radians, real, reciprocal, rint, round, sign, signbit,
                                 sin, sinh, sqrt, square, tan, tanh, trunc)
from minijax.numpy.vectorize import apply_along_axis, vectorize

dtype = _np.dtype
bool = bool_
set_printoptions, get_printoptions, printoptions = (
    _np.set_printoptions, _np.get_printoptions, _np.printoptions)

install_operators(_sys.modules[__name__])
