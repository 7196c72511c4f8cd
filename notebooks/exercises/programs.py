"""The exercises of chapter 06, *Programs as data*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core.jaxpr import Literal, subjaxprs
from minijax.notebook.checks import agree, exercise, expect, instead_of, wanting

CHAPTER = "06_programs_as_data"
_GIVEN = "from minijax.core.jaxpr import ClosedJaxpr, Literal, Var"
_GIVEN_MINI = "%mini begin 06"


def _library() -> Any:
    from minijax.notebook.library import library
    return library.module


def _program(f: Callable, *args: Any) -> Any:
    return jax.make_jaxpr(f)(*args).jaxpr


# -- equations -------------------------------------------------------------------------------------

def grade_equations(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 3,
           f"three numbers are expected, for f, g and h, and yours is {answer!r}")
    f, g, h = answer
    message = f"yours is {list(answer)}\n"
    expect(f != 2,
           message + "f: the loop is Python's; what happens in each of its rounds is written")
    expect(f != 3, message + "f: and the sine before the loop?")
    expect(f == 4, message + "f: one equation for each operation that is done to a tracer")
    expect(g != 2,
           message + "g: the sine is Python's, of a number: done before anything is written")
    expect(g == 1, message + "g: what is left for the program to do?")
    expect(h != 1, message + "h: an operation of `jnp` is written down, whoever reads its result")
    expect(h != 3, message + "h: Python's `if` has taken one way while the program was written")
    expect(h == 2, message + "h: count the operations of `jnp` on the way that was taken")


exercise("equations", chapter=CHAPTER, grade=grade_equations, solution="[4, 1, 2]",
         wrong=[("[2, 1, 2]", "Python's"), ("[3, 1, 2]", "before the loop"),
                ("[4, 2, 2]", "before anything is written"), ("[4, 1, 1]", "whoever reads"),
                ("[4, 1, 3]", "taken one way"), ("4", "three numbers")],
         afterthought="put them into a cell, and print the programs")


# -- eval_in_steps ---------------------------------------------------------------------------------

def _steps(mini: Any, jaxpr: Any, *args: Any) -> list[Any]:
    values, results = dict(zip(jaxpr.invars, args, strict=True)), []
    for eqn in jaxpr.eqns:
        inputs = [x.value if isinstance(x, mini.Literal) else values[x] for x in eqn.invars]
        outs = eqn.primitive.bind(*inputs, **eqn.params)
        values.update(zip(eqn.outvars, outs, strict=True))
        results += outs
    return results


def grade_eval_in_steps(eval_in_steps: Callable) -> None:
    mini = _library()
    row = np.array([1.0, 2.0, 4.0])
    for f, arg, text in ((lambda x: mini.sin(x) * x, 0.5, "sin(x) * x"),
                         (lambda x: mini.exp(x) + 2.0, 1.0, "exp(x) + 2"),
                         (lambda x: mini.sum(x * x) + 1.0, row, "sum(x * x) + 1"),
                         (lambda x: mini.sum(mini.dot(x, row)), np.ones((2, 3)), "sum(dot(x, y))")):
        program = mini.make_jaxpr(f)(arg)
        inputs, expected = f"the program of {text} at x = {np.asarray(arg).tolist()}", None
        with instead_of(KeyError, "Literal", f"for {inputs}, you look for the value of a Literal "
                        "among those of the variables: it is not a variable, and has its "
                        "`.value`"), \
             instead_of(TypeError, "missing", f"for {inputs}, a primitive misses what it must know "
                        "besides arrays: the parameters of the equation"):
            result = eval_in_steps(program, arg)
        expected = _steps(mini, program, arg)
        expect(isinstance(result, list), f"for {inputs} a list of {len(expected)} results is "
               f"expected, and yours is {result!r}")
        expect(len(result) == len(expected), f"for {inputs} there are {len(expected)} results, one "
               f"for each equation, and yours are {len(result)}: {result}")
        for k, (one, other) in enumerate(zip(result, expected, strict=True)):
            agree(inputs, one, other, (isinstance(one, list), "a list in the list: add "
                  "the results of an equation, not their list"),
                  "keep them in the order of the equations",
                  what=f"result {k + 1} of {len(expected)}")
    both = mini.Primitive("both", impl=lambda x, y: [x - y, x * y])
    program = mini.make_jaxpr(lambda x, y: both.bind(x, y)[1] + y)(1.0, 1.0)
    inputs = "a primitive with the results x - y and x * y, and x * y + y, at x = 3 and y = 2"
    why = "a program may have several arguments, and an equation several results"
    with wanting(inputs, [1.0, 6.0, 8.0], why):
        result = eval_in_steps(program, 3.0, 2.0)
    agree(inputs, result, [1.0, 6.0, 8.0], why)
    program = mini.make_jaxpr(lambda x: mini.sin(x) * x)(1.0)
    inputs = "mini.jvp of x -> eval_in_steps(program of sin(x) * x, x)[-1] at 0.5"
    slope = np.sin(0.5) + np.cos(0.5) / 2
    with instead_of(TypeError, "", f"for {inputs} the slope is {slope:.5f}, "
                    "and yours is an error: numbers go well, but a tracer ends in NumPy. `bind` "
                    "asks the current trace; `impl` asks nobody"):
        _, slope = mini.jvp(lambda x: eval_in_steps(program, x)[-1], (0.5,), (1.0,))
    agree(inputs, slope, np.sin(0.5) + np.cos(0.5) / 2, what="the slope")


_STEPS = """
def eval_in_steps(jaxpr, *args):
    values, steps = dict(zip(jaxpr.invars, args)), []
    for eqn in jaxpr.eqns:
        inputs = [{read} for x in eqn.invars]
        outs = eqn.primitive.{how}(*inputs{params})
        values.update(zip(eqn.outvars, outs))
        steps {note} outs
    return {result}
