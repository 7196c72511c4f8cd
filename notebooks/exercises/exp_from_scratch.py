"""The exercises of chapter 25, *exp from scratch*."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.notebook.checks import agree, exercise, expect, near, numbers, shown, wanting

from .ways import unchanged

CHAPTER = "25_exp_from_scratch"
LOG2 = math.log(2)

GIVEN = """
import math
LOG2 = math.log(2)
HIGH = np.float32(LOG2)
LOW = np.float32(LOG2 - float(HIGH))

def fma(x, y, z):
    return np.float32(np.multiply(x, y, dtype=np.float64) + z)

def polynomial(coefficients, x):
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = fma(total, x, coefficient)
    return total

def power_of_two(k):
    return ((k + 127) << 23).view(np.float32)

def scale(y, k):
    half = k >> 1
    with np.errstate(over="ignore"):
        return y * power_of_two(half) * power_of_two(k - half)

EXP = np.float32([0.49999994, 0.16666521, 0.04166839, 0.00836871, 0.00138146])
LOG = np.float32([0.33333331, -0.2500082, 0.20001227, -0.16623357, 0.14201759, -0.13160183,
                  0.12761574, -0.07634493])
"""


def ulps(result: Any, exact: Any) -> np.ndarray:
    """The errors of results in ulps of float32; 0 where they are equal."""
    with np.errstate(all="ignore"):
        gap = np.spacing(np.abs(exact).astype(np.float32)).astype(float)
        misses = np.abs(np.asarray(result, float) - exact) / gap
    same = (result == exact.astype(np.float32)) | (np.isnan(result) & np.isnan(exact))
    return np.where(same, 0.0, misses)


def float32s(result: Any, inputs: str, size: int) -> np.ndarray:
    """An answer's result, if it is a float32 vector of this size; otherwise a hint."""
    array = np.asarray(numbers(result))
    expect(array.shape == (size,), f"for {inputs} {size} numbers are expected, and yours is of "
           f"shape {array.shape}: compute with the array")
    expect(array.dtype == np.float32, f"for {inputs} the dtype is float32, and yours is "
           f"{array.dtype}: a constant of 64 bits makes everything 64 bits wide")
    return array


class Argument(np.ndarray):
    """An array that refuses NumPy's function for what the exercise builds."""

    ready: tuple[str, ...] = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **options: Any) -> Any:
        base = ufunc is np.power and not isinstance(args[1], Argument)  # as in x ** 3
        expect(ufunc.__name__ not in self.ready or base, f"yours calls `np.{ufunc.__name__}`, "
               "which does it all: build it of the parts that the chapter has")

        def plain(x: Any) -> Any:
            return tuple(map(plain, x)) if isinstance(x, tuple) else (
                x.view(np.ndarray) if isinstance(x, Argument) else x)
        out = getattr(ufunc, method)(*plain(args), **{k: plain(x) for k, x in options.items()})
        return out.view(type(self)) if isinstance(out, np.ndarray) else out


class OfExp2(Argument):
    ready = ("exp", "exp2", "expm1", "power", "float_power", "sinh", "cosh")


class OfLog(Argument):
    ready = ("log", "log2", "log10", "log1p", "arctanh", "arcsinh", "logaddexp", "logaddexp2")


class OfScaled(Argument):
    ready = ("ldexp", "exp2", "power", "float_power")


def words_of(code: types.CodeType) -> set[str]:
    """The names in a function's code, and in that of the functions inside."""
    inside = (words_of(c) for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*inside)


def exact_enough(function: Callable, x: np.ndarray, exact: np.ndarray, most: float,
                 hint: str) -> None:
    """Check that the errors are at most that many ulps; otherwise show the largest."""
    given, before = f"x = {shown(x[:3])}, …", np.array(x)
    with wanting(f"x = {shown(x[:3])}", exact[:3].astype(np.float32)):
        result = function(x)
    unchanged(given, before, np.asarray(x))
    x = before
    array = float32s(result, given, len(x))
    misses = ulps(array, exact)
    misses = np.where(np.isnan(misses), np.inf, misses)
    k = int(np.argmax(misses))
    expect(misses[k] <= most, f"for x = {float(x[k])!r} the answer is {exact[k]:.9g}, and yours is "
           f"{array[k]:.9g}: {misses[k]:.3g} ulps away\n{hint}")


# ---------------------------------------------------------------- floats


