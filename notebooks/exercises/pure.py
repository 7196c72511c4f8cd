"""The exercises of chapter 12, *Pure functions*."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import (agree, exercise, expect, instead_of, near, numbers, shown,
                                     wanting)

from .ways import equations, of_dtype

CHAPTER = "12_pure_functions"


def _stays_pure(f: Callable, *args: Any) -> None:
    """Raise a hint if an answer has side effects while it is traced."""
    with jax.checking_sharp_bits(collect=True) as findings:
        jax.jit(lambda *args: f(*args))(*args)
    for result in findings:
        expect(result.kind != "debug_purity", "the numbers are right, but nothing outside should "
               f"change, and there {result.message}")


def grade_said(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 4,
           f"a list of four numbers is expected, one for each call, and yours is {answer!r}")
    calls = (
        ("the first call", 10.0, "it traces, and `factor` is 10 then"),
        ("the second call", 10.0, "its argument has the type of the first, so the program of the "
         "first call runs; the Python, which would read `factor`, does not"),
        ("the third call", 20.0, "its argument has another shape, for which there is no program "
         "yet: the function is traced again, and reads `factor` as it is now"),
        ("the last call", 10.0, "its argument has the type of the first: there are two programs "
         "now, each with its own constant"))
    for (call, expected, why), result in zip(calls, answer, strict=True):
        agree(call, result, expected, why)


exercise(
    "said", chapter=CHAPTER, grade=grade_said,
    solution="[10.0, 10.0, 20.0, 10.0]",
    wrong=[
        ("[10.0, 20.0, 20.0, 20.0]", "the Python, which would read"),
        ("[10.0, 10.0, 10.0, 10.0]", "another shape"),
        ("[10.0, 10.0, 20.0, 20.0]", "two programs"),
        ("[20.0, 20.0, 20.0, 20.0]", "`factor` is 10 then"),
        ("10.0", "a list of four numbers"),
    ],
    right=["jnp.array([10.0, 10.0, 20.0, 10.0])", "(10, 10, 20, 10)"],
    hints=["which of the four calls run the Python of `multiplied`?"])


def grade_tick(tick: Callable) -> None:
    step, calls = jax.jit(tick), [(0, 3.0), (5, -2.0), (41, 0.5), (1000, 7.0)]
    pair = tick(*calls[0])
    expect(isinstance(pair, tuple | list) and len(pair) == 2,
           f"for count = 0 and x = 3.0 the answer is (1, 9.0), and yours is {shown(pair)}\n"
           "return two things: the new count and the square")
    results = [step(*call) for call in calls]
    counts = [int(count) for count, _ in results]
    expect(len(set(counts)) > 1, "for the counts 0, 5, 41 and 1000 the new ones are 1, 6, 42 and "
           f"1001, and yours is {counts[0]} each time\nwhere does each call find the count of the "
           "one before?")
    for (count, x), result in zip(calls, results, strict=True):
        agree(f"count = {count} and x = {x}", result, (count + 1, x * x),
              (not near(result[1], x * x), "the second result is the square of x"),
              (near(result[0], count), "the count that comes back is the one that went in: return "
               "the new one"), "the new count is one more than the old one")
    of_dtype("count = 5", tick(jnp.array(5), 2.0)[0], np.int32, "a count is a whole number, and a "
             "loop that carries it wants its type to stay")
    _stays_pure(tick, 0, 1.0)


exercise(
    "tick", chapter=CHAPTER, grade=grade_tick,
    given="total = 0\n",
    solution="""
def tick(count, x):
    return count + 1, x * x
