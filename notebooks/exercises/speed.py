"""The exercises of chapter 28, *How fast is fast*."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax.notebook.checks import agree, exercise, expect, shown, wanting

CHAPTER = "28_how_fast_is_fast"


class _Machine:
    """A machine with an exact clock: the time of each call is set, and multiplied by the load."""

    def __init__(self, load: Callable[[int], float]) -> None:
        self.now, self.calls, self.load = 0.0, 0, load
        self.looks: list[tuple[float, int]] = []

    def clock(self) -> float:
        self.looks.append((self.now, self.calls))
        return self.now

    def program(self, cost: float) -> Callable[[], None]:
        def run() -> None:
            self.now += cost * self.load(self.calls)
            self.calls += 1
        return run


# -- median_time -----------------------------------------------------------------------------------

def grade_median_time(median_time: Callable) -> None:
    loads = [[100, 1, 3, 2], [100, 1, 1, 1, 1, 1], [7, 1, 90, 2, 1, 2], [1, 5, 4, 9, 2, 3, 3, 3],
             [9, 8, 1, 2, 5, 4], [1, 9, 2, 8, 3, 7]]
    for load in loads:
        machine = _Machine(lambda call, load=load: load[min(call, len(load) - 1)])  # type: ignore[misc]
        count, expected = len(load) - 1, float(statistics.median(load[1:]))
        inputs = f"calls that take {', '.join(map(str, load))}, and count = {count},"
        with wanting(inputs, expected, what="the time"):
            result = median_time(machine.program(1.0), machine.clock, count)
        agree(inputs, result, expected,
              (machine.calls == count, "the first call of all must not count: call it once "
               "before"),
              (result == statistics.mean(load[1:]) != expected, "that is the mean: one call that "
               "was disturbed moves it"),
              (result == min(load[1:]) != expected, "that is the minimum"),
              (len(machine.looks) < 2 * count, "look at the clock before and after each call"),
              "which calls count, and what is between them?", what="the time")
        expect(machine.calls == count + 1, f"for {inputs} {count + 1} calls are made, and by yours "
               f"{machine.calls}")


_MEDIAN = """
def median_time(f, clock, count):
    {warm}
    times = []
    for _ in range(count):
        start = clock()
        f()
        times.append(clock() - start)
    return {result}
