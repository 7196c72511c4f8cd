"""The scalar operations: a closed set, each with one exact meaning, written in NumPy.

Stands on NumPy alone. Every printer of the loop tree (readable text, machine code) must agree with
`OPS`; `NumpyScalars` runs code written for the builder on whole arrays. Chapter 24.
In JAX this role is played by StableHLO's element-wise operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, wraps
from typing import Any

import ml_dtypes
import numpy as np

BOOL = np.dtype(np.bool_)
INT64 = np.dtype(np.int64)
FLOAT32 = np.dtype(np.float32)
FLOAT16 = np.dtype(np.float16)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

Meaning = Callable[..., Any]


@cache
def kind_of(dtype: np.dtype) -> str:
    """The class of a dtype: "b" bool, "i" signed, "u" unsigned, "h" 16-bit float, "f" float.

    >>> kind_of(np.dtype("float32")), kind_of(BFLOAT16), kind_of(np.dtype("uint8"))
    ('f', 'h', 'u')
    """
    if dtype in (FLOAT16, BFLOAT16):
        return "h"
    if dtype.kind in "biuf" and dtype.itemsize <= 8:
        return dtype.kind
    raise NotImplementedError(f"the loop tree has no scalars of dtype {dtype}")


@dataclass(frozen=True)
class Op:
    """One scalar operation: which dtypes it takes, what it gives, and its meaning in NumPy.

    `operands` lists the allowed kinds (see `kind_of`); all operands share one dtype, except the
    condition of `select`, which is bool. `result` is "same" (as the last operand), "bool", or
    "target": `convert` and `bitcast` take the dtype of the scalar they define.
    """

    name: str
    arity: int
    operands: str
    result: str
    meaning: Meaning


OPS: dict[str, Op] = {}


def _op(name: str, arity: int, operands: str, result: str = "same") -> Callable[[Meaning], Meaning]:
    def declare(meaning: Meaning) -> Meaning:
        @wraps(meaning)
        def quiet(*args: Any) -> Any:
            with np.errstate(all="ignore"):
                return meaning(*args)

        OPS[name] = Op(name, arity, operands, result, quiet)
        return quiet

    return declare


def _declare(name: str, arity: int, operands: str, meaning: Meaning, result: str = "same") -> None:
    _op(name, arity, operands, result)(meaning)


_declare("add", 2, "iuf", lambda x, y: np.add(x, y))
_declare("sub", 2, "iuf", lambda x, y: np.subtract(x, y))
_declare("mul", 2, "iuf", lambda x, y: np.multiply(x, y))
_declare("neg", 1, "iuf", lambda x: np.negative(x))
_declare("abs", 1, "iuf", lambda x: np.abs(x))
_declare("sqrt", 1, "f", lambda x: np.sqrt(x))
_declare("floor", 1, "f", lambda x: np.floor(x))
_declare("ceil", 1, "f", lambda x: np.ceil(x))
_declare("trunc", 1, "f", lambda x: np.trunc(x))
_declare("round_even", 1, "f", lambda x: np.rint(x))
_declare("copysign", 2, "f", lambda x, y: np.copysign(x, y))
_declare("and", 2, "biu", lambda x, y: np.bitwise_and(x, y))
_declare("or", 2, "biu", lambda x, y: np.bitwise_or(x, y))
_declare("xor", 2, "biu", lambda x, y: np.bitwise_xor(x, y))
_declare("not", 1, "biu", lambda x: np.invert(x))
_declare("eq", 2, "biuf", lambda x, y: np.equal(x, y), "bool")
_declare("ne", 2, "biuf", lambda x, y: np.not_equal(x, y), "bool")
_declare("lt", 2, "biuf", lambda x, y: np.less(x, y), "bool")
_declare("le", 2, "biuf", lambda x, y: np.less_equal(x, y), "bool")
_declare("gt", 2, "biuf", lambda x, y: np.greater(x, y), "bool")
_declare("ge", 2, "biuf", lambda x, y: np.greater_equal(x, y), "bool")
_declare("select", 3, "biufh", lambda c, x, y: np.asarray(np.where(c, x, y))[()])


@_op("div", 2, "iuf")
def _div(x: Any, y: Any) -> Any:
    """Floats as IEEE; integers truncate, x/0 is all ones and MIN/-1 is MIN (as XLA)."""
    if np.asarray(x).dtype.kind == "f":
        return np.divide(x, y)
    ones = np.invert(np.zeros_like(x))
    return np.where(y == 0, ones, _truncated_quotient(x, _nonzero(y)))[()]


@_op("rem", 2, "iuf")
def _rem(x: Any, y: Any) -> Any:
    """The sign of the dividend; integers: x%0 is x and MIN%-1 is 0. Floats as C's fmod."""
    if np.asarray(x).dtype.kind == "f":
        return np.fmod(x, y)
    divisor = _nonzero(y)
    remainder = np.subtract(x, np.multiply(_truncated_quotient(x, divisor), divisor))
    return np.where(y == 0, x, remainder)[()]


