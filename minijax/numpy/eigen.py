"""Eigenvalues of matrices of any kind, by LAPACK on the host.

Stands on `pure_callback`, `equations`.  Chapter 10, for the rule of their derivative.
In JAX: `jax/_src/lax/linalg.py`.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from minijax import core, lax
from minijax.core import Array
from minijax.higher_order.custom_derivatives import custom_jvp
from minijax.higher_order.host_results import pure_callback
from minijax.numpy.arguments import Inexact, convert, public
from minijax.numpy.equations import solve

EigResult = namedtuple("EigResult", "eigenvalues eigenvectors")


def _on_host(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """NumPy's answer, in complex numbers; nans for matrices with nans or infinities."""
    a = np.asarray(a)
    dtype = np.result_type(a.dtype, np.complex64)
    is_finite = np.isfinite(a).all((-2, -1))
    values, vectors = np.linalg.eig(np.where(is_finite[..., None, None], a, 0))
    return (np.where(is_finite[..., None], values, np.nan).astype(dtype),
            np.where(is_finite[..., None, None], vectors, np.nan).astype(dtype))


def _pairs(a: Any) -> tuple[Any, Any]:
    if a.ndim < 2:
        raise TypeError(f"Input 0 to eig must have rank at least 2, but got shape={a.shape}")
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"The input to eig must be a square matrix. Got shape {a.shape}.")
    if a.dtype.itemsize < 4:
        raise NotImplementedError(f"Unsupported dtype {a.dtype}: convert it to float32.")
    dtype = np.result_type(a.dtype, np.complex64)
    return pure_callback(
        _on_host, (core.ShapedArray(a.shape[:-1], dtype), core.ShapedArray(a.shape, dtype)), a,
        vmap_method="broadcast_all")


@custom_jvp
def _with_vectors(a: Any) -> tuple[Any, Any]:
    return _pairs(a)


@_with_vectors.defjvp
def _vectors_vary(primals: tuple, tangents: tuple) -> Any:
    raise NotImplementedError(
        "Derivatives of non-symmetric eigenvectors are only valid under assumptions on the input "
        "that cannot be checked; jnp.linalg.eigvals has a derivative, and so has jnp.linalg.eigh.")


@custom_jvp
def _values(a: Any) -> Any:
    return _pairs(a)[0]


@_values.defjvp
def _values_vary(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    """Each by what the change does to its vector.

    Source: M. Giles, *Collected matrix derivative results* (2008), section 3.1.
    """
    [a], [slope] = primals, tangents
    values, vectors = _pairs(a)
    inside = solve(vectors, lax.batch_matmul(convert(slope, vectors.dtype), vectors))
    n = a.shape[-1]
    own = inside[..., np.arange(n), np.arange(n)]
    return values, own


def eig(a: Inexact) -> EigResult:
    """The eigenvalues and eigenvectors of matrices: ``a @ v[:, i] = w[i] * v[:, i]``.

    Args:
      a: square matrices, floats or complex, of shape (…, n, n).

    Returns:
      Complex numbers: eigenvalues of shape (…, n), in LAPACK's order, and vectors of length 1 as
      columns, of shape (…, n, n).  The numbers are computed on the host.

    >>> eig(np.array([[0., 1.], [-1., 0.]])).eigenvalues
    Array([0.+1.j, 0.-1.j], dtype=complex64)

    Raises:
      ValueError, TypeError: for other than square matrices.
      NotImplementedError: for derivatives of the vectors, and for 16-bit floats.
    """
    return EigResult(*_with_vectors(a))


def eigvals(a: Inexact) -> Array:
    """The eigenvalues of matrices, as complex numbers.

    Args:
      a: square matrices, floats or complex, of shape (…, n, n).

    >>> eigvals(np.array([[2., 0.], [0., 3.]]))
    Array([2.+0.j, 3.+0.j], dtype=complex64)

    Raises:
      ValueError, TypeError: for other than square matrices.
    """
    return _values(a)


public(globals())
