"""The exercises of chapter 24, *Loops and Numba*."""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from minijax.notebook.checks import agree, chosen, exercise, expect, shown, trouble, wanting

from .ways import unchanged

CHAPTER = "24_loops_and_numba"


_MINI = """
from minijax.notebook.library import library
library.begin("24")
import mini
"""


def _library() -> Any:
    from minijax.notebook.library import library
    return library.module


# -- position --------------------------------------------------------------------------------------

_SHAPES = [(5,), (2, 3), (3, 2), (2, 3, 4), (4, 1, 2), (2, 3, 1, 2), (2, 1, 3, 2, 2), ()]


def grade_position(position: Callable) -> None:
    for shape in _SHAPES:
        for at in np.ndindex(shape):
            expected = int(np.ravel_multi_index(at, shape)) if shape else 0
            inputs = f"at = {at} and shape = {shape}"
            result = position(at, shape)
            columns = int(np.ravel_multi_index(at, shape, order="F")) if shape else 0
            agree(inputs, result, expected,
                  (result == columns != expected, "there the first index runs fastest"),
                  (len(shape) == 0, "an array without axes has one element, the first"),
                  "one step of an index skips everything that the later axes hold", what="the "
                                                                                         "position",
                  tolerance=0)


_POSITION = """
def position(at, shape):
    found = {start}
    for i, n in {pairs}:
        found = {step}
    return found
"""


def _position_text(pairs: str = "zip(at, shape)", step: str = "found * n + i", start: str = "0"
                   ) -> str:
    return _POSITION.format(pairs=pairs, step=step, start=start)


exercise("position", chapter=CHAPTER, grade=grade_position, solution=_position_text(),
         wrong=[(_position_text(pairs="zip(at[::-1], shape[::-1])"), "runs fastest"),
                (_position_text(step="(found + i) * n"), "the position"),
                (_position_text(step="found + i * n"), "the position"),
                (_position_text(start="1"), "the position"),
                (_position_text(pairs="zip(at[-3:], shape[-3:])"), "the position")])


# -- distance --------------------------------------------------------------------------------------

def grade_distance(distance: Callable) -> None:
    for shape in _SHAPES[:-1]:
        for axis in range(len(shape)):
            expected, result = math.prod(shape[axis + 1:]), distance(shape, axis)
            agree(f"shape = {shape} and axis = {axis}", result, expected,
                  (result == math.prod(shape[axis:]), "its own length does not count: the next one "
                   "lies behind all that has this index"),
                  (result == math.prod(shape[:axis]), "the axes *behind* it lie in between"),
                  "how many elements have the same index along this axis and those before it?",
                  what="the distance", tolerance=0)


_DISTANCE = "def distance(shape, axis):\n    return int(np.prod(shape[{}], dtype=int))"

exercise("distance", chapter=CHAPTER, grade=grade_distance, solution=_DISTANCE.format("axis + 1:"),
         wrong=[(_DISTANCE.format("axis:"), "its own length"),
                (_DISTANCE.format(":axis"), "lie in between"),
                ("def distance(shape, axis):\n    return shape[axis]", "its own length"),
                ("def distance(shape, axis):\n    return 1", "the distance is")])


# -- loops_of_three --------------------------------------------------------------------------------

def grade_loops_of_three(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 3,
           f"three numbers are expected, for f, g and h, and yours is {answer!r}")
    message = f"yours is {list(answer)}\n"
    f, g, h = answer
    expect(f != 3, message + "f: is the vector of the sums of rows ever needed as an array?")
    expect(f == 2, message + "f: one loop over the rows, and what in it?")
    expect(g != 4, message + "g: the sum needs no loop over the rows to itself")
    expect(g == 3, message + "g: over the rows; and in it, one for the sum, and one for the result")
    expect(h != 3,
           message + "h: `e` is read in two loops, and an exponential costs more than a store")
    expect(h == 5, message + "h: two to store `e`, and what follows is like g")


exercise("loops_of_three", chapter=CHAPTER, grade=grade_loops_of_three, solution="[2, 3, 5]",
         wrong=[("[3, 3, 5]", "as an array"), ("[2, 4, 5]", "to itself"),
                ("[2, 3, 3]", "more than a store"), ("[2, 3, 6]", "is like g"),
                ("[2]", "three numbers")],
         afterthought="print them with `text_of`")


# -- largest_p -------------------------------------------------------------------------------------