def grade_float_of_bits(float_of_bits: Callable) -> None:
    random = np.random.default_rng(0)
    values = [1.0, 2.0, 0.5, 6.5, 0.1, 1e30, 3e-30, *random.uniform(0, 100, 20)]
    groups = [(values, "the fraction is a part of 2**23, and the leading 1 is not stored"),
              ([-1.0, -6.5, -1e-20], "the highest bit is the sign"),
              ([1e-40, -3e-42, 2.0**-149], "where the exponent's bits are all 0 there is no leading"
               " 1, and the power is that of the exponent 1"),
              ([0.0], "zero is the smallest of the numbers without a leading 1"),
              ([-0.0], "the highest bit is the sign of a zero, too"),
              ([np.inf, -np.inf, np.nan], "where the exponent's bits are all 1 it is infinity, or, "
               "with any other fraction than 0, a nan")]
    for group, hint in groups:
        for value in np.array(group, np.float32):
            bits = int(value.view(np.uint32))
            expected = float(value)
            with wanting(f"bits = {bits:#010x}", expected):
                result = numbers(float_of_bits(bits))
            same = np.isnan(result) and np.isnan(expected) or (
                result == expected and np.signbit(result) == np.signbit(expected))
            expect(same, f"for bits = {bits:#010x} the answer is {expected!r}, and yours is "
                   f"{result!r}\n{hint}")
    for bits in (0x7f800001, 0xff812345, 0x7fbfffff):
        result = float_of_bits(bits)
        expect(np.isnan(result), f"for bits = {bits:#010x} the answer is nan, and yours is "
               f"{result!r}\nwhere the exponent's bits are all 1, any fraction but 0 is a nan")
    ready = words_of(float_of_bits.__code__) & {
        "view", "unpack", "unpack_from", "frombuffer", "from_buffer", "from_buffer_copy", "cast",
        "bitcast_convert_type"}
    expect(not ready, f"the numbers are right, and `{', '.join(ready)}` reads the bits: do it by "
           "arithmetic alone")


_BITS = """
def float_of_bits(bits):
    sign = -1.0 if bits >> 31 else 1.0
    exponent = (bits >> 23) & 255
    fraction = (bits & (2**23 - 1)) / 2**23
    if exponent == 255:
        return sign * math.inf if fraction == 0 else math.nan
    if exponent == 0:
        return sign * fraction * 2.0**-126
    return sign * (1 + fraction) * 2.0**(exponent - 127)
"""

_BITS_NAN = """
def float_of_bits(bits):
    sign, exponent, fraction = (-1.0) ** (bits >> 31), bits >> 23 & 255, bits & 0x7fffff
    if exponent == 255:
        return sign * math.inf if fraction < 1 << 22 else math.nan
    return sign * (fraction + (exponent > 0) * 2**23) * 2.0 ** (max(exponent, 1) - 150)
"""

exercise(
    "float_of_bits", chapter=CHAPTER, grade=grade_float_of_bits, given=GIVEN, solution=_BITS,
    wrong=[
        (_BITS.replace("(1 + fraction)", "fraction"), "the leading 1"),
        (_BITS.replace("-1.0 if bits >> 31 else 1.0", "1.0"), "the sign"),
        (_BITS.replace("    if exponent == 0:\n        return sign * fraction * 2.0**-126\n", ""),
         "there is no leading"),
        (_BITS.replace("2.0**-126", "2.0**-127"), "that of the exponent 1"),
        (_BITS.replace("    if exponent == 255:\n        return sign * math.inf if fraction == 0 "
                       "else math.nan\n", ""), "it is infinity"),
        (_BITS.replace("if exponent == 0:", "if bits % 2**31 == 0:\n        return 0.0\n"
                       "    if exponent == 0:"), "of a zero, too"),
        ("def float_of_bits(bits):\n    return float(np.uint32(bits).view(np.float32))",
         "by arithmetic alone"),
        ("import struct\ndef float_of_bits(bits):\n"
         "    return struct.unpack('<f', struct.pack('<I', bits))[0]", "by arithmetic alone"),
        (_BITS_NAN, "is a nan"),
    ],
    afterthought="numbers without a leading 1 are called subnormal; they fill the gap around 0",
    hints=["`bits >> 23 & 255` is the exponent's byte", "three cases: the byte is 0, 255, or "
           "between them"])


def grade_terms(terms: Callable) -> None:
    def count(a: float, least: float) -> int:
        n, term = 0, 1.0
        while term > least:
            n += 1
            term *= a / n
        return n

    for a in (0.35, 0.1, 1.0, 0.7, 2.0, 5.0, 10.0, 20.0, 0.01):
        expected = count(a, 2.0**-25 * math.exp(-a))
        with wanting(f"a = {a}", expected):
            result = numbers(terms(a))
        agree(f"a = {a}", result, expected,
              (result == expected + 1, "the first term is 1, and it is number 0: if the term with "
               "n is small enough, n terms stand before it"),
              (result == count(a, 2.0**-25), "the result may be as small as exp(-a), and the error "
               "must be small beside that"),
              (result == expected - 1, "this many terms are not enough: look at the first one that "
               "is left out"),
              "the term with number n is a**n / n!", tolerance=0)