"""


def _median(warm: str = "f()", result: str = "float(np.median(times))") -> str:
    return _MEDIAN.format(warm=warm, result=result)


exercise("median_time", chapter=CHAPTER, grade=grade_median_time, solution=_median(),
         right=[_median(result="sorted(times)[count // 2]")],
         wrong=[(_median(warm="pass"), "call it once before"),
                ("def median_time(f, clock, count):\n    times = []\n"
                 "    for _ in range(count + 1):\n        start = clock()\n        f()\n"
                 "        times.append(clock() - start)\n    return sorted(times)[count // 2]",
                 "which calls count"),
                (_median(result="float(np.mean(times))"), "the mean"),
                (_median(result="min(times)"), "the minimum"),
                (_median(result="times[count // 2]"), "which calls count"),
                ("def median_time(f, clock, count):\n    f()\n    start = clock()\n"
                 "    for _ in range(count):\n        f()\n    return (clock() - start) / count",
                 "the mean")])


# -- compared --------------------------------------------------------------------------------------

def grade_compared(compared: Callable) -> None:
    loads: dict[str, Callable[[int], float]] = {
        "a quiet machine": lambda call: 1.0,
        "a machine that gets slower": lambda call: 1.02 ** call,
        "a machine on which a few calls are disturbed":
            lambda call: 50.0 if call % 13 == 6 else 1.0}
    for (name, load), (one, other) in itertools.product(
            loads.items(), [(10.0, 10.0), (5.0, 10.0), (12.0, 3.0)]):
        machine, expected = _Machine(load), other / one
        inputs = f"{name}, and programs that take {one:g} and {other:g},"
        with wanting(inputs, expected, what="the ratio"):
            result = compared(machine.program(one), machine.program(other), machine.clock, 20)
        expect(isinstance(result, float), f"for {inputs} the ratio is {expected:g}, and yours is "
               f"{result!r}")
        message = f"for {inputs} the ratio is {expected:.3g}, and yours is {result:.3g}\n"
        apart = abs(result / expected - 1.0)
        expect(apart < 0.05 or abs(result * expected - 1.0) > 0.05 or expected == 1.0,
               message + "how many times as long as `f` does `g` take? Yours is the other way "
               "round")
        expect(apart < 0.05 or name != "a machine that gets slower", message + "while one is "
               "measured, the machine changes: both must feel it, so let them take turns")
        expect(apart < 0.05, message + (
            "a few slow calls must not matter: compare medians" if "disturbed" in name else
            "what passes between the two looks at the clock?"))
    machine, counts = _Machine(lambda call: 1.0), [0, 0]

    def counted(k: int, times: Iterator[float]) -> Callable:
        def program() -> None:
            counts[k] += 1
            machine.program(next(times))()
        return program
    quick = [itertools.cycle(times) for times in ([3.0, 1.0, 3.0], [3.0, 3.0, 2.0])]
    ratio = compared(*itertools.starmap(counted, enumerate(quick)), machine.clock, 21)
    expect(ratio == 1.0, "for programs that take 3, 1, 3, 3, 1, 3 … and 3, 3, 2, 3, 3, 2 … the "
           f"medians are 3 and 3, and their ratio is 1, and yours is {ratio:.3g}: compare medians")
    expect(min(counts) >= 21, f"for count = 21 each program is called 21 times at least, and by "
           f"yours {counts[0]} and {counts[1]} times")
    turns = [itertools.cycle(times) for times in ([3.0, 1.0, 2.0], [1.0, 2.0, 3.0])]
    ratio = compared(*(lambda turn=turn: machine.program(next(turn))() for turn in turns),
                     machine.clock, 21)
    expect(ratio == 1.0, "for programs that take 3, 1, 2, 3, 1, 2 … and 1, 2, 3, 1, 2, 3 … the "
           f"medians are 2 and 2, and their ratio is 1, and yours is {ratio:.3g}: the two medians "
           "are compared, not the calls in pairs")


_COMPARED = """
def compared(f, g, clock, count):
    times = [], []
    {order}
            start = clock()
            program()
            found.append(clock() - start)
    return float({result})