def grade_largest_p(largest: Any) -> None:
    mini = _library()
    expect(isinstance(largest, mini.Primitive), "`largest_p` is a `Primitive`")
    cases = [(np.array([3.0, -1.0, 2.0]), (0,)), (np.array([-3.0, -1.0]), (0,)),
             (np.array([-1e305, -1e307]), (0,)), (np.array([-np.inf, -np.inf]), (0,)),
             *((np.array([[1.0, 5.0], [7.0, -2.0]]), (k,)) for k in (0, 1)),
             (-np.arange(1.0, 41.0).reshape(2, 20), (0, 1))]
    for x, axes in cases:
        inputs, expected = f"largest_p({shown(x)}, axes={axes})", np.max(x, axis=axes)
        with wanting(inputs, expected, (ValueError, "an `impl` gives a list, of one array here"),
                     (TypeError, "an `impl` gives a list, of one array here")):
            result = largest(x, axes=axes)
        agree(inputs, result, expected, "`np.max(x, axis=axes)` does it")
    for table in ("REDUCE", "ELEMENT"):
        expect("max" in getattr(mini, table), f'now the compiler: `{table}["max"] = …`')
    for x, axes in cases:
        inputs, expected = f"the text of largest_p({shown(x)}, axes={axes})", np.max(x, axis=axes)
        program = mini.make_jaxpr(lambda x, axes=axes: largest(x, axes=axes))(x)
        names: dict[str, Any] = {"np": np, "inf": math.inf}
        exec(mini.Text(program, {}).text, names)
        with wanting(inputs, expected):
            [result] = names["program"](x)
        agree(inputs, result, expected,
              (bool(np.all(x < 0)), "all numbers are negative here; what does it start from?"),
              "what does the step do with the next element?", what="the result")


_MAX = """
largest_p = Primitive("max", impl={impl})
REDUCE["max"] = ({start}, "{step}")
ELEMENT["{name}"] = reduced
"""


def _max_text(impl: str = "lambda x, axes: [np.max(x, axis=axes)]", start: str = '"-inf"',
              step: str = "max({0}, {1})", name: str = "max") -> str:
    return _MAX.format(impl=impl, start=start, step=step, name=name)


exercise(
    "largest_p", chapter=CHAPTER, grade=grade_largest_p, given="%mini begin 24",
    solution=_max_text(),
    wrong=[(_max_text(start='"0"'), "what does it start from"),
           (_max_text(start='"-1e300"'), "what does it start from"),
           (_max_text(impl="lambda x, axes: np.max(x, axis=axes)"), "gives a list"),
           (_max_text(impl="lambda x, axes: [np.max(x)]"), "does it"),
           (_max_text(step="max({0}, 0)"), "what does"),
           (_max_text(name="maximum"), "now the compiler")],
    hints=["no number is smaller than minus infinity"])


# -- lane_sums -------------------------------------------------------------------------------------

def _lane_sums(x: np.ndarray, lanes: int) -> float:
    whole = len(x) - len(x) % lanes
    parts = [0.0] * lanes
    for k in range(whole):
        parts[k % lanes] += float(x[k])
    for k in range(whole, len(x)):
        parts[0] += float(x[k])
    while len(parts) > 1:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def grade_lane_sums(lane_sums: Callable) -> None:
    for lanes, n, base in itertools.product((1, 2, 4, 8, 16), (0, 1, 3, 8, 21, 40, 47, 63),
                                            (10, 1)):
        x = np.random.default_rng(n).normal(size=n) * float(base) ** np.arange(n)
        inputs, expected = f"{lanes} lanes and {n} numbers", _lane_sums(x, lanes)
        before = x.copy()
        with wanting(inputs, expected,
                     (IndexError, "those that do not fill a round go to the first")):
            result = lane_sums(x, lanes)
        expect(result is not None, f"for {inputs} the sum is {expected!r}, and yours is None: "
               "return it")
        hint = "in another order the last digits differ: follow the order of the text"
        if abs(result - expected) > 1e-6 * np.abs(x).sum():
            hint = "some numbers are missing, or there are too many: think of the end"
        expect(float(result) == expected, f"for {inputs} the sum is {expected!r}, and yours is "
               f"{float(result)!r}\n{hint}")
        unchanged(inputs, before, x)


