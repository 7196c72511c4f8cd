"""Primitive check: every element must lie within bounds; others are reported, at run time.

Stands on `families`; `sharp_bits` knows what is to be checked, and what is said of it.
Chapter 14, *Out-of-bounds indexing*.  In JAX: `jax/_src/checkify.py`, which returns errors.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import Array, ArrayImpl, Effect, Primitive, cannot
from minijax.primitives import emitted, families, slots

Number = int | float
Report = Callable[[Any], None]  # is given the first element outside


class CheckEffect(Effect):
    """A value may be reported: the equation stays, in its place."""

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


def check_within(x: Array | np.ndarray, low: Number, high: Number, finite: bool, report: Report
                 ) -> None:
    """Record the check, unless it is known to pass."""
    known = x._buffer if isinstance(x, ArrayImpl) else x
    if isinstance(known, Array) or outside(slots.numpy_scalars(), known, low, high, finite).any():
        check_p.bind(x, low=low, high=high, finite=finite, report=report)
