"""Helpers of Numba programs: scalar operations for which Python has no operator.

numba_text.py copies the text of those that a program uses; only tests import this file.
Each computes the same as its row in scalars.py, in Numba's terms. Chapter 24.
In XLA: the elemental IR emitter.
"""

import numpy as np
from numba import njit
from numba.extending import intrinsic


@intrinsic
def bitcast(_, x, dtype):
    """The same bits as another type."""
    to = dtype.instance_type
    return to(x, dtype), lambda context, builder, signature, args: builder.bitcast(
        args[0], context.get_value_type(to))


@intrinsic
def fma(_, x, y, z):
    """x * y + z, rounded once."""
    return x(x, y, z), lambda context, builder, signature, args: builder.fma(*args)


@intrinsic
def plus(_, x, y):
    """x + y, in a sum whose order is free: LLVM may keep several partial sums."""
    return x(x, y), lambda context, builder, signature, args: builder.fadd(*args, flags=["reassoc"])


@intrinsic
def times(_, x, y):
    """x * y, in a product whose order is free."""
    return x(x, y), lambda context, builder, signature, args: builder.fmul(*args, flags=["reassoc"])


@njit
def minimum(x, y):
    """The smaller float: nan if one is; -0 is below +0."""
    if x != x or x < y or (x == y and np.copysign(1.0, x) < 0.0):
        return x
    return y


@njit
def maximum(x, y):
    """The larger float: nan if one is; +0 is above -0."""
    if x != x or x > y or (x == y and np.copysign(1.0, x) > 0.0):
        return x
    return y


@njit
def divide(x, y):
    """The quotient of integers, truncated; x / 0 has all bits set, MIN / -1 wraps."""
    if y == 0:
        return x * 0 - 1
    if y == -1:
        return -x
    quotient = x // y
    return quotient + 1 if quotient < 0 and quotient * y != x else quotient


@njit
def divide_unsigned(x, y):
    """The quotient of unsigned integers; x / 0 has all bits set."""
    return x // y if y != 0 else ~(x ^ x)


@njit
def remainder(x, y):
    """The remainder of integers, with the sign of x; x % 0 is x, MIN % -1 is 0."""
    if y == 0 or y == -1:
        return x if y == 0 else x ^ x
    rest = x % y
    return rest - y if rest != 0 and (x < 0) != (y < 0) else rest


@njit
def remainder_unsigned(x, y):
    """The remainder of unsigned integers; x % 0 is x."""
    return x % y if y != 0 else x


@njit
def shift_left(x, y, width):
    """x << y; 0 for a shift by the width or more."""
    return x << y if 0 <= y < width else x ^ x


@njit
def shift_right(x, y, width):
    """x >> y; only the sign for a shift by the width or more."""
    return x >> (y if 0 <= y < width else width - 1)


@njit
def shift_right_unsigned(x, y, width):
    """x >> y of an unsigned integer; 0 for a shift by the width or more."""
    return x >> y if y < width else x ^ x


@njit
def halves(x, y, half):
    """The product of the lower halves plus that of the upper halves, whose width is `half`."""
    rest = 64 - half
    return (x << rest >> rest) * (y << rest >> rest) + (x >> half) * (y >> half)


@njit
def saturated(x, dtype, least, most):
    """A float as an integer from `least` to `most`; nan is 0."""
    if x != x:
        return dtype(0)
    if x <= least:
        return dtype(least)
    return dtype(most) if x >= most else dtype(x)
