"""Sequences of numbers: differences, gradients, interpolation, convolution, `polyval`, windows.

Builds on `arithmetic`, `contractions`.  Chapter 20, *Precision, and where NumPy differs*.
In JAX: `jax/_src/numpy/lax_numpy.py`, `polynomial.py`, `window_functions.py`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from minijax import dtypes, lax
from minijax.core import Array, refuse
from minijax.custom.custom_jvp_vjp import custom_jvp
from minijax.transforms.jit import jit
from minijax.numpy import arithmetic, reductions, sorting
from minijax.numpy.arguments import (Alike, ArrayLike, as_array, as_arrays, broadcast_to_shape,
                                     Inexact, canonical_axes, canonical_axis, check_axis_index,
                                     check_promotion, choose, convert, promote_dtypes,
                                     promote_dtypes_inexact, promoted, public, static_int)
from minijax.numpy.shaping import moveaxis, ravel
from minijax.primitives.axes import replaced
from minijax.primitives.convert import converted


def diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None,
         append: ArrayLike | None = None) -> Array:
    """The differences of neighbours along an axis, `n` times over.

    >>> diff(np.array([1, 3, 6]))
    Array([2, 3], dtype=int32)
    """
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if a.ndim == 0:
        raise ValueError(f"diff requires input that is at least one dimensional; got {a}")
    if n == 0:
        return a  # without what precedes and follows, as in NumPy
    axis = canonical_axis(axis, a.ndim)
    row = replaced(a.shape, axis, 1)
    parts = [part if part.ndim else broadcast_to_shape(part, row) for part in as_arrays(
        "diff", *(part for part in (prepend, a, append) if part is not None))]
    x: Any = lax.concatenate(promote_dtypes(*parts), axis) if len(parts) > 1 else a
    for _ in range(n):
        later = lax.slice_in_dim(x, min(1, x.shape[axis]), None, axis=axis)
        earlier = lax.slice_in_dim(x, 0, max(x.shape[axis] - 1, 0), axis=axis)
        x = later != earlier if x.dtype == bool else later - earlier
    return x


def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None,
            to_begin: ArrayLike | None = None) -> Array:
    """The differences of neighbours in the flat array.

    >>> ediff1d(np.array([[1, 3], [6, 10]]))
    Array([2, 3, 4], dtype=int32)
    """
    x: Any = ravel(ary)
    result = x[1:] - x[:-1]
    parts = [ravel(x) for x in (to_begin, result, to_end) if x is not None]
    if len(parts) == 1:
        return result
    return lax.concatenate([convert(x, result.dtype) for x in parts], 0)


def gradient(f: ArrayLike, *varargs: ArrayLike, axis: Any = None, edge_order: None = None) -> Any:
    """The gradient, by finite differences of neighbours; one array for each axis.

    >>> gradient(np.array([1., 2., 4.]))
    Array([1. , 1.5, 2. ], dtype=float32)
    """
    if edge_order is not None:
        raise NotImplementedError("The 'edge_order' argument to jnp.gradient is not supported.")
    axes = canonical_axes(axis, f.ndim)
    f, *steps = promoted("gradient", promote_dtypes_inexact, f, *varargs)
    steps = steps or [1.0]
    steps = steps * len(axes) if len(steps) == 1 else steps
    if len(steps) != len(axes):
        raise TypeError(f"Invalid number of spacing arguments {len(steps)} for axis={axis}")
    slopes = [_gradient("gradient", f, d, step) for d, step in zip(axes, steps, strict=True)]
    return slopes[0] if len(slopes) == 1 else slopes


def _gradient(name: str, x: Any, axis: int, step: Any) -> Any:
    """The derivative along an axis, for a constant step or for coordinates."""
    step = as_array(name, step)
    if x.shape[axis] < 2:
        raise ValueError("Shape of array too small to calculate a numerical gradient, at least "
                         "2 elements are required.")
    between = functools.partial(lax.slice_in_dim, axis=axis)
    if step.ndim:
        if len(step) != x.shape[axis]:
            raise ValueError("Spacing arrays must have the same length as the dimension along "
                             "which the gradient is calculated.")
        x, width = promote_dtypes_inexact(x, diff(step))
        width = width.reshape(-1, *[1] * (x.ndim - axis - 1))
        slopes: Any = diff(x, axis=axis) / width  # of the intervals
        left, right = width[:-1], width[1:]
        # of the slopes of both intervals, that of the shorter one has more weight
        share = right / (left + right)
        inner = between(slopes, 0, -1) * share + between(slopes, 1, None) * (1 - share)
    else:
        slopes, inner = diff(x, axis=axis), (between(x, 2, None) - between(x, 0, -2)) * .5
    out = lax.concatenate([between(slopes, 0, 1), inner, between(slopes, -1, None)], axis)
    return out if step.ndim else out / step


def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1,
           period: ArrayLike = 2 * np.pi) -> Array:
    """The angles, each shifted by whole periods to the nearest of the one before.

    >>> unwrap(np.array([0., 3., 6.5, 9.5]) % 6).round(2)
    Array([0. , 3. , 0.5, 3.5], dtype=float32)

    Args:
      discont: how large a step must be to be changed; half the period if it is smaller.
    """
    p, period = promoted("unwrap", promote_dtypes, p, period)
    check_axis_index(axis, ndim=p.ndim)
    steps = diff(p, axis=axis)
    whole = dtypes.kind(p.dtype) in "iu"
    half = period // 2 if whole else period / 2
    nearest = arithmetic.remainder(steps + half, period) - half
    is_half = (nearest == -half) & (steps > 0)
    if whole:
        is_half = is_half & (period % 2 == 0)
    nearest = choose(is_half, half, nearest)
    change = choose(lax.abs(steps) < (half if discont is None else discont), 0, nearest - steps)
    start = min(1, p.shape[axis])
    first = lax.slice_in_dim(p, 0, start, axis=axis)
    later = lax.slice_in_dim(p, start, None, axis=axis)
    return lax.concatenate([first, convert(later + reductions.cumsum(change, axis), p.dtype)],
                           axis % p.ndim)


def interp(x: Any, xp: Any, fp: Any, left: ArrayLike | str | None = None,
           right: ArrayLike | str | None = None, period: ArrayLike | None = None) -> Array:
    """The linear interpolation of the points (xp, fp), constant beyond its ends.

    >>> interp(0.5, np.array([0., 1.]), np.array([10., 20.]))
    Array(15., dtype=float32)

    Args:
      left, right: the values beyond the ends, or "extrapolate" to go on straight.
      period: after which the line repeats.
    """
    for side, value in (("left", left), ("right", right)):
        if isinstance(value, str) and value != "extrapolate":
            raise ValueError(f"the only valid string value of `{side}` is 'extrapolate', but got: "
                             f"{value!r}")
    if "c" in (each.dtype.kind for each in as_arrays("interp", x, xp)):
        raise ValueError("jnp.interp: complex x values not supported.")
    x, xp, *periods = promoted("interp", promote_dtypes_inexact, x, xp,
                               *(() if period is None else (period,)))
    [fp] = promoted("interp", promote_dtypes_inexact, fp)
    check_promotion(x, fp)
    if xp.shape != fp.shape or xp.ndim != 1:
        raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    if periods:
        if periods[0].ndim:
            raise ValueError(f"period must be a scalar; got {period}")
        x, xp, fp = _wrap_period(x, xp, fp, *periods)
    values = _interp_linear(x, xp, fp)
    for end, beyond, value in ((0, x < xp[0], left), (-1, x > xp[-1], right)):
        if not isinstance(value, str) and period is None:
            values = choose(beyond, fp[end] if value is None else value, values)
    return values


@jit(inline=True)
def _interp_linear(x: Any, xp: Any, fp: Any) -> Any:
    """On the line between two points; beyond the ends, on the first or the last line."""
    right_of: Any = arithmetic.clip(sorting.searchsorted(xp, x, "right"), 1, xp.size - 1)
    left_of = right_of - 1
    x0, x1, y0, y1 = xp[left_of], xp[right_of], fp[left_of], fp[right_of]
    width = x1 - x0
    # as in JAX: a line between points that almost coincide would have an infinite gradient
    flat = lax.abs(width) <= np.spacing(ml_dtypes.finfo(width.dtype).eps)
    return choose(flat, y0, y0 + (x - x0) / choose(flat, 1, width) * (y1 - y0))


def _wrap_period(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """The coordinates within one period; the points with the neighbours of its ends."""
    period = lax.abs(period)
    x, xp = arithmetic.remainder(x, period), arithmetic.remainder(xp, period)
    xp, fp = lax.sort_key_val(xp, fp)
    xp = lax.concatenate([xp[-1:] - period, xp, xp[:1] + period], 0)
    return x, xp, lax.concatenate([fp[-1:], fp, fp[:1]], 0)


def trapezoid(y: Any, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral by the trapezoidal rule.

    >>> trapezoid(np.array([1., 2., 3.]))
    Array(4., dtype=float32)
    """
    heights, *points = promoted("trapezoid", promote_dtypes_inexact,
                                *(each for each in (y, x) if each is not None))
    axis_of_points, axis = axis, canonical_axis(axis, heights.ndim)
    width: Any = as_array("trapezoid", dx)
    for point in points:
        along = axis if point.ndim == heights.ndim else axis_of_points
        width = diff(point) if point.ndim == 1 else moveaxis(diff(point, axis=along), along, -1)
    if not points and width.ndim:
        width = moveaxis(lax.broadcast_to_rank(width, heights.ndim), axis, -1)
    heights = moveaxis(heights, axis, -1)
    if not width.ndim and heights.shape[-1]:
        ends = heights[..., 0] + heights[..., -1]
        return width * (reductions.sum(heights, -1) - 0.5 * ends)
    areas: Any = reductions.sum(width * (heights[..., 1:] + heights[..., :-1]), -1)
    return 0.5 * areas


