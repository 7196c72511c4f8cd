"""The exercises of chapter 15, *Non-array inputs*."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import (agree, chosen, exercise, expect, near, numbers, shown,
                                     wanting)

from .ways import names_of

CHAPTER = "15_non_array_inputs"


# ---------------------------------------------------------------- what is taken


TAKEN = {
    "a": ("7", "a Python number is taken"),
    "b": ("[7]", "to NumPy a list is an array; what is it here?"),
    "c": ("np.int8(7)", "a NumPy number is a number, too"),
    "d": ("(7.0, 8.0)", "to NumPy a tuple is an array; what is it here?"),
    "e": ("np.ones((2, 2))", "NumPy's arrays are taken"),
    "f": ("range(7)", "a range is a sequence, like a list"),
    "g": ("[jnp.ones(2), jnp.ones(2)]", "it is full of arrays, and yet it is not an array itself"),
    "h": ("False", "is it a number? Try `False + 1` in Python"),
}


def is_taken(text: str) -> bool:
    try:
        jnp.sum(eval(text, {"np": np, "jnp": jnp}))
    except TypeError:
        return False
    return True


def grade_taken(answer: Any) -> None:
    chosen(answer, {letter: (text, is_taken(text), hint) for letter, (text, hint) in TAKEN.items()},
           "is taken", "is refused")


exercise(
    "taken", chapter=CHAPTER, grade=grade_taken, solution='"aceh"',
    wrong=[
        ('"abcdefgh"', "to NumPy a list is an array"),
        ('"acdeh"', "to NumPy a tuple is an array"),
        ('"acegh"', "not an array itself"),
        ('"ace"', "is it a number"),
        ('"aeh"', "a NumPy number"),
        ("['a', 'c', 'e', 'h']", "a string of letters"),
    ],
    hints=["try those that you are not sure of"])


def grade_spread(spread: Callable) -> None:
    calls: list[Any] = []
    real = names_of(spread).get("deviation")

    def listening(x: Any) -> Any:
        calls.append(x)
        return real(x)  # type: ignore[misc]

    random = np.random.default_rng(0)
    names_of(spread)["deviation"] = listening
    try:
        for readings in ([1.0, 2.0, 6.0], *random.integers(-9, 10, (3, 3)).astype(float).tolist(),
                         random.uniform(2000, 2001, 6).round(3).tolist(),
                         [0.0] * 9000 + [1.0] * 1000):
            calls.clear()
            expected = np.std(readings)
            inputs = f"readings = {readings}" if len(readings) < 9 else "9000 zeros and 1000 ones"
            with wanting(inputs, expected):
                out = spread(given := list(readings))
            expect(given == readings, f"for {inputs} the list is {given[:8]} after the call: "
                   "leave it as it is")
            agree(inputs, out, expected,
                  (float(min(readings)) % 1 > 0, "the readings are not rounded: of which dtype is "
                   "your array?"),
                  "it is the deviation of all of them, as `deviation` computes it", tolerance=2e-4)
            expect(calls, f"for {inputs} the answer is right, but `deviation` was never called: "
                   "let it do the work")
            expect(len(calls) == 1, f"for {inputs} `deviation` should be called once, and was "
                   f"called {len(calls)} times")
            kind = type(calls[0]).__name__
            expect(not isinstance(calls[0], list | tuple) or len(calls[0]) > 1, f"for {inputs} "
                   f"`deviation` was given a {kind}, with one array in it: the array itself is "
                   "enough")
            expect(not isinstance(calls[0], list | tuple), f"for {inputs} the program of "
                   f"`deviation` should have 1 input, and has {len(calls[0])}: it was given a "
                   f"{kind}. Make an array of it first")
            expect(isinstance(out, float), f"for {inputs} a Python float is expected, and yours is "
                   f"{type(out).__name__}")
    finally:
        names_of(spread)["deviation"] = real


exercise(
    "spread", chapter=CHAPTER, grade=grade_spread,
    given="""
@jax.jit
def deviation(x):
    x = jnp.array(x)
    return jnp.sqrt(jnp.mean((x - jnp.mean(x)) ** 2))
""",
    solution="""
def spread(readings):
    return float(deviation(jnp.array(readings)))
