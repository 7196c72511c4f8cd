"""What a factorisation must satisfy, whatever phases, signs and orders LAPACK chose on a processor.

Factors of a matrix are unique only up to such choices, and OpenBLAS's kernels round differently:
the same LAPACK may choose otherwise on another processor. Tests compare what is left.
"""

import ast
from collections.abc import Callable
from typing import Any

import numpy as np


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def scaled(vectors: np.ndarray, values: np.ndarray) -> np.ndarray:
    return vectors * values[..., None, :]


def of_eigh(*factors: np.ndarray) -> list[np.ndarray]:
    values, vectors = sorted(factors, key=np.ndim)  # jax.numpy's order; jax.lax has the other
    return [values, scaled(vectors, values) @ adjoint(vectors), adjoint(vectors) @ vectors]


def of_eig(values: np.ndarray, *vectors: np.ndarray) -> list[np.ndarray]:
    """Values in an order of their own; the matrix, from each set of vectors; their lengths."""
    finite = [np.where(np.isfinite(v).all((-1, -2), keepdims=True), v, np.eye(v.shape[-1]))
              for v in vectors]
    return [np.sort_complex(values.round(4)), *(np.isfinite(v) for v in vectors),
            *(scaled(v, np.nan_to_num(values)) @ np.linalg.inv(v) for v in finite),
            *(np.linalg.norm(v, axis=-2) for v in finite)]


def of_svd(u: np.ndarray, s: np.ndarray, vh: np.ndarray) -> list[np.ndarray]:
    k = s.shape[-1]
    return [s, scaled(u[..., :k], s) @ vh[..., :k, :], adjoint(u) @ u, vh @ adjoint(vh)]


def of_qr(q: np.ndarray, r: np.ndarray, *permutation: np.ndarray) -> list[np.ndarray]:
    return [q @ r, adjoint(q) @ q, np.abs(r), *permutation]


def of_schur(t: np.ndarray, z: np.ndarray) -> list[np.ndarray]:
    """Also the diagonal, which is as ordered as the eigenvalues are."""
    return [z @ t @ adjoint(z), adjoint(z) @ z, np.tril(t, -2), np.diagonal(t, 0, -2, -1)]


def of_hessenberg(h: np.ndarray, q: np.ndarray) -> list[np.ndarray]:
    return [q @ h @ adjoint(q), adjoint(q) @ q, np.tril(h, -2), np.abs(h)]


INVARIANTS: dict[str, Callable[..., list[np.ndarray]]] = {
    "eigh": of_eigh, "eigh_tridiagonal": of_eigh, "eig": of_eig, "svd": of_svd, "qr": of_qr,
    "schur": of_schur, "rsf2csf": of_schur, "scipy.linalg.hessenberg": of_hessenberg}


def invariants(expression: str, value: Any) -> list[np.ndarray] | None:
    """What is compared of an expression's value; None: the value itself.

    It is of a factorisation if its outermost call is of a function that is listed by the end of
    its name, and what comes back has at least two matrices, or one and its values.
    """
    body = ast.parse(expression, mode="eval").body
    name = ast.unparse(body.func) if isinstance(body, ast.Call) else ""
    rule = next((rule for end, rule in INVARIANTS.items() if f".{name}".endswith(f".{end}")), None)
    if rule is None or not isinstance(value, tuple) or len(value) < 2 or "raw" in expression:
        return None
    factors = [np.asarray(x) for x in value]
    if np.isnan(factors[-1]).any() and rule is not of_eig:
        return factors
    return rule(*(x.astype(np.complex128) if x.dtype.kind in "fc" else x for x in factors))
