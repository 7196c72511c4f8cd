"""The exercises of chapter 01, *Arrays, dtypes and weak types*."""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import agree, exercise, expect, near

from .ways import equations, without

CHAPTER = "01_arrays_dtypes_and_weak_types"
EXPRESSIONS = ("x + 1", "x + jnp.arange(2)", "x + np.float64(1)", "jnp.int8(1) + jnp.uint8(1)",
               "jnp.arange(2) / 2")


def _agrees(call: str, result: Any, expected: Any, hint: str = "") -> None:
    expect(type(result) is type(expected) and result == expected,
           f"`{call}` is {expected!r}, and yours gives {result!r}" + (f": {hint}" if hint else ""))


# -- bytes_of --------------------------------------------------------------------------------------

SHAPES: tuple[tuple[int, ...], ...] = ((3,), (2, 3), (), (4, 0), (2, 3, 5), (10**9, 10**8))
SIZES = {"float32": 4, "int8": 1, "bfloat16": 2, "bool": 1, "float64": 4, "int64": 4, "uint16": 2,
         "complex128": 8, "complex64": 8, "uint64": 4}


def grade_bytes_of(bytes_of: Callable) -> None:
    for dtype, shape in itertools.product(SIZES, SHAPES):
        hint = ("an array without axes has one element" if shape == () else
                "its elements are pairs of float32, and stay so" if dtype == "complex64" else
                "the array is cut to size first" if "64" in dtype or "128" in dtype else "")
        count = int(np.prod(shape, dtype=int))
        result = bytes_of(shape, dtype)
        expect(np.ndim(result) == 0, "one number is expected")
        _agrees(f"bytes_of({shape}, {dtype!r})", int(result), count * SIZES[dtype], hint)


_BYTES = "def bytes_of(shape, dtype):\n    return {}"

exercise(
    "bytes_of", chapter=CHAPTER, grade=grade_bytes_of, given="from minijax import dtypes",
    solution="""
def bytes_of(shape, dtype):
    return int(np.prod(shape)) * dtypes.canonicalize_dtype(dtype).itemsize
""",
    wrong=[
        ("import math\ndef bytes_of(shape, dtype):\n    size = np.dtype(dtype).itemsize\n"
         "    return math.prod(shape) * (size // 2 if size >= 8 else size)",
         "pairs of float32"),
        (_BYTES.format("int(np.prod(shape)) * np.dtype(dtype).itemsize"), "cut to size"),
        (_BYTES.format("sum(shape) * dtypes.canonicalize_dtype(dtype).itemsize"), "(2, 3)"),
        (_BYTES.format("int(np.prod(shape))"), "is 12, and yours gives 3"),
        (_BYTES.format("int(np.prod(shape) if shape else 0) * 4"), "has one element"),
        (_BYTES.format("np.empty(shape, dtypes.canonicalize_dtype(dtype)).nbytes"),
         "raised MemoryError"),
    ],
    hints=["how many elements are there, and how many bytes does each take?",
           "a NumPy dtype knows its `itemsize`"])


# -- first_half ------------------------------------------------------------------------------------

