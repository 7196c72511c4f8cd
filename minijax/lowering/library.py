"""Named externals: what a kernel may call, what each means, and where its machine code is found.

Stands on NumPy and the BLAS inside NumPy's (or else SciPy's) wheel. Chapter 24.
In JAX: jaxlib's LAPACK kernels and XLA's runtime calls (Eigen, oneDNN) play this role.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

# C functions that LLVM may call of its own accord: block moves, and arithmetic without hardware.
RUNTIME = (
    "memcpy", "memmove", "memset", "bcmp", "fmod", "fmodf", "fma", "fmaf", "floor", "floorf",
    "ceil", "ceilf", "trunc", "truncf", "rint", "rintf", "roundeven", "roundevenf",
)


@dataclass(frozen=True)
class External:
    """A function that a kernel calls by name on addresses and int64 numbers; it returns nothing.

    `meaning` does the same on NumPy arrays: an address arrives as a 1-D array that starts there.
    `definition` is LLVM text defining `@name`; it may call `symbols`, which `locate` finds.
    """

    name: str
    meaning: Callable[..., None]
    definition: Callable[[], str]
    symbols: Callable[[], dict[str, int]]


class MissingLibrary(ImportError):
    """No library with the machine code of an external was found in this process."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no machine code for {name!r} was found: neither NumPy's nor SciPy's "
                         "BLAS has it; install one of them from a wheel, or use the numpy backend")


def external(name: str) -> External:
    """Return the external of this name, or raise KeyError naming those that exist.

    >>> external("sgemm").name
    'sgemm'
    """
    if name not in EXTERNALS:
        raise KeyError(f"there is no external {name!r}; there are {', '.join(EXTERNALS)}")
    return EXTERNALS[name]


def meaning(name: str) -> Callable[..., None]:
    """Return what an external does, in NumPy."""
    return external(name).meaning


def addresses(names: Iterable[str]) -> dict[str, int]:
    """Return where each symbol is that a kernel calling these externals may refer to."""
    found = dict(runtime_addresses())
    for name in names:
        found |= external(name).symbols()
    return found


@cache
def runtime_addresses() -> dict[str, int]:
    """Return where the C functions of RUNTIME are, as far as this process has them."""
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    found = {name: _symbol(library, name) for name in RUNTIME}
    return {name: address for name, address in found.items() if address is not None}


def _symbol(library: ctypes.CDLL, name: str) -> int | None:
    """The address of a symbol in a library and what it links to, or None."""
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None


# Matrix products. BLAS is column-major: a row-major C = A B is its C' = B' A', so the operands
# change places. The Fortran interface passes everything by address.
GEMM = """
declare void @{symbol}(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
define internal void @{name}(i64 %transpose_a, i64 %transpose_b, i64 %m, i64 %n, i64 %k,
    ptr %a, i64 %lda, ptr %b, i64 %ldb, ptr %c, i64 %ldc) noinline {{
  %letters = alloca [2 x i8]
  %numbers = alloca [6 x {integer}]
  %scales = alloca [2 x {real}]
{letters}
{numbers}
  %one = getelementptr {real}, ptr %scales, i64 0
  store {real} 1.0, ptr %one
  %zero = getelementptr {real}, ptr %scales, i64 1
  store {real} 0.0, ptr %zero
  call void @{symbol}(ptr %letter.b, ptr %letter.a, ptr %number.n, ptr %number.m, ptr %number.k,
      ptr %one, ptr %b, ptr %number.ldb, ptr %a, ptr %number.lda,
      ptr %zero, ptr %c, ptr %number.ldc)
  ret void
}}"""

# "T" (84) or "N" (78).
LETTER = """\
  %transposed.{x} = icmp ne i64 %transpose_{x}, 0
  %code.{x} = select i1 %transposed.{x}, i8 84, i8 78
  %letter.{x} = getelementptr i8, ptr %letters, i64 {position}
  store i8 %code.{x}, ptr %letter.{x}"""

# BLAS refuses a stride of zero, which an empty matrix may have.
NUMBER = """\
  %large.{x} = call i64 @llvm.smax.i64(i64 %{x}, i64 {least})
  %short.{x} = {narrow}
  %number.{x} = getelementptr {integer}, ptr %numbers, i64 {position}
  store {integer} %short.{x}, ptr %number.{x}"""


@dataclass(frozen=True)
class Blas:
    """One routine of a BLAS: its address and the width of the integers it takes."""

    address: int
    integer: str

    def symbol(self, name: str) -> str:
        """The name that object code knows it by: the width is part of the agreement."""
        return f"blas_{name}_{self.integer}"


@cache
def blas(name: str) -> Blas:
    """Find a BLAS routine: the one NumPy was built with, else SciPy's."""
    import numpy.linalg._umath_linalg as numpy_blas

    library = ctypes.CDLL(numpy_blas.__file__)
    for pattern, integer in (("scipy_{}_64_", "i64"), ("{}_64_", "i64"), ("{}_", "i32")):
        if address := _symbol(library, pattern.format(name)):
            return Blas(address, integer)
    return _scipy_blas(name)


def _scipy_blas(name: str) -> Blas:
    """SciPy publishes the addresses of its BLAS for Cython; importing it takes half a second."""
    try:
        from scipy.linalg import cython_blas
    except ImportError:
        raise MissingLibrary(name) from None
    capsule = cython_blas.__pyx_capi__[name]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return Blas(get_pointer(capsule, get_name(capsule)), "i32")


def _gemm_definition(name: str, real: str) -> str:
    """The LLVM text of a row-major product C = op(A) op(B) on top of BLAS."""
    routine = blas(name)
    integer = routine.integer
    letters = [LETTER.format(x=x, position=p) for p, x in enumerate("ab")]
    numbers = []
    for position, x in enumerate(("m", "n", "k", "lda", "ldb", "ldc")):
        large = f"%large.{x}"
        narrow = f"trunc i64 {large} to i32" if integer == "i32" else f"add i64 {large}, 0"
        least = 1 if x.startswith("ld") else 0
        numbers.append(NUMBER.format(x=x, position=position, integer=integer, narrow=narrow,
                                     least=least))
    return GEMM.format(name=name, symbol=routine.symbol(name), integer=integer, real=real,
                       letters="\n".join(letters), numbers="\n".join(numbers)).lstrip()


def _gemm_symbols(name: str) -> dict[str, int]:
    routine = blas(name)
    return {routine.symbol(name): routine.address}


def _gemm_meaning(transpose_a: int, transpose_b: int, m: int, n: int, k: int, a: np.ndarray,
                  lda: int, b: np.ndarray, ldb: int, c: np.ndarray, ldc: int) -> None:
    """C = op(A) op(B): matrices stored row by row, `ld` elements from one row to the next."""
    left = _matrix(a, k, m, lda).T if transpose_a else _matrix(a, m, k, lda)
    right = _matrix(b, n, k, ldb).T if transpose_b else _matrix(b, k, n, ldb)
    np.matmul(left, right, out=_matrix(c, m, n, ldc))


def _matrix(start: np.ndarray, rows: int, columns: int, stride: int) -> np.ndarray:
    step = start.itemsize
    return np.lib.stride_tricks.as_strided(start, (rows, columns), (stride * step, step))


def _gemm(name: str, real: str) -> External:
    return External(name, _gemm_meaning, partial(_gemm_definition, name, real),
                    partial(_gemm_symbols, name))


EXTERNALS: dict[str, External] = {
    one.name: one for one in (_gemm("sgemm", "float"), _gemm("dgemm", "double"))
}

