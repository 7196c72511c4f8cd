"""The exercises of chapter 23, *An array is a function of an index*."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.notebook.checks import agree, exercise, expect, instead_of, shown, wanting

CHAPTER = "23_an_array_is_a_function_of_an_index"


def _library() -> Any:
    from minijax.notebook.library import library
    return library.module


# -- rolled ----------------------------------------------------------------------------------------

def grade_rolled(rolled: Callable) -> None:
    for n, by in itertools.product((1, 2, 5), (0, 1, 2, -1, -3, 7, 10**6 + 1, -10**6)):
        y = np.roll(np.arange(n), by)
        for i in range(n):
            inputs = f"i = {i}, n = {n}, by = {by}"
            with instead_of(ZeroDivisionError, "", f"for {inputs} you divide by zero"):
                result = rolled(i, n, by)
            expected = int(y[i])
            agree(inputs, result, expected,
                  (isinstance(result, int) and result % n == expected,
                   "right, but for a multiple of n: an index lies from 0 to n - 1"),
                  (all(rolled(k, n, by) == (k + by) % n for k in range(n)), "that is where x[i] "
                   "goes to; where does y[i] come from?"),
                  "y[by] is x[0]: go back by as many places", what="the place in x", tolerance=0)


_ROLLED = "def rolled(i, n, by):\n    return {}"

exercise("rolled", chapter=CHAPTER, grade=grade_rolled, solution=_ROLLED.format("(i - by) % n"),
         wrong=[(_ROLLED.format("(i + by) % n"), "where does y[i] come from"),
                (_ROLLED.format("abs(i - by) % n"), "go back by"),
                (_ROLLED.format("i - by"), "a multiple of n"),
                (_ROLLED.format("max(i - by, 0)"), "the place in x is"),
                (_ROLLED.format("i % by"), "divide by zero")])


# -- how_far ---------------------------------------------------------------------------------------

def grade_how_far(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 4,
           f"four numbers are expected, for a, b, c and d, and yours is {answer!r}")
    message = f"yours is {list(answer)}\n"
    a, b, c, d = answer
    expect(a == 0, message + "a: which of its words is known only in a loop?")
    expect(b == 1, message + "b: it mentions i, and nothing further in")
    expect(c != 2, message + "c: what asks for it does not matter; what does it mention?")
    expect(c == 1, message + "c: a is known outside; and b?")
    expect(d == 2, message + "d: j has no value yet outside its loop")


exercise("how_far", chapter=CHAPTER, grade=grade_how_far, solution="[0, 1, 1, 2]",
         wrong=[("[2, 2, 2, 2]", "only in a loop"), ("[0, 1, 2, 2]", "does not matter"),
                ("[0, 1, 0, 2]", "and b?"), ("[0, 1, 1, 1]", "has no value yet"),
                ("[0, 2, 1, 2]", "nothing further in"), ("0", "four numbers")])


# -- exponentials_called ---------------------------------------------------------------------------

def grade_exponentials_called(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 2,
           f"two numbers are expected, and yours is {answer!r}")
    first, second = answer
    message = f"yours is {list(answer)}\n"
    expect(first != 1_000_000, message + "the first: one of the two stands in the outer loop")
    expect(first not in (1500, 1000), message + "the first: how often is the inner loop run?")
    expect(first != 500_000, message + "the first: and those of the outer loop?")
    expect(first == 501_000, message + "the first: 1000 rounds outside, and in each 500 inside")
    expect(second != 501_000, message + "the second: now it is the other one that moves out")
    expect(second == 500_500, message + "the second: 500 rounds outside, and in each 1000 inside")


exercise("exponentials_called", chapter=CHAPTER, grade=grade_exponentials_called,
         solution="[501_000, 500_500]",
         wrong=[("[1_000_000, 1_000_000]", "in the outer loop"), ("[1500, 1500]", "is the inner"),
                ("[501_000, 501_000]", "the other one"), ("[500_000, 500_000]", "of the outer"),
                ("501_000", "two numbers")])


# -- arrays_of_three -------------------------------------------------------------------------------

def grade_arrays_of_three(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 3,
           f"three numbers are expected, for f, g and h, and yours is {answer!r}")
    f, g, h = answer
    message = f"yours is {list(answer)}\n"
    expect(f != 2, message + "f: `a` is read more than once, but in one loop, where it has a name")
    expect(f == 1, message + "f: the result is an array, whatever else is")
    expect(g != 1, message + "g: there are two loops, and one must end before the other begins; "
           "what is asked for in both?")
    expect(g == 2, message + "g: an exponential costs 10, a store and two loads, 5")
    expect(h != 2, message + "h: here, too, two loops ask for `a`; but what does it cost?")
    expect(h == 1, message + "h: to double a number is cheaper than to store it")


exercise("arrays_of_three", chapter=CHAPTER, grade=grade_arrays_of_three, solution="[1, 2, 1]",
         wrong=[("[2, 2, 1]", "it has a name"), ("[1, 1, 1]", "asked for in both"),
                ("[1, 2, 2]", "what does it cost"), ("[0, 2, 1]", "the result is an array"),
                ("1", "three numbers")])


# -- flip_p ----------------------------------------------------------------------------------------

def grade_flip_p(flip: Any) -> None:
    mini = _library()
    expect(isinstance(flip, mini.Primitive), "`flip_p` is what `linear` gives, a primitive")
    x, y = np.array([1.0, -2.0, 5.0]), np.arange(6.0).reshape(2, 3) - 3.0
    for a, axis in ((x, 0), (y, 0), (y, 1)):
        inputs = f"flip_p({shown(a)}, along={axis})"
        agree(inputs, flip(a, along=axis), np.flip(a, axis), "`np.flip(x, along)` does it",
              what="the result")
        with wanting(f"the gradient of sum({inputs} * w)", "w, flipped"):
            w = np.arange(a.size).reshape(a.shape) - 1.5
            result = mini.grad(lambda a, axis=axis, w=w: mini.sum(flip(a, along=axis) * w))(a)
        agree(f"w = {shown(w)} and f(x) = sum(flip_p(x, along={axis}) * w)", result,
              np.flip(w, axis), "what went to the other end comes from there", what="the gradient")
    for a, axis in ((y, 0), (np.arange(24.0).reshape(2, 3, 4), 0),
                    (np.arange(24.0).reshape(2, 3, 4), 1)):
        inputs = f"mini.vmap of flip_p with along={axis}, on {shown(a)}"
        with wanting(inputs, np.flip(a, axis + 1), (ValueError, "is the axis still there?")):
            result = mini.vmap(lambda a, axis=axis: flip(a, along=axis))(a)
        agree(inputs, result, np.flip(a, axis + 1),
              "with the examples in front, each axis has moved by one", what="the result")
    expect("flip" in mini.SOURCE, 'now the line for the compiler: `SOURCE["flip"] = …`')
    for a, axis in ((x, 0), (y, 0), (y, 1)):
        inputs = f"flip_p({shown(a)}, along={axis})"
        program = mini.make_jaxpr(lambda a, axis=axis: flip(a, along=axis))(a)
        names: dict[str, Any] = {"np": np}
        exec(mini.Text(program, {}).text, names)
        with wanting(inputs, np.flip(a, axis), (IndexError, "the last place is n - 1, and not n"),
                     (NameError, "an index that is computed is a tuple, as that of `window`"),
                     what="the result of its text"):
            [result] = names["program"](a)
        agree(inputs, result, np.flip(a, axis), "which element of the operand is element i?",
              what="the result of its text")
    program = mini.make_jaxpr(lambda x: flip(mini.window(x, (1,), (3,)), along=0))(np.arange(5.0))
    names = {"np": np}
    exec(mini.Text(program, {}).text, names)
    [result] = names["program"](np.arange(5.0))
    agree("flip_p(mini.window(x, (1,), (3,)), along=0) and x = [0, 1, 2, 3, 4]", result, [3, 2, 1],
          "a place is a number from 0 on, from which others are computed", what="the result of its "
          "text")


_FLIP = """
flip_p = linear("flip", lambda x, along: {impl}, lambda n, along: {{"along": {moved}}},
                lambda ct, before, along: {back})