_TERMS = """
def terms(a):
    n, term = 0, 1.0
    while term > 2.0**-25 * math.exp(-a):
        n += 1
        term *= a / n
    return n
"""

exercise(
    "terms", chapter=CHAPTER, grade=grade_terms, given=GIVEN, solution=_TERMS,
    wrong=[
        (_TERMS.replace(" * math.exp(-a)", ""), "as small as exp(-a)"),
        (_TERMS.replace("return n", "return n + 1"), "it is number 0"),
        (_TERMS.replace("return n", "return n - 1"), "are not enough"),
        (_TERMS.replace("term *= a / n", "term *= a"), "a**n / n!"),
    ],
    hints=["each term is the one before it, times a, divided by its number"])


# ---------------------------------------------------------------- k and r


def grade_high_and_low(high_and_low: Callable) -> None:
    numbers_to_split = {"log 2": LOG2, "π/2": math.pi / 2, "1/3": 1 / 3, "1000e": 1000 * math.e}
    for name, c in numbers_to_split.items():
        for bits in (16, 12, 20):
            inputs = f"c = {name} and bits = {bits}"
            with wanting(inputs, "two float32s", "return high, low"):
                high, low = high_and_low(c, bits)
            expect(all(np.asarray(x).dtype == np.float32 for x in (high, low)),
                   f"for {inputs} two float32s are expected, and yours are {high!r} and {low!r}")
            most = 2**(24 - bits) - 1
            exact = float(most) * float(high)
            product = float(np.float32(most) * high)
            expect(product == exact, f"for {inputs} the product {most} * high is {exact!r}, and as "
                   f"a float32 it is {product!r}: high is {float(high)!r}, and has too many bits")
            expected = c - float(high)
            expect(abs(expected) <= 2.0**(math.frexp(c)[1] - bits), f"for {inputs} high is near "
                   f"{c:.7g}, and yours is {float(high)!r}: keep as many bits as you may")
            expect(abs(expected) <= 2.0**(math.frexp(c)[1] - bits - 1), f"for {inputs} high is "
                   f"{float(high)!r}, and another number of {bits} bits is nearer to {c!r}: "
                   "round, do not cut off")
            agree(inputs, float(low), expected,
                  (low == 0, "what high has not must be found before c is rounded to 24 bits"),
                  "low is c - high, rounded only then", what="low",
                  tolerance=2.0**-23 * abs(expected))


_SPLIT = """
def high_and_low(c, bits):
    gap = 2.0**(math.frexp(c)[1] - bits)
    high = round(c / gap) * gap
    return np.float32(high), np.float32(c - high)
"""

exercise(
    "high_and_low", chapter=CHAPTER, grade=grade_high_and_low, given=GIVEN, solution=_SPLIT,
    wrong=[
        ("def high_and_low(c, bits):\n    high = np.float32(c)\n"
         "    return high, np.float32(c - float(high))", "too many bits"),
        ("def high_and_low(c, bits):\n    high = np.float32(round(c, 4))\n"
         "    return high, np.float32(c - float(high))", "keep as many bits"),
        (_SPLIT.replace("c - high", "np.float32(c) - np.float32(high)"), "rounded only then"),
        (_SPLIT.replace("round(", "math.floor("), "is nearer"),
        ("def high_and_low(c, bits):\n    high = np.float32(math.floor(c))\n"
         "    return high, np.float32(c - float(high))", "as many bits as you may"),
        (_SPLIT.replace("return np.float32(high), np.float32(c - high)", "return high, c - high"),
         "two float32s are expected"),
    ],
    afterthought="Cody and Waite's manual of 1980 does so; it is needed where there is no fma",
    hints=["find the gap first: c lies below 2**e, and high is a whole multiple of 2**(e - bits)"])


# ---------------------------------------------------------------- a polynomial


