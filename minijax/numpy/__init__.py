"""`minijax.numpy`: NumPy's functions for arrays and tracers, as composites over `lax`.

One file per family, loaded with the first of its functions.  In JAX: `jax/numpy/__init__.py`.
"""

from typing import TYPE_CHECKING

import ml_dtypes

from minijax.placement.out_sharding import exported
from minijax.util import lazily

if TYPE_CHECKING:
    from numpy import (
        character, complexfloating, dtype, e, euler_gamma, flexible, floating, generic,
        get_printoptions, inexact, inf, integer, nan, newaxis, number, object_, pi, printoptions,
        set_printoptions, signedinteger, unsignedinteger)
    from numpy.exceptions import ComplexWarning
    from minijax.dtypes import finfo, float0, iinfo, promote_types, result_type
    from minijax.numpy import fft, linalg
    from minijax.numpy.arithmetic import (
        arctan2, atan2, clip, copysign, divide, divmod, float_power, floor_divide, fmax, fmin, fmod,
        heaviside, hypot, ldexp, mod, nextafter, pow, power, remainder, sinc, true_divide)
    from minijax.numpy.bits import (bitwise_count, frexp, gcd, lcm, modf, packbits, spacing,
                                    unpackbits)
    from minijax.numpy.contractions import (cross, dot, einsum, einsum_path, inner, kron, matmul,
                                            matvec, outer, tensordot, trace, vdot, vecdot, vecmat)
    from minijax.numpy.creation import (arange, array, asarray, astype, copy, empty, empty_like,
                                        from_dlpack, full, full_like, geomspace, linspace, logspace,
                                        ones, ones_like, zeros, zeros_like)
    from minijax.numpy.diagonals import (diag, diag_indices, diagflat, diagonal, eye, fill_diagonal,
                                         identity, indices, meshgrid, tri, tril, tril_indices, triu,
                                         triu_indices, vander)
    from minijax.numpy.files import (array_repr, array_str, frombuffer, fromfile, fromfunction,
                                     fromiter, fromstring, load, save, savez)
    from minijax.numpy.grids import (c_, diag_indices_from, index_exp, ix_, mask_indices, mgrid,
                                     ogrid, r_, ravel_multi_index, s_, tril_indices_from,
                                     triu_indices_from, unravel_index)
    from minijax.numpy.joining import (append, array_split, block, column_stack, concat,
                                       concatenate, delete, dsplit, dstack, hsplit, hstack, pad,
                                       repeat, split, stack, tile, unstack, vsplit, vstack)
    from minijax.numpy.logic import (allclose, array_equal, array_equiv, bitwise_invert,
                                     bitwise_left_shift, bitwise_not, bitwise_right_shift, equal,
                                     greater, greater_equal, invert, isclose, left_shift, less,
                                     less_equal, logical_not, not_equal, right_shift)
    from minijax.numpy.operators import Array as ndarray
    from minijax.numpy.polynomials import (poly, polyadd, polyder, polydiv, polyfit, polyint,
                                           polymul, polysub, roots)
    from minijax.numpy.putting import (apply_over_axes, choose, insert, place, put, put_along_axis,
                                       resize, trim_zeros)
    from minijax.numpy.namespace_info import __array_api_version__, __array_namespace_info__
    from minijax.numpy.reductions import (all, amax, amin, any, argmax, argmin, average,
                                          count_nonzero, cumprod, cumsum, cumulative_prod,
                                          cumulative_sum, max, mean, min, nanargmax, nanargmin,
                                          nancumprod, nancumsum, nanmax, nanmean, nanmin, nanprod,
                                          nanstd, nansum, nanvar, prod, ptp, std, sum, var)
    from minijax.numpy.scalar_types import (
        bfloat16, bool_, bool_ as bool, can_cast, cdouble, complex128, complex64, complex_, csingle,
        double, float16, float32, float4_e2m1fn, float64, float6_e2m3fn, float6_e3m2fn,
        float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2,
        float8_e5m2fnuz, float8_e8m0fnu, float_, int1, int16, int2, int32, int4, int64, int8, int_,
        isdtype, issubdtype, single, uint, uint1, uint16, uint2, uint32, uint4, uint64, uint8)
    from minijax.numpy.searching import (
        argwhere, bincount, compress, digitize, extract, flatnonzero, histogram, histogram2d,
        histogram_bin_edges, histogramdd, nonzero, piecewise, select, take, take_along_axis, where)
    from minijax.numpy.sequences import (bartlett, blackman, convolve, correlate, diff, ediff1d,
                                         gradient, hamming, hanning, i0, interp, kaiser, polyval,
                                         trapezoid, unwrap)
    from minijax.numpy.sets import (intersect1d, isin, setdiff1d, setxor1d, union1d, unique,
                                    unique_all, unique_counts, unique_inverse, unique_values)
    from minijax.numpy.shaping import (
        atleast_1d, atleast_2d, atleast_3d, broadcast_arrays, broadcast_shapes, broadcast_to,
        expand_dims, flip, fliplr, flipud, matrix_transpose, moveaxis, ndim, permute_dims, ravel,
        reshape, roll, rollaxis, rot90, shape, size, squeeze, swapaxes, transpose)
    from minijax.numpy.sorting import (argpartition, argsort, lexsort, median, nanmedian,
                                       nanpercentile, nanquantile, partition, percentile, quantile,
                                       searchsorted, sort, sort_complex)
    from minijax.numpy.statistics import corrcoef, cov
    from minijax.numpy.ufuncs import (add, bitwise_and, bitwise_or, bitwise_xor, frompyfunc,
                                      logaddexp, logaddexp2, logical_and, logical_or, logical_xor,
                                      maximum, minimum, multiply, negative, subtract, ufunc)
    from minijax.numpy.unary import (
        abs, absolute, acos, acosh, angle, arccos, arccosh, arcsin, arcsinh, arctan, arctanh,
        around, asin, asinh, atan, atanh, cbrt, ceil, conj, conjugate, cos, cosh, deg2rad, degrees,
        exp, exp2, expm1, fabs, floor, imag, iscomplex, iscomplexobj, isfinite, isinf, isnan,
        isneginf, isposinf, isreal, isrealobj, isscalar, iterable, log, log10, log1p, log2,
        nan_to_num, positive, rad2deg, radians, real, reciprocal, rint, round, sign, signbit, sin,
        sinh, sqrt, square, tan, tanh, trunc)
    from minijax.numpy.vectorization import apply_along_axis, vectorize

__all__ = lazily.attach(globals(), exported(__name__))
if not hasattr(ml_dtypes, "int1"):  # from ml_dtypes 0.6 on
    __all__ = [name for name in __all__ if name not in ("int1", "uint1")]
del TYPE_CHECKING, exported, lazily, ml_dtypes
