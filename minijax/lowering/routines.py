"""Routines of BLAS and LAPACK as externals: products, factorisations, spectra, triangular systems.

Stands on library.py, which finds them, and on primitives for what some mean. Matrices lie by
columns. Chapter 24. In JAX: jaxlib's LAPACK kernels, and the dot emitters on Eigen and oneDNN.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.linalg import _umath_linalg as gufuncs

from minijax.primitives.linalg import triangular_solve_p

from .host import host_call, is_host_call
from .library import ALONE, External, blas, blas_symbols

# What a routine takes, in order: "=U" and "=1.0" are always the same, "uplo:" is a letter that the
# kernel chooses, as an int64, "n" a number, also int64, "a*" an address. `work` and `iwork` are
# room for as many numbers as `lwork` and `liwork` say; `info` is 0 where the routine succeeded.
ARGUMENTS = {
    "gemm": "transa: transb: m n k =1.0 a* lda b* ldb =0.0 c* ldc",
    "trsm": "side: uplo: transa: diag: m n =1.0 a* lda b* ldb",
    "potrf": "=U n a* lda info*",
    "geqrf": "m n a* lda tau* work* lwork info*",
    "orgqr": "m n k a* lda tau* work* lwork info*",
    "syevd": "=V uplo: n a* lda w* work* lwork iwork* liwork info*",
    "gesdd": "jobz: m n a* lda s* u* ldu vt* ldvt work* lwork iwork* info*",
}
REAL = {"s": "float", "d": "double"}


def _definition(letter: str, name: str) -> str:
    """LLVM text: Fortran passes everything by address, and the lengths of letters, all 1, last."""
    routine = blas(letter + name)
    parameters, lines, passed = [], [], []
    for k, word in enumerate(ARGUMENTS[name].split()):
        x, place = word.strip("=:*"), f"%place.{k}"
        if word[0] == "=":
            kind, value = ("i8", str(ord(x))) if x.isalpha() else (REAL[letter], x)
        elif word[-1] == "*":
            parameters.append(f"ptr %{x}")
            passed.append(f"ptr %{x}")
            continue
        else:
            parameters.append(f"i64 %{x}")
            kind, value = "i8" if word[-1] == ":" else routine.integer, f"%{x}"
            if kind != "i64":
                value = f"%short.{k}"
                lines.append(f"{value} = trunc i64 %{x} to {kind}")
        lines += [f"{place} = alloca {kind}", f"store {kind} {value}, ptr {place}"]
        passed.append(f"ptr {place}")
    passed += ["i64 1" for line in lines if line.endswith("= alloca i8")]
    symbol, types = routine.symbol(letter + name), [x.split()[0] for x in passed]
    return "\n".join([
        f"declare void @{symbol}({', '.join(types)})",
        f"define internal void @{letter}{name}({', '.join(parameters)}) noinline nounwind {{",
        *(f"  {line}" for line in lines), f"  call void @{symbol}({', '.join(passed)})",
        "  ret void", "}"])


# -- what they mean --------------------------------------------------------------------------------


def _gemm(transa: int, transb: int, m: int, n: int, k: int, a: np.ndarray, lda: int, b: np.ndarray,
          ldb: int, c: np.ndarray, ldc: int) -> None:
    """C = op(A) op(B), where a column begins `ld` numbers after the one before it."""
    left = _rows(a, m, k, lda) if transa == ord("T") else _rows(a, k, m, lda).T
    right = _rows(b, k, n, ldb) if transb == ord("T") else _rows(b, n, k, ldb).T
    np.matmul(right.T, left.T, out=_rows(c, n, m, ldc))


def _rows(start: np.ndarray, rows: int, columns: int, stride: int) -> np.ndarray:
    step = start.itemsize
    return np.lib.stride_tricks.as_strided(start, (rows, columns), (stride * step, step))


def _trsm(side: int, uplo: int, transa: int, diag: int, m: int, n: int, a: np.ndarray, lda: int,
          b: np.ndarray, ldb: int) -> None:
    """As `triangular_solve` has it, of the same matrices with rows for columns."""
    size, unknowns = m if side == ord("L") else n, b[:m * n].reshape(n, m)
    with np.errstate(all="ignore"):
        [unknowns[...]] = triangular_solve_p.impl(
            a[:size * size].reshape(size, size), unknowns, left_side=side == ord("R"),
            lower=uplo == ord("U"), transpose_a=transa == ord("T"), conjugate_a=False,
            unit_diagonal=diag == ord("U"))


def _potrf(n: int, a: np.ndarray, lda: int, info: np.ndarray) -> None:
    """The lower factor, where rows are rows, in the place of the lower triangle."""
    matrix = a[:n * n].reshape(n, n)
    with np.errstate(all="ignore"):
        factor = gufuncs.cholesky_lo(matrix)
    info[0] = np.isnan(factor).any()
    matrix[np.tril_indices(n)] = factor[np.tril_indices(n)]


def _geqrf(m: int, n: int, a: np.ndarray, lda: int, tau: np.ndarray, work: np.ndarray,
           lwork: int, info: np.ndarray) -> None:
    """R, and below it the reflections that make it."""
    matrix = a[:m * n].reshape(n, m)
    wide = matrix.T.astype(np.float64)
    tau[:min(m, n)] = gufuncs.qr_r_raw(wide)
    matrix[...] = wide.T
    info[0] = 0


def _orgqr(m: int, n: int, k: int, a: np.ndarray, lda: int, tau: np.ndarray,
           work: np.ndarray, lwork: int, info: np.ndarray) -> None:
    """The first columns of the product of the reflections."""
    matrix = a[:m * n].reshape(n, m)
    product = gufuncs.qr_complete if n > k else gufuncs.qr_reduced
    matrix[...] = product(matrix[:k].T.astype(np.float64), tau[:k].astype(np.float64)).T
    info[0] = 0


def _syevd(uplo: int, n: int, a: np.ndarray, lda: int, w: np.ndarray, work: np.ndarray,
           lwork: int, iwork: np.ndarray, liwork: int, info: np.ndarray) -> None:
    """Replace the matrix by its eigenvectors, one after the other."""
    matrix = a[:n * n].reshape(n, n)
    lapack = gufuncs.eigh_lo if uplo == ord("L") else gufuncs.eigh_up
    with np.errstate(all="ignore"):
        w[:n], vectors = lapack(matrix.T)
    matrix[...] = vectors.T
    info[0] = np.isnan(w[:n]).any()


def _gesdd(jobz: int, m: int, n: int, a: np.ndarray, lda: int, s: np.ndarray,
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


# -- by name ---------------------------------------------------------------------------------------

MEANINGS: tuple[Callable[..., None], ...] = (_gemm, _trsm, _potrf, _geqrf, _orgqr, _syevd, _gesdd)
ROUTINES: dict[str, External] = {
    letter + name: External(letter + name, meaning, partial(_definition, letter, name),
                            partial(blas_symbols, letter + name))
    for name, meaning in zip(ARGUMENTS, MEANINGS, strict=True) for letter in REAL}
EXTERNALS = ROUTINES | {ALONE: External(ALONE, lambda change: None, lambda: "")}


def external(name: str) -> External:
    """Return the external of this name, or raise KeyError naming those that exist.

    >>> external("sgemm").name
    'sgemm'
    """
    if is_host_call(name):
        return host_call(name)
    if name not in EXTERNALS:
        raise KeyError(f"there is no external {name!r}; there are {', '.join(EXTERNALS)}")
    return EXTERNALS[name]
