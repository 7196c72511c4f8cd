"""The exercises of chapter 06, *Programs as data*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.jaxpr import Literal
from minijax.notebook.checks import exercise, expect, instead_of, near

CHAPTER = "06_programs_as_data"
_GIVEN = "from minijax.jaxpr import Literal, Var"


def grade_equations(answer: Any) -> None:
    expect(isinstance(answer, int), "a number of equations is a whole number")
    expect(answer != 2, "the loop is Python's: what happens in each of its rounds is written down")
    expect(answer != 3, "and the sine before the loop?")
    expect(answer == 4, "one equation for each operation that is carried out on a tracer")


exercise("equations", chapter=CHAPTER, grade=grade_equations, solution="4",
         wrong=[("2", "Python's"), ("3", "before the loop"), ("5", "one equation for each"),
                ('"4"', "a whole number")])


def _polynomial(x: Any) -> Any:
    return jnp.sin(x) * x - 2.0 * x


def _names(f: Callable, *args: Any) -> list[str]:
    return [eqn.primitive.name for eqn in jax.make_jaxpr(f)(*args).eqns]


def grade_names(names: Callable) -> None:
    for f, args in ((_polynomial, (1.0,)), (lambda x, y: jnp.exp(x) / y, (1.0, 2.0))):
        found, wanted = names(f, *args), _names(f, *args)
        expect(isinstance(found, list), f"a list of names is asked for, not {type(found).__name__}")
        expect(all(isinstance(name, str) for name in found),
               "a name is text: a primitive has it as `.name`")
        expect(found == wanted, f"for `sin(x) * x - 2 x` and the like: wanted {wanted}, "
               f"got {found}")


exercise(
    "names", chapter=CHAPTER, grade=grade_names,
    solution="""
def names(f, *args):
    return [eqn.primitive.name for eqn in jax.make_jaxpr(f)(*args).eqns]
""",
    wrong=[("def names(f, *args):\n    return [e.primitive for e in jax.make_jaxpr(f)(*args).eqns]",
            "a name is text"),
           ("def names(f, *args):\n    return {e.primitive.name for e in "
            "jax.make_jaxpr(f)(*args).eqns}", "a list of names"),
           ("def names(f, *args):\n    return sorted(e.primitive.name for e in "
            "jax.make_jaxpr(f)(*args).eqns)", "wanted")])


def _depth(jaxpr: Any) -> int:
    depths: dict[Any, int] = {}

    def of(atom: Any) -> int:
        return 0 if isinstance(atom, Literal) else depths.get(atom, 0)

    for eqn in jaxpr.eqns:
        deepest = max(map(of, eqn.invars), default=0)
        depths.update((v, deepest + 1) for v in eqn.outvars)
    return max(map(of, jaxpr.outvars), default=0)


def _program(f: Callable, *args: Any) -> Any:
    return jax.make_jaxpr(f)(*args).jaxpr


def _tree_sum(x: Any) -> Any:
    return (jnp.sin(x) + jnp.cos(x)) + (jnp.exp(x) + jnp.tanh(x))


def _chain(x: Any) -> Any:
    return jnp.sin(jnp.sin(jnp.sin(x)))


def _unread(x: Any) -> Any:
    _chain(x)
    return x * 2.0


def grade_depth(depth: Callable) -> None:
    for f, what in ((_chain, "sin(sin(sin(x)))"), (_unread, "x * 2 beside an unread chain"),
                    (_tree_sum, "(sin x + cos x) + (exp x + tanh x)"), (lambda x: x, "x itself")):
        program = _program(f, 1.0)
        found, wanted = depth(program), _depth(program)
        expect(found == wanted, f"for {what} the depth is {wanted}, and yours {found}")


_DEPTH = """
def depth(jaxpr):
    depths = {{}}
    def of(atom):
        return {literal}
    for eqn in jaxpr.eqns:
        for v in eqn.outvars:
            depths[v] = 1 + {how}(of(x) for x in eqn.invars)
    return {result}
