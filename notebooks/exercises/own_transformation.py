"""The exercises of chapter 31, *A transformation of your own*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import core, lax
from minijax.notebook.checks import agree, exercise, expect, instead_of, near, shown, wanting

CHAPTER = "31_a_transformation_of_your_own"


# -- how_many_listed -------------------------------------------------------------------------------

class _Listing(core.Trace):
    """The chapter's trace, which counts."""

    def __init__(self, parent: core.Trace):
        super().__init__(core.Level(parent), parent)
        self.names: list[str] = []

    def process_primitive(self, primitive: Any, args: Any, params: Any) -> list:
        self.names.append(primitive.name)
        return core.run_with(self.parent or core.base_trace, primitive.bind_list, *args, **params)


_CANDIDATES: dict[str, tuple[Callable, str]] = {
    "a": (lambda x: jnp.exp(x) + jnp.exp(x), "nobody notices that the two exponentials are one"),
    "b": (lambda x: jnp.exp(float(x)), "the exponential is of minijax, whatever it is given"),
    "c": (lambda x: float(jnp.exp(x)) + 1.0, "the sum is one of two Python numbers"),
    "d": (lambda x: np.exp(x), "who computes that exponential?"),
    "e": (lambda x: jnp.exp(x) if x > 1 else x, "how does Python know whether x > 1?")}


def _listed(f: Callable) -> list[str]:
    trace = _Listing(core.current_trace.get())
    core.run_with(trace, f, jnp.array(2.0))
    return trace.names


def grade_how_many_listed(answer: Any) -> None:
    expect(isinstance(answer, dict) and set(answer) == set(_CANDIDATES),
           "a dict with the letters a to e as its keys")
    for letter, (f, hint) in _CANDIDATES.items():
        expect(isinstance(answer[letter], int), f"for {letter} a whole number is wanted, and yours "
               f"is {answer[letter]!r}")
        expect(answer[letter] == len(_listed(f)),
               f"for {letter} yours is {answer[letter]}, and that is not how many\n{hint}")


exercise("how_many_listed", chapter=CHAPTER, grade=grade_how_many_listed,
         solution='{"a": 3, "b": 1, "c": 1, "d": 0, "e": 2}',
         wrong=[('{"a": 2, "b": 1, "c": 1, "d": 0, "e": 2}', "are one"),
                ('{"a": 3, "b": 0, "c": 1, "d": 0, "e": 2}', "of minijax"),
                ('{"a": 3, "b": 1, "c": 2, "d": 0, "e": 2}', "two Python numbers"),
                ('{"a": 3, "b": 1, "c": 1, "d": 1, "e": 2}', "who computes"),
                ('{"a": 3, "b": 1, "c": 1, "d": 0, "e": 1}', "how does Python know"),
                ("[3, 1, 1, 0, 2]", "a dict")],
         afterthought="run `listed` on them, and see the names")


# -- power_rule ------------------------------------------------------------------------------------

