"""Calls from machine code back into Python: a callable object that takes the arguments' address.

Builds on NumPy. A kernel finds the object's address in a constant buffer, so its code does not
depend on the process; interrupts.py has the machine code of the call. Chapter 26. In JAX:
`xla_python_gpu_callback` and its CPU kin.
"""

import ctypes
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.util.callback_errors import raised_by_callback

CALL = "host_call"  # the external with a table and the arguments of its function
# The status of a kernel whose host function has raised; and, plus the number of a loop, that of one
# in which a signal handler has.
RAISED, INTERRUPTED = 1, 2
raised: dict[int, BaseException] = {}  # the error that ended a kernel, by thread


class Table(np.ndarray):
    """A constant buffer with the address of an object; it, and each view, keeps that alive."""

    function: Callable[[int], None]


def table(function: Callable[..., Any], types: Sequence[tuple[tuple[int, ...], np.dtype]],
          count: int, views: bool = False) -> Table:
    """The table by which machine code calls a Python function of arrays of fixed types.

    Args:
      function: takes copies of the first arrays, and returns the contents of the others.
      types: (shape, dtype) of each array.
      count: how many arrays are inputs.
      views: whether the function, which only reads them, takes the first arrays themselves.
    """
    def run(pointers: int) -> None:
        # The first argument is a flag, which tells the kernel that the function has raised.
        flag, *places = (ctypes.c_void_p * (1 + len(types))).from_address(pointers)
        arrays = [_array_at(place, *kind) for place, kind in zip(places, types, strict=True)]
        try:
            inputs = arrays[:count]
            results = function(*(inputs if views else [x.copy() for x in inputs]))
            for out, x in zip(arrays[count:], results, strict=True):
                out[...] = x
        except BaseException as error:  # nothing may unwind through machine code
            raised[threading.get_ident()] = raised_by_callback(error)
            ctypes.c_int64.from_address(flag or 0).value = RAISED

    result = Table((1,), np.uint64)
    result.function, result[0] = run, id(run)
    return result


def _array_at(place: int | None, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A view of the array at an address, valid during a call."""
    memory: Any = (ctypes.c_char * (math.prod(shape) * dtype.itemsize)).from_address(place or 0)
    return np.ndarray(shape, dtype, memory)


def reraise(status: int = RAISED, describe_loop: Callable[[int], str] = str) -> None:
    """Raise the error that ended this thread's kernel with a status.

    For an error of a signal handler, `describe_loop` describes the loop of a number, which it
    interrupted.
    """
    error = raised.pop(threading.get_ident())
    if status >= INTERRUPTED:
        message = describe_loop(status - INTERRUPTED)
        if type(error) is KeyboardInterrupt and not error.args:
            error.args = (message,)
        else:
            error.add_note(message)
    raise error