""",
    wrong=[
        ("def spread(readings):\n    readings.sort()\n"
         "    return float(deviation(jnp.array(readings)))", "leave it as it is"),
        ("def spread(readings):\n    return float(deviation(readings))", "was given a list"),
        ("def spread(readings):\n    return deviation(jnp.array(readings))", "Python float"),
        ("def spread(readings):\n    return float(deviation(tuple(readings)))",
         "was given a tuple"),
        ("def spread(readings):\n    return float(deviation([jnp.array(readings)]))",
         "the array itself is enough"),
        ("def spread(readings):\n    return float(deviation(jnp.array(readings, int)))",
         "of which dtype"),
        ("def spread(readings):\n    return float(deviation(jnp.array(readings, jnp.float16)))",
         "of which dtype"),
        ("def spread(readings):\n    return float(deviation(jnp.array([readings[:1000]])))",
         "for 9000 zeros and 1000 ones"),
        ("def spread(readings):\n    return float(np.std(readings))", "do the work"),
        ("def spread(readings):\n    return float(sum(deviation(r) for r in readings))",
         "of all of them"),
        ("def spread(readings):\n    deviation(readings[0])\n"
         "    return float(deviation(jnp.array(readings)))", "called once"),
    ],
    hints=["convert outside the compiled function"])


# ---------------------------------------------------------------- trees as arguments


CALLS = ["f(1.0)", "f(2.0)", "f(np.float32(1.0))", "f([1.0, 2.0])", "f((1.0, 2.0))",
         "f([3.0, 4.0])", "f(jnp.array([1.0, 2.0]))", "f(np.array([3.0, 4.0]))"]
WHY = {
    1: "nothing was compiled before",
    2: "a compiled program is used again for other values of the same types",
    3: "np.float32 names its dtype, and a Python number is weak: these are two types",
    4: "a list is a tree of two leaves, and no number",
    5: "a tuple is not a list: the tree is another one",
    6: "the tree and the types are those of call 4, and values do not matter",
    7: "an array is one input with two elements",
    8: "NumPy's array is float64; which dtype does it have when it arrives?",
}


def traced_calls() -> list[int]:
    """The calls that trace the function, found by running them."""
    counted: list[int] = []
    runs: list[int] = []
    f = jax.jit(lambda tree: runs.append(1))
    for number, call in enumerate(CALLS, 1):
        runs.clear()
        eval(call, {"f": f, "np": np, "jnp": jnp})
        counted += [number] * bool(runs)
    return counted


def grade_traces(answer: Any) -> None:
    expect(isinstance(answer, list | tuple | set) and all(isinstance(n, int) for n in answer),
           "the numbers of the calls are expected, such as [1, 2, 3], and yours is "
           f"{answer!r}")
    traced = traced_calls()
    for number, call in enumerate(CALLS, 1):
        is_traced = number in traced
        said = ["the program of an earlier call is found", "the function is traced"]
        expect((number in answer) == is_traced, f"in call {number}, {call}, {said[is_traced]}, and "
               f"by your answer {said[not is_traced]}\n{WHY[number]}")
    expect(set(answer) <= set(traced), "there are eight calls, from 1 to 8")


exercise(
    "traces", chapter=CHAPTER, grade=grade_traces, solution="[1, 3, 4, 5, 7]",
    wrong=[
        ("[1, 2, 3, 4, 5, 6, 7, 8]", "other values of the same types"),
        ("[1, 3, 4, 5, 7, 8]", "which dtype does it have"),
        ("[1, 4, 5, 7]", "a Python number is weak"),
        ("[1, 3, 4, 7]", "a tuple is not a list"),
        ("[1, 3, 4, 5]", "one input with two elements"),
        ("5", "the numbers of the calls"),
    ],
    hints=["three of the eight find the program of an earlier call"])


def _count(tree: Any, leaf: Callable[[Any], int]) -> int:
    """The number of leaves of a tree, by recursion."""
    if isinstance(tree, list | tuple | dict):
        return sum(_count(part, leaf) for part in (
            tree.values() if isinstance(tree, dict) else tree))
    return leaf(tree)


def grade_inputs_of(inputs_of: Callable) -> None:
    random = np.random.default_rng(0)

    def generated(depth: int) -> Any:
        kind = int(random.integers(0, 6 if depth else 3))
        if kind == 0:
            return None
        if kind < 3:
            return round(float(random.uniform(0, 9)), 1) if kind == 1 else np.zeros(2)
        parts = [generated(depth - 1) for _ in range(random.integers(0, 4))]
        return [parts, tuple(parts), dict(zip("abcd", parts, strict=False))][kind - 3]

    some: list[tuple[Any, ...]] = [
        ([1.0, 2.0, 3.0],), (np.zeros((2, 3)),), ({"weight": np.ones(4), "bias": None}, 2.0),
        ((), [[1.0], [2.0, (3.0,)]]), *((generated(3), generated(2)) for _ in range(8)),
        (same := np.ones(2), [same, same])]
    for args in some:
        inputs = "the arguments " + re.sub(r"\s+", " ", ", ".join(map(repr, args)))
        expected = _count(args, lambda leaf: leaf is not None)
        with wanting(inputs, expected):
            out = inputs_of(*args)
        agree(inputs, out, expected,
              (near(out, _count(args, lambda leaf: 1)), "None has no leaf: nothing comes in for "
               "it"),
              (near(out, _count(args, lambda leaf: 0 if leaf is None else np.size(leaf))),
               "an array is one input, however many numbers it holds"),
              (near(out, sum(len(a) if isinstance(a, list | tuple) else _count(
                  a, lambda leaf: leaf is not None) for a in args)), "there are trees in trees: go "
               "down to the leaves"),
              (args[0] is same, "one array three times is three inputs: the program does not know "
               "that they are the same"),
              (near(out, len(args)), "an argument can be a tree, and each leaf of it is an input"),
              "each leaf of each argument is an input")
    call = jax.tree_util.Partial(max, 1.0, [2.0, 3.0])
    agree(f"the argument {call}", inputs_of(call), 3, "other containers are trees, too: "
          "`jax.tree.leaves` knows all of them")


_INPUTS = "def inputs_of(*args):\n    return {}"

exercise(
    "inputs_of", chapter=CHAPTER, grade=grade_inputs_of,
    solution="""
