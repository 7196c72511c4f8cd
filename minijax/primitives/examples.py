"""Arguments on which every law is tested, for families of primitives.

Float64 arguments are points where a function is smooth: derivatives are tested there.  Other
dtypes cover edge cases: empty arrays, scalars, broadcasting, zeros, infinities, nan, limits.
"""

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from minijax.core import Example

Examples = Callable[[], list[Example]]  # made on first use

CORNERS = [0., -0., 1., -1., .5, 1e-40, 3e38, np.inf, -np.inf, np.nan]


def spaced(low: float, high: float, shape: tuple, dtype: Any, shift: int = 0) -> np.ndarray:
    """Distinct numbers inside a range; each `shift` gives others."""
    count = int(np.prod(shape))
    steps = (np.arange(count) * 7 + 3 * shift + 1) % (count + 3) + .37
    return np.asarray(low + (high - low) * steps / (count + 4)).reshape(shape).astype(dtype)


def grid(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Distinct numbers, to tell the elements of a rearrangement apart."""
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) - 2).astype(dtype)


def table(names: str, *rows: tuple) -> Examples:
    """Examples from rows: the arguments of an operation, then the parameters of these names.

    >>> table("axis reverse", (np.ones(2), 0, True))()
    [Example(args=(array([1., 1.]),), params={'axis': 0, 'reverse': True})]
    """
    columns = names.split()

    def example(row: tuple) -> Example:
        count = len(row) - len(columns)
        return Example(row[:count], dict(zip(columns, row[count:], strict=True)))
    return lambda: list(map(example, rows))


def each_with(examples: Examples, *params: dict) -> Examples:
    """The same arguments with each of several parameters."""
    return lambda: [e._replace(params=p) for p in params for e in examples()]


def points(*ranges: tuple[float, float], special: bool = True) -> Examples:
    """Arguments of floating dtypes, one drawn from each range; nan, inf and zeros too."""
    return lambda: _points(*ranges, special=special)


def points_and_integers(*ranges: tuple[float, float]) -> Examples:
    """Those of `points`, and integers up to their limits."""
    return lambda: _points(*ranges) + _integers(len(ranges))


def integers(count: int) -> Examples:
    """Integer arguments, their limits among them."""
    return lambda: _integers(count)


def bits(count: int) -> Examples:
    """Integer and bool arguments."""
    return lambda: _integers(count) + _bools(count)


def anything(count: int) -> Examples:
    """Arguments of all kinds."""
    return lambda: _points(*[(-2., 2.)] * count) + _integers(count) + _bools(count)


def _points(*ranges: tuple[float, float], special: bool = True) -> list[Example]:
    def case(dtype: Any, *shapes: tuple[int, ...]) -> Example:
        many = itertools.cycle(shapes)
        return Example(tuple(spaced(low, high, next(many), dtype, i)
                             for i, (low, high) in enumerate(ranges)))
    cases = [case(d, s) for s in ((3,), (2, 3), ()) for d in (np.float32, np.float64)]
    cases += [case(np.float32, s) for s in ((0,), (1,))]
    cases += [case(d, (2, 3)) for d in (np.float16, ml_dtypes.bfloat16)]
    if len(ranges) > 1:
        pairs = (((2, 3), ()), ((), (3,)), ((2, 1), (1, 3)), ((2, 3), (1, 3)))
        cases += [case(d, *shapes) for shapes in pairs for d in (np.float32, np.float64)]
    if special:
        grid = np.array(list(itertools.product(CORNERS, repeat=len(ranges)))).T
        with np.errstate(over="ignore"):
            cases += [Example(tuple(row.astype(d) for row in grid))
                      for d in (np.float32, ml_dtypes.bfloat16)]
    return cases


def _integers(count: int) -> list[Example]:
    cases = []
    for dtype in map(np.dtype, ("int32", "int8", "uint8", "uint32")):
        limits = np.iinfo(dtype)
        values = sorted({0, 1, 2, 3, 5, 31, 33, limits.max, limits.min, limits.min + 1,
                         *([-1, -2, -7] if dtype.kind == "i" else [])})
        grid = np.array(list(itertools.product(values, repeat=count)), dtype).T
        cases.append(Example(tuple(np.ascontiguousarray(row) for row in grid)))
    one = np.array([[3, -4, 5], [6, 7, -8]], np.int32)
    cases += [Example((one,) * count), Example((one[:0],) * count),
              Example(tuple(np.int32(k + 2) for k in range(count)))]
    return cases


def _bools(count: int) -> list[Example]:
    """Every combination."""
    grid = np.array(list(itertools.product([False, True], repeat=count))).T
    return [Example(tuple(np.ascontiguousarray(row) for row in grid)),
            Example((np.bool_(True),) * count)]


def reducible(accepts: tuple, params: Callable[[int], list[dict]]) -> Examples:
    """Arrays of rank up to three; `params` lists the parameters that a rank allows."""
    def examples() -> list[Example]:
        x = np.array([[[3, 1, -2], [.5, 2, 7]], [[4, -5, .25], [6, -1, 1.5]]], np.float32)
        arrays: list[Any] = []
        if np.floating in accepts:
            arrays += [x, x[0], x[0, 0], np.array([2.5], np.float32),
                       np.array([[1, np.nan], [np.inf, 3]], np.float32), x[0].astype(np.float16),
                       x[0].astype(ml_dtypes.bfloat16), x[0].astype(np.float64)]
        if np.integer in accepts:
            arrays += [(4 * x).astype(np.int32), np.array([[100, 100], [-128, 3]], np.int8),
                       np.array([200, 100], np.uint8)]
        if np.bool_ in accepts:
            arrays += [x > 1]
        return [Example((a,), p) for a in arrays for p in params(a.ndim)]
    return examples


def axes_of(rank: int) -> list[dict]:
    return [{"axes": axes} for axes in
            {(0,), (rank - 1,), tuple(range(rank)), (), tuple(range(0, rank, 2))}]