def _nonzero(y: Any) -> Any:
    return np.where(y == 0, np.ones_like(y), y)


def _truncated_quotient(x: Any, y: Any) -> Any:
    """x / y rounded towards zero for y != 0: NumPy's floor, one up where it went below."""
    quotient = np.asarray(np.floor_divide(x, y))
    below = (np.multiply(quotient, y) != x) & ((np.asarray(x) < 0) != (np.asarray(y) < 0))
    least = np.equal(y, -1) if quotient.dtype.kind == "i" else np.False_
    return np.where(least, np.negative(x), quotient + below.astype(quotient.dtype))


@_op("min", 2, "iuf")
def _min(x: Any, y: Any) -> Any:
    """NumPy's minimum (nan wins), with -0 below +0."""
    smaller = np.minimum(x, y)
    if np.asarray(x).dtype.kind != "f":
        return smaller
    return np.where((x == 0) & (y == 0), np.where(np.signbit(x), x, y), smaller)[()]


@_op("max", 2, "iuf")
def _max(x: Any, y: Any) -> Any:
    """NumPy's maximum (nan wins), with +0 above -0."""
    larger = np.maximum(x, y)
    if np.asarray(x).dtype.kind != "f":
        return larger
    return np.where((x == 0) & (y == 0), np.where(np.signbit(x), y, x), larger)[()]


def _shift(x: Any, y: Any, shifted: Callable[[Any, Any], Any], beyond: Any) -> Any:
    width = np.asarray(x).dtype.itemsize * 8
    inside = (y >= 0) & (y < width)
    return np.where(inside, shifted(x, np.where(inside, y, np.zeros_like(y))), beyond)[()]


def _as_unsigned(x: Any) -> Any:
    return np.asarray(x).view(f"u{np.asarray(x).dtype.itemsize}")


@_op("shl", 2, "iu")
def _shl(x: Any, y: Any) -> Any:
    """x << y; zero when y is outside the width."""
    return _shift(x, y, np.left_shift, np.zeros_like(x))


@_op("shr_logical", 2, "iu")
def _shr_logical(x: Any, y: Any) -> Any:
    """x >> y filling with zeros; zero when y is outside the width."""

    def shifted(x: Any, y: Any) -> Any:
        return np.right_shift(_as_unsigned(x), _as_unsigned(y)).view(np.asarray(x).dtype)

    return _shift(x, y, shifted, np.zeros_like(x))


@_op("shr_arithmetic", 2, "iu")
def _shr_arithmetic(x: Any, y: Any) -> Any:
    """x >> y filling with the sign bit (also of an unsigned x), also when y is outside."""
    signed = np.asarray(x).view(f"i{np.asarray(x).dtype.itemsize}")
    result = _shift(signed, y, lambda x, y: np.right_shift(x, y.astype(x.dtype)),
                    np.where(signed < 0, -1, 0).astype(signed.dtype))
    return np.asarray(result).view(np.asarray(x).dtype)[()]


@_op("convert", 1, "biufh", "target")
def _convert(x: Any, dtype: np.dtype) -> Any:
    """Float to int saturates with nan → 0; to bool is x != 0; int to int keeps the low bits."""
    x = np.asarray(x)
    if dtype == BOOL:
        return np.not_equal(x, 0)
    if kind_of(x.dtype) in "fh" and dtype.kind in "iu":
        return np.asarray(_saturate(x.astype(np.float64), dtype))[()]
    return x.astype(dtype)[()]