def grade_power_rule(power_rule: Callable) -> None:
    random = np.random.default_rng(31)
    pairs: list[list[float]] = [[1.0, 2.0], [-2.0, -1.0], [-2.0, 1.0], [-1.0, 2.0], [0.0, 1.0],
                                [-2.0, -0.5], [0.5, 1.5]]
    pairs += [sorted(random.uniform(-2, 2, 2).round(1).tolist()) for _ in range(6)]
    for low, high in pairs:
        for y in (2, 3, 1, 4, 6):
            expected = _powers(low, high, y)
            inputs = f"the ends {low} and {high}, and y = {y},"
            ends = jnp.float32(low), jnp.float32(high)
            with wanting(inputs, expected):
                result = power_rule(lax.integer_pow_p, ends, y)
            expect(isinstance(result, list | tuple) and len(result) == 1
                   and np.shape(result[0]) == (2,), "a rule gives a list of one pair, since a "
                   f"primitive may have several results; yours gives {result}")
            agree(inputs, list(map(float, result[0])), expected,
                  (low < 0 < high and y % 2 == 0, "0 is in the interval, and its power is 0"),
                  (low * high > 0 and near(result[0][0], 0.0), "0 is not in this interval, and so "
                   "its power need not be an end"),
                  (y % 2 == 0 and high <= 0, "an even power of negative numbers decreases"),
                  (y % 2 == 1, "an odd power increases"),
                  "the ends are powers of the ends, or 0", what="the pair")
    lows, highs = jnp.array([-1.0, 0.5]), jnp.array([0.5, 1.0])
    with instead_of(jax.errors.TracerBoolConversionError, "", "under `jit` nobody knows the ends: "
                    "choose with `jnp.where`"):
        [(low, high)] = jax.jit(jax.vmap(
            lambda a, b: power_rule(lax.integer_pow_p, (a, b), 2)))(lows, highs)
    agree("the ends [-1, 0.5] and [0.5, 1], and y = 2,", [low, high], [[0.0, 0.25], [1.0, 1.0]],
          what="the pair")
    [(low, high)] = power_rule(lax.integer_pow_p, (lows, highs), 2)
    agree("the ends [-1, 0.5] and [0.5, 1], and y = 2, without `vmap`,", [low, high],
          [[0.0, 0.25], [1.0, 1.0]], "each element is an interval of its own", what="the pair")


def _powers(low: float, high: float, y: int) -> list[float]:
    inside = [0.0] if low < 0 < high else []
    powers = [x ** y for x in (low, high, *inside)]
    return [min(powers), max(powers)]


_POWER = """
def power_rule(primitive, x, y):
    low, high = x
    lower = jnp.minimum(low ** y, high ** y)
    upper = jnp.maximum(low ** y, high ** y)
    {zero}
    return {result}
"""


def _power_text(zero: str = "has_zero = (low < 0) & (high > 0) & (y % 2 == 0)",
                result: str = "[(jnp.where(has_zero, 0.0, lower), upper)]") -> str:
    return _POWER.format(zero=zero, result=result)


exercise(
    "power_rule", chapter=CHAPTER, grade=grade_power_rule, solution=_power_text(),
    wrong=[("def power_rule(primitive, x, y):\n    low, high = x\n    if y % 2:\n"
            "        return [(low ** y, high ** y)]\n    zero = (low < 0) & (high > 0)\n"
            "    return [(jnp.where(zero, 0.0, jnp.minimum(low ** y, high ** y)),\n"
            "             low ** y + high ** y)]", "powers of the ends"),
           (_power_text(zero="", result="[(low ** y, high ** y)]"), "decreases"),
           (_power_text(zero="", result="[(lower, upper)]"), "its power is 0"),
           (_power_text(result="jnp.where(has_zero, 0.0, lower), upper"), "a list of one pair"),
           (_power_text(zero="if low < 0 < high and y % 2 == 0:\n        lower = 0.0",
                        result="[(lower, upper)]"), "choose with"),
           (_power_text(zero="has_zero = (low < 0) & (high > -1) & (y % 2 == 0)"),
            "need not be an end"),
           (_power_text(zero="has_zero = (low < 0) & (high > 0)"), "an odd power")],
    right=[_power_text(zero="low0 = jnp.clip(0.0, low, high) ** y",
                       result="[(jnp.minimum(lower, low0), upper)]")])


# -- x_minus_x -------------------------------------------------------------------------------------

def grade_x_minus_x(answer: Any) -> None:
    expect(isinstance(answer, tuple | list) and len(answer) == 2, "a pair: the low end, the high")
    expect(not near(answer, (0.0, 0.0)), "0 is what it should be, and the rule sees two intervals, "
           "which may be of two numbers")
    expect(not near(answer, (2.0, -2.0)), "the low end comes first")
    agree("the ends 1.0 and 3.0", answer, (-2.0, 2.0), "how small can the difference of two "
          "numbers be that lie between 1 and 3?", what="the pair")