"""


def _steps_text(read: str = "x.value if isinstance(x, Literal) else values[x]", how: str = "bind",
                params: str = ", **eqn.params", note: str = "+=", result: str = "steps") -> str:
    return _STEPS.format(read=read, how=how, params=params, note=note, result=result)


exercise(
    "eval_in_steps", chapter=CHAPTER, grade=grade_eval_in_steps, given=_GIVEN_MINI,
    solution=_steps_text(),
    wrong=[(_steps_text(how="impl"), "asks nobody"),
           (_steps_text(read="values[x]"), "it is not a variable"),
           (_steps_text(params=""), "the parameters of the equation"),
           (_steps_text(result="steps[-1:]"), "one for each equation"),
           (_steps_text(result="steps[::-1]"), "in the order of the equations"),
           (_steps_text().replace("args)), []", "args[:1])), []"), "several arguments"),
           (_steps_text(note="+= outs[:1] #"), "an equation several results"),
           (_steps_text(result="tuple(steps)"), "a list of 2 results")],
    hints=["begin from `eval_jaxpr`, which forgets the results on its way"])


# -- frozen ----------------------------------------------------------------------------------------

def grade_frozen(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 3,
           f"three numbers are expected, in the order of the list, and yours is {answer!r}")
    run, called, length = answer
    message = f"yours is {list(answer)}\n"
    expect(run != 15, message + "the first: the program was written before n was 5, and does not "
           "look again")
    expect(run == 6, message + "the first: what was n when the program was written?")
    expect(called != 6, message + "the second: this calls `g` itself, which is Python")
    expect(called == 15, message + "the second: what is n when `g` is called?")
    expect(length not in (0, 1), message + "the third: `g` ran while the program was written, and "
           "again when it was called")
    expect(length != 3,
           message + "the third: `append` is not an operation, so it is not in the program")
    expect(length == 2, message + "the third: how often did Python run the body of `g`?")


exercise("frozen", chapter=CHAPTER, grade=grade_frozen, solution="[6.0, 15.0, 2]",
         wrong=[("[15.0, 15.0, 2]", "does not look again"), ("[6.0, 6.0, 2]", "which is Python"),
                ("[6.0, 15.0, 3]", "not an operation"), ("[6.0, 15.0, 1]", "while the program"),
                ("[3.0, 15.0, 2]", "what was n"), ("6.0", "three numbers")])


# -- kept_names ------------------------------------------------------------------------------------

def grade_kept_names(answer: Any) -> None:
    expect(isinstance(answer, set | frozenset), "a set of names is expected, such as "
           f"`{{'add', 'neg'}}`, and yours is {answer!r}")
    message = f"yours is {sorted(map(str, answer))}\n"
    expect("exp" not in answer, message + "nobody reads b")
    expect("sin" in answer, message + "c is read, and is made of a: so what reads a?")
    expect("mul" in answer, message + "the product is what is returned")
    expect(answer == {"sin", "cos", "mul"}, message + "go back from the output; keep what you meet")


exercise("kept_names", chapter=CHAPTER, grade=grade_kept_names, solution='{"sin", "cos", "mul"}',
         wrong=[('{"sin", "exp", "cos", "mul"}', "nobody reads b"),
                ('{"cos", "mul"}', "what reads a"), ('{"sin", "cos"}', "is returned"),
                ('["sin", "cos", "mul"]', "a set of names")])


# -- swapped ---------------------------------------------------------------------------------------

def grade_swapped(swapped: Callable) -> None:
    primitives = [x for x in vars(_library()).values() if isinstance(x, _library().Primitive)]
    before = [dict(vars(primitive)) for primitive in primitives]
    try:
        _grade_swapped(swapped)
    finally:  # an answer may have changed the primitives themselves
        for primitive, fields in zip(primitives, before, strict=True):
            vars(primitive).update(fields)


def _grade_swapped(swapped: Callable) -> None:
    mini = _library()
    cosine = mini.Primitive("cosine", impl=lambda x: [np.cos(x)])
    for f, g, text in (
            (lambda x: mini.exp(mini.sin(x)), lambda x: np.exp(np.cos(x)), "exp(sin(x))"),
            (lambda x: mini.exp(mini.sin(x)) * mini.sin(x * 2.0),
             lambda x: np.exp(np.cos(x)) * np.cos(2 * x), "exp(sin(x)) * sin(2 x)"),
            (lambda x: x * 2.0, lambda x: x * 2.0, "2 x"),
            (lambda x: mini.sum(mini.sin(x)), np.cos, "sum(sin(x))"),
            (lambda x: (mini.sin(x), x * 2.0), np.cos, "(sin(x), 2 x)")):
        program = mini.make_jaxpr(f)(1.0)
        before = [eqn.primitive.name for eqn in program.eqns]
        expected = ["cosine" if name == "sin" else name for name in before]
        inputs = f'swapped(program of {text}, "sin", cosine)'
        new = swapped(program, "sin", cosine)
        expect(isinstance(new, mini.Jaxpr), f"for {inputs} a program is expected, a `mini.Jaxpr`, "
               f"and yours is a {type(new).__name__}")
        after = [eqn.primitive.name for eqn in program.eqns]
        expect(after == before, f"for {inputs} the old program must stay {before}, and is now "
               f"{after}: make new equations, and a new program of them")
        names = [eqn.primitive.name for eqn in new.eqns]
        expect(names == expected, f"for {inputs} the operations are {expected}, and yours are "
               f"{names}\n"
               + ("there is a sine left" if "sin" in names else "the others must stay"))
        for x in (0.0, 1.0, -2.5):
            with instead_of(KeyError, "", f"for {inputs} a variable is read that no equation of "
                            "yours gives: the names of results must stay as they are"), \
                    instead_of(TypeError, "'axes'", f"for {inputs} a `sum` has lost the parameter "
                               "`axes`: only the primitive changes"):
                results = mini.eval_jaxpr(new, x)
            agree(f"{inputs} at {x}", results[0], g(x), "the outputs are the same variables as "
                  "before")
            expect(len(results) == len(program.outvars), f"for {inputs} the number of outputs is "
                   f"{len(program.outvars)}, and yours is {len(results)}")
    largest = mini.Primitive("largest", impl=lambda x, axes: [np.max(x, axis=axes)])
    program = mini.make_jaxpr(lambda x: mini.sum(x, 0))(np.ones((2, 3)))
    matrix = np.array([[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]])
    inputs = 'swapped(program of sum(x, 0), "sum", largest)'
    with wanting(inputs, matrix.max(0), "the parameters, such as `axes`, stay with the equation"):
        result = mini.eval_jaxpr(swapped(program, "sum", largest), matrix)[0]
    agree(inputs, result, matrix.max(0))
    over = mini.Primitive("over", impl=lambda x, y: [np.divide(x, y)])
    new = swapped(mini.make_jaxpr(lambda x: mini.exp(x) - x)(1.0), "sub", over)
    agree('swapped(program of exp(x) - x, "sub", over) at 2.0', mini.eval_jaxpr(new, 2.0)[0],
          np.exp(2.0) / 2.0, "the inputs of an equation stay in their order")
    inputs = 'swapped(program of sin(x) - y, "sin", cosine) at x = 1 and y = 2'
    program = mini.make_jaxpr(lambda x, y: mini.sin(x) - y)(1.0, 2.0)
    with wanting(inputs, np.cos(1.0) - 2.0, "the new program has all inputs of the old one"):
        result = mini.eval_jaxpr(swapped(program, "sin", cosine), 1.0, 2.0)[0]
    agree(inputs, result, np.cos(1.0) - 2.0)
    sinh = mini.Primitive("sinh", impl=lambda x: [np.sinh(x)])
    program = mini.make_jaxpr(lambda x: sinh(mini.sin(x)))(1.0)
    names = [eqn.primitive.name for eqn in swapped(program, "sin", cosine).eqns]
    expect(names == ["cosine", "sinh"], 'for swapped(program of sinh(sin(x)), "sin", cosine) the '
           f"operations are ['cosine', 'sinh'], and yours are {names}\nequations of the primitive "
           "named `old`, and no others, are changed")


_MINI = """
from minijax.notebook.library import library
library.begin("06")
import mini
"""
_SWAPPED = """
def swapped(jaxpr, old, new):
    eqns = [{eqn} for eqn in jaxpr.eqns]
    return {result}
