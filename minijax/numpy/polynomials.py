"""Polynomials as vectors of coefficients, highest power first: sums, products, fits, roots.

Builds on `sequences`, `equations`, `factorisations`.  Chapter 20, *Precision*.
In JAX: `jax/_src/numpy/polynomial.py`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array, refuse
from minijax.numpy import (diagonals, equations, factorisations, putting, reductions, sequences,
                           shaping, sorting)
from minijax.numpy.arguments import (Alike, ArrayLike, Inexact, as_array, choose, convert,
                                     promote_dtypes_inexact, promoted, public, static_value,
                                     static_int)


def poly(seq_of_zeros: Inexact) -> Array:
    """The polynomial with these zeros, whose first coefficient is 1.

    >>> poly(np.array([1., 2.]))
    Array([ 1., -3.,  2.], dtype=float32)

    Args:
      seq_of_zeros: the zeros, or a square matrix, whose eigenvalues they are.
    """
    zeros: Any = shaping.atleast_1d(seq_of_zeros)
    if zeros.ndim == 2 and zeros.size and zeros.shape[0] == zeros.shape[1]:
        zeros = factorisations.eigvals(zeros)
    if zeros.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    if not zeros.size:
        return convert(1, zeros.dtype)
    coefficients: Any = lax.full((1,), 1, zeros.dtype)
    for i in range(zeros.size):
        grown = lax.pad(coefficients, convert(0, zeros.dtype), [(0, 1, 0)])
        coefficients = grown - lax.pad(coefficients * zeros[i], convert(0, zeros.dtype),
                                       [(1, 0, 0)])
    return coefficients


def roots(p: Inexact, *, strip_zeros: bool = True) -> Array:
    """The zeros of a polynomial, as complex numbers: eigenvalues of its companion matrix.

    >>> roots(np.array([1., -3., 2.])).round(3)
    Array([2.+0.j, 1.+0.j], dtype=complex64)

    Args:
      p: the coefficients, the highest power first.
      strip_zeros: whether leading zeros are dropped, for which `p` must be concrete; otherwise each
        gives a nan.

    Raises:
      ValueError: for more than one axis.
      ConcretizationTypeError: when `p` is traced, unless `strip_zeros` is False.
    """
    p = shaping.atleast_1d(p)
    if p.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    if strip_zeros:
        coefficients = static_value(
            p, "The error occurred in the jnp.roots() function. To use this within a JIT-compiled "
            "context, pass strip_zeros=False, but be aware that leading zeros will result in some "
            "returned roots being set to NaN.")
        indices = np.flatnonzero(coefficients)
        p = p[int(indices[0]):] if indices.size else p[:0]
    return _roots(p) if p.size > 1 else lax.full((0,), 0, np.result_type(p.dtype, np.complex64))


def _roots(p: Any) -> Any:
    """The roots; a nan for each leading zero."""
    zeros = reductions.argmax(p != 0)  # how many; rolled to the end, they are roots at 0
    rolled = p[(np.arange(len(p)) + zeros) % len(p)]
    companion = diagonals.diagflat(lax.full((len(p) - 2,), 1, p.dtype), -1)
    eigenvalues: Any = factorisations.eigvals(companion.at[0].set(-rolled[1:] / rolled[0]))
    by_size = eigenvalues[sorting.argsort(-lax.abs(eigenvalues))]
    is_root = np.arange(len(p) - 1) < len(p) - 1 - zeros
    with_nan = lax.select(is_root, by_size, lax.full_like(eigenvalues, complex(np.nan, np.nan)))
    return choose(zeros == 0, eigenvalues, with_nan)


def polyadd(a1: Alike, a2: Alike) -> Array:
    """The sum of two polynomials.

    >>> polyadd(np.array([1, 2]), np.array([5]))
    Array([1, 7], dtype=int32)
    """
    short, long = (a1, a2) if a1.shape[0] < a2.shape[0] else (a2, a1)
    return long.at[long.shape[0] - short.shape[0]:].add(short)


def polysub(a1: Alike, a2: Alike) -> Array:
    """The difference of two polynomials.

    >>> polysub(np.array([1, 2]), np.array([5]))
    Array([ 1, -3], dtype=int32)
    """
    return polyadd(a1, -a2)


def polymul(a1: Inexact, a2: Inexact, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    >>> polymul(np.array([1, 1]), np.array([1, -1]))
    Array([ 1.,  0., -1.], dtype=float32)

    Args:
      trim_leading_zeros: whether to drop those of the arguments, which then must be concrete.
    """
    if trim_leading_zeros:
        a1, a2 = (putting.trim_zeros(x, "f") for x in (a1, a2))
    x, y = (x if len(x) else lax.full((1,), 0, x.dtype) for x in (a1, a2))
    return sequences.convolve(x, y, "full")


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """The quotient and the remainder of two polynomials.

    >>> [x.tolist() for x in polydiv(np.array([1., 3., 2.]), np.array([1., 1.]))]
    [[1.0, 2.0], [0.0, 0.0, 0.0]]

    Args:
      trim_leading_zeros: whether to drop those of the remainder, which then must be concrete.
    """
    remainder, v = promote_dtypes_inexact(u, v)
    degree = len(v) - 1
    quotient: Any = lax.full((max(len(remainder) - degree, 1),), 0, v.dtype)
    for k in range(len(remainder) - degree):
        factor = remainder[k] / v[0]
        quotient = quotient.at[k].set(factor)
        remainder = remainder.at[k:k + degree + 1].add(-factor * v)
    remainder = putting.trim_zeros(remainder, "f") if trim_leading_zeros else remainder
    return quotient, remainder