exercise("x_minus_x", chapter=CHAPTER, grade=grade_x_minus_x, solution="(-2.0, 2.0)",
         wrong=[("(0.0, 0.0)", "sees two intervals"), ("(2.0, -2.0)", "comes first"),
                ("(-1.0, 1.0)", "how small"), ("0.0", "a pair")],
         afterthought="the sharper the formula, the sharper the bounds: write an expression with "
                      "each number in it once, if you can")


# -- the chapter's bounds --------------------------------------------------------------------------

BOUNDS = '''
import functools

from minijax import core

class IntervalTracer(core.Tracer):
    __slots__ = ("low", "high")

    def __init__(self, trace, low, high):
        super().__init__(trace, low.aval)
        self.low, self.high = low, high

RULES = {}

class IntervalTrace(core.RuleTrace):
    def __init__(self, parent):
        super().__init__(core.Level(parent), parent)

    def join(self, low, high):
        return IntervalTracer(self, core.as_value(low), core.as_value(high))

    def split(self, x):
        return (x.low, x.high) if self.owns(x) else (x, x)

    def process_primitive(self, primitive, args, params):
        if primitive.name not in RULES:
            raise NotImplementedError(f"no rule for intervals of {primitive.name!r}")
        outs = RULES[primitive.name](primitive, *map(self.split, args), **params)
        return [self.join(low, high) for low, high in outs]

def bounds(f):
    def bounded(low, high):
        trace = IntervalTrace(core.current_trace.get())
        out = core.run_with(trace, f, trace.join(low, high))
        return trace.split(core.as_value(out))
    return bounded

def increasing(primitive, *operands, **params):
    lows, highs = zip(*operands)
    return [(primitive.bind(*lows, **params), primitive.bind(*highs, **params))]

def multiplied(primitive, x, y):
    products = [a * b for a in x for b in y]
    return [(functools.reduce(jnp.minimum, products), functools.reduce(jnp.maximum, products))]

for name in ("add", "exp", "convert_element_type"):
    RULES[name] = increasing
RULES.update(neg=lambda primitive, x: [(-x[1], -x[0])], mul=multiplied,
             sub=lambda primitive, x, y: [(x[0] - y[1], x[1] - y[0])])
'''


def _transformation(**rules: str) -> Callable:
    """The chapter's `bounds`, with other rules."""
    names: dict[str, Any] = {"jnp": jnp}
    exec(BOUNDS, names)
    names["RULES"].update({name: eval(text, names) for name, text in rules.items()})
    return names["bounds"]


# -- outside ---------------------------------------------------------------------------------------

def _around(inner: Callable, change: Callable) -> Callable:
    """A transformation that gives what another one gives, changed."""
    return lambda f: lambda low, high: change(*inner(f)(low, high))


def _at_three_points(f: Callable) -> Callable:
    def hull(low: float, high: float) -> tuple[Any, Any]:
        values = [f(low), f((low + high) / 2), f(high)]
        return min(values), max(values)
    return hull


def _cases() -> list[tuple[str, Callable, Callable, float, float, bool]]:
    """What is wrong with a transformation, itself, a function, two ends, and whether it fails."""
    good = _transformation()
    ends = "lambda primitive, x, y: [(x[0] * y[0], x[1] * y[1])]"
    return [
        ("nothing", good, lambda x: x * x - x, -1.0, 2.0, False),
        ("its product takes the ends only", _transformation(mul=ends), lambda x: x * x, -1.0, 1.0,
         True),
        ("it is wide, and right", _around(good, lambda a, b: (a - 5.0, b + 5.0)),
         lambda x: jnp.exp(x) - x, -1.0, 1.0, False),
        ("its `neg` exchanges no ends", _transformation(neg="increasing"),
         lambda x: -jnp.exp(x), 0.0, 1.0, True),
        ("f is taken at three points only", _at_three_points,
         lambda x: jnp.exp(-20.0 * (x + 0.6) ** 2), -1.0, 1.0, True),
        ("its ends are rounded", _around(good, lambda a, b: (a + 2e-7, b - 2e-7)),
         lambda x: 0.0 * x + 0.7, 0.5, 1.0, False),
        ("it is too narrow by a tenth at its low end", _around(good, lambda a, b: (
            a + 0.1 * (b - a), b)), lambda x: 2.0 * x, -1.0, 1.0, True),
        ("its ends are 0 and 0.5", lambda f: lambda low, high: (jnp.float32(0), jnp.float32(0.5)),
         lambda x: jnp.exp(-375.0 * (x - 1.63) ** 2), 0.0, 2.0, True),
        ("its ends are nan", _around(good, lambda a, b: (a * jnp.nan, b * jnp.nan)), jnp.exp, 0.0,
         1.0, True)]


