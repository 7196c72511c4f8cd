"""The exercises of chapter 21, *The errors, one by one*."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core.vmap import BatchTrace
from minijax.notebook.checks import (agree, exercise, expect, instead_of, near, numbers, shown,
                                     wanting)

from .ways import ending_within, of_dtype

CHAPTER = "21_errors"


def _first(x: Any, y: Any, z: Any) -> Any:
    y = x + 1
    return z if y > 0 else x


def _second(x: Any, y: Any, z: Any) -> Any:
    z = y * z if x.ndim == 0 else x
    return x if z > 0 else y


def _third(x: Any, y: Any, z: Any) -> Any:
    a = jnp.where(x > 0, y, 1.0)
    return z if a > 0 else x


def _fourth(x: Any, y: Any, z: Any) -> Any:
    total = x + y + z
    return x if total - x - y > 0 else y


BLAMED = [{"x"}, {"y", "z"}, {"x", "y"}, {"x", "y", "z"}]


def grade_blamed(blamed: Any) -> None:
    expect(isinstance(blamed, list | tuple) and len(blamed) == 4, "a list of four is expected, "
           'such as ["x", "x y", "y", "z"]')
    hints = ["the name `y` stands for another value now, and that was made of x alone",
             "which values go into the one that is asked? x is asked for its number of axes, which "
             "is known while tracing",
             "a `where` depends on what it chooses between, and on what it chooses by",
             "the record knows operations and no algebra: which values went into the last one?"]
    for name, answer, expected, hint in zip(("first", "second", "third", "fourth"), blamed, BLAMED,
                                          hints, strict=True):
        expect(isinstance(answer, str | set | list | tuple), f"for {name} yours is {answer!r}, and "
               'names are expected, such as "x y"')
        names = set(answer.replace(",", " ").split() if isinstance(answer, str) else answer)
        expect(names <= {"x", "y", "z"}, f"{name}: the arguments are x, y and z")
        expect(names == expected, f"for {name} the message names {len(expected)} of the arguments, "
               f"and yours are {' '.join(sorted(names)) or 'none'}\n{hint}")


exercise(
    "blamed", chapter=CHAPTER, grade=grade_blamed, solution='["x", "y z", "x y", "x y z"]',
    wrong=[
        ('["y", "y z", "x y", "x y z"]', "stands for another value"),
        ('["x", "x y z", "x y", "x y z"]', "number of axes"),
        ('["x", "y z", "y", "x y z"]', "what it chooses by"),
        ('["x", "y z", "x y", "z"]', "no algebra"),
        ('"x"', "a list of four"),
    ],
    afterthought="run them under `jit`, and see")


def _several(x: Any, y: Any, z: Any) -> tuple:
    a = x * 2
    b = jnp.sin(y) + a
    return a, b, z * 0 + 1, 7.0, y


def _long(x: Any, y: Any) -> Any:
    for _ in range(20):
        x = x + 1
    return x


def _crossed(x: Any, y: Any, z: Any) -> tuple:
    a, b = x + y, y * z
    return a * b, b - z, jnp.cos(a)


def _chosen(x: Any, *cases: Any) -> Any:
    return lax.select_n(jnp.int32(x), *cases)


def _by_a_call(x: Any, y: Any) -> Any:
    first, second = jax.jit(lambda x, y: (jnp.sin(x), x * y))(x, y)
    return first, second + 1


def grade_depends_on(depends_on: Any) -> None:
    cases: list[tuple[str, Any, int, list[set[int]], list[str]]] = [
        ("a = x * 2; b = sin(y) + a; (a, b, z * 0 + 1, 7, y)", _several, 3,
         [{0}, {0, 1}, {2}, set(), {1}],
         ["it is computed from x alone; not every argument is needed for every result",
          "what does it need, by way of `a`, too?", "z * 0 depends on z, for all a program knows",
          "a number that is written needs no argument",
          "a result may be an argument itself, with no equation between"]),
        ("twenty times x = x + 1; x", _long, 2, [{0}], ["go through all the equations"]),
        ("a = x + y; b = y * z; (a * b, b - z, cos(a))", _crossed, 3,
         [{0, 1, 2}, {1, 2}, {0, 1}], ["by way of `a` and `b`"] * 3),
        ("a, b = jit(lambda x, y: (sin(x), x * y))(x, y); (a, b + 1)", _by_a_call, 2,
         [{0, 1}, {0, 1}], ["an equation may have several results, and each of them is computed "
                            "from all that the equation reads"] * 2),
        ("select_n(x, y, z, w), with x an integer", _chosen, 4, [{0, 1, 2, 3}], ["an equation may "
         "have any number of operands"])]
    for text, f, count, answers, hints in cases:
        program = jax.make_jaxpr(f)(*map(float, range(count)))
        for place, (expected, hint) in enumerate(zip(answers, hints, strict=True)):
            with wanting(f"the program of {text!r} and result {place}", expected or "set()"):
                result = depends_on(program, place)
            message = f"for the program of {text!r} and result {place} the answer is "
            message += f"{expected or 'set()'}, and yours is {result}\n"
            expect(isinstance(result, set), message + "the answer is a set of numbers")
            expect(result == expected, message + hint)


exercise(
    "depends_on", chapter=CHAPTER, grade=grade_depends_on,
    solution="""
