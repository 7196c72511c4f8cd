"""The exercises of chapter 02, *Primitives and tracers*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api import make_jaxpr, vmap
from minijax.core import Primitive, ShapedArray, Tracer
from minijax.notebook.checks import (Hint, exercise, expect, instead_of, near,
                                     trouble)

CHAPTER = "02_primitives_and_tracers"


def grade_product_type(answer: Any) -> None:
    expect(isinstance(answer, ShapedArray), "a type is a ShapedArray: of a shape and a dtype")
    expect(answer.ndim == 1, "a matrix times a vector is a vector: its shape is a tuple of one")
    expect(answer.shape != (3,), "the axis of 3 is summed away; which one is left?")
    expect(answer.shape == (4,), "how many numbers come out?")
    expect(answer.dtype == np.float32, "the dtype is that of the factors")
    expect(not answer.weak_type, "neither factor is a Python number, so nothing is weak here")


exercise(
    "product_type", chapter=CHAPTER, grade=grade_product_type,
    given="from minijax.core import ShapedArray",
    solution="ShapedArray((4,), np.float32)",
    wrong=[
        ("ShapedArray((3,), np.float32)", "summed away"),
        ("ShapedArray((4, 1), np.float32)", "tuple of one"),
        ("ShapedArray((4,), np.float64)", "that of the factors"),
        ('"float32[4]"', "ShapedArray"),
    ],
    afterthought="`jax.eval_shape(jnp.matmul, matrix, vector)` asks minijax the same")


def grade_span_p(span_p: Any) -> None:
    expect(isinstance(span_p, Primitive), "the answer is the primitive itself")
    numbers = np.array([[3.0, -1.0], [4.0, 1.5]], np.float32)
    expect(span_p.multiple_results, "say that there are several results, when you make it; "
           "otherwise `bind` gives only the first")
    types = span_p.rule("abstract_eval")(ShapedArray((2, 2), np.float32))
    expect(isinstance(types, list | tuple), "abstract_eval returns a list, of two types")
    expect(len(types) == 2, "abstract_eval gives the type of every result, and there are two")
    expect(all(t.shape == () for t in types), "each result is one number; so what is its shape?")
    found = span_p.rule("impl")(numbers)
    expect(np.ndim(found) == 1 and len(found) == 2, "impl returns a list, of two numbers")
    smallest, largest = span_p.bind(numbers)
    expect(not near(smallest, 4.0), "the smallest comes first")
    expect(near(smallest, -1.0) and near(largest, 4.0), "look at what impl returns for a matrix")
    outs = span_p.bind(np.array([2, 7], np.int32))
    expect(all(out.dtype == np.int32 for out in outs), "integers have integer results")
    expect(len(make_jaxpr(span_p.bind)(numbers).out_avals) == 2, "it should be recorded, too")


exercise(
    "span_p", chapter=CHAPTER, grade=grade_span_p,
    given="from minijax import core\nfrom minijax.core import ShapedArray",
    solution="""
span_p = core.Primitive(
    "span",
    impl=lambda x: [x.min(), x.max()],
    abstract_eval=lambda x: [x.update(shape=()), x.update(shape=())],
    multiple_results=True)
