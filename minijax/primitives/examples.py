"""Arguments on which every law is tested, for families of primitives.

Float64 arguments are points where a function is smooth: derivatives are tested there.  The other
dtypes carry the corners: nothing, scalars, stretching, zeros, infinities, nan, integers' limits.
"""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np

from minijax.core import Example

CORNERS = [0., -0., 1., -1., .5, 1e-40, 3e38, np.inf, -np.inf, np.nan]


def spaced(low: float, high: float, shape: tuple[int, ...], dtype: Any, shift: int = 0
           ) -> np.ndarray:
    """Different numbers inside a range; `shift` gives others."""
    count = int(np.prod(shape))
    steps = (np.arange(count) * 7 + 3 * shift + 1) % (count + 3) + .37
    return np.asarray(low + (high - low) * steps / (count + 4)).reshape(shape).astype(dtype)


def points(*ranges: tuple[float, float], special: bool = True) -> list[Example]:
    """Arguments of floating dtypes, one drawn from each range."""
    def case(dtype: Any, *shapes: tuple[int, ...]) -> Example:
        many = itertools.cycle(shapes)
        return Example(tuple(spaced(low, high, next(many), dtype, i)
                             for i, (low, high) in enumerate(ranges)))
    found = [case(d, s) for s in ((3,), (2, 3), ()) for d in (np.float32, np.float64)]
    found += [case(np.float32, s) for s in ((0,), (1,))]
    found += [case(d, (2, 3)) for d in (np.float16, ml_dtypes.bfloat16)]
    if len(ranges) > 1:
        pairs = (((2, 3), ()), ((), (3,)), ((2, 1), (1, 3)), ((2, 3), (1, 3)))
        found += [case(d, *shapes) for shapes in pairs for d in (np.float32, np.float64)]
    if special:
        grid = np.array(list(itertools.product(CORNERS, repeat=len(ranges)))).T
        with np.errstate(over="ignore"):
            found += [Example(tuple(row.astype(d) for row in grid))
                      for d in (np.float32, ml_dtypes.bfloat16)]
    return found


def integers(count: int) -> list[Example]:
    """Integer arguments, their limits among them."""
    found = []
    for dtype in map(np.dtype, ("int32", "int8", "uint8", "uint32")):
        limits = np.iinfo(dtype)
        values = sorted({0, 1, 2, 3, 5, 31, 33, limits.max, limits.min, limits.min + 1,
                         *([-1, -2, -7] if dtype.kind == "i" else [])})
        grid = np.array(list(itertools.product(values, repeat=count)), dtype).T
        found.append(Example(tuple(np.ascontiguousarray(row) for row in grid)))
    one = np.array([[3, -4, 5], [6, 7, -8]], np.int32)
    found += [Example((one,) * count), Example((one[:0],) * count),
              Example(tuple(np.int32(k + 2) for k in range(count)))]
    return found


def bools(count: int) -> list[Example]:
    """Bool arguments: every combination."""
    grid = np.array(list(itertools.product([False, True], repeat=count))).T
    return [Example(tuple(np.ascontiguousarray(row) for row in grid)),
            Example((np.bool_(True),) * count)]