def grade_outside(outside: Callable) -> None:
    for wrong, bounds, f, low, high, fails in _cases():
        inputs = "a `bounds` that is right" if wrong == "nothing" else f"a `bounds` where {wrong},"
        x = outside(bounds, f, low, high)
        if x is not None:
            expect(np.ndim(x) == 0 and not isinstance(x, bool | np.bool_),
                   f"for {inputs} one number is wanted, or None, and yours is {shown(x)}")
            expect(low <= float(x) <= high, f"{shown(x)} is not between {low} and {high}")
        if not fails:
            expect(x is None, f"for {inputs} the answer is None, and yours is {shown(x)}" + (
                "\nrounding alone is no violation" if "rounded" in wrong else ""))
            continue
        expect(x is not None, f"for {inputs} there is such a number, and yours is None\n"
               "how many numbers between the ends do you try, and where? Is f of each compared "
               "with both of its bounds, and is no more than rounding let through?"
               + "\na comparison with nan is False" * ("nan" in wrong))
        a, b = bounds(f)(low, high)
        expect(not a <= f(jnp.float32(x)) <= b, f"for {inputs} yours is {shown(x)}, and f of it, "
               f"{shown(f(jnp.float32(x)))}, is between {shown(a)} and {shown(b)}")


_OUTSIDE = """
def outside(bounds, f, low, high):
    lower, upper = bounds(f)(low, high)
    for x in {points}:
        y = f(jnp.float32(x))
        if {test}:
            return {result}
    return None
"""


def _outside_text(points: str = "np.random.default_rng(0).uniform(low, high, 100)",
                  test: str = "not lower - 1e-5 <= y <= upper + 1e-5", result: str = "float(x)"
                  ) -> str:
    return _OUTSIDE.format(points=points, test=test, result=result)


exercise(
    "outside", chapter=CHAPTER, grade=grade_outside, solution=_outside_text(),
    wrong=[(_outside_text(points="(low, high)"), "how many numbers"),
           (_outside_text(points="[(low + high) / 2]"), "how many numbers"),
           (_outside_text(points="(low, (low + high) / 2, high)"), "how many numbers"),
           (_outside_text(points="np.linspace(low, high, 5)"), "how many numbers"),
           (_outside_text(points="np.linspace(low, high, 20)"), "how many numbers"),
           (_outside_text(points="np.linspace(low, (low + high) / 2, 1001)"), "how many numbers"),
           (_outside_text(points="np.linspace((low + high) / 2, high, 1001)"), "how many numbers"),
           (_outside_text(test="not lower <= y <= upper"), "rounding alone"),
           (_outside_text(test="y < lower - 1e-5 or y > upper + 1e-5"), "with nan"),
           (_outside_text(test="not y <= upper + 1e-5"), "both of its bounds"),
           (_outside_text(result="True"), "one number"),
           (_outside_text(result="float(y)"), "between"),
           (_outside_text(points="np.random.default_rng(0).uniform(low - 1, high + 1, 100)"),
            "is not between")],
    right=[_outside_text(points="np.linspace(low, high, 51)")],
    hints=["the two ends are not enough: try many numbers between them, and compare with both "
           "bounds"])


# -- has_no_root -----------------------------------------------------------------------------------