def grade_alternations(alternations: Callable) -> None:
    x = np.linspace(-1, 1, 2001)
    cases = {f"the Chebyshev polynomial {n}": (np.cos(n * np.arccos(x)), n + 1) for n in (2, 5, 6)}
    cases["x**2"] = x**2, 1
    cases["x"] = x, 2
    cases["cos(9x) where the last wave is higher"] = np.cos(9 * x) * (1 + (x > 0.5)), 1
    cases["minus a millionth of a Chebyshev polynomial"] = -1e-6 * np.cos(4 * np.arccos(x)), 5
    cases["x * (1 - x)"] = x * (1 - x), 1
    cases["a thousandth of that wave"] = 1e-3 * np.cos(9 * x) * (1 + (x > 0.5)), 1
    cases["a thousand times a Chebyshev polynomial"] = 1e3 * np.cos(3 * np.arccos(x)) * 1.004**x, 4
    for name, (errors, expected) in cases.items():
        inputs = f"errors = {name}, from -1 to 1,"
        with wanting(inputs, expected):
            result = numbers(alternations(errors))
        big = np.abs(errors) >= 0.99 * np.abs(errors).max()
        agree(inputs, result, expected,
              (np.any(errors == 0) and result == expected - 1 and result == 1 + np.count_nonzero(
                  errors[1:] * errors[:-1] < 0), "small ones do not count, and a change of sign "
               "may pass through 0: look at the extremes"),
              (result == expected - 1, "between two neighbours is one change: how many are there "
               "in all?"),
              (result == np.count_nonzero(np.diff(np.sign(errors))) + 1, "small ones do not count: "
               "only where the error is at its largest, or within 1 % of it"),
              (result == np.count_nonzero(big), "neighbours of one sign belong to one extreme"),
              "all count that are within 1 % of the largest size, without the sign; and the first "
              "and the last point of the grid may be extremes, too", tolerance=0)


exercise(
    "alternations", chapter=CHAPTER, grade=grade_alternations, given=GIVEN,
    solution="""
def alternations(errors):
    size = np.abs(errors)
    signs = np.sign(errors[size >= 0.99 * size.max()])
    return 1 + np.count_nonzero(np.diff(signs))
""",
    wrong=[
        ("def alternations(errors):\n    return 1 + np.count_nonzero(np.diff(np.sign(errors)))",
         "small ones do not count"),
        ("def alternations(errors):\n    size = np.abs(errors)\n"
         "    return np.count_nonzero(size >= 0.99 * size.max())", "belong to one extreme"),
        ("def alternations(errors):\n    return 1 + np.count_nonzero(errors[1:] * errors[:-1] < 0)",
         "pass through 0"),
        ("def alternations(errors):\n    size = np.abs(errors)\n"
         "    signs = np.sign(errors[size >= 0.99 * size.max()])\n"
         "    return np.count_nonzero(np.diff(signs))", "one change"),
        ("def alternations(errors):\n    signs = np.sign(errors[errors >= 0.99 * errors.max()])\n"
         "    return 1 + np.count_nonzero(np.diff(signs))", "without the "),
        ("def alternations(errors):\n    size = np.abs(errors)\n"
         "    signs = np.sign(errors[size >= size.max() - 0.01])\n"
         "    return 1 + np.count_nonzero(np.diff(signs))", "small ones do not"),
        ("def alternations(errors):\n    size = np.abs(errors)\n    signs = [\n"
         "        np.sign(errors[k]) for k in range(1, len(size) - 1)\n"
         "        if size[k - 1] <= size[k] >= size[k + 1] and size[k] >= 0.99 * size.max()]\n"
         "    return 1 + np.count_nonzero(np.diff(signs))", "may be extremes"),
    ],
    hints=["keep the places where the error is large; then look at the signs there, in order"])


# ---------------------------------------------------------------- 2**k


def grade_scaled(scaled: Callable) -> None:
    random = np.random.default_rng(1)
    groups = [(random.integers(-100, 100, 300), "multiply y by 2**k"),
              (np.arange(127, 140), "2**128 is infinite, and the product need not be: take more "
               "than one step"),
              (np.arange(-155, -126).repeat(20), "2**-127 has no normal exponent; and what is left "
               "of y should be rounded once, so no step but the last may leave the normal numbers"),
              (np.array([-250, 250, -200, 200]), "no step may leave the range of normal numbers, "
               "-126 to 127")]
    names: dict[str, Any] = getattr(scaled, "__globals__", {})
    power: Any = names.get("power_of_two")
    powers: list[Any] = []

    def noted(k: Any) -> Any:
        powers.append(k)
        return power(k)

    if power:
        names["power_of_two"] = noted
    try:
        scaled(np.ones(2, np.float32).view(OfScaled), np.array([-1, 1], np.int32))
    finally:
        names |= {"power_of_two": power} if power else {}
    for ks, hint in groups:
        k = ks.astype(np.int32)
        y = random.uniform(0.71, 1.41, len(k)).astype(np.float32)
        before = y.copy()
        with np.errstate(all="ignore"):
            expected = np.ldexp(y.astype(float), k).astype(np.float32)
            with wanting(f"y = {shown(y[:2])} and k = {shown(k[:2])}", expected[:2]):
                result = scaled(y.view(OfScaled), k)
        array = float32s(result, f"k = {shown(k[:3])}, …", len(k))
        unchanged(f"y = {shown(before[:2])}, … and k = {shown(k[:3])}, …", before, y)
        for i in np.flatnonzero(array != expected)[:1]:
            expect(False, f"for y = {y[i]:.6g} and k = {k[i]} the answer is {expected[i]:.6g}, and "
                   f"yours is {array[i]:.6g}\n{hint}")
    expect(powers or not power, "the products are right, and this time the powers of two should "
           "come from `power_of_two`, in 32 bits")


