"""Memory for large results: what a dead array leaves behind serves the next one.

Stands on NumPy. Chapter 26. In JAX: the BFC allocator of its GPU clients; its CPU client asks the
system each time.
"""

from __future__ import annotations

import ctypes

import numpy as np

from minijax import caches

# Fresh memory from the system costs a page fault every 4 kB, as much as writing it does. Small
# arrays are quicker from NumPy, which keeps their memory itself.
LARGE = 1 << 18
MOST = 1 << 28  # bytes held for nobody
ALIGNMENT = 64  # of a cache line

_free: dict[int, list[np.ndarray]] = {}
caches.cleared_by(_free.clear)


class _Loan:
    """What an array's memory belongs to: when the last view of it goes, so does this.

    NumPy keeps an array's base alive as long as the array, and as long as any view of it.
    """

    memory: np.ndarray

    def __del__(self) -> None:
        give_back(self.memory)


@caches.remembered(maxsize=1024)
def _loan_of(nbytes: int) -> type:
    return type("Loan", (_Loan, ctypes.c_char * nbytes), {})


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array with undefined elements, like `numpy.empty`; large ones in used memory.

    >>> x = empty((1000, 1000), np.dtype(np.float32))
    >>> x.shape, x.dtype
    ((1000, 1000), dtype('float32'))
    """
    nbytes = dtype.itemsize
    for n in shape:
        nbytes *= n
    if nbytes < LARGE:
        return np.empty(shape, dtype)
    try:
        memory = _free[nbytes].pop()  # in one step: no other thread gets it too
    except (KeyError, IndexError):
        memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    loan = _loan_of(nbytes).from_buffer(memory, start)  # type: ignore[attr-defined]
    loan.memory = memory
    return np.ndarray(shape, dtype, loan)


def give_back(memory: np.ndarray) -> None:
    """Keep memory for the next array of its size; what is too much goes back to the system."""
    held = sum(len(each) * nbytes for nbytes, each in list(_free.items()))
    if held + memory.nbytes > MOST:
        _free.clear()
    _free.setdefault(memory.nbytes - ALIGNMENT, []).append(memory)