def _saturate(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    limits = np.iinfo(dtype)
    # float(limits.max) may round up to limits.max + 1, so the comparison decides, not a clip.
    inside = (x >= float(limits.min)) & (x < float(limits.max))
    result = np.where(inside, x, 0.0).astype(dtype)
    result = np.where(x >= float(limits.max), dtype.type(limits.max), result)
    return np.where(x < float(limits.min), dtype.type(limits.min), result)


@_op("bitcast", 1, "iufh", "target")
def _bitcast(x: Any, dtype: np.dtype) -> Any:
    """The same bits read as another dtype of the same width."""
    return np.asarray(x).view(dtype)[()]


@_op("fma", 3, "f")
def _fma(x: Any, y: Any, z: Any) -> Any:
    """x * y + z with one rounding."""
    if np.asarray(x).dtype == FLOAT32:
        product = np.multiply(x, y, dtype=np.float64)  # exact: 24 + 24 bits
        return _sum_to_odd(product, np.asarray(z, np.float64)).astype(np.float32)[()]
    return _fma64(*np.broadcast_arrays(x, y, z))[()]


def _two_sum(x: Any, y: Any) -> tuple[Any, Any]:
    """Knuth: the rounded sum and its exact error."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _sum_to_odd(x: Any, y: Any) -> np.ndarray:
    """x + y rounded to odd, so that a second rounding to a shorter format is exact."""
    total, error = _two_sum(x, y)
    total = np.array(total)
    inexact = np.isfinite(total) & (error != 0) & np.isfinite(error)
    bits = total.view(np.int64)
    beyond = inexact & ((error < 0) != (total < 0)) & (bits & 1 == 0)
    return np.where(inexact, (bits - beyond) | 1, bits).astype(np.int64).view(np.float64)


def _fma64(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Boldo and Melquiond's emulation; exponents at the rim go through exact fractions."""
    high, low = _two_product(x, y)
    upper, lower = _two_sum(z, low)
    total, rest = _two_sum(high, upper)
    result = np.asarray(total + _sum_to_odd(lower, rest))
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    sizes = [np.abs(x), np.abs(y), np.abs(high), np.abs(z)]
    rim = np.any([(size > 2.0**900) | ((size < 2.0**-900) & (size != 0)) for size in sizes], axis=0)
    simple = ~finite | (x == 0) | (y == 0)
    result = np.where(simple, x * y + z, result)
    result = np.where(np.isinf(z) & np.isfinite(x) & np.isfinite(y), z, result)
    rim = (rim | (finite & (high == 0))) & ~simple
    for at in zip(*np.nonzero(np.atleast_1d(rim)), strict=True):
        np.atleast_1d(result)[at] = _exact_fma(*(float(np.atleast_1d(a)[at]) for a in (x, y, z)))
    return result


def _two_product(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Dekker: the rounded product and its exact error."""

    def halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scaled = a * 134217729.0
        high = scaled - (scaled - a)
        return high, a - high

    product = x * y
    (xh, xl), (yh, yl) = halves(x), halves(y)
    return product, xl * yl - (((product - xh * yh) - xl * yh) - xh * yl)


def _exact_fma(x: float, y: float, z: float) -> float:
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        return x * y + z
    try:
        # The quotient of two ints is correctly rounded, subnormals included.
        return exact.numerator / exact.denominator
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


@cache
def result_dtype(name: str, dtypes: tuple[np.dtype, ...], target: np.dtype | None = None
                 ) -> np.dtype:
    """The dtype that an operation gives for operands of these dtypes; refuses what it cannot take.

    >>> result_dtype("lt", (FLOAT32, FLOAT32))
    dtype('bool')
    """
    op = OPS[name]
    values = dtypes[1:] if name == "select" else dtypes
    legal = (len(dtypes) == op.arity and all(kind_of(d) in op.operands for d in values)
             and len(set(values)) == 1 and (name != "select" or dtypes[0] == BOOL))
    if name == "bitcast" and legal:
        legal = target is not None and target != BOOL and target.itemsize == dtypes[0].itemsize
    if name == "convert" and legal and "h" in kind_of(dtypes[0]) + kind_of(target or BOOL):
        legal = FLOAT32 in (dtypes[0], target) or dtypes[0] == target
    if not legal:
        given = ", ".join(map(str, dtypes)) + (f" → {target}" if target is not None else "")
        raise TypeError(f"scalar operation {name} is not defined for ({given})")
    if op.result == "target":
        assert target is not None
        return target
    return BOOL if op.result == "bool" else values[-1]


class NumpyScalars:
    """The builder's arithmetic on NumPy arrays, so elementary functions can be run and tested.

    >>> s = NumpyScalars()
    >>> s.max(s.mul(np.float32([1, -2]), 3), 0)
    array([3., 0.], dtype=float32)
    """

    def const(self, value: Any, dtype: Any) -> Any:
        """A constant of the given dtype."""
        return np.asarray(value).astype(dtype)[()]

    def convert(self, x: Any, dtype: Any) -> Any:
        """x converted to another dtype."""
        return OPS["convert"].meaning(x, np.dtype(dtype))

    def bitcast(self, x: Any, dtype: Any) -> Any:
        """The bits of x as another dtype of the same width."""
        return OPS["bitcast"].meaning(x, np.dtype(dtype))

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        """x where the condition holds, else y."""
        first = x if hasattr(x, "dtype") else y
        return OPS["select"].meaning(condition, self._like(first, x), self._like(first, y))

    def _like(self, first: Any, x: Any) -> Any:
        return x if hasattr(x, "dtype") else self.const(x, np.asarray(first).dtype)

    def _run(self, name: str, args: tuple[Any, ...]) -> Any:
        first = next(x for x in args if hasattr(x, "dtype"))
        operands = [self._like(first, x) for x in args]
        if kind_of(np.asarray(first).dtype) != "h":
            return OPS[name].meaning(*operands)
        wide = OPS[name].meaning(*(self.convert(x, np.float32) for x in operands))
        return wide if OPS[name].result == "bool" else self.convert(wide, first.dtype)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = name.rstrip("_")
        if op not in OPS:
            raise AttributeError(f"there is no scalar operation {name!r}")
        return lambda *args: self._run(op, args)
