"""The exercises of chapter 20, *Precision, and where NumPy differs*."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import (Hint, agree, exercise, expect, near, numbers, shown,
                                     wanting)

from .ways import equations, unchanged

CHAPTER = "20_precision"


def _in_32_bits(f: Callable, *args: Any) -> None:
    """Go on if an answer computes with our functions, and without 64 bits."""
    with wanting("arguments that are traced", "a program without 64 bits", (
            jax.errors.TracerArrayConversionError, "NumPy computes with 64 bits: write it with "
            "jnp")):
        program = jax.make_jaxpr(f)(*args)
    for eqn in equations(program):
        expect("callback" not in eqn.primitive.name, "the numbers are right; but yours leaves the "
               "program to compute them elsewhere, with 64 bits")
        for v in eqn.outvars:
            expect(v.aval.dtype.itemsize <= 4, "the numbers are right; but on the way yours makes "
                   f"numbers of {v.aval.dtype}: the formula must save the digits, not 64 bits")


def _agrees(right: Any, inputs: str, result: Any, expected: Any, hint: str) -> None:
    """`agree`, where the caller decides whether the result is right."""
    expect(right, f"for {inputs} the answer is {expected}, and yours is {result}\n{hint}")


def grade_gap(gap: Callable) -> None:
    random = np.random.default_rng(0)
    powers = [2.0**e for e in (0, 1, 10, 23, 24, -1, -20)]
    between = np.array([1.5, 3.0, 0.75, 1000.0, 9e6, 0.1, 1.7e9], np.float32).tolist()
    between += np.float32(2.0 ** random.uniform(-40, 40, 40)).tolist()
    below = [float(np.nextafter(np.float32(power), np.float32(0))) for power in powers]
    ends = [2.0**-126, 2.0**127, 1.5 * 2.0**127]
    hints = ("how many marks are there from 1 to 2, and from 2 to 4?",
             "it is right at powers of two; from one of them to the next, all marks are equally "
             "far apart",
             "just below a power of two the smaller gap still holds: was a logarithm rounded up?",
             "it is right for other numbers; float32s go from 2**-126 to 2**128")
    for group, hint in zip((powers, between, below, ends), hints, strict=True):
        for x in group:
            expected = float(np.spacing(np.float32(x)))
            with wanting(f"x = {x!r}", expected, hint):
                result = numbers(gap(x))
            expect(np.ndim(result) == 0, f"one number is expected, and yours is {shown(result)}")
            expect(isinstance(result, float), f"for x = {x!r} a Python float is expected, and "
                   f"yours is of type {type(result).__name__}")
            _agrees(float(result) == expected, f"x = {x!r}", f"{float(result):.6g}",
                  f"{expected:.6g}", "that is the gap of float64, whose fraction has 52 bits"
                  if float(result) == np.spacing(x) else hint)
    with mock.patch.object(np, "spacing", wraps=np.spacing) as ready_made:
        gap(1.5)
    expect(not ready_made.called, "the gaps are right, and `np.spacing` knows them: find them by "
           "the ruler this time")


exercise(
    "gap", chapter=CHAPTER, grade=grade_gap, given="import math",
    solution="""
def gap(x):
    power = 1.0
    while power > x:
        power /= 2
    while 2 * power <= x:
        power *= 2
    return power / 2**23