def depends_on(program, place):
    jaxpr = program.jaxpr
    reached = {id(jaxpr.outvars[place])}
    for eqn in reversed(jaxpr.eqns):
        if any(id(v) in reached for v in eqn.outvars):
            reached |= {id(v) for v in eqn.invars}
    return {i for i, v in enumerate(jaxpr.invars) if id(v) in reached}
""",
    wrong=[
        ("lambda program, place: set(range(len(program.jaxpr.invars)))", "not every argument"),
        ("def depends_on(program, place):\n"
         "    jaxpr = program.jaxpr\n"
         "    reached = {id(jaxpr.outvars[place])}\n"
         "    for eqn in jaxpr.eqns:\n"
         "        if any(id(v) in reached for v in eqn.outvars):\n"
         "            reached |= {id(v) for v in eqn.invars}\n"
         "    return {i for i, v in enumerate(jaxpr.invars) if id(v) in reached}",
         "by way of `a`"),
        ("def depends_on(program, place):\n"
         "    jaxpr = program.jaxpr\n"
         "    last = [e for e in jaxpr.eqns if jaxpr.outvars[place] in e.outvars]\n"
         "    return {i for i, v in enumerate(jaxpr.invars) for e in last if v in e.invars}",
         "by way of `a`"),
        ("def depends_on(program, place):\n    jaxpr = program.jaxpr\n"
         "    reached = {id(jaxpr.outvars[place])}\n    for eqn in reversed(jaxpr.eqns):\n"
         "        if any(id(v) in reached for v in eqn.outvars):\n"
         "            reached |= {id(v) for v in eqn.invars[:2]}\n"
         "    return {i for i, v in enumerate(jaxpr.invars) if id(v) in reached}",
         "any number of operands"),
        ("lambda program, place: [0]", "a set"),
    ],
    hints=["go through the equations from the last to the first, and keep what is needed so far",
           "a literal cannot be put into a set; its `id` can"])


def grade_ramp(ramp: Any) -> None:
    compiled = jax.jit(ramp)
    points = [0.0, 2.0, 4.0, 1.0, 3.0, -1.0, *np.linspace(-2, 6, 33).round(2).tolist()]
    for x in points:
        expected = min(max(x - 1, 0.0), 2.0)
        with wanting(f"x = {x}, traced,", expected, (
                jax.errors.TracerBoolConversionError, "Python asks whether something is true: "
                "`if`, `and`, `min` and 1 < x < 3 do so")):
            result = numbers(compiled(x))
        agree(f"x = {x}", result, expected,
              (x == 4.0, "above 3 it is 2: what does the outer `where` choose between?"),
              (x == 0.0, "below 1 it is 0"), "between 1 and 3 it is x - 1")
    one = "right for one number, but it should take an array, too: `lax.cond` has one condition"
    with wanting("x = [0.0, 2.0, 4.0]", [0.0, 1.0, 2.0], one):
        result = numbers(compiled(jnp.array([0.0, 2.0, 4.0])))
    agree("x = [0.0, 2.0, 4.0]", result, [0.0, 1.0, 2.0], one)
    slope = jax.vmap(jax.grad(ramp))(jnp.array([0.5, 2.0, 5.0]))
    agree("x = [0.5, 2.0, 5.0]", slope, [0.0, 1.0, 0.0], what="the slope")


RAMP = """
def broken(x):
    if x < 1:
        return 0.0
    elif 1 <= x < 3:
        return x - 1
    return 2.0