""",
    wrong=[
        ("def tick(count, x):\n    count += 1\n    return x * x", "return two things"),
        ("def tick(count, x):\n    return count, x * x", "the one that went in"),
        ("def tick(count, x):\n    global total\n    total += 1\n    return total, x * x",
         "where does each call find"),
        ("def tick(count, x):\n    return count + 1, x", "the square of x"),
        ("def tick(count, x):\n    return count + 1.0, x * x", "a whole number"),
        ("def tick(count, x, seen=[]):\n    seen.append(1)\n    return count + 1, x * x",
         "nothing outside should change"),
    ],
    hints=["what it changes is a result, and the caller passes it in again"])


def grade_alternating(alternating: Callable) -> None:
    random = np.random.default_rng(0)
    generated = random.integers(-9, 10, (4, 3)).tolist()
    for values in ([1, 2, 3, 4], [0, 1, 2, 3, 4], [5, 3], [7], *generated):
        v = np.array(values, np.float32)
        signs = np.where(np.arange(len(v)) % 2 == 0, 1.0, -1.0)
        result = numbers(jax.jit(lambda v: alternating(v))(v))
        agree(f"v = {values}", result, np.sum(signs * v),
              (np.shape(result) != (), "one number is expected"),
              (near(result, np.sum(v)), "this is the plain sum: the sign that the body took first "
               "is used in every step"),
              (near(result, -np.sum(v)), "every term was taken away: a sign that is taken in the "
               "body is taken once"),
              (len(v) % 2 and near(result, np.sum((signs * v)[:-1])), "the last one of an odd "
               "number of elements has no partner, and counts, too"),
              (near(result, -np.sum(signs * v)), "the first term is added, the second subtracted"),
              "add the elements at even places, and subtract those at odd ones")
    _stays_pure(alternating, jnp.arange(5.0))
    few, many = (len([*equations(jax.make_jaxpr(alternating)(jnp.ones(n)))]) for n in (6, 30))
    expect(many <= few, f"right, but of 6 numbers the program has {few} equations, and of 30 "
           f"it has {many}: Python's loop is written out, so use `lax.fori_loop`, or no loop")


exercise(
    "alternating", chapter=CHAPTER, grade=grade_alternating,
    given="import itertools\nfrom minijax import lax\n",
    solution="""
def alternating(v):
    signs = 1.0 - 2.0 * (jnp.arange(len(v)) % 2)
    return lax.fori_loop(0, len(v), lambda i, total: total + signs[i] * v[i], 0.0)
""",
    wrong=[
        ("def alternating(v):\n    signs = itertools.cycle([1.0, -1.0])\n"
         "    return lax.fori_loop(0, len(v), lambda i, t: t + next(signs) * v[i], 0.0)",
         "in every step"),
        ("def alternating(v):\n    signs = itertools.cycle([-1.0, 1.0])\n"
         "    return lax.fori_loop(0, len(v), lambda i, t: t + next(signs) * v[i], 0.0)",
         "taken once"),
        ("def alternating(v):\n    signs = jnp.arange(len(v)) % 2 * 2.0 - 1.0\n"
         "    return jnp.sum(signs * v)", "the first term is added"),
        ("def alternating(v):\n    return v * (1.0 - 2.0 * (jnp.arange(len(v)) % 2))",
         "one number"),
        ("def alternating(v):\n    return jnp.sum(v[::2]) - v[1] - v[3]", "those at odd ones"),
        ("def alternating(v):\n"
         "    return sum(s * x for s, x in zip(itertools.cycle([1.0, -1.0]), v))",
         "is written out"),
        ("@jax.jit\ndef alternating(v):\n"
         "    return sum((-1) ** k * v[k] for k in range(len(v)))", "is written out"),
    ],
    afterthought="jnp.sum(signs * v) needs no loop at all",
    hints=["an array of signs, made before the loop, has no state",
           "the remainder of a division by 2 tells even places from odd ones"])


def grade_talking(talking: Callable) -> None:
    f, numbers, said = jax.jit(talking), (1.0, 2.0, -0.125), []
    for x in numbers:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            y = f(x)
        said.append(out.getvalue().strip())
        agree(f"x = {x}", y, 2 * x, "the result is twice the argument")
    expected = [f"x is {x}" for x in numbers]
    shown_lines = (f"three calls, with 1.0, 2.0 and -0.125, should print {expected}, and yours "
                   f"{said}\n")
    expect(any(said), shown_lines + "nothing was printed")
    expect(not any("Traced" in text for text in said), shown_lines + "this prints the tracer, "
           "once: the numbers are not there yet when Python prints")
    expect(all(said), shown_lines + "the first call printed, and the others did not")
    expect(any(text.startswith("x is ") for text in said), shown_lines + "mind the words")
    expect(not any("\n" in text for text in said), shown_lines + "one line for each call")
    expect(len(set(said)) > 1, shown_lines + "each call has a number of its own")
    expect(said == expected, shown_lines + ("print the whole number" if said[:2] == expected[:2]
           else "print the argument"))
    with contextlib.redirect_stdout(io.StringIO()) as out:
        f(3)
    agree("a call with the whole number 3, after those,", len(out.getvalue().split()), 3, "its "
          "program is another one, and should print as well", what="the number of words printed")


exercise(
    "talking", chapter=CHAPTER, grade=grade_talking,
    solution="""
