"""The exercises of chapter 22, *Simplifying*."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.notebook.checks import agree, chosen, exercise, expect, instead_of, near, shown

CHAPTER = "22_simplifying"
_GIVEN_MINI = "%mini begin 22"
_MINI = """
from minijax.notebook.library import library
library.begin("22")
import mini
"""


def _library() -> Any:
    from minijax.notebook.library import library
    return library.module


# -- left ------------------------------------------------------------------------------------------

def grade_left(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 4,
           f"four numbers are expected, for f, g, h and k, and yours is {answer!r}")
    message = f"yours is {list(answer)}\n"
    f, g, h, k = answer
    expect(f != 3, message + "f: the two sines have the same argument")
    expect(f == 2, message + "f: a sine, and what is done with it")
    expect(g not in (2, 3), message + "g: what has no argument but numbers is folded")
    expect(g == 1, message + "g: what is left to do with x?")
    expect(h not in (2, 3), message + "h: go back from what is returned; what reads a and b?")
    expect(h == 1, message + "h: something has to compute the result")
    expect(k not in (4, 5), message + "k: a call is inlined, and then looks like what "
           "stands beside it")
    expect(k == 3, message + "k: one of each kind")


exercise("left", chapter=CHAPTER, grade=grade_left, solution="[2, 1, 1, 3]",
         wrong=[("[3, 1, 1, 3]", "the same argument"), ("[2, 3, 1, 3]", "is folded"),
                ("[2, 1, 2, 3]", "go back"), ("[2, 1, 1, 5]", "is inlined"),
                ("2", "four numbers")],
         afterthought="ask `jax.jit(f).lower(1.0).as_text(\"simplified\")`")


# -- same_number -----------------------------------------------------------------------------------

_NUMBERS: dict[str, Any] = {
    "0.0": 0.0, "-0.0": -0.0, "1": 1, "1.0": 1.0, "True": True, "nan": float("nan"),
    "np.float64(1)": np.float64(1), "np.float32(1)": np.float32(1), "np.int64(1)": np.int64(1),
    "np.int8(1)": np.int8(1), "np.float64('nan')": np.float64("nan"), "0": 0, "False": False,
    "np.float32(-0.0)": np.float32(-0.0), "2.5": 2.5, "np.float64(2.5)": np.float64(2.5),
    "np.float32('nan')": np.float32("nan"),
    "np.float64('nan') with another last bit": np.int64(0x7ff8_0000_0000_0001).view(np.float64)}


def _same(x: Any, y: Any) -> bool:
    one, two = np.asarray(x), np.asarray(y)
    return one.dtype == two.dtype and one.tobytes() == two.tobytes()


def grade_same_number(same_number: Callable) -> None:
    for (first, x), (second, y) in itertools.product(_NUMBERS.items(), repeat=2):
        expected = _same(x, y)
        with instead_of(AttributeError, "no attribute", f"for {first} and {second} the answer is "
                        f"{expected}, and yours asks a number of Python for what only those of "
                        "NumPy have: `np.asarray` makes one of it"):
            result = same_number(x, y)
        hint = ""
        if expected:
            hint = (": a nan does not equal itself, but its bits do" if x != y else
                    ": Python's numbers are 64 bits long, and have a dtype, too")
        elif np.asarray(x).dtype != np.asarray(y).dtype:
            hint = ": the results would have another dtype"
        elif np.isnan(x) and np.isnan(y):
            hint = ": both are nan, and their bits differ"
        elif x == y:
            hint = ": what is 1 divided by each of them?"
        expect(isinstance(result, bool | np.bool_) and result == expected, f"for {first} and "
               f"{second} the answer is {expected}, and yours is {result!r}{hint}")


_SAME = "def same_number(x, y):\n    x, y = np.asarray(x), np.asarray(y)\n    return {}"

exercise(
    "same_number", chapter=CHAPTER, grade=grade_same_number,
    solution=_SAME.format("x.dtype == y.dtype and x.tobytes() == y.tobytes()"),
    wrong=[("def same_number(x, y):\n    return x == y", "1 divided by each"),
           (_SAME.format("x.tobytes() == y.tobytes()"), "another dtype"),
           (_SAME.format("x.dtype == y.dtype and bool(x == y)"), "1 divided by each"),
           (_SAME.format("x.dtype == y.dtype and bool(x == y) and bool(np.signbit(x) == "
                         "np.signbit(y))"), "its bits do"),
           ("def same_number(x, y):\n    return type(x) is type(y) and repr(x) == repr(y)",
            "have a dtype, too"),
           (_SAME.format("(x.dtype, repr(x)) == (y.dtype, repr(y))"), "their bits differ"),
           ("def same_number(x, y):\n    return x.dtype == y.dtype", "a number of Python")],
    hints=["`x.tobytes()` is what stands in memory"])


# -- commuting_key ---------------------------------------------------------------------------------

class _Key:
    """A key like those of variables: it can be compared and hashed, but not sorted."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