"""


def _depth_text(literal: str = "depths.get(atom, 0) if isinstance(atom, Var) else 0",
                how: str = "max", result: str = "max(of(x) for x in jaxpr.outvars)") -> str:
    return _DEPTH.format(literal=literal, how=how, result=result)


exercise(
    "depth", chapter=CHAPTER, grade=grade_depth, given=_GIVEN, solution=_depth_text(),
    wrong=[("def depth(jaxpr):\n    return len(jaxpr.eqns)", "the depth is"),
           (_depth_text(result="max(depths.values(), default=0)"), "an unread chain"),
           (_depth_text(how="sum"), "the depth is")],
    hints=["an input has depth 0; a result is one deeper than the deepest of what it is made of"])


def _steps(jaxpr: Any, consts: Any, *args: Any) -> list[Any]:
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
    results = []
    for eqn in jaxpr.eqns:
        inputs = [x.val if isinstance(x, Literal) else values[x] for x in eqn.invars]
        values[eqn.outvars[0]] = eqn.primitive.bind(*inputs, **eqn.params)
        results.append(values[eqn.outvars[0]])
    return results


def grade_eval_in_steps(eval_in_steps: Callable) -> None:
    table = jnp.arange(3.0)
    for f, args, what in ((_polynomial, (0.5,), "sin(x) * x - 2 x at 0.5"),
                          (lambda x: (table * x)[1] + 1.0, (2.0,), "a program with a constant")):
        closed = jax.make_jaxpr(f)(*args)
        with instead_of(KeyError, "", f"for {what}, a variable has no value: `invars` are given "
                        "`args`; which variables are given `consts`?"):
            found = eval_in_steps(closed.jaxpr, closed.consts, *args)
        wanted = _steps(closed.jaxpr, closed.consts, *args)
        expect(isinstance(found, list | tuple), "a list is asked for: of all results, in order")
        expect(len(found) == len(wanted), f"{what} has {len(wanted)} equations, and you give "
               f"{len(found)} results")
        expect(all(map(near, found, wanted)), f"for {what} the results are "
               f"{[np.round(x, 3).tolist() for x in wanted]}, and yours "
               f"{[np.round(x, 3).tolist() for x in found]}")


_STEPS = """
def eval_in_steps(jaxpr, consts, *args):
    values = dict(zip({inputs}, {given}))
    steps = []
    for eqn in jaxpr.eqns:
        inputs = [values[x] if isinstance(x, Var) else x.val for x in eqn.invars]
        out = eqn.primitive.bind(*inputs{params})
        values[eqn.outvars[0]] = out
        steps.append(out)
    return {result}
