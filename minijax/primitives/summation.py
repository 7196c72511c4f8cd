"""Sums and products of NumPy arrays: of few numbers in XLA's order, of many in short chains.

NumPy adds pairwise along the last axis alone.  Chapter 20, *Precision, and where NumPy differs*.
In XLA: `TreeReductionRewriter`, which reduces windows of 32 first.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.primitives.axes import replaced

WINDOW = 32     # elements along an axis that are combined one after the other
FEW = 4096      # of fewer elements the order is XLA's, which on vectors has no fixed one
CHAIN = 16      # additions in a row; the sums of chains are added up in the same manner
STRETCH = 4096  # numbers that are added to as many others at once: they stay in the cache
LONG = 256      # the longest sum left to a library of products, which adds up in one chain


def total(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The sum along axes.

    >>> total(np.ones((2, 3)), (0,))
    array([2., 2., 2.])
    """
    shape = x.shape
    if has_order("add", x):
        return in_order(np.add, x, axes)
    if x.dtype.kind not in "fc" or math.prod(shape[d] for d in axes) <= CHAIN:
        return np.add.reduce(x, tuple(axes), dtype=x.dtype)
    runs = [(math.prod(x.shape[d] for d in run), reduced) for reduced, run in
            itertools.groupby(range(x.ndim), lambda d: d in axes)]
    while any(reduced for _, reduced in runs):  # the longest run of axes first: it leaves least
        at = max((k for k, (_, reduced) in enumerate(runs) if reduced), key=lambda k: runs[k][0])
        x = _along(x.reshape(_around([n for n, _ in runs], at)))
        del runs[at]
    return x.reshape([n for d, n in enumerate(shape) if d not in axes])


def has_order(op: str, x: Any) -> bool:
    """Whether elements of an array or a type are combined in one order, compiled or not."""
    return op in ("add", "mul") and dtypes.issubdtype(x.dtype, np.inexact) and x.size < FEW


def product(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The product along axes.

    >>> product(np.full((2, 3), 2.), (0,))
    array([4., 4., 4.])
    """
    if has_order("mul", x):
        return in_order(np.multiply, x, axes)
    return np.multiply.reduce(x, tuple(axes), dtype=x.dtype)


def in_order(ufunc: np.ufunc, x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """Elements along axes combined one after the other; windows of long axes first.

    >>> in_order(np.add, np.ones((2, 50)), (1,))
    array([50., 50.])
    """
    axes = sorted(axes)
    kept = [d for d in range(x.ndim) if d not in axes]
    shape = [x.shape[d] for d in kept]
    x = x.transpose(*kept, *axes)
    while any(n > WINDOW for n in x.shape[len(kept):]):
        x = _in_windows(ufunc, x, len(kept))
    x = x.reshape(*shape, math.prod(x.shape[len(kept):]))
    if not x.shape[-1]:
        return np.full(shape, ufunc.identity, x.dtype)
    return x[..., 0] if x.shape[-1] == 1 else chain(x, ufunc)


def chain(x: np.ndarray, ufunc: np.ufunc = np.add) -> Any:
    """Elements along the last axis combined one after the other, the first one with the identity.

    >>> chain(np.ones((2, 3)))
    array([3., 3.])
    """
    totals = ufunc.accumulate(x, -1, dtype=x.dtype)
    return ufunc(totals[..., -1], x.dtype.type(ufunc.identity))


def _in_windows(ufunc: np.ufunc, x: np.ndarray, ndim: int) -> np.ndarray:
    """Combine the elements of each window of the axes after the first `ndim`."""
    shape = list(x.shape[:ndim])
    for d in range(ndim, x.ndim):
        n, (count, lacking) = x.shape[d], windows(x.shape[d])
        if count > 1:
            before, after = (
                np.full(replaced(x.shape, d, m), ufunc.identity, x.dtype)
                for m in (lacking, count * WINDOW - n - lacking))
            x = np.concatenate([before, x, after], d)
        shape += [count, x.shape[d] // count]
    return in_order(ufunc, x.reshape(shape), range(ndim + 1, len(shape), 2))


def windows(n: int) -> tuple[int, int]:
    """How many windows an axis is cut into, and how many elements the first one lacks; the last
    one lacks as many, or one more.

    >>> windows(70)  # 19 elements, 32, and 19
    (3, 13)
    """
    count = -(-n // WINDOW) if n > WINDOW else 1
    return count, (count * WINDOW - n) // 2 if count > 1 else 0


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


def running(ufunc: np.ufunc, x: np.ndarray, axis: int) -> np.ndarray:
    """Every partial result along an axis.

    >>> running(np.add, np.ones(3), 0)
    array([1., 2., 3.])
    """
    if x.dtype.kind not in "fc" or x.shape[axis] <= CHAIN:
        return ufunc.accumulate(x, axis, dtype=x.dtype)
    return _prefixes(ufunc, x.reshape(_around(x.shape, axis))).reshape(x.shape)


def _prefixes(ufunc: np.ufunc, x: np.ndarray) -> np.ndarray:
    """Partial results along the middle axis: those of each chain, with that of all chains before.
    """
    outer, n, inner = x.shape
    whole = n // CHAIN
    if not whole:
        return ufunc.accumulate(x, 1)
    out = np.array(x, order="C")
    chains = out[:, :whole * CHAIN].reshape(outer, whole, CHAIN, inner)
    if x.size <= 2 * STRETCH:
        ufunc.accumulate(chains, 2, out=chains)
    else:
        for k in range(1, CHAIN):
            ufunc(chains[:, :, k], chains[:, :, k - 1], out=chains[:, :, k])
    before = _prefixes(ufunc, chains[:, :, -1])
    ufunc(chains[:, 1:], before[:, :-1, None], out=chains[:, 1:])
    rest = out[:, whole * CHAIN:]
    rest[...] = ufunc(ufunc.accumulate(rest, 1), before[:, -1:])
    return out