""",
    wrong=[
        ("def gap(x):\n    return x / 2**23", "equally far apart"),
        ("def gap(x):\n    return 2.0 ** math.frexp(x)[1] / 2**23", "from 1 to 2"),
        ("def gap(x):\n    return math.ulp(x)", "52 bits"),
        ("def gap(x):\n    return float(np.spacing(np.float32(x)))", "by the ruler"),
        ("def gap(x):\n    return 2.0 ** math.floor(jnp.log2(x)) / 2**23", "a logarithm"),
        ("def gap(x):\n    return 2.0 ** -23", "from 2 to 4"),
        ("def gap(x):\n    return next(2.0**(k - 23) for k in range(60, -60, -1) if 2.0**k <= x)",
         "to 2**128"),
        ("def gap(x):\n    return np.nextafter(np.float32(x), np.float32(np.inf)) - np.float32(x)",
         "a Python float is expected"),
    ],
    afterthought="NumPy has it as `np.spacing(np.float32(x))`",
    hints=["find the power of two at x or below: there the stretch with these gaps begins",
           "each stretch, from a power of two to the next, has 2**23 marks"])


def grade_one_minus_cos(one_minus_cos: Callable) -> None:
    random = np.random.default_rng(1)
    large = [1.0, 2.5, 3.14, *random.uniform(1, 5, 12)]
    small = [1e-3, 1e-2, 1e-4, 1e-5, 3e-5, *random.uniform(1e-5, 0.1, 8),
             *random.uniform(0.1, 1, 20), 0.99]
    compiled = jax.jit(one_minus_cos)
    for group in (large, small, [0.0]):
        for x in np.array(group, np.float32):
            expected = 2 * float(np.sin(np.float64(x) / 2)) ** 2
            with wanting(f"x = {x:.5g}", expected, (
                    jax.errors.TracerArrayConversionError, "write it with jnp: the formula "
                    "must save the digits, not 64 bits")):
                result = float(numbers(compiled(x)))
            at_large = ("the first terms of a series are good near 0 only"
                        if near(result, x * x / 2, 1e-5) else
                        "near π your formula loses digits, too"
                        if x == np.float32(3.14) else
                        "cos(x) is cos² - sin² of half of x: are all the factors there?")
            at_small = ("cos(x) is near 1, and the subtraction leaves its last digits only: do "
                        "without it" if result == np.float32(1) - np.cos(x) else
                        "the first terms of a series are good for the smallest x only")
            _agrees(abs(result - expected) <= 1e-5 * expected, f"x = {x:.5g}", f"{result:.6g}",
                  f"{expected:.6g}", at_large if group is large else at_small)
    _in_32_bits(one_minus_cos, jnp.float32(1e-4))


exercise(
    "one_minus_cos", chapter=CHAPTER, grade=grade_one_minus_cos,
    solution="""
def one_minus_cos(x):
    return 2 * jnp.sin(x / 2) ** 2
""",
    wrong=[
        ("def one_minus_cos(x):\n    return 1 - jnp.cos(x)", "last digits"),
        ("def one_minus_cos(x):\n    return x * x / 2", "near 0 only"),
        ("def one_minus_cos(x):\n"
         "    return jnp.where(x < 1, x**2 / 2 - x**4 / 24, 1 - jnp.cos(x))", "smallest x only"),
        ("def one_minus_cos(x):\n    return jnp.sin(x) ** 2 / (1 + jnp.cos(x))", "near π"),
        ("def one_minus_cos(x):\n    return jnp.sin(x / 2) ** 2", "all the factors"),
        ("def one_minus_cos(x):\n    return 2 * np.sin(x / 2) ** 2", "with jnp"),
        ("def one_minus_cos(x):\n    return jnp.where(x < 0.1, x * x / 2, 1 - jnp.cos(x))",
         "smallest x only"),
        ("def one_minus_cos(x):\n    with jax.enable_x64(True):\n"
         "        return 1 - jnp.cos(jnp.asarray(x, jnp.float64))", "not 64 bits"),
        ("def one_minus_cos(x):\n"
         "    return jax.pure_callback(lambda x: np.float32(1 - np.cos(np.float64(x))), x, x)",
         "elsewhere"),
    ],
    afterthought="`jnp.expm1` and `jnp.log1p` are such formulas for exp(x) - 1 and log(1 + x)",
    hints=["which identity of the cosine has a 1 in it?"])


def grade_careful_sum(careful_sum: Callable) -> None:
    random = np.random.default_rng(2)
    cases = {"[1.0, 2.0, 3.5]": [1.0, 2.0, 3.5], "[2**24] + [1] * 101": [2.0**24] + [1.0] * 101,
             "[0.1] * 300": [0.1] * 300, "300 random numbers": random.uniform(0, 1000, 300)}
    for text, values in cases.items():
        x = np.array(values, np.float32)
        expected = math.fsum(x.tolist())
        with wanting(f"x = {text}", expected):
            result = numbers(careful_sum(jnp.asarray(x)))
        expect(np.ndim(result) == 0, f"one number is expected, and yours is {shown(result)}")
        expect(getattr(result, "dtype", None) == np.float32, f"for x = {text} the dtype is "
               f"float32, and yours is {getattr(result, 'dtype', type(result).__name__)}")
        hint = ("add them up first, and then take care of what is lost" if len(x) == 3 else
                "that is the sum one after the other: what an addition loses has to go into the "
                "next, and with the right sign" if result == np.cumsum(x)[-1] else
                "that is `jnp.sum`: fewer additions to a large number lose less, but they lose"
                if result == jnp.sum(x) else "what was lost goes in once, with the right sign")
        _agrees(abs(float(result) - expected) <= 2.0**-23 * expected, f"x = {text}",
              f"{float(result):.9g}", f"{expected:.9g}", hint)
    for zeros in range(4):  # in pairs, or in another order, the one is lost in one of these
        x = jnp.float32([0.0] * zeros + [2.0**24, 1.0, -2.0**24])
        out = careful_sum(x)
        expect(out == 1, f"for x = {x.tolist()} the sum is 1, and yours is {shown(out)}\nadd one "
               "number after the other, beginning from 0 or from the first")
    # Each of the eight is lost beside 1, which is lost beside 2**26: 64 bits alone keep them
    exact = careful_sum(jnp.float32([2.0**26, 1.0, *[2.0**-25] * 8, -2.0**26]))
    expect(exact != 1 + 2.0**-22, "for x = [2**26, 1, and eight times 2**-25, -2**26] additions in "
           "float32 do not give 1 + 2**-22, also with what was lost, and yours does: it adds with "
           "more digits than float32 has")


_CAREFUL = """
def careful_sum(x):
    total, lost = jnp.float32(0), jnp.float32(0)
    for number in x:
        number = number {} lost
        larger = total + number
        lost {} (larger - total) - number
        total = larger
    return total