def convolve(a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: Any = None,
             preferred_element_type: Any = None) -> Array:
    """The convolution of two vectors.

    >>> convolve(np.array([1, 2, 3]), np.array([1, 1]))
    Array([1., 3., 5., 3.], dtype=float32)

    Args:
      mode: "full", "same" or "valid": all shifts, as many as in `a`, or those of full overlap.
    """
    return _convolve("convolve", a, v, mode, precision, preferred_element_type)


def correlate(a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: Any = None,
              preferred_element_type: Any = None) -> Array:
    """The cross-correlation of two vectors.

    >>> correlate(np.array([1, 2, 3]), np.array([0, 1]))
    Array([2., 3.], dtype=float32)

    Args:
      mode: as of `convolve`.
    """
    return _convolve("correlate", a, v, mode, precision, preferred_element_type)


def _convolve(name: str, a: Any, v: Any, mode: str, precision: Any, dtype: Any) -> Array:
    """The kernel is the shorter vector; a correlation is reversed where that is the first."""
    x, y = (promote_dtypes_inexact if dtype is None else promote_dtypes)(a, v)
    is_convolution = name == "convolve"
    refuse((x.ndim != 1 or y.ndim != 1, f"{name}() only support 1-dimensional inputs."),
           (not x.size or not y.size, f"{name}: inputs cannot be empty, got shapes {x.shape} and "
            f"{y.shape}."), error=ValueError)
    y = lax.conj(y) if not is_convolution and y.dtype.kind == "c" else y
    is_swapped = x.size < y.size
    x, y = (y, x) if is_swapped else (x, y)
    padding = {"full": (y.size - 1, y.size - 1), "valid": (0, 0),
               "same": (y.size // 2, y.size - y.size // 2 - 1)}
    if mode not in padding:
        raise ValueError("mode must be one of ['full', 'same', 'valid']")
    y = lax.rev(y, (0,)) if is_convolution else y
    out = lax.conv_general_dilated(x[None, None], y[None, None], (1,), [padding[mode]],
                                   precision=precision, preferred_element_type=dtype)[0, 0]
    out = lax.rev(out, (0,)) if is_swapped and not is_convolution else out
    return convert(out, out.dtype, x.weak_type and dtype is None)


def polyval(p: Alike, x: Alike, *, unroll: int = 16) -> Array:
    """The value of a polynomial, its coefficients from the highest power down.

    >>> polyval(np.array([1, 0, 2]), 3)
    Array(11, dtype=int32)
    """
    operator.index(unroll)
    coefficients = [lax.index_in_dim(p, i, 0, keepdims=False) for i in range(p.shape[0])]
    zero = lax.full(lax.broadcast_shapes(p.shape[1:], x.shape), 0, x.dtype)
    return functools.reduce(lambda y, c: y * x + c, coefficients, zero)


# ── Windows: weights of the samples of a segment, for spectra ────────────────────────────────

def _window(name: str, M: Any, formula: Callable[[Any], Any]) -> Array:
    """The window of a function of an angle from 0 to 2 pi."""
    size, dtype = static_int(M, f"M argument of jnp.{name}"), dtypes.default_float_dtype()
    if size <= 1:
        return lax.full((size,), 1, dtype)
    return formula(lax.iota(dtype, size) * (2 * np.pi / (size - 1)))


def bartlett(M: int) -> Array:
    """The window of a triangle: its weights at M places.

    >>> bartlett(5).round(2)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window("bartlett", M, lambda x: 1 - lax.abs(x - np.pi) / np.pi)


def blackman(M: int) -> Array:
    """Blackman's window: its weights at M places.

    >>> blackman(5).round(2)
    Array([-0.  ,  0.34,  1.  ,  0.34, -0.  ], dtype=float32)
    """
    return _window("blackman", M, lambda x: 0.42 - 0.5 * lax.cos(x) + 0.08 * lax.cos(2 * x))


def hamming(M: int) -> Array:
    """Hamming's window: its weights at M places.

    >>> np.asarray(hamming(5)).round(2)
    array([0.08, 0.54, 1.  , 0.54, 0.08], dtype=float32)
    """
    return _window("hamming", M, lambda x: 0.54 - 0.46 * lax.cos(x))


def hanning(M: int) -> Array:
    """Von Hann's window: its weights at M places.

    >>> hanning(5).round(2)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window("hanning", M, lambda x: 0.5 - 0.5 * lax.cos(x))


def i0(x: Inexact) -> Array:
    """The modified Bessel function of the first kind, of order 0.

    >>> round(float(i0(1.)), 4)
    1.2661
    """
    if x.dtype.kind == "c":
        raise ValueError(f"Unsupported input type to jax.numpy.i0: {np.dtype(x.dtype)}")
    return i0_of_floats(x)


@custom_jvp
def i0_of_floats(x: Array) -> Array:
    """`i0`, whose derivative at 0 is 0, though that of its factor ``exp(|x|)`` is not.

    >>> i0_of_floats(0.)
    Array(1., dtype=float32, weak_type=True)
    """
    return lax.exp(lax.abs(x)) * lax.bessel_i0e(x)


i0_of_floats.defjvps(lambda t, out, x: t * (lax.exp(lax.abs(x)) * lax.bessel_i1e(x)))


def kaiser(M: int, beta: ArrayLike) -> Array:
    """Kaiser's window: its weights at M places; the larger `beta`, the narrower.

    >>> kaiser(5, 2.).round(2)
    Array([0.44, 0.83, 1.  , 0.83, 0.44], dtype=float32)
    """
    size, dtype = static_int(M, "M argument of jnp.kaiser"), dtypes.default_float_dtype()
    if size <= 1:
        return lax.full((size,), 1, dtype)
    middle = .5 * (size - 1)
    position = (lax.iota(dtype, size) - middle) / middle
    beta = converted(beta, dtype)
    return i0(beta * lax.sqrt(1 - position * position)) / i0(beta)


public(globals())