"""
_TURNS = "for _ in range(count):\n        for program, found in zip((f, g), times):"
_ROWS = "for program, found in zip((f, g), times):\n        for _ in range(count):"


def _compared(order: str = _TURNS,
              result: str = "np.median(times[1]) / np.median(times[0])") -> str:
    return _COMPARED.format(order=order, result=result)


exercise("compared", chapter=CHAPTER, grade=grade_compared, solution=_compared(),
         wrong=[("def compared(f, g, clock, count):\n    one, other = [], []\n"
                 "    for _ in range(count):\n        start = clock()\n        f()\n"
                 "        one.append(clock() - start)\n        g()\n"
                 "        other.append(clock() - start)\n"
                 "    return float(np.median(other) / np.median(one))", "two looks at the clock"),
                (_compared(result="min(times[1]) / min(times[0])"), "compare medians"),
                (_compared(result="np.median(times[1]) / np.median(times[0])").replace(
                    "            start", "            if program is g and len(times[0]) % 2:\n"
                    "                continue\n            start"), "21 times at least"),
                (_compared(order=_ROWS), "take turns"),
                (_compared(result="np.median(times[0]) / np.median(times[1])"), "other way round"),
                (_compared(result="np.mean(times[1]) / np.mean(times[0])"), "compare medians"),
                (_compared(result="sum(times[1]) / sum(times[0])"), "compare medians"),
                (_compared(result="np.median(np.divide(times[1], times[0]))"), "not the calls in")])


# -- false_alarm -----------------------------------------------------------------------------------

def grade_false_alarm(false_alarm: Callable) -> None:
    for p, tests in ((0.1, 2), (0.5, 1), (0.005, 100), (0.2, 30), (0.3, 0), (0.0, 5)):
        expected, inputs = 1.0 - (1.0 - p) ** tests, f"p = {p} and tests = {tests}"
        with wanting(inputs, expected):
            result = false_alarm(p, tests)
        agree(inputs, result, expected,
              (abs(result - p * tests) < 1e-9, "a probability is at most 1: two tests may fail at "
               "the same time, and that was counted twice"),
              (abs(result - p ** tests) < 1e-9, "that is how often all of them fail"),
              (abs(result - (1.0 - p) ** tests) < 1e-9, "that is how often none of them fails"),
              "how often does no test fail?", tolerance=1e-9)


_ALARM = "def false_alarm(p, tests):\n    return {}"

exercise("false_alarm", chapter=CHAPTER, grade=grade_false_alarm,
         solution=_ALARM.format("1 - (1 - p) ** tests"),
         wrong=[(_ALARM.format("p * tests"), "counted twice"),
                (_ALARM.format("p ** tests"), "all of them"),
                (_ALARM.format("(1 - p) ** tests"), "none of them"),
                (_ALARM.format("min(1.0, 2 * p * tests)"), "no test fail")])


# -- work_of_four ----------------------------------------------------------------------------------

def grade_work_of_four(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 4
           and all(isinstance(each, list | tuple) and len(each) == 2 for each in answer),
           f"four pairs (operations, bytes) are expected, and yours is {shown(answer)}")
    message = f"yours is {list(answer)}\n"
    line, triad, total, folded = map(tuple, answer)
    expect(line[1] != 16, message + "line: it is one loop, and nothing between goes to memory")
    expect(line[1] != 4, message + "line: the result is written, too")
    expect(line == (2, 8), message + "line: a product and a sum; four bytes read, four written")
    expect(triad == (2, 16), message + "triad: three numbers are read, and one is written")
    expect(total[1] != 12,
           message + "total: the products are not written, they are added up at once")
    expect(total == (2, 8), message + "total: a product and an addition; two numbers are read")
    expect(folded[1] != 12, message + "folded: at best x comes from memory once, "
           "and is asked for twice")
    expect(folded == (1, 8), message + "folded: one addition; x comes, the result goes")


exercise("work_of_four", chapter=CHAPTER, grade=grade_work_of_four,
         solution="[(2, 8), (2, 16), (2, 8), (1, 8)]",
         wrong=[("[(2, 16), (2, 16), (2, 8), (1, 8)]", "nothing between"),
                ("[(2, 4), (2, 16), (2, 8), (1, 8)]", "is written, too"),
                ("[(2, 8), (2, 12), (2, 8), (1, 8)]", "three numbers"),
                ("[(2, 8), (2, 16), (2, 12), (1, 8)]", "added up at once"),
                ("[(2, 8), (2, 16), (2, 8), (1, 12)]", "comes from memory once"),
                ("[2, 2, 2, 1]", "four pairs")])


# -- shortest_time ---------------------------------------------------------------------------------

_WORKS = [(1e9, 1e9, 1e11, 1e10), (1e12, 1e9, 1e11, 1e10), (0.0, 4e9, 1e11, 2e10),
          (5e9, 1e8, 2e10, 1e10), (3e10, 3e9, 1e11, 1e10)]


def grade_shortest_time(shortest_time: Callable) -> None:
    some = 10.0 ** np.random.default_rng(0).uniform(6, 12, (20, 4))
    for operations, nbytes, rate, bandwidth in (*_WORKS, *some.tolist()):
        one, other = operations / rate, nbytes / bandwidth
        expected = max(one, other)
        inputs = (f"{operations:g} operations and {nbytes:g} bytes, with {rate:g} and "
                 f"{bandwidth:g} a second,")
        with wanting(inputs, expected, what="the time"):
            result = shortest_time(operations, nbytes, rate, bandwidth)
        agree(inputs, result, expected,
              (result == one + other, "it computes while it waits: the two go on at the same time"),
              (result == min(one, other), "the slower one is not finished yet"),
              "how long does each take by itself?", what="the time", tolerance=1e-9)


_TIME = "def shortest_time(operations, nbytes, rate, bandwidth):\n    return {}"

exercise("shortest_time", chapter=CHAPTER, grade=grade_shortest_time,
         solution=_TIME.format("max(operations / rate, nbytes / bandwidth)"),
         wrong=[(_TIME.format("operations / rate + nbytes / bandwidth"), "at the same time"),
                (_TIME.format("min(operations / rate, nbytes / bandwidth)"), "not finished"),
                (_TIME.format("operations / rate"), "not finished"),
                (_TIME.format("nbytes / bandwidth"), "not finished"),
                (_TIME.format("nbytes / bandwidth if nbytes >= operations else operations / rate"),
                 "not finished"),
                (_TIME.format("max(rate / operations, bandwidth / nbytes) if operations else 0.0"),
                 "by itself")])


# -- operations_of ---------------------------------------------------------------------------------

_MINI = """
from minijax.notebook.library import library
library.begin("26")
import mini, math
"""


def _operations(mini: Any, jaxpr: Any) -> int:
    total = 0.0
    for eqn in jaxpr.eqns:
        name, params = eqn.primitive.name, eqn.params
        size = mini.size_of(eqn.outvars[0])
        if name in mini.TEXT:
            total += size
        elif name == "sum":
            total += mini.size_of(eqn.invars[0])
        elif name == "dot":
            total += 2 * size * eqn.invars[0].aval.shape[-1]
        elif name == "scan":
            total += params["length"] * _operations(mini, params["body"])
        total += math.fsum(_operations(mini, inside) for inside in params.get("programs", ()))
    return int(total)


def grade_operations_of(operations_of: Callable) -> None:
    from minijax.notebook.library import library
    mini: Any = library.module
    x, a = np.ones(5), np.ones((3, 4))

    def looped(x: Any) -> Any:
        return mini.scan(lambda c, row: (c * 0.5 + row, c), 0.0, x)[1]

    def nested(x: Any) -> Any:
        return mini.scan(lambda c, row: (c + mini.jit(mini.sin)(mini.sum(row)), c), 0.0, x)[1]
    cases: list[tuple[str, Callable, Sequence[Any], str]] = [
        ("x * x + x", lambda x: x * x + x, [x], "one for each element of each result"),
        ("x * 2.0", lambda x: x * 2.0, [x], "the broadcast of 2.0 is not arithmetic"),
        ("mini.sum(a)", mini.sum, [a], "a sum counts the elements of its operand"),
        ("mini.dot(a, b)", mini.dot, [a, np.ones((4, 2))],
         "for each element of the result there are as many products as a row has elements, and "
         "each counts two"),
        ("mini.dot(a, b)", mini.dot, [np.ones((6, 2)), np.ones((2, 5))],
         "how many elements has a row of the first?"),
        ("mini.transpose(a, (1, 0))", lambda a: mini.transpose(a, (1, 0)), [a],
         "to move elements is not arithmetic"),
        ("mini.jit(mini.sin)(x)", lambda x: mini.jit(mini.sin)(x), [x],
         'what is in `eqn.params["programs"]` counts, too'),
        ("a scan of five rounds", looped, [x], "the body is run `length` times"),
        ("a scan with a sum and a `jit` in its body", nested, [a], "a body is a program like any "
         "other: all rules hold in it"),
        ("a gradient", mini.grad(lambda x: mini.sum(mini.exp(x) * x)), [x], "one for each element")]
    for words, f, args, hint in cases:
        jaxpr = mini.make_jaxpr(f)(*args)
        inputs = f"{words}, with shapes {[np.shape(x) for x in args]},"
        expected = _operations(mini, jaxpr)
        with wanting(inputs, expected, hint, what="the count"):
            result = operations_of(jaxpr)
        agree(inputs, result, expected, hint, what="the count", tolerance=1e-9)


_OPERATIONS = """
def operations_of(jaxpr):
    total = 0
    for eqn in jaxpr.eqns:
        name, size = eqn.primitive.name, mini.size_of(eqn.outvars[0])
        if name in mini.TEXT:
            total += size
        if name == "sum":
            total += {of_sum}
        if name == "dot":
            total += {of_dot}
        if name == "scan":
            total += {length} * operations_of(eqn.params["body"])
        for inside in {inside}:
            total += operations_of(inside)
        {others}
    return total
