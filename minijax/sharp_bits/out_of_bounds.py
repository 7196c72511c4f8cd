"""Values out of range: indices beyond an array, numbers beyond their new dtype.

Builds on `findings` and the checks of `primitives/checks.py`, under `config.debug_out_of_bounds`
and `config.debug_unsafe_casts`.  Chapters 14, *Out-of-bounds indexing*, and 20, *Precision*.
JAX clamps the index or drops the access; of a nan that is cast NumPy warns.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes, errors
from minijax.core import Array, as_value
from minijax.primitives.checks import Number, Report, check_within, report_outside
from minijax.primitives.slots import numpy_scalars
from minijax.sharp_bits.findings import refuse
from minijax.util.source_info import SourceInfo, user_frame


# ── An index outside of its array ────────────────────────────────────────────────────────────

_WINDOW = "Keep the whole window inside: start <= size - width."
# For every kind of access: what happens without a check, and the fix.
KINDS = {
    "read": (
        "the nearest element is read",
        "Keep the index inside, or choose a mode for indices outside: x.at[i].get(mode='clip'), "
        "or mode='fill'."),
    "take": (
        "nan is read, or an extreme integer",
        "Keep the index inside, or choose a mode for indices outside: 'fill', 'clip' or 'wrap'."),
    "update": (
        "nothing is written there",
        "Keep the index inside, or allow the update to be dropped: x.at[i].set(y, mode='drop')."),
    "window drop": (
        "nothing is written there",
        "Keep the whole window inside, or allow the update to be dropped: mode='drop'."),
    "window read": ("the window is moved inside", _WINDOW),
    "window update": ("the window is moved inside, and written there", _WINDOW)}


@dataclass(frozen=True)
class Access(Report):
    """One index of a program, along one axis; called with an index that lies outside.

    Args:
      kind: one of `KINDS`.
      shape, axis: of the array, and the axis of it.
      width: how much of the axis is accessed, from the index on.
      wraps: whether negative indices count from the end.
      normalized: whether those have been counted from the front already.
      source: the user's line.
    """

    kind: str
    shape: tuple[int, ...]
    axis: int
    width: int = 1
    wraps: bool = True
    normalized: bool = False
    source: SourceInfo | None = None

    @property
    def size(self) -> int:
        return self.shape[self.axis]

    def __call__(self, index: np.integer, *_: Any) -> None:
        """Raise or collect a finding for an index out of bounds.

        Raises:
          OutOfBoundsError: unless findings are collected.
        """
        fallback, fix = KINDS[self.kind]
        refuse("debug_out_of_bounds", f"{self.refusal(int(index))}. Unchecked, {fallback}.", fix,
               errors.OutOfBoundsError, self.source, by=self)

    def refusal(self, index: int) -> str:
        """The message for an index, in NumPy's words.

        >>> Access("read", (5,), axis=0).refusal(7)
        'index 7 is out of bounds for axis 0 with size 5'
        >>> Access("window read", (2, 5), axis=1, width=3).refusal(4)
        'index 4 is out of bounds for a window of 3 along axis 1 with size 5'
        """
        shown = str(index)
        if self.wraps and self.normalized and index < self.size:
            shown = f"{index} (or {index - self.size})" if index >= 0 else f"{index - self.size}"
        window = f"a window of {self.width} along " if self.width != 1 else ""
        return f"index {shown} is out of bounds for {window}axis {self.axis} with size {self.size}"


def check(kind: str, shape: tuple[int, ...], places: Iterable[tuple[Any, int, int]],
          **details: bool) -> None:
    """Check the indices of a program at run time.

    Args:
      places: each index, an integer or an array of integers; its axis, and how much of that is
        accessed.
      kind, shape, details: as in `Access`.
    """
    for index, axis, width in places:
        access = Access(kind, shape, axis, width, source=user_frame(), **details)
        size = access.size
        lowest = -size if access.wraps and not access.normalized else 0
        if not isinstance(index, Array):  # what 32 bits cannot say stays far outside
            index = np.asarray(np.clip(index, -2**31, 2**31 - 1)).astype(np.int32)
        if index.dtype != bool:  # a mask fits, or is refused for its shape
            limits = dtypes.iinfo(index.dtype)
            check_within(index, max(lowest, int(limits.min)), min(size - width, int(limits.max)),
                         True, access)


# ── A value outside of the dtype that it is cast to ──────────────────────────────────────────

_FIT = ("Bring the values into the range of the new dtype first (jnp.clip, jnp.nan_to_num, "
        "jnp.where), or cast to a wider one.")


class Range(NamedTuple):
    """The values of one dtype that another can hold; also nans of a float dtype, unless `finite`.
    """

    low: Number
    high: Number
    finite: bool


def range_held(old: Any, new: Any) -> Range | None:
    """The values of a dtype that another can hold, apart from rounding; None if it holds them all.

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
        fitting = Range(_above(low - 1, old), -_above(-high - 1, old), not floats[1])
        return None if floats[1] and fitting.high == dtypes.finfo(old).max else fitting
    own = _limits(old)
    fitting = Range(max(low, own[0]), min(high, own[1]), True)
    return None if fitting[:2] == own else fitting


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
class Cast(Report):
    """A cast in a program; called with a value that does not fit.

    Args:
      old, new: the dtypes.
      source: the user's line.
    """

    old: Any
    new: Any
    source: SourceInfo | None = None

    def __call__(self, value: np.generic, *_: Any) -> None:
        """Raise or collect a finding for a value that does not fit.

        Raises:
          UnsafeCastError: unless findings are collected.
        """
        [converted] = numpy_scalars().convert(np.array([value]), self.new)
        message = (f"{self.new.name} cannot hold the {self.old.name} {value}. Unchecked, the "
                   f"cast gives {converted}.")
        refuse("debug_unsafe_casts", message, _FIT, errors.UnsafeCastError, self.source, by=self)


def check_cast(x: Any, dtype: Any, numbers: bool = False) -> None:
    """Check at run time that values fit into another dtype; for NumPy arrays at once.

    Python `numbers` NumPy checks by itself where it makes arrays of them, but not in casts.
    """
    x = as_value(x) if numbers else x
    if dtype is None or not isinstance(x, Array | np.ndarray | np.generic):
        return
    fitting, cast = range_held(x.dtype, dtype), Cast(x.dtype, dtype, user_frame())
    if fitting is not None and isinstance(x, Array):
        check_within(x, *fitting, cast)
    elif fitting is not None:
        report_outside(np.asarray(x), **fitting._asdict(), report=cast)
