"""Statistics of samples: density estimation, the mode, ranks, the standard error of the mean.

Builds on `linalg`, `random`.  In JAX: `jax/_src/scipy/stats/_core.py`, `kde.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes, lax, numpy as jnp, random, tree_util
from minijax.core import Array, refuse
from minijax.numpy.arguments import (ArrayLike, Inexact, as_array, canonical_axes,
                                     promote_dtypes_inexact, public)
from minijax.scipy import special


# ── The mode, ranks, the standard error ──────────────────────────────────────────────────────

class ModeResult(NamedTuple):
    """The commonest values, and how often they occur."""

    mode: Array
    count: Array


def _check_policy(name: str, nan_policy: str) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(f"Illegal nan_policy value {nan_policy!r}; expected one of "
                         "{'propagate', 'omit', 'raise'}")
    refuse((nan_policy == "omit", f"Logic for `nan_policy` of {nan_policy} is not implemented"),
           (nan_policy == "raise", f"In order to best JIT compile `{name}`, we cannot know whether "
            f"`x` contains nans. Please check if nans exist in `x` outside of the `{name}` "
            "function."), error=NotImplementedError)


def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate",
         keepdims: bool = False) -> ModeResult:
    """The commonest value along an axis; the least of several.

    Args:
      a: an array.
      axis: along which axis, or None for all values.
      nan_policy: "propagate": nans are values as any other, and alike.
      keepdims: whether the axis stays, with size one.

    Returns:
      The values, and their counts, without that axis.

    >>> mode(jnp.array([3, 1, 4, 1, 3]))
    ModeResult(mode=Array(1, dtype=int32), count=Array(2, dtype=int32))

    Raises:
      NotImplementedError: for the other policies, "omit" and "raise".
    """
    _check_policy("mode", nan_policy)
    axes = canonical_axes(axis if a.ndim else None, a.ndim)
    shape = [1 if d in axes else n for d, n in enumerate(a.shape) if keepdims or d not in axes]
    a = jnp.moveaxis(a, axes[0], 0) if axis is not None and a.ndim else a
    sizes = a.shape[:len(axes)], a.shape[len(axes):]
    values, counts = _mode_of_columns(a.reshape([*map(math.prod, sizes)]))
    return ModeResult(values.reshape(shape), counts.reshape(shape))


def _mode_of_columns(rows: Any) -> tuple[Any, Any]:
    """The mode of each column: the longest run of equal values in sorted order."""
    if not rows.shape[0]:
        nans = jnp.full(rows.shape[1:], jnp.nan, float)
        return nans, jnp.zeros_like(nans)
    ordered = jnp.sort(rows, 0)
    indices = jnp.arange(rows.shape[0])[:, None]
    counts = indices - lax.cummax(jnp.where(_run_starts(ordered), indices, 0)) + 1
    # the end of the longest run; of several, argmax takes the first
    last = jnp.argmax(counts, 0)[None]
    return tuple(jnp.take_along_axis(x, last, 0)[0] for x in (ordered, counts))


def _run_starts(ordered: Any) -> Any:
    """Whether each value, along the first axis, differs from the one before it; nans are equal."""
    after, before = ordered[1:], ordered[:-1]
    differs = (after != before) & ~((after != after) & (before != before))
    return jnp.concatenate([jnp.ones_like(ordered[:1], bool), differs])


def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None,
             nan_policy: str = "propagate") -> Array:
    """The place of each value among all, counted from one.

    Args:
      a: an array.
      method: what equal values get: the "average" of their places, the "min" or the "max"; or
        "dense", the place among different values; or "ordinal", one after the other.
      axis: along which axis; None flattens the array.
      nan_policy: "propagate": where there is a nan, all ranks are nan.

    Returns:
      An array of the default floating dtype.

    >>> rankdata(jnp.array([1, 3, 2, 3]))
    Array([1. , 3.5, 2. , 3.5], dtype=float32)

    Raises:
      ValueError: for another method or policy.
      NotImplementedError: for the policies "omit" and "raise".
    """
    _check_policy("rankdata", nan_policy)
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"unknown method '{method}'")
    if axis is None:
        return _ranks(jnp.ravel(a), method)
    return jnp.apply_along_axis(_ranks, axis, a, method)


def _ranks(x: Any, method: str) -> Any:
    count = x.shape[0]
    ordered, order = lax.sort_key_val(x, jnp.arange(count))
    starts, indices = _run_starts(ordered), jnp.arange(count)
    first = lax.cummax(jnp.where(starts, indices, 0)) + 1
    ends = jnp.concatenate([starts[1:], jnp.ones_like(starts[:1])])
    last = lax.cummin(jnp.where(ends, indices, count), reverse=True) + 1
    by_place: Any = {"ordinal": indices + 1, "dense": jnp.cumsum(starts), "min": first, "max": last,
                     "average": (first + last) / 2}[method]
    ranks = jnp.zeros(count).at[order].set(by_place.astype(float))
    return jnp.where(jnp.any(jnp.isnan(x)), jnp.nan, ranks)


def sem(a: Inexact, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
        keepdims: bool = False) -> Array:
    """The standard error of a mean: the deviation, divided by the root of how many there are.

    Args:
      a: an array.
      axis: along which axis, or None for all values.
      ddof: by how much fewer than the values the squares are divided.
      nan_policy: "propagate", or "omit" to leave nans out.
      keepdims: whether the axis stays, with size one.

    >>> sem(jnp.array([1., 2., 3., 4.])).round(4)
    Array(0.6455, dtype=float32)

    Raises:
      ValueError: for another policy.
    """
    if nan_policy == "propagate":
        count: Any = a.size if axis is None else a.shape[axis]
        deviation = jnp.std(a, axis, ddof=ddof, keepdims=keepdims)
    elif nan_policy == "omit":
        count = jnp.sum(~jnp.isnan(a), axis, keepdims=keepdims)
        deviation = jnp.nanstd(a, axis, ddof=ddof, keepdims=keepdims)
    else:
        raise ValueError(f"{nan_policy} is not supported")
    return deviation / jnp.sqrt(count).astype(a.dtype)


# ── Densities: a normal distribution about each sample ───────────────────────────────────────

def _as_points(name: str, x: Any, refused: str) -> Any:
    x = as_array(name, x)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise NotImplementedError(f"gaussian_kde does not support complex {refused}")
    return jnp.atleast_2d(x)


@tree_util.register_pytree_node_class
@dataclass(frozen=True, init=False, eq=False)
class gaussian_kde:
    """An estimate of a density from samples of it.

    Args:
      dataset: the samples: of shape (n,), or (d, n) where each has d components.
      bw_method: how wide the distributions are, beside the samples' own deviation: "scott" (also
        None) or "silverman", a number, or a function of the object.
      weights: how much each sample counts, of shape (n,).

    >>> kde = gaussian_kde(jnp.array([-1., 0., 2.]))
    >>> kde(jnp.array([0.])).round(4)
    Array([0.2149], dtype=float32)

    Raises:
      ValueError: for less than two numbers, or weights or widths that do not fit.
      NotImplementedError: for complex numbers.
    """

    neff: Array
    dataset: Array
    weights: Array
    covariance: Array
    inv_cov: Array

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        samples = _as_points("gaussian_kde", dataset, "data")
        if samples.size < 2:
            raise ValueError("`dataset` input should have multiple elements.")
        d, n = samples.shape
        if weights is None:
            [samples] = promote_dtypes_inexact(samples)
            weights = jnp.full(n, 1 / n, samples.dtype)
        else:
            samples, weights = promote_dtypes_inexact(samples, as_array("gaussian_kde", weights))
            weights = jnp.atleast_1d(weights) / jnp.sum(weights)
            refuse((weights.ndim != 1, "`weights` input should be one-dimensional."),
                   (weights.shape != (n,), "`weights` input should be of length n"),
                   error=ValueError)
        vars(self).update(neff=1 / jnp.sum(jnp.square(weights)), dataset=samples, weights=weights)
        width = self._bandwidth(bw_method)
        own: Any = jnp.atleast_2d(jnp.cov(samples, rowvar=True, bias=False, aweights=weights))
        vars(self).update(covariance=own * width ** 2, inv_cov=jnp.linalg.inv(own) / width ** 2)

    def _bandwidth(self, method: Any) -> Any:
        if method is None or isinstance(method, str) and method in ("scott", "silverman"):
            count = self.neff * (self.d + 2) / 4 if method == "silverman" else self.neff
            return jnp.power(count, -1 / (self.d + 4))
        if not isinstance(method, str) and jnp.isscalar(method):
            return method
        if not callable(method):
            raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar, or a callable.")
        return method(self)

    def tree_flatten(self) -> tuple:
        """The arrays, and nothing else."""
        return tuple(vars(self).values()), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Sequence) -> gaussian_kde:
        """The object of these arrays."""
        kde = cls.__new__(cls)
        vars(kde).update(zip(cls.__dataclass_fields__, children, strict=True))
        return kde

    @property
    def d(self) -> int:
        """How many components a sample has."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """How many samples there are."""
        return self.dataset.shape[1]

    # ── The density ──────────────────────────────────────────────────────────────────────────

    def evaluate(self, points: Any) -> Array:
        """The density at points, of shape (m,) or (d, m)."""
        return jnp.sum(jnp.exp(self._log_kernels(points, "evaluate")) * self.weights, 1)

    __call__ = pdf = evaluate

    def logpdf(self, x: Any) -> Array:
        """The logarithm of the density at points, of shape (m,) or (d, m)."""
        return special.logsumexp(self._log_kernels(x, "logpdf") + jnp.log(self.weights), 1)

    def _log_kernels(self, points: Any, name: str) -> Any:
        """The logarithm of the density of each sample's distribution at each point: (m, n)."""
        points = _as_points(name, points, "coordinates")
        d, m = points.shape
        if d == 1 and m == self.d:
            points = points.reshape(self.d, 1)
        elif d != self.d:
            raise ValueError(f"points have dimension {d}, dataset has dimension {self.d}")
        points, samples, precision = promote_dtypes_inexact(points, self.dataset, self.inv_cov)
        factor = jnp.linalg.cholesky(precision)
        x, y = points.T @ factor, samples.T @ factor
        return _log_normalizer(factor) - .5 * jnp.sum(jnp.square(x[:, None] - y), -1)

    # ── Integrals ────────────────────────────────────────────────────────────────────────────

    def integrate_gaussian(self, mean: Any, cov: Any) -> Array:
        """The integral of the density times that of a normal distribution."""
        mean, cov = jnp.atleast_1d(jnp.squeeze(mean)), jnp.atleast_2d(cov)
        refuse((mean.shape != (self.d,), f"mean does not have dimension {self.d}"),
               (cov.shape != (self.d, self.d), f"covariance does not have dimension {self.d}"),
               error=ValueError)
        return self._overlap(cov, mean[:, None])[0]

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of two such densities."""
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        return jnp.sum(self._overlap(other.covariance, other.dataset) * other.weights)

    def _overlap(self, cov: Any, means: Any) -> Any:
        """The integrals with normal distributions, whose means are the columns."""
        factor = jnp.linalg.cholesky(self.covariance + cov)
        x, y = (lax.linalg.triangular_solve(factor, jnp.asarray(v, factor.dtype), left_side=True,
                                            lower=True) for v in (means, self.dataset))
        squares = jnp.sum(jnp.square(x[:, :, None] - y[:, None]), 0)
        size = jnp.exp(-.5 * squares - self.d * math.log(2 * math.pi))
        return jnp.sum(size * self.weights, 1) * jnp.exp(-_log_normalizer(factor))

    def integrate_box_1d(self, low: Any, high: Any) -> Array:
        """The probability of a number between two numbers."""
        refuse((self.d != 1, "integrate_box_1d() only handles 1D pdfs"),
               (max(np.ndim(low), np.ndim(high)) > 0,
                "the limits of integration in integrate_box_1d must be scalars"), error=ValueError)
        below, above = (special.ndtr(((x - self.dataset) / jnp.sqrt(self.covariance))[0])
                        for x in (low, high))
        return jnp.sum(self.weights * (above - below))

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Array:
        """Refused, as JAX refuses it."""
        raise NotImplementedError("only 1D box integrations are supported; use `integrate_box_1d`")

    # ── Samples ──────────────────────────────────────────────────────────────────────────────

    def resample(self, key: Any, shape: Sequence[int] = ()) -> Array:
        """New samples of the density, of shape ``(d, *shape)``."""
        which, where = random.split(key)
        chosen = random.choice(which, self.n, shape=shape, p=self.weights)
        moved = random.multivariate_normal(where, jnp.zeros(self.d, self.covariance.dtype),
                                           self.covariance, shape=shape, dtype=self.dataset.dtype)
        return self.dataset[:, chosen] + jnp.moveaxis(moved, -1, 0)

    def set_bandwidth(self, bw_method: str | float | Callable | None = None) -> None:
        """Refused, as JAX refuses it: the object does not change."""
        raise NotImplementedError("dynamically changing the bandwidth method is not supported")


def _log_normalizer(factor: Any) -> Any:
    """The logarithm of a normal density's normalisation, from the Cholesky factor of its precision.
    """
    return jnp.sum(jnp.log(jnp.diagonal(factor))) - .5 * factor.shape[0] * math.log(2 * math.pi)


public(globals())
