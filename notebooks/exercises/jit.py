"""The exercises of chapter 08, *jit*."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.core import Tracer
from minijax.notebook.checks import Hint, agree, exercise, expect, instead_of, near, shown

CHAPTER = "08_jit"


def grade_lines(answer: Any) -> None:
    expect(isinstance(answer, int), "a whole number")
    expect(answer != 5, "the second call finds the program that the first has left")
    expect(answer != 2, "the last call is with an integer: is that the type of 1.0?")
    expect(answer == 3, "count the different types among the arguments")


exercise("lines", chapter=CHAPTER, grade=grade_lines, solution="3",
         wrong=[("5", "the first has left"), ("2", "with an integer"), ("4", "different types"),
                ('"3"', "a whole number")])


def grade_writings(writings: Callable) -> None:
    one, three, four = jnp.float32(1.0), jnp.zeros(3), jnp.ones(4)
    cases: list[list[tuple[Any, ...]]] = [
        [(1.0,), (2.0,), (3.0,)], [(1.0,), (2,), (one,)], [(three,), (four,), (three,)],
        [(1.0,), (2.0,), (three,), (3,), (jnp.ones(3),), (four,)],
        [(1.0, 2.0), (2.0, 1.0), (2.0, three), (three, 2.0)]]
    for calls in cases:
        inputs = ", ".join("f(" + ", ".join(map(_told, args)) + ")" for args in calls)
        traced: list[tuple[Any, ...]] = []

        def total(*args: Any, traced: list = traced) -> Any:
            traced.append(args)
            return sum(args)

        result = writings(total, *calls)
        expected = len({tuple(map(jax.typeof, args)) for args in calls})
        expect(isinstance(result, int), f"for {inputs} the number of programs is {expected}, and "
               f"yours is {result!r}: a whole number is expected")
        agree(inputs, result, expected,
              (result == len(calls), "that is the number of calls; how often does the body run?"),
              (result == len({tuple(map(np.shape, args)) for args in calls}), "that is the number "
               "of different shapes; a type is more than a shape"),
              "what is added must happen once for each program", what="the number of programs",
              tolerance=0)
        expect(len(traced) == expected, f"for {inputs} the number is right, but `f` ran "
               f"{len(traced)} times, and `jax.jit(f)` runs it once for each program: let `jit` "
               "count")


def _told(x: Any) -> str:
    """An argument as it is written in a call."""
    return repr(x) if isinstance(x, int | float) else f"{x.dtype}{list(x.shape)}"


_WRITINGS = """
def writings(f, *calls):
    seen = []
    def told(*args):
        seen.append({what})
        return f(*args)
    fast = {fast}
    for args in calls:
        fast(*args)
    return {result}