"""

exercise(
    "ramp", chapter=CHAPTER, grade=grade_ramp, given=RAMP,
    solution="""
def ramp(x):
    return jnp.where(x < 1, 0.0, jnp.where(x < 3, x - 1, 2.0))
""",
    wrong=[
        ("broken", "Python asks"),
        ("def ramp(x):\n    return jnp.where(1 <= x < 3, x - 1, jnp.where(x < 1, 0.0, 2.0))",
         "Python asks"),
        ("def ramp(x):\n    return jnp.where(x < 1, 0.0, x - 1)", "the outer `where`"),
        ("def ramp(x):\n    return jnp.where(x < 3, x - 1, 2.0)", "below 1"),
        ("def ramp(x):\n    return lax.cond(x < 1, lambda x: 0.0, lambda x: "
         "jnp.where(x < 3, x - 1, 2.0), x)", "one number"),
    ],
    afterthought="`jnp.clip(x - 1, 0, 2)` says the same",
    hints=["one `jnp.where` inside another, in the order of the tests"])


def grade_smoothed(smoothed: Any) -> None:
    expect(hasattr(smoothed, "lower"), "a function that `jit` has returned is expected, and yours "
           f"is of type {type(smoothed).__name__}")
    x = np.array([1.0, 2.0, 6.0, 3.0], np.float32)
    with wanting("x = [1, 2, 6, 3] and width = 2", np.array([0.5, 1.5, 4.0, 4.5]), (
            TypeError, "is the width, which decides the shape of an array, still traced?")):
        smoothed(x, 2)
    random = np.random.default_rng(0)
    for width in (2, 3, 1):
        for values in (x, random.integers(0, 9, 4).astype(np.float32)):
            agree(f"x = {values.tolist()} and width = {width}", smoothed(values, width),
                  np.convolve(values, np.ones(width) / width, "same"),
                  "compute what `moving_average` does")
    traces = []
    smoothed(x + 1, 2)
    size = smoothed._cache_size()
    smoothed(x + 1, 4)
    traces.append(smoothed._cache_size() - size)
    smoothed(x * 2, 4)
    traces.append(smoothed._cache_size() - size)
    expect(traces == [1, 1], "a call with a new width, and one with new numbers in x, should make "
           f"1 trace, and made {traces[-1]}\none trace for each width, and none for new numbers")


MOVING = '''
def moving_average(x, width):
    weights = jnp.ones(width) / width
    return jnp.convolve(x, weights, mode="same")
'''

exercise(
    "smoothed", chapter=CHAPTER, grade=grade_smoothed, given=MOVING,
    solution="jax.jit(moving_average, static_argnums=1)",
    wrong=[
        ("programs = {}\ndef smoothed(x, width):\n    if width not in programs:\n"
         "        programs[width] = jax.jit(lambda x: moving_average(x, width))\n"
         "    return programs[width](x)", "that `jit` has returned"),
        ("jax.jit(moving_average)", "still traced?"),
        ("moving_average", "`jit` has returned"),
        ("jax.jit(lambda x, width: jnp.convolve(x, jnp.ones(3) / 3, mode='same'))",
         "what `moving_average` does"),
    ],
    hints=["which of the two arguments decides a shape?"])


def grade_mean_where(mean_where: Any) -> None:
    compiled = jax.jit(mean_where)
    random = np.random.default_rng(0)
    cases: list[tuple[list, list]] = [
        ([1.0, -2.0, 3.0], [True, False, True]), ([1.0, 5.0], [True, True]),
        ([2.0, np.nan, 4.0], [True, False, True]), ([np.inf, 3.0], [False, True]),
        ([2.0, np.nan, 4.0], [True, True, False])]
    for n in (1, 3, 6, 9):
        cases.append((random.normal(size=n).round(2).tolist(),
                      [True, *(random.random(n - 1) < 0.5).tolist()]))
    cases.append(([[1.0, 2.0], [3.0, 5.0]], [[True, False], [True, True]]))
    cases.append(([0.0, 2.0, 0.0, 4.0], [True, True, True, False]))
    for x, mask in cases:
        values, chosen = np.array(x), np.array(mask)
        inputs, expected = f"x = {x} and mask = {mask}", values[chosen].mean()
        with wanting(f"{inputs}, both traced,", expected, (
                jax.errors.NonConcreteBooleanIndexError, "nobody knows how large x[mask] is: keep "
                "all elements")):
            result = numbers(compiled(jnp.array(x), jnp.array(mask)))
        agree(inputs, result, expected,
              (near(result, np.where(chosen, values, 0).mean()), "that divides by the number of "
               "all elements: how many does the mask choose?"),
              (np.isnan(expected), "a nan among the chosen makes the mean nan: leave out what the "
               "mask does, and nothing else"),
              (not np.isfinite(values).all(), "0 times nan is nan: what is left out has to be "
               "replaced, and not multiplied"),
              (near(result, values.mean()), "that is the mean of all elements"),
              "add up the chosen ones, and divide by their number")


exercise(
    "mean_where", chapter=CHAPTER, grade=grade_mean_where,
    solution="""