_LANE = """
def lane_sums(x, lanes):
    whole = len(x) - len(x) % lanes
    parts = [0.0] * lanes
    for k in range(whole):
        parts[{lane}] += x[k]
    for k in range(whole, len(x)):
        parts[{last}] += x[k]
    while len(parts) > 1:
        parts = [a + b for a, b in zip({pairs})]
    return {result}
"""


def _lane_text(lane: str = "k % lanes", last: str = "0", pairs: str = "parts[::2], parts[1::2]",
               result: str = "parts[0]") -> str:
    return _LANE.format(lane=lane, last=last, pairs=pairs, result=result)


exercise(
    "lane_sums", chapter=CHAPTER, grade=grade_lane_sums, solution=_lane_text(),
    wrong=[(_lane_text().replace("range(whole, len(x))",
                                 "range(len(x) - 1, whole - 1, -1)"), "the last digits"),
           ("def lane_sums(x, lanes):\n    return float(np.sum(x))", "the last digits"),
           (_lane_text(last="k % lanes"), "the last digits"),
           (_lane_text().replace("* lanes", "* 8"), "16 lanes"),
           (_lane_text(pairs="parts[:len(parts) // 2], parts[len(parts) // 2:]"),
            "the last digits"),
           (_lane_text(result="None"), "yours is None"),
           ("def lane_sums(x, lanes):\n    return sum(float(sum(x[k:len(x) // lanes * lanes:lanes]"
            ")) for k in range(lanes))", "think of the end"),
           (_lane_text(lane="k // (whole // lanes)"), "the last digits"),
           (_lane_text().replace("    for k in range(whole, len(x)):\n        parts[0] += x[k]\n",
                                 "    parts[0] += sum(x[whole:])\n"), "the last digits"),
           (_lane_text().replace("[0.0] * lanes", "x[:lanes] if whole else [0.0] * lanes").replace(
               "range(whole):", "range(lanes, whole):"), "its caller may still need it")])


# -- in_registers ----------------------------------------------------------------------------------

_SUMS = {
    "a": ("over axis 0", False, "the last axis is not summed over"),
    "b": ("over axis 1", False, "the last axis is not summed over"),
    "c": ("over axis 2", True, "neighbours are added up"),
    "d": ("over axes 0 and 1", False, "the last axis is not summed over"),
    "e": ("over axes 0 and 2", True, "the last axis is one of those that are summed over"),
    "f": ("over all axes", True, "the last axis is one of them"),
    "g": ("over axis 0 of the transposed array", False, "the rule looks at the axes of the sum's "
          "operand, and the last one of the transposed array stays; it does not look at memory")}


def grade_in_registers(answer: Any) -> None:
    chosen(answer, _SUMS, "is in a register", "is in memory")


exercise("in_registers", chapter=CHAPTER, grade=grade_in_registers, solution='"cef"',
         wrong=[('"abd"', "last axis"), ('"cefg"', "does not look at memory"),
                ('"cf"', "one of those"), ('"c"', "one of those"), ("3", "a string of letters")])


# -- versions --------------------------------------------------------------------------------------

def grade_versions(answer: Any) -> None:
    expect(isinstance(answer, int), f"a whole number is expected, and yours is {answer!r}")
    message = f"yours is {answer}: "
    expect(answer != 8, message + "the number itself is not part of a type, nor is the length")
    expect(answer != 7, message + "one of these arrays has the type of an earlier one")
    expect(answer != 4, message + "how the elements lie is part of a type, and `.T` changes it")
    expect(answer != 5, message + "`.T` and `[::2]` lie in two different ways, and 1 is not 2.0")
    expect(answer == 6, message + "numbers: int and float; arrays: how many axes, and how they lie")


exercise("versions", chapter=CHAPTER, grade=grade_versions, solution="6",
         wrong=[("8", "the number itself"), ("7", "an earlier one"), ("4", "how the elements lie"),
                ("5", "two different ways"), ("3", "how many axes"), ('"6"', "a whole number")],
         afterthought="`f.signatures` lists them")


# -- spread_text -----------------------------------------------------------------------------------