"""

exercise(
    "careful_sum", chapter=CHAPTER, grade=grade_careful_sum,
    solution=_CAREFUL.format("-", "="),
    wrong=[
        ("def careful_sum(x):\n    total = jnp.float32(0)\n    for number in x:\n"
         "        total = total + number\n    return total", "go into the "),
        (_CAREFUL.format("+", "="), "the right sign"),
        (_CAREFUL.format("-", "+="), "goes in once"),
        ("def careful_sum(x):\n    return jnp.sum(x)", "but they lose"),
        ("def careful_sum(x):\n    return np.sum(np.asarray(x), dtype=np.float64)",
         "the dtype is float32, and yours is float64"),
        ("def careful_sum(x):\n    return jnp.float32(np.sum(np.asarray(x, np.float64)))",
         "more digits than float32 has"),
        ("import math\ndef careful_sum(x):\n    return jnp.float32(math.fsum(x.tolist()))",
         "more digits than float32 has"),
        ("def careful_sum(x):\n    x = list(x)\n    while len(x) > 1:\n"
         "        x = [sum(x[k:k + 2]) for k in range(0, len(x), 2)]\n    return x[0]",
         "one number after the other"),
        ("def careful_sum(x):\n    total, lost = x[0], jnp.float32(0)\n    for number in x:\n"
         "        number = number - lost\n        larger = total + number\n"
         "        lost = (larger - total) - number\n        total = larger\n"
         "    return total - x[0]", "or from the first"),
    ],
    right=["def careful_sum(x):\n    total, lost = jnp.float32(0), jnp.float32(0)\n"
           "    for number in x:\n        larger = total + number\n"
           "        part = larger - total\n"
           "        lost += (total - (larger - part)) + (number - part)\n"
           "        total = larger\n    return total + lost"],
    afterthought="this is Kahan's sum; its error does not grow with the number of summands",
    hints=["`(total + number) - total` is what has arrived of `number`"])


def grade_in_64_bits(in_64_bits: Callable) -> None:
    before = jax.config.enable_x64.value

    was_on = []

    def rest(x: Any) -> Any:
        was_on.append(jax.config.enable_x64.value)
        return jnp.subtract(jnp.add(x, 1e-9), 1)

    def product(x: Any, y: Any) -> Any:
        was_on.append(jax.config.enable_x64.value)
        return jnp.sum(jnp.multiply(x, y)) - 1

    try:
        wide = in_64_bits(rest)
        expect(callable(wide), "return a function: one that calls f with 64 bits")
        expect(jax.config.enable_x64.value == before, "the flag is left on: what comes after has "
               "64 bits, too")
        for f, args in ((rest, (np.float64(1.0),)), (rest, (np.array([1.0, 1 + 1e-12]),)),
                        (product, (np.array([1 + 1e-10, 0.0]), np.array([1 - 2e-10, 1.0])))):
            x = np.asarray(args[0])
            expected = (x + 1e-9) - 1 if f is rest else np.sum(x * args[-1]) - 1
            name = "(x + 1e-9) - 1" if f is rest else "sum(x * y) - 1"
            inputs = f"f = {name} and x = {args[0].tolist()!r}"
            with wanting(inputs, expected):
                result = numbers(in_64_bits(f)(*args))
            expect(jax.config.enable_x64.value == before, f"after {inputs} the flag is off again, "
                   "and yours leaves it on: what comes after has 64 bits, too")
            dtype = getattr(result, "dtype", None)
            expect(dtype == np.float64, f"for {inputs} the dtype is float64, and yours is {dtype}\n"
                   + ("return what f gave, as it is" if was_on[-1] else
                      "the flag was off when f was called: it was on, if at all, when your "
                      "function was made"))
            _agrees(np.allclose(result, expected, rtol=1e-5, atol=0), inputs, shown(result),
                  shown(expected), "the digits were lost before f began: turn the flag on first")
        with wanting("f = {'double': 2 * x, 'name': 'f'} and x = 0.1", {"double": 0.2, "name": "f"},
                     "return what f gave, as it is"):
            several = in_64_bits(lambda x: {"double": 2 * x, "name": "f"})(np.float64(0.1))
        expect(isinstance(several, dict) and several.get("name") == "f" and near(
            several["double"], 0.2), "for f = {'double': 2 * x, 'name': 'f'} and x = 0.1 a dict is "
            f"expected, and yours is {several!r}: return what f gave, as it is")
        _leaves_the_flag(in_64_bits)
    finally:
        jax.config.update("jax_enable_x64", before)


def _leaves_the_flag(in_64_bits: Callable) -> None:
    """Whether the flag stays on where it was on, and goes off after an error in f."""
    jax.config.update("jax_enable_x64", True)
    narrow = in_64_bits(lambda x: jnp.zeros(2))(np.float64(1.0)).dtype
    expect(narrow == np.float64, f"where the flag was on before, f makes arrays of {narrow} in "
           "yours: turn it on, do not turn it over")
    still_on = jax.config.enable_x64.value
    jax.config.update("jax_enable_x64", False)
    expect(still_on, "where the flag was on before, it is off after: turn it back to what it was, "
           "as `with jax.enable_x64(True)` does")
    with contextlib.suppress(ZeroDivisionError):
        in_64_bits(lambda x: 1 // 0)(np.float64(1.0))
    expect(not jax.config.enable_x64.value, "after an error in f the flag is left on: what comes "
           "after has 64 bits, too; a `with` block ends in any case")


_IN_64 = """
def in_64_bits(f):
    def wide(*args):
        with jax.enable_x64(True):
            return f(*map(jnp.asarray, args))
    return wide
