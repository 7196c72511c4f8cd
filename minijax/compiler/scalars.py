"""The scalar operations: a closed set of rows, each with its dtypes, its meaning, its instruction.

Builds on NumPy and library.py. A meaning is exact, to the ends of a dtype, but for a nan's sign;
machine code and readable text agree with it on each target. `NumpyScalars` runs it. Chapter 24.
In JAX this role is played by StableHLO's element-wise operations.
"""

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from minijax.dtypes import computed_in, iinfo, issubdtype
from minijax.primitives.infix import infix

from .elementary import FORMULAS
from .instructions import converted, div, extremum, halves, kind_of as kind_of, rem, shifted
from .library import c_library, symbol_in

BOOL = np.dtype(np.bool_)
INT64 = np.dtype(np.int64)
FLOAT32 = np.dtype(np.float32)

Meaning = Callable[..., Any]


@dataclass(frozen=True)
class Op:
    """One scalar operation: its meaning in NumPy, and its LLVM instruction for each kind of dtype,
    or a formula that takes several.

    All operands share one dtype, except the condition of `select`, which is bool. `result` is
    "same" (as the last operand), "bool", or "target": `convert` and `bitcast` take the dtype of the
    scalar they define. In an instruction {s} is the LLVM type of the last operand, {m} the same as
    names of functions spell it, {t} that of the result, {b} that of a bool, {h} that of a float16,
    {x} {y} {z} are the operands.
    """

    name: str
    arity: int
    meaning: Meaning
    result: str
    instructions: Mapping[str, str | Callable]


OPS: dict[str, Op] = {}


def _op(name: str, arity: int, meaning: Meaning, result: str = "same",
        **instructions: str | Callable) -> None:
    """A row of the table. An instruction is a template, a bare word, or "@function" for a call."""
    def written(kind: str, how: str | Callable) -> str | Callable:
        if not isinstance(how, str) or "{" in how:
            return how
        if how.startswith("@"):
            operands = ", ".join(["{s} {x}", "{s} {y}", "{s} {z}"][:arity])
            return f"call {{t}} {how}.{{m}}({operands})"
        return f"{how} {{s}} {{x}}, {{y}}"

    OPS[name] = Op(name, arity, np.errstate(all="ignore")(meaning), result, {
        kind: written(kind, how) for kinds, how in instructions.items() for kind in kinds})


def _div(x: Any, y: Any) -> Any:
    """Floats as IEEE; integers truncate, x/0 is all ones and MIN/-1 is MIN (as XLA)."""
    if x.dtype.kind == "f":
        return np.divide(x, y)
    ones = np.invert(np.zeros_like(x))
    return np.where(y == 0, ones, np.floor_divide(x - np.fmod(x, y), y))[()]


def _rem(x: Any, y: Any) -> Any:
    """The sign of the dividend; integers: x%0 is x and MIN%-1 is 0. Floats as C's fmod."""
    remainder = np.fmod(x, y)
    return remainder if x.dtype.kind == "f" else np.where(y == 0, x, remainder)[()]


def _ordered(ufunc: np.ufunc, of_zeros: Meaning, x: Any, y: Any) -> Any:
    """NumPy's extremum (nan wins), with -0 below +0, which it takes for equal."""
    extremum = ufunc(x, y)
    if x.dtype.kind != "f":
        return extremum
    return np.where((x == 0) & (y == 0), of_zeros(x, y), extremum)[()]


def _shifted_right(kind: str, x: Any, y: Any) -> Any:
    """x >> y as signed ("i") or unsigned integers, filled with the sign or with zeros.

    As in NumPy, a shift by the width or more leaves only the fill.
    """
    word = f"{kind}{x.dtype.itemsize}"
    return np.right_shift(x.view(word), y.view(word)).view(x.dtype)