SOURCE["{name}"] = lambda at, before, along: [
    {index} if k == along else i for k, i in enumerate(at)]
"""


def _flip_text(impl: str = "np.flip(x, along)", moved: str = "along + 1",
               back: str = "flip_p(ct, along=along)", name: str = "flip",
               index: str = '("{} - {}", before[k] - 1, i)') -> str:
    return _FLIP.format(impl=impl, moved=moved, back=back, name=name, index=index)


exercise(
    "flip_p", chapter=CHAPTER, grade=grade_flip_p, given="%mini begin 23", solution=_flip_text(),
    wrong=[(_flip_text(impl="x[::-1]"), "does it"), (_flip_text(moved="along"), "moved by one"),
           (_flip_text(moved="1"), "moved by one"), (_flip_text(moved="-1"), "moved by one"),
           (_flip_text(back="ct"), "comes from there"),
           (_flip_text(index='("{} - {}", before[k], i)'), "the last place"),
           (_flip_text(index='f"{before[k] - 1} - {i}"'), "is a tuple"),
           (_flip_text(index="i"), "which element"),
           (_flip_text(index='("-1 - {}", i)'), "a number from 0 on"),
           (_flip_text(name="flipped"), "for the compiler")],
    hints=["`window_p` and its line are the nearest model"])


# -- reshaped --------------------------------------------------------------------------------------

def grade_reshaped(reshaped: Callable) -> None:
    pairs = [((6,), (2, 3)), ((2, 3), (6,)), ((2, 3), (3, 2)), ((4,), (4,)), ((2, 2, 3), (4, 3)),
             ((2, 6), (3, 1, 4)), ((1,), ()), ((), (1, 1))]
    for before, after in pairs:
        places = np.arange(np.prod(before, dtype=int)).reshape(before)
        for at in np.ndindex(after):
            expected = tuple(map(int, np.unravel_index(int(places.reshape(after)[at]), before)))
            inputs = f"at = {at}, before = {before}, after = {after}"
            with wanting(inputs, expected, (ZeroDivisionError, "of no axes the product is 1")):
                result = reshaped(at, before, after)
            expect(isinstance(result, tuple | list) and len(result) == len(before), f"for {inputs} "
                   f"the place is {expected}, a tuple of {len(before)}, and yours is {result!r}")
            columns = np.unravel_index(np.ravel_multi_index(at, after, order="F"), before,
                                       order="F") if after and before else expected
            agree(inputs, result, expected,
                  (tuple(result) == tuple(map(int, columns)) != expected,
                   "in that order the *first* index runs fastest; in memory it is the last"),
                  "count which element it is, in the order of memory; then find that one",
                  what="the place", tolerance=0)


_RESHAPED = """
def reshaped(at, before, after):
    flat = 0
    for i, n in {pairs}:
        flat = flat * n + i
    place = []
    for n in {axes}:
        place.append(flat % n)
        flat //= n
    return tuple({result})