def grade_commuting_key(commuting_key: Callable) -> None:
    a, b, c = map(_Key, "abc")
    cases: list[tuple[str, list]] = [
        (name, list(keys)) for name in ("add", "mul", "sub", "div", "dot")
        for keys in itertools.product((a, b, c), repeat=2)]
    cases += [(name, keys) for name in ("add", "mul") for keys in (
        [1, 4], [2, 3], [1, 3], [2, 2], [-1, 3], [-2, 3], [-1, -2], [-2, -1])]
    # of -1 and -2 the hash is the same
    cases += [("sin", [a]), ("sin", [b]), ("neg", [a]), *(
        ("where", list(keys)) for keys in itertools.permutations((a, b, c)))]
    cases += [("add", [_Key("d"), _Key("d")])]  # two that look alike
    cases += [("add", cases[-1][1][::-1])]
    made = []
    for name, keys in cases:
        inputs = f'commuting_key("{name}", {keys})'
        with instead_of(TypeError, "not supported between", f"{inputs} cannot be sorted: a set "
                        "needs no order"), \
             instead_of(TypeError, "unhashable", f"what {inputs} gives must be a key of a "
                        "dictionary, and what you build is not hashable"):
            made.append(commuting_key(name, list(keys)))
        with instead_of(TypeError, "unhashable", f"{inputs} gives {made[-1]!r}, which cannot be a "
                        "key of a dictionary"):
            hash(made[-1])
    for (one, mine), (two, other) in itertools.combinations(
            [(case, key) for case, key in zip(cases, made, strict=True)], 2):
        (name, keys), (name2, keys2) = one, two
        swaps = name == name2 and name in ("add", "mul") and keys[::-1] == keys2
        inputs = f"{name} of {keys} and {name2} of {keys2}"
        if swaps:
            expect(mine == other, f"for {inputs} one key is expected, and yours are {mine!r} and "
                   f"{other!r}: the order does not matter there")
        else:
            why = (": they are different operations" if name != name2 else
                   ": here the order matters" if set(keys) == set(keys2)
                   else ": their arguments differ")
            expect(mine != other, f"for {inputs} two keys are expected, and yours is {mine!r} for "
                   f"both{why}")
    ones, twos = ([(name,) for _ in range(40)] for name in ("one", "two"))
    ends = [(min(ones, key=id), max(twos, key=id)), (max(ones, key=id), min(twos, key=id))]
    expect(len({commuting_key("add", list(pair)) for pair in ends}) == 1, f"for add of {ends[0]} "
           "and add of two others that equal these one key is expected, and yours are two: keys "
           "are compared by `==`, wherever they lie")


_COMMUTING = """
def commuting_key(name, keys):
    if name in {names}:
        return {one}
    return {two}
"""


def _commuting_text(names: str = '("add", "mul")', one: str = "name, frozenset(keys)",
                    two: str = "name, tuple(keys)") -> str:
    return _COMMUTING.format(names=names, one=one, two=two)


