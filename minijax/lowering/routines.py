"""What a kernel may call by name, on addresses and int64 numbers: routines of BLAS and LAPACK.

Stands on library.py, which finds them, and host.py. Matrices lie by columns. Chapter 24.
In JAX: jaxlib's LAPACK kernels, and the dot emitters on Eigen and oneDNN.
"""

import re

from . import host
from .library import blas

# What a routine takes, in order: "=U" and "=1.0" are always the same, "uplo:" is a letter that the
# kernel chooses, as an int64, "n" a number, also int64, "a*" an address. `work` and `iwork` are
# room for as many numbers as `lwork` and `liwork` say; `info` is 0 where the routine succeeded.
ARGUMENTS = {
    "gemm": "transa: transb: m n k =1.0 a* lda b* ldb =0.0 c* ldc",
    "trsm": "side: uplo: transa: diag: m n =1.0 a* lda b* ldb",
    "potrf": "=U n a* lda info*",
    "getrf": "m n a* lda ipiv* info*",
    "geqrf": "m n a* lda tau* work* lwork info*",
    "orgqr": "m n k a* lda tau* work* lwork info*",
    "syevd": "=V uplo: n a* lda w* work* lwork iwork* liwork info*",
    "gesdd": "jobz: m n a* lda s* u* ldu vt* ldvt work* lwork iwork* info*",
}

REAL = {"s": "float", "d": "double"}
ROUTINES = [real + name for name in ARGUMENTS for real in REAL]
ALONE = "minijax_blas"  # of pool.py: from 1 to -1 the library uses one thread


def definition(name: str) -> str:
    """LLVM text that defines what kernels call by this name.

    Raises:
      KeyError: naming those that exist.
    """
    if host.is_host_call(name):
        return host.definition(name)
    if name not in (*ROUTINES, ALONE):
        raise KeyError(f"there is no external {name!r}; there are {', '.join(ROUTINES)}")
    return _routine(name) if name in ROUTINES else ""


def symbols(name: str) -> dict[str, int]:
    """What the definition calls, and where that is: for a routine, the library's own."""
    return {f"blas_{name}": blas(name)} if name in ROUTINES else {}


def _routine(name: str) -> str:
    """Fortran passes everything by address, and the lengths of letters, all 1, last.

    The address of an int64 is also that of its low bytes: of a letter, or of an int32, whichever
    integers the library has.
    """
    parameters: list[str] = []
    lines: list[str] = []
    passed: list[str] = []
    for word in ARGUMENTS[name[1:]].split():
        x = word.strip("=:*")
        if word[0] == "=":
            value = f"i64 {ord(x)}" if x.isalpha() else f"{REAL[name[0]]} {x}"
        else:
            value = f"ptr %{x}" if word[-1] == "*" else f"i64 %{x}"
            parameters.append(value)
        if word[-1] != "*":
            place = f"%place.{len(passed)}"
            lines += [f"{place} = alloca {value.split()[0]}", f"store {value}, ptr {place}"]
            value = f"ptr {place}"
        passed.append(value)
    passed += ["i64 1"] * len(re.findall("=[A-Z]|:", ARGUMENTS[name[1:]]))
    types = ", ".join(x.split()[0] for x in passed)
    return "\n".join([
        f"declare void @blas_{name}({types})",
        f"define internal void @{name}({', '.join(parameters)}) noinline nounwind {{",
        *(f"  {line}" for line in lines), f"  call void @blas_{name}({', '.join(passed)})",
        "  ret void", "}"])