def inputs_of(*args):
    return len(jax.tree.leaves(args))
""",
    wrong=[
        (_INPUTS.format("len(args)"), "each leaf of it is an input"),
        ("def inputs_of(*args):\n    def count(x):\n"
         "        x = [*x.values()] if isinstance(x, dict) else x\n"
         "        return (sum(map(count, x)) if isinstance(x, (list, tuple)) else\n"
         "                int(x is not None))\n    return count(args)", "other containers"),
        (_INPUTS.format("len({id(x) for x in jax.tree.leaves(args)})"), "one array three times"),
        (_INPUTS.format("sum(np.size(x) for x in jax.tree.leaves(args))"),
         "however many numbers it holds"),
        (_INPUTS.format("len(jax.tree.leaves(args, is_leaf=lambda x: x is None))"),
         "None has no leaf"),
        (_INPUTS.format("sum(len(a) if isinstance(a, (list, tuple, dict)) else 1 for a in args)"),
         "None has no leaf"),
        (_INPUTS.format("sum(len(a) if isinstance(a, (list, tuple)) else len(jax.tree.leaves(a)) "
                        "for a in args)"), "down to the leaves"),
    ],
    afterthought="the arguments together are a tree as well, so one call does it",
    hints=["`jax.tree.leaves` makes a list of the leaves of a tree"])


def grade_dense(dense: Callable) -> None:
    def expected(weight: Any, bias: Any, mask: Any, x: Any) -> Any:
        y = weight @ x if bias is None else weight @ x + bias
        return y if mask is None else y * mask

    weight, x = np.array([[1.0, 2.0], [-3.0, -4.0]], np.float32), np.ones(2, np.float32)
    some: list[Any] = [None, jnp.array([10.0, 20.0]), jnp.zeros(2), 0.0, 5.0]
    for f in (dense, jax.jit(dense)):
        for bias in some:
            for mask in (None, jnp.array([0.0, 1.0]), *some[2:4], jnp.array([0.5, -2.0])):
                inputs = f"weight @ x = [3, -7], bias = {_name(bias)} and mask = {_name(mask)}"
                answer = expected(weight, bias, mask, x)
                with wanting(inputs, answer, (
                        ValueError, "an array of two numbers is neither true nor false: ask "
                        "whether it is there, not what it is worth"), (
                        TypeError, "None is not an array: nothing can be added to it")):
                    out = numbers(f(weight, bias, mask, x))
                agree(inputs, out, answer,
                      (mask is not None and near(out, weight @ x * mask + (
                          0 if bias is None else bias)), "the bias comes first"),
                      (mask is not None and near(mask, 0.0) and near(out, expected(
                          weight, bias, None, x)), "a mask that is the number 0 is not a missing "
                       "mask: ask whether it is there, not for its value"),
                      (bias is None and mask is None, "without both it is `weight @ x`: each row "
                       "of weight times x"),
                      "add the bias if it is there, then multiply by the mask if it is there")
    slopes = jax.grad(lambda w: jnp.sum(dense(w, None, np.array([0.0, 1.0]), x)))(weight)
    agree("the mask (0, 1)", slopes, [[0.0, 0.0], [1.0, 1.0]], "right, but not under grad",
          what="the gradient of the sum")


def _name(x: Any) -> str:
    return "None" if x is None else shown(x)


exercise(
    "dense", chapter=CHAPTER, grade=grade_dense,
    solution="""