exercise(
    "commuting_key", chapter=CHAPTER, grade=grade_commuting_key, solution=_commuting_text(),
    wrong=[(_commuting_text(one="name, tuple(keys)"), "the order does not matter"),
           (_commuting_text(two="name, frozenset(keys)"), "the order matters"),
           (_commuting_text(one="frozenset(keys)"), "different operations"),
           (_commuting_text(one="name, tuple(sorted(keys))"), "needs no order"),
           (_commuting_text(one="name, set(keys)"), "key of a dictionary"),
           (_commuting_text(one="name, tuple(sorted(keys, key=repr))"),
            "the order does not matter"),
           (_commuting_text(names='("add", "mul", "sub")'), "the order matters"),
           (_commuting_text(one="name, sum(map(hash, keys))"), "their arguments differ"),
           (_commuting_text(two="name, tuple(keys[:1])"), "their arguments differ"),
           (_commuting_text(one="name, tuple(sorted(keys, key=id))"), "wherever they lie"),
           (_commuting_text(one="name, tuple(sorted(keys, key=hash))"), "does not matter"),
           (_commuting_text(one="name, tuple(sorted(map(hash, keys)))"), "arguments differ")],
    right=["def commuting_key(name, keys):\n    if name not in ('add', 'mul'):\n"
           "        return name, tuple(keys)\n"
           "    return name, frozenset((k, list(keys).count(k)) for k in keys)"],
    hints=["a `frozenset` is a set that can be a key"])


# -- true_rules ------------------------------------------------------------------------------------

_RULES = {
    "a": ("x * 1.0 is x", True, "1.0 times anything is that, also -0.0 and infinities"),
    "b": ("x + 0.0 is x", False, "what is -0.0 + 0.0?"),
    "c": ("x * 0.0 is 0.0", False, "think of infinity, and of negative numbers"),
    "d": ("x - x is 0.0", False, "what is infinity minus infinity?"),
    "e": ("-(-x) is x", True, "only the sign bit is flipped, twice"),
    "f": ("x / x is 1.0", False, "what is 0.0 / 0.0?"),
    "g": ("x * 2.0 is x + x", True, "doubling changes the exponent alone, and both overflow alike"),
    "h": ("(x + y) - y is x", False, "let y be much larger than x: the sum forgets x"),
    "i": ("x / 4.0 is x * 0.25", True, "0.25 is a power of two, so it is exact, and both round the "
          "same number"),
    "j": ("x / 3.0 is x * (1.0 / 3.0)", False, "1.0 / 3.0 is rounded, and so the product may be "
          "rounded once more"),
    "k": ("x + y is y + x", True, "a sum of floats is the exact one, rounded: it has no order"),
    "l": ("0.0 - x is -x", False, "let x be 0.0: what sign has each?")}


def grade_true_rules(answer: Any) -> None:
    chosen(answer, _RULES, "holds for all floats", "fails for some")


exercise("true_rules", chapter=CHAPTER, grade=grade_true_rules, solution='"aegik"',
         wrong=[('"abegik"', "-0.0 + 0.0"), ('"acegik"', "think of infinity"),
                ('"aegijk"', "rounded once more"), ('"aegikl"', "what sign"),
                ('"aegk"', "power of two"), ('"adefghik"', "infinity minus infinity"),
                ("['a', 'b']", "a string of letters")])


# -- neg_rule --------------------------------------------------------------------------------------

def _simplified(mini: Any, f: Callable, *args: Any) -> tuple[Any, list[str]]:
    program = mini.simplified(mini.make_jaxpr(f)(*args))
    return program, [eqn.primitive.name for eqn in program.eqns]


