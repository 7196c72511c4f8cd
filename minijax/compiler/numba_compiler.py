"""Compiles the Numba program of a kernel: the second compiler, chosen by the flag `compiler`.

Builds on numba_text.py; Numba is imported at the first use. Chapter 24.
JAX has no counterpart.
"""

import contextlib
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import Avals
from minijax.util import caches

from . import cache, cpu
from .instructions import kind_of
from .loops import Buffer, Kernel
from .numba_text import Program, compute_type

# Numba's own threads run one loop at a time, and end the process if two threads begin one.
_parallel = threading.Lock()


def callable_of(kernel: Kernel, out_avals: Avals) -> Callable[..., list]:
    """The kernel as a function of arrays.

    Raises:
      NotInNumba: for calls and dtypes that Numba programs lack.
      ImportError: without Numba.
    """
    program = Program(kernel)
    run = _compiled(program.module(), program.entry, tuple(
        (str(_dtype(x)), len(x.shape), x.role != "output") for x in (
            *kernel.inputs, *kernel.outputs, *kernel.constants)))
    constants = [_as_stored(np.asarray(x.value), x) for x in kernel.constants]

    alone = _parallel if program.is_parallel else contextlib.nullcontext()

    def call(*inputs: np.ndarray) -> list[np.ndarray]:
        outs = [np.empty(aval.shape, np.dtype(aval.dtype)) for aval in out_avals]
        args = [_as_stored(x, buffer) for x, buffer in zip(
            (*inputs, *outs), (*kernel.inputs, *kernel.outputs), strict=True)]
        with alone:
            run(*args, *constants)
        return outs
    return call


def _dtype(x: Buffer) -> np.dtype:
    """The dtype of the array that a program takes for a buffer."""
    return np.dtype(compute_type(x.dtype)) if kind_of(x.dtype) == "n" else x.dtype


def _as_stored(x: np.ndarray, buffer: Buffer) -> np.ndarray:
    """An array in its buffer's layout: complex numbers as pairs, narrow floats as their bits."""
    x = np.asarray(x, order="C")
    dtype = _dtype(buffer)
    if x.dtype == dtype and x.shape == buffer.shape:
        return x
    return x.reshape(-1).view(dtype).reshape(buffer.shape)


@caches.remembered(maxsize=1024)
def _compiled(text: str, name: str, types: tuple[tuple[str, int, bool], ...]) -> Callable[..., int]:
    """The function of a program, compiled for arrays of these dtypes and ranks, which may be
    read-only.
    """
    def work() -> Callable[..., int]:
        import numba

        function = caches.written(text, name, {"__name__": "minijax_program"})
        signature = tuple(numba.types.Array(numba.from_dtype(np.dtype(dtype)), ndim, "C", readonly)
                          for dtype, ndim, readonly in types)
        processor = function.targetctx.codegen().magic_tuple()
        key = cache.cache_key("\0".join(map(str, (
            text, name, types, numba.__version__, processor, vars(numba.config)["OPT"]))))
        if not _load(function, key):
            function.compile(signature)
            cache.write(key, pickle.dumps(function.overloads[signature]._reduce()))
        return function
    return cpu.undisturbed(work)


def _load(function: Any, key: str) -> bool:
    """Add the machine code under a key of the disk cache to a Numba function; False without it.

    Numba's own cache goes by a file and its time; this one by the text itself.
    """
    if (entry := cache.read(key)) is not None:
        from numba.core.compiler import CompileResult
        with contextlib.suppress(Exception):  # a broken pickle raises whatever its bytes spell
            function.targetctx.refresh()
            function.add_overload(CompileResult._rebuild(function.targetctx, *pickle.loads(entry)))
            return True
    return False