def talking(x):
    jax.debug.print("x is {}", x)
    return 2 * x
""",
    wrong=[
        ("printed = False\ndef talking(x):\n    global printed\n    if not printed:\n"
         "        jax.debug.print(\"x is {}\", x)\n        printed = True\n    return 2 * x",
         "should print as well"),
        ('def talking(x):\n    print("x is", x)\n    return 2 * x', "prints the tracer"),
        ('def talking(x):\n    print("x is 1.0")\n    return 2 * x', "the others did not"),
        ("def talking(x):\n    return 2 * x", "nothing was printed"),
        ('def talking(x):\n    jax.debug.print("{}", x)\n    return 2 * x', "mind the words"),
        ('def talking(x):\n    jax.debug.print("x is {:.1f}", x)\n    return 2 * x',
         "the whole number"),
        ('def talking(x):\n    jax.debug.print("x is {}", x)', "twice the argument"),
        ('def talking(x):\n    jax.debug.print("x is {}", 2 * x)\n    return 2 * x',
         "print the argument"),
        ('def talking(x):\n    for _ in range(2):\n        jax.debug.print("x is {}", x)\n'
         '    return 2 * x', "one line for each call"),
        ('def talking(x):\n    jax.debug.print("x is 1.0")\n    return 2 * x',
         "a number of its own"),
    ],
    hints=["look for a print among the functions of `jax.debug`"])


def _sorted_out(answer: Any, reasons: dict[str, tuple[bool, str]], is_so: str) -> None:
    """Compare a reader's list of names with those of the functions that have a property."""
    expect(isinstance(answer, list | tuple | set),
           f"a list of names is expected, and yours is {answer!r}")
    for name in answer:
        expect(name in reasons, f"the functions are {', '.join(reasons)}, and {name!r} in your "
               "list is none of them")
    for name, (right, why) in reasons.items():
        expect((name in answer) == right, f"`{name}` {is_so}: {'yes' if right else 'no'}, and in "
               f"your list: {'no' if right else 'yes'}\n{why}")


def grade_impure(answer: Any) -> None:
    _sorted_out(answer, {
        "f_total": (True, "it adds to a global: a second trace would add again"),
        "f_log": (True, "its list gets longer with each trace"),
        "f_next": (True, "it takes the next item, and another one in a second trace"),
        "f_table": (False, "it writes, too; but a second trace finds the table there, and writes "
                    "nothing"),
        "f_local": (False, "its list is its own, made and lost in each trace"),
    }, "is stopped")


exercise(
    "impure", chapter=CHAPTER, grade=grade_impure,
    solution='["f_total", "f_log", "f_next"]',
    wrong=[
        ('["f_total", "f_log", "f_next", "f_table"]', "finds the table"),
        ('["f_total", "f_log"]', "takes the next item"),
        ('["f_total", "f_log", "f_next", "f_local"]', "is its own"),
        ('["f_log", "f_next"]', "adds to a global"),
        ('"f_log"', "a list of names"),
    ],
    hints=["ask of each: would a second trace change something again?"])


# -- times_traced ----------------------------------------------------------------------------------