"""


def _swapped_text(eqn: str = "eqn._replace(primitive=new) if eqn.primitive.name == old else eqn",
                  result: str = "mini.Jaxpr(jaxpr.invars, jaxpr.outvars, eqns)") -> str:
    return _SWAPPED.format(eqn=eqn, result=result)


exercise(
    "swapped", chapter=CHAPTER, grade=grade_swapped, given=_MINI, solution=_swapped_text(),
    wrong=[("def swapped(jaxpr, old, new):\n"
            "    eqns = [e._replace(primitive=new, invars=e.invars[::-1]) if "
            "e.primitive.name == old else e\n            for e in jaxpr.eqns]\n"
            "    return mini.Jaxpr(jaxpr.invars, jaxpr.outvars, eqns)", "stay in their order"),
           (_swapped_text(result="eqns"), "a program is expected"),
           (_swapped_text(result="mini.Jaxpr(jaxpr.invars, jaxpr.outvars[:1], eqns)"),
            "the number of outputs"),
           (_swapped_text(result="mini.Jaxpr(jaxpr.invars[:1], jaxpr.outvars, eqns)"),
            "all inputs"),
           (_swapped_text("eqn._replace(primitive=new) if old in eqn.primitive.name else eqn"),
            "and no others"),
           (_swapped_text("eqn._replace(primitive=new, params={}) if eqn.primitive.name == old "
                          "else eqn"), "stay with the equation"),
           (_swapped_text("eqn._replace(primitive=new)"), "the others must stay"),
           (_swapped_text("eqn"), "a sine left"),
           (_swapped_text("mini.JaxprEqn(eqn.invars, eqn.outvars, new if eqn.primitive.name == old "
                          "else eqn.primitive, {})"), "has lost the parameter"),
           (_swapped_text(result="mini.Jaxpr(jaxpr.invars, eqns[-1].outvars, eqns)"),
            "same variables as before"),
           (_swapped_text("mini.JaxprEqn(eqn.invars, tuple(mini.Var(v.aval) for v in eqn.outvars), "
                          "new, eqn.params) if eqn.primitive.name == old else eqn"),
            "names of results must stay"),
           ("def swapped(jaxpr, old, new):\n    for eqn in jaxpr.eqns:\n"
            "        if eqn.primitive.name == old:\n            eqn.primitive.name = 'cosine'\n"
            "            eqn.primitive.impl = new.impl\n    return jaxpr", "make new equations")])


# -- depth -----------------------------------------------------------------------------------------

def _depth(jaxpr: Any) -> int:
    depths: dict[Any, int] = {}

    def of(atom: Any) -> int:
        return 0 if isinstance(atom, Literal) else depths.get(atom, 0)

    for eqn in jaxpr.eqns:
        deepest = max(map(of, eqn.invars), default=0)
        depths.update((v, deepest + 1) for v in eqn.outvars)
    return max(map(of, jaxpr.outvars), default=0)


def _unread(x: Any) -> Any:
    jnp.sin(jnp.sin(jnp.sin(x)))
    return x * 2.0


def _some_function(seed: int) -> Callable:
    """A function of a few random operations."""
    def f(x: Any) -> Any:
        random, values = np.random.default_rng(seed), [x]
        for _ in range(seed % 5 + 2):
            one, two = (values[k] for k in random.integers(0, len(values), 2))
            values.append([jnp.sin, jnp.exp][seed % 2](one) if random.random() < 0.5 else one + two)
        return values[-1]
    return f


def grade_depth(depth: Callable) -> None:
    outside = jnp.arange(3.0)
    for f, text in ((lambda x: jnp.sin(jnp.sin(jnp.sin(x))), "sin(sin(sin(x)))"),
                    (lambda x: (jnp.sin(x) + jnp.cos(x)) * 2.0, "(sin x + cos x) * 2"),
                    (_unread, "2 x, after a chain of sines that nobody reads"),
                    (lambda x: x, "x itself"),
                    (lambda x: (jnp.sin(jnp.sin(x)), x), "(sin(sin(x)), x)"),
                    (lambda x: x * outside, "x * y, for an array y from outside"),
                    (lambda x: (jnp.sin(x), 2.0), "(sin(x), 2.0)"), (lambda x: 2.0, "2.0"),
                    (lambda x: jnp.sin(sum(jnp.split(x * jnp.ones(2), 2))), "sin(a + b), where a "
                     "and b are the halves of a vector"),
                    (lambda x: jnp.split(x * jnp.ones(2), 2)[1] * 2.0, "2 b, where b is the second "
                     "half of a vector"),
                    *((_some_function(seed), "") for seed in range(20))):
        program = _program(f, 1.0)
        inputs = text or str(program)
        with wanting(inputs, _depth(program), (
                KeyError if "2.0" not in text else Exception, "an input, or a constant, comes from "
                "no equation, and has depth 0" if "2.0" not in text else "a result may be a "
                "Literal, too, of depth 0"), what="the depth"):
            result = depth(program)
        agree(inputs, result, _depth(program),
              (text.startswith("2 x"), "what no output is made of does not count"),
              (text.endswith(", x)"), "of several outputs, the deepest counts"),
              ("hal" in text, "all results of an equation are one deeper than the deepest of all "
               "its operands, not only the first"),
              (text.startswith("(sin") and result == 4,
               "the sine and the cosine need not wait for each other"),
              "one more than the deepest of what it is made of", what="the depth")


_DEPTH = """
def depth(jaxpr):
    depths = {{}}
    def of(atom):
        return {literal}
    for eqn in jaxpr.eqns:
        for v in eqn.outvars:
            depths[v] = 1 + {how}([0, *map(of, eqn.invars)])
    return {result}