""",
    wrong=[
        ('core.Primitive("span", impl=lambda x: [x.min()],\n'
         "    abstract_eval=lambda x: [x.update(shape=())] * 2, multiple_results=True)",
         "of two numbers"),
        ('core.Primitive("span", impl=lambda x: [x.min(), x.max()],\n'
         "    abstract_eval=lambda x: x.update(shape=()), multiple_results=True)", "of two types"),
        ('core.Primitive("span", impl=lambda x: [x.min(), x.max()],\n'
         "    abstract_eval=lambda x: [x.update(shape=())] * 2)", "several results"),
        ('core.Primitive("span", impl=lambda x: [x.min(), x.max()],\n'
         "    abstract_eval=lambda x: [x, x], multiple_results=True)", "what is its shape"),
        ('core.Primitive("span", impl=lambda x: [x.min(), x.max()],\n'
         "    abstract_eval=lambda x: [x.update(shape=())], multiple_results=True)",
         "every result"),
        ('core.Primitive("span", impl=lambda x: [x.max(), x.min()],\n'
         "    abstract_eval=lambda x: [x.update(shape=())] * 2, multiple_results=True)",
         "comes first"),
    ],
    hints=["`x.update(shape=())` is a type like that of x, of one number"])


LOUD = '''
from minijax import core


class LoudTracer(core.Tracer):
    __slots__ = ("value",)

    def __init__(self, trace, value):
        self.level, self.aval, self.value = trace.level, value.aval, value


class LoudTrace(core.Trace):
    def __init__(self, parent, name):
        super().__init__(core.Level(parent), parent)
        self.name = name

    def value(self, x):
        return x.value if self.owns(x) else x

    def process_primitive(self, primitive, args, params):
        values = [self.value(x) for x in args]
        outs = core.run_with(self.parent, primitive.bind_list, *values, **params)
        if not any(self.owns(x) for x in args):
            return outs
        return [LoudTracer(self, y) for y in outs]
'''

TALLY = '''
def tally(f):
    class CountTrace(LoudTrace):
        count = 0

        def process_primitive(self, primitive, args, params):
            {first}
            values = [self.value(x) for x in args]
            outs = {outs}
            if not any(self.owns(x) for x in args):
                return outs
            {second}
            return {wrapped}

    def counting(x):
        trace = CountTrace(core.current_trace.get(), "count")
        out = core.run_with(trace, f, LoudTracer(trace, core.as_value(x)))
        return trace.value(core.as_value(out)), trace.count
    return counting
'''
PARTS = {"first": "", "second": "self.count += 1",
         "outs": "core.run_with(self.parent, primitive.bind_list, *values, **params)",
         "wrapped": "[LoudTracer(self, y) for y in outs]"}


def _tally(**changed: str) -> str:
    lines = TALLY.format(**{**PARTS, **changed}).splitlines()
    return "\n".join(line for line in lines if line.strip() or not line)


def grade_tally(tally: Callable) -> None:
    def wave(x: Any) -> Any:
        return jnp.multiply(2.0, jnp.sin(x))

    try:
        found = tally(wave)(1.0)
    except RecursionError:
        expect(False, "it calls itself for ever: while process_primitive runs, your trace is still "
               "the current one, so what it binds comes back to it")
    expect(isinstance(found, tuple | list) and len(found) == 2,
           "return two things: (result, count)")
    value, count = found
    expect(not isinstance(value, Tracer), "the result is still a tracer: take the value out")
    expect(near(value, 2.0 * np.sin(1.0)), "the result of the function must not change")
    expect(count != 1, "2 * sin(x) has two primitives on its way from x; if you count one, what "
           "does the second one see of the first?")
    expect(count == 2, f"2 * sin(x) has two primitives, and you count {count}")
    expect(tally(wave)(1.0)[1] == 2, "right the first time, but the second call begins where the "
           "first has stopped: let each call have its own trace, and the count with it")
    expect(tally(lambda x: x + jnp.sin(2.0))(1.0)[1] == 1,
           "in x + sin(2) only the sum depends on x; the sine does not")
    expect(near(vmap(lambda x: tally(wave)(x)[0])(jnp.arange(3.0)), 2 * np.sin(np.arange(3.0))),
           "right by itself, but not under vmap")


exercise(
    "tally", chapter=CHAPTER, grade=grade_tally, given=LOUD, solution=_tally(),
    wrong=[
        (_tally(first="self.count += 1", second=""), "the sine does not"),
        ("count = 0\n" + _tally(second="global count; count += 1").replace("trace.count", "count"),
         "begins where"),
        (_tally(wrapped="outs"), "what does the second one see"),
        (_tally(outs="primitive.bind_list(*values, **params)"), "calls itself"),
        (_tally().replace("trace.value(core.as_value(out)), trace.count",
                            "core.as_value(out), trace.count"), "still a tracer"),
    ],
    afterthought="count the primitives of a gradient: tally(jax.grad(f))",
    hints=["start from LoudTrace.process_primitive, and replace the line that prints"])


def grade_peak(peak: Callable) -> None:
    found = peak(1.0)
    expect(isinstance(found, tuple | list) and len(found) == 2,
           "return two things: the result, and the largest value")
    expect(not (near(found[0], 1.0) and near(found[1], np.sin(1.0) ** 2)),
           "the result comes first, then the largest value")
    expect(near(found[0], np.sin(1.0) ** 2) and near(found[1], 1.0),
           "at 1 the result is the square of sin(1), and the largest value is 1")
    xs = np.array([-2.0, 1.0], np.float32)
    ys = np.sin(xs) * xs
    before = peak.__globals__.get("largest")
    try:
        results, largest = vmap(peak)(xs)
    except TypeError:
        expect(False, "right for a number, but not under vmap: the comparison must be one of jnp's")
    expect(peak.__globals__.get("largest") is before,
           "the result is right, but the global still catches a tracer: write nothing there")
    expect(near(results, ys ** 2), "right for one number, but not under vmap")
    expect(near(largest, np.maximum(ys, xs)), "the second result is the larger of y and x")


exercise(
    "peak", chapter=CHAPTER, grade=grade_peak, given="largest = None",
    solution="""