def mean_where(x, mask):
    return jnp.where(mask, x, 0).sum() / mask.sum()
""",
    wrong=[
        ("def mean_where(x, mask):\n    return x[mask].mean()", "keep all elements"),
        ("def mean_where(x, mask):\n    return jnp.where(mask, x, 0).mean()", "does the mask"),
        ("def mean_where(x, mask):\n    return (x * mask).sum() / mask.sum()", "0 times nan"),
        ("def mean_where(x, mask):\n    return x.mean()", "of all elements"),
        ("def mean_where(x, mask):\n    return jnp.where(mask, x, 0) @ mask / mask.sum()",
         "x = [[1.0, 2.0], [3.0, 5.0]]"),
        ("def mean_where(x, mask):\n    return jnp.where(mask, x, 0).sum()", "by their number"),
        ("def mean_where(x, mask):\n    kept = jnp.where(mask, x, 0)\n"
         "    return kept.sum() / jnp.count_nonzero(kept)", "x = [0.0, 2.0, 0.0, 4.0]"),
    ],
    afterthought="`jnp.mean(x, where=mask)` does it",
    hints=["True counts as 1 in a sum"])


def grade_times(times: Any) -> None:
    def halve_and_add(x: Any) -> Any:
        return x / 2 + 1

    def turn(v: Any) -> Any:
        return jnp.stack([-v[1], v[0] + 1])

    for n in (1, 2, 0, 5, 3, 1000):
        for f, name, x in ((halve_and_add, "x / 2 + 1", np.float32(8)),
                           (lambda x: x + 1, "x + 1", np.float32(8)),
                           (turn, "[-v[1], v[0] + 1]", np.array([1.0, 2.0], np.float32)),
                           (lambda x: x + 1, "x + 1", np.array([3], np.int32))):
            values = [x]
            for _ in range(n + 1):
                values.append(np.asarray(f(values[-1])))
            inputs = f"f = {name}, n = {n} and x = {x.tolist()}"
            with wanting(inputs, values[n], (
                    jax.errors.TracerIntegerConversionError, "`range(n)` needs n as an integer, "
                    "and it is traced: write a loop of the program"),
                    (TypeError, "what does fori_loop give to its body, and how much does f take?")):
                result = numbers(jax.jit(lambda n, x, f=f: times(f, n, x))(np.int32(n), x))
            agree(inputs, result, values[n],
                  (near(result, values[n - 1]) and n, "that is one round too few: at which number "
                   "does the loop start, and does it include its end?"),
                  (near(result, values[n + 1]), "that is one round too many"),
                  (n > 5, "for a small n it is right: how many rounds has yours at most?"),
                  "begin with x, make n rounds, and give the value to f, not the number of the "
                  "round")
            of_dtype(inputs, result, values[n].dtype, "f keeps the dtype, and so does the loop")


exercise(
    "times", chapter=CHAPTER, grade=grade_times,
    solution="""