"""


def _depth_text(literal: str = "depths.get(atom, 0) if isinstance(atom, Var) else 0",
                how: str = "max", result: str = "max(of(x) for x in jaxpr.outvars)") -> str:
    return _DEPTH.format(literal=literal, how=how, result=result)


exercise(
    "depth", chapter=CHAPTER, grade=grade_depth, given=_GIVEN, solution=_depth_text(),
    wrong=[("def depth(jaxpr):\n    return len(jaxpr.eqns)", "need not wait"),
           (_depth_text(result="max(depths.get(v, 0) if isinstance(v, Var) else None for v in "
                               "jaxpr.outvars)"), "a result may be a Literal"),
           (_depth_text(result="max(dict.fromkeys(jaxpr.invars, 0)[v] if v not in depths else "
                               "depths[v] for v in jaxpr.outvars)"), "a result may be a Literal"),
           (_depth_text(result="max(depths.values(), default=0)"), "does not count"),
           (_depth_text(how="sum"), "need not wait"),
           (_depth_text(how="min"), "than the deepest"),
           (_depth_text(literal="depths[atom] if isinstance(atom, Var) else 0"),
            "comes from no equation"),
           (_depth_text(literal="depths[atom] if isinstance(atom, Var) else 0").replace(
               "= {}", "= dict.fromkeys(jaxpr.invars, 0)"), "or a constant"),
           (_depth_text(result="of(jaxpr.outvars[-1])"), "the deepest counts"),
           (_depth_text().replace("for v in eqn.outvars", "for v in eqn.outvars[:1]"),
            "not only the first")],
    hints=["an input has depth 0; a result is one deeper than the deepest of what it is made of"])


# -- distinct --------------------------------------------------------------------------------------

def _key(eqn: Any) -> tuple:
    return (eqn.primitive, repr(sorted(eqn.params.items())),
            tuple(x.val if isinstance(x, Literal) else x for x in eqn.invars))


def grade_distinct(distinct: Callable) -> None:
    for f, text, hint in (
            (lambda x: jnp.sin(x) + jnp.sin(x), "sin(x) + sin(x)", "the two sines count as one"),
            (lambda x: jnp.sin(x) + jnp.sin(x + 1.0), "sin(x) + sin(x + 1)",
             "the same primitive on another input is another equation"),
            (lambda x: jnp.sin(x) + jnp.cos(x), "sin(x) + cos(x)", "another primitive on the same "
             "input is another equation"),
            (lambda x: jnp.sin(x) + jnp.sinh(x), "sin(x) + sinh(x)", "another primitive on the "
             "same input is another equation"),
            (lambda x: x * 2.0 + x * 2.0, "2 x + 2 x", "a Literal is compared by its `val`"),
            (lambda x: x * 2.0 + x * 3.0, "2 x + 3 x", "2 and 3 are different inputs"),
            (lambda x: (x - 2.0) * (2.0 - x), "(x - 2) * (2 - x)",
             "two differences with the same inputs in another order"),
            (lambda x: jnp.sum(x, 0) * jnp.sum(x, 1), "sum(x, 0) * sum(x, 1)",
             "a sum along another axis is another equation: the parameters differ"),
            *((_some_function(seed), "", "") for seed in range(20))):
        program = _program(f, jnp.ones((2, 2)))
        names = ", ".join(eqn.primitive.name for eqn in program.eqns)
        agree(f"{text or program}, of the equations {names},", distinct(program),
              len({_key(eqn) for eqn in program.eqns}), hint, what="the number")


_DISTINCT = """
def distinct(jaxpr):
    return len({{{key} for eqn in jaxpr.eqns}})