def polyder(p: Inexact, m: int = 1) -> Array:
    """The m-th derivative.

    >>> polyder(np.array([1., 2., 3.]))
    Array([2., 2.], dtype=float32)
    """
    m = operator.index(m)
    if m < 0:
        raise ValueError("Order of derivative must be positive")
    if not m:
        return p
    powers = np.arange(len(p) - 1, m - 1, -1.0)
    factors = np.prod([powers - i for i in range(m)], axis=0)
    return convert(p[:powers.size] * factors.astype(p.dtype), p.dtype)


def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The m-th integral.

    >>> polyint(np.array([2., 2.]))
    Array([1., 2., 0.], dtype=float32)

    Args:
      k: the constants of integration, one for each time or one for all; 0 by default.
    """
    m = operator.index(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    p, k = promoted("polyint", promote_dtypes_inexact, p, 0 if k is None else k)
    constants: Any = shaping.atleast_1d(k)
    if constants.shape not in ((1,), (m,)):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    if not m:
        return p
    coefficients = lax.concatenate([convert(p, p.dtype), convert(lax.broadcast_in_dim(
        constants, (m,), (0,)), p.dtype)], 0)
    powers = np.arange(coefficients.size - 1, -1, -1.0)[:, None] - np.arange(m)
    return coefficients / np.prod(np.maximum(powers, 1), axis=1).astype(coefficients.dtype)


def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False,
            w: ArrayLike | None = None, cov: bool | str = False) -> Any:
    """The least-squares fit of a polynomial of this degree.

    >>> polyfit(np.array([0., 1., 2.]), np.array([1., 3., 5.]), 1).round(3)
    Array([2., 1.], dtype=float32)

    Args:
      full: whether to return residuals, rank, singular values and `rcond`, too.
      w: a weight for each point.
      cov: whether to return the covariance of the coefficients, too; "unscaled": without the
        variance of the residuals as factor.
    """
    x, y = promote_dtypes_inexact(x, y)
    count = static_int(deg, "deg must be int") + 1
    if count < 1:
        raise ValueError("expected deg >= 0")
    refuse((x.ndim != 1, "expected 1D vector for x"),
           (not x.size, "expected non-empty vector for x"),
           (y.ndim not in (1, 2), "expected 1D or 2D array for y"),
           (x.shape[:1] != y.shape[:1], "expected x and y to have same length"))
    rcond = x.size * float(dtypes.finfo(x.dtype).eps) if rcond is None else rcond
    powers: Any = diagonals.vander(x, count)
    if w is not None:
        w = as_array("polyfit", w)
        refuse((w.ndim != 1, "expected a 1-d array for weights"),
               (w.shape[:1] != y.shape[:1], "expected w and y to have the same length"))
        powers, y = powers * w[:, None], y * (w[:, None] if y.ndim == 2 else w)
    scale: Any = lax.sqrt(reductions.sum(powers * powers, 0))
    coefficients, residuals, rank, values = equations.lstsq(powers / scale, y, rcond)
    coefficients = (coefficients.T / scale).T
    if full:
        rcond = convert(rcond, dtypes.default_float_dtype(), True)
        return coefficients, residuals, rank, values, rcond
    if not cov:
        return coefficients
    base = equations.inv(powers.T @ powers / (scale[:, None] * scale)) / (scale[:, None] * scale)
    if cov == "unscaled":
        return coefficients, base
    if x.size <= count:
        raise ValueError("the number of data points must exceed order to scale the covariance "
                         "matrix")
    factor = residuals / (x.size - count)
    return coefficients, base[:, :, None] * factor if y.ndim == 2 else base * factor


public(globals())