_ARGUMENTS = {  # in a reader's words, the value, and a name for its type
    "1.0": (1.0, "weak float"), "2.5": (2.5, "weak float"), "3": (3, "weak int"),
    "jnp.ones(2)": (np.ones(2, np.float32), "float32[2]"),
    "jnp.zeros(2)": (np.zeros(2, np.float32), "float32[2]"),
    "jnp.ones(3)": (np.ones(3, np.float32), "float32[3]"),
    "jnp.arange(2)": (np.arange(2, dtype=np.int32), "int32[2]"),
    "[1.0, 2.0]": ([1.0, 2.0], "two weak floats"), "[3.0, 4.0]": ([3.0, 4.0], "two weak floats"),
    "[1.0, 2.0, 3.0]": ([1.0, 2.0, 3.0], "three weak floats")}


def grade_times_traced(times_traced: Callable) -> None:
    random, names = np.random.default_rng(0), list(_ARGUMENTS)
    lists = [["1.0", "2.5"], ["1.0", "1.0", "1.0"], [], ["jnp.ones(2)", "jnp.ones(3)"],
             ["3", "1.0"], ["[1.0, 2.0]", "[3.0, 4.0]", "jnp.ones(2)", "[1.0, 2.0, 3.0]"]]
    lists += [random.choice(names, size).tolist() for size in (3, 4, 5, 6, 8)]
    before = 0  # how often the lists until now were traced
    for inputs in lists:
        kinds = [_ARGUMENTS[name][1] for name in inputs]
        values = [jnp.asarray(x) if isinstance(x, np.ndarray) else x
                  for x, _ in (_ARGUMENTS[name] for name in inputs)]
        ran: list[None] = []

        def f(x: Any, ran: list[None] = ran) -> Any:
            ran.append(None)
            return x

        expected = f"for the arguments [{', '.join(inputs)}] the answer is {len(set(kinds))}, and "
        with instead_of(UnboundLocalError, "", expected + "yours fails: a function that assigns to "
                        "a name has its own variable of that name; say `nonlocal`, or use a list "
                        "that gets longer"):
            result = times_traced(f, values)
        expect(result is not None, "your function gave None: does it end in `return`?")
        shapes = {kind.partition("[")[2] for kind in kinds}
        agree(f"the arguments [{', '.join(inputs)}]", result, len(set(kinds)),
              (near(result, len(inputs)), "these are the calls; a call that finds its program "
               "ready does not trace"),
              (near(result, 1) and len(shapes) > 1, "the compiled function should be called with "
               "*each* argument, and each time that its Python runs should count"),
              (before and near(result, before + len(set(kinds))), "your count goes on from one use "
               "of `times_traced` to the next: begin at zero"),
              (near(result, 0), "do you compile the function that notes, and not `f`?"),
              (near(result, len(shapes)) and "3" in inputs, "a type is more than a shape: 3 and "
               "1.0 have different ones"),
              (any(name.startswith("[") for name in inputs), "a list is a tree, and no array: it "
               "has a type for each leaf; pass each argument on as it is"),
              "have the Python of the function note that it runs", tolerance=0)
        before += len(set(kinds))
        expect(len(values) == len(inputs), f"the list of arguments [{', '.join(inputs)}] has "
               f"{len(values)} after the call: take none out")
        expect(bool(ran) == bool(inputs), f"for the arguments [{', '.join(inputs)}] the number is "
               f"{len(set(kinds))}, and yours, too; but `f` itself never ran, and it is `f` that "
               "is asked about")