def dense(weight, bias, mask, x):
    y = weight @ x
    if bias is not None:
        y = y + bias
    return y if mask is None else y * mask
""",
    wrong=[
        ("def dense(weight, bias, mask, x):\n    y = weight @ x\n    if bias:\n"
         "        y = y + bias\n    return y * mask if mask else y", "neither true nor false"),
        ("def dense(weight, bias, mask, x):\n    y = jnp.maximum(weight @ x, 0)\n"
         "    y = y if bias is None else y + bias\n    return y if mask is None else y * mask",
         "each row of weight"),
        ("def dense(weight, bias, mask, x):\n    return (weight @ x + bias) * mask",
         "None is not an array"),
        ("def dense(weight, bias, mask, x):\n    y = jnp.dot(x, weight)\n"
         "    y = y if bias is None else y + bias\n    return y if mask is None else y * mask",
         "each row of weight"),
        ("def dense(weight, bias, mask, x):\n    y = weight @ x\n"
         "    y = y + (0.0 if bias is None else bias)\n"
         "    return y * mask if isinstance(mask, jnp.ndarray) else y", "not a missing mask"),
        ("def dense(weight, bias, mask, x):\n    y = weight @ x\n"
         "    y = y if mask is None else y * mask\n"
         "    return y if bias is None else y + bias", "the bias comes first"),
        ("def dense(weight, bias, mask, x):\n    y = weight @ x\n"
         "    y = y if bias is None else y + bias\n"
         "    return y if mask is None else jnp.where(mask, y, 0.0)", "then multiply"),
    ],
    hints=["`x is None` is known while tracing, `bool(x)` is not"])


# ---------------------------------------------------------------- numbers


def grade_blended(blended: Callable) -> None:
    random = np.random.default_rng(0)
    weights: list[Any] = [0.25, np.float32(0.25), np.float64(0.5), jnp.array([0.25, 0.75]),
                          np.array([0.5, 0.125]), 1, -0.5, 2]
    for dtype in ("float16", "float32", "bfloat16"):
        for t in weights:
            x, y = (jnp.asarray(random.integers(-9, 10, 2), dtype) for _ in "xy")
            a, b, weight = (np.asarray(part, float) for part in (x, y, t))
            expected = a * (1 - weight) + b * weight
            for how, f in (("", blended), (", compiled,", jax.jit(blended))):
                inputs = f"x = {shown(x)} and y = {shown(y)}, of {dtype}, and t = {t!r}{how}"
                with wanting(inputs, expected, (
                        jax.errors.ConcretizationTypeError, "`float` needs to know the number, and "
                        "under jit there is none yet"), (
                        jax.errors.TracerArrayConversionError, "under jit there is a tracer, which "
                        "NumPy cannot take: let jnp convert it"), (
                        AttributeError, "a Python number has no dtype and no methods of arrays"), (
                        TypeError, "t may be a number or an array")):
                    out = f(x, y, t)
                as_floats = np.asarray(numbers(out) if dtype != "bfloat16" else out, float)
                agree(inputs, as_floats, expected,
                      (near(out, expected[::-1]), "x and y are swapped"),
                      (bool(np.any((weight < 0) | (weight > 1))), "t may lie outside of 0 to 1: "
                       "the program does not cut it off"),
                      "it is x where t is 0, and y where t is 1", tolerance=1e-2)
                result = getattr(out, "dtype", type(out).__name__)
                expect(result == dtype, f"for {inputs} the dtype is {dtype}, and yours is "
                       f"{result}\n" + ("what has a dtype keeps it: only a Python number gives way"
                          if dtype == "float16" else "take the dtype of x, whatever it is"))

    x, y = jnp.array([2048.0, -1000.0], "float16"), jnp.array([0.25, 0.125], "float16")
    agree("x = 0 and y = 1, of float32, and t = 0.1", blended(jnp.float32(0), jnp.float32(1), 0.1),
          0.1, "t has the digits of the dtype of x", tolerance=1e-6)
    for one, other, t in ((x, y, 1), (y, x, 0)):
        agree(f"x = {shown(one)} and y = {shown(other)}, of float16, and t = {t}",
              np.asarray(blended(one, other, t), float), np.asarray(y, float), "beside 2048 the "
              "digits of 0.25 get lost: y - x is rounded, so multiply each by its own weight")


_BLENDED = "def blended(x, y, t):\n{}    return x * (1 - t) + y * t"

exercise(
    "blended", chapter=CHAPTER, grade=grade_blended,
    solution=_BLENDED.format("    t = jnp.asarray(t, x.dtype)\n"),
    wrong=[
        ("def blended(x, y, t):\n    t = jnp.asarray(t, jnp.float16)\n"
         "    return (x * (1 - t) + y * t).astype(x.dtype)", "the digits of the dtype"),
        (_BLENDED.format(""), "only a Python number gives way"),
        (_BLENDED.format("    t = jnp.asarray(t)\n"), "only a Python number gives way"),
        (_BLENDED.format("    t = jnp.asarray(t, jnp.float16)\n    x = x.astype(t.dtype)\n"
                         "    y = y.astype(t.dtype)\n"), "whatever it is"),
        (_BLENDED.format("    t = float(t)\n"), "there is none yet"),
        (_BLENDED.format("    t = jnp.clip(jnp.asarray(t, x.dtype), 0, 1)\n"), "cut it off"),
        (_BLENDED.format("    t = jnp.asarray(t, jnp.float16)\n"), "whatever it is"),
        (_BLENDED.format("    t = np.asarray(t, x.dtype)\n"), "let jnp convert it"),
        (_BLENDED.format("    t = t.astype(x.dtype)\n"), "no methods of arrays"),
        ("def blended(x, y, t):\n    t = jnp.asarray(t, x.dtype)\n    return x * t + y * (1 - t)",
         "y where t is 1"),
        ("def blended(x, y, t):\n    return x + (y - x) * jnp.asarray(t, x.dtype)",
         "multiply each by its own weight"),
    ],
    hints=["`jnp.asarray` takes a dtype, too"])


def grade_exact(exact: Callable) -> None:
    random = np.random.default_rng(0)
    limit = 2**31
    inputs: list[Any] = [
        np.array([1, 2, 3]), np.array([1, limit]), np.array([-limit - 1, 0]),
        np.array([limit - 1, -limit]), np.array([[2**32 + 5]]), np.array([2**40, 0, 1]),
        np.array([7], np.uint8), np.array([2 * limit - 1, 0], np.uint32), np.array([], int),
        np.array([2 * limit], np.uint64), np.array([limit], np.uint64),
        *random.integers(-2 * limit, 2 * limit, (4, 2)),
        *random.integers(-limit, limit, (3, 2))]
    for x in inputs:
        low, high = (0, 2 * limit) if x.dtype.kind == "u" else (-limit, limit)
        fits = bool(np.all((x >= low) & (x < high)))
        named = f"np.array({x.tolist()}), of {x.dtype},"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                out = exact(x.copy())
        except Exception as error:
            if isinstance(error, NameError | AttributeError):
                raise
            expect(not fits, f"for {named} the answer is {shown(x)}, and yours raised "
                   f"{type(error).__name__}: {error}\n" + (
                       "an empty array has no largest number" if not x.size else
                       f"{x.dtype} becomes uint32, whose largest number is 2**32 - 1"
                       if low == 0 else
                       "int64 is fine, as long as 32 bits hold each of its numbers"))
            expect(isinstance(error, OverflowError), f"for {named} an OverflowError is expected, "
                   f"and yours raised {type(error).__name__}: {error}")
            continue
        expect(fits, f"for {named} an error is expected, and yours is {shown(out)}\n"
               + ("the least number of 32 bits is -2**31" if x.size and x.min() < low
                  and x.max() < high
                  else "each number that does not fit should raise; a warning, or what is "
                  "collected and not looked at, raises nothing"))
        agree(named.strip(","), numbers(out), x, "where all of them fit, return the array",
              tolerance=0)
        expect(isinstance(out, jnp.ndarray), f"for {named} an array of jnp is expected, and yours "
               f"is {type(out).__name__}")


exercise(
    "exact", chapter=CHAPTER, grade=grade_exact,
    solution="""