def times(f, n, x):
    return lax.fori_loop(0, n, lambda i, value: f(value), x)
""",
    wrong=[
        ("def times(f, n, x):\n    for _ in range(n):\n        x = f(x)\n    return x",
         "a loop of the program"),
        ("def times(f, n, x):\n    return lax.fori_loop(0, n, f, x)", "how much does f take"),
        ("def times(f, n, x):\n    return lax.fori_loop(1, n, lambda i, v: f(v), x)",
         "one round too few"),
        ("def times(f, n, x):\n    return lax.fori_loop(0, n, lambda i, v: f(i) + 0 * v, x)",
         "not the number"),
        ("def times(f, n, x):\n    return lax.fori_loop(0, n, lambda i, v: f(v), x * 1.0)",
         "keeps the dtype"),
        ("def times(f, n, x):\n    return f(lax.fori_loop(0, n, lambda i, v: f(v), x))",
         "one round too many"),
    ],
    hints=["the body of `lax.fori_loop` is a function of two arguments"])


def grade_leaks(leaks: Any) -> None:
    kept: list[Any] = []
    before = jax.config.check_tracer_leaks.value

    def keeps(x: Any) -> Any:
        kept.append(x + 1)
        return x

    def keeps_none(x: Any) -> Any:
        half = x / 2
        return x - half

    def keeps_a_number(x: Any) -> Any:
        kept.append(x.ndim)
        return x

    def wrong(x: Any) -> Any:
        return x + jnp.ones((2, 3)) @ x

    table: dict[str, Any] = {}

    def hides(x: Any) -> Any:
        table["last"] = [{"y": jnp.sin(x)}]
        return x * 2

    for f, doing, expected in ((keeps, "appends x + 1 to a list", True),
                             (keeps_none, "returns x - x / 2", False),
                             (keeps_a_number, "appends x.ndim to a list", False),
                             (hides, "puts sin(x) into a dict", True),
                             (keeps, "appends x + 1 to a list, called again", True)):
        with instead_of(jax.errors.TracerLeakError, "", f"for a function that {doing} the "
                        "answer is True, and yours is the error\nwhich class does it have?"):
            try:
                result = leaks(f, 8.0)
            finally:
                left_on = jax.config.check_tracer_leaks.value and not before
                jax.config.update("jax_check_tracer_leaks", before)
        expect(not left_on, "after the call the switch is left on, and whatever is traced later is "
               "searched, too; a `with` block ends in any case")
        expect(isinstance(result, bool | np.bool_), f"for a function that {doing}, True or False "
               f"is expected, and yours is {shown(result)}")
        expect(result == expected, f"for a function that {doing} the answer is {expected}, and "
               f"yours is {result}\n" + (
                   "without the switch nobody looks, and only `jit` makes tracers; and a `return` "
                   "in `finally` comes after every other" if expected else
                   "this one keeps no tracer"))
    with wanting("lambda x, y: keeps(x * y), with two arguments,", True):
        expect(leaks(lambda x, y: keeps(x * y), 2.0, 3.0), "for a function of two arguments that "
               "appends to a list the answer is True, and yours is False")
    jax.jit(keeps)(2.0)
    expect(leaks(keeps, 2.0), "for a function that was compiled before the answer is True, and "
           "yours is False\nit should be traced again")
    try:
        result = leaks(wrong, jnp.ones(3))
    except TypeError:
        return
    expect(False, "for x + ones((2, 3)) @ x, whose shapes do not fit, the TypeError should come "
           "out, and yours swallows it\n" + (
               "which class says that there is a leak?" if result else
               "an error that is no leak is not yours: let it pass"))


_LEAKS = """
def leaks(f, *args):
    try:
        {}
    except {}:
        return True
    return False
