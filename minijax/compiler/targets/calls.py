"""Host calls of device programs: LAPACK routines and Python functions, on copies of buffers.

Builds on library.py and host.py; the arrays are copies in the host's memory. Chapter 27.
In JAX: jaxlib's cuSOLVER kernels, and its Python callbacks on GPUs.
"""

import ctypes
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minijax.primitives.slots import computed_in

from .. import host, library, routines


def meaning(external: str) -> Callable[..., None]:
    """The NumPy implementation of an external; an address becomes the 1-D array that begins there.
    """
    if external == routines.ALONE:
        return lambda change: None
    if external == host.CALL:
        return _python
    if re.fullmatch(routines.PRODUCT, external):
        return _product
    return partial(_routine, external.removeprefix(routines.LIBRARY))


def _routine(name: str, *args: Any) -> None:
    """Call a Fortran routine: all arguments by address, string lengths last."""
    real = {"s": ctypes.c_float, "d": ctypes.c_double}[name[0]]

    def passed(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return ctypes.c_void_p(x.ctypes.data)
        is_real = isinstance(x, float | np.floating)
        return ctypes.byref(real(float(x)) if is_real else ctypes.c_int64(int(x)))
    lengths = [ctypes.c_int64(1) for _ in routines.LENGTHS]
    ctypes.CFUNCTYPE(None)(library.blas(name))(*map(passed, args), *lengths)


def _product(x: np.ndarray, *rest: Any) -> None:
    """z = x times y, for strided stacks of matrices."""
    *steps_of_x, y, a, b, c, z, batch, m, n, k = rest
    wide = computed_in(z.dtype)

    def stack(values: np.ndarray, shape: tuple[int, ...], *steps: int) -> np.ndarray:
        strides = [int(each) * values.itemsize for each in steps]
        return np.lib.stride_tricks.as_strided(values, shape, strides).astype(wide)
    product = stack(x, (batch, m, k), *steps_of_x) @ stack(y, (batch, k, n), a, c, b)
    z[:product.size] = product.ravel().astype(z.dtype)


def _python(table: np.ndarray, *arrays: np.ndarray) -> None:
    row = (ctypes.c_void_p * len(arrays))(*[x.ctypes.data for x in arrays])
    ctypes.cast(int(table[0]), ctypes.py_object).value(ctypes.addressof(row))