def exact(x):
    with jax.checking_sharp_bits(collect=True) as findings:
        y = jnp.asarray(x)
    if findings:
        raise OverflowError(findings[0].message)
    return y
""",
    wrong=[
        ("def exact(x):\n    return jnp.asarray(x)", "each number that does not fit"),
        ("def exact(x):\n    with jax.checking_sharp_bits(collect=True) as findings:\n"
         "        return jnp.asarray(x)", "not looked at"),
        ("def exact(x):\n    with jax.debug_dtype_truncation(True):\n"
         "        return jnp.asarray(x)", "a warning"),
        ("def exact(x):\n    if x.dtype.itemsize > 4:\n        raise OverflowError('64 bits')\n"
         "    return jnp.asarray(x)", "int64 is fine"),
        ("def exact(x):\n    y = jnp.asarray(x)\n    assert (np.asarray(y) == x).all()\n"
         "    return y", "an OverflowError is expected"),
        ("def exact(x):\n    if x.max() >= 2**31:\n        raise OverflowError('too large')\n"
         "    return jnp.asarray(x)", "the least number"),
        ("def exact(x):\n    if x.max() >= 2**31 or x.min() < -2**31:\n"
         "        raise OverflowError('too large')\n    return x", "an array of jnp"),
        ("def exact(x):\n    low, high = (0, 2**32) if x.dtype.kind == 'u' else (-2**31, 2**31)\n"
         "    if x.max() >= high or x.min() < low:\n        raise OverflowError('too large')\n"
         "    return jnp.asarray(x)", "has no largest"),
        ("def exact(x):\n    if x.size and (x.max() >= 2**31 or x.min() < -2**31):\n"
         "        raise OverflowError('too large')\n    return jnp.asarray(x)", "becomes uint32"),
        ("def exact(x):\n    if not np.array_equal(np.asarray(jnp.asarray(x)), x):\n"
         "        raise OverflowError('too large')\n    return x", "an array of jnp"),
    ],
    afterthought="or compare with NumPy: what comes back from the array should be what went in",
    hints=["look at the list of findings after the with block"])


# ---------------------------------------------------------------- static arguments


def grade_to_be_static(answer: Any) -> None:
    names = ("x", "shape", "n", "how", "scale")
    answer = answer.replace(",", " ").split() if isinstance(answer, str) else answer
    expect(isinstance(answer, list | tuple | set) and set(answer) <= set(names),
           'a list of names is expected, such as ["x"], and yours is ' f"{answer!r}")
    runs: list[int] = []
    first = (1.0, (2, 3), 2, "sum", 0.5)

    def drawn(x: Any, shape: Any, n: Any, how: Any, scale: Any) -> Any:
        runs.append(1)
        y = jnp.broadcast_to(x, shape)
        for _ in range(n):
            y = jnp.sin(y) * scale
        return jnp.sum(y) if how == "sum" else y

    why = {"shape": "a shape must be known while tracing, as the type of the result depends on it",
           "n": "`range` needs a number, and a tracer has none yet",
           "how": "there is no tracer for a word"}
    compiled = jax.jit(drawn, static_argnames=tuple(answer))
    for missing in ("how", "shape", "n"):
        if missing not in answer:
            try:
                compiled(*first)
            except (TypeError, ValueError) as error:
                expect(False, f"drawn{first} should give a number, and with your names raises "
                       f"{type(error).__name__}\n{why[missing]}")
    calls: dict[str, tuple[Any, ...]] = {"x": (2.0, (2, 3), 2, "sum", 0.5),
                                         "scale": (1.0, (2, 3), 2, "sum", 0.25)}
    compiled(*first)
    for name, args in calls.items():
        runs.clear()
        compiled(*args)
        expect(not runs, f"after drawn{first}, drawn{args} should find its program, and with your "
               f"names it is traced anew\n{name} is only computed with: as data it may have any "
               "value")


exercise(
    "to_be_static", chapter=CHAPTER, grade=grade_to_be_static, solution='["shape", "n", "how"]',
    wrong=[
        ('["how"]', "a shape must be known"),
        ('["shape", "how"]', "`range` needs a number"),
        ('["shape", "n"]', "no tracer for a word"),
        ('["shape", "n", "how", "scale"]', "scale is only computed with"),
        ('["x", "shape", "n", "how"]', "x is only computed with"),
        ('"all"', "a list of names"),
    ],
    hints=["ask of each: does Python need its value to know which operations there are?"])


def grade_window(window: Any) -> None:
    expect(isinstance(window, type), f"a class is expected, and yours is {window!r}")
    try:
        one, same, other = window(3, "flat"), window(3, "flat"), window(5, "flat")
        fields: tuple[Any, ...] = (one.width, one.kind)
    except (TypeError, AttributeError) as error:
        fields = (f"raised {type(error).__name__}: {error}",)
    expect(fields == (3, "flat"), "of Window(3, 'flat') the fields `width` and `kind` should be "
           f"(3, 'flat'), and yours are {fields}")
    traced: list[Any] = []

    def smooth(x: Any, how: Any) -> Any:
        traced.append((how.width, how.kind))
        return x * how.width

    jitted = jax.jit(smooth, static_argnums=1)
    try:
        jitted(1.0, one)
    except ValueError:
        expect(False, "for the static argument Window(3, 'flat') the function should be traced "
               "once, and yours raised ValueError: it cannot be hashed. What compares by its "
               "fields, and can change, has no hash")
    agree("1.0 and Window(5, 'flat'), where the function multiplies by the width,",
          jitted(1.0, other), 5.0, "two different windows share a program")
    jitted(1.0, same)
    expect(len(traced) == 2 or one != same, "Window(3, 'flat') and another Window(3, 'flat') are "
           "equal, and their hashes are "
           + ("equal, too" if hash(one) == hash(same) else
              "not: what is equal should have one hash"))
    expect(len(traced) == 2, "for Window(3, 'flat'), Window(5, 'flat') and Window(3, 'flat') the "
           f"function should be traced twice, with the widths 3 and 5, and was with {traced}\n"
           "two windows with equal fields were traced twice: by default, an object is equal to "
           "itself only")
    jitted(1.0, window(3, "round"))
    expect(traced[2:] == [(3, "round")], "Window(3, 'flat') and Window(3, 'round') share a "
           "program, and with it the kind of the first: all fields should be compared")
    expect(one != window(3, "round") and one != other, "Window(3, 'flat') is equal to "
           f"{'another of kind round' if one != other else 'one of width 5'}: two windows are "
           "equal if all their fields are")
    for field, value in (("width", 100), ("kind", "round")):
        try:
            setattr(one, field, value)
        except (AttributeError, TypeError):
            continue
        expect(False, f"for one = Window(3, 'flat'), one.{field} = {value!r} should raise, and "
               "yours is changed: the compiled program would not notice")


HASHED = """
class Window:
    def __init__(self, width, kind):
        self.width, self.kind = width, kind

    def __eq__(self, other):
        return (self.width, self.kind) == (other.width, other.kind)

    def __hash__(self):
        return hash((self.width, self.kind))