_SCALED = """
def scaled(y, k):
    half = k >> 1
    return y * power_of_two(half) * power_of_two(k - half)
"""

exercise(
    "scaled", chapter=CHAPTER, grade=grade_scaled, given=GIVEN, solution=_SCALED,
    wrong=[
        ("def scaled(y, k):\n    return y * power_of_two(k)", "2**128 is infinite"),
        ("def scaled(y, k):\n    return y * power_of_two(np.clip(k, -126, 127))", "need not be"),
        ("def scaled(y, k):\n    half = k >> 1\n    return y * power_of_two(half) ** 2",
         "multiply y by"),
        ("def scaled(y, k):\n    first = np.clip(k, -126, 127)\n"
         "    return y * power_of_two(first) * power_of_two(k - first)", "rounded once"),
        ("def scaled(y, k):\n    return y * (power_of_two(k >> 1) * power_of_two(k - (k >> 1)))",
         "no step but the last"),
        ("def scaled(y, k):\n    return np.ldexp(y, k)", "which does it all"),
        ("def scaled(y, k):\n    y *= power_of_two(k >> 1)\n    y *= power_of_two(k - (k >> 1))\n"
         "    return y", "its caller may still need it"),
        ("def scaled(y, k):\n    return np.float32(y * np.float32(2.0) ** k)", "should come from"),
    ],
    right=["def scaled(y, k):\n    return scale(y, k)"],
    afterthought="the first product is exact, and so there is one rounding, even in the subnormal "
                 "numbers",
    hints=["2**k is the product of two powers that are both in range", "in which order are three "
           "factors multiplied?"])


def grade_exp2(exp2: Callable) -> None:
    whole = np.arange(-20, 20).astype(np.float32)
    small = np.linspace(-1, 1, 20_001).astype(np.float32)
    large = np.linspace(-100, 88, 40_001).astype(np.float32)
    larger = np.append(np.linspace(-126, -100, 9001), np.linspace(88, 127.9, 9001)).astype("f")
    ends = np.array([128.0, 200.0, 1e30, np.inf, -150.5, -1e30, -np.inf, -140, 127.99], np.float32)

    with np.errstate(all="ignore"):
        for x, hint in ((small, "2**r is exp(r log 2), and the polynomial is good for |r log 2| up "
                         "to log(2) / 2"),
                        (large, "x * log 2 is rounded, and of a large number much is rounded away: "
                         "find k and r before you multiply"),
                        (larger, "from -126 to 128, 2**x is a normal number: which x do you let "
                         "through?"),
                        (whole, "of a whole number the result is a power of two, exactly")):
            exact_enough(exp2, x.view(OfExp2), np.exp2(x.astype(float)), 1.5, hint)
        exact_enough(exp2, ends, np.exp2(ends.astype(float)), 1.5,
                     "keep x within a range in which k has a power of two, as exp does")
        nan = float32s(exp2(np.array([np.nan], np.float32)), "x = [nan]", 1)
    expect(np.isnan(nan[0]), f"for x = nan the answer is nan, and yours is {nan[0]}")


_EXP2 = """
def exp2(x):
    x = np.clip(x, -151, 129)
    k = np.rint(np.nan_to_num(x))
    r = (x - k) * HIGH
    y = fma(r * r, polynomial(EXP, r), r) + 1
    return scale(y, k.astype(np.int32))
"""