def peak(x):
    y = jnp.sin(x) * x
    return y * y, jnp.maximum(y, x)
""",
    wrong=[
        ("def peak(x):\n    y = jnp.sin(x) * x\n    return y * y", "two things"),
        ("def peak(x):\n    global largest\n    y = jnp.sin(x) * x\n"
         "    largest = jnp.maximum(y, x)\n    return y * y, largest", "still catches a tracer"),
        ("def peak(x):\n    y = jnp.sin(x) * x\n    return y * y, max(y, x)", "under vmap"),
        ("def peak(x):\n    y = jnp.sin(x) * x\n    return jnp.maximum(y, x), y * y",
         "comes first"),
    ])


def grade_depths(depths: Any) -> None:
    expect(np.shape(depths) == (3,), "three numbers, one for each function")
    one, two, three = (int(d) for d in depths)
    expect(one != 0, "evaluation has no level; each open transformation adds one to the depth")
    expect(one == 1, "in the first, one transformation is open")
    expect(two == 3, "in the second, go from the outside in, and count the names that are open")
    expect(three != 4, "in the third, what has returned is not open any more")
    expect(three == 2, "in the third, which transformations have not returned yet?")


exercise(
    "depths", chapter=CHAPTER, grade=grade_depths,
    solution="[1, 3, 2]",
    wrong=[
        ("[0, 2, 1]", "no level"),
        ("[1, 2, 2]", "in the second"),
        ("[1, 3, 4]", "has returned"),
    ],
    afterthought="run them: first(points), second(points), third(points)")


# ---------------------------------------------------------------- the reader's library

_GIVEN_MINI = "%mini begin 02"


def _library() -> Any:
    from minijax.notebook.library import library
    return library.module


def _near_or(found: Any, wanted: Any, given: str) -> None:
    expect(near(found, wanted), f"for {given} the answer is {np.round(wanted, 4)}, "
           f"and yours {np.round(found, 4)}")


def grade_exp(exp: Any) -> None:
    mini = _library()
    expect(callable(getattr(exp, "impl", None)), "`mini.exp` is a Primitive with a rule `impl`")
    expect(isinstance(exp.impl(0.0), list), "a rule gives a list, here of one number")
    _near_or(exp(2.0), np.exp(2.0), "exp(2.0)")
    expect(callable(getattr(exp, "jvp", None)), "now the rule `jvp`, as `sin` has one")
    expect(isinstance(exp.jvp((0.5,), (1.0,)), tuple), "`jvp` gives two lists, the results and "
           "their tangents")
    _near_or(mini.jvp(exp, (0.5,), (3.0,))[1], 3 * np.exp(0.5),
             "mini.jvp(exp, (0.5,), (3.0,)), the second part,")

    def slope(f: Callable) -> Callable:
        return lambda x: mini.jvp(f, (x,), (1.0,))[1]
    try:
        second = slope(slope(exp))(0.5)
    except Exception as error:
        raise Hint(f"{trouble(error)}\nThe first derivative is right; for the second one the rule "
                   "is given tracers, which know neither NumPy nor `*`: write the rule with `exp` "
                   "and `mul`") from error
    _near_or(second, np.exp(0.5), "the second derivative at 0.5")


_EXP = """
exp = Primitive("exp", impl=lambda x: [np.exp(x)],
                jvp=lambda xs, ts: {})
