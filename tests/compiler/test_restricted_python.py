"""Restricted Python is Python: machine code of a source computes what Python makes of it."""

import ctypes
import itertools

import numpy as np
import pytest

from minijax.compiler import cpu
from minijax.compiler.restricted_python import translated

SOURCES = {
    "operations": """
def f(x, y):
    return (x + y) * (x - y) + (x & y) - 3 * x + -1
""",
    "comparisons": """
def f(x, y):
    total = 0
    if x < y:
        total += 1
    if x > y:
        total += 2
    if x == y:
        total += 4
    if x != y:
        total += 8
    if x >= y:
        total += 16
    else:
        total += 32
    if x:
        return total
    return total + 64
""",
    "loops inside of loops": """
def f(x, y):
    total = 0
    i = 0
    while i < x:
        j = i
        while j < y:
            if (i & j) == 2:
                total += 100
            else:
                total += i * j
            j += 1
        i += 1
    while 1:
        total = total - 7
        if total < 0:
            return total
""",
    "calls": """
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)

def f(x, y):
    return fibonacci(x & 7) * 3 + fibonacci(y & 15)
""",
    "words": """
def f(x, y):
    place = words(2)
    memory[place] = x
    memory[place + 8] = y
    memory[place] = memory[place] + 5
    return memory[place] - memory[place + 8]
""",
    "halves": """
def f(x, y):
    return int32(x * 65537 + y) + int32(y * 16777259)
""",
}


class Memory(dict):
    """The words of a stack that grows."""

    def words(self, n):
        self.top = getattr(self, "top", 1 << 20) + 8 * n
        return self.top - 8 * n


def linked(source, addresses=()):
    code = cpu.undisturbed(lambda: cpu.compile(translated(source)))
    return cpu.undisturbed(lambda: cpu.link(code, ("f",), dict(addresses)))


def called(tracker, *args):
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(args))(tracker["f"])(*args)


@pytest.mark.parametrize("name", SOURCES)
def test_machine_code_computes_what_python_does(name):
    memory = Memory()
    names = {"memory": memory, "words": memory.words,
             "int32": lambda x: int(np.int64(x).astype(np.int32))}
    exec(SOURCES[name], names)
    tracker = linked(SOURCES[name])
    for x, y in itertools.product((-5, 0, 1, 2, 6, 13), repeat=2):
        assert called(tracker, x, y) == names["f"](x, y), (x, y)


def test_variables_and_functions_outside_of_the_source():
    left, chosen = ctypes.c_int64(40), ctypes.c_int64()
    double = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: 2 * x)
    chosen.value = ctypes.cast(double, ctypes.c_void_p).value
    source = """
def f(x):
    before = fetch_add(pool.left, x)
    pool.left = pool.left + doubled(1)
    place = at(before)
    return pool.chosen(memory[place])
"""
    declared = "".join(f"@pool.{name} = external global i8\n" for name in ("left", "chosen"))
    code = cpu.undisturbed(lambda: cpu.compile(declared + translated(source)))
    tracker = cpu.undisturbed(lambda: cpu.link(code, ("f",), {
        "pool.left": ctypes.addressof(left), "pool.chosen": ctypes.addressof(chosen),
        "doubled": chosen.value}))
    assert called(tracker, 3) == 80 and left.value == 45


@pytest.mark.parametrize("line", ["assert x", "x: int = 1", "for k in x: pass", "x = x // 2"])
def test_what_restricted_python_lacks_is_refused(line):
    with pytest.raises((SyntaxError, KeyError)):
        translated(f"def f(x):\n    {line}")