exercise(
    "exp2", chapter=CHAPTER, grade=grade_exp2, given=GIVEN, solution=_EXP2,
    wrong=[
        (_EXP2.replace("k = np.rint(np.nan_to_num(x))\n    r = (x - k) * HIGH",
                       "x = x * HIGH\n    k = np.rint(np.nan_to_num(x / HIGH))\n"
                       "    r = fma(k, -LOW, fma(k, -HIGH, x))"), "before you multiply"),
        (_EXP2.replace("rint", "floor"), "up to log(2) / 2"),
        (_EXP2.replace("(x - k) * HIGH", "x - k"), "2**r is exp(r log 2)"),
        (_EXP2.replace("np.clip(x, -151, 129)", "x"), "keep x within"),
        ("def exp2(x):\n    return 2.0 ** x.astype(np.float64)", "which does it all"),
        ("def exp2(x):\n    return np.exp2(x)", "which does it all"),
        ("def exp2(x):\n    return np.asarray(x, np.float64) + 1", "64 bits wide"),
        (_EXP2.replace("-151, 129", "-104, 90"), "do you let through"),
        (_EXP2.replace("129)", "129, out=x)"), "its caller may still need it"),
    ],
    afterthought="x - k is exact, so no second piece of log 2 is needed",
    hints=["2**x is 2**k times 2**(x - k), and x - k is exact"])


# ---------------------------------------------------------------- log


def grade_log(log: Callable) -> None:
    random = np.random.default_rng(2)
    near = (1 + np.linspace(-0.25, 0.25, 20_001)).astype(np.float32)
    usual = np.exp(random.uniform(-87, 88, 40_000)).astype(np.float32)
    with np.errstate(all="ignore"):
        for x, hint in (
                (near, "near 1 it is f - f²/2 + f³ p(f) alone: e is 0 from √½ to √2, so that no "
                 "e log 2 must cancel"),
                (usual, "is it log(1 + f) + e log 2, with the f and e of `parts`?")):
            exact_enough(log, x.view(OfLog), np.log(x.astype(float)), 1.5, hint)
        rims = [(np.inf, np.inf, "infinity has no parts: choose, at the end, with np.where"),
                (0.0, -np.inf, "the logarithm of 0 is -inf"),
                (-1.0, np.nan, "a negative number has no logarithm"),
                (-0.0, -np.inf, "the logarithm of 0 is -inf, also that of -0.0"),
                (-np.inf, np.nan, "minus infinity is negative, too"),
                (np.nan, np.nan, "nan stays nan")]
        for value, expected, why in rims:
            x = np.array([value, 1.0], np.float32)
            with wanting(f"x = [{value}, 1.0]", [expected, 0.0]):
                result = log(x)
            inputs = f"x = [{value}, 1.0]"
            agree(inputs, float32s(result, inputs, 2), [expected, 0.0], why)


LOG_GIVEN = GIVEN + """
def parts(x):
    root = np.float32(math.sqrt(0.5))
    e = (x.view(np.int32) - root.view(np.int32)) >> 23
    m = (x.view(np.int32) - (e << 23)).view(np.float32)
    return m - 1, e.astype(np.float32)
"""
_LOG = """
def log(x):
    f, e = parts(x)
    rest = f * f * f * polynomial(LOG, f)
    y = fma(e, HIGH, f + fma(f * f, np.float32(-0.5), rest))
    y = np.where(x < np.inf, y, x)
    return np.where(x > 0, y, np.where(x == 0, np.float32(-np.inf), np.float32(np.nan)))
"""

exercise(
    "log", chapter=CHAPTER, grade=grade_log, given=LOG_GIVEN, solution=_LOG,
    wrong=[
        (_LOG.replace("f * f * f * ", ""), "near 1 it is f"),
        (_LOG.replace("f, e = parts(x)", "m, e = np.frexp(x)\n    f, e = 2 * m - 1, "
                      "np.float32(e) - 1"), "must cancel"),
        (_LOG.replace("    y = np.where(x < np.inf, y, x)\n", ""), "has no parts"),
        (_LOG.replace("np.float32(-np.inf)", "np.float32(np.nan)"), "the logarithm of 0"),
        (_LOG.replace("fma(e, HIGH, ", "("), "with the f and e"),
        (_LOG.replace("x > 0", "x != 0").replace("np.where(x == 0", "np.where(x <= 0"),
         "negative number"),
        (_LOG.replace("    y = np.where(x < np.inf, y, x)\n", "").replace(
            "return ", "y = ") + "    return np.where(np.isinf(x), x, y)", "minus infinity"),
        ("def log(x):\n    return np.log(x)", "which does it all"),
    ],
    afterthought="subnormal numbers are still missing: the real one first multiplies them by 2**23",
    hints=["start with the smallest terms: the largest one, e * HIGH, comes last",
           "`np.where` with three answers is two of them, one in the other"])


# ---------------------------------------------------------------- angles


PLACES = 400


def _arctan_of_inverse(n: int, one: int) -> int:
    """The arc tangent of 1/n, in units of 1/one, from its series."""
    power, total, k = one // n, 0, 1
    while power:
        total += power // k if k % 4 == 1 else -(power // k)
        power, k = power // (n * n), k + 2
    return total