def grade_has_no_root(has_no_root: Callable) -> None:
    bounds = _transformation()
    shift = np.random.default_rng(4).uniform(0.1, 0.4)
    cases = [("x * x + 1", lambda x: x * x + 1.0, -1.0, 1.0, 8, "all pieces lie above 0:\n"
              "is the interval cut into them?"),
             ("x", lambda x: x, -1.0, 1.0, 5, "x has the root 0"),
             ("(x - 0.3) * (x - 0.3)", lambda x: (x - 0.3) * (x - 0.3), 0.0, 1.0, 7, "there is a "
              "root where the function does not change its sign: look at bounds, not at points"),
             ("x * x", lambda x: x * x, 0.0, 1.0, 4, "0 is a root, and lies at the end of a box: a "
              "box that touches 0 proves nothing"),
             ("-1 - exp(x)", lambda x: -1.0 - jnp.exp(x), 0.0, 1.0, 3, "all pieces lie below 0"),
             ("-0.1 - x * x", lambda x: -0.1 - x * x, 0.0, 1.0, 3, "all pieces lie below 0, if "
              "only a little"),
             ("x + 0.7", lambda x: x + 0.7, -1.0, 1.0, 4, "the pieces begin at `low`"),
             ("x - 1.7", lambda x: x - 1.7, 1.0, 2.0, 4, "the pieces end at `high`"),
             ("x * x - x + 0.3", lambda x: x * x - x + 0.3, 0.0, 1.0, 1, "one piece is too coarse: "
              "its box contains 0"),
             ("x * x - x + 0.3", lambda x: x * x - x + 0.3, 0.0, 1.0, 50, "with 50 pieces no box "
              "contains 0: is the interval cut?"),
             ("0 * x", lambda x: 0.0 * x, 1.0, 2.0, 3, "0 is a root everywhere: a box that touches "
              "0 proves nothing"),
             ("x * exp(200 * x)", lambda x: x * jnp.exp(200.0 * x), 0.0, 1.0, 1, "the box of exp "
              "ends at infinity, and infinity times 0 is nan: a bound that is nan proves nothing"),
             ("10 * exp(x)", lambda x: 10.0 * jnp.exp(x), 0.0, 1.0, 1, "a box may be large, and "
              "far from 0"),
             (f"x * x - {shift:.2f}", lambda x: x * x - shift, 0.0, 1.0, 40, "one piece with 0 in "
              "its box is enough for a root")]
    shallow = cases[8][1]
    few = next(n for n in range(2, 50) if _box_is_clear(bounds(shallow), n))
    cases += [("x * x - x + 0.3", shallow, 0.0, 1.0, n, "count the pieces, and their ends")
              for n in (few - 1, few)]
    for text, f, low, high, pieces, hint in cases:
        edges = np.linspace(low, high, pieces + 1, dtype=np.float32)
        lower, upper = map(np.asarray, jax.vmap(bounds(f))(edges[:-1], edges[1:]))
        expected = bool(np.all((lower > 0) | (upper < 0)))
        inputs = f"f(x) = {text} between {low} and {high}, in {pieces} pieces,"
        result = has_no_root(bounds, f, low, high, pieces)
        expect(np.ndim(result) == 0 and np.asarray(result).dtype.kind == "b",
               f"for {inputs} True or False is wanted, and yours is {shown(result)}")
        expect(bool(result) == expected,
               f"for {inputs} the answer is {expected}, and yours is {bool(result)}\n{hint}")


def _box_is_clear(bounded: Callable, pieces: int) -> bool:
    """Whether no box of so many pieces of [0, 1] contains 0."""
    edges = np.linspace(0.0, 1.0, pieces + 1, dtype=np.float32)
    lower, upper = map(np.asarray, jax.vmap(bounded)(edges[:-1], edges[1:]))
    return bool(np.all((lower > 0) | (upper < 0)))


