"""Where the machine code is that kernels call: the C library's, and that of BLAS and LAPACK.

Stands on the BLAS inside NumPy's (or else SciPy's) wheel. Chapter 24.
In JAX: jaxlib's LAPACK kernels and XLA's runtime calls (Eigen, oneDNN) play this role.
"""

import ctypes
import sys
from functools import cache

class MissingLibrary(ImportError):
    """No library with the machine code of an external was found in this process."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no machine code for {name!r} was found: neither NumPy's nor SciPy's "
                         "BLAS has it; install one of them from a wheel, or use the numpy backend")


@cache
def c_library() -> ctypes.CDLL:
    """The library of C that this process uses."""
    return ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)


def symbol_in(library: ctypes.CDLL, name: str) -> int | None:
    """The address of a symbol in a library and what it links to, or None."""
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None


@cache
def numpys_library() -> ctypes.CDLL:
    """The extension module of NumPy that links to its BLAS."""
    import numpy.linalg._umath_linalg as numpy_blas

    return ctypes.CDLL(numpy_blas.__file__)


@cache
def blas(name: str) -> int:
    """The address of a routine: of the BLAS that NumPy was built with, else of SciPy's."""
    for pattern in ("scipy_{}_64_", "{}_64_", "{}_"):
        if address := symbol_in(numpys_library(), pattern.format(name)):
            return address
    return _scipy_blas(name)


def _scipy_blas(name: str) -> int:
    """SciPy publishes the addresses of its routines for Cython; importing them takes a while."""
    try:
        from scipy.linalg import cython_blas, cython_lapack
        capsule = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}[name]
    except (ImportError, KeyError):
        raise MissingLibrary(name) from None
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return get_pointer(capsule, get_name(capsule))


def thread_setting() -> dict[str, int]:
    """The functions that get and set the number of OpenBLAS' own threads, where NumPy has it."""
    for name in ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_",
                 "openblas_{}_num_threads"):
        get, put = (symbol_in(numpys_library(), name.format(verb)) for verb in ("get", "set"))
        if get and put:
            return {"minijax_blas_get": get, "minijax_blas_set": put}
    return {}
