"""The exercises of chapter 26, *Threads, caches and dispatch*."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from minijax.notebook.checks import agree, chosen, exercise, expect, shown, trouble, wanting

CHAPTER = "26_threads_caches_and_dispatch"


_MINI = """
from minijax.notebook.library import library
library.begin("26")
"""


def _library() -> Any:
    from minijax.notebook.library import library
    return library.module


# -- fixed_blocks ----------------------------------------------------------------------------------

def grade_fixed_blocks(fixed_blocks: Callable) -> None:
    for n, size in itertools.product((0, 1, 5, 8, 12), (1, 3, 4, 20)):
        expected = [(k, min(k + size, n)) for k in range(0, n, size)]
        inputs = f"n = {n} and size = {size}"
        with wanting(inputs, str(expected)):
            result = fixed_blocks(n, size)
        expect(result is not None, f"for {inputs} the blocks are {expected}, and yours are None: "
               "return them")
        result = list(map(tuple, result))
        message = f"for {inputs} the blocks are {expected}, and yours are {result}\n"
        expect(result != expected[:-1] or not expected,
               message + "the rounds at the end are missing")
        expect(not any(stop > n for _, stop in result), message + "the last block ends where the "
        "rounds do")
        expect(not any(start >= stop for start, stop in result), message + "no block is empty")
        expect(result == expected, message + "each begins where the one before stops")


_BLOCKS = "def fixed_blocks(n, size):\n    return [({}, {}) for k in range({})]"

exercise("fixed_blocks", chapter=CHAPTER, grade=grade_fixed_blocks,
         solution=_BLOCKS.format("k", "min(k + size, n)", "0, n, size"),
         wrong=[(_BLOCKS.format("k", "k + size", "0, n, size"), "ends where"),
                (_BLOCKS.format("k * size", "k * size + size", "n // size"), "are missing"),
                (_BLOCKS.format("k", "min(k + size, n)", "0, n + 1, size"), "no block is empty"),
                (_BLOCKS.format("k", "min(k + size, n) - 1", "0, n, size"), "no block is empty"),
                (_BLOCKS.format("k * n // size", "(k + 1) * n // size", "size"),
                 "no block is empty")])


# -- finished --------------------------------------------------------------------------------------

def _finished(times: list, threads: int) -> float:
    free = [0.0] * threads
    for time in times:
        free[free.index(min(free))] += time
    return max(free)


def grade_finished(finished: Callable) -> None:
    rng = np.random.default_rng(0)
    cases = [([1, 1, 1, 1], 2), ([3, 1, 1, 1], 2), ([1, 1, 1, 3], 2), ([2, 2, 2], 8), ([5], 3)]
    cases += [(rng.integers(1, 9, n).tolist(), threads)
              for n in (4, 7, 12) for threads in (1, 2, 3)]
    for times, threads in cases:
        expected, inputs = _finished(times, threads), f"times = {times} and threads = {threads}"
        with wanting(inputs, expected):
            result = finished(list(times), threads)
        deal = max(sum(times[k::threads]) for k in range(threads))
        agree(inputs, result, expected,
              (result == sum(times) / threads != expected, "a block is not divided, one thread has "
               "it; and the blocks are taken in this order"),
              (result == deal != expected,
               "they do not take turns: the one that is free first takes the next"),
              "at which time is each thread free again?", tolerance=0)


_FINISHED = """
def finished(times, threads):
    free = [0.0] * threads
    for time in times:
        free[{}] += time
    return {}
"""

exercise("finished", chapter=CHAPTER, grade=grade_finished,
         solution=_FINISHED.format("free.index(min(free))", "max(free)"),
         wrong=[("def finished(times, threads):\n    return sum(times) / threads", "not divided"),
                ("def finished(times, threads):\n    return max(sum(times[k::threads]) "
                 "for k in range(threads))", "do not take turns"),
                (_FINISHED.format("free.index(min(free))", "min(free)"), "is each thread free"),
                (_FINISHED.format("free.index(max(free))", "max(free)"), "is each thread free"),
                (_FINISHED.format("0", "max(free)"), "is each thread free")],
         hints=["keep a list of the times at which the threads are free"])


# -- ordered_sum -----------------------------------------------------------------------------------

_GIVEN_SUM = """
def one_by_one(x):
    return float(np.cumsum(x)[-1])