_NO_ROOT = """
def has_no_root(bounds, f, low, high, pieces):
    edges = jnp.linspace(low, high, pieces + 1)
    lower, upper = {boxes}
    return {result}
"""


def _no_root_text(boxes: str = "jax.vmap(bounds(f))(edges[:-1], edges[1:])",
                  result: str = "bool(jnp.all((lower > 0) | (upper < 0)))") -> str:
    return _NO_ROOT.format(boxes=boxes, result=result)


exercise(
    "has_no_root", chapter=CHAPTER, grade=grade_has_no_root, solution=_no_root_text(),
    wrong=[(_no_root_text(boxes="jax.vmap(f)(edges[:-1]), jax.vmap(f)(edges[1:])",
                          result="bool(jnp.all(lower * upper > 0))"), "look at bounds"),
           (_no_root_text(result="bool(jnp.any((lower > 0) | (upper < 0)))"), "has the root"),
           (_no_root_text().replace("linspace(low, high", "linspace(0, high"), "begin at"),
           (_no_root_text().replace("linspace(low, high", "linspace(low, 1"), "end at"),
           (_no_root_text(result="bool(jnp.all(lower > 0))"), "lie below 0"),
           (_no_root_text(result="bool(jnp.all((lower > 0) | (upper < -0.5)))"), "only a little"),
           (_no_root_text(result="bool(jnp.all((lower > 0) | (upper < 0)) "
                                 "& jnp.all(upper - lower < 1))"), "may be large"),
           (_no_root_text(result="bool(jnp.all((lower >= 0) | (upper <= 0)))"), "that touches 0"),
           (_no_root_text(result="bool(jnp.all(jnp.sign(lower) == jnp.sign(upper)))"),
            "a root everywhere"),
           (_no_root_text(boxes="bounds(f)(low, high)"), "is the interval cut"),
           (_no_root_text(result="not bool(jnp.any((lower <= 0) & (upper >= 0)))"),
            "that is nan proves nothing"),
           (_no_root_text(result="(lower > 0) | (upper < 0)"), "True or False")],
    hints=["`jax.vmap(bounds(f))` takes an array of low ends and one of high ends"])


# -- taylor ----------------------------------------------------------------------------------------

def _random_functions(seed: int) -> list[tuple[str, Callable]]:
    a, b, c = map(float, np.random.default_rng(seed).uniform(-1.5, 1.5, 3).round(1))
    return [(f"x + {a}", lambda x: x + a), (f"{a} - x", lambda x: a - x),
            (f"{b} * x", lambda x: b * x), ("x * x", lambda x: x * x),
            ("sin(x)", jnp.sin), ("exp(x)", jnp.exp), ("x * x * x", lambda x: x * x * x),
            (f"sin({a} * x)", lambda x: jnp.sin(a * x)), ("exp(x * x)", lambda x: jnp.exp(x * x)),
            (f"sin({a} * x + {b}) * exp({c} * x) - x * x",
             lambda x: jnp.sin(a * x + b) * jnp.exp(c * x) - x * x),
            (f"exp(sin(x) - {b}) * x", lambda x: jnp.exp(jnp.sin(x) - b) * x)]


def _series(f: Callable, x: Any, v: Any) -> list[float]:
    def velocity(x: Any) -> Any:
        return jax.jvp(f, (x,), (v,))[1]
    return [float(f(x)), float(velocity(x)), float(jax.jvp(velocity, (x,), (v,))[1])]


def _triple(result: Any, inputs: str) -> list:
    expect(isinstance(result, tuple | list) and len(result) == 3,
           f"for {inputs} three numbers are wanted, and yours is {result}")
    expect(not any(isinstance(part, core.Tracer) for part in result),
           f"for {inputs} one of yours is still a tracer: unwrap the result at the end")
    return list(result)