def grade_first_half(first_half: Callable) -> None:
    random = np.random.default_rng(0)
    inputs = [1.0, 2.71828, -100.7, *(random.normal(size=20) * 10.0 ** random.integers(-9, 9, 20))]
    for x in np.array(inputs, np.float32):
        expected = (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        result = first_half(jnp.array([x], dtype=jnp.float32))
        dtype = getattr(result, "dtype", type(result).__name__)
        expect(dtype == jnp.float32, f"for [{x}] a float32 is expected, and yours gives a {dtype}")
        hint = ""
        if result[0] == x.astype(jnp.bfloat16).astype(np.float32):
            hint = ": that is the nearest, which is what a cast gives; here bits are dropped"
        elif result[0] == 0 or result[0] < 1e-30 < abs(x):
            hint = ": the first half of the bits must stay where it was"
        expect(result[0] == expected,
               f"for [{x}] the answer is [{expected}], and yours is [{result[0]}]{hint}")
    for shape in ((2, 3), (), (0,)):
        given = f"an array of the shape {shape}"
        x = random.normal(size=shape).astype(np.float32)
        expected = (np.asarray(x).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        agree(given, first_half(jnp.asarray(x)), expected, "the same array, so in the same shape")


_FIRST_HALF = """
def first_half(x):
    bits = {bits}
    return {back}
"""
_CAST_BITS = "lax.bitcast_convert_type(x, jnp.uint32)"
_CAST_BACK = "lax.bitcast_convert_type({}, jnp.float32)"

exercise(
    "first_half", chapter=CHAPTER, grade=grade_first_half,
    solution=_FIRST_HALF.format(bits=_CAST_BITS, back=_CAST_BACK.format("bits >> 16 << 16")),
    wrong=[
        (_FIRST_HALF.format(bits="x.astype(jnp.bfloat16)", back="bits.astype(jnp.float32)"),
         "that is the nearest"),
        (_FIRST_HALF.format(bits="x.astype(jnp.bfloat16)", back="bits"), "a float32 is expected"),
        (_FIRST_HALF.format(bits=_CAST_BITS, back=_CAST_BACK.format("bits >> 16")),
         "stay where it was"),
        (_FIRST_HALF.format(bits=_CAST_BITS, back="(bits >> 16 << 16).astype(jnp.float32)"),
         "the answer is [1.0]"),
        (_FIRST_HALF.format(bits="x.astype(jnp.uint32)",
                            back=_CAST_BACK.format("bits >> 16 << 16")), "stay where it was"),
        (_FIRST_HALF.format(bits=_CAST_BITS, back=_CAST_BACK.format("bits & 0xFFFF")),
         "stay where it was"),
        ("def first_half(x):\n    bits = np.frombuffer(np.asarray(x).tobytes(), np.uint32)\n"
         "    return jnp.asarray((bits >> 16 << 16).view(np.float32))", "in the same shape"),
    ],
    hints=["read the four bytes as a `uint32`, and the result as a `float32` again",
           "shifting to the right drops bits, and shifting to the left fills in zeros"])


# -- place_of --------------------------------------------------------------------------------------

VALUES = {
    "2.5": "float*", "7": "int*", "1j": "complex*", "True": "bool",
    "jnp.ones(2, dtype='bfloat16')": "bfloat16", "np.zeros(3, np.int16)": "int16",
    "np.float32(1)": "float32", "np.float64(1)": "float32", "np.arange(3)": "int32",
    "jnp.array(7)": "int*", "jnp.array(2.5)": "float*", "jnp.array(2.5) + 1": "float*",
    "jnp.array([2.5])": "float32", "jnp.arange(3)": "int32", "jnp.arange(3) * 0.5": "float*",
    "jnp.array(1j)": "complex*", "jnp.array(True)": "bool", "np.bool_(True)": "bool"}


def grade_place_of(place_of: Callable) -> None:
    for text, expected in VALUES.items():
        result = place_of(eval(text, {"np": np, "jnp": jnp}))
        hint = ("to Python a boolean is an `int`, too" if "True" in text else
                "64 bits are cut to size" if "64" in str(result) and expected[-1] != "*" else
                "a NumPy number is made, and yet a subclass of Python's" if "float64" in text else
                "arrays can be weak, too" if expected[-1] == "*" and "jnp" in text else
                "a written number stands at a star" if expected[-1] == "*" else
                "is it written, or made?" if str(result)[-1] == "*" else "")
        _agrees(f"place_of({text})", result if isinstance(result, str) else str(result), expected,
                hint)


_PLACE = """
def place_of(x):
    stars = {"i": "int*", "f": "float*", "c": "complex*"}
    x = jnp.asarray(x)
    return stars[x.dtype.kind] if x.weak_type else x.dtype.name
"""

exercise(
    "place_of", chapter=CHAPTER, grade=grade_place_of, solution=_PLACE,
    wrong=[
        ("def place_of(x):\n    return str(jnp.asarray(x).dtype)", "at a star"),
        ("def place_of(x):\n    for kind in (int, float, complex):\n"
         "        if isinstance(x, kind):\n            return kind.__name__ + '*'\n"
         "    return str(jnp.asarray(x).dtype)", "to Python a boolean"),
        ("def place_of(x):\n    for kind in (bool, int, float, complex):\n"
         "        if isinstance(x, kind):\n"
         "            return kind.__name__ + '*' * (kind is not bool)\n"
         "    return str(jnp.asarray(x).dtype)", "a subclass of Python's"),
        ("def place_of(x):\n    if type(x) in (int, float, complex):\n"
         "        return type(x).__name__ + '*'\n    return str(jnp.asarray(x).dtype)",
         "arrays can be weak"),
        ("def place_of(x):\n    if type(x) in (int, float, complex):\n"
         "        return type(x).__name__ + '*'\n    return np.asarray(x).dtype.name",
         "cut to size"),
    ],
    hints=["`jnp.asarray` makes an array of each of them, and keeps what was weak weak",
           "an array has `weak_type`, and its `dtype` has a `kind`: 'i', 'f' or 'c'"])


# -- outcomes --------------------------------------------------------------------------------------

def grade_outcomes(outcomes: Any) -> None:
    expect(isinstance(outcomes, list | tuple) and len(outcomes) == 5,
           "a list of five names is expected, one for each line")
    names = [str(np.dtype(name)) for name in outcomes]
    expect(names[0] == "bfloat16", "x + 1: does a written number change an array's dtype?")
    expect(names[1] != "float32", "x + jnp.arange(2): follow the arrows from int32 and from "
           "bfloat16; the road goes through float*")
    expect("64" not in "".join(names), "nothing has 64 bits here, unless the flag is on")
    expect(names[2] != "bfloat16", "x + np.float64(1): is that a written number, or a made one?")
    expect(names[4] not in ("int32", "bfloat16"), "jnp.arange(2) / 2: what does NumPy make of a "
           "quotient of integers? And what is cut to size?")
    right = ["bfloat16", "bfloat16", "float32", "int16", "float32"]
    for expression, name, expected in zip(EXPRESSIONS, names, right, strict=True):
        expect(name == expected, f"{expression}: find both in the picture, and the first place "
                               "where they can meet")


exercise(
    "outcomes", chapter=CHAPTER, grade=grade_outcomes,
    solution='["bfloat16", "bfloat16", "float32", "int16", "float32"]',
    wrong=[
        ('["float32", "bfloat16", "float32", "int16", "float32"]', "written number"),
        ('["bfloat16", "float32", "float32", "int16", "float32"]', "through float*"),
        ('["bfloat16", "bfloat16", "float64", "int16", "float32"]', "64 bits"),
        ('["bfloat16", "bfloat16", "float32", "int8", "float32"]', "jnp.int8(1)"),
        ('["bfloat16", "bfloat16", "bfloat16", "int16", "float32"]', "a made one"),
        ('["bfloat16", "bfloat16", "float32", "int16", "int32"]', "quotient of integers"),
        ('["bfloat16"]', "five names"),
    ],
    hints=["a NumPy number is a made number, not a written one"])

# -- meet ------------------------------------------------------------------------------------------

SHIRTS = {"S": ["M"], "M": ["L", "M-long"], "L": ["L-long"], "M-long": ["L-long"], "L-long": []}
# From b, going up step by step passes w before z, which is where b and c meet.
DETOUR = {"a": ["b", "c"], "b": ["w", "z"], "c": ["z"], "w": ["y"], "z": ["y"], "y": []}
# From a there are fewer steps to t than to m, which is where a and b meet.
SHORT_CUT = {"a": ["s", "p"], "s": ["t"], "p": ["q"], "q": ["m"], "m": ["t"], "t": [], "b": ["m"]}
# The sum of the steps from both is smaller to t than to m, whatever the order of a set.
FAR = {"a": ["s", "p"], "b": ["r", "v"], "s": ["t"], "r": ["t"], "p": ["q"], "v": ["w"],
       "q": ["m"], "w": ["m"], "m": ["t"], "t": []}


def _above(name: str, steps: dict) -> set[str]:
    return {name}.union(*(_above(high, steps) for high in steps[name]))


def _lowest(a: str, b: str, steps: dict) -> str | None:
    """The least upper bound of two elements; None where there is none."""
    common = _above(a, steps) & _above(b, steps)
    return next((name for name in common if common <= _above(name, steps)), None)


def _generated(count: int = 30) -> list[dict[str, list[str]]]:
    """Partial orders of a few names, smaller names first: each name with those just above it."""
    random, orders = np.random.default_rng(0), []
    for k in range(count):
        names = "abcdefgh"[:3 + k // 6]
        steps: dict[str, list[str]] = {}
        for place in reversed(range(len(names))):
            higher = random.permutation(list(names[place + 1:]))[:random.integers(1, 4)].tolist()
            steps[names[place]] = [one for one in higher if not any(
                one in _above(other, steps) for other in higher if other != one)]
        orders.append({name: steps[name] for name in random.permutation(list(names)).tolist()})
    return orders


def grade_meet(meet: Callable) -> None:
    shirts = copy.deepcopy(SHIRTS)
    result = meet("M", "M", shirts)
    expect(not isinstance(result, set | frozenset | list | tuple),
           f"one place is expected, and `meet('M', 'M', shirts)` gives {result}")
    for a, b, expected, hint in (
            ("M", "M", "M", "two equal types meet where they are"),
            ("S", "L", "L", "L is above S, and can stay where it is"),
            ("L", "S", "L", "L is above S, whichever comes first"),
            ("L", "M-long", "L-long", "neither is above the other"),
            ("S", "M", "M", "the lowest place is expected")):
        _agrees(f"meet({a!r}, {b!r}, shirts)", meet(a, b, copy.deepcopy(SHIRTS)), expected, hint)
    for steps in (SHIRTS, DETOUR, SHORT_CUT, FAR, *_generated()):
        for a, b in itertools.product(steps, steps):
            lowest = _lowest(a, b, steps)
            if lowest is not None:
                given = copy.deepcopy(steps)
                _agrees(f"meet({a!r}, {b!r}, {steps})", meet(a, b, given), lowest,
                        "right for shirts, but not for all")
                expect(given == steps, f"after meet({a!r}, {b!r}, steps) the map is {given}, and "
                       f"was {steps}: leave it as it is, its lists as well")


exercise(
    "meet", chapter=CHAPTER, grade=grade_meet, given=f"shirts = {SHIRTS!r}",
    solution="""
def meet(a, b, steps):
    def above(name):
        return {name}.union(*(above(high) for high in steps[name]))
    common = above(a) & above(b)
    return next(name for name in common if common <= above(name))
""",
    wrong=[
        ("def meet(a, b, steps):\n    def above(x):\n        found = steps[x]\n"
         "        if x not in found:\n            found.insert(0, x)\n"
         "        for y in found[1:]:\n            found.extend(\n"
         "                z for z in above(y) if z not in found)\n        return found\n"
         "    common = [c for c in above(a) if c in above(b)]\n"
         "    return max(common, key=lambda c: len(above(c)))", "leave it as it is"),
        ("def meet(a, b, steps):\n    while a != b:\n        b = steps[b][0]\n    return a",
         "raised IndexError"),
        ("def meet(a, b, steps):\n    def above(n):\n"
         "        return set(steps[n]).union(*(above(h) for h in steps[n]))\n"
         "    common = above(a) & above(b)\n"
         "    return next((n for n in common if common <= above(n) | {n}), None)",
         "meet where they are"),
        ("def meet(a, b, steps):\n    def above(n):\n"
         "        return {n}.union(*(above(h) for h in steps[n]))\n"
         "    common = above(a) & above(b)\n"
         "    return next(n for n in common if not steps[n])", "meet where they are"),
        ("def meet(a, b, steps):\n    def above(n):\n"
         "        return {n}.union(*(above(h) for h in steps[n]))\n"
         "    return above(a) & above(b)", "one place is expected"),
        ("def meet(a, b, steps):\n    def above(n):\n"
         "        return {n}.union(*(above(h) for h in steps[n]))\n"
         "    level = [a]\n    while not any(n in above(b) for n in level):\n"
         "        level = [h for n in level for h in steps[n]]\n"
         "    return next(n for n in level if n in above(b))", "yours gives 't'"),
        ("def meet(a, b, steps):\n    def steps_to(n):\n        at, todo = {n: 0}, [n]\n"
         "        for m in todo:\n            todo += [h for h in steps[m] if h not in at]\n"
         "            at = dict.fromkeys(steps[m], at[m] + 1) | at\n        return at\n"
         "    one, other = steps_to(a), steps_to(b)\n"
         "    return min({*one} & {*other}, key=lambda n: one[n] + other[n])", "but not for all"),
        ("def meet(a, b, steps):\n    if a == b or a in steps[b]:\n        return a\n"
         "    return b", "L is above S"),
    ],
    hints=["write a function that gives the set of all at or above one",
           "of those above both, the lowest has all others above it"])


# -- gelu ------------------------------------------------------------------------------------------

def grade_gelu(gelu: Callable) -> None:
    at = np.array([-1.0, 0.0, 0.5, 2.0], np.float32)
    exact = 0.5 * at * (1 + np.tanh(np.sqrt(2 / np.pi) * (at + 0.044715 * at**3)))
    out = gelu(jnp.array(at))
    expect(near(out, exact), f"for the float32 array {at.tolist()} the values are "
           f"{exact.round(4).tolist()}, and yours are {np.asarray(out, float).round(4).tolist()}: "
           "only constants should be written differently")
    small = gelu(jnp.array(at, dtype=jnp.bfloat16))
    expect(small.dtype == jnp.bfloat16, f"a bfloat16 comes out as {small.dtype}: which constants "
           "are arrays or NumPy numbers?")
    expect(gelu(jnp.array(at, dtype=jnp.float16)).dtype == jnp.float16,
           "right for bfloat16, but a float16 should stay one, too")
    program = str(jax.make_jaxpr(gelu)(jnp.array(at, dtype=jnp.bfloat16)))
    expect("f32[4]" not in program, "the result is small, but on the way there are float32 arrays: "
           "do not cast, change the constants")


exercise(
    "gelu", chapter=CHAPTER, grade=grade_gelu,
    solution="""
def gelu(x):
    c = float(np.sqrt(2 / np.pi))
    cubic = x + 0.044715 * x * x * x
    return 0.5 * x * (1.0 + jnp.tanh(c * cubic))
""",
    wrong=[
        ("def gelu(x):\n    c = np.sqrt(2 / np.pi)\n    cubic = x + 0.044715 * x * x * x\n"
         "    return 0.5 * x * (1.0 + jnp.tanh(c * cubic))", "which constants"),
        ("def gelu(x):\n    c = float(np.sqrt(2 / np.pi))\n"
         "    cubic = x + jnp.array([0.044715]) * x * x * x\n"
         "    return 0.5 * x * (1.0 + jnp.tanh(c * cubic))", "which constants"),
        ("def gelu(x):\n    c = np.sqrt(2 / np.pi)\n    cubic = x + 0.044715 * x * x * x\n"
         "    return (0.5 * x * (1.0 + jnp.tanh(c * cubic))).astype(x.dtype)", "do not cast"),
        ("def gelu(x):\n    c = jnp.bfloat16(np.sqrt(2 / np.pi))\n"
         "    cubic = x + 0.044715 * x * x * x\n"
         "    return 0.5 * x * (1.0 + jnp.tanh(c * cubic))", "the values are"),
        ("def gelu(x):\n    c = float(np.sqrt(2 / np.pi))\n    cubic = x + 0.044715 * x * x\n"
         "    return 0.5 * x * (1.0 + jnp.tanh(c * cubic))", "the values are"),
    ],
    afterthought="ask `jax.make_jaxpr(gelu)(x)`: no array of f32 in it")


# -- total -----------------------------------------------------------------------------------------

def grade_total(total: Callable) -> None:
    random = np.random.default_rng(0)
    cases = [("[0.5, 0.25, 8.0]", np.array([0.5, 0.25, 8.0])), ("a thousand ones", np.ones(1000)),
             ("three numbers of 30000", np.full(3, 30000.0)), ("[-4, 1.5]", np.array([-4, 1.5]))]
    for n in (1, 5, 300, 1500):
        xs = random.integers(0, 9, n)
        cases.append((f"{n} numbers that begin with {xs[:5].tolist()}", xs))
    for inputs, xs in cases:
        out = total(jnp.array(xs, dtype=jnp.bfloat16))
        expected = float(np.float32(xs.sum()).astype(jnp.bfloat16))
        stuck = ": it got stuck; in which dtype is the running sum?" if near(out, 256.0) else ""
        expect(near(out, expected),
               f"for {inputs} the sum is {expected}, and yours is {out}{stuck}")
        dtype = getattr(out, "dtype", type(out).__name__)
        expect(dtype == jnp.bfloat16, f"for {inputs} a bfloat16 is expected, and yours is a "
                                      f"{dtype}")
    with contextlib.suppress(TypeError):  # numbers of Python's cannot be traced, and need a loop
        names = {eqn.primitive.name for eqn in equations(jax.make_jaxpr(total)(
            jnp.ones(8, jnp.bfloat16)))}
        for name in sorted(names & {"reduce_sum", "cumsum", "dot_general"}):
            expect(False, f"the sums are right, but a `{name}` makes them: add one element after "
                   "the other, in a Python loop")
    for module in (jnp, np):
        with without(module, "sum", why="the sums are right, but add one element after the other, "
                     "in a Python loop"):
            total(jnp.ones(8, jnp.bfloat16))


exercise(
    "total", chapter=CHAPTER, grade=grade_total,
    solution="""
def total(xs):
    so_far = jnp.float32(0)
    for x in xs:
        so_far = so_far + x
    return so_far.astype(jnp.bfloat16)
""",
    wrong=[
        ("def total(xs):\n    s = jnp.bfloat16(0)\n    for x in xs:\n        s = s + x\n"
         "    return s", "it got stuck"),
        ("def total(xs):\n    s = 0.0\n    for x in xs:\n        s = s + x\n    return s",
         "it got stuck"),
        ("def total(xs):\n    s = jnp.float32(0)\n    for x in xs:\n        s = s + x\n"
         "    return s", "a bfloat16 is expected"),
        ("def total(xs):\n    return jnp.bfloat16(len(xs))", "the sum is 8.75"),
        ("def total(xs):\n    s = jnp.float32(0)\n    for x in xs:\n        s = s + abs(x)\n"
         "    return s.astype(jnp.bfloat16)", "for [-4, 1.5] the sum is -2.5"),
        ("def total(xs):\n    s = jnp.float16(0)\n    for x in xs:\n"
         "        s = s + x.astype(jnp.float16)\n    return s.astype(jnp.bfloat16)",
         "for three numbers of 30000"),
        ("def total(xs):\n    return jnp.bfloat16(float(jnp.sum(xs.astype(jnp.float32))))",
         "in a Python loop"),
        ("def total(xs):\n    return xs.astype('float32').sum().astype('bfloat16')",
         "one element after the other"),
        ("def total(xs):\n    return jnp.sum(xs)", "one element after the other"),
    ],
    right=["def total(xs):\n    s = 0.0\n    for x in np.asarray(xs).tolist():\n        s += x\n"
           "    return jnp.array(s, jnp.bfloat16)",
           "import functools\ndef total(xs):\n    s = functools.reduce(lambda s, x: s + "
           "x.astype('float32'), xs, jnp.float32(0))\n    return s.astype('bfloat16')"],
    hints=["a made number wins against a smaller one"])


# -- fits ------------------------------------------------------------------------------------------

def grade_fits(fits: Callable) -> None:
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        for n in (0, 100, 300, high, high + 1, -1, low, low - 1, -high, 10**30):
            result = fits(n, dtype)
            hint = ("" if low == 0 and n == high and fits(127, dtype) and not fits(128, dtype)
                    else "the last one is still in" if n in (low, high) else
                    "there are no negative ones" if low == 0 and n < 0 else "")
            _agrees(f"fits({n}, {dtype!r})", bool(result), low <= n <= high, hint)


_FITS = "def fits(n, dtype):\n    return {}"

exercise(
    "fits", chapter=CHAPTER, grade=grade_fits,
    solution="""
def fits(n, dtype):
    limits = jnp.iinfo(dtype)
    return limits.min <= n <= limits.max
""",
    wrong=[
        (_FITS.format("abs(n) <= jnp.iinfo(dtype).max"), "still in"),
        (_FITS.format("jnp.iinfo(dtype).min < n < jnp.iinfo(dtype).max"), "still in"),
        (_FITS.format("n <= jnp.iinfo(dtype).max"), "yours gives True"),
        (_FITS.format("n < 2 ** jnp.iinfo(dtype).bits"), "fits(128, 'int8')"),
        (_FITS.format("-2 ** (jnp.iinfo(dtype).bits - 1) <= n < 2 ** (jnp.iinfo(dtype).bits - 1)"),
         "`fits(255, 'uint8')` is True, and yours gives False"),
        (_FITS.format("jnp.array([0], dtype=dtype)[0] + n > 0"), "yours gives"),
        (_FITS.format("float(np.iinfo(dtype).min) <= float(n) <= float(np.iinfo(dtype).max)"),
         "`fits(9223372036854775808, 'int64')` is False"),
    ],
    hints=["`jnp.iinfo` knows the smallest and the largest"])


# -- odd_triple ------------------------------------------------------------------------------------

def grade_odd_triple(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 3, "three names are expected")
    a, b, c = map(np.dtype, answer)
    left = np.promote_types(np.promote_types(a, b), c)
    right = np.promote_types(a, np.promote_types(b, c))
    expect(left != right, f"NumPy's ({a} with {b}) with {c} is {left}, and so is {a} with "
           f"({b} with {c})")


exercise(
    "odd_triple", chapter=CHAPTER, grade=grade_odd_triple,
    solution='("uint8", "int8", "float16")',
    wrong=[
        ('("int8", "int32", "float32")', "and so is"),
        ('("int16", "int8", "float16")', "and so is"),
        ('("uint8", "int8")', "three names"),
        ('("int32", "bfloat16", "float16")', "raised"),
    ],
    afterthought="and to minijax, which takes no such detour, it is one dtype either way",
    hints=["an integer that is wide enough for two others may be too wide for a small float",
           "`itertools.product` of a few names tries all of them"])