"""

exercise(
    "exp", chapter=CHAPTER, grade=grade_exp, given=_GIVEN_MINI,
    solution=_EXP.format("([exp(xs[0])], [mul(exp(xs[0]), ts[0])])"),
    wrong=[
        ('exp = Primitive("exp", impl=lambda x: [np.exp(x)])', "now the rule `jvp`"),
        ('exp = Primitive("exp", impl=lambda x: np.exp(x))', "gives a list"),
        (_EXP.format("([exp(xs[0])], [np.exp(xs[0]) * ts[0]])"), "know neither NumPy nor"),
        (_EXP.format("([exp(xs[0])], [exp(xs[0])])"), "the answer is"),
        (_EXP.format("[exp(xs[0]), mul(exp(xs[0]), ts[0])]"), "two lists"),
    ],
    hints=["the derivative of exp is exp"])


def grade_spoken(spoken: Callable) -> None:
    mini = _library()

    def wave(x: Any) -> Any:
        return mini.mul(2.0, mini.sin(x))

    def aside(x: Any) -> Any:
        return mini.add(mini.cos(3.0), x)
    for f, name, wanted in ((wave, "my_wave", ["sin", "mul"]), (aside, "lambda x: add(cos(3.0), x)",
                                                                ["add"])):
        with instead_of(TypeError, "Tracer", "NumPy was given one of your tracers: take the values "
                        "out before you run the operation in the parent"):
            got = spoken(f)(1.0)
        expect(isinstance(got, list), f"spoken(f)(x) is a list; yours is {got!r}")
        expect(got[:2] != ["sin", "mul"] or len(got) == 2, "called a second time, it still has the "
               "first list: a list in the body of a class is one for all its objects; make it in "
               "`__init__`")
        expect(got == wanted, f"for {name} the list is {wanted}, and yours {got}")

    def slope(x: Any) -> Any:
        return mini.jvp(wave, (x,), (1.0,))[1]
    got = spoken(slope)(1.0)
    expect({"sin", "cos", "mul"} <= {*got},
           f"the derivative of my_wave needs a cosine, too; your list is {got}")
    got = mini.vmap(lambda x: mini.mul(x, len(spoken(wave)(x))))(np.array([1.0, 2.0]))
    _near_or(got, [2.0, 4.0], "spoken under vmap")


_NAMES = """
class NameTrace(Trace):
    def __init__(self, parent):
        super().__init__(parent)
        self.names = []

    def value(self, x):
        return x.value if self.owns(x) else x

    def {method}(self, primitive, args, params):
        {note}
        outs = {run}
        return {outs}


{before}def spoken(f):
    def named(x):
        trace = {trace}
        run_with(trace, f, Tracer(trace, value=x))
        return trace.names
    return named
"""


def _names(method: str = "interpret", note: str = "self.names.append(primitive.name)",
           run: str = "run_with(self.parent, primitive.bind, *map(self.value, args), **params)",
           outs: str = "[Tracer(self, value=y) for y in outs]",
           trace: str = "NameTrace(current)", before: str = "") -> str:
    return _NAMES.format(method=method, note=note, run=run, outs=outs, trace=trace, before=before)


exercise(
    "spoken", chapter=CHAPTER, grade=grade_spoken, given=_GIVEN_MINI,
    solution=_names(),
    wrong=[
        (_names(outs="outs"), "the list is ['sin', 'mul'], and yours ['sin']"),
        (_names(method="process"), "the list is ['add']"),
        (_names(before="kept = []\n\n", note="self.names = kept; kept.append(primitive.name)"),
         "still has the first list"),
        (_names(run="run_with(self.parent, primitive.bind, *args, **params)"), "take the values"),
        (_names(note="self.names.append(primitive)"), "the list is"),
    ],
    hints=["`interpret` is called for what concerns you; `process` for everything",
           "run the operation on the values, in the parent; what comes back becomes tracers again"])


def grade_heard(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 2, "a list of two texts is wanted")
    expect(list(answer) != ["f32[5,2]", "f32[2]"], "the other way round: in the first, `loud` "
           "stands inside `vmap`, and sees what one example sees")
    expect(answer[0] != "f32[]", "`vmap` takes one axis off, and the argument has two")
    expect(answer[0] == "f32[2]", "in the first line, `loud` sees one example of five")
    expect(answer[1] == "f32[5,2]", "in the second, `vmap` is asked first; what does its rule for "
           "`sin` do?")


exercise(
    "heard", chapter=CHAPTER, grade=grade_heard, solution='["f32[2]", "f32[5,2]"]',
    wrong=[('["f32[5,2]", "f32[2]"]', "the other way round"),
           ('["f32[]", "f32[5,2]"]', "one axis off"),
           ('["f32[2]", "f32[2]"]', "is asked first"), ('"f32[2]"', "of two texts")])