def grade_taylor(taylor: Callable) -> None:
    random = np.random.default_rng(17)
    curved: list[tuple[str, Callable]] = [
        ("x * x", lambda x: x * x), ("sin(x * x)", lambda x: jnp.sin(x * x)),
        ("exp(x * x)", lambda x: jnp.exp(x * x))]
    for k, (text, f) in enumerate((*curved, *_random_functions(23), *curved, *curved)):
        x, v = map(jnp.float32, random.uniform(-1, 1, 2).round(1))
        if k > 13:
            x, v = jnp.float32(0.8 + 0.05 * k * (-1) ** k), jnp.float32(0.7)
        inputs, expected = f"f(x) = {text}, x = {shown(x)} and v = {shown(v)}", _series(f, x, v)
        with wanting(inputs, expected, what="the triple"):
            result = _triple(taylor(f)(x, v), inputs)
        agree(inputs, [*map(float, result)], expected,
              (near(result[:2], expected[:2]) and text in ("sin(x * x)", "exp(x * x)"),
               f"in {text} the operand x * x has an acceleration of its own: `{text[:3]}` adds it, "
               "times the slope there, by the chain rule"),
              (near(result[:2], expected[:2]) and not {*"*()"} & {*text}, "a constant neither "
               "moves nor accelerates"),
              (near(result[:2], expected[:2]) and "*" in text, "the value and the velocity are "
               "right; how often does the product of two velocities occur?"),
              (near(result[:2], expected[:2]), "the value and the velocity are right; "
               "differentiate the velocity once more, by the chain rule"),
              (near(result[0], expected[0]), "the value is right, and the velocity is not"),
              what="the triple", tolerance=1e-3)
    _check_company(taylor)


def _check_company(taylor: Callable) -> None:
    """Constants, other transformations, levels, and what has no rule."""
    result = _triple(taylor(lambda x: 3.0)(1.0, 1.0), "a constant f")
    agree("f(x) = 3.0", [*map(float, result)], [3.0, 0.0, 0.0], what="the triple")
    xs = jnp.array([0.1, 0.7, -0.4])
    for name, run in (("vmap", jax.vmap(taylor(jnp.sin))), ("jit", jax.jit(taylor(jnp.sin)))):
        inputs, expected = f"{name}(taylor(sin)) at {shown(xs)} with v = 1", [
            np.sin(xs), np.cos(xs), -np.sin(xs)]
        with wanting(inputs, expected, (jax.errors.TracerArrayConversionError, "the three parts "
                     "may be tracers of other transformations: rules use `jnp`"),
                     what="the triple"):
            result = _triple(run(xs, jnp.ones(3)), inputs)
        agree(inputs, np.stack(result), np.stack(expected), what="the triple")
    inner = "g(x) = x * taylor(lambda y: x + y)(1.0, 1.0)[1]"
    with wanting(f"{inner} at x = 2 with v = 1", [2.0, 1.0, 0.0], what="the triple"):
        result = _triple(taylor(lambda x: x * taylor(lambda y: x + y)(1.0, 1.0)[1])(2.0, 1.0),
                         inner)
    agree(f"{inner} at x = 2 with v = 1", [*map(float, result)], [2.0, 1.0, 0.0], "the inner "
          "`taylor` takes x for a tracer of its own: compare levels", what="the triple")
    _check_refusal(taylor)


def _check_refusal(taylor: Callable) -> None:
    """A primitive that is none of the five: an error is wanted, with its name."""
    asked = "`lax.lgamma` is none of the five, and should be a NotImplementedError with its name"
    try:
        result = taylor(lax.lgamma)(1.5, 1.0)
    except NotImplementedError as error:
        expect("lgamma" in str(error), f"{asked}: yours says `{error}`")
        return
    except (KeyError, TypeError, AttributeError) as error:
        expect(False, f"{asked}: yours is a {type(error).__name__}")
    expected = _series(lax.lgamma, 1.5, 1.0)
    expect(not near([*map(float, result)], expected, 1e-2), f"{asked}. Yours computes it: `jvp` "
           "of minijax does so, and here you write the trace and its rules yourself")
    expect(False, f"{asked}: yours gives {shown([*map(float, result)])}, in place of an error")