"""


def _writings_text(what: str = "1", fast: str = "jax.jit(told)", result: str = "len(seen)") -> str:
    return _WRITINGS.format(what=what, fast=fast, result=result)


exercise(
    "writings", chapter=CHAPTER, grade=grade_writings, solution=_writings_text(),
    wrong=[(_writings_text(fast="told"), "the number of calls"),
           (_writings_text(result="seen"), "a whole number"),
           (_writings_text("jnp.shape(args[0])", result="len(set(seen))"), "different shapes"),
           (_writings_text(result="len(seen) + 1"), "once for each program"),
           ("def writings(f, *calls):\n"
            "    return len({tuple(map(jax.typeof, args)) for args in calls})", "let `jit` count")])


def grade_source(source: Callable) -> None:
    x = np.arange(12).reshape(4, 3)
    y = x.T[::-1]
    for i, j in np.ndindex(y.shape):
        result = source(i, j)
        expect(isinstance(result, tuple | list) and len(result) == 2, f"for y[{i}, {j}] "
               f"a pair of indices is expected, and yours is {result}")
        result = [k + n if -n <= k < 0 else k for k, n in zip(result, x.shape, strict=True)]
        expect(0 <= result[0] < 4 and 0 <= result[1] < 3,
               f"for y[{i}, {j}] you give x[{result[0]}, {result[1]}], and x has 4 rows of 3")
        expect(x[tuple(result)] == y[i, j], f"if x counts from 0 to 11, y[{i}, {j}] is "
               f"{y[i, j]}, and your x[{result[0]}, {result[1]}] is {x[tuple(result)]}")


exercise(
    "source", chapter=CHAPTER, grade=grade_source,
    solution="def source(i, j):\n    return j, 2 - i",
    wrong=[("def source(i, j):\n    return j, i", "y[0, 0] is"),
           ("def source(i, j):\n    return i, j", "y[0, 0] is"),
           ("def source(i, j):\n    return j, 3 - i", "rows of 3"),
           ("def source(i, j):\n    return 4 * i + j", "a pair")],
    right=["def source(i, j):\n    return [j, 2 - i]", "def source(i, j):\n    return j, ~i"],
    hints=["first undo the reversal, then the transposition"])


def grade_arrays_made(answer: Any) -> None:
    expect(isinstance(answer, int), "a whole number")
    expect(answer != 1, "`a` is read twice; would you compute a sine twice?")
    expect(answer != 4, "what reads `b`, and how often?")
    expect(answer == 2, "what is read twice is stored, and so is what is returned")


exercise("arrays_made", chapter=CHAPTER, grade=grade_arrays_made, solution="2",
         wrong=[("1", "read twice"), ("4", "how often"), ("3", "so is what is returned"),
                ('"2"', "a whole number")])


def grade_sqrt(sqrt: Any) -> None:
    from minijax.notebook.library import library
    mini = library.module
    expect(callable(sqrt), "`mini.sqrt` is a function")
    for x in (np.array([1.0, 4.0, 9.0]), np.random.default_rng(0).uniform(0.5, 20, 4).round(1)):
        inputs = f"x = {shown(x)}"
        agree(inputs, sqrt(x), np.sqrt(x), what="the root")
        with instead_of(TypeError, "positional argument", "a slope is given three things: the "
                        "tangent t, the result y, and the argument x"):
            result = mini.grad(lambda x: mini.sum(sqrt(x)))(x)
        agree(inputs, result, 0.5 / np.sqrt(x),
              "the slope may use the result y, the argument x, and the tangent t",
              what="the gradient of the sum")
        names = [eqn.primitive.name for eqn in mini.make_jaxpr(sqrt)(x).eqns]
        expect(len(names) == 1, f"`elementwise` makes one operation, and yours are {names}")
        expect(names[0] in mini.TEXT, f'now the text: `TEXT["{names[0]}"] = "…"`, under the name '
               "of the operation")
        with instead_of(Exception, "nopython", "Numba cannot compile the text; it knows `math` "
                        "and `np`, so look how the others in `TEXT` name their functions"):
            result = mini.jit(sqrt)(x)
        agree(inputs, result, np.sqrt(x), "NumPy's root is right, and the text says something else",
              what="the compiled root")
        agree(f"sqrt(-x) and x = {shown(-x)}", mini.jit(lambda x: sqrt(-x))(-x), np.sqrt(x), "in a "
              "larger text `-x ** 0.5` is -(x ** 0.5): an operand may need parentheses",
              what="the compiled root")
    agree("x = 4, moving at 3", mini.jvp(sqrt, (4.0,), (3.0,))[1], 0.75, what="the tangent")
    agree("x = -4", mini.jit(sqrt)(np.array([-4.0])), [np.nan], "a negative number has no root",
          what="the compiled root")
    with instead_of(TypeError, "ufunc", "the slope may be differentiated again, and then its "
                    "arguments are tracers, which NumPy does not take: use y, or operations of "
                    "`mini`"):
        agree("x = 4", mini.grad(mini.grad(sqrt))(4.0), -1 / 32, what="the second derivative")


_SQRT = 'sqrt = elementwise("sqrt", {impl}, lambda t, y, x: {slope})\n{text}'


def _sqrt_text(impl: str = "np.sqrt", slope: str = "t / (2.0 * y)",
               text: str = 'TEXT["sqrt"] = "math.sqrt({0})"') -> str:
    return _SQRT.format(impl=impl, slope=slope, text=text)


exercise(
    "sqrt", chapter=CHAPTER, grade=grade_sqrt, given="%mini begin 08", solution=_sqrt_text(),
    wrong=[("sqrt = elementwise(\"sqrt\", np.sqrt, lambda t, y, x: t / (2.0 * y))\n"
            "TEXT[\"sqrt\"] = \"math.sqrt(abs({0}))\"", "has no root"),
           (_sqrt_text(slope="t / (2.0 * x)"), "the gradient of the sum"),
           ('sqrt = elementwise("sqrt", np.sqrt, lambda t, x: t / (2.0 * sqrt(x)))',
            "three things"),
           (_sqrt_text("np.square"), "the root is [1, 2, 3]"),
           ("def sqrt(x):\n    return exp(log(x) / 2.0)", "makes one operation"),
           (_sqrt_text(slope="t / (2.0 * np.sqrt(x))"), "which NumPy does not take"),
           (_sqrt_text(text='TEXT["sqrt"] = "{0} ** 0.5"'), "need parentheses"),
           (_sqrt_text(text='TEXT["sqrt"] = "sqrt({0})"'), "Numba cannot compile"),
           (_sqrt_text(text='TEXT.pop("sqrt", None)'), "now the text"),
           (_sqrt_text().replace('elementwise("sqrt"', 'elementwise("root"'), "under the name"),
           (_sqrt_text(text='TEXT["sqrt"] = "math.exp({0})"'), "says something else")],
    right=[_sqrt_text().replace('"sqrt"', '"root"')])


class _Elements(np.ndarray):
    """An array that refuses operations on more than one element."""

    def __array_ufunc__(self, ufunc: np.ufunc, *_: Any, **__: Any) -> Any:
        raise Hint(f"`np.{ufunc.__name__}` is given a whole array: take x[i] and y[i] in a loop "
                   "over i")


def grade_fused(fused: Callable) -> None:
    for n in (4, 1, 6, 0):
        x, y = np.random.default_rng(n).uniform(-5, 5, (2, n)).round(1).view(_Elements)
        before = np.array(x), np.array(y)
        expected = np.maximum(before[0], 0) * before[1] - before[0]
        inputs = f"x = {shown(before[0])}, y = {shown(before[1])}"
        result = fused(x, y)
        expect(isinstance(result, np.ndarray),
               f"for {inputs} a new array is expected, and yours gives {result!r}: return it")
        expect(near(x, before[0]) and near(y, before[1]) and result is not x and result is not y,
               f"for {inputs} the arguments are x = {shown(np.array(x))}, y = {shown(np.array(y))} "
               "after the call: write into a new array")
        agree(inputs, np.array(result), expected,
              (near(np.array(result), before[0] * before[1] - before[0]), "where is the maximum?"),
              "for each i, all three operations")


_FUSED = """
def fused(x, y):
    out = {out}
    for i in range(len(x)):
        out[i] = {element}
    return {result}