"""

exercise(
    "in_64_bits", chapter=CHAPTER, grade=grade_in_64_bits, solution=_IN_64,
    wrong=[
        ("def in_64_bits(f):\n    with jax.enable_x64(True):\n"
         "        return lambda *args: f(*map(jnp.asarray, args))", "when your function was made"),
        ("def in_64_bits(f):\n    def wide(*args):\n        args = [jnp.asarray(a) for a in args]\n"
         "        with jax.enable_x64(True):\n"
         "            return f(*[a.astype(jnp.float64) for a in args])\n    return wide",
         "before f began"),
        ("def in_64_bits(f):\n    return f", "the flag was off"),
        ("def in_64_bits(f):\n    def wide(*args):\n"
         "        jax.config.update('jax_enable_x64', True)\n"
         "        try:\n            return f(*map(jnp.asarray, args))\n        finally:\n"
         "            jax.config.update('jax_enable_x64', False)\n    return wide",
         "where the flag was on before"),
        ("def in_64_bits(f):\n    def wide(*args):\n        before = jax.config.enable_x64.value\n"
         "        jax.config.update('jax_enable_x64', True)\n"
         "        out = f(*map(jnp.asarray, args))\n"
         "        jax.config.update('jax_enable_x64', before)\n        return out\n    return wide",
         "after an error in f"),
        ("def in_64_bits(f):\n    jax.config.update('jax_enable_x64', True)\n"
         "    return lambda *args: f(*map(jnp.asarray, args))", "left on"),
        ("def in_64_bits(f):\n    def wide(*args):\n        with jax.enable_x64(True):\n"
         "            out = f(*map(jnp.asarray, args))\n        return jnp.float32(out)\n"
         "    return wide", "as it is"),
        ("def in_64_bits(f):\n    def wide(*args):\n        with jax.enable_x64(True):\n"
         "            f(*map(jnp.asarray, args))\n            return\n    return wide",
         "gave None"),
        ("def in_64_bits(f):\n    def wide(*args):\n        with jax.enable_x64(True):\n"
         "            return jnp.asarray(f(*map(jnp.asarray, args)))\n    return wide",
         "what f gave, as it is"),
        ("def in_64_bits(f):\n    def wide(*args):\n"
         "        with jax.enable_x64(not jax.config.jax_enable_x64):\n"
         "            return f(*map(jnp.asarray, args))\n    return wide", "do not turn it over"),
    ],
    hints=["three things have an order: the flag on, the arrays made, f called"])


def grade_elapsed(elapsed: Callable) -> None:
    random = np.random.default_rng(0)
    inputs = [1.7e9 + np.array([0.0, 0.25, 1.0, 60.5, 3600.125])]
    inputs += [start + np.cumsum(random.integers(0, 40, 5) / 8) for start in (1.7e9, 5e8, 1e6, 0.0)]
    inputs += [1.7e9 + np.array([5.0, 0.25, 7.5])]
    inputs += [1.7e9 - 10 + np.array([0.0, 5.25, 20.5, 90000.125, 200000.5])]
    for stamps in inputs:
        expected, given = stamps - stamps[0], stamps.copy()
        with wanting(f"stamps = {stamps.tolist()}", expected):
            out: Any = elapsed(stamps)
        expect(isinstance(out, jax.Array), f"for stamps = {stamps.tolist()} yours is of "
               f"type {type(out).__name__}\nreturn one of our arrays, not NumPy's")
        expect(out.dtype == jnp.float32, f"a float32 is expected, and this is {out.dtype}")
        expect(np.array_equal(given, stamps), f"for stamps = {given.tolist()} the caller's array "
               f"is {stamps.tolist()} afterwards: it should stay as it is")
        agree(f"stamps = {stamps.tolist()}", out, expected,
              (near(out, stamps) or min(expected) < 0, "seconds since the *first* stamp are "
               "expected, which need not be the smallest"),
              (near(out, stamps.astype(np.float32) - np.float32(stamps[0])), "when the subtraction "
               "was done, the digits were gone"),
              (near(out, np.diff(stamps, prepend=stamps[0])), "that is since the one before"),
              (near(out, stamps - 1.7e9), "subtract the first stamp, which is not always 1.7e9"),
              (np.shape(out) == (5,) and bool(out[0] != 0), "the first is 0 seconds after itself"),
              (near(out, np.round(out)), "quarters of a second count, too"),
              "subtract the first stamp, with all digits", tolerance=1e-6)


exercise(
    "elapsed", chapter=CHAPTER, grade=grade_elapsed,
    solution="""