"""
_CHECKED = "with jax.checking_leaks():\n            {}(*args)"

exercise(
    "leaks", chapter=CHAPTER, grade=grade_leaks,
    solution=_LEAKS.format(_CHECKED.format("jax.jit(f)"), "jax.errors.TracerLeakError"),
    wrong=[
        (_LEAKS.format(_CHECKED.format("jax.jit(f)"), "Exception"), "swallows it"),
        ("def leaks(f, *args):\n    try:\n        with jax.checking_leaks():\n"
         "            jax.jit(f)(*args)\n    except Exception as error:\n"
         "        return isinstance(error, jax.errors.TracerLeakError)\n    return False",
         "let it pass"),
        (_LEAKS.format(_CHECKED.format("f"), "jax.errors.TracerLeakError"), "only `jit`"),
        (_LEAKS.format(_CHECKED.format("jax.jit(f)"), "jax.errors.TracerLeakError").replace(
            "    return False", "    finally:\n        return False"), "after every other"),
        (_LEAKS.format("jax.config.update('jax_check_tracer_leaks', True)\n"
                       "        jax.jit(f)(*args)", "jax.errors.TracerLeakError"), "left on"),
        (_LEAKS.format(_CHECKED.format("jax.jit(f)"), "jax.errors.TracerLeakError").replace(
            "(*args)", "(args[0])"), "with two arguments"),
        (_LEAKS.format("jax.jit(f)(*args)", "jax.errors.TracerLeakError"), "nobody looks"),
        (_LEAKS.format(_CHECKED.format("jax.jit(f)"), "jax.errors.UnexpectedTracerError"),
         "which class does it have"),
    ],
    hints=["the error of the last cell that failed has a class in `jax.errors`"])


KINDS = {"a": "TracerBoolConversionError", "b": "TracerIntegerConversionError",
         "c": "TracerArrayConversionError", "d": "NonConcreteBooleanIndexError",
         "e": "ConcretizationTypeError", "f": "none"}


SOLUTION = "{" + ",\n ".join(f'"{letter}": "{kind}"' for letter, kind in KINDS.items()) + "}"


def grade_kinds(kinds: Any) -> None:
    expect(isinstance(kinds, dict) and set(kinds) == set(KINDS),
           "a dict with the letters a to f as its keys")
    kinds = {letter: getattr(kind, "__name__", kind) for letter, kind in kinds.items()}
    for letter, kind in kinds.items():
        expect(kind in KINDS.values(), f"for {letter} yours is {kind!r}, and no function here "
               "raises that; where nothing is raised, write 'none'")
    hints = {"f": "what is a tracer there? A shape is known while tracing",
             "a": "Python's max compares, and looks at the answer with bool",
             "b": "a list needs an integer to index it",
             "c": "whose function is asked, NumPy's or ours?",
             "d": "what is the index, and what is its dtype?",
             "e": "jnp.nonzero has a size that depends on values, and no index is involved"}
    for letter, hint in hints.items():
        expect(kinds[letter] == KINDS[letter],
               f"for {letter} yours is {kinds[letter]!r}, and that is not what it raises\n{hint}")


exercise(
    "kinds", chapter=CHAPTER, grade=grade_kinds, solution=SOLUTION,
    wrong=[
        (repr({**KINDS, "a": "ConcretizationTypeError"}), "with bool"),
        (repr({**KINDS, "c": "TracerIntegerConversionError"}), "NumPy's or ours"),
        (repr({**KINDS, "f": "TracerIntegerConversionError"}), "known while tracing"),
        (repr({**KINDS, "d": "TracerBoolConversionError"}), "its dtype"),
        (repr(list(KINDS.values())), "a dict"),
    ],
    afterthought="run them, and see their messages")


def grade_halvings(halvings: Any) -> None:
    compiled = jax.jit(halvings)
    for n in (8, 9, 7, *range(1, 40), 1000, 2**31 - 1):
        expected = n.bit_length() - 1
        with wanting(f"n = {n}", expected, (
                jax.errors.TracerBoolConversionError, "Python's `while` asks for a value: keep the "
                "loop of `lax`"), (TypeError, "the carry should keep its type: is it an "
                     "integer after a round, too?")), \
             ending_within(8.0, f"for n = {n} the answer is {expected}, and yours does not end: "
                           "does each round lead nearer to 1?"):
            result = compiled(np.int32(n))
        agree(f"n = {n}", result, expected,
              (isinstance(result, tuple), "give the number of steps, not the whole state"),
              (n == 1, "1 takes no step at all"),
              (n == 8, "8, 4, 2, 1 are three steps"),
              (n > 2**24, "a float32 lacks the digits of so large a number: stay with integers"),
              (n == 9, "9 // 2 is 4: with whole numbers, 9 takes three steps, too"),
              "rounding down, half of 7 is 3", tolerance=0)
        if n == 7:
            program = str(jax.make_jaxpr(halvings)(np.int32(8)))
            expect("while" in program, "the numbers are right, but the program has no `while` "
                   "in it: keep the loop")


BROKEN = '''
def broken(n):
    def is_larger(state):
        return state[0] > 1

    def halve(state):
        n, steps = state
        return n / 2, steps + 1

    return lax.while_loop(is_larger, halve, (n, 0))[1]
'''

exercise(
    "halvings", chapter=CHAPTER, grade=grade_halvings, given=BROKEN,
    solution="""