def _convert(x: Any, dtype: np.dtype) -> Any:
    """Float to int saturates with nan → 0; to bool is x != 0; int to int keeps the low bits."""
    x = x if isinstance(x, np.ndarray) else np.asarray(x)
    if dtype == BOOL:
        return np.not_equal(x, 0)
    if not (issubdtype(x.dtype, np.floating) and issubdtype(dtype, np.integer)):
        x = x.astype(computed_in(x.dtype), copy=False)
        # Between its two least numbers XLA rounds up, as ml_dtypes did before 0.7.
        if dtype.name == "float8_e8m0fnu" and x.dtype.itemsize == 4:
            x = np.where((x > 2.**-127) & (x < 2.**-126), x.dtype.type(2.**-126), x)
        return x.astype(dtype)[()]
    limits = iinfo(dtype)
    x = np.maximum(x.astype(np.float64), float(limits.min))
    x = np.where(x == x, x, 0.)
    # float(limits.max) may round up to limits.max + 1, so the comparison decides, not a clip.
    return np.where(x >= float(limits.max), dtype.type(limits.max), x.astype(dtype))[()]


def _fma(x: Any, y: Any, z: Any) -> Any:
    """x * y + z with one rounding."""
    if x.dtype == FLOAT32:
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
    """Boldo and Melquiond's emulation; exponents at the rim go through C's, one by one."""
    high, low = _two_product(x, y)
    upper, lower = _two_sum(z, low)
    total, rest = _two_sum(high, upper)
    plain = ~np.isfinite(x) | ~np.isfinite(y) | np.isnan(z) | (x == 0) | (y == 0)
    result = np.where(plain, x * y + z, total + _sum_to_odd(lower, rest))
    exponents = np.frexp([x, y, z, high])[1]
    rim = ~plain & (~np.isfinite(total) | (high == 0) | np.any(np.abs(exponents) > 900, axis=0))
    fma_of_c = ctypes.CFUNCTYPE(*[ctypes.c_double] * 4)(symbol_in(c_library(), "fma") or 0)
    result[rim] = np.frompyfunc(fma_of_c, 3, 1)(x[rim], y[rim], z[rim])
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


_op("add", 2, np.add, b="or", iu="add", f="fadd")
_op("sub", 2, np.subtract, iu="sub", f="fsub")
_op("mul", 2, np.multiply, b="and", iu="mul", f="fmul")
_op("div", 2, _div, iu=div, f="fdiv")
_op("rem", 2, _rem, iu=rem, f="frem")
_op("neg", 1, np.negative, iu=lambda x: 0 - x, f="fneg {t} {x}")
_op("abs", 1, np.abs, i="call {t} @llvm.abs.{m}({t} {x}, i1 false)", u=lambda x: x, f="@llvm.fabs")
_op("halves", 2, halves, i=halves)
_op("fma", 3, _fma, f="@llvm.fma")
_op("min", 2, partial(_ordered, np.minimum, lambda x, y: -(-x - y)), b="and",
    i="@llvm.smin", u="@llvm.umin", f=partial(extremum, "min"))
_op("max", 2, partial(_ordered, np.maximum, np.add), b="or",
    i="@llvm.smax", u="@llvm.umax", f=partial(extremum, "max"))
for _name in ("sqrt", "floor", "ceil", "trunc"):
    _op(_name, 1, getattr(np, _name), f=f"@llvm.{_name}")
_op("round_even", 1, np.rint, f="@llvm.roundeven")
_op("copysign", 2, np.copysign, f="@llvm.copysign")
for _name in ("and", "or", "xor"):
    _op(_name, 2, getattr(np, f"bitwise_{_name}"), biu=_name)
_op("not", 1, np.invert, biu=lambda x: x ^ x.const(-1))
_op("shl", 2, np.left_shift, iu=partial(shifted, "shl"))
_op("shr_logical", 2, partial(_shifted_right, "u"), iu=partial(shifted, "lshr"))
_op("shr_arithmetic", 2, partial(_shifted_right, "i"), iu=partial(shifted, "ashr"))
_op("eq", 2, np.equal, "bool", biu="icmp eq", f="fcmp oeq")
_op("ne", 2, np.not_equal, "bool", biu="icmp ne", f="fcmp une")
_op("lt", 2, np.less, "bool", i="icmp slt", bu="icmp ult", f="fcmp olt")
_op("le", 2, np.less_equal, "bool", i="icmp sle", bu="icmp ule", f="fcmp ole")
_op("gt", 2, np.greater, "bool", i="icmp sgt", bu="icmp ugt", f="fcmp ogt")
_op("ge", 2, np.greater_equal, "bool", i="icmp sge", bu="icmp uge", f="fcmp oge")
_op("select", 3, lambda condition, x, y: np.asarray(np.where(condition, x, y))[()],
    biufn="select {b} {x}, {t} {y}, {t} {z}")