"""


def _steps_text(inputs: str = "[*jaxpr.constvars, *jaxpr.invars]", given: str = "[*consts, *args]",
                params: str = ", **eqn.params", result: str = "steps") -> str:
    return _STEPS.format(inputs=inputs, given=given, params=params, result=result)


exercise(
    "eval_in_steps", chapter=CHAPTER, grade=grade_eval_in_steps, given=_GIVEN,
    solution=_steps_text(),
    wrong=[(_steps_text(inputs="jaxpr.invars", given="args"), "which variables are given"),
           (_steps_text(params=""), "your answer raised"),
           (_steps_text(result="steps[-1:]"), "equations, and you give"),
           (_steps_text(result="steps[::-1]"), "the results are")])


def grade_kept_names(answer: Any) -> None:
    expect(isinstance(answer, set), "a set of names is asked for, such as `{'add', 'neg'}`")
    expect("exp" not in answer, "nobody reads b")
    expect("sin" in answer, "c is read, and is made of a: so who reads a?")
    expect("mul" in answer, "the product is what is returned")
    expect(answer == {"sin", "cos", "mul"}, "go back from the output, and keep what you meet")


exercise("kept_names", chapter=CHAPTER, grade=grade_kept_names, solution='{"sin", "cos", "mul"}',
         wrong=[('{"sin", "exp", "cos", "mul"}', "nobody reads b"),
                ('{"cos", "mul"}', "who reads a"), ('{"sin", "cos"}', "is returned"),
                ('["sin", "cos", "mul"]', "a set of names")])


def grade_swapped(swapped: Callable) -> None:
    from minijax.notebook.library import library
    mini = library.module
    program = mini.make_jaxpr(lambda x: mini.exp(mini.sin(x)) * mini.sin(x * 2.0))(1.0)
    cosine = mini.Primitive("cosine", impl=lambda x: [np.cos(x)])
    before = str(program)
    new = swapped(program, "sin", cosine)
    expect(isinstance(new, mini.Jaxpr), "a program is asked for: a `mini.Jaxpr`")
    expect(str(program) == before, "the old program must stay as it is: make new equations")
    names, wanted = [eqn.primitive.name for eqn in new.eqns], np.exp(np.cos(1.0)) * np.cos(2.0)
    kept = [eqn.primitive.name for eqn in program.eqns if eqn.primitive.name != "sin"]
    expect([name for name in names if name not in ("sin", "cosine")] == kept,
           f"the others must stay, {kept}; your program has {names}")
    expect("sin" not in names, f"there is a sine left: {names}")
    found = mini.eval_jaxpr(new, 1.0)[0]
    expect(near(found, wanted), f"`exp(sin(x)) * sin(2 x)` with cosines is {wanted:.4f} at 1, "
           f"and yours {float(found):.4f}")


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
                  result: str = "mini.Jaxpr(jaxpr.inputs, eqns, jaxpr.outputs)") -> str:
    return _SWAPPED.format(eqn=eqn, result=result)


exercise(
    "swapped", chapter=CHAPTER, grade=grade_swapped, given=_MINI, solution=_swapped_text(),
    wrong=[(_swapped_text(result="eqns"), "a program is asked for"),
           (_swapped_text("eqn._replace(primitive=new)"), "the others must stay"),
           (_swapped_text("eqn"), "a sine left"),
           ("def swapped(jaxpr, old, new):\n    for eqn in jaxpr.eqns:\n"
            "        if eqn.primitive.name == old:\n            eqn.primitive.name = 'cosine'\n"
            "            eqn.primitive.impl = new.impl\n    return jaxpr", "make new equations")])


def _key(eqn: Any) -> tuple:
    return (eqn.primitive, repr(sorted(eqn.params.items())),
            tuple(x.val if isinstance(x, Literal) else x for x in eqn.invars))


def grade_distinct(distinct: Callable) -> None:
    for f, what in ((lambda x: jnp.sin(x) + jnp.sin(x), "sin(x) + sin(x)"),
                    (lambda x: x * 2.0 + x * 3.0, "2 x + 3 x"),
                    (lambda x: jnp.sum(x, 0) * jnp.sum(x, 1), "sums along two axes"),
                    (lambda x: jnp.sin(x) + jnp.sin(x + 1.0), "sin(x) + sin(x + 1)")):
        program = _program(f, jnp.ones((2, 2)))
        found, wanted = distinct(program), len({_key(eqn) for eqn in program.eqns})
        expect(found == wanted, f"for {what} it is {wanted} of {len(program.eqns)} equations, "
               f"and yours is {found}")


_DISTINCT = """
def distinct(jaxpr):
    return len({{{key} for eqn in jaxpr.eqns}})
"""
_INPUTS = "tuple(x if isinstance(x, Var) else x.val for x in eqn.invars)"

exercise(
    "distinct", chapter=CHAPTER, grade=grade_distinct, given=_GIVEN,
    solution=_DISTINCT.format(key=f"(eqn.primitive, repr(eqn.params), {_INPUTS})"),
    wrong=[(_DISTINCT.format(key="eqn.primitive"), "it is"),
           (_DISTINCT.format(key=f"(eqn.primitive, {_INPUTS})"), "sums along two axes"),
           (_DISTINCT.format(key="(eqn.primitive, repr(eqn.params))"), "it is"),
           ("def distinct(jaxpr):\n    return len(jaxpr.eqns)", "sin(x) + sin(x)")])


def grade_frozen(answer: Any) -> None:
    expect(isinstance(answer, int | float), "a number is asked for")
    expect(answer != 15, "the program was written before n was 5; does it look again?")
    expect(answer == 6, "what was n, when the program was written?")


exercise("frozen", chapter=CHAPTER, grade=grade_frozen, solution="6.0",
         wrong=[("15.0", "does it look again"), ("3.0", "what was n"), ('"6"', "a number")])
