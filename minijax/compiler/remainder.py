"""The exact remainder of floats, for a target whose own one is `x - y * trunc(x / y)`.

Builds on builder.py. That is wrong where the quotient has more digits than a float. Chapter 27.
In JAX: `fmod` of CUDA's libdevice.
"""

from typing import Any

import numpy as np

from .builder import Builder
from .loops import Operand, Scalar, Variable


def remainder(b: Builder, x: Operand, y: Operand) -> Scalar:
    """`x - y * trunc(x / y)` with one rounding less: the long division of the significands."""
    dtype = x.dtype
    word = np.dtype(f"int{8 * dtype.itemsize}")
    fraction = np.finfo(dtype).nmant
    hidden, infinity = 1 << fraction, int(np.array(np.inf, dtype).view(word))
    result = b.variable(b.const(np.nan, dtype))
    magnitudes = [b.bitcast(b.abs(each), word) for each in (x, y)]

    def significand(magnitude: Operand) -> tuple[Variable, Variable]:
        """With its first digit at the place of the hidden one; and the exponent."""
        exponent = b.variable(b.max(b.shr_arithmetic(magnitude, fraction), 1))
        digits = b.variable(b.sub(magnitude, b.shl(b.sub(b.read(exponent), 1), fraction)))
        normalize(digits, exponent, lambda: b.lt(b.read(digits), hidden))
        return digits, exponent

    def shift(digits: Variable, exponent: Variable, x: Scalar) -> None:
        b.assign(digits, b.shl(x, 1))
        b.assign(exponent, b.sub(b.read(exponent), 1))

    def normalize(digits: Variable, exponent: Variable, is_small: Any) -> None:
        b.while_loop(is_small, lambda: shift(digits, exponent, b.read(digits)))

    def divide() -> None:
        (digits, exponent), (divisor, last) = map(significand, magnitudes)

        def subtract() -> Scalar:
            left = b.read(digits)
            return b.select(b.ge(left, b.read(divisor)), b.sub(left, b.read(divisor)), left)

        b.while_loop(lambda: b.gt(b.read(exponent), b.read(last)),
                     lambda: shift(digits, exponent, subtract()))
        b.assign(digits, subtract())
        normalize(digits, last, lambda: b.and_(b.lt(b.read(digits), hidden), b.gt(b.read(last), 1)))
        missing = b.max(b.sub(1, b.read(last)), 0)  # digits of a subnormal divisor
        bits = b.add(b.shr_arithmetic(b.read(digits), missing),
                     b.shl(b.sub(b.max(b.read(last), 1), 1), fraction))
        b.assign(result, b.copysign(b.bitcast(bits, dtype), x))

    is_number = b.and_(b.lt(magnitudes[0], infinity), b.le(magnitudes[1], infinity))
    with b.when(b.and_(is_number, b.gt(magnitudes[1], 0))):
        b.assign(result, x)
        with b.when(b.ge(*magnitudes)):
            divide()
    return b.read(result)