"""


def _one_by_one(x: Any) -> float:
    return float(np.cumsum(x)[-1])


def grade_ordered_sum(ordered_sum: Callable) -> None:
    for n, size in ((8, 4), (9, 2), (100, 7), (1000, 64), (5000, 100)):
        x = np.random.default_rng(n).normal(size=n) * 1e3
        expected = _one_by_one([_one_by_one(x[k:k + size]) for k in range(0, n, size)])
        for seed in range(4):
            order: list[int] = []

            def run(f: Callable, count: int, seed: int = seed, order: list[int] = order) -> None:
                order[:] = np.random.default_rng(seed).permutation(count).tolist()
                for k in order:
                    f(k)
            inputs = f"{n} numbers and blocks of {size}"
            with wanting(inputs, expected, (IndexError, "who runs first? Any of them; so there "
            "must be a place for each before")):
                result = ordered_sum(x.copy(), size, run)
            expect(isinstance(result, float), f"for {inputs} the sum is {expected!r}, and yours is "
                   f"{result!r}: return a number")
            expect(order, f"for {inputs} `run` was not called: it is `run` that has the threads")
            message = (f"for {inputs}, run in the order {shown(order[:6])}…, the sum is "
                    f"{expected!r}, and yours is {result!r}\n")
            expect(abs(result - expected) < 1e-6 * np.abs(x).sum(), message + "some numbers are "
                   "missing, or there are too many")
            expect(result == expected, message + "the last digits: in which order do you add up "
                   "what the blocks give, and what is in them?")
    x, result = np.random.default_rng(1).normal(size=1000) * 1e3, None
    with contextlib.suppress(Exception):
        result = ordered_sum(x.copy(), 64, lambda f, n: None)
    expect(result != _one_by_one([_one_by_one(x[k:k + 64]) for k in range(0, 1000, 64)]), "where "
           "`run` does nothing, yours gives the sum all the same: the function that `run` calls "
           "should add up the blocks")


_ORDERED = """
def ordered_sum(x, size, run):
    {start}
    def block(k):
        {step}
    run(block, {count})
    return {end}
