"""Sums of NumPy arrays in short chains of additions, which bound the rounding error.

NumPy adds pairwise along the last axis alone.  Chapter 20, *Precision, and where NumPy differs*.
In JAX: XLA's rewriting of reductions into trees.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np

CHAIN = 16      # additions in a row; the sums of chains are added up in the same manner
STRETCH = 4096  # numbers that are added to as many others at once: they stay in the cache
LONG = 256      # the longest sum left to a library of products, which adds up in one chain


def total(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The sum along axes.

    >>> total(np.ones((2, 3)), (0,))
    array([2., 2., 2.])
    """
    shape = x.shape
    if x.dtype.kind not in "fc" or math.prod(shape[d] for d in axes) <= CHAIN:
        return np.add.reduce(x, tuple(axes), dtype=x.dtype)
    runs = [(math.prod(x.shape[d] for d in run), reduced) for reduced, run in
            itertools.groupby(range(x.ndim), lambda d: d in axes)]
    while any(reduced for _, reduced in runs):  # the longest run of axes first: it leaves least
        at = max((k for k, (_, reduced) in enumerate(runs) if reduced), key=lambda k: runs[k][0])
        x = _along(x.reshape(_around([n for n, _ in runs], at)))
        del runs[at]
    return x.reshape([n for d, n in enumerate(shape) if d not in axes])


def _around(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """The shape of the same array whose middle axis is this one."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1:])


def _along(x: np.ndarray) -> np.ndarray:
    """The sum along the middle axis: `CHAIN` stretches of rows at a time."""
    outer, n, inner = x.shape
    while n > (CHAIN if inner > 1 else STRETCH):  # NumPy adds what is left pairwise
        rows = max(min(STRETCH // inner, n // CHAIN), 1)
        whole = n // (CHAIN * rows)
        taken = whole * CHAIN * rows
        sums = np.add.reduce(x[:, :taken].reshape(outer, whole, CHAIN, rows * inner), 2)
        x = np.concatenate([sums.reshape(outer, whole * rows, inner), x[:, taken:]], 1)
        n = x.shape[1]
    return np.add.reduce(x, 1)


def running(x: np.ndarray, axis: int) -> np.ndarray:
    """Every partial sum along an axis.

    >>> running(np.ones(3), 0)
    array([1., 2., 3.])
    """
    if x.dtype.kind not in "fc" or x.shape[axis] <= CHAIN:
        return np.add.accumulate(x, axis, dtype=x.dtype)
    return _prefixes(x.reshape(_around(x.shape, axis))).reshape(x.shape)


def _prefixes(x: np.ndarray) -> np.ndarray:
    """Prefix sums along the middle axis: those of each chain, plus the sum of all chains before."""
    outer, n, inner = x.shape
    whole = n // CHAIN
    if not whole:
        return np.add.accumulate(x, 1)
    out = np.array(x, order="C")
    chains = out[:, :whole * CHAIN].reshape(outer, whole, CHAIN, inner)
    if x.size <= 2 * STRETCH:
        np.add.accumulate(chains, 2, out=chains)
    else:
        for k in range(1, CHAIN):
            chains[:, :, k] += chains[:, :, k - 1]
    before = _prefixes(chains[:, :, -1])
    chains[:, 1:] += before[:, :-1, None]
    rest = out[:, whole * CHAIN:]
    rest[...] = np.add.accumulate(rest, 1) + before[:, -1:]
    return out