def grade_neg_rule(neg_rule: Callable) -> None:
    mini = _library()
    neg = mini.neg
    expect("neg" in mini.SIMPLER, 'now put it into the table: `SIMPLER["neg"] = …`')
    x = np.array([1.0, -2.0, 0.0])
    for f, text, names in (
            (lambda x: neg(neg(x)), "-(-x)", []), (lambda x: neg(x), "-x", ["neg"]),
            (lambda x: neg(neg(neg(x))), "-(-(-x))", ["neg"]),
            (lambda x: -mini.sin(x), "-sin(x)", ["sin", "neg"]),
            (lambda x: -mini.sin(-x), "-sin(-x)", ["neg", "sin", "neg"]),
            (lambda x: neg(neg(x)) * neg(mini.exp(neg(neg(x)))), "-(-x) * -exp(-(-x))",
             ["exp", "neg", "mul"]),
            (lambda x: neg(x - mini.sin(x)), "-(x - sin(x))", ["sin", "sub", "neg"])):
        inputs = f"f(x) = {text}"
        with instead_of(IndexError, "", f"for {inputs} you look for the arguments of an operation "
                        "that has none: no operation made an input"):
            program, answer = _simplified(mini, f, x)
        result = mini.eval_jaxpr(program, x)[0]
        agree(f"{inputs} and x = {shown(x)}", result, f(x),
              (text == "-(-x)" and near(result, -x), "what was negated to make the operand of the "
               "second `neg`? The rule gives that"),
              "only what was made by `neg` may go", what="the simplified program's result")
        expect(answer == names, f"for {inputs} the operations that are left are {names}, and yours "
               f"are {answer}" + "\nof equal numbers, -(x - y) is -0.0, and y - x is 0.0" * (
                   answer == ["sin", "sub"]))


_NEG = """
def neg_rule(trace, x):
    name, args, _ = trace.made_by(x)
    return {}
SIMPLER["{}"] = neg_rule
"""

exercise(
    "neg_rule", chapter=CHAPTER, grade=grade_neg_rule, given=_GIVEN_MINI,
    solution=_NEG.format('args[0] if name == "neg" else None', "neg"),
    wrong=[(_NEG.format('x if name == "neg" else None', "neg"), "the simplified program's result"),
           (_NEG.format("args[0] if name else None", "neg"), "made by `neg`"),
           (_NEG.format("args[0]", "neg"), "no operation made an input"),
           (_NEG.format('args[0] if name == "sub" else None', "neg"), "that are left"),
           (_NEG.format('args[0] if name == "neg" else None', "negative"), "into the table"),
           (_NEG.format('(args[0] if name == "neg" else args[1] - args[0] if name == "sub" '
                        'else None)', "neg"), "is -0.0")],
    hints=["if x was made by a `neg`, what was that given?"])


# -- transpose_rule --------------------------------------------------------------------------------

def grade_transpose_rule(transpose_rule: Callable) -> None:
    mini = _library()
    expect("transpose" in mini.SIMPLER, 'now put it into the table: `SIMPLER["transpose"] = …`')
    arrays: list[Any] = [np.arange(24.0).reshape(2, 3, 4)]
    arrays += [np.arange(3.0 ** n).reshape(n * (3,)) for n in (3, 2)]
    for x, p, q in ((a, *orders) for a in arrays for orders in itertools.product(
            itertools.permutations(range(a.ndim)), repeat=2)):
        def f(x: Any, p: Any = p, q: Any = q) -> Any:
            return mini.transpose(mini.transpose(x, p), q)
        inputs = f"transpose(transpose(x, {p}), {q}) of an x of shape {x.shape}"
        with instead_of(RecursionError, "", f"for {inputs} your rule calls `transpose`, which is "
                        "given to your rule, and so on: when is there nothing to be done?"):
            program, result = _simplified(mini, f, x)
        once = tuple(p[k] for k in q)
        agree(inputs, mini.eval_jaxpr(program, x)[0].shape, x.transpose(once).shape,
              "axis k of the result is axis q[k] of the middle one; which axis of x is that?",
              what="the shape", tolerance=0)
        agree(inputs, mini.eval_jaxpr(program, x)[0], x.transpose(once), "where all axes are "
              "equally long the shape does not tell whether they were moved", what="the result")
        expected = ["transpose"] * (once != tuple(range(x.ndim)))
        expect(result == expected, f"for {inputs} the operations that are left are {expected}, and "
               f"yours are {result}" + ("\na rule is wanted for every two in a row, and what it "
                                 "gives is taken only if it has the shape of the result: axis k "
                                 "of that is axis q[k] of the middle one, and which axis of x?"
                                 if expected else
                                 "\nwhat leaves each axis where it was is not needed"))
    program, result = _simplified(mini, lambda x: mini.transpose(mini.sin(x), (1, 0)),
                                  np.ones((3, 4)))
    expect(result == ["sin", "transpose"], "for transpose(sin(x), (1, 0)) the operations that are "
           f"left are ['sin', 'transpose'], and yours are {result}")