"""


def _fused_text(out: str = "np.empty_like(x)", element: str = "max(x[i], 0.0) * y[i] - x[i]",
                result: str = "out") -> str:
    return _FUSED.format(out=out, element=element, result=result)


exercise(
    "fused", chapter=CHAPTER, grade=grade_fused, solution=_fused_text(),
    wrong=[(_fused_text(out="x"), "write into a new array"),
           (_fused_text(element="max(x[i], 0.0) * y[i]"), "all three operations"),
           (_fused_text(element="x[i] * y[i] - x[i]"), "where is the maximum"),
           ("def fused(x, y):\n    return np.maximum(x, 0) * y - x", "is given a whole array"),
           (_fused_text(result="None"), "return it")])


def grade_tangent_places(answer: Any) -> None:
    expect(isinstance(answer, tuple | list) and len(answer) == 2,
           "a pair is expected: how many inputs, and how many outputs")
    inputs, outputs = answer
    expect(inputs != 2, "the tangents come in besides; the slope of a product needs its factors")
    expect(inputs != 6, "n is an integer, and has no tangent")
    expect(inputs == 5, "all inputs, and then a tangent for each that can move")
    expect(outputs not in (2, 3), "the second result is an integer, and the program gives tangents "
           "only: the results themselves come from the other call")
    expect(outputs == 1, "which of the two results can move?")


exercise("tangent_places", chapter=CHAPTER, grade=grade_tangent_places, solution="(5, 1)",
         wrong=[("(6, 2)", "has no tangent"), ("(5, 2)", "from the other call"),
                ("(2, 1)", "needs its factors"), ("(3, 1)", "for each that can move"),
                ("5", "a pair")])


VALUES: dict[str, Any] = {
    "1.0": 1.0, "2.5": 2.5, "3": 3, "True": True, "jnp.float32(1)": jnp.float32(1),
    "np.float32(2)": np.float32(2), "np.float64(2)": np.float64(2), "np.True_": np.bool_(True),
    "jnp.int8(3)": jnp.int8(3), "jnp.int32(3)": jnp.int32(3), "jnp.array(7.0)": jnp.array(7.0),
    "jnp.zeros(3)": jnp.zeros(3), "np.ones(3)": np.ones(3),
    "np.ones(3, np.float32)": np.ones(3, np.float32), "jnp.zeros((3, 1))": jnp.zeros((3, 1)),
    "jnp.arange(3)": jnp.arange(3), "jnp.zeros(5)": jnp.zeros(5)}


def grade_same_program(same_program: Callable) -> None:
    for (first, x), (second, y) in itertools.product(VALUES.items(), repeat=2):
        expected = jax.typeof(x) == jax.typeof(y)
        with instead_of(AttributeError, "no attribute", f"for {first} and {second} the answer is "
                        f"{expected}, and yours asks a plain number for what only arrays have; "
                        "`jax.typeof` takes numbers, too"):
            result = same_program(x, y)
        expect(np.ndim(result) == 0, f"for {first} and {second} one boolean is expected, and "
               f"yours is {result!r}")
        hint = ""
        if type(x) is not type(y) and expected:
            hint = ": a number and an array, NumPy's or ours, are alike to jit if their types are"
        elif np.shape(x) == np.shape(y) and jnp.result_type(x) == jnp.result_type(y):
            hint = (": weak or not is a part of the type; a number of NumPy's is not weak, though "
                    "NumPy's `float64` is a `float` to Python" if not expected and
                    {type(x), type(y)} & {np.float64} else
                    ": weak or not is a part of the type" if not expected else
                    ": the numbers do not matter, only their type does")
        elif not expected:
            hint = ": shape and dtype are parts of the type"
        expect(bool(result) == expected, f"for {first} and {second} the answer is {expected}, and "
               f"yours is {bool(result)}{hint}")


_SAME = "def same_program(x, y):\n    return {}"

exercise(
    "same_program", chapter=CHAPTER, grade=grade_same_program,
    solution=_SAME.format("jax.typeof(x) == jax.typeof(y)"),
    wrong=[(_SAME.format("type(x) == type(y)"), "their types are"),
           (_SAME.format("jnp.shape(x) == jnp.shape(y)"), "parts of the type"),
           (_SAME.format("(jnp.shape(x), jnp.result_type(x)) == (jnp.shape(y), "
                         "jnp.result_type(y))"), "weak or not"),
           (_SAME.format("x.dtype == y.dtype"), "a plain number"),
           (_SAME.format("(jnp.ndim(x), jnp.asarray(x).dtype, jnp.asarray(x).weak_type) == "
                         "(jnp.ndim(y), jnp.asarray(y).dtype, jnp.asarray(y).weak_type)"),
            "parts of the type"),
           (_SAME.format("jnp.array_equal(x, y)"), "the numbers do not matter"),
           (_SAME.format("all((a.shape, a.dtype.kind, a.weak_type) == (b.shape, b.dtype.kind, "
                         "b.weak_type) for a, b in [(jnp.asarray(x), jnp.asarray(y))])"),
            "parts of the type"),
           (_SAME.format("all(np.shape(x) == np.shape(y) and jnp.asarray(x).dtype == "
                         "jnp.asarray(y).dtype and isinstance(x, float) == isinstance(y, float) "
                         "for _ in [0])"), "NumPy's `float64` is a `float` to Python"),
           (_SAME.format("jax.typeof(x) == jax.typeof(y) and type(x) == type(y)"),
            "their types are")],
    hints=["`jax.typeof` gives the type of a value as jit sees it"])


_SERIES = """
def series(x, n):
    total, term = 0.0, 1.0
    for k in range(n):
        total, term = total + term, term * x
    return total