"""

exercise(
    "Window", chapter=CHAPTER, grade=grade_window, given="import dataclasses",
    solution="""
@dataclasses.dataclass(frozen=True)
class Window:
    width: int
    kind: str
""",
    wrong=[
        ("class Window:\n    def __init__(self, width, kind):\n"
         "        self.width, self.kind = width, kind", "equal to itself only"),
        ("@dataclasses.dataclass\nclass Window:\n    width: int\n    kind: str",
         "cannot be hashed"),
        (HASHED, "would not notice"),
        ("@dataclasses.dataclass(frozen=True)\nclass Window:\n    width: int\n    kind: str\n\n"
         "    def __eq__(self, other):\n        return self.width == other.width",
         "equal if all their fields are"),
        ("@dataclasses.dataclass(frozen=True)\nclass Window:\n    width: int\n    kind: str\n\n"
         "    def __hash__(self):\n        return id(self)", "should have one hash"),
        ("{'width': 3, 'kind': 'flat'}", "a class is expected"),
        ("@dataclasses.dataclass(frozen=True)\nclass Window:\n    width: int\n"
         "    kind: str = dataclasses.field(compare=False)", "all fields should be compared"),
    ],
    right=["from typing import NamedTuple\n"
           "class Window(NamedTuple):\n    width: int\n    kind: str"],
    hints=["dataclasses can be frozen"])


# ---------------------------------------------------------------- tracers in the hands of others


PRICES = [3.0, 5.0, 8.0, 13.0]


def grade_bill(bill: Callable) -> None:
    random, prices = np.random.default_rng(0), np.array(PRICES)
    ways: dict[str, Callable] = {
        "": bill, " under jit": jax.jit(bill), " under vmap": jax.vmap(bill, (0, None)),
        " under grad": jax.grad(bill, 1)}
    for way, mine in ways.items():
        for _ in range(3):
            amounts = random.integers(-2, 6, 3).astype(np.float32) + 0.5
            i = random.integers(1, 4, 3) if way == " under vmap" else int(random.integers(1, 4))
            inputs = f"i = {shown(i)} and amounts = {shown(amounts)}{way}"
            what, expected = "the answer", np.sum(np.maximum(amounts, 1)) * prices[i]
            if way == " under grad":
                what = "the gradient with respect to the amounts"
                expected = (amounts > 1) * prices[i]
            with wanting(inputs, expected, (
                    jax.errors.TracerIntegerConversionError, "a Python list needs a number for its "
                    "index: make an array of the prices, which a tracer can be an index of"), (
                    jax.errors.ConcretizationTypeError, "under jit nobody knows the number yet, so "
                    "nothing of Python's can ask for it"), (
                    jax.errors.TracerArrayConversionError, "NumPy needs an array of numbers, and "
                    "gets a tracer: its functions and arrays have to go"), what=what):
                out = numbers(mine(i, amounts))
            agree(inputs, out, expected, (near(out, prices[i] * np.sum(amounts)), "an amount below "
                  "1 is billed as 1"), "the sum of what is billed, times the price of article i",
                  what=what)


_BILL = "def bill(i, amounts):\n    return {}"

exercise(
    "bill", chapter=CHAPTER, grade=grade_bill, given="prices = [3.0, 5.0, 8.0, 13.0]",
    solution="""
