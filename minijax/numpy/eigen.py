"""Eigenvalues of matrices of any kind, by LAPACK on the host.

Stands on `lax.linalg`.  Chapter 10, for the rule of their derivative.
In JAX: `jax/_src/lax/linalg.py`.
"""

from __future__ import annotations

from collections import namedtuple

from minijax import lax
from minijax.core import Array
from minijax.numpy.arguments import Inexact, public

EigResult = namedtuple("EigResult", "eigenvalues eigenvectors")


def eig(a: Inexact) -> EigResult:
    """The eigenvalues and eigenvectors of matrices: ``a @ v[:, i] = w[i] * v[:, i]``.

    Args:
      a: square matrices, floats or complex, of shape (…, n, n).

    Returns:
      Complex numbers: eigenvalues of shape (…, n), in LAPACK's order, and vectors of length 1 as
      columns, of shape (…, n, n).  The numbers are computed on the host.

    >>> import numpy as np
    >>> eig(np.array([[0., 1.], [-1., 0.]])).eigenvalues
    Array([0.+1.j, 0.-1.j], dtype=complex64)

    Raises:
      ValueError, TypeError: for other than square matrices.
      NotImplementedError: for derivatives of the vectors, and for 16-bit floats.
    """
    return EigResult(*lax.linalg.eig(a, compute_left_eigenvectors=False))


def eigvals(a: Inexact) -> Array:
    """The eigenvalues of matrices, as complex numbers.

    Args:
      a: square matrices, floats or complex, of shape (…, n, n).

    >>> import numpy as np
    >>> eigvals(np.array([[2., 0.], [0., 3.]]))
    Array([2.+0.j, 3.+0.j], dtype=complex64)

    Raises:
      ValueError, TypeError: for other than square matrices.
    """
    return lax.linalg.eig(a, compute_left_eigenvectors=False,
                          compute_right_eigenvectors=False)[0]


public(globals())