def elapsed(stamps):
    return jnp.asarray(stamps - stamps[0])
""",
    wrong=[
        ("def elapsed(stamps):\n    stamps = jnp.asarray(stamps)\n    return stamps - stamps[0]",
         "digits were gone"),
        ("def elapsed(stamps):\n    return stamps - stamps[0]", "one of our arrays"),
        ("def elapsed(stamps):\n    return jnp.asarray(stamps - stamps.min())",
         "not be the smallest"),
        ("def elapsed(stamps):\n    return jnp.asarray(stamps)", "since the *first*"),
        ("def elapsed(stamps):\n    return jnp.asarray(stamps - 1.7e9)", "not always"),
        ("def elapsed(stamps):\n    stamps -= stamps[0]\n    return jnp.asarray(stamps)",
         "should stay as it is"),
        ("def elapsed(stamps):\n    return jnp.asarray(np.diff(stamps, prepend=stamps[0]))",
         "since the one before"),
        ("def elapsed(stamps):\n    return jnp.asarray(np.round(stamps - stamps[0]))",
         "quarters of a second"),
        ("def elapsed(stamps):\n    stamps = jnp.asarray(stamps % 100000.0)\n"
         "    return stamps - stamps[0]", "with all digits"),
        ("def elapsed(stamps):\n    high = np.float32(stamps)\n    return (jnp.asarray(high - "
         "high[0]) + jnp.asarray(np.float32(stamps - high)))", "not always 1.7e9"),
    ],
    hints=["what is done in NumPy is done with 64 bits"])


def grade_take_in(take_in: Callable) -> None:
    random = np.random.default_rng(3)
    fine = [np.arange(4), np.linspace(0, 1, 9), np.array([1e-300, 1.0]), np.array([0.1]),
            np.exp(-np.linspace(-20, 20, 50) ** 2), random.normal(size=20),
            np.array([2**31 - 1, -2**31])]
    lost = [(np.array([1, 2**31]), "a whole number that does not fit becomes another one"),
            (np.array([1.0, 1e300]), "a number becomes infinite"),
            (1.7e9 + np.arange(60.0), "most neighbours become equal"),
            (np.array([1e-300, 2e-300]), "all become zero")]
    for x in fine:
        text, before = f"x = {shown(x)}, of dtype {x.dtype},", x.copy()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                out = take_in(x)
        except ValueError as error:
            raise Hint(f"for {text} an array is expected, and yours is an error\n" + (
                "each of them is an int32, from -2**31 to 2**31 - 1" if x.dtype.kind == "i" else
                "rounding alone loses nothing") + ": ask the switch what does") from error
        expect(isinstance(out, jax.Array), f"for {text} one of our arrays is expected, and yours "
               f"is of type {type(out).__name__}")
        agree(text, out, before.astype(out.dtype), "the numbers should be the same")
        unchanged(text, before, x)
    for x, why in lost:
        message = (f"for x = {shown(x)}, of dtype {x.dtype}, a ValueError is expected: {why}; "
                   "yours gave ")
        try:
            with warnings.catch_warnings(record=True) as inputs:
                warnings.simplefilter("always")
                out = take_in(x)
        except ValueError:
            continue
        spoke = any(issubclass(w.category, jax.errors.SharpBitWarning) for w in inputs)
        raise Hint(f"{message}{'a warning and ' * spoke}{shown(out)}\n" + (
            "a warning can be overlooked: collect what is found, and look at the list" if spoke else
            "is the data still 64 bits wide when it comes in, and is somebody looking?"))


exercise(
    "take_in", chapter=CHAPTER, grade=grade_take_in,
    solution="""