"""
_COUNT = "-(-len(x) // size)"


def _ordered(start: str = f"parts = np.empty({_COUNT})",
             step: str = "parts[k] = one_by_one(x[k * size:(k + 1) * size])", count: str = _COUNT,
             end: str = "one_by_one(parts)") -> str:
    return _ORDERED.format(start=start, step=step, count=count, end=end)


exercise(
    "ordered_sum", chapter=CHAPTER, grade=grade_ordered_sum, given=_GIVEN_SUM,
    solution=_ordered(),
    wrong=[(_ordered(start="parts = []", step="parts.append(one_by_one(x[k * size:(k + 1) * "
    "size]))"),
            "in which order"),
           (_ordered(step="parts[k] = np.sum(x[k * size:(k + 1) * size])"), "in which order"),
           (_ordered(count="len(x) // size", start="parts = np.zeros(len(x) // size)"), "missing"),
           (_ordered(end="float(np.sum(parts))"), "in which order"),
           ("def ordered_sum(x, size, run):\n    return one_by_one([one_by_one(x[k:k + size]) "
            "for k in range(0, len(x), size)])", "was not called"),
           ("def ordered_sum(x, size, run):\n    run(lambda k: None, 1)\n    return one_by_one(["
            "one_by_one(x[k:k + size]) for k in range(0, len(x), size)])", "all the same")])


# -- may_share -------------------------------------------------------------------------------------

_LOOPS = {
    "a": ("y[i] = x[n - 1 - i]", True, "each round writes an element of its own"),
    "b": ("s = s + x[i]", False, "all rounds write s"),
    "c": ("t = x[i]; y[i] = t * t", True, "t is first defined inside: each thread has its own"),
    "d": ("for j in range(m): y[j] += x[i, j]", False, "y[0] is written in each round"),
    "e": ("for j in range(m): y[i] += x[i, j]", True, "y[i] belongs to the round i alone"),
    "f": ("y[i] = y[i - 1] + x[i]", False, "a round reads what the one before wrote"),
    "g": ("y[i, 0] = x[i]; y[i, 1] = y[i, 0] + 1", True, "what it reads is of its own round")}


def grade_may_share(answer: Any) -> None:
    chosen(answer, _LOOPS, "may be shared", "may not be shared")


exercise("may_share", chapter=CHAPTER, grade=grade_may_share, solution='"aceg"',
         wrong=[('"acefg"', "the one before wrote"), ('"acdeg"', "in each round"),
                ('"aeg"', "first defined inside"), ('"ace"', "of its own round"),
                ('"abceg"', "all rounds write"), ("3", "a string of letters")],
         afterthought="our `independent` takes f for independent: it does not look at what is "
         "read. In `mini` an array is read only by loops that come after the one that writes it")


# -- columns ---------------------------------------------------------------------------------------

class _Enough(Exception):
    pass


class _Noting:
    """A stand-in for the matrix, which records the order in which it is read."""

    def __init__(self) -> None:
        self.indices: list[int] = []

    def __getitem__(self, at: Any) -> float:
        if not isinstance(at, tuple) or len(at) != 2 or len(self.indices) == 2000:
            raise _Enough
        self.indices.append(at[0] * 400 + at[1])
        return 0.5


def grade_columns(columns: Any) -> None:
    mini = _library()
    expect(isinstance(columns, tuple) and all(isinstance(x, mini.Statement) for x in columns),
           f"a tuple of statements is expected, and yours is {columns!r}")
    kernel = mini.Kernel("program", ("x",), columns, ("out",))
    names: dict[str, Any] = {"np": np, "math": math}
    x = np.random.default_rng(0).normal(size=(3000, 400))
    inputs, expected = "a matrix of shape (3000, 400)", x.sum(0)
    try:
        text = mini.kernel_text(kernel)
        exec(text, names)
        [result] = mini.compiled(SimpleNamespace(text=text, functions={}))(x)
    except Exception as error:
        expect(False, f"for {inputs} the first sums are {shown(expected[:2])}, and yours "
               f"{trouble(error).removeprefix('your answer ')}")
    expect(np.shape(result) == (400,), f"for {inputs} a vector of 400 is expected, and yours is of "
           f"shape {np.shape(result)}")
    apart = np.flatnonzero(~np.isclose(result, expected))
    if len(apart):
        k = int(apart[0])
        agree(f"{inputs} and column {k}", result[k], expected[k],
              (result[k] == 0, "which columns have you missed?"),
              (np.allclose(np.sort(result), np.sort(expected)), "these are the sums, in another "
               "order: to which place of `sums` does a column go, and where does `reshape` put "
               "that?"), "each row of a column is added, "
              "once, to a sum that begins at 0", what="the sum")
    expect(len(mini.in_parts(kernel)) > 1,
           f"for {inputs} a loop that threads share is expected, and " + _why_not(mini, kernel))
    noting = _Noting()
    with contextlib.suppress(_Enough):
        names["program"](noting)
    steps = np.diff(noting.indices)
    near = float(np.mean(steps == 1)) if len(steps) else 0.0
    expect(near > 0.85, f"for {inputs} at least 7 of 8 reads are expected beside the one before, "
           f"and of yours {near:.0%} are\nwhich index runs in the innermost loop?")


def _why_not(mini: Any, kernel: Any) -> str:
    """The reason why `in_parts` does not split a kernel."""
    loops = [each for each in kernel.body if isinstance(each, mini.For)]
    if not loops or (loops[0].start, loops[0].step) != (0, 1):
        return "yours has none that begins at 0 and takes each number"
    if not mini.independent(loops[0]):
        return (f"in yours `independent` finds what all rounds write\none index of the sum must "
                f"be the index of the first loop, {loops[0].index}, itself")
    return "yours runs too few statements"


_COLUMNS = """
from mini import For, Let, Load, Store

columns = (
    Let("sums", "np.zeros({shape})", ()),
    For("s", 0, {outer}, (
        For("i", 0, {middle}, (
            For("j", 0, {inner}, (
                Let("k", "{column}", ("s", "j")),
                Load("element", "x", {read}),
                Load("before", "sums", {place}),
                Let("after", "{{}} + {{}}", ("before", "element")),
                Store("sums", {place}, "after"))),)),)),
    Let("out", "{{}}.reshape(400)", ("sums",)))