_TAYLOR = """
from minijax import core

class TaylorTracer(core.Tracer):
    __slots__ = ("series",)

    def __init__(self, trace, series):
        self.series = tuple(map(core.as_value, series))
        super().__init__(trace, self.series[0].aval)

class TaylorTrace(core.RuleTrace):
    def __init__(self, parent):
        super().__init__(core.Level(parent), parent)

    def split(self, x):
        return x.series if {owns} else (x, jnp.zeros_like(x), jnp.zeros_like(x))

    def process_primitive(self, primitive, args, params):
        if primitive.name not in SERIES:
            {missing}
        return [TaylorTracer(self, SERIES[primitive.name](*map(self.split, args)))]

def sin_series(x):
    sin, cos = {np}.sin(x[0]), {np}.cos(x[0])
    return sin, cos * x[1], cos * x[2]{curve}

def exp_series(x):
    y = jnp.exp(x[0])
    return y, y * x[1], y * (x[2] + x[1] * x[1])

SERIES = {{
    "add": lambda x, y: [a + b for a, b in zip(x, y)],
    "sub": lambda x, y: [a - b for a, b in zip(x, y)],
    "mul": lambda x, y: (x[0] * y[0], x[1] * y[0] + x[0] * y[1],
                         x[2] * y[0] + {twice}x[1] * y[1] + x[0] * y[2]),
    "sin": sin_series, "exp": exp_series}}

def taylor(f):
    def moved(x, v):
        trace = TaylorTrace(core.current_trace.get())
        start = TaylorTracer(trace, (x, v, jnp.zeros_like(v)))
        out = core.run_with(trace, f, start)
        return {out}
    return moved
"""


def _taylor_text(owns: str = "self.owns(x)", np: str = "jnp", twice: str = "2.0 * ",
                 curve: str = " - sin * x[1] * x[1]",
                 missing: str = 'raise NotImplementedError(f"no series of {primitive.name!r}")',
                 out: str = "trace.split(core.as_value(out))") -> str:
    return _TAYLOR.format(owns=owns, np=np, twice=twice, curve=curve, missing=missing, out=out)


_PASSES = ("outs = primitive.bind_list(*(self.split(x)[0] for x in args), **params)\n"
           "            return [TaylorTracer(self, (y, 0.0 * y, 0.0 * y)) for y in outs]")

exercise(
    "taylor", chapter=CHAPTER, grade=grade_taylor, solution=_taylor_text(),
    wrong=[(_taylor_text(twice=""), "how often does the product"),
           (_taylor_text(curve=""), "by the chain rule"),
           (_taylor_text().replace("cos * x[2] - sin", "x[2] - sin"), "acceleration of its own"),
           (_taylor_text().replace("jnp.zeros_like(x))\n", "jnp.ones_like(x))\n"), "a constant"),
           (_taylor_text().replace("cos * x[2] - sin", "-sin"), "acceleration of its own"),
           (_taylor_text().replace("y * (x[2] + x[1] * x[1])", "y * x[1] * x[1]"),
            "acceleration of its own"),
           (_taylor_text(owns="isinstance(x, TaylorTracer)"), "compare levels"),
           (_taylor_text(np="np"), "rules use `jnp`"),
           (_taylor_text(missing=_PASSES), "in place of an error"),
           (_taylor_text(missing="pass"), "a KeyError"),
           (_taylor_text(out="out"), "three numbers"),
           ("def taylor(f):\n    def moved(x, v):\n        return f(x), jax.grad(f)(x) * v, 0.0\n"
            "    return moved", "the velocity are right"),
           ("def taylor(f):\n    def first(x, v):\n        return jax.jvp(f, (x,), (v,))\n"
            "    def moved(x, v):\n"
            "        (y, dy), (_, ddy) = jax.jvp(lambda x: first(x, v), (x,), (v,))\n"
            "        return y, dy, ddy\n    return moved", "write the trace")],
    hints=["begin with the three classes of intervals, and change what they carry"])