"""
_INPUTS = "tuple(x if isinstance(x, Var) else x.val for x in eqn.invars)"

exercise(
    "distinct", chapter=CHAPTER, grade=grade_distinct, given=_GIVEN,
    solution="""
def distinct(jaxpr):
    def key(eqn):
        inputs = tuple(x if isinstance(x, Var) else x.val for x in eqn.invars)
        return eqn.primitive, repr(eqn.params), inputs
    return len({key(eqn) for eqn in jaxpr.eqns})
""",
    wrong=[(_DISTINCT.format(key="eqn.primitive"), "on another input"),
           (_DISTINCT.format(key=f"(eqn.primitive, {_INPUTS})"), "the parameters differ"),
           (_DISTINCT.format(key="(eqn.primitive, repr(eqn.params))"), "on another input"),
           (_DISTINCT.format(key=f"(repr(eqn.params), {_INPUTS})"), "another primitive"),
           (_DISTINCT.format(key=f"(eqn.primitive, repr(eqn.params), frozenset({_INPUTS}))"),
            "in another order"),
           (_DISTINCT.format(key="(eqn.primitive, repr(eqn.params), eqn.invars)"),
            "by its `val`"),
           ("def distinct(jaxpr):\n    return len(jaxpr.eqns)", "count as one")],
    afterthought="compilers keep one of the equal ones; then more become equal")


# -- all_names -------------------------------------------------------------------------------------

def _all_names(jaxpr: Any) -> list[str]:
    names: list[str] = []
    for eqn in jaxpr.eqns:
        names.append(eqn.primitive.name)
        for inner in subjaxprs(eqn.params):
            names += _all_names(inner.jaxpr)
    return names


def grade_all_names(all_names: Callable) -> None:
    def chosen(x: Any) -> Any:
        return lax.cond(x > 0.0, jnp.sin, lambda y: y * 2.0, x)

    def repeated(x: Any) -> Any:
        return lax.while_loop(lambda y: y < 9.0, lambda y: jax.jit(jnp.exp)(y), x)

    for f, text, hint in (
            (lambda x: jnp.sin(x) * x, "sin(x) * x",
             "in the order of the program, each as often as it occurs"),
            (lambda x: jnp.sin(jnp.sin(x)), "sin(sin(x))", "each as often as it occurs"),
            (jax.jit(jnp.tanh), "jit(tanh)(x)", "`jit` has a ClosedJaxpr among its parameters"),
            (lambda x: jnp.cos(jax.jit(jnp.tanh)(x)), "cos(jit(tanh)(x))", ""),
            (chosen, "cond(x > 0, sin, double, x)", "the branches of `cond` are a tuple of them"),
            (repeated, "while_loop(y < 9, jit(exp), x)", "an equation of a program inside may hold "
             "another program"),
            (jax.jit(jax.jit(chosen)), "jit(jit(cond …))", "a program inside a program inside …")):
        program = _program(f, 1.0)
        expected = _all_names(program)
        result = all_names(program)
        has_inner = len(expected) > len(program.eqns)
        if (isinstance(result, list) and len(result) > len(expected)
                and result[-len(expected):] == expected):
            hint = ("the list still has the names of an earlier program: a default argument is "
                    "made once, and a list that is one grows from call to call")
        if has_inner and isinstance(result, list) and sorted(result) == sorted(expected):
            hint = ("an equation's own name first, then at once those of what it holds, in the "
                    "order of its parameters")
        expect(result == expected,
               f"for {text} the names are {expected}, and yours are {result!r}\n{hint}")


_ALL = """
def all_names(jaxpr):
    names = []
    for eqn in jaxpr.eqns:
        names.append(eqn.primitive.name)
        for value in eqn.params.values():
            for one in {among}:
                if isinstance(one, ClosedJaxpr):
                    names {more}
    return names