"""


def _columns(shape: str = "(25, 16)", outer: int = 25, middle: int = 3000, inner: int = 16,
             column: str = "{} * 16 + {}", read: str = '("i", "k")', place: str = '("s", "j")'
             ) -> str:
    return _COLUMNS.format(shape=shape, outer=outer, middle=middle, inner=inner, column=column,
                           read=read, place=place)


exercise(
    "columns", chapter=CHAPTER, grade=grade_columns, given=_MINI,
    solution=_columns(),
    wrong=[(_columns("400", 3000, 400, 1, "{}", '("s", "i")', '("i",)'), "must be the index"),
           (_columns("400", 400, 3000, 1, "{}", '("i", "s")', '("s",)'), "in the innermost loop"),
           (_columns("400", place='("k",)'), "must be the index"),
           (_columns(outer=24), "which columns"),
           (_columns(column="{} + 25 * {}"), "another order"),
           (_columns().replace('"s", 0, 25', '"s", 1, 26').replace("(25, 16)", "(26, 16)").replace(
               "{} * 16 + {}", "({} - 1) * 16 + {}").replace('"{}.reshape', '"{}[1:].reshape'),
            "begins at 0"),
           ('columns = "for s in range(25): …"', "a tuple of statements")],
    hints=["a few columns for each round of the first loop"])


# -- sets_of_column --------------------------------------------------------------------------------

def grade_sets_of_column(sets_of_column: Callable) -> None:
    others = itertools.product((256, 100, 4, 1), (1, 8, 12, 256, 264, 512, 1000))
    for rows, columns in [(100, 264), (100, 256), *others, (50, 12), (40, 20)]:
        expected = len({i * columns * 8 // 64 % 64 for i in range(rows)})
        inputs = f"rows = {rows} and columns = {columns}"
        with wanting(inputs, expected):
            result = sets_of_column(rows, columns)
        agree(inputs, result, expected,
              (result == len({i * columns * 8 // 64 for i in range(rows)}), "these are lines; "
               "there are 64 sets, and then it begins again"),
              (result == len({i * columns // 64 % 64 for i in range(rows)}),
               "a float64 has 8 bytes"),
              (columns > 8 and result == len({i * columns * 8 % 64 for i in range(rows)}),
               "that is the place in the line; which line is it?"),
              "row i begins at byte i * columns * 8", tolerance=0)


_SETS = "def sets_of_column(rows, columns):\n    return len({{{} for i in range(rows)}})"

exercise("sets_of_column", chapter=CHAPTER, grade=grade_sets_of_column,
         solution=_SETS.format("i * columns * 8 // 64 % 64"),
         wrong=[("def sets_of_column(rows, columns):\n    return min(\n        rows, len({i "
                 "* columns // 8 % 64 for i in range(64)}))", "row i begins"),
                (_SETS.format("i * columns // 64 % 64"), "8 bytes"),
                (_SETS.format("i * columns * 8 // 64"), "begins again"),
                (_SETS.format("i * columns * 8 % 64"), "place in the line"),
                ("def sets_of_column(rows, columns):\n    return min(rows, 64)", "row i begins"),
                ("def sets_of_column(rows, columns):\n    if columns < 8:\n"
                 "        return min(64, -(-rows * columns // 8))\n"
                 "    return min(rows, 64 // np.gcd(64, columns // 8))", "rows = 50")])


# -- tile_order ------------------------------------------------------------------------------------

def _tile_order(n: int, m: int, side: int) -> list[tuple[int, int]]:
    return [(i, j) for t in range(0, n, side) for u in range(0, m, side)
            for i in range(t, min(t + side, n)) for j in range(u, min(u + side, m))]


def grade_tile_order(tile_order: Callable) -> None:
    for n, m, side in ((4, 4, 2), (2, 4, 2), (3, 5, 2), (5, 3, 4), (1, 1, 8), (6, 7, 3),
                       (11, 3, 4), (2, 12, 5)):
        expected, inputs = _tile_order(n, m, side), f"n = {n}, m = {m} and side = {side}"
        with wanting(inputs, str(expected[:6])):
            result = tile_order(n, m, side)
        expect(result is not None, f"for {inputs} the order begins with {expected[:6]}, and yours "
               "is None: return it")
        result = list(map(tuple, result))
        pairs = enumerate(zip(result, expected, strict=False))
        k = next((k for k, (one, other) in pairs if one != other), min(len(result), len(expected)))
        message = (f"for {inputs} the places from number {k} on are {expected[k:k + 4]}, and yours "
                f"are {result[k:k + 4]}\n")
        expect(all(i < n and j < m for i, j in result), message + "that is outside the array")
        expect(not set(expected) - set(result),
               message + "some places are missing: think of the ends")
        expect(result == expected, message + "which of the four loops is inside of which?")


_TILES = """
def tile_order(n, m, side):
    return [(i, j) for t in range(0, n, side) for u in range(0, m, side)
            for i in range(t, {}) for j in range(u, {})]
