"""Externals from LAPACK: eigenvalues of symmetric matrices, singular values.

Stands on library.py. Matrices lie column by column, as Fortran has them. Chapter 24.
In JAX: jaxlib's LAPACK kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.linalg import _umath_linalg as gufuncs

from .library import External, blas, blas_symbols

# What a routine takes, in order: ("letter", "V") a letter that is always the same; ("code", name)
# one that the kernel chooses, as an int64; ("number", name) an int64; ("array", name) an address.
Arguments = Sequence[tuple[str, str]]

# Fortran passes everything by address, and the lengths of letters, all 1, at the end.
DEFINITION = """
declare void @{symbol}({types})
define internal void @{name}({parameters}) noinline nounwind {{
{lines}
  call void @{symbol}({passed})
  ret void
}}"""


def _by_address(kind: str, name: str, integer: str) -> list[str]:
    """The lines that put one argument into memory."""
    place, width = f"%{name}.place", "i8" if kind in ("letter", "code") else integer
    value = f"%{name}.value"
    lines = [f"{place} = alloca {width}"]
    if kind == "letter":
        value = str(ord(name))
    elif kind == "code" or integer == "i32":
        lines.append(f"{value} = trunc i64 %{name} to {width}")
    else:
        value = f"%{name}"
    return [*lines, f"store {width} {value}, ptr {place}"]


def _definition(name: str, arguments: Arguments) -> str:
    routine = blas(name)
    given = [(kind, x) for kind, x in arguments if kind != "letter"]
    parameters = [f"{'ptr' if kind == 'array' else 'i64'} %{x}" for kind, x in given]
    stored = [(kind, x) for kind, x in arguments if kind != "array"]
    lines = [f"  {line}" for kind, x in stored
             for line in _by_address(kind, x, routine.integer)]
    letters = sum(kind in ("letter", "code") for kind, _ in arguments)
    passed = [f"ptr %{x}" if kind == "array" else f"ptr %{x}.place" for kind, x in arguments]
    return DEFINITION.format(
        name=name, symbol=routine.symbol(name), parameters=", ".join(parameters),
        types=", ".join(["ptr"] * len(arguments) + ["i64"] * letters), lines="\n".join(lines),
        passed=", ".join(passed + ["i64 1"] * letters)).lstrip()


def _routine(name: str, arguments: Arguments, meaning: Callable[..., None]) -> External:
    return External(name, meaning, partial(_definition, name, arguments),
                    partial(blas_symbols, name))


# `work` and `iwork` are room for as many numbers as `lwork` and `liwork` say; `info` is 0 where
# the routine succeeded.

EIGH: Arguments = [
    ("letter", "V"), ("code", "uplo"), ("number", "n"), ("array", "a"), ("number", "lda"),
    ("array", "w"), ("array", "work"), ("number", "lwork"), ("array", "iwork"),
    ("number", "liwork"), ("array", "info")]


def _eigh_meaning(uplo: int, n: int, a: np.ndarray, lda: int, w: np.ndarray, work: np.ndarray,
                  lwork: int, iwork: np.ndarray, liwork: int, info: np.ndarray) -> None:
    """Replace the matrix by its eigenvectors, one after the other."""
    matrix = a[:n * n].reshape(n, n)
    lapack = gufuncs.eigh_lo if uplo == ord("L") else gufuncs.eigh_up
    with np.errstate(all="ignore"):
        w[:n], vectors = lapack(matrix.T)
    matrix[...] = vectors.T
    info[0] = np.isnan(w[:n]).any()


SVD: Arguments = [
    ("code", "jobz"), ("number", "m"), ("number", "n"), ("array", "a"), ("number", "lda"),
    ("array", "s"), ("array", "u"), ("number", "ldu"), ("array", "vt"), ("number", "ldvt"),
    ("array", "work"), ("number", "lwork"), ("array", "iwork"), ("array", "info")]


def _svd_meaning(jobz: int, m: int, n: int, a: np.ndarray, lda: int, s: np.ndarray,
                 u: np.ndarray, ldu: int, vt: np.ndarray, ldvt: int, work: np.ndarray,
                 lwork: int, iwork: np.ndarray, info: np.ndarray) -> None:
    """The singular values, and the vectors that go with them, one after the other."""
    matrix, size = a[:m * n].reshape(n, m).T, min(m, n)
    lapack = gufuncs.svd_f if jobz == ord("A") else gufuncs.svd_s
    with np.errstate(all="ignore"):
        left, s[:size], right = lapack(matrix)
    if jobz != ord("N"):
        u[:left.size] = left.T.ravel()
        vt[:right.size] = right.T.ravel()
    info[0] = np.isnan(s[:size]).any()


ROUTINES: dict[str, External] = {
    real + name: _routine(real + name, arguments, meaning)
    for name, arguments, meaning in (("syevd", EIGH, _eigh_meaning),
                                     ("gesdd", SVD, _svd_meaning))
    for real in "sd"}