def bill(i, amounts):
    return jnp.sum(jnp.maximum(amounts, 1.0)) * jnp.array(prices)[i]
""",
    wrong=[
        ("def bill(i, amounts):\n    table = jnp.array(prices)\n"
         "    return jnp.sum(jnp.maximum(amounts, 1.0), where=amounts > 0) * table[i]",
         "the sum of what is billed"),
        (_BILL.format("np.sum(np.maximum(amounts, 1.0)) * prices[i]"),
         "its functions and arrays have to go"),
        (_BILL.format("jnp.sum(jnp.maximum(amounts, 1.0)) * prices[i]"),
         "a Python list needs a number"),
        (_BILL.format("jnp.sum(jnp.maximum(amounts, 1.0)) * np.array(prices)[i]"),
         "NumPy needs an array"),
        (_BILL.format("np.sum(np.maximum(amounts, 1.0)) * jnp.array(prices)[i]"),
         "NumPy needs an array"),
        (_BILL.format("jnp.sum(jnp.maximum(amounts, 1.0)) * prices[int(i)]"),
         "nobody knows the number yet"),
        (_BILL.format("jnp.sum(amounts) * jnp.array(prices)[i]"), "is billed as 1"),
    ],
    hints=["what gets a tracer here, but needs a number?"])
