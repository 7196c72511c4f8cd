"""Large matrix products by cuBLAS, which has kernels for each generation of processors.

Builds on routines.py; the first product locates and loads the library.
Chapter 27. In JAX: XLA's thunks for cuBLAS.
"""

import contextlib
import ctypes
import ctypes.util
import importlib.util
import math
import re
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from ..loops import Call, Constant
from ..routines import PRODUCT

# The least size of a product for the library: for short floats only it uses tensor cores; for
# others it has larger tiles than ours.
MIN_TERMS, MIN_SHORT_TERMS = 1 << 24, 1 << 18  # as `sharp_bits.truncation` has it
# As NVIDIA's headers number them: cudaDataType, cublasComputeType_t, cublasOperation_t.
TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}
FP32, TF32, FP64 = 68, 77, 70
NO_TRANSPOSE, TRANSPOSE = 0, 1
ANY_ALGORITHM = -1
# The files of its wheel, with its dependency first.
FILES = (("bin", "cublasLt64_*.dll", "cublas64_*.dll") if sys.platform == "win32"
         else ("lib", "libcublasLt.so.*", "libcublas.so.*"))
INT, LONG, ADDRESS = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
FACTOR = ADDRESS, INT, INT, LONG


class NoCublas(RuntimeError):
    """cuBLAS is missing; the message says what would help."""


@cache
def dtypes_of(external: str) -> tuple[str, str, str, bool]:
    """The dtypes of x, y and z, and whether reduced precision will do."""
    x, y, z, reduced = re.fullmatch(PRODUCT, external).groups()  # type: ignore[union-attr]
    return x, y, z, reduced is not None


def has(call: Call) -> bool:
    """Whether cuBLAS supports a product, and it is large enough."""
    x, y, z, reduced = dtypes_of(call.external)
    is_short = reduced or x in ("float16", "bfloat16")
    terms = math.prod(int(size.value) for size in call.args[-3:] if isinstance(size, Constant))
    return x == y and x in TYPES and z in (x, "float64" if x == "float64" else "float32") and (
        terms >= (MIN_SHORT_TERMS if is_short else MIN_TERMS))


# -- the library -----------------------------------------------------------------------------------


def library_files() -> Iterator[list[str]]:
    """The candidate files of the library, each after its dependencies: from the wheels for CUDA 12
    and 13, from the system.
    """
    folder, *patterns = FILES
    for package in ("nvidia.cublas", "nvidia.cu13"):
        wheel = None
        with contextlib.suppress(ModuleNotFoundError):  # of the package around it
            wheel = importlib.util.find_spec(package)
        for place in (wheel.submodule_search_locations if wheel is not None else None) or ():
            yield [str(path) for pattern in patterns for path in Path(place, folder).rglob(pattern)]
    system = ctypes.util.find_library("cublas")
    yield [system] if system else []


@cache
def library() -> Any:
    """The functions of the library.

    Raises:
      NoCublas: where it is not installed, or cannot be loaded.
    """
    why = "it is not installed"
    for files in filter(None, library_files()):
        try:
            return [ctypes.CDLL(file, ctypes.RTLD_GLOBAL) for file in files][-1]
        except OSError as error:
            why = f"{files[-1]} cannot be loaded, {error}"
    raise NoCublas(f"large products on a GPU need NVIDIA's cuBLAS ({why}): "
                   "pip install 'minijax[cuda]'")


def done(status: int, what: str) -> None:
    """Raise unless a function of the library has succeeded.

    Raises:
      RuntimeError: with the library's own words for what it has said.
    """
    if status:
        name = library().cublasGetStatusString
        name.restype = ctypes.c_char_p
        raise RuntimeError(f"INTERNAL: cuBLAS: {name(status).decode()}, said to {what}")


@cache
def handle(gpu: Any) -> tuple[Any, Any]:
    """The cuBLAS handle of a GPU, on its stream, with a lock: it is for one thread at a time."""
    gpu.enter()
    cublas = ADDRESS()
    done(library().cublasCreate_v2(ctypes.byref(cublas)), f"begin on {gpu.name}")
    done(library().cublasSetStream_v2(cublas, ADDRESS(int(gpu.stream))), "work in a stream")
    return cublas, threading.Lock()


def routine(external: str, gpu: Any) -> Callable[..., None] | None:
    """The implementation of a call on a GPU, from addresses and numbers; None if it is no product.
    """
    return partial(_product, external, gpu) if re.fullmatch(PRODUCT, external) else None


def _product(external: str, gpu: Any, x: int, *rest: Any) -> None:
    """cuBLAS is column-major: it computes the transposed product, with the sides swapped."""
    *steps_of_x, y, a, b, c, z, batch, m, n, k = map(int, rest)
    kind_of_x, kind_of_y, kind_of_z, reduced = dtypes_of(external)
    is_double = kind_of_x == "float64"
    one, zero = map(ctypes.c_double if is_double else ctypes.c_float, (1, 0))
    compute_type = FP64 if is_double else TF32 if reduced else FP32

    def factor(address: int, kind: str, steps: list[int], rows: int) -> tuple[bool, tuple]:
        matrix, row, term = steps
        is_transposed = term != 1  # rows are neighbours, not terms
        leading = max(term, rows) if is_transposed else max(row, k)
        return is_transposed, (address, TYPES[kind], leading, matrix)
    transpose_x, factor_x = factor(x, kind_of_x, steps_of_x, m)
    transpose_y, factor_y = factor(y, kind_of_y, [a, b, c], n)
    gemm = library().cublasGemmStridedBatchedEx
    gemm.argtypes = [ADDRESS, INT, INT, INT, INT, INT, ADDRESS, *FACTOR, *FACTOR, ADDRESS, *FACTOR,
                     INT, INT, INT]
    cublas, lock = handle(gpu)
    with lock:
        gpu.enter()
        done(gemm(cublas, NO_TRANSPOSE if transpose_y else TRANSPOSE,
                  TRANSPOSE if transpose_x else NO_TRANSPOSE,
                  n, m, k, ctypes.addressof(one), *factor_y, *factor_x, ctypes.addressof(zero),
                  z, TYPES[kind_of_z], n, m * n, batch, compute_type, ANY_ALGORITHM), external)
