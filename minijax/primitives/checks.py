"""Primitive check: every element must lie within bounds, or else somebody is told, at run time.

Stands on `slicing`; what is said is in `sharp_bits`, imported when there is something to check.
Chapter 14, *Out-of-bounds indexing*.  In JAX: `jax/_src/checkify.py`, which returns errors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes, source_info
from minijax.core import Array, ArrayImpl, Effect, Primitive, cannot
from minijax.primitives.axes import LARGEST, as_int64
from minijax.primitives import emitted, families, slicing, slots

Number = int | float
Report = Callable[[Any], None]  # is given the first element outside


# ── The block ────────────────────────────────────────────────────────────────────────────────

class CheckEffect(Effect):
    """Somebody may be told of a value: the equation stays, in its place."""

    def __repr__(self) -> str:
        return "Check"


check_effect = CheckEffect()


def outside(s: Any, x: Any, low: Number, high: Number, finite: bool) -> Any:
    """Which elements are not within the bounds; nans and infinities only where `finite`."""
    beyond = s.not_(s.and_(s.ge(x, low), s.le(x, high)))
    return beyond if finite else s.and_(beyond, s.lt(s.abs(x), np.inf))


def tell(x: np.ndarray, *, report: Report, **bounds: Any) -> list:
    """Report the first element that is outside, if there is one."""
    found = outside(slots.numpy_scalars(), x, **bounds)
    if found.any():
        report(x[found][0])
    return []


def _lower(b: Any, outputs: Sequence[Any], operands: Sequence[Any], *, report: Report,
           **bounds: Any) -> None:
    """No memory is touched outside anyway, so what is told may let the kernel go on."""
    [x] = operands
    if 0 in x.shape:
        return
    found = b.accumulate("or", x.shape, lambda *index: outside(b, x(index), **bounds))
    with b.when(found):
        b.host_call(functools.partial(tell, report=report, **bounds), [x])


check_p = Primitive(
    "check",
    impl=tell,
    abstract_eval=lambda x, **_: [],
    jvp=families.constant_in_all,
    transpose=cannot("it has no result, so nothing flows back through it"),
    batch=emitted.batch_in_front(),
    loop=_lower,
    effects=lambda **_: frozenset([check_effect]),
    printed=lambda low, high, **_: {"low": low, "high": high},
    examples=list,  # it has no result to hold a law to; its tests watch what it tells
    multiple_results=True)


# ── What is checked ──────────────────────────────────────────────────────────────────────────

def check_index(index: Any, axis: int, size: int, *, kind: str, **details: Any) -> None:
    """Have it told when an index lies outside of its axis; `sharp_bits` says what `kind` means.

    Args:
      index: an integer of the program, or an array of integers.
      axis, size: the axis, and how long it is.
      kind, details: as in `sharp_bits.out_of_bounds.Access`.
    """
    from minijax.sharp_bits.out_of_bounds import Access
    access = Access(kind, axis, size, source=source_info.user_frame(), **details)
    if isinstance(index, int):
        index = np.asarray(max(-LARGEST, min(index, LARGEST)))
    if not isinstance(index, Array):  # what 32 bits cannot say stays far outside
        index = np.clip(as_int64(slots.numpy_scalars(), index), -2**31, 2**31 - 1).astype(np.int32)
    if index.dtype == bool:
        return  # a mask: it fits, or is refused for its shape
    limits = dtypes.iinfo(index.dtype)
    low, high = max(access.low, int(limits.min)), min(access.high, int(limits.max))
    _check_within(index, low, high, True, access)


def check_windows(indices: Any, axes: Sequence[int], shape: Sequence[int],
                  sizes: Sequence[int], *, kind: str) -> None:
    """The same of the index vectors along the last axis of `indices`, the corners of windows."""
    indices = core.as_value(indices)
    for k, axis in enumerate(axes):
        column = slicing.slice_in_dim(indices, k, k + 1, axis=-1)
        check_index(column, axis, shape[axis], kind=kind, width=sizes[axis], wraps=False)


def check_starts_within(starts: Sequence[Any], shape: Sequence[int], sizes: Sequence[int], *,
                        kind: str) -> None:
    """The same of where one window starts along each axis, negative ones counted already."""
    for axis, (start, n, width) in enumerate(zip(starts, shape, sizes, strict=True)):
        check_index(start, axis, n, kind=kind, width=width, normalized=True)


def check_cast(x: Array | np.ndarray | np.generic, dtype: Any) -> None:
    """Have it told when a value does not fit into another dtype; of NumPy's, at once."""
    from minijax.sharp_bits.casts import Cast, range_held
    held = range_held(x.dtype, dtype)
    if held is not None:
        cast = Cast(x.dtype, dtype, slots.numpy_scalars().convert, source_info.user_frame())
        if isinstance(x, Array):
            _check_within(x, *held, cast)
        else:
            tell(np.asarray(x), **held._asdict(), report=cast)


def _check_within(x: Array | np.ndarray, low: Number, high: Number, finite: bool, report: Report
                  ) -> None:
    """Record the check, unless it is known to pass."""
    known = x._buffer if isinstance(x, ArrayImpl) else x
    if isinstance(known, Array) or outside(slots.numpy_scalars(), known, low, high, finite).any():
        check_p.bind(x, low=low, high=high, finite=finite, report=report)
