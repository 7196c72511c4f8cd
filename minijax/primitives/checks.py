"""Primitive check: reports elements out of bounds at run time.

Builds on `families`; `sharp_bits` and `experimental/checkify.py` choose the checks and write the
messages.  Chapter 14, *Out-of-bounds indexing*.  In JAX: `jax/_src/checkify.py`.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import Array, ArrayImpl, Effect
from minijax.primitives import ad_util, families, slots

Number = int | float


class Report:
    """A callback that gets an element out of bounds, and its facts."""

    which = 0  # of several elements the first; -1: the last

    def __call__(self, x: Any, *facts: Any) -> None:
        raise NotImplementedError

    def is_compiled(self) -> bool:
        """Whether compiled code calls it; raises where it must not be compiled."""
        return True


class CheckEffect(Effect):
    """A value may be reported: the equation keeps its place."""


check_effect = CheckEffect()


def outside(s: Any, x: Any, low: Number, high: Number, finite: bool) -> Any:
    """Which elements are not within the bounds; nans and infinities only where `finite`."""
    beyond = s.not_(s.and_(s.ge(x, low), s.le(x, high)))
    return beyond if finite else s.and_(beyond, s.lt(s.abs(x), np.inf))


def report_outside(x: np.ndarray, *facts: np.ndarray, report: Report, **bounds: Any) -> list:
    """Report an element that is outside, if there is one, with its facts.

    The leading axes of the facts are those of `x`.
    """
    mask = outside(slots.numpy_scalars(), x, **bounds)
    if mask.any():
        report(*(each[mask][report.which] for each in (x, *facts)))
    return []


def _lower(b: Any, outputs: Sequence[Any], operands: Sequence[Any], *, report: Report,
           **bounds: Any) -> None:
    """Accesses are safe in any case, so that the kernel may go on after a report."""
    x = operands[0]
    if 0 in x.shape or not report.is_compiled():
        return
    with b.when(b.accumulate("or", x.shape, lambda *index: outside(b, x(index), **bounds))):
        b.host_call(functools.partial(report_outside, report=report, **bounds), operands)


check_p = families.without_results(
    "check", check_effect, impl=report_outside,
    jvp=families.constant_in_all,
    batch=ad_util.batch_in_front(),
    loop=_lower,
    printed=lambda low, high, **_: {"low": low, "high": high})


def check_within(x: Array | np.ndarray, low: Number, high: Number, finite: bool, report: Report
                 ) -> None:
    """Record the check, unless x is concrete and passes it."""
    buffer = x._buffer if isinstance(x, ArrayImpl) else x
    if isinstance(buffer, Array) or outside(slots.numpy_scalars(), buffer, low, high, finite).any():
        check_p.bind(x, low=low, high=high, finite=finite, report=report)