"""


def _count(of_sum: str = "mini.size_of(eqn.invars[0])",
           of_dot: str = "2 * size * eqn.invars[0].aval.shape[-1]",
           length: str = 'eqn.params["length"]', inside: str = 'eqn.params.get("programs", ())',
           others: str = "pass") -> str:
    text = _OPERATIONS.format(of_sum=of_sum, of_dot=of_dot, length=length, inside=inside,
                              others=others)
    return "\n".join(line for line in text.splitlines() if line.strip() != "pass")


exercise("operations_of", chapter=CHAPTER, grade=grade_operations_of, given=_MINI,
         solution=_count(),
         wrong=[(_count(of_sum="size"), "elements of its operand"),
                (_count(of_dot="2 * size"), "as a row has elements"),
                (_count(of_dot="8 * size"), "a row of the first"),
                (_count(of_dot="size * eqn.invars[0].aval.shape[-1]"), "counts two"),
                (_count(length="1"), "`length` times"), (_count(inside="()"), "counts, too"),
                (_count(others='total += size if name == "broadcast" else 0'), "not arithmetic"),
                (_count().replace('operations_of(eqn.params["body"])', "sum(\n"
                                  "                mini.size_of(e.outvars[0])\n"
                                  '                for e in eqn.params["body"].eqns\n'
                                  "                if e.primitive.name in mini.TEXT)"),
                 "all rules hold"),
                ("def operations_of(jaxpr):\n    return len(jaxpr.eqns)", "for each element")])


# -- waits_for -------------------------------------------------------------------------------------

def grade_waits_for(waits_for: Callable) -> None:
    calls = (1e-6, 1e-2)
    sizes = ((6, 24), (2e6, 8e6), (2e9, 8e6), (2e7, 4e7), (1e4, 1e3), (0, 1e9),
             (8e8, 1.4e8))
    some = (10.0 ** np.random.default_rng(0).uniform(
        [6, 6, 9, 9, -4], [11, 11, 12, 12, 0], (40, 5))).tolist()
    for operations, nbytes, rate, bandwidth, call in (
            *((*size, 1e11, 2e10, call) for size, call in itertools.product(sizes, calls)), *some):
        times = {"arithmetic": operations / rate, "memory": nbytes / bandwidth, "the call": call}
        expected = max(times, key=times.__getitem__)
        inputs = f"{operations:g} operations, {nbytes:g} bytes and {call:g} s for a call"
        with wanting(inputs, expected):
            result = waits_for(operations, nbytes, rate, bandwidth, call)
        expect(result == expected, f"for {inputs} the answer is {expected!r}, and yours is "
               f"{result!r}\n"
               + ", ".join(f"{name} takes {took:.2g} s" for name, took in times.items()))


_WAITS = """
def waits_for(operations, nbytes, rate, bandwidth, call):
    times = {{"arithmetic": {one}, "memory": {other}, "the call": {call}}}
    return {best}(times, key=times.get)
