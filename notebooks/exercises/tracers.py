"""The exercises of chapter 02, *Primitives and tracers*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import lax
from minijax.transforms.api import make_jaxpr, vmap
from minijax.transforms.derivatives import jvp
from minijax.core import Primitive, ShapedArray, Tracer
from minijax.errors import UnexpectedTracerError
from minijax.notebook.checks import agree, exercise, expect, instead_of, shown, wanting

from .ways import names_of

CHAPTER = "02_primitives_and_tracers"


# -- arrives ---------------------------------------------------------------------------------------

def grade_arrives(answer: Any) -> None:
    words = {"jvp", "vmap", "jit"}
    expect(isinstance(answer, list | tuple) and len(answer) == 3 and {*answer} <= words,
           f'three of the words "jvp", "vmap", "jit" are expected, and yours is {answer!r}')
    message = f"yours is {list(answer)}\n"
    one, two, three = answer
    expect(not (one == "vmap" and two == "jvp"), message + "the other way round: the current trace "
           "is that of the transformation entered last, and what stands outside is entered first")
    expect(one == "jvp", message + "the first: `vmap` is entered, and calls the lambda; what is "
           "entered in there?")
    expect(two == "vmap", message + "the second: `jvp` is entered, and calls `jax.vmap(wave)`")
    expect(three != "vmap", message + "the third: inside `vmap`, what does `jax.jit(wave)` do "
           "before `wave` runs?")
    expect(three == "jit", message + "the third: which two are there at all?")


exercise(
    "arrives", chapter=CHAPTER, grade=grade_arrives, solution='["jvp", "vmap", "jit"]',
    wrong=[('["vmap", "jvp", "vmap"]', "the other way round"),
           ('["jvp", "vmap", "vmap"]', "before `wave` runs"),
           ('["vmap", "vmap", "jit"]', "entered in there"),
           ('["jvp", "jvp", "jit"]', "`jvp` is entered, and"),
           ('["JVPTracer", "BatchTracer", "DynamicJaxprTracer"]', "of the words")],
    afterthought="run them: `wave` prints what it got")


# -- product_type ----------------------------------------------------------------------------------

def grade_product_type(product_type: Callable) -> None:
    for rows, columns, dtype in ((4, 3, np.float32), (2, 5, np.int32), (1, 1, np.float32),
                                 (3, 3, np.int32), (7, 2, np.float32)):
        matrix, vector = ShapedArray((rows, columns), dtype), ShapedArray((columns,), dtype)
        expected, inputs = ShapedArray((rows,), dtype), f"{matrix} and {vector}"
        result = product_type(matrix, vector)
        message = f"for {inputs} the type is {expected}, and yours is {result!r}\n"
        expect(isinstance(result, ShapedArray), message + "a type is a ShapedArray: of a shape and "
               "a dtype")
        expect(result.ndim == 1, message + "a matrix times a vector is a vector: its shape is a "
               "tuple of one")
        expect(result.shape == expected.shape, message + "the axis of columns is summed away; "
               "which one is left?")
        expect(result.dtype == dtype, message + "the dtype is that of the factors")
        expect(result == expected, message + "neither factor is weak, so the product is not")
    with instead_of(MemoryError, "", "the types are right, but for a matrix of 10⁹ by 10⁹ your "
                    "memory is too small: nothing need be multiplied, nor made"):
        product_type(ShapedArray((10**9, 10**9), np.float32), ShapedArray((10**9,), np.float32))
    for columns, size in ((3, 4), (1, 3), (3, 1)):
        matrix, vector = ShapedArray((4, columns), np.float32), ShapedArray((size,), np.float32)
        try:
            result, raised = product_type(matrix, vector), False
        except TypeError as error:
            expect("must derive" not in str(error), f"for {matrix} and {vector} yours raises a "
                   "text, and Python refuses that: make a TypeError of it")
            continue
        except (AssertionError, ValueError) as error:
            result, raised = error, True
        expect(raised or not isinstance(result, Exception), f"for {matrix} and {vector} yours "
               f"returns {result!r}: `raise` it")
        expect(False, f"for {matrix} and {vector} a TypeError is expected, and yours is "
               f"{result!r}: there is no product of {columns} columns and {size} numbers")


_PRODUCT = """
def product_type(matrix, vector):
    if {unfit}:
        raise TypeError(f"{{matrix}} times {{vector}}: the sizes do not fit")
    return {type}
