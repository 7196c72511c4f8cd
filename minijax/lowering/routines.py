"""Routines of BLAS and LAPACK as externals: products, factorisations, spectra, triangular systems.

Stands on library.py, which finds them. Matrices lie by columns. Chapter 24.
In JAX: jaxlib's LAPACK kernels, and the dot emitters on Eigen and oneDNN.
"""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

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
CTYPES: dict[str, Any] = {"i8": ctypes.c_int8, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
                          "float": ctypes.c_float, "double": ctypes.c_double}


def _arguments(name: str) -> list[tuple[str, str, float | None]]:
    """For each argument its type, its name, and its value where it is always the same."""
    found: list[tuple[str, str, float | None]] = []
    for word in ARGUMENTS[name[1:]].split():
        x = word.strip("=:*")
        if word[0] == "=":
            found.append(("i8", x, ord(x)) if x.isalpha() else (REAL[name[0]], x, float(x)))
        else:
            kind = {"*": "ptr", ":": "i8"}.get(word[-1], blas(name).integer)
            found.append((kind, x, None))
    return found


def _definition(name: str) -> str:
    """LLVM text: Fortran passes everything by address, and the lengths of letters, all 1, last."""
    parameters, lines, passed = [], [], []
    for k, (kind, x, fixed) in enumerate(_arguments(name)):
        place, value = f"%place.{k}", f"%{x}" if fixed is None else str(fixed)
        if fixed is None:
            parameters.append(f"{'ptr' if kind == 'ptr' else 'i64'} %{x}")
            if kind in ("i8", "i32"):
                value = f"%short.{k}"
                lines.append(f"{value} = trunc i64 %{x} to {kind}")
        if kind != "ptr":
            lines += [f"{place} = alloca {kind}", f"store {kind} {value}, ptr {place}"]
        passed.append(f"ptr {value if kind == 'ptr' else place}")
    passed += ["i64 1" for line in lines if line.endswith("= alloca i8")]
    symbol, types = blas(name).symbol(name), [x.split()[0] for x in passed]
    return "\n".join([
        f"declare void @{symbol}({', '.join(types)})",
        f"define internal void @{name}({', '.join(parameters)}) noinline nounwind {{",
        *(f"  {line}" for line in lines), f"  call void @{symbol}({', '.join(passed)})",
        "  ret void", "}"])


def _called(name: str, *args: Any) -> None:
    """The same call from Python."""
    given, passed, letters = iter(args), [], []
    for kind, _, fixed in _arguments(name):
        value: Any = next(given) if fixed is None else fixed
        passed.append(ctypes.c_void_p(value.ctypes.data) if kind == "ptr"
                      else ctypes.byref(CTYPES[kind](value)))
        letters += [ctypes.c_int64(1)] if kind == "i8" else []
    ctypes.CFUNCTYPE(None)(blas(name).address)(*passed, *letters)


ROUTINES = {name: External(name, partial(_called, name), partial(_definition, name),
                           partial(blas_symbols, name))
            for name in [real + each for each in ARGUMENTS for real in REAL]}
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