"""


def _reshaped_text(pairs: str = "zip(at, after)", axes: str = "reversed(before)",
                   result: str = "reversed(place)") -> str:
    return _RESHAPED.format(pairs=pairs, axes=axes, result=result)


exercise(
    "reshaped", chapter=CHAPTER, grade=grade_reshaped, solution=_reshaped_text(),
    wrong=[("def reshaped(at, before, after):\n    return at", "the place is"),
           (_reshaped_text(result="place"), "the place is"),
           (_reshaped_text(pairs="zip(at, before)"), "the place is"),
           ("def reshaped(at, before, after):\n    return tuple(int(i) for i in np.unravel_index("
            "np.ravel_multi_index(at, after, order='F'), before, order='F')) if at else (0,)",
            "runs fastest"),
           ("def reshaped(at, before, after):\n    flat = 0\n    for i, n in zip(at, after):\n"
            "        flat = flat * n + i\n    return flat", "a tuple of")],
    hints=["the element [i, j] of a matrix with m columns is number i * m + j"])


# -- joined ----------------------------------------------------------------------------------------

def grade_joined(joined: Callable) -> None:
    for n, m in itertools.product((1, 2, 4), (1, 3)):
        for i in range(n + m):
            inputs = f"i = {i}, n = {n}, m = {m}"
            result = joined(i, n, m)
            expect(isinstance(result, tuple | list) and len(result) == 3, f"for {inputs} a triple "
                   f"is expected, and yours is {result!r}")
            first, second, which = result
            expect(isinstance(which, bool | np.bool_) and which == (i < n), f"for {inputs} the "
                   f"third is {i < n}, and yours is {which!r}: whether y[i] is in x")
            expect(0 <= first < n, f"for {inputs} you ask x for element {first}, and it has 0 to "
                   f"{n - 1}: an element that is not needed must exist, too")
            expect(0 <= second < m, f"for {inputs} you ask z for element {second}, and it has 0 to "
                   f"{m - 1}: an element that is not needed must exist, too")
            agree(inputs, first if which else second, i if which else i - n,
                  "z begins where x ends",
                  what=f"the place in {'x' if which else 'z'}", tolerance=0)


_JOINED = "def joined(i, n, m):\n    return {}, {}, {}"

exercise(
    "joined", chapter=CHAPTER, grade=grade_joined,
    solution=_JOINED.format("min(i, n - 1)", "max(i - n, 0)", "i < n"),
    wrong=[(_JOINED.format("i", "i - n", "i < n"), "must exist"),
           (_JOINED.format("min(i, n)", "max(i - n, 0)", "i < n"), "you ask x for"),
           (_JOINED.format("min(i, n - 1)", "min(i, m - 1)", "i < n"), "where x ends"),
           (_JOINED.format("min(i, n - 1)", "max(i - n, 0)", "i <= n"), "the third"),
           ("def joined(i, n, m):\n    return i if i < n else i - n", "a triple")],
    hints=["`min` and `max` keep a place within its array"])


# -- fused_cost ------------------------------------------------------------------------------------

def grade_fused_cost(fused_cost: Callable) -> None:
    for count, places, cost in itertools.product((1, 2, 3, 6), (1, 2, 3), (0.5, 4.0)):
        expected = 1.0
        for _ in range(count):
            expected = cost + places * expected
        inputs = f"count = {count}, places = {places}, cost = {cost}"
        agree(inputs, fused_cost(count, places, cost), expected,
              (count == 1, "one step costs its own cost, and a load for each place"),
              (places > 1, "each of the places needs the whole step before"),
              "begin from a load, which costs 1, and put one step on it after the other")


_FUSED_COST = """
def fused_cost(count, places, cost):
    total = {start}
    for _ in range(count):
        total = {step}
    return total
"""


def _fused_cost_text(start: str = "1.0", step: str = "cost + places * total") -> str:
    return _FUSED_COST.format(start=start, step=step)


exercise(
    "fused_cost", chapter=CHAPTER, grade=grade_fused_cost, solution=_fused_cost_text(),
    wrong=[(_fused_cost_text(start="0.0"), "a load for each place"),
           (_fused_cost_text(step="cost + total"), "a load for each place"),
           (_fused_cost_text(step="places * (cost + total)"), "its own cost"),
           ("def fused_cost(count, places, cost):\n    return count * (cost + places)",
            "the answer is")])