exercise(
    "times_traced", chapter=CHAPTER, grade=grade_times_traced,
    solution="""
def times_traced(f, arguments):
    traces = []
    def noting(x):
        traces.append("one more")
        return f(x)
    compiled = jit(noting)
    for x in arguments:
        compiled(x)
    return len(traces)
""",
    given="from minijax import jit\n",
    wrong=[
        ("def times_traced(f, arguments):\n    traces = []\n    compiled = jit(f)\n"
         "    for x in arguments:\n        traces.append(1)\n        compiled(x)\n"
         "    return len(traces)", "finds its program ready"),
        ("def times_traced(f, arguments):\n    traces = []\n    def noting(x):\n"
         "        traces.append(1)\n        return jit(f)(x)\n    for x in arguments:\n"
         "        noting(x)\n    return len(traces)", "finds its program ready"),
        ("def times_traced(f, arguments):\n    traces = []\n    def noting(x):\n"
         "        traces.append(1)\n        return f(x)\n    compiled = jit(noting)\n"
         "    while arguments:\n        compiled(arguments.pop(0))\n    return len(traces)",
         "take none out"),
        ("def times_traced(f, arguments):\n    for x in arguments:\n        jit(f)(x)\n"
         "    return len({jnp.shape(x) for x in arguments})", "more than a shape"),
        ("def times_traced(f, arguments):\n    traces = 0\n    def noting(x):\n"
         "        traces += 1\n        return f(x)\n    compiled = jit(noting)\n"
         "    for x in arguments:\n        compiled(x)\n    return traces",
         "say `nonlocal`"),
        ("n = 0\ndef times_traced(f, arguments):\n    def noting(x):\n        global n\n"
         "        n += 1\n        return f(x)\n    compiled = jit(noting)\n"
         "    for x in arguments:\n        compiled(x)\n    return n", "begin at zero"),
        ("def times_traced(f, arguments):\n"
         "    return len({str(jax.typeof(x)) for x in arguments})", "never ran"),
        ("def times_traced(f, arguments):\n    traces = []\n    def noting(x):\n"
         "        traces.append(1)\n        return f(x)\n    compiled = jit(noting)\n"
         "    for x in arguments:\n        compiled(jnp.asarray(x))\n    return len(traces)",
         "as it is"),
        ("def times_traced(f, arguments):\n    traces = []\n    compiled = jit(f)\n"
         "    for x in arguments:\n        compiled(x)\n    return len(traces)",
         "the function that notes"),
    ],
    afterthought="a side effect that is useful: it says when Python runs",
    hints=["write a function around `f` that leaves a note, and compile that one"])


# -- uses_old --------------------------------------------------------------------------------------

_CASES = (  # what it shows, its source, the argument, whether an old value is used, a hint
    ("a global that is multiplied with x = 3", """
rate = 0.5
def f(x):
    return rate * x
def change():
    global rate
    rate = 2.0
""", 3.0, True, "nothing was noticed: the switch must be on at the first call, too, since a "
     "program that was made while nobody watched is not used by one who watches; and `make_jaxpr` "
     "does not trace again what it has traced"),
    ("a global that is multiplied with x = 0", """
rate = 0.5
def f(x):
    return rate * x
def change():
    global rate
    rate = 2.0
""", 0.0, True, "the two results agree by chance, and the program is wrong for any other x"),
    ("a global that the function does not read", """
rate, other = 0.5, 1.0
def f(x):
    return rate * x
def change():
    global other
    other = 2.0
""", 3.0, False, "nothing that the program is made of has changed"),
    ("a global that makes no difference to the program", """
verbose = False
def f(x):
    return x + 1.0 if verbose else x + 1.0
def change():
    global verbose
    verbose = True
""", 3.0, False, "a change does no harm if a new program would be the same"),
    ("a function that prints, and no change", """
def f(x):
    print(end="")
    return x + 1.0
def change():
    pass
""", 3.0, False, "the print is found, too, but in the first call: take what is found after the "
     "change"),
    ("a function whose result is nan, and no change", """
import minijax.numpy as jnp
def f(x):
    return jnp.log(x)
def change():
    pass
""", -1.0, False, "a nan is found in each call, and is no old value: ask a finding for its `kind`"),
    ("a list that is read by its length", """
layers = ["a", "b"]
def f(x):
    return x * len(layers)
def change():
    layers.append("c")
""", 3.0, True, "the list has one item more than at the time of tracing"),
    ("an attribute of an object", """
import types
settings = types.SimpleNamespace(size=0.5)
def f(x):
    return x * settings.size
def change():
    settings.size = 1.5
""", 3.0, True, "the function reads the attribute while it is traced"),
)


def grade_uses_old(uses_old: Callable) -> None:
    for inputs, source, x, expected, why in _CASES:
        names: dict[str, Any] = {}
        exec(compile(source, "<an example>", "exec"), names)
        with instead_of(jax.errors.ImpureFunctionError, "", f"for {inputs} the answer is "
                        f"{expected}, and yours stops at an error: collect the findings"):
            result = uses_old(names["f"], x, names["change"])
        expect(isinstance(result, bool | np.bool_), f"for {inputs} the answer is {expected}, and "
               f"yours is {result!r}\nTrue or False is expected")
        agree(inputs, result, expected, why, tolerance=0)