"""


def _waits(one: str = "operations / rate", other: str = "nbytes / bandwidth", call: str = "call",
           best: str = "max") -> str:
    return _WAITS.format(one=one, other=other, call=call, best=best)


exercise("waits_for", chapter=CHAPTER, grade=grade_waits_for, solution=_waits(),
         wrong=[(_waits(best="min"), "takes"), (_waits(call="0.0"), "the call takes"),
                (_waits(one="operations", other="nbytes"), "arithmetic takes"),
                (_waits(call="call - operations / rate"), "the call takes"),
                ("def waits_for(operations, nbytes, rate, bandwidth, call):\n"
                 "    if call > max(operations / rate, nbytes / bandwidth):\n"
                 "        return 'the call'\n"
                 "    return 'memory' if nbytes > operations else 'arithmetic'", "memory takes"),
                (_waits(one="operations / bandwidth", other="nbytes / rate"), "memory takes")])


# -- mean_ratio ------------------------------------------------------------------------------------

def grade_mean_ratio(mean_ratio: Callable) -> None:
    cases = [[4.0, 1.0, 0.25], [3.0, 0.1, 7.0, 1.5], [2.0, 2.0], [8.0, 2.0], [0.5],
             [100.0, 0.5, 0.5], [4.0] * 600, [0.25] * 600]
    for ratios in cases:
        expected = math.exp(statistics.fmean(map(math.log, ratios)))
        inputs = f"the ratios {shown(ratios)}" if len(ratios) < 600 else f"600 times {ratios[0]}"
        with wanting(inputs, expected, what="the mean"):
            result = mean_ratio(list(ratios))
        agree(inputs, result, expected,
              (result == statistics.mean(ratios), "by that both libraries can be the faster one: "
               "turn the ratios over, and look"),
              (result == statistics.median(ratios), "only the middle one counts for that"),
              (abs(result - len(ratios) / sum(1 / r for r in ratios)) < 1e-9, "take the "
               "reciprocals: their mean is not one over this"),
              (len(ratios) == 600, "the product is too large for a float, or too small: add "
               "logarithms"),
              "ratios multiply; which number, multiplied by itself as often, has the same product?",
              what="the mean", tolerance=1e-9)


_MEAN = "def mean_ratio(ratios):\n    return {}"

exercise("mean_ratio", chapter=CHAPTER, grade=grade_mean_ratio,
         solution=_MEAN.format("float(np.exp(np.mean(np.log(ratios))))"),
         wrong=[(_MEAN.format("float(np.sqrt(np.mean(ratios) / np.mean(1 / np.array(ratios))))"),
                 "the same product"),
                (_MEAN.format("sum(ratios) / len(ratios)"), "can be the faster"),
                (_MEAN.format("float(np.median(ratios))"), "only the middle"),
                (_MEAN.format("len(ratios) / sum(1 / r for r in ratios)"), "not one over this"),
                (_MEAN.format("float(np.prod(ratios))"), "the same product"),
                (_MEAN.format("float(np.sqrt(np.prod(ratios)))"), "the same product"),
                (_MEAN.format("float(np.prod(ratios)) ** (1 / len(ratios))"), "add logarithms")],
         afterthought="it is called the geometric mean")


# -- speedup ---------------------------------------------------------------------------------------

def grade_speedup(speedup: Callable) -> None:
    cases: list[tuple[list[float], list[float]]] = [
             ([0.7, 0.2, 0.1], [1, 10, 2]), ([0.5, 0.5], [1, 2]), ([1.0], [3]),
             ([0.9, 0.1], [1, 1e9]), ([0.25, 0.75], [4, 4]), ([0.6, 0.4], [0.5, 8])]
    for parts, factors in cases:
        expected = 1.0 / sum(p / f for p, f in zip(parts, factors, strict=True))
        inputs = f"parts = {parts} and factors = {factors}"
        with wanting(inputs, expected):
            result = speedup(list(parts), list(factors))
        agree(inputs, result, expected,
              (abs(result - sum(p * f for p, f in zip(parts, factors, strict=True))) < 1e-9,
               "parts of a *time* are given: how long does each take now?"),
              (abs(result * expected - 1.0) < 1e-9, "that is how long it takes now, if it was 1 "
               "before"),
              (result == max(factors), "and what did not become faster?"),
              "add up how long the parts take now", tolerance=1e-9)


_SPEEDUP = "def speedup(parts, factors):\n    return {}"
_NOW = "sum(p / f for p, f in zip(parts, factors))"

exercise("speedup", chapter=CHAPTER, grade=grade_speedup, solution=_SPEEDUP.format(f"1 / {_NOW}"),
         wrong=[(_SPEEDUP.format("sum(p * f for p, f in zip(parts, factors))"), "parts of a"),
                (_SPEEDUP.format(_NOW), "that is how long"),
                (_SPEEDUP.format("max(factors)"), "did not become faster"),
                (_SPEEDUP.format("float(np.prod(factors))"), "add up")],
         afterthought="it is called Amdahl's law: with a tenth of the time untouched, no factor "
         "makes the whole more than ten times as fast")