"""


def _all(among: str = "value if isinstance(value, tuple) else (value,)",
         more: str = "+= all_names(one.jaxpr)") -> str:
    return _ALL.format(among=among, more=more)


exercise(
    "all_names", chapter=CHAPTER, grade=grade_all_names, given=_GIVEN, solution=_all(),
    wrong=[("def all_names(jaxpr):\n    names = []\n    for eqn in jaxpr.eqns:\n"
            "        if eqn.primitive.name not in names:\n"
            "            names.append(eqn.primitive.name)\n"
            "        for p in eqn.params.values():\n"
            "            for q in p if isinstance(p, tuple) else (p,):\n"
            "                if isinstance(q, ClosedJaxpr):\n"
            "                    names += all_names(q.jaxpr)\n    return names",
            "as often as it occurs"),
           ("def all_names(jaxpr):\n    return [eqn.primitive.name for eqn in jaxpr.eqns]",
            "among its parameters"),
           (_all(among="(value,)"), "a tuple of them"),
           (_all().replace("(jaxpr)", "(jaxpr, names=[])", 1).replace("    names = []\n", ""),
            "an earlier program"),
           (_all(more="+= [e.primitive.name for e in one.jaxpr.eqns]"), "hold another program"),
           (_all(more="[:0] = all_names(one.jaxpr)"), "own name first"),
           (_all(more=".extend(()); later += all_names(one.jaxpr)").replace(
               "names = []", "names, later = [], []").replace(
               "return names", "return names + later"),
            "at once those"),
           ("def all_names(jaxpr):\n    return sorted({eqn.primitive.name for eqn in jaxpr.eqns})",
            "in the order of")],
    hints=["a function that goes into what is inside calls itself"])