def grade_spread_text(text: Any) -> None:
    mini = _library()
    expect(isinstance(text, str), "the text of a function is expected, a string, and yours is "
           f"{text!r}")
    expect("def program(x)" in text, "the text begins with `def program(x):`")
    reads, made = text.count("x["), len(re.findall(r"\bnp\.(?!(inf|float\d+|int\d+)\b)", text))
    expect(reads == 1, "in one place of the text an element of x is read, and in yours in "
           f"{reads}: "
           "give it a name")
    expect(made == 1, f"one array is made, the result, and your text uses `np.` {made} times")
    expect(_reads_single_elements(text), "`x[i]` is a whole row: read one element after the other, "
           "as `x[i, j]`")
    x = np.random.default_rng(0).normal(size=(40, 30)) - 10.0
    expected = x.max(1) - x.min(1)
    names: dict[str, Any] = {"np": np, "math": math}
    exec(text, names)
    inputs = "a matrix of negative numbers"
    compiled = mini.compiled(SimpleNamespace(text=text, functions={}))
    for how, run in (("Python", names["program"]), ("Numba", compiled)):
        try:
            result = run(x)
        except Exception as error:
            expect(False, f"for {inputs}, run by {how}, the first differences are "
                   f"{shown(expected[:2])}, and yours "
                   + trouble(error).removeprefix("your answer "))
        expect(np.shape(result) == (40,), f"for {inputs} a vector of 40 is expected, and yours "
               f"has the shape {np.shape(result)}")
        agree(f"{inputs}, whose first two rows are looked at,",
              np.asarray(result)[:2], expected[:2],
              "it is the largest less the smallest: what do they start from, in each row, and what "
              "are they after an element?", what="the differences")
        apart = np.flatnonzero(~np.isclose(result, expected))
        expect(not len(apart), f"for {inputs} the first rows are right, and row {apart[:1]} is "
               "not\neach of the 30 elements of a row may be its largest, or its smallest")
        for case, y in (("rows that ascend", np.sort(x)), ("rows that descend", -np.sort(-x)),
                        ("rows of equal numbers", np.tile(x[:, :1], 30)),
                        ("numbers up to 1e306", -1e305 * x), ("numbers down to -1e306", 1e305 * x)):
            agree(f"{case}, the first two of 40,", np.asarray(run(y))[:2],
                  (y.max(1) - y.min(1))[:2],
                  ("1e306" in case, "what do the largest and the smallest start from, in each "
                   "row?"),
                  "an element may be the largest and the smallest so far", what="the differences")


def _reads_single_elements(text: str) -> bool:
    """Whether each index of `x` in a text is that of one element."""
    tree = ast.parse(text)
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Subscript)]
    whole = {n.value for n in nodes}
    return all(n in whole or isinstance(n.slice, ast.Tuple) and not any(
        isinstance(k, ast.Slice) for k in n.slice.elts)
        for n in nodes if isinstance(n.value, ast.Name) and n.value.id == "x")


_SPREAD = '''
spread_text = """
def program(x):
    out = np.empty(40)
    {before}
    for i in range(40):
        {start}
        for j in range(30):
            e = x[i, j]
            low, high = min(low, e), max(high, e)
        out[i] = {result}
    return out
"""
'''
_LIMITS = "low, high = math.inf, -math.inf"


def _spread_text(before: str = "", start: str = _LIMITS, result: str = "high - low") -> str:
    lines = _SPREAD.format(before=before, start=start, result=result).splitlines()
    return "\n".join(line for line in lines if line.strip())


exercise(
    "spread_text", chapter=CHAPTER, grade=grade_spread_text, given=_MINI,
    solution=_spread_text(),
    wrong=[(_spread_text(start="low, high = 0.0, 0.0"), "start from"),
           (_spread_text(before=_LIMITS, start="pass"), "start from"),
           (_spread_text(start="low = high = x[i, 0]"), "give it a name"),
           (_spread_text(start="row = np.zeros(30); " + _LIMITS), "uses `np.` 2 times"),
           (_spread_text(result="low - high"), "the differences"),
           (_spread_text().replace("range(30)", "range(29)"), "each of the 30"),
           ('spread_text = """\ndef program(x):\n    return x[:].max(1) - x.min(1)\n"""',
            "uses `np.` 0 times"),
           (_spread_text(start="low, high = 1e6, -1e6"), "start from"),
           (_spread_text(start="low, high = 1e300, -1e300"), "start from"),
           (_spread_text().replace("low, high = min(low, e), max(high, e)",
                                   "if e > high:\n                high = e\n"
                                   "            elif e < low:\n                low = e"),
            "and the smallest so far"),
           ('spread_text = """\ndef program(x):\n    out = np.empty(40)\n'
            '    for i in range(40):\n        row = x[i]\n'
            '        out[i] = row.max() - row.min()\n    return out\n"""', "is a whole row"),
           ("spread_text = 3", "a string")],
    right=[_spread_text(start="low, high = np.inf, -np.inf"),
           _spread_text().replace("np.empty(40)", "np.empty(40, np.float64)")],
    hints=["`math.inf` is above every number"])