_TRANSPOSE = """
def transpose_rule(trace, x, axes):
    name, args, params = trace.made_by(x)
    if {test}:
        {inside}
    return {end}
SIMPLER["transpose"] = transpose_rule
"""


def _transpose_text(test: str = 'name == "transpose"', end: str = "None",
                    inside: str = 'return transpose(args[0], '
                    'tuple(params["axes"][k] for k in axes))') -> str:
    return _TRANSPOSE.format(test=test, inside=inside, end=end)


_UNMOVED = "x if axes == tuple(range(len(axes))) else None"

exercise(
    "transpose_rule", chapter=CHAPTER, grade=grade_transpose_rule, given=_GIVEN_MINI,
    solution=_transpose_text(end=_UNMOVED),
    wrong=[(_transpose_text(), "where it was"),
           (_transpose_text(inside='return transpose(args[0], tuple(axes[k] for k in '
                                   'params["axes"]))', end=_UNMOVED), "and which axis of x"),
           (_transpose_text(inside="return args[0]", end=_UNMOVED), "for transpose"),
           (_transpose_text(test="False", end=_UNMOVED), "that are left"),
           (_transpose_text(end="x"), "equally long"),
           (_transpose_text(end=_UNMOVED.replace("len(axes)", "3")), "not needed"),
           (_transpose_text(test="name", inside="return transpose(x, axes)", end=_UNMOVED),
            "nothing to be done"),
           (_transpose_text(end=_UNMOVED).replace("SIMPLER[", "dict()["), "into the table")],
    hints=["`transpose(x, axes)` in your rule is asked by the steps again"])


# -- needed_inputs ---------------------------------------------------------------------------------

def _some_program(mini: Any, seed: int) -> Any:
    """A program of a few operations, some of which are dead."""
    random = np.random.default_rng(seed)
    aval = mini.get_aval(1.0)
    inputs = [mini.Var(aval) for _ in range(random.integers(1, 5))]
    values, eqns = list(inputs), []
    for _ in range(random.integers(0, 6)):
        one, two = (values[k] for k in random.integers(0, len(values), 2))
        outs = tuple(mini.Var(aval) for _ in range(random.choice([1, 1, 2])))
        args = one, two if random.random() < 0.6 else mini.Literal(2.0)
        eqns.append(mini.JaxprEqn(args, outs, mini.Primitive("pair"), {}))
        values += outs
    outputs = [values[k] for k in random.integers(0, len(values), random.integers(1, 3))]
    return mini.Jaxpr(inputs, outputs, eqns)


def _needed(jaxpr: Any) -> list[bool]:
    read = set(jaxpr.outvars)
    for eqn in reversed(jaxpr.eqns):
        if not read.isdisjoint(eqn.outvars):
            read.update(eqn.invars)
    return [v in read for v in jaxpr.invars]


def grade_needed_inputs(needed_inputs: Callable) -> None:
    mini = _library()
    for seed in range(40):
        program = _some_program(mini, seed)
        inputs, expected = f"the program\n{program}\n", _needed(program)
        everything = [any(v in eqn.invars for eqn in program.eqns) or v in program.outvars
                      for v in program.invars]
        direct = [v in program.outvars for v in program.invars]
        result = needed_inputs(program)
        expect(isinstance(result, list) and len(result) == len(expected)
               and all(isinstance(x, int | np.bool_) for x in result), f"for {inputs}a list of "
               f"{len(expected)} booleans is expected, and yours is {result!r}")
        agree(inputs, result, expected,
              (result == everything, "an equation whose result nobody reads needs nothing"),
              (result == direct, "an output is made of values, which are made of inputs"),
              (any(np.array(direct) & ~np.array(result, bool)), "an input may be an output "
               "itself, with no equation between"),
              "begin with all outputs, and go through the equations from the last to the first",
              tolerance=0)