"""


def _grade_wrapped_series(quick_series: Any) -> None:
    """A function around what `jax.jit` makes: it may keep one for each n."""
    runs: list[tuple] = []
    names = getattr(quick_series, "__globals__", {})
    real = names.get("series")

    def watched(x: Any, n: int) -> Any:
        runs.append((x, n))
        return real(x, n)  # type: ignore[misc]

    names["series"] = watched
    try:
        for x, n in ((0.5, 6), (-2.0, 6), (1.25, 7), (0.5, 7)):
            agree(f"x = {x} and n = {n}", quick_series(x, n), sum(x**k for k in range(n)))
    finally:
        names["series"] = real
    traced = [n for x, n in runs if isinstance(x, Tracer)]
    expect(traced, "what `jax.jit` makes of `series` is expected, and yours is a "
           f"{type(quick_series).__name__}, which compiles nothing")
    expect(traced == [6, 7], "for two calls with n = 6 and two with n = 7 the number of programs "
           f"is 2, and yours is {len(traced)}: what is made anew in each call keeps no programs")


def grade_quick_series(quick_series: Any) -> None:
    if not hasattr(quick_series, "lower"):
        _grade_wrapped_series(quick_series)
        return
    quick_series.clear_cache()
    calls = [(x, n) for n in (1, 3, 5) for x in (0.5, -2.0, 1.25)]
    for place, (x, n) in enumerate(calls):
        with instead_of(Exception, "traced", f"for x = {x} and n = {n} there is an error in "
                        "`range`: n is still a tracer"):
            result = quick_series(x, n)
        agree(f"x = {x} and n = {n}", result, sum(x**k for k in range(n)))
        count, expected = quick_series._cache_size(), len({n for _, n in calls[:place + 1]})
        expect(count == expected, f"for the calls {calls[:place + 1]} of (x, n) the number of "
               f"programs is {expected}, and yours is {count}: which argument's *value* must be "
               "known, and which only as a type?")


exercise(
    "quick_series", chapter=CHAPTER, grade=grade_quick_series, given=_SERIES,
    solution="jax.jit(series, static_argnums=1)",
    wrong=[("jax.jit(series)", "n is still a tracer"),
           ("jax.jit(series, static_argnums=0)", "n is still a tracer"),
           ("jax.jit(series, static_argnums=(0, 1))", "must be known"),
           ("series", "compiles nothing"),
           ("def quick_series(x, n):\n    return jax.jit(lambda x: series(x, n))(x)",
            "keeps no programs")],
    right=["import functools\n\n@functools.lru_cache(None)\ndef for_n(n):\n"
           "    return jax.jit(lambda x: series(x, n))\n\ndef quick_series(x, n):\n"
           "    return for_n(n)(x)"])