def two_over_pi() -> int:
    """2/π, in units of 2**-PLACES: by Machin's formula, with some digits more on the way."""
    one = 1 << PLACES + 64
    pi = 4 * (4 * _arctan_of_inverse(5, one) - _arctan_of_inverse(239, one))
    return (2 * one << PLACES) // pi


DIGITS = two_over_pi()


def exact_quarters(x: float) -> tuple[int, float]:
    fraction, exponent = math.frexp(x)
    m, p = int(fraction * 2**24), exponent - 24
    product, point = m * DIGITS, PLACES - p
    n = (product + (1 << point - 1)) >> point
    return n % 4, (product - (n << point)) / (1 << point)


def grade_few_digits(few_digits: Callable) -> None:
    random = np.random.default_rng(3)
    large = [float(2**100), *map(float, np.exp(random.uniform(22, 88, 40)).astype(np.float32))]
    for x in np.array([16367174.0, 3e7, 1e10, *large], np.float32).tolist():
        n, part = exact_quarters(x)
        with wanting(f"x = {x!r}", (n, part)):
            answer = few_digits(x)
        expect(isinstance(answer, tuple) and len(answer) == 3, "return three: the 96 digits as an "
               f"integer, n and the part; yours is {answer!r}")
        digits, result, rest = answer
        expect(isinstance(digits, int) and 0 <= digits < 2**96, f"for x = {x!r} an integer of 96 "
               f"digits is expected, and yours is {digits!r}")
        counting = DIGITS >> PLACES - (math.frexp(x)[1] - 24 + 94) & 2**96 - 1
        expect(result == n, f"for x = {x!r} n is {n}, and yours is {result}\n" + (
            "n counts to 3, and then begins again" if result % 4 == n else
            "your digits are right: n is the nearest whole number, above or below" if digits ==
            counting else
            "which digit of 2/π is the first that does not just add whole turns? It is number "
            "p - 1"))
        m, p = int(math.frexp(x)[0] * 2**24), math.frexp(x)[1] - 24
        places = [p + k for k in range(24) if m % 2**k == 0]
        expect(digits in [DIGITS >> PLACES - (q + 94) & 2**96 - 1 for q in places],
               f"for x = {x!r} n is right, and the first of the three is not: the 96 digits of 2/π "
               "from number p - 1 on, before the product")
        expect(abs(rest - part) <= 1e-14 * abs(part) + 1e-20, f"for x = {x!r} the part is "
               f"{part!r}, and yours is {rest!r}\n" + (
                   "it has a sign: the nearest n may lie above" if near(rest, -part) else
                   "it is wanted in quarter turns, and yours is an angle" if near(
                       rest, part * math.pi / 2) else
                   "take the nearest n: the part lies between -½ and ½" if abs(rest) > 0.5 else
                   "the first digits are right, and the others were lost before the last division, "
                   "in a float or by a shift" if abs(rest - part) <= 1e-6 else
                   "where in the product does the point stand? The 96 digits end at number p + 94"))


_FEW = """
def few_digits(x):
    fraction, exponent = math.frexp(x)
    m, p = int(fraction * 2**24), exponent - 24
    digits = (DIGITS >> PLACES - (p + 94)) & (2**96 - 1)
    product = m * digits
    n = (product + 2**93) >> 94
    return digits, n % 4, (product - (n << 94)) / 2**94
"""

exercise(
    "few_digits", chapter=CHAPTER, grade=grade_few_digits,
    given=GIVEN + f"DIGITS, PLACES = {DIGITS}, {PLACES}\n", solution=_FEW,
    wrong=[
        (_FEW.replace("(p + 94)", "96"), "number p - 1"),
        (_FEW.replace("n % 4", "n"), "begins again"),
        (_FEW.replace(" & (2**96 - 1)", ""), "of 96 digits"),
        (_FEW.replace("n = (product + 2**93) >> 94", "n = product >> 94"), "n is"),
        (_FEW.replace("/ 2**94", "/ 2**96"), "does the point stand"),
        (_FEW.replace("/ 2**94", "/ 2**94 * math.pi / 2"), "quarter turns"),
        (_FEW.replace("return digits", "return product % 2**96"), "before the product"),
        (_FEW.replace("n = (product + 2**93) >> 94", "turns = product / 2**94\n"
                      "    n = round(turns)").replace("(product - (n << 94)) / 2**94",
                                                      "turns - n"), "before the last"),
        (_FEW.replace("(product + 2**93) >> 94", "product >> 94"), "your digits are right"),
    ],
    afterthought="the product of 24 and 96 digits is four multiplications of 32 bits",
    hints=["digit number i of 2/π counts 2**-i; times x = m 2**p that is m 2**(p - i) quarter "
           "turns",
           "`DIGITS >> PLACES - j` ends with digit number j"])