_NEEDED = """
def needed_inputs(jaxpr):
    read = set(jaxpr.outvars)
    for eqn in {order}:
        if {test}:
            read.update(eqn.invars)
    return {result}
"""


def _needed_text(order: str = "reversed(jaxpr.eqns)", result: str = "[v in read for v in "
                 "jaxpr.invars]", test: str = "not read.isdisjoint(eqn.outvars)") -> str:
    return _NEEDED.format(order=order, result=result, test=test)


exercise(
    "needed_inputs", chapter=CHAPTER, grade=grade_needed_inputs, given=_MINI,
    solution=_needed_text(),
    wrong=[(_needed_text(test="True"), "nobody reads needs nothing"),
           (_needed_text(order="jaxpr.eqns"), "from the last to the first"),
           (_needed_text(order="[]"), "made of inputs"),
           (_needed_text(result="[v in read and v not in jaxpr.outvars for v in jaxpr.invars]"),
            "an output itself"),
           (_needed_text(result="[v for v in jaxpr.invars if v in read]"), "booleans"),
           (_needed_text(result="read"), "booleans"),
           (_needed_text().replace("set(jaxpr.outvars)", "{jaxpr.outvars[0]}"),
            "begin with all outputs"),
           (_needed_text(test="eqn.outvars[-1] in read"), "the answer is")],
    hints=["`DynamicJaxprTrace.program` does something like it"])


# -- exponentials ----------------------------------------------------------------------------------

def grade_exponentials(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 4,
           f"four numbers are expected, and yours is {answer!r}")
    one, both, three, kept = answer
    message = f"yours is {list(answer)}\n"
    expect(one == 1, message + "the first: the two have the same argument")
    expect(both != 2, message + "the second: the gradient's exponential is of the same argument")
    expect(both == 1, message + "the second: what is the derivative of exp made of?")
    expect(three != 3, message + "the third: what is `x * 1.0`?")
    expect(three != 2,
           message + "the third: what is `exp(0.0)`, and what is then its product with x?")
    expect(three == 1, message + "the third: go through the steps for each of the three")
    expect(kept != 2, message + "the fourth: `g` is written down once for each type of argument, "
           "so both calls have the same program")
    expect(kept == 1, message + "the fourth: a call that is not inlined can still be shared")


exercise("exponentials", chapter=CHAPTER, grade=grade_exponentials, given=_MINI,
         solution="[1, 1, 1, 1]",
         wrong=[("[2, 1, 1, 1]", "the same argument"), ("[1, 2, 1, 1]", "of the same argument"),
                ("[1, 1, 3, 1]", "x * 1.0"), ("[1, 1, 2, 1]", "exp(0.0)"),
                ("[1, 1, 1, 2]", "the same program"), ("1", "four numbers")])


# -- printed ---------------------------------------------------------------------------------------

def grade_noisy_lines(answer: Any) -> None:
    expect(isinstance(answer, int), f"a whole number is expected, and yours is {answer!r}")
    expect(answer not in (1, 2), f"yours is {answer}: what prints is never shared, even if "
           "it is the same twice")
    expect(answer != 3, f"yours is {answer}: either the words in the loop or the numbers are "
           "missing")
    expect(answer != 0, f"yours is {answer}: what prints is never left out")
    expect(answer != 6, f"yours is {answer}: a sine is not a line: it prints nothing")
    expect(answer == 5, f"yours is {answer}: Python's loop leaves three equations, and two follow")


exercise("noisy_lines", chapter=CHAPTER, grade=grade_noisy_lines, solution="5",
         wrong=[("2", "never shared"), ("0", "never left out"), ("3", "missing"),
                ("6", "prints nothing"), ("4", "leaves three"), ('"5"', "a whole number")])