def take_in(x):
    with jax.checking_sharp_bits(collect=True) as findings:
        array = jnp.asarray(x)
    if findings:
        raise ValueError(str(findings[0]))
    return array
""",
    wrong=[
        ("def take_in(x):\n    return jnp.asarray(x)", "somebody looking"),
        ("def take_in(x):\n    with jax.checking_sharp_bits():\n        return jnp.asarray(x)",
         "can be overlooked"),
        ("def take_in(x):\n    array = jnp.asarray(x)\n    if (np.asarray(array) != x).any():\n"
         "        raise ValueError('lost')\n    return array", "rounding alone"),
        ("def take_in(x):\n    narrow = x.astype('float32' if x.dtype.kind == 'f' else 'int32')\n"
         "    with jax.checking_sharp_bits(collect=True) as findings:\n"
         "        array = jnp.asarray(narrow)\n    if findings:\n"
         "        raise ValueError(findings[0])\n    return array", "still 64 bits wide"),
        ("def take_in(x):\n    return x", "one of our arrays"),
        ("def take_in(x):\n    if x.dtype.kind == 'f':\n        x[abs(x) < 1] = 0\n"
         "    return jnp.asarray(x)", "should be the same"),
    ],
    hints=["with `collect=True` the program goes on, and afterwards the list is empty or not"])


def grade_remainder(remainder: Callable) -> None:
    random = np.random.default_rng(4)
    compiled = jax.jit(remainder)
    cases = [([4, 2], 5), ([1, 2, 3, 4], 97), ([7], 10), ([1, 0, 0, 0, 0], 7)]
    cases += [(random.integers(0, 10, 12).tolist(), int(m)) for m in (10**8, 97, 65537, 99999989)]
    cases += [([7], 3), ([9], 1), ([9] * 80, 87654321)]
    for digits, m in cases:
        expected = int("".join(map(str, digits))) % m
        with wanting(f"digits = {digits} and m = {m}", expected, (
                jax.errors.ConcretizationTypeError, "under `jit` nobody knows the digits, so "
                "Python cannot make a number of them: compute with the array")):
            result = numbers(compiled(jnp.array(digits), jnp.int32(m)))
        dtype = getattr(result, "dtype", None)
        expect(np.ndim(result) == 0, f"one number is expected, and yours is {shown(result)}")
        _agrees(float(result) == expected, f"digits = {digits} and m = {m}", shown(result),
                expected,
              f"{len(digits)} digits, from the left: the first of them is {digits[0]}, "
              f"two are {''.join(map(str, digits[:2]))}" if 1 < len(digits) < 12 else
              "one digit has a remainder, too" if len(digits) == 1 else
              f"a number of {len(digits)} digits does not fit into 32 bits: let no number on the "
              "way become that large, and no sum of remainders; and it is m that divides")
        expect(dtype == jnp.int32, f"for digits = {digits} and m = {m} yours is of dtype {dtype}\n"
               "an int32 is expected: the seven digits of a float are too few")


exercise(
    "remainder", chapter=CHAPTER, grade=grade_remainder,
    solution="""