"""


def _product(type: str = "ShapedArray(matrix.shape[:1], matrix.dtype)",
             unfit: str = "matrix.shape[1] != vector.shape[0]") -> str:
    return _PRODUCT.format(type=type, unfit=unfit)


exercise(
    "product_type", chapter=CHAPTER, grade=grade_product_type,
    given="from minijax.core import ShapedArray",
    solution=_product(),
    wrong=[
        (_product("vector"), "summed away"),
        (_product("ShapedArray((matrix.shape[0], 1), matrix.dtype)"), "tuple of one"),
        (_product("ShapedArray(matrix.shape[:1], np.float32)"), "that of the factors"),
        (_product('f"{matrix.dtype}[{matrix.shape[0]}]"'), "a type is a ShapedArray"),
        (_product(unfit="False"), "there is no product"),
        (_product().replace("raise", "return"), "`raise` it"),
        (_product().replace("raise TypeError", "raise "), "raises a text"),
        ("def product_type(matrix, vector):\n    assert matrix.shape[1] == vector.shape[0]\n"
         "    return ShapedArray(matrix.shape[:1], matrix.dtype)", "a TypeError is expected"),
        (_product().replace("TypeError", "ValueError"), "a TypeError is expected"),
        (_product(unfit="vector.shape[0] not in (1, matrix.shape[1])"), "there is no product"),
        (_product("ShapedArray((np.zeros(matrix.shape, matrix.dtype) @ np.zeros(vector.shape, "
                  "vector.dtype)).shape, matrix.dtype)"), "nothing need be multiplied"),
    ],
    afterthought="that is the rule `abstract_eval` of such a product; this chapter comes to it",
    hints=["a type has `shape` and `dtype`, like an array"])


# -- span_p ----------------------------------------------------------------------------------------

def grade_span_p(span_p: Any) -> None:
    expect(isinstance(span_p, Primitive), f"the primitive itself is expected, and yours is "
                                          f"{span_p}")
    expect(span_p.multiple_results, "yours has one result: say that there are several when you "
           "make it (`multiple_results=True`); otherwise `bind` gives only the first")
    random = np.random.default_rng(0)
    for shape, dtype in (((2, 2), np.float32), ((3,), np.float32), ((), np.int32), ((4, 1), int)):
        x = jnp.array(random.integers(-9, 10, shape).astype(np.float32), dtype=dtype)
        one = ShapedArray((), x.dtype)
        types = span_p.rule("abstract_eval")(x.aval)
        message = f"for {x.aval} abstract_eval gives [{one}, {one}], and yours {types}\n"
        expect(isinstance(types, list | tuple), message + "a list, of two types")
        expect(len(types) == 2, message + "the type of every result, and there are two")
        expect(all(t.shape == () for t in types), message + "each result is one number; so what is "
               "its shape?")
        expect(all(t.dtype == x.dtype for t in types), message + "the dtype stays")
        expected, result = [np.min(x), np.max(x)], span_p.rule("impl")(np.asarray(x))
        inputs = f"x = {shown(x)}"
        expect(isinstance(result, list | tuple) and len(result) == 2, f"for {inputs} impl gives "
               f"{shown(expected)}, and yours {shown(result)}\na list, of two numbers")
        agree(inputs, result, expected, (shown(result) == shown(expected[::-1]), "the smallest "
              "comes first"), "the smallest and the largest of all, whatever the shape",
              what="impl(x)")
        agree(inputs, span_p.bind(x), expected, what="bind(x)")
    expect(len(make_jaxpr(span_p.bind)(jnp.arange(3.0)).out_avals) == 2, "it should be recorded")


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
         "    abstract_eval=lambda x: [x.update(shape=())] * 2)", "there are several"),
        ('core.Primitive("span", impl=lambda x: [x.min(), x.max()],\n'
         "    abstract_eval=lambda x: [x, x], multiple_results=True)", "what is its shape"),
        ('core.Primitive("span", impl=lambda x: [x.min(), x.max()],\n'
         "    abstract_eval=lambda x: [x.update(shape=())], multiple_results=True)",
         "every result"),
        ('core.Primitive("span", impl=lambda x: [x.min(0), x.max(0)],\n'
         "    abstract_eval=lambda x: [x.update(shape=())] * 2, multiple_results=True)",
         "whatever the shape"),
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

    def chain(n: int) -> Callable:
        def f(x: Any) -> Any:
            for _ in range(n):
                x = jnp.sin(x)
            return x
        return f

    value, aside = 2 * np.sin(1.0), jnp.sin(2.0)
    with instead_of(RecursionError, "", "for 2 * sin(x) at 1 yours calls itself for ever: while "
                    "process_primitive runs, your trace is still the current one, so what it binds "
                    "comes back to it"):
        answer = tally(wave)(1.0)
    message = f"for 2 * sin(x) at 1 the answer is ({value:.5g}, 2), and yours is {answer!r}\n"
    expect(isinstance(answer, tuple | list) and len(answer) == 2, message + "two things: (result, "
           "count)")
    result, count = answer
    expect(not isinstance(result, Tracer), "for 2 * sin(x) at 1 a number is expected, and yours is "
           f"a {type(result).__name__}: the result is still a tracer; take the value out")
    agree("2 * sin(x) at 1", result, value, "the result of the function must not change",
          what="the result")
    agree("2 * sin(x) at 1", count, 2, (count == 1, "after the first operation, what does the "
          "second one see of its result?"), what="the count")
    counted = tally(wave)
    counted(1.0)
    agree("2 * sin(x) at 1, counted once more,", counted(1.0)[1], 2, "the second call begins "
          "where the first has stopped: let each call have its own trace, and the count with it",
          what="the count")

    def pairs(x: Any) -> Any:
        return lax.sort((x, 2.0 * x))[0]
    xs = jnp.arange(3.0)
    agree("a sort of two arrays together,", tally(pairs)(xs)[1], len(make_jaxpr(pairs)(xs).eqns),
          "a primitive with two arguments and two results is applied once", what="the count")
    result, count = tally(lambda x: x + jnp.sin(2.0))(-4.0)
    agree("x + sin(2)", count, 1, "only the sum depends on x; the sine does not", what="the count")
    agree("x + sin(2) at -4", result, np.sin(2.0) - 4, "what does not depend on x is computed, too",
          what="the result")
    agree("a function that gives sin(2), whatever x is,", tally(lambda x: aside)(1.0), (aside, 0),
          what="the answer")
    for n in range(5):
        agree(f"{n} sines, one of the other,", tally(chain(n))(1.0)[1], n, what="the count")
    with instead_of(UnexpectedTracerError, "", "right by itself, but under vmap your trace has no "
                    "parent any more: take the one that is current when the function is called"):
        answer = vmap(lambda x: tally(wave)(x)[0])(jnp.arange(3.0))
    agree("[0, 1, 2], under vmap,", answer, 2 * np.sin(np.arange(3.0)), what="the result")
    outer, _ = tally(lambda y: tally(lambda x: x + jnp.sin(y))(jnp.float32(1.0))[1] + y)(
        jnp.float32(1.0))
    agree("x + sin(y), where y is a tracer of a `tally` around it,", outer, 2, "a tracer need not "
          "be one of yours: ask `owns`", what="the count, and 1,")
    counts = vmap(lambda y: y * tally(lambda x: x + jnp.sin(y))(
        jnp.float32(1.0))[1])(jnp.ones(2))
    agree("x + sin(y), where y is a tracer of a `vmap` around it,", counts, [1, 1], "a tracer need "
          "not be one of yours: ask `owns`", what="the count")


exercise(
    "tally", chapter=CHAPTER, grade=grade_tally, given=LOUD, solution=_tally(),
    wrong=[
        (_tally(first="self.count += 1", second=""), "the sine does not"),
        ("count = 0\n" + _tally(second="global count; count += 1").replace("trace.count", "count"),
         "begins where"),
        (_tally(wrapped="outs"), "what does the second one see"),
        (_tally(first="self.count += any(isinstance(x, core.Tracer) for x in args)", second=""),
         "ask `owns`"),
        (_tally(first="self.count += any(isinstance(x, LoudTracer) for x in args)", second=""),
         "where y is a tracer of a `tally`"),
        (_tally(second="self.count += len(outs)"), "is applied once"),
        (_tally().replace("return outs", "return values"), "is computed, too"),
        (_tally(outs="primitive.bind_list(*values, **params)"), "calls itself"),
        (_tally().replace("trace.value(core.as_value(out)), trace.count",
                            "core.as_value(out), trace.count"), "still a tracer"),
    ],
    afterthought="count the primitives of a gradient: tally(jax.grad(f))",
    hints=["start from LoudTrace.process_primitive, and replace the line that prints"])


def grade_peak(peak: Callable) -> None:
    for x in (1.0, -2.0, 0.5, -4.0, *np.random.default_rng(0).normal(size=5).round(2).tolist()):
        y = np.sin(x) * x
        result = peak(x)
        message = f"for x = {x} the answer is ({y * y:.5g}, {max(y, x):.5g}), and yours "
        expect(isinstance(result, tuple | list) and len(result) == 2,
               message + f"{shown(result)}\ntwo things: the result, and the larger value")
        agree(f"x = {x}", result, (y * y, max(y, x)), (
            shown(result) == shown((max(y, x), y * y)), "the result comes first, then the larger "
            "value"))
    xs = np.array([-2.0, 1.0], np.float32)
    ys, inputs = np.sin(xs) * xs, f"vmap(peak)({shown(xs)})"
    expected, before = (ys * ys, np.maximum(ys, xs)), names_of(peak).get("largest")
    with instead_of(TypeError, "", f"for {inputs} the answer is {shown(expected)}, and yours is an "
                    "error: right for a number, but under vmap a comparison must be one of jnp's"):
        results = vmap(peak)(xs)
    kept = names_of(peak).get("largest")
    expect(kept is before, f"after {inputs} the global `largest` should be {before!r}, and is a "
           f"{type(kept).__name__}: it still catches a tracer; write nothing there")
    agree(inputs, results, expected)
    agree(f"the array x = {shown(xs)}", peak(xs), expected, "the larger of the two, element by "
          "element")
    agree("x = -2, moving at 1,", jvp(lambda x: peak(x)[1], (-2.0,), (1.0,))[1],
          np.sin(-2.0) - 2 * np.cos(-2.0), "the larger value should move with x",
          what="the slope of the larger value")


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
        ("def peak(x):\n    y = jnp.sin(x) * x\n    return y * y, jnp.maximum(jnp.abs(y), x)",
         "for x = -4.0"),
        ("def peak(x):\n    y = jnp.sin(x) * x\n    return jnp.maximum(y, x), y * y",
         "comes first"),
        ("def peak(x):\n    y = jnp.sin(x) * x\n    return y * y, jnp.max(jnp.maximum(y, x))",
         "element by element"),
        ("def peak(x):\n    y = jnp.sin(x) * x\n"
         "    return y * y, jax.lax.stop_gradient(jnp.maximum(y, x))", "should move with x"),
    ])


def grade_depths(depths: Any) -> None:
    expect(np.shape(depths) == (3,), "three numbers are expected, one for each function, and yours "
           f"is {depths!r}")
    one, two, three = (int(d) for d in depths)
    message = f"yours is {list(depths)}\n"
    expect(one != 0, message + "in the first: evaluation has no level; each open transformation "
           "adds one to the depth")
    expect(one == 1, message + "in the first, one transformation is open")
    expect(two == 3, message + "in the second, go from the outside in, and count the names that "
           "are open")
    expect(three != 4, message + "in the third, what has returned is not open any more")
    expect(three == 2, message + "in the third, which transformations have not returned yet?")


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


def grade_exp(exp: Any) -> None:
    mini = _library()
    expect(callable(getattr(exp, "impl", None)), "`mini.exp` is a Primitive with a rule `impl`, "
           f"and yours is {exp!r}")
    result = exp.impl(0.0)
    expect(isinstance(result, list | tuple), "for 0.0 `impl` gives [1.0], and yours gives "
           f"{result!r}: a rule gives a list, here of one number")
    for x in (2.0, 0.0, -1.5):
        agree(f"exp({x})", exp(x), np.exp(x), "NumPy's exponential knows more digits of e",
              tolerance=1e-12)
    expect(callable(getattr(exp, "jvp", None)), "now the rule `jvp`, like that of `sin`")
    result = exp.jvp((0.0,), (1.0,))
    expect(isinstance(result, tuple | list) and len(result) == 2
           and all(isinstance(part, list | tuple) for part in result),
           "for the primal 0.0 and the tangent 1.0 `jvp` gives ([1.0], [1.0]), and yours gives "
           f"{result!r}: two lists, the results and their tangents")
    for x, t in ((0.5, 3.0), (-1.0, 0.5), (0.0, 0.0), (0.25, -2.0)):
        inputs = f"mini.jvp(exp, ({x},), ({t},))"
        agree(inputs, mini.jvp(exp, (x,), (t,)), (np.exp(x), t * np.exp(x)),
              "the tangent of the argument is a factor of that of the result")

    def slope(f: Callable) -> Callable:
        return lambda x: mini.jvp(f, (x,), (1.0,))[1]
    inputs = f"slope(slope(exp))(0.5) the answer is {np.exp(0.5):.5g}, and yours"
    with instead_of(TypeError, "Tracer", f"for {inputs} is an error: the first derivative is "
                    "right, but for the second the rule is given tracers, which know neither NumPy "
                    "nor `*`. Write the rule with `exp` and `mul`"):
        result = slope(slope(exp))(0.5)
    agree("slope(slope(exp))(0.5)", result, np.exp(0.5))
    batch = np.array([0.0, 1.0, -2.0])
    with wanting("mini.vmap(exp)([0, 1, -2])", np.exp(batch),
                 "right for numbers; but `vmap` gives `impl` a whole array"):
        result = mini.vmap(exp)(batch)
    agree("mini.vmap(exp)([0, 1, -2])", result, np.exp(batch))


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
        (_EXP.format("([exp(xs[0])], [exp(xs[0])])"), "is a factor"),
        (_EXP.format("([exp(xs[0])], [mul(exp(xs[0]), ts[0])])").replace(
            "np.exp(x)", "2.71828 ** x"), "more digits of e"),
        (_EXP.format("[exp(xs[0]), mul(exp(xs[0]), ts[0])]"), "two lists"),
        ("import math\n" + _EXP.format("([exp(xs[0])], [mul(exp(xs[0]), ts[0])])").replace(
            "[np.exp(x)]", "[math.exp(x)]"), "a whole array"),
    ],
    hints=["the derivative of exp is exp"])


def grade_spoken(spoken: Callable) -> None:
    mini = _library()

    def wave(x: Any) -> Any:
        return mini.mul(2.0, mini.sin(x))

    def aside(x: Any) -> Any:
        return mini.add(mini.cos(3.0), x)
    scaled = mini.Primitive("scaled", impl=lambda x, by: [by * x])
    both = mini.Primitive("both", impl=lambda x: [np.sin(x), np.cos(x)])
    for f, text, expected in ((wave, "my_wave", ["sin", "mul"]),
                            (aside, "x -> add(cos(3.0), x)", ["add"]),
                            (lambda x: mini.sin(mini.sin(x)), "x -> sin(sin(x))", ["sin", "sin"]),
                            (lambda x: mini.sin(mini.cos(x)), "x -> sin(cos(x))", ["cos", "sin"]),
                            (lambda x: scaled(x, by=2.0), "x -> scaled(x, by=2.0)", ["scaled"]),
                            (lambda x: mini.add(*both.bind(x)), "x -> add(*both(x))",
                             ["both", "add"]),
                            (lambda x: x, "x -> x", [])):
        with instead_of(TypeError, "missing", f"for {text} the list is {expected}, and yours is an "
                        "error: an operation has parameters, which `bind` takes, too, and it may "
                        "have several results"), instead_of(
                        TypeError, "Tracer", f"for {text} the list is {expected}, and yours is an "
                        "error: NumPy was given one of your tracers. Take the values out before "
                        "you run the operation in the parent"):
            result = spoken(f)(1.0)
        message = f"for {text} the list is {expected}, and yours is {result}\n"
        expect(isinstance(result, list), message + "a list is expected")
        expect(all(isinstance(name, str) for name in result), message + "a name is text: a "
               "primitive has it as `.name`")
        expect(result[:2] != ["sin", "mul"] or len(result) == 2, message + "it still has the list "
               "of the first call: a list in the body of a class is one for all its objects; make "
               "it in `__init__`")
        expect(result == expected, message + (
            "in the order in which they are applied" if sorted(result) == sorted(expected) else
            "the cosine is of a number, which does not come from x" if "cos" in result else
            "an operation stands there as often as it is applied" if expected == ["sin"] * 2 else
            "after the first operation, what does the second one see of its result? It may be any "
            "of its arguments"))

    once = spoken(wave)
    first = once(1.0)
    spoken(aside)(1.0)
    expect(first == ["sin", "mul"], f"after a second call the list of the first is {first}, and "
           "was ['sin', 'mul']: make a list for each call")
    again = once(2.0)
    expect(again == ["sin", "mul"], "for my_wave, spoken once and called twice, the second list "
           f"is ['sin', 'mul'], and yours is {again}: make a trace for each call")
    heard = []

    def twice(x: Any) -> Any:
        heard.append(spoken(wave)(x))
        return mini.cos(x)
    outer = spoken(twice)(1.0)
    expect(heard == [["sin", "mul"]] and outer == ["sin", "mul", "cos"], "for a function that "
           "itself asks for spoken(my_wave)(x), and gives cos(x), the lists are ['sin', 'mul'] "
           f"inside and ['sin', 'mul', 'cos'] outside, and yours are {heard[0]} and {outer}")

    def slope(x: Any) -> Any:
        return mini.jvp(wave, (x,), (1.0,))[1]
    result = spoken(slope)(1.0)
    expect({"sin", "cos", "mul"} <= {*result}, "for the slope of my_wave the list has a cosine in "
           f"it, and yours is {result}\nthe rules run in the parent: is that your trace?")
    result = mini.vmap(lambda x: mini.mul(x, len(spoken(wave)(x))))(np.array([1.0, 2.0]))
    agree("vmap(lambda x: mul(x, len(spoken(my_wave)(x)))) of [1, 2]", result, [2.0, 4.0])
    result = mini.vmap(lambda y: mini.mul(y, len(spoken(lambda x: mini.add(mini.sin(y), x))(1.0))))(
        np.array([1.0, 2.0]))
    agree("vmap(lambda y: mul(y, len(spoken(lambda x: add(sin(y), x))(1.0)))) of [1, 2]", result,
          [1.0, 2.0], "the sine is of a tracer of `vmap`, and not of yours: ask `owns`")


_NAMES = """
class NameTrace(RuleTrace):
    def __init__(self, parent):
        super().__init__(parent)
        self.names = []

    def value(self, x):
        return x.value if self.owns(x) else x
{more}
    def process_primitive(self, primitive, args, params):
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


