"""An index that lies outside of its array: what is said of it, as it happens or in compiled code.

Stands on `findings` and `primitives/checks.py`, which looks under `config.debug_out_of_bounds`.
Chapter 14, *Out-of-bounds indexing*.  In JAX: nothing; the index is moved, or the access dropped.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax import dtypes, errors
from minijax.core import Array
from minijax.primitives.checks import check_within
from minijax.sharp_bits.findings import refuse
from minijax.source_info import SourceInfo, user_frame

_WINDOW = "Keep the whole window inside: start <= size - width."
# For every kind of access: what is done in place of an error, and what to do about it.
KINDS = {
    "read": (
        "the nearest element is read",
        "Keep the index inside, or say what is meant outside: x.at[i].get(mode='clip'), or "
        "mode='fill'."),
    "take": (
        "nan is read, or an extreme integer",
        "Keep the index inside, or say what is meant outside: mode='fill', 'clip' or 'wrap'."),
    "update": (
        "nothing is written there",
        "Keep the index inside, or say that it may be dropped: x.at[i].set(y, mode='drop')."),
    "window drop": (
        "nothing is written there",
        "Keep the whole window inside, or say that it may be dropped: mode='drop'."),
    "window read": ("the window is moved inside", _WINDOW),
    "window update": ("the window is moved inside, and written there", _WINDOW),
}


@dataclass(frozen=True)
class Access:
    """One index of a program, along one axis; called with an index that lies outside.

    Args:
      kind: one of `KINDS`.
      axis, size: the axis of the array, and how long it is.
      width: how much of the axis is accessed, from the index on.
      wraps: whether negative indices count from the end.
      normalized: whether those have been counted from the front already.
      source: the user's line.
    """

    kind: str
    axis: int
    size: int
    width: int = 1
    wraps: bool = True
    normalized: bool = False
    source: SourceInfo | None = None

    def __call__(self, index: np.integer) -> None:
        """Raise, or collect, what is wrong with an index outside.

        Raises:
          OutOfBoundsError: unless findings are collected.
        """
        instead, fix = KINDS[self.kind]
        refuse("debug_out_of_bounds", f"{self.refusal(int(index))}. Unchecked, {instead}.", fix,
               errors.OutOfBoundsError, self.source, by=self)

    def refusal(self, index: int) -> str:
        """What is wrong with an index, as NumPy says it.

        >>> Access("read", axis=0, size=5).refusal(7)
        'index 7 is out of bounds for axis 0 with size 5'
        >>> Access("window read", axis=1, size=5, width=3).refusal(4)
        'index 4 is out of bounds for a window of 3 along axis 1 with size 5'
        """
        said = str(index)
        if self.wraps and self.normalized and index < self.size:
            said = f"{index} (or {index - self.size})" if index >= 0 else f"{index - self.size}"
        window = f"a window of {self.width} along " if self.width != 1 else ""
        return f"index {said} is out of bounds for {window}axis {self.axis} with size {self.size}"


def check(kind: str, places: Iterable[tuple[Any, int, int, int]], **details: bool) -> None:
    """Have it told when an index of a program lies outside of its axis.

    Args:
      places: each index, an integer or an array of integers; its axis, how long that is, and how
        much of it is accessed.
      kind, details: as in `Access`.
    """
    for index, axis, size, width in places:
        access = Access(kind, axis, size, width, source=user_frame(), **details)
        lowest = -size if access.wraps and not access.normalized else 0
        if not isinstance(index, Array):  # what 32 bits cannot say stays far outside
            index = np.asarray(np.clip(index, -2**31, 2**31 - 1)).astype(np.int32)
        if index.dtype != bool:  # a mask fits, or is refused for its shape
            limits = dtypes.iinfo(index.dtype)
            check_within(index, max(lowest, int(limits.min)), min(size - width, int(limits.max)),
                         True, access)
