"""Kernel density estimation: a normal distribution about each sample.

Builds on `linalg`, `random`.  In JAX: `jax/_src/scipy/stats/kde.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax import dtypes, lax, numpy as jnp, random, tree_util
from minijax.core import Array
from minijax.numpy.arguments import as_array, promote_dtypes_inexact
from minijax.scipy import special


def _as_points(name: str, x: Any, refused: str) -> Any:
    x = as_array(name, x)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise NotImplementedError(f"gaussian_kde does not support complex {refused}")
    return jnp.atleast_2d(x)


@tree_util.register_pytree_node_class
@dataclass(frozen=True, init=False, eq=False, repr=False)
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
            if weights.ndim != 1:
                raise ValueError("`weights` input should be one-dimensional.")
            if weights.shape != (n,):
                raise ValueError("`weights` input should be of length n")
        self._set(neff=1 / jnp.sum(jnp.square(weights)), dataset=samples, weights=weights)
        width = self._bandwidth(bw_method)
        own: Any = jnp.atleast_2d(jnp.cov(samples, rowvar=True, bias=False, aweights=weights))
        self._set(covariance=own * width ** 2, inv_cov=jnp.linalg.inv(own) / width ** 2)

    def _bandwidth(self, method: Any) -> Any:
        if method is None or isinstance(method, str) and method in ("scott", "silverman"):
            count = self.neff * (self.d + 2) / 4 if method == "silverman" else self.neff
            return jnp.power(count, -1 / (self.d + 4))
        if not isinstance(method, str) and jnp.isscalar(method):
            return method
        if not callable(method):
            raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar, or a callable.")
        return method(self)

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def tree_flatten(self) -> tuple:
        """The arrays, and nothing else."""
        return tuple(vars(self).values()), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Sequence) -> gaussian_kde:
        """The object of these arrays."""
        kde = cls.__new__(cls)
        kde._set(**dict(zip(cls.__dataclass_fields__, children, strict=True)))
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
        squares = jnp.sum(jnp.square(x[:, None] - y), -1)
        return _log_normalizer(factor) - .5 * squares

    # ── Integrals ────────────────────────────────────────────────────────────────────────────

    def integrate_gaussian(self, mean: Any, cov: Any) -> Array:
        """The integral of the density times that of a normal distribution."""
        mean, cov = jnp.atleast_1d(jnp.squeeze(mean)), jnp.atleast_2d(cov)
        if mean.shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
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
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        if np.ndim(low) or np.ndim(high):
            raise ValueError("the limits of integration in integrate_box_1d must be scalars")
        below, above = (special.ndtr(((x - self.dataset) / jnp.sqrt(self.covariance))[0])
                        for x in (low, high))
        return jnp.sum(self.weights * (above - below))

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Array:
        """Refused, as JAX refuses it."""
        raise NotImplementedError(
            "only 1D box integrations are supported; use `integrate_box_1d`")

    # ── Samples ──────────────────────────────────────────────────────────────────────────────

    def resample(self, key: Any, shape: Sequence[int] = ()) -> Array:
        """New samples of the density, of shape ``(d, *shape)``."""
        which, where = random.split(key)
        chosen = random.choice(which, self.n, shape=shape, p=self.weights)
        moved = random.multivariate_normal(
            where, jnp.zeros(self.d, self.covariance.dtype), self.covariance, shape=shape,
            dtype=self.dataset.dtype)
        return self.dataset[:, chosen] + jnp.moveaxis(moved, -1, 0)

    def set_bandwidth(self, bw_method: str | float | Callable | None = None) -> None:
        """Refused, as JAX refuses it: the object does not change."""
        raise NotImplementedError("dynamically changing the bandwidth method is not supported")


def _log_normalizer(factor: Any) -> Any:
    """The logarithm of a normal density's normalisation, from the Cholesky factor of its precision.
    """
    return (jnp.sum(jnp.log(jnp.diagonal(factor)))
            - .5 * factor.shape[0] * math.log(2 * math.pi))