_USES_OLD = """
def uses_old(f, x, change):
    compiled = jit(f)
    with jax.checking_sharp_bits(collect=True):
        compiled(x)
    change()
    with jax.checking_sharp_bits(collect=True) as findings:
        compiled(x)
    return any(found.kind == "debug_purity" for found in findings)
"""

exercise(
    "uses_old", chapter=CHAPTER, grade=grade_uses_old,
    given="from minijax import jit\nfrom minijax.sharp_bits.captured import Snapshot\n",
    solution=_USES_OLD,
    wrong=[
        ("def uses_old(f, x, change):\n    old = f(x)\n    change()\n    return f(x) != old",
         "agree by chance"),
        ("def uses_old(f, x, change):\n    compiled = jit(f)\n    compiled(x)\n    change()\n"
         "    with jax.checking_sharp_bits(collect=True) as findings:\n        compiled(x)\n"
         "    return len(findings) > 0", "must be on at the first call"),
        ("def uses_old(f, x, change):\n    compiled = jit(f)\n"
         "    with jax.checking_sharp_bits(collect=True) as findings:\n        compiled(x)\n"
         "        change()\n        compiled(x)\n    return len(findings) > 0",
         "the print is found"),
        ("def uses_old(f, x, change):\n    before = Snapshot(f)\n    change()\n"
         "    return len(before.changes(Snapshot(f))) > 0", "no harm"),
        ("def uses_old(f, x, change):\n    before = str(jax.make_jaxpr(f)(x))\n    change()\n"
         "    return str(jax.make_jaxpr(f)(x)) != before", "trace again"),
        ("def uses_old(f, x, change):\n    compiled = jit(f)\n"
         "    with jax.config.debug_purity(True):\n        compiled(x)\n        change()\n"
         "        try:\n            compiled(x)\n        except jax.errors.ImpureFunctionError:\n"
         "            return True\n    return False", "collect the findings"),
        (_USES_OLD.replace("any(found.kind == \"debug_purity\" for found in findings)", "findings"),
         "True or False"),
        (_USES_OLD.replace("any(found.kind == \"debug_purity\" for found in findings)",
                           "len(findings) > 0"), "ask a finding for its `kind`"),
    ],
    afterthought="`f(x)` before and after would not do: numbers can agree by chance",
    hints=["two calls, with the change between them, both with the switch on",
           "collect what is found in the second call alone"])


# -- leaky -----------------------------------------------------------------------------------------

def grade_leaky(answer: Any) -> None:
    _sorted_out(answer, {
        "k_shape": (False, "the shape of a tracer is a tuple of Python numbers"),
        "k_sum": (True, "the sum of a tracer is another tracer"),
        "k_ones": (True, "under `jit`, whatever jnp makes becomes an operation of the program, "
                   "even if it has nothing to do with x"),
        "k_table": (False, "NumPy knows nothing about tracers: its arrays are numbers"),
        "k_later": (True, "a function keeps the variables that it uses, and here x is one"),
        "k_text": (False, "a text is made of a tracer's type, and does not keep it"),
    }, "leaves a tracer behind")


exercise(
    "leaky", chapter=CHAPTER, grade=grade_leaky,
    solution='["k_sum", "k_ones", "k_later"]',
    wrong=[
        ('["k_sum", "k_later"]', "nothing to do with x"),
        ('["k_sum", "k_ones"]', "keeps the variables"),
        ('["k_shape", "k_sum", "k_ones", "k_later"]', "a tuple of Python numbers"),
        ('["k_sum", "k_ones", "k_table", "k_later"]', "knows nothing about tracers"),
        ('["k_ones", "k_later"]', "another tracer"),
        ('["k_sum", "k_ones", "k_later", "k_text"]', "does not keep it"),
        ('["sum"]', "none of them"),
        ('"k_sum"', "a list of names is expected"),
    ],
    hints=["three of them keep a tracer, one without any mention of x"])


