"""The exact remainder of floats, for a target whose own one is `x - y * trunc(x / y)`.

Builds on builder.py. That is wrong where the quotient has more digits than a float. Chapter 27.
In JAX: `fmod` of CUDA's libdevice.
"""

import numpy as np

from .builder import Builder
from .loops import Operand, Scalar


def remainder(b: Builder, x: Operand, y: Operand) -> Scalar:
    """`x - y * trunc(x / y)` with one rounding less: of y times powers of two those that fit are
    subtracted, the largest first. Each difference is exact.
    """
    size, divisor = b.abs(x), b.abs(y)
    left, multiple = b.variable(size), b.variable(divisor)
    result = b.variable(b.const(np.nan, x.dtype))

    def scale(factor: float) -> None:
        b.assign(multiple, b.mul(b.read(multiple), factor))

    def subtract() -> None:
        before, part = b.read(left), b.read(multiple)
        b.assign(left, b.select(b.ge(before, part), b.sub(before, part), before))

    def halve_and_subtract() -> None:
        scale(.5)
        subtract()

    with b.when(b.and_(b.lt(size, np.inf), b.gt(divisor, 0))):
        half = b.mul(size, .5)  # so that no multiple overflows
        b.while_loop(lambda: b.le(b.read(multiple), half), lambda: scale(2))
        subtract()
        b.while_loop(lambda: b.gt(b.read(multiple), divisor), halve_and_subtract)
        b.assign(result, b.copysign(b.read(left), x))
    return b.read(result)