def halvings(n):
    def is_larger(state):
        return state[0] > 1

    def halve(state):
        n, steps = state
        return n // 2, steps + 1

    return lax.while_loop(is_larger, halve, (n, 0))[1]
""",
    wrong=[
        ("broken", "integer after a round"),
        ("lambda n: lax.while_loop(lambda s: s[0] > 1, lambda s: (s[0] // 2, s[1] + 1), (n, 0))",
         "not the whole state"),
        ("lambda n: lax.while_loop(lambda s: s[0] > 1, lambda s: (s[0] / 2, s[1] + 1), "
         "(n * 1.0, 0))[1]", "whole numbers"),
        ("lambda n: lax.while_loop(lambda s: s[0] > 1, lambda s: (jnp.round(s[0] / 2), s[1] + 1), "
         "(n * 1.0, 0))[1]", "rounding down"),
        ("lambda n: jnp.floor(jnp.log2(n)).astype(int)", "keep the loop"),
        ("lambda n: lax.while_loop(lambda s: s[0] > 1, lambda s: ((s[0] / 2).astype(int), "
         "s[1] + 1), (n, 0))[1]", "stay with integers"),
        ("lambda n: lax.while_loop(lambda s: s[0] > 0, lambda s: (s[0] // 2, s[1] + 1), "
         "(n, 0))[1]", "three steps"),
        ("def halvings(n):\n    steps = 0\n    while n > 1:\n"
         "        n, steps = n // 2, steps + 1\n    return steps", "the loop of `lax`"),
        ("def halvings(n):\n    return lax.while_loop(lambda s: s[0] > 1, "
         "lambda s: ((s[0] + 1) // 2 + 1, s[1] + 1), (n, 0))[1]", "does not end"),
    ],
    hints=["the message names the two types; which operation made a float of an integer?"])


def maps(f: Any, *args: Any) -> bool:
    """Whether a function calls `vmap`, by whatever name it has it."""
    with jax.disable_jit(), mock.patch.object(
            BatchTrace, "__init__", autospec=True, side_effect=BatchTrace.__init__) as trace:
        f(*args)
    return bool(trace.called)


def grade_distances(distances: Any) -> None:
    random = np.random.default_rng(0)
    for n, m in ((3, 2), (2, 2), (1, 4), (4, 1)):
        points = random.integers(-4, 5, (n, 2)).astype(np.float32)
        centres = random.integers(-4, 5, (m, 2)).astype(np.float32)
        expected = np.sqrt(((points[:, None] - centres) ** 2).sum(-1))
        inputs = f"points = {points.tolist()} and centres = {centres.tolist()}"
        with wanting(inputs, expected, (
                ValueError, "does one `vmap` go through both, side by side? Two are needed: each "
                "maps one argument"), (
                TypeError, "each `vmap` takes one axis away: `between` is given two vectors")):
            result = numbers(distances(jnp.array(points), jnp.array(centres)))
        agree(inputs, result, expected,
              (np.shape(result) == (m, n) != (n, m) or near(result, expected.T), "that is the "
               "other way round: there is a row for each point"),
              (np.shape(result) == (n,), "that is one number for each point; one is expected for "
               "each pair"),
              (near(result, expected**2), "the distance is the root of that"),
              "compare each point with each centre")
    points = random.integers(-4, 5, (2, 3)).astype(np.float32)
    agree(f"points = centres = {points.tolist()}", distances(jnp.array(points), jnp.array(points)),
          np.sqrt(((points[:, None] - points) ** 2).sum(-1)), "a point may have three numbers, and "
          "`between` takes them")
    points = np.array([[3000.0, 1.0], [3000.0, 1.5]], np.float32)
    expected = np.array([[0.0, 0.5], [0.5, 0.0]])
    agree(f"points = centres = {points.tolist()}", distances(jnp.array(points), jnp.array(points)),
          expected, "of large squares, the difference keeps few digits: let `between` subtract")
    expect(maps(distances, jnp.ones((3, 2)), jnp.ones((2, 2))), "the table is right, and this time "
           "`vmap` should make it")


BETWEEN = """
def between(p, q):
    return jnp.sqrt(((p - q) ** 2).sum())