# ---------------------------------------------------------------- a branch


def grade_only_where(only_where: Callable) -> None:
    seen: list[np.ndarray] = []

    def rare(x: Any) -> Any:
        seen.append(np.asarray(x))
        if np.size(x) == 0:
            raise ValueError("there is nothing to compute")
        return -np.sqrt(x)

    def usual(x: Any) -> Any:
        return x * 2

    for values in ([1.0, 2.0, 100.0, 3.0, 400.0], [1.0, 2.0], [100.0, 900.0, 400.0], [5.0]):
        x = np.array(values, np.float32)
        before = x.copy()
        test = x > 50
        expected = np.where(test, -np.sqrt(x), x * 2)
        seen.clear()
        inputs = f"usual = 2x, rare = -√x, test = x > 50 and x = {shown(x)}"
        with wanting(inputs, expected, (ValueError, "if no element asks for the rare case, it is "
                                     "not to be computed at all: not even of nothing")):
            f = only_where(lambda x: x > 50, rare, usual)
            expect(callable(f), "return a function of x")
            result = f(x)
        expect((x == before).all(), f"for {inputs} x should stay as it is, and yours changed it to "
               f"{shown(x)}: `usual` may have given back an array that others hold")
        agree(inputs, result, expected,
              (near(result, np.where(test, -np.sqrt(2 * x), 2 * x)), "`rare` is a function of x, "
               "and not of what `usual` made of it"),
              "the rare elements go back to the places that they came from, be they some or all",
              tolerance=1e-6)
        count = sum(part.size for part in seen)
        expect(count == test.sum(), f"for {inputs} the rare function should see "
               f"{test.sum()} numbers, and yours showed it {count}: pick them out first, with "
               "x[test]")
    for x, why in ((np.array([1.0, -100.0, 100.0, -3.0]), "the test is one of x, and not of what "
                    "`usual` gave"),
                   (np.array([[1.0, 100.0], [400.0, 3.0], [60.0, 5.0]]), "an array may have "
                    "several axes: x[test] has those that ask, and y[test] = … puts them back"),
                   (np.array([1, 100, 3]), "the results of `usual` are no integers: they need an "
                    "array of their own dtype")):
        inputs, expected = f"usual = -x / 2, rare = 3x, test = x > 50 and x = {shown(x)}", np.where(
            x > 50, 3 * x, -x / 2)
        with wanting(inputs, expected, why):
            agree(inputs, only_where(lambda x: x > 50, lambda x: 3 * x, lambda x: -x / 2)(x),
                  expected, why)
    x = np.array([1.0, 100.0], np.float32)
    only_where(lambda x: x > 50, np.negative, lambda x: x)(x)
    expect((x == [1, 100]).all(), f"for usual = x, rare = -x and x = [1, 100], x should stay as it "
           f"is, and yours changed it to {shown(x)}\n`usual` gave back x itself: write into a copy")


_ONLY = """
def only_where(test, rare, usual):
    def f(x):
        asks = test(x)
        y = np.array(usual(x))
        if asks.any():
            y[asks] = rare(x[asks])
        return y
    return f
"""

exercise(
    "only_where", chapter=CHAPTER, grade=grade_only_where, given=GIVEN, solution=_ONLY,
    wrong=[
        ("def only_where(test, rare, usual):\n    return lambda x: np.where(test(x), rare(x), "
         "usual(x))", "pick them out first"),
        (_ONLY.replace("if asks.any():", "if True:"), "not even of nothing"),
        (_ONLY.replace("np.array(usual(x))", "usual(x)"), "write into a copy"),
        (_ONLY.replace("if asks.any():", "if asks.all():"), "places that they came from"),
        (_ONLY.replace("y[asks] = rare(x[asks])", "y = np.where(asks, rare(x), y)"),
         "pick them out first"),
        (_ONLY.replace("        asks = test(x)\n        y = np.array(usual(x))",
                       "        y = np.array(usual(x))\n        asks = test(y)"), "one of x"),
        (_ONLY.replace("if asks.any():", "for k in np.flatnonzero(asks):")
         .replace("y[asks] = rare(x[asks])", "y[k] = rare(x[k])"), "several axes"),
        (_ONLY.replace("np.array(usual(x))", "np.empty_like(x)\n        y[...] = usual(x)"),
         "their own dtype"),
    ],
    hints=["`x[test]` with an array of booleans picks elements out; `y[test] = …` puts them "
           "back"])