# -- activations -----------------------------------------------------------------------------------

def grade_activations(activations: Callable) -> None:
    random = np.random.default_rng(0)
    for count in (1, 2, 3):
        weights = [random.normal(size=(k + 3, k + 2)).round(1).astype(np.float32)
                   for k in range(count)]
        x = random.normal(size=2).round(1).astype(np.float32)
        values = [x]
        for w in weights:
            values.append(np.tanh(w @ values[-1]))
        for f, how in ((activations, ""), (jax.jit(lambda w, x: activations(w, x)), " under jit")):
            inputs = f"x = {shown(x)} and {count} layer{'s' * (count > 1)}{how}"
            with wanting(inputs, values[-1], (
                    jax.errors.TracerArrayConversionError, "NumPy knows no tracers; the list may "
                    "hold them, since it is returned"), (
                    (TypeError, ValueError), "the layers need not be of one size: a list can hold "
                    "the output of each"), what="the output"):
                given = [jnp.asarray(w) for w in weights]
                result, leaked = _with_leaks(f, given, jnp.asarray(x))
            expect(len(given) == count, f"for {inputs} the list of weights has {len(given)} after "
                   "the call: take none out")
            expect(not leaked, f"for {inputs} nothing should be left behind, and yours leaves a "
                   "tracer in a list outside: make the list in the function, and return it")
            expect(isinstance(result, tuple | list) and len(result) == 2 and
                   isinstance(result[1], tuple | list),
                   f"for {inputs} the answer is a pair, the output and a list of {count}, and "
                   f"yours is {shown(result)}\n" + (
                       "the output comes first" if isinstance(result, tuple | list) and
                       len(result) == 2 and isinstance(result[0], tuple | list) else
                       "a list: the layers need not be of one size" if isinstance(
                           result, tuple | list) and len(result) == 2 else "return both"))
            out, hidden = result
            agree(inputs, len(hidden), count,
                  (len(hidden) == count + 1, "the input is not a result of a layer"),
                  (len(hidden) > count, "the list goes on from call to call: make it in the "
                   "function"),
                  "one value for each layer", what="the length of the list", tolerance=0)
            agree(inputs, out, values[-1], what="the output")
            for place, (one, expected) in enumerate(zip(hidden, values[1:], strict=True)):
                agree(inputs, one, expected, (near(one, values[count - place]) and count > 1,
                      "the first layer comes first"), "after tanh, and not before",
                      what=f"item {place} of the list")


def _with_leaks(f: Callable, *args: Any) -> tuple[Any, bool]:
    """The result of a function, and whether it leaked a tracer."""
    try:
        with jax.checking_leaks():
            return f(*args), False
    except jax.errors.TracerLeakError:
        return None, True


_ACTIVATIONS = """
def activations(weights, x):
    hidden = []
    for w in weights:
        x = jnp.tanh(w @ x)
        hidden.append(x)
    return x, hidden
"""

exercise(
    "activations", chapter=CHAPTER, grade=grade_activations,
    given="seen = []\n", solution=_ACTIVATIONS,
    wrong=[
        ("def activations(weights, x):\n    outs = []\n    while weights:\n"
         "        x = jnp.tanh(weights.pop(0) @ x)\n        outs.append(x)\n"
         "    return x, outs", "take none out"),
        (_ACTIVATIONS.replace("    hidden = []\n", "").replace("hidden", "seen"),
         "leaves a tracer"),
        (_ACTIVATIONS.replace("hidden.append(x)", "hidden.append(x)\n        seen.append(x)"),
         "leaves a tracer"),
        (_ACTIVATIONS.replace("hidden.append(x)", "hidden.append(np.asarray(x))"),
         "knows no tracers"),
        (_ACTIVATIONS.replace("return x, hidden", "return x"), "return both"),
        ("def activations(weights, x):\n    step = lambda x, w: (jnp.tanh(w @ x),) * 2\n"
         "    out, hidden = jax.lax.scan(step, x, jnp.stack(weights))\n"
         "    return out, [*hidden]", "need not be of one size"),
        (_ACTIVATIONS.replace("return x, hidden", "return x, jnp.stack(hidden)"),
         "need not be of one size"),
        (_ACTIVATIONS.replace("[]", "[x]"), "is not a result"),
        (_ACTIVATIONS.replace("return x, hidden", "return x, hidden[::-1]"), "comes first"),
        (_ACTIVATIONS.replace("x = jnp.tanh(w @ x)\n        hidden.append(x)",
                              "hidden.append(w @ x)\n        x = jnp.tanh(hidden[-1])"),
         "after tanh"),
    ],
    afterthought="`jax.grad(…, has_aux=True)` takes such a pair: the slope is that of the first",
    hints=["a list that is made in the function is no state of the world"])