_op("convert", 1, _convert, "target", biufn=converted)
_op("bitcast", 1, lambda x, t: np.asarray(x).view(t)[()], "target", iufn="bitcast {s} {x} to {t}")


@cache
def result_dtype(name: str, dtypes: tuple[np.dtype, ...], target: Any = None) -> np.dtype:
    """The result dtype of an operation on operands of these dtypes; refuses illegal combinations.

    >>> result_dtype("lt", (FLOAT32, FLOAT32))
    dtype('bool')
    """
    op, values = OPS[name], dtypes[1:] if name == "select" else dtypes
    result = {"bool": BOOL, "target": target}.get(op.result, values[-1])
    involved = {*values, target} if op.result == "target" else {*values}
    legal = (len(dtypes) == op.arity and len(set(values)) == 1 and dtypes[0] in (values[0], BOOL)
             and all(kind_of(dtype) in op.instructions for dtype in involved))
    if not legal or name == "bitcast" and target.itemsize != dtypes[0].itemsize:
        signature = ", ".join(map(str, dtypes)) + (f" → {target}" if target is not None else "")
        raise TypeError(f"scalar operation {name} is not defined for ({signature})")
    return result


class Scalars:
    """The scalar operations as methods; a bare number takes the dtype of the other operand.

    Narrow numbers are computed in wide ones and rounded once.
    """

    operands: Any  # the types of what is not a bare number

    const: Callable[[Any, Any], Any]  # of a value and a dtype
    let: Callable[..., Any]  # of a name and operands: the operation as it is (`target`: its dtype)

    def convert(self, x: Any, dtype: Any) -> Any:
        """x in another dtype."""
        return self.let("convert", (x,), np.dtype(dtype))

    def bitcast(self, x: Any, dtype: Any) -> Any:
        """The same bits in another dtype of the same width."""
        dtype = np.dtype(dtype)
        return x if x.dtype == dtype else self.let("bitcast", (x,), dtype)

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        """x where the condition holds, else y; both are evaluated."""
        return self.let("select", (condition, *self._alike((x, y))))

    def clamp(self, x: Any, low: Any, high: Any) -> Any:
        """x held within [low, high]."""
        return self.min(self.max(x, low), high)

    def operand(self, x: Any, dtype: Any) -> Any:
        """x, as a constant of this dtype if it is a bare number."""
        return x if isinstance(x, self.operands) else self.const(x, dtype)

    def _alike(self, args: tuple) -> tuple:
        operands = [x for x in args if isinstance(x, self.operands)]
        return args if len(operands) == len(args) else tuple([
            self.operand(x, operands[0].dtype) for x in args])

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = name.rstrip("_")
        if op not in OPS:
            raise AttributeError(f"there is no scalar operation {name!r}")
        # The next lookup finds it in the class.
        setattr(Scalars, name, lambda self, *args: self.operation(op, args))
        return getattr(self, name)

    def operation(self, op: str, args: tuple) -> Any:
        """The operation with that name on operands and bare numbers."""
        operands = self._alike(args)
        dtype = operands[0].dtype
        if kind_of(dtype) != "n":
            return self.let(op, operands)
        sign = {"shr_logical": "u", "shr_arithmetic": ""}.get(op)  # of what fills up the bits
        bits = dtype if sign is None else np.dtype(sign + dtype.name.removeprefix("u"))
        wide = self.let(op, tuple(self.convert(self.bitcast(x, bits), computed_in(bits))
                                  for x in operands))
        return wide if wide.dtype == BOOL else self.bitcast(self.convert(wide, bits), dtype)


class NumpyScalars(Scalars):
    """The operations on NumPy arrays, to run and test elementary functions.

    >>> s = NumpyScalars()
    >>> s.max(s.mul(np.float32([1, -2]), 3), 0)
    array([3., 0.], dtype=float32)
    """

    operands = (np.ndarray, np.generic)

    def const(self, value: Any, dtype: Any) -> Any:
        return np.asarray(value).astype(dtype)[()]

    def let(self, op: str, args: tuple, target: np.dtype | None = None) -> Any:
        return OPS[op].meaning(*args, *([] if target is None else [target]))


for _name, _formula in FORMULAS.items():
    _op(_name, _formula.__code__.co_argcount, partial(infix(_formula), NumpyScalars()), f=_formula)
