"""An allocator for large results and workspaces: freed memory is reused.

Builds on NumPy. Chapter 26. In JAX: the BFC allocator of its GPU clients; its CPU client asks the
system each time.
"""

import math

import numpy as np

from minijax.util import caches

from .memory import ALIGNMENT

# New memory from the system costs a page fault every 4 kB, as much as writing it does. Small
# arrays are quicker from NumPy, which pools them itself.
MIN_POOLED = 1 << 18
MAX_HELD = 1 << 27  # bytes held for reuse


# Free memory by its size, the most recent last. Arrays die anywhere, inside this module too, so
# there are no locks: each step is an atomic operation of a dict or a list. In a race, memory may go
# back to the system that could have been kept.
_free: dict[int, list[np.ndarray]] = {}
caches.cleared_by(_free.clear)


def release(memory: np.ndarray) -> None:
    """Keep freed memory for a later array of the same size; beyond the limit that of the sizes
    which were not asked for lately is released to the system.
    """
    size = memory.nbytes
    excess = held_bytes() + size - MAX_HELD  # once: there may be many sizes
    if excess > 0 and size <= MAX_HELD:
        for other, arrays in list(_free.items()):
            while arrays and other != size and excess > 0:
                del arrays[-1:]
                excess -= other
    if excess <= 0:
        _free[size] = [*_free.pop(size, []), memory]


def held_bytes() -> int:
    """The number of bytes held for reuse."""
    return sum(size * len(arrays) for size, arrays in list(_free.items()))


class _PooledMemory:
    """The base of an array in pooled memory; it dies with the array's last view.

    NumPy keeps an array's base alive as long as the array, and as long as any view of it.
    """

    def __init__(self, memory: np.ndarray):
        start = memory.ctypes.data
        self.memory = memory
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (memory.nbytes - ALIGNMENT,),
            "data": (start + -start % ALIGNMENT, False)}

    def __del__(self) -> None:
        if _free is not None:  # as it is when Python ends and clears its modules
            release(self.memory)


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An uninitialised array, like `numpy.empty`; a large one reuses memory.

    >>> x = empty((1000, 1000), np.dtype(np.float32))
    >>> x.shape, x.dtype
    ((1000, 1000), dtype('float32'))
    """
    nbytes = math.prod(shape, start=dtype.itemsize)
    if nbytes < MIN_POOLED:
        return np.empty(shape, dtype)
    step = 1 << max(nbytes.bit_length() - 4, 12)
    size = -(-nbytes // step) * step + ALIGNMENT  # one of few size classes
    try:
        memory = _free[size].pop()  # atomic: no other thread gets it too
    except (KeyError, IndexError):
        _free.pop(size, None)
        memory = np.empty(size, np.uint8)
    return np.ndarray(shape, dtype, np.asarray(_PooledMemory(memory)))