# -- observed --------------------------------------------------------------------------------------

def grade_observed(observed: Callable) -> None:
    start, random = {"count": 0, "mean": 0.0}, np.random.default_rng(0)
    for values in ([4.0], [1.0, 3.0], *random.integers(-9, 10, (3, 4)).astype(float).tolist()):
        state: Any = dict(start)
        for n, x in enumerate(values, 1):
            inputs, before = f"state = {state} and x = {x}", dict(state)
            expected = np.mean(values[:n])
            pair = observed(state, x)
            expect(isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], dict),
                   f"for {inputs} the answer is a pair, a new state and {shown(expected)}, and "
                   f"yours is {pair!r}\nreturn both")
            new, mean = pair
            expect(set(new) == {"count", "mean"}, f"for {inputs} the new state has a count and a "
                   f"mean, and yours is {new}")
            agree(inputs, new["count"], n, "it is one more than before", what="the new count")
            agree(inputs, [new["mean"], mean], [expected, expected],
                  (near(new["mean"], before["mean"]), "the new mean belongs in the new state"),
                  (near(mean, before["mean"] + x) and n > 1, "that is the sum"),
                  "the mean moves towards x, by the n-th part of the way to it; n is the new count",
                  what="the mean, in the state and beside it,")
            expect(state == before, f"for {inputs} the caller's state should be as it was, and is "
                   f"{state}\nwhat is changed is a result: make a new dict")
            state = {"count": int(new["count"]), "mean": float(new["mean"])}
    x = jnp.array([1.0, 3.0, 8.0])
    inputs = "three values in a `lax.scan`"
    new = jax.eval_shape(observed, start, 1.0)[0]
    for part in start:
        expected, result = jax.typeof(start[part]).dtype, new[part].dtype
        expect(expected == result, f"for {inputs} the {part} is {expected} before and after each "
               f"step, and yours is {result} after it\na loop carries a state of one type: keep it")
    agree(inputs, jax.lax.scan(lambda state, x: observed(state, x), start, x)[1], [1.0, 2.0, 4.0],
          what="the means")
    _stays_pure(observed, start, 1.0)


_OBSERVED = """
def observed(state, x):
    count = state["count"] + 1
    mean = state["mean"] + (x - state["mean"]) / count
    return {"count": count, "mean": mean}, mean
"""

exercise(
    "observed", chapter=CHAPTER, grade=grade_observed, solution=_OBSERVED,
    wrong=[
        ('def observed(state, x):\n    state["count"] += 1\n'
         '    state["mean"] += (x - state["mean"]) / state["count"]\n'
         '    return state, state["mean"]', "the caller's state"),
        (_OBSERVED.replace("+ 1\n", "+ 1.0\n"), "a state of one type"),
        (_OBSERVED.replace('{"count": count, "mean": mean}, mean', "mean"), "return both"),
        (_OBSERVED.replace('"count": count', '"count": state["count"]'), "one more than before"),
        (_OBSERVED.replace('"mean": mean', '"mean": state["mean"]'), "in the new state"),
        (_OBSERVED.replace(") / count", ")"), "by the n-th part"),
        (_OBSERVED.replace("/ count", "/ 2"), "by the n-th part"),
        (_OBSERVED.replace('(x - state["mean"]) / count', "x"), "that is the sum"),
    ],
    afterthought="and so it is the body of a `lax.scan`, as it stands",
    hints=["what `self` had is now in `state`, and what `self` was given is in the new state"])
