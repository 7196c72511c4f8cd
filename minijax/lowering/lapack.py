"""Externals from LAPACK: factorisations of matrices, spectra, and triangular systems.

Stands on library.py, and on primitives for what some mean. Matrices lie by columns. Chapter 24.
In JAX: jaxlib's LAPACK kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.linalg import _umath_linalg as gufuncs

from minijax.primitives.linalg import triangular_solve_p

from .library import External, blas, blas_symbols

# What a routine takes, in order: ("letter", "V") a letter that is always the same; ("code", name)
# one that the kernel chooses, as an int64; ("number", name) an int64; ("array", name) an address.
Arguments = Sequence[tuple[str, str]]

# Fortran passes everything by address, and the lengths of letters, all 1, at the end.
DEFINITION = """
declare void @{symbol}({types})
define internal void @{name}({parameters}) noinline nounwind {{
{lines}
{limit}
  call void @{symbol}({passed})
{restore}
  ret void
}}"""

# Threads of the library's own and those of our pool would be in each other's way. A small matrix
# is given to one thread anyway.
LIMIT = """\
  %size = mul i64 %n, %lda
  %large = icmp ugt i64 %size, 4096
  br i1 %large, label %limit, label %call
limit:
  call void @minijax_blas(i64 1)
  br label %call
call:"""
RESTORE = """\
  br i1 %large, label %restore, label %end
restore:
  call void @minijax_blas(i64 -1)
  br label %end
end:"""


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


def _definition(name: str, arguments: Arguments, shares: bool) -> str:
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
        passed=", ".join(passed + ["i64 1"] * letters), limit=LIMIT if shares else "",
        restore=RESTORE if shares else "").lstrip()


def _routine(name: str, arguments: Arguments, meaning: Callable[..., None], shares: bool
             ) -> External:
    return External(name, meaning, partial(_definition, name, arguments, shares),
                    partial(blas_symbols, name), shares)


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


POTRF: Arguments = [
    ("letter", "U"), ("number", "n"), ("array", "a"), ("number", "lda"), ("array", "info")]


def _potrf_meaning(n: int, a: np.ndarray, lda: int, info: np.ndarray) -> None:
    """The lower factor, where rows are rows, in the place of the lower triangle."""
    matrix = a[:n * n].reshape(n, n)
    with np.errstate(all="ignore"):
        factor = gufuncs.cholesky_lo(matrix)
    info[0] = np.isnan(factor).any()
    matrix[np.tril_indices(n)] = factor[np.tril_indices(n)]


GEQRF: Arguments = [
    ("number", "m"), ("number", "n"), ("array", "a"), ("number", "lda"), ("array", "tau"),
    ("array", "work"), ("number", "lwork"), ("array", "info")]
ORGQR: Arguments = [*GEQRF[:2], ("number", "k"), *GEQRF[2:]]


def _geqrf_meaning(m: int, n: int, a: np.ndarray, lda: int, tau: np.ndarray, work: np.ndarray,
                   lwork: int, info: np.ndarray) -> None:
    """R, and below it the reflections that make it."""
    matrix = a[:m * n].reshape(n, m)
    wide = matrix.T.astype(np.float64)
    tau[:min(m, n)] = gufuncs.qr_r_raw(wide)
    matrix[...] = wide.T
    info[0] = 0


def _orgqr_meaning(m: int, n: int, k: int, a: np.ndarray, lda: int, tau: np.ndarray,
                   work: np.ndarray, lwork: int, info: np.ndarray) -> None:
    """The first columns of the product of the reflections."""
    matrix = a[:m * n].reshape(n, m)
    product = gufuncs.qr_complete if n > k else gufuncs.qr_reduced
    matrix[...] = product(matrix[:k].T.astype(np.float64), tau[:k].astype(np.float64)).T
    info[0] = 0


TRSM: Arguments = [
    ("code", "side"), ("code", "uplo"), ("code", "transa"), ("code", "diag"), ("number", "m"),
    ("number", "n"), ("array", "alpha"), ("array", "a"), ("number", "lda"), ("array", "b"),
    ("number", "ldb")]


def _trsm_meaning(side: int, uplo: int, transa: int, diag: int, m: int, n: int, alpha: np.ndarray,
                  a: np.ndarray, lda: int, b: np.ndarray, ldb: int) -> None:
    """As `triangular_solve` has it, of the same matrices with rows for columns."""
    size, unknowns = m if side == ord("L") else n, b[:m * n].reshape(n, m)
    with np.errstate(all="ignore"):
        [unknowns[...]] = triangular_solve_p.impl(
            a[:size * size].reshape(size, size), unknowns, left_side=side == ord("R"),
            lower=uplo == ord("U"), transpose_a=transa == ord("T"), conjugate_a=False,
            unit_diagonal=diag == ord("U"))


ROUTINES: dict[str, External] = {
    real + name: _routine(real + name, arguments, meaning, shares)
    for name, arguments, meaning, shares in (
        ("syevd", EIGH, _eigh_meaning, False), ("gesdd", SVD, _svd_meaning, False),
        ("potrf", POTRF, _potrf_meaning, True), ("trsm", TRSM, _trsm_meaning, True),
        ("geqrf", GEQRF, _geqrf_meaning, True), ("orgqr", ORGQR, _orgqr_meaning, True))
    for real in "sd"}
