"""A cast that its new dtype cannot hold: which values those are, and what is said of one.

Stands on `findings` and `primitives/checks.py`, which looks under `config.debug_unsafe_casts`.
Chapter 20, *Precision, and where NumPy differs*.  In JAX: nothing; NumPy warns of a nan.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes, errors
from minijax.core import Array, as_value
from minijax.primitives.checks import Number, check_within, tell
from minijax.primitives.slots import numpy_scalars
from minijax.sharp_bits.findings import refuse
from minijax.source_info import SourceInfo, user_frame

FIX = ("Bring the values into the range of the new dtype first (jnp.clip, jnp.nan_to_num, "
       "jnp.where), or cast to a wider one.")


class Range(NamedTuple):
    """The values of one dtype that another can hold; of a float's also nans, unless `finite`."""

    low: Number
    high: Number
    finite: bool


def range_held(old: Any, new: Any) -> Range | None:
    """Which values of a dtype another holds, rounding aside; None where it holds them all.

    >>> range_held(np.dtype("int32"), np.dtype("uint8"))
    Range(low=0, high=255, finite=True)
    >>> range_held(np.dtype("int8"), np.dtype("float32")) is None
    True
    """
    floats = [dtypes.issubdtype(dtype, np.floating) for dtype in (old, new)]
    if not all(dtypes.issubdtype(dtype, np.integer) or is_float
               for dtype, is_float in zip((old, new), floats, strict=True)):
        return None
    low, high = _limits(new)
    if floats[0]:
        held = Range(_above(low - 1, old), -_above(-high - 1, old), not floats[1])
        return None if floats[1] and held.high == dtypes.finfo(old).max else held
    own = _limits(old)
    held = Range(max(low, own[0]), min(high, own[1]), True)
    return None if held[:2] == own else held


def _limits(dtype: Any) -> tuple[int, int]:
    """The least and the largest whole number that a dtype holds, after rounding."""
    if dtypes.issubdtype(dtype, np.integer):
        info = dtypes.iinfo(dtype)
        return int(info.min), int(info.max)
    largest = np.dtype(dtype).type(dtypes.finfo(dtype).max)
    step = _as_int(largest) - _as_int(np.nextafter(largest, largest.dtype.type(0)))
    bound = _as_int(largest) + step // 2  # half-way to the next, which is already too large
    return 1 - bound, bound - 1


def _as_int(x: Any) -> int:
    return int(float(x))  # a short float's own `int` stops at 64 bits


def _above(bound: int, dtype: Any) -> float:
    """The least number of a float dtype that is larger than an integer."""
    least = dtypes.finfo(dtype).min
    if bound < _as_int(least):
        return float(least)
    nearest = np.dtype(dtype).type(float(bound))
    if _as_int(nearest) <= bound:
        nearest = np.nextafter(nearest, nearest.dtype.type(np.inf))
    return float(nearest)


@dataclass(frozen=True)
class Cast:
    """One cast of a program: called with a value that does not fit.

    Args:
      old, new: the dtypes.
      source: the user's line.
    """

    old: Any
    new: Any
    source: SourceInfo | None = None

    def __call__(self, value: np.generic) -> None:
        """Raise, or collect, what becomes of a value that does not fit.

        Raises:
          UnsafeCastError: unless findings are collected.
        """
        [found] = numpy_scalars().convert(np.array([value]), self.new)
        message = (f"{self.new.name} cannot hold the {self.old.name} {value}. Unchecked, the "
                   f"cast gives {found}.")
        refuse("debug_unsafe_casts", message, FIX, errors.UnsafeCastError, self.source, by=self)


def check(x: Any, dtype: Any, numbers: bool = False) -> None:
    """Have it told when a value does not fit into another dtype; of NumPy's, at once.

    Python's `numbers` NumPy checks by itself where it makes arrays of them, not where it casts.
    """
    x = as_value(x) if numbers else x
    if dtype is None or not isinstance(x, Array | np.ndarray | np.generic):
        return
    held, cast = range_held(x.dtype, dtype), Cast(x.dtype, dtype, user_frame())
    if held is not None and isinstance(x, Array):
        check_within(x, *held, cast)
    elif held is not None:
        tell(np.asarray(x), **held._asdict(), report=cast)