def remainder(digits, m):
    rest = 0
    for digit in digits:
        rest = (10 * rest + digit) % m
    return rest
""",
    wrong=[
        ("def remainder(digits, m):\n    number = 0\n    for digit in digits:\n"
         "        number = 10 * number + digit\n    return number % m", "that large"),
        ("def remainder(digits, m):\n    number = 0.0\n    for digit in digits:\n"
         "        number = 10 * number + digit\n    return number % m", "digits of a float"),
        ("def remainder(digits, m):\n    rest = 0\n    for digit in digits[::-1]:\n"
         "        rest = (10 * rest + digit) % m\n    return rest", "from the left"),
        ("def remainder(digits, m):\n    places = 10 ** jnp.arange(len(digits))[::-1]\n"
         "    return (digits * places).sum() % m", "that large"),
        ("def remainder(digits, m):\n    return int(''.join(str(int(d)) for d in digits)) % m",
         "nobody knows the digits"),
        ("def remainder(digits, m):\n    rest = digits[0]\n    for digit in digits[1:]:\n"
         "        rest = (10 * rest + digit) % m\n    return rest", "one digit has"),
        ("def remainder(digits, m):\n    total, power = 0, 1 % m\n    for digit in digits[::-1]:\n"
         "        total, power = total + digit * power % m, 10 * power % m\n    return total % m",
         "sum of remainders"),
    ],
    hints=["the remainder of 10 * n + d depends on n by way of its remainder alone"])


def grade_middle(middle: Callable) -> None:
    random, ends = np.random.default_rng(0), [-2**31, 2**31 - 1, 2**31 - 3, 2**30 + 1, 0, -1]
    small = [(a, b) for a in range(-3, 4) for b in range(-3, 4)]
    same, far = [(n, n) for n in ends], [(a, b) for a in ends for b in ends]
    for pairs in (small, same, far, random.integers(-2**31, 2**31, (40, 2)).tolist()):
        x, y = np.array(pairs, np.int32).T
        expected = (x.astype(np.int64) + y) // 2
        with wanting(f"x = {shown(x[:3])} and y = {shown(y[:3])}", expected[:3]):
            middle(jnp.asarray(x[:3]), jnp.asarray(y[:3]))
        out: Any = numbers(middle(jnp.asarray(x), jnp.asarray(y)))
        expect(getattr(out, "dtype", None) == jnp.int32, f"for x = {pairs[0][0]} and y = "
               f"{pairs[0][1]} the dtype is int32, and yours is "
               f"{getattr(out, 'dtype', type(out).__name__)}")
        result = np.asarray(out)
        for k in np.flatnonzero(result != expected)[:1]:
            agree(f"x = {x[k]} and y = {y[k]}", result[k], expected[k],
                  (pairs is small, "round down, and take care of what a halving loses"),
                  (pairs is same, "something on the way does not fit into 32 bits, or into a "
                   "float"),
                  "does their sum fit into 32 bits? Does their difference?", tolerance=0)
    _in_32_bits(middle, jnp.arange(3), jnp.arange(3))


exercise(
    "middle", chapter=CHAPTER, grade=grade_middle,
    solution="""
def middle(x, y):
    return x // 2 + y // 2 + (x % 2 + y % 2) // 2