def _names(more: str = "", note: str = "self.names.append(primitive.name)",
           run: str = "primitive.bind(*map(self.value, args), **params)",
           outs: str = "[Tracer(self, value=y) for y in outs]",
           trace: str = "NameTrace(current_trace)", before: str = "") -> str:
    return _NAMES.format(more=more, note=note, run=run, outs=outs, trace=trace, before=before)


exercise(
    "spoken", chapter=CHAPTER, grade=grade_spoken, given=_GIVEN_MINI,
    solution=_names(),
    wrong=[
        (_names(outs="outs"), "what does the second one see"),
        (_names(more="\n    def concerns(self, primitive, args, params):\n        return True\n"),
         "does not come from x"),
        (_names(before="kept = []\n\n", note="self.names = kept; kept.append(primitive.name)"),
         "the list of the first call"),
        ("heard = []\n\n" + _names(note="self.names = heard; heard.append(primitive.name)").replace(
            "trace = NameTrace(", "heard.clear()\n        trace = NameTrace("),
         "a list for each call"),
        (_names(trace="trace").replace("    def named", "    trace = NameTrace(current_trace)\n\n"
                                       "    def named").replace("        trace = trace\n", ""),
         "a trace for each call"),
        (_names(run="primitive.bind(*args, **params)"), "Take the values"),
        (_names(run="primitive.bind(*map(self.value, args))"), "has parameters"),
        (_names(outs="[Tracer(self, value=outs[0])]"), "several results"),
        (_names(note="self.names.append(primitive)"), "a name is text"),
        (_names(note="self.names = sorted([*self.names, primitive.name], reverse=True)"),
         "in the order in which"),
        (_names(note="self.names += [n for n in [primitive.name] if n not in self.names]"),
         "as often as it is applied"),
        (_names(more="\n    def concerns(self, primitive, args, params):\n"
                     "        return any(isinstance(x, Tracer) for x in args)\n"), "ask `owns`"),
    ],
    hints=["`process_primitive` is called for what concerns you: a RuleTrace, what has its tracers",
           "bind the primitive again, on the values; what comes back becomes tracers again"])


def grade_heard(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 2,
           f"a list of two texts is expected, and yours is {answer!r}")
    answer = [str(text).replace(" ", "").replace("float32", "f32") for text in answer]
    message = f"for an array of shape (5, 2) yours is {list(answer)}\n"
    expect(list(answer) != ["f32[5,2]", "f32[2]"], message + "the other way round: in the first, "
           "`loud` stands inside `vmap`, and sees what one example sees")
    expect(answer[0] != "f32[]", message + "`vmap` takes one axis off, and the argument has two")
    expect(answer[0] == "f32[2]", message + "in the first line, `loud` sees one example of five")
    expect(answer[1] == "f32[5,2]", message + "in the second, `vmap` is asked first; what does its "
           "rule for `sin` do?")


exercise(
    "heard", chapter=CHAPTER, grade=grade_heard, solution='["f32[2]", "f32[5,2]"]',
    wrong=[('["f32[5,2]", "f32[2]"]', "the other way round"),
           ('["f32[]", "f32[5,2]"]', "one axis off"),
           ('["f32[2]", "f32[2]"]', "is asked first"), ('"f32[2]"', "of two texts")],
    right=['["float32[2]", "f32[5, 2]"]'])