"""

exercise(
    "distances", chapter=CHAPTER, grade=grade_distances, given=BETWEEN,
    solution="""
def distances(points, centres):
    to_all = jax.vmap(between, in_axes=(None, 0))
    return jax.vmap(to_all, in_axes=(0, None))(points, centres)
""",
    wrong=[
        ("def distances(points, centres):\n    return jax.vmap(between)(points, centres)",
         "side by side"),
        ("def distances(points, centres):\n"
         "    f = jax.vmap(between, in_axes=(0, None))\n"
         "    return jax.vmap(f, in_axes=(None, 0))(points, centres)", "for each point"),
        ("def distances(points, centres):\n"
         "    return jax.vmap(between, in_axes=(0, None))(points, centres)",
         "for each pair"),
        ("def distances(points, centres):\n"
         "    return jax.vmap(between, in_axes=(0, None))(points, centres[0])", "for each pair"),
        ("def distances(points, centres):\n"
         "    return ((points[:, None] - centres) ** 2).sum(-1)", "the root"),
        ("def distances(points, centres):\n"
         "    return jnp.sqrt(((points[:, None] - centres) ** 2).sum(-1))", "`vmap` should make"),
        ("def distances(points, centres):\n    square = lambda x: jax.vmap(jnp.dot)(x, x)\n"
         "    return jnp.sqrt(square(points)[:, None] + square(centres) - 2 * points @ centres.T)",
         "keeps few digits"),
        ("def distances(points, centres):\n    return jax.vmap(\n        lambda p: jnp.hypot("
         "p[0] - centres[:, 0], p[1] - centres[:, 1]))(points)", "three numbers"),
    ],
    hints=["write first what compares one point with all centres"])