"""

exercise("tile_order", chapter=CHAPTER, grade=grade_tile_order,
         solution=_TILES.format("min(t + side, n)", "min(u + side, m)"),
         wrong=[(_TILES.format("t + side", "u + side"), "outside"),
                (_TILES.format("min(t + side, n)", "min(u + side, m)").replace(
                    "0, n, side", "0, n - side + 1, side"), "missing"),
                ("def tile_order(n, m, side):\n    return [(i, j) for i in range(n) "
                 "for j in range(m)]", "four loops"),
                ("def tile_order(n, m, side):\n    return [(i, j) for t in range(0, n, side) "
                 "for i in range(t, min(t + side, n)) for u in range(0, m, side) "
                 "for j in range(u, min(u + side, m))]", "four loops"),
                ("def tile_order(n, m, side):\n    return [(i, j) for u in range(0, m, side) "
                 "for t in range(0, n, side) for i in range(t, min(t + side, n)) "
                 "for j in range(u, min(u + side, m))]", "four loops")])


# -- short_way -------------------------------------------------------------------------------------

_CALLS = {
    "a": ("f(a, a)", True, "arrays without gaps, and no transformation is active"),
    "b": ("f(a, 2.0)", False, "a Python number is not an array"),
    "c": ("f(a, a.T)", False, "the elements of `a.T` do not lie in the order of its indices"),
    "d": ("f(a[1], a[2])", True, "a row has no gaps"),
    "e": ("f(a[:, 1], a[:, 2])", False, "the elements of a column lie apart"),
    "f": ("mini.vmap(f)(a, a)", False, "a transformation is active: f meets tracers"),
    "g": ("f(a.astype(np.float32), a)", True, "another dtype has an entry of its own"),
    "h": ("f(np.float64(3.0), a)", False, "it has a shape and a dtype, but its type is not "
          "`np.ndarray`")}


def grade_short_way(answer: Any) -> None:
    chosen(answer, _CALLS, "takes the short way", "takes the long way")


exercise("short_way", chapter=CHAPTER, grade=grade_short_way, solution='"adg"',
         wrong=[('"ad"', "an entry of its own"), ('"acdg"', "in the order"),
                ('"adeg"', "lie apart"), ('"adgh"', "is not"), ('"adfg"', "tracers"),
                ('"abdg"', "not an array"), ("1", "a string of letters")])


# -- compiled_once ---------------------------------------------------------------------------------

def grade_compiled_once(compiled_once: Callable) -> None:
    mini = _library()

    class Given:
        """A text like that of `Text`: two equal texts are two objects."""

        def __init__(self, text: str, functions: dict | None = None) -> None:
            self.text, self.functions = text, functions or {}

    real, made, codes = mini.compiled, [], []

    def compiled(text: Any, threads: bool = False) -> Any:
        made.append((text.text, threads))
        codes.append(object())
        return codes[-1]

    def called(what: str, expected: int, hint: str, *calls: tuple) -> list:
        made.clear()
        codes.clear()
        with wanting(what, f"{expected} compilations", (
                AttributeError, "the words are in `text.text`"), (TypeError, "what is the key?"),
                what="what is expected"):
            result = [compiled_once(*call) for call in calls]
        expect(len(made) == expected,
               f"for {what} {expected} are compiled, and by yours {len(made)}\n{hint}")
        return result

    mini.compiled = compiled
    try:
        one, two, again = (Given(word) for word in ("one", "two", "one"))
        result = called("a text and an equal one", 1, "two texts with the same words are two "
        "objects; what is equal?", (one,), (again,))
        expect(result[0] is result[1] is codes[0], "for a text and an equal one the code that "
               f"`compiled` gave is expected, twice, and yours are {result}: return what was kept")
        called("another text", 1, "it has other words", (two,))
        called("a text, with threads and without", 1, "`threads` makes other code of the same "
               "text, and that without was compiled before", (one, True), (one, False))
        expect(made == [("one", True)], "for a text, with threads, `compiled` is called without "
               "them by yours: hand `threads` on")
        called("a text, with threads and without, again,", 0, "both were compiled before",
               (one, True), (one, False))
        with_functions = [Given("three", {"f0": k}) for k in range(2)]
        result = called("two equal texts with functions", 2, "the text says `f0`; which function "
                        "that is, it does not say", *((each, True) for each in with_functions))
        expect(result == codes and made == [("three", True)] * 2, "for two equal texts with "
               "functions, with threads, `compiled` is called with threads and gives "
               f"{codes}, and yours are {result}, by calls with {made}: return what it gives, and "
               "hand `threads` on there, too")
    finally:
        mini.compiled = real


_ONCE = """
CODE = {{}}


