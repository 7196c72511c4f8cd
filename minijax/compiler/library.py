"""The addresses of what kernels call in other libraries: the C library, BLAS and LAPACK.

Builds on the BLAS inside NumPy's (or else SciPy's) wheel. Chapter 24.
In JAX: jaxlib's LAPACK kernels and XLA's runtime calls (Eigen, oneDNN) play this role.
"""

import ctypes
import importlib
import sys
from functools import cache

class MissingLibrary(ImportError):
    """No library in this process has the machine code of an external."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no machine code for {name!r} was found: neither NumPy's nor SciPy's "
                         "BLAS has it; install one of them from a wheel, or use the numpy backend")


@cache
def c_library() -> ctypes.CDLL:
    """The library of C that this process uses."""
    return ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)


def symbol_in(library: ctypes.CDLL | None, name: str) -> int | None:
    """The address of a symbol in a library and what it links to, or None."""
    symbol = getattr(library, name, None)
    return None if symbol is None else ctypes.cast(symbol, ctypes.c_void_p).value


@cache
def linked_to_blas(module: str) -> ctypes.CDLL | None:
    """An extension module that is linked to BLAS, if it is installed; SciPy's takes a while to
    import.
    """
    try:
        return ctypes.CDLL(importlib.import_module(module).__file__)
    except ImportError:
        return None


NUMPYS, SCIPYS = "numpy.linalg._umath_linalg", "scipy.linalg.cython_lapack"


@cache
def blas(name: str) -> int:
    """The address of a BLAS or LAPACK routine: from NumPy's library, else from SciPy's."""
    for module in (NUMPYS, SCIPYS):
        for pattern in ("scipy_{}_64_", "scipy_{}_", "{}_64_", "{}_"):
            if address := symbol_in(linked_to_blas(module), pattern.format(name)):
                return address
    raise MissingLibrary(name)


def thread_setting() -> dict[str, int]:
    """The addresses of OpenBLAS' functions that get and set its number of threads, if NumPy has it.
    """
    for name in ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_",
                 "openblas_{}_num_threads"):
        get, put = (symbol_in(linked_to_blas(NUMPYS), name.format(verb)) for verb in ("get", "set"))
        if get and put:
            return {"minijax_blas_get": get, "minijax_blas_set": put}
    return {}