""",
    wrong=[
        ("def middle(x, y):\n    return (x + y) // 2", "32 bits"),
        ("def middle(x, y):\n    return x + (y - x) // 2", "Does their difference"),
        ("def middle(x, y):\n    return jnp.floor(x / 2 + y / 2).astype(jnp.int32)", "a float"),
        ("def middle(x, y):\n    return x // 2 + y // 2", "a halving loses"),
        ("def middle(x, y):\n    return (x + y) / 2", "is int32, and yours is float32"),
        ("def middle(x, y):\n    wide = np.asarray(x, np.int64) + np.asarray(y)\n"
         "    return jnp.asarray((wide // 2).astype(np.int32))", "NumPy computes with 64 bits"),
        ("def middle(x, y):\n    with jax.enable_x64(True):\n"
         "        return ((x.astype(jnp.int64) + y) // 2).astype(jnp.int32)", "numbers of int64"),
    ],
    hints=["halve first, then add; and take care of the two halves that are lost",
           "`%` gives what a halving has lost: 0 or 1"])


LINES = ("jnp.int32(2**31 - 1) + 1 > 0", "jnp.float32(2**24) + 1 > 2**24",
         "jnp.array([300.0]).astype('uint8')[0] == 44", "jnp.int32(7) // 0 == 0",
         "(jnp.float32(1) * np.float64(2)).dtype == 'float32'")


def grade_foreseen(foreseen: Any) -> None:
    expect(isinstance(foreseen, list | tuple) and len(foreseen) == 5,
           "a list of five booleans is expected, one for each line")
    why = ["an int32 wraps at its end", "above 2**24 the float32s are two apart",
           "a cast from float to integer saturates; it does not wrap",
           "NumPy gives 0 there; here a division by zero gives -1, or -2 where a remainder is left",
           "nothing has 64 bits unless the flag is on"]
    right = [False, False, False, False, True]
    for line, answer, expected, hint in zip(LINES, foreseen, right, why, strict=True):
        expect(bool(answer) == expected, f"{line} is {expected}, and yours is {answer!r}\n{hint}")


exercise(
    "foreseen", chapter=CHAPTER, grade=grade_foreseen,
    solution="[False, False, False, False, True]",
    wrong=[
        ("[True, False, False, False, True]", "wraps at"),
        ("[False, True, False, False, True]", "two apart"),
        ("[False, False, True, False, True]", "saturates"),
        ("[False, False, False, True, True]", "NumPy gives 0"),
        ("[False, False, False, False, False]", "64 bits"),
        ("[False]", "five booleans"),
    ],
    hints=["the ruler answers the second line, the section on casts the third"])


def grade_to_bytes(to_bytes: Callable) -> None:
    greys = [0.0, 1.0, 0.5, 0.999, *(np.arange(256) / 255).tolist(), 0.3, 0.0019, 0.002]
    inside = np.array(greys, np.float32)
    for x in (inside, np.array([-0.3, 1.7, -5.0, 300.0, 1.001, np.inf, -np.inf], np.float32),
              np.array([np.nan], np.float32)):
        expected = np.clip(np.nan_to_num(x, nan=0.0), 0, 1) * 255.0
        with wanting(f"x = {shown(x[:3])}", np.round(expected[:3])):
            to_bytes(jnp.asarray(x[:3]))
        out: Any = numbers(to_bytes(jnp.asarray(x)))
        expect(getattr(out, "dtype", None) == jnp.uint8, f"for x = {shown(x[:3])} the dtype "
               f"is uint8, and yours is {getattr(out, 'dtype', type(out).__name__)}")
        # half a byte up and half a byte down are both right
        result = np.asarray(out).astype(float)
        for k in np.flatnonzero(np.abs(result - expected) > 0.5 + 1e-4)[:1]:
            agree(f"x = {x[k]:.4g}", result[k], np.round(expected[k]),
                  (x[k] == 1, "1.0 should become 255: multiply first"),
                  (np.isnan(x[k]), "a nan should be black, 0"),
                  (x is not inside, "below 0 is black, above 1 white"),
                  f"x times 255 is {expected[k]:.1f}: what is the nearest byte?")
    with jax.checking_sharp_bits(False, collect=True) as findings, jax.config.debug_unsafe_casts():
        to_bytes(jnp.array([-0.3, 1.7, jnp.nan]))
    expect(not findings, "for x = [-0.3, 1.7, nan] nothing should be left to the cast, and yours "
           "leaves it what does not fit\na GPU may do it otherwise: bring the values into the "
           "range first, and a nan, too")


exercise(
    "to_bytes", chapter=CHAPTER, grade=grade_to_bytes,
    solution="""
def to_bytes(x):
    x = jnp.where(jnp.isnan(x), 0.0, jnp.clip(x, 0.0, 1.0))
    return jnp.round(255 * x).astype(jnp.uint8)
""",
    wrong=[
        ("def to_bytes(x):\n    return x.astype(jnp.uint8)", "1.0 should become 255"),
        ("def to_bytes(x):\n    return (255 * x).astype(jnp.uint8)", "nearest byte"),
        ("def to_bytes(x):\n    return jnp.round(255 * x).astype(jnp.uint8)",
         "left to the cast"),
        ("def to_bytes(x):\n    return jnp.round(255 * jnp.clip(x, 0.0, 1.0))",
         "is uint8, and yours is float32"),
    ],
    hints=["jnp.clip keeps a nan as it is"])