# -- in_pairs --------------------------------------------------------------------------------------

def _in_pairs(a: np.ndarray, kind: type) -> np.ndarray:
    """Half the sum of squares of what is positive, of even positions plus of odd ones."""
    terms = np.float32(0.5) * np.maximum(a, np.float32(0)) ** 2
    sums = [np.add.accumulate(terms[:, k::2], axis=1, dtype=kind)[:, -1] for k in (0, 1)]
    return (sums[0] + sums[1]).astype(np.float32)


def grade_in_pairs(in_pairs: Callable) -> None:
    a = np.random.default_rng(1).normal(size=(200, 300)).astype(np.float32)
    expected, room, before = _in_pairs(a, np.float32), np.full(208, -1, np.float32), a.copy()
    result = room[:200]
    result[:] = np.nan
    inputs = "200 rows of random numbers, the first two sums of which are looked at,"
    with wanting(inputs, expected[:2]):
        in_pairs(a, result)
    expect((room[200:] == -1).all(), "your loop writes beyond the end of `e`, into memory that is "
           "not its own: Numba does not look, so count the rows")
    unchanged(inputs, before, a)
    expect(not np.isnan(result).any(), f"some of the 200 elements of `e` have no number: "
           f"{int(np.isnan(result).sum())}")
    agree(inputs, result[:2], expected[:2], "one sum has the terms of positions 0, 2, …, the "
          "other those of 1, 3, …; and a term is that of `energy`", what="the result")
    agree("200 rows of random numbers", result, expected, "each row begins with two zeros",
          what="the result")
    same = int((result == expected).sum())
    hint = ("each sum takes every second term, in the order of the loop; `plus` would allow any "
            "order")
    if np.array_equal(result, _in_pairs(a, np.float64)):
        hint = "the sums have 64 bits: what type has the number from which they start?"
    elif np.array_equal(result, np.add.accumulate(
            np.float32(0.5) * np.maximum(a, np.float32(0)) ** 2, axis=1)[:, -1]):
        hint = "this is one sum in the order of the loop: keep two"
    expect(same == 200, f"{same} of the 200 sums are right to the last bit\n{hint}")


_PAIRS = """
@njit(nogil=True, error_model="numpy")
def in_pairs(a, e):
    for i in range(200):
        even, odd = {zeros}
        for j in range(0, {stop}, 2):
            b, c = maximum(a[i, j], float32(0.0)), maximum(a[i, j + 1], float32(0.0))
            even = {even}
            odd = {odd}
        e[i] = even + odd
"""
_EVEN, _ODD = "even + float32(0.5) * (b * b)", "odd + float32(0.5) * (c * c)"


def _pairs_text(zeros: str = "float32(0.0), float32(0.0)", stop: str = "300", even: str = _EVEN,
                odd: str = _ODD) -> str:
    return _PAIRS.format(zeros=zeros, stop=stop, even=even, odd=odd)


exercise(
    "in_pairs", chapter=CHAPTER, grade=grade_in_pairs, solution=_pairs_text(),
    given="from numba import njit\nfrom numpy import float32\n"
          "from minijax.compiler.numba_helpers import maximum, plus\n",
    wrong=[(_pairs_text(zeros="0.0, 0.0"), "have 64 bits"),
           (_pairs_text(even="plus(even, float32(0.5) * (b * b))",
                        odd="plus(odd, float32(0.5) * (c * c))"), "any order"),
           (_pairs_text(even=_EVEN + " + float32(0.5) * (c * c)", odd="odd"), "keep two"),
           (_pairs_text(even="even + b * b"), "that of `energy`"),
           (_pairs_text(stop="298"), "that of `energy`"),
           (_pairs_text().replace("range(200)", "range(201)"), "beyond the end"),
           (_pairs_text().replace("b, c = maximum(a[i, j], float32(0.0))",
                                  "a[i, j] = b = maximum(a[i, j], float32(0.0))\n            c =")
            .replace("c =,", "c ="), "its caller may still need it"),
           ("def in_pairs(a, e):\n    e[0] = 0.0", "have no number")])