def compiled_once(text, threads=False):
    {first}
    key = {key}
    if key not in CODE:
        CODE[key] = compiled(text, threads)
    return CODE[key]
"""


def _once(first: str = "if text.functions:\n        return compiled(text, threads)",
          key: str = "text.text, threads") -> str:
    return "\n".join(line for line in _ONCE.format(first=first, key=key).splitlines()
                     if line.strip() != "pass")


exercise(
    "compiled_once", chapter=CHAPTER, grade=grade_compiled_once, given="%mini begin 26",
    solution=_once(),
    wrong=[(_once(first="pass"), "which function that is"),
           (_once(key="text.text"), "other code of the same text"),
           (_once(key="text, threads"), "two objects"),
           ("def compiled_once(text, threads=False):\n    return compiled(text, threads)",
            "two objects"),
           (_once(key="[text.text, threads]"), "what is the key"),
           (_once(first="CODE.clear() if len(CODE) > 1 else None"), "compiled before"),
           (_once(first="if text.functions or threads:\n        return compiled(text, threads)"),
            "both were compiled before"),
           (_once().replace("compiled(text, threads)", "compiled(text)"), "hand `threads` on"),
           (_once(first="if text.functions:\n        return compiled(text)"), "there, too"),
           (_once().replace("return CODE[key]", "return CODE"), "what was kept")])


# -- in_key ----------------------------------------------------------------------------------------

_PARTS = {
    "a": ("the operations of the program", True, "another program has other code"),
    "b": ("the shapes and dtypes of its arguments", True, "loops have their ranges written in "
    "them"),
    "c": ("the numbers in its arguments", False, "the same code runs for all numbers"),
    "d": ("a number that was written in the program", True, "it stands in the code"),
    "e": ("how many threads share its loops", False, "the blocks do not depend on it, and so the "
          "code does not"),
    "f": ("for which processor it was made", True, "another one may not know its instructions"),
    "g": ("the name of the user's function", False, "what is computed does not depend on it"),
    "h": ("the version of the compiler", True, "the next one may make other code, or mend a "
          "mistake")}


def grade_in_key(answer: Any) -> None:
    chosen(answer, _PARTS, "belongs in the key", "does not belong in the key")


exercise("in_key", chapter=CHAPTER, grade=grade_in_key, solution='"abdfh"',
         wrong=[('"abdefh"', "blocks do not depend"), ('"abfh"', "stands in the code"),
                ('"abcdfh"', "for all numbers"), ('"abdh"', "its instructions"),
                ('"abdf"', "mend a mistake"), ('"adfh"', "ranges"), ("5", "a string of letters")])
