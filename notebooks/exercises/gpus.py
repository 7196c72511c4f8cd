"""The exercises of chapter 27, *The same loops on a GPU*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import inspect
import numpy as np

from minijax.notebook.checks import agree, chosen, exercise, expect, instead_of, wanting

CHAPTER = "27_the_same_loops_on_a_gpu"


# -- idle ------------------------------------------------------------------------------------------

def grade_idle(idle: Callable) -> None:
    many = [(n, threads) for threads in (32, 96, 224, 1024) for n in range(1, 400)]
    for n, threads in ((1000, 64), (128, 64), (1, 64), (65, 64), (999, 256), (7, 32), *many,
                       (10**18 + 1, 64)):
        expected, inputs = -n % threads, f"n = {n} and threads = {threads}"
        with wanting(inputs, expected):
            result = idle(n, threads)
        agree(inputs, result, expected,
              (result == n % threads != expected, "this many threads of the last block have a "
                                                  "round"),
              (expected == 0 and result == threads, "no block is launched for nothing"),
              (result == n // threads, "that is a number of blocks"),
              (abs(result - expected) < 2, "a quotient is rounded: compute with whole numbers"),
              "how many threads are there in all the blocks?", tolerance=0)


_IDLE = "def idle(n, threads):\n    return {}"

exercise("idle", chapter=CHAPTER, grade=grade_idle,
         solution=_IDLE.format("-(-n // threads) * threads - n"),
         wrong=[(_IDLE.format("n % threads"), "have a round"),
                (_IDLE.format("threads - n % threads"), "for nothing"),
                (_IDLE.format("n // threads"), "number of blocks"),
                (_IDLE.format("threads - n"), "in all the blocks"),
                (_IDLE.format("int((-(-n // threads) - n / threads) * threads)"),
                 "with whole numbers")])


# -- racing_lines ----------------------------------------------------------------------------------

_LINES = {
    "a": ("y[i] = x[0]", False, "all load x[0], and nobody stores to x; each stores to a place of "
          "its own"),
    "b": ("y[thread] = x[i]", True, "thread 3 of each block stores to y[3]"),
    "c": ("y[255 - i] = x[i]", False, "each i has a place of its own"),
    "d": ("y[i] = y[i] + 1.0", False, "a thread loads and stores one place, which is its own"),
    "e": ("y[i] = y[255 - i]", True, "what one thread stores another one loads, and no barrier is "
          "between them"),
    "f": ("shared[thread] = x[i]", False, "each block has shared memory of its own"),
    "g": ("y[block] = x[i]", True, "64 threads store to one place"),
    "h": ("shared[thread] = x[i]; y[i] = shared[63 - thread]", True, "a thread loads what another "
          "one has stored, and no barrier is between the two")}


def grade_racing_lines(answer: Any) -> None:
    chosen(answer, _LINES, "is a race", "is not a race")


exercise("racing_lines", chapter=CHAPTER, grade=grade_racing_lines, solution='"begh"',
         wrong=[('"abegh"', "nobody stores to x"), ('"egh"', "of each block"),
                ('"bdegh"', "its own"), ('"bgh"', "another one loads"),
                ('"befgh"', "of its own"), ('"beg"', "between the two"),
                ("4", "a string of letters")])


# -- sectors ---------------------------------------------------------------------------------------

def grade_sectors(sectors: Callable) -> None:
    rng = np.random.default_rng(0)
    cases = [("0 to 31", list(range(32))), ("0, 8, 16 … 248", list(range(0, 256, 8))),
             ("3 to 34", list(range(3, 35))), ("thirty-two times 5", [5] * 32),
             ("31, 30 … 0", list(range(31, -1, -1))), ("7 alone", [7]),
             ("32 random ones", rng.integers(0, 999, 32).tolist())]
    for what, places in cases:
        for size in (4, 8):
            expected = len({place * size // 32 for place in places})
            inputs = f"the places {what}, and elements of {size} bytes"
            with wanting(inputs, expected):
                result = sectors(list(places), size)
            agree(inputs, result, expected,
                  (result == len({place // 32 for place in places}), "a sector has 32 bytes, and "
                   "not 32 elements"),
                  (result == -(-len(places) * size // 32), "it depends on where they are"),
                  (result == len(places), "several of them may lie in one sector, which is sent "
                   "once"),
                  (result == (max(places) - min(places)) * size // 32 + 1, "what lies between them "
                   "is not sent"),
                  "in which sector does each lie?", tolerance=0)


_SECTORS = "def sectors(places, size):\n    return {}"

exercise("sectors", chapter=CHAPTER, grade=grade_sectors,
         solution=_SECTORS.format("len({place * size // 32 for place in places})"),
         wrong=[(_SECTORS.format("len({place // 32 for place in places})"), "not 32 elements"),
                (_SECTORS.format("-(-len(places) * size // 32)"), "where they are"),
                (_SECTORS.format("len(places)"), "sent once"),
                (_SECTORS.format("(max(places) - min(places)) * size // 32 + 1"),
                 "between them")])


# -- turned ----------------------------------------------------------------------------------------

_MINI = """
from minijax.notebook.library import library
library.begin("27")
"""


def grade_turned(turned: Callable) -> None:
    from minijax.notebook.library import library
    mini: Any = library.module
    accesses: list[tuple[str, int, int]] = []

    class Noting(mini.Memory):
        """Memory that records which thread has accessed which index."""

        def touch(self, at: Any, stores: bool) -> None:
            super().touch(at, stores)
            block, _, thread = mini.Memory.now
            if self.name != "shared":
                place = at[0] if isinstance(at, tuple) else at
                accesses.append((self.name, block * mini.TEAM + thread, place))

    x = np.random.default_rng(0).normal(size=4 * mini.TEAM)
    expected, y = x.reshape(4, -1)[:, ::-1].ravel(), np.full(len(x), np.nan)
    inputs, real = f"four blocks of {mini.TEAM}", mini.Memory
    mini.Memory = Noting
    try:
        with wanting(inputs, "each turned around", *[(TypeError, "a kernel ends with a `yield`, so "
                     "that it is a generator")] * (not inspect.isgeneratorfunction(turned)),
                     (mini.Refused, "which threads must have finished before?"), what="what is "
                                                                                      "expected"), \
             instead_of(mini.Refused, "is outside of", f"for {inputs} a place is asked for that is "
                        f"outside of an array: `shared` has {mini.TEAM}, from 0 on"), \
             instead_of(mini.Refused, "for y[", f"for {inputs} two threads store to one place of "
                        "y: which number has a thread among those of all blocks?"):
            mini.launch(turned, 4, x=x, y=y)
    finally:
        mini.Memory = real
    expect(not np.isnan(y).any(), f"for {inputs} there are {len(y)} numbers to store, and yours "
           f"leaves {int(np.isnan(y).sum())} of them")
    expect(not np.array_equal(y, x[::-1]), f"for {inputs} yours reverses all {len(y)} numbers\n"
           "each block keeps its own")
    agree(f"{inputs} and place 0", y[0], expected[0], "which number of the block comes to place 0?",
          what="the number", tolerance=0)
    agree(f"{inputs} and place {mini.TEAM}", y[mini.TEAM], expected[mini.TEAM],
          "which block is the number from?", what="the number", tolerance=0)
    expect(np.array_equal(y, expected), f"for {inputs} the numbers of a block should be "
           "reversed, and yours are in another order")
    for name, who, place in accesses:
        what = "loads x" if name == "x" else "stores to y"
        expect(who == place, f"for {inputs} thread {who % mini.TEAM} of block {who // mini.TEAM} "
               f"{what}[{who}], and yours {what}[{place}]\nthe reversal is done in shared memory")


_TURNED = """
def turned(block, thread, shared, x, y):
    i = block * 64 + thread
    {}
    {}
    {}
    yield
"""

exercise("turned", chapter=CHAPTER, grade=grade_turned, given=_MINI,
         solution=_TURNED.format("shared[thread] = x[i]", "yield", "y[i] = shared[63 - thread]"),
         wrong=[(_TURNED.format("shared[thread] = x[thread]", "yield",
                                "y[thread] = shared[63 - thread]"),
                 "of all blocks"),
                (_TURNED.format("shared[thread] = x[i]", "pass", "y[i] = shared[63 - thread]"),
                 "have finished before"),
                (_TURNED.format("pass", "pass", "y[block * 64 + 63 - thread] = x[i]"),
                 "in shared memory"),
                (_TURNED.format("shared[thread] = x[255 - i]", "yield", "y[i] = shared[thread]"),
                 "keeps its own"),
                (_TURNED.format("shared[thread] = x[i]", "yield", "y[i] = shared[thread]"),
                 "comes to place 0"),
                (_TURNED.format("shared[thread] = x[i]", "yield", "y[i] = shared[64 - thread]"),
                 "from 0 on"),
                ("def turned(block, thread, shared, x, y):\n    i = block * 64 + thread\n"
                 "    y[i] = x[block * 64 + 63 - thread]", "is a generator")],
         hints=["store to `shared`, wait, load from `shared`"])


# -- butterfly -------------------------------------------------------------------------------------

def _butterfly(values: list[float]) -> list[float]:
    for bit in (1, 2, 4, 8, 16):
        values = [values[k] + values[k ^ bit] for k in range(32)]
    return values


def grade_butterfly(butterfly: Callable) -> None:
    rng = np.random.default_rng(0)
    for what, values in [("the numbers 0 to 31", [float(k) for k in range(32)]),
                         ("a one and zeros", [1.0, *[0.0] * 31]),
                         ("random numbers", (rng.normal(size=32) * 10 ** rng.uniform(
                             -8, 8, 32)).tolist())]:
        expected = _butterfly(values)
        with wanting(what, expected[:3]):
            given = list(values)
            result = butterfly(given)
        expect(result is not None and np.shape(result) == (32,), f"for {what} 32 numbers are "
               f"expected, and yours {'is None: return them' if result is None else 'are not'}")
        result = list(map(float, result))
        summed = np.isclose(result[0], sum(values))
        for k in range(32):
            agree(f"{what} and thread {k}", result[k], expected[k],
                  (not summed or not np.isclose(result[k], expected[k]), "five rounds, and in "
                   "each a thread adds what its partner `k ^ bit` had *before* that round"),
                  (abs(result[k] - expected[k]) > 1e-12 * sum(map(abs, values)), "the sum is right "
                   "to some digits: with how many bits is it added up?"),
                  "the sum is right, but the last digits are not: in which order is it added up?",
                  what="the number", tolerance=0)
        expect(given == values, f"for {what} the list that was handed in has changed after the "
               "call: the threads need one of their own")


_FLY = """
def butterfly(values):
    for bit in ({}):
        {}
    return values
"""

exercise("butterfly", chapter=CHAPTER, grade=grade_butterfly,
         solution=_FLY.format("1, 2, 4, 8, 16",
                              "values = [values[k] + values[k ^ bit] for k in range(32)]"),
         wrong=[(_FLY.format("1, 2, 4, 8, 16", "values[:] = [values[k] + values[k ^ bit] "
                             "for k in range(32)]"), "has changed after"),
                ("def butterfly(values):\n    v = np.array(values, np.float32)\n"
                 "    for bit in (1, 2, 4, 8, 16):\n        v = v + v[np.arange(32) ^ bit]\n"
                 "    return v", "how many bits"),
                (_FLY.format("1, 2, 4, 8, 16", "for k in range(32):\n            "
                             "values[k] = values[k] + values[k ^ bit]"), "*before* that round"),
                (_FLY.format("1, 2, 3, 4, 5",
                             "values = [values[k] + values[k ^ bit] for k in range(32)]"),
                 "*before* that round"),
                (_FLY.format("16, 8, 4, 2, 1",
                             "values = [values[k] + values[k ^ bit] for k in range(32)]"),
                 "in which order"),
                ("def butterfly(values):\n    return [sum(values)] * 32", "in which order"),
                ("def butterfly(values):\n    return sum(values)", "32 numbers are expected")])


# -- turns -----------------------------------------------------------------------------------------

def _turns(words: list[int]) -> int:
    banks = [word % 32 for word in set(words)]
    return max(banks.count(bank) for bank in banks)


def grade_turns(turns: Callable) -> None:
    rng = np.random.default_rng(0)
    cases = [("0 to 31", list(range(32))), ("0, 32, 64 … 992", list(range(0, 1024, 32))),
             ("0, 33, 66 … 1023", list(range(0, 1024, 33))), ("thirty-two times 5", [5] * 32),
             ("0, 2, 4 … 62", list(range(0, 64, 2))), ("3 to 34", list(range(3, 35))),
             ("0 and 32 in turns", [0, 32] * 16), ("0 and 64, and 1 to 30", [0, 64, *range(1, 31)]),
             ("32 random ones", rng.integers(0, 999, 32).tolist())]
    for what, words in cases:
        expected, inputs = _turns(words), f"the words {what}"
        with wanting(inputs, expected):
            result = turns(list(words))
        banks = [word % 32 for word in words]
        agree(inputs, result, expected,
              (result == max(map(banks.count, banks)), "in one turn a bank serves a word to all "
               "threads that ask for it"),
              (result == len(set(banks)), "the banks work at the same time"),
              (result == len(words) // len(set(banks)), "some banks have more to do than others"),
              (result == len(words), "the banks work at the same time"),
              "which bank has most to do?", tolerance=0)


_TURNS = """
def turns(words):
    banks = [word % 32 for word in {words}]
    return {turns}
"""

exercise("turns", chapter=CHAPTER, grade=grade_turns, solution=_TURNS.format(
             words="set(words)", turns="max(banks.count(bank) for bank in banks)"),
         wrong=[(_TURNS.format(words="words", turns="max(banks.count(bank) for bank in banks)"),
                 "to all threads"),
                (_TURNS.format(words="words", turns="len(set(banks))"), "at the same time"),
                (_TURNS.format(words="words", turns="len(words) // len(set(banks))"),
                 "to all threads"),
                (_TURNS.format(words="words", turns="len(words)"), "at the same time"),
                (_TURNS.format(words="set(words)", turns="len(banks) // len(set(banks))"),
                 "more to do")],
         hints=["count the different words of each bank"])


# -- resident --------------------------------------------------------------------------------------

def _resident(threads: int, registers: int, shared: int) -> int:
    return min(2048 // threads, 65536 // (threads * registers), 164 * 1024 // (shared + 1024), 32)


def grade_resident(resident: Callable) -> None:
    rng = np.random.default_rng(0)
    some = zip(rng.integers(1, 33, 200) * 32, rng.integers(16, 256, 200),
               rng.integers(0, 100, 200) * 1536, strict=True)
    for threads, registers, shared in (
            (256, 32, 0), (256, 64, 0), (256, 40, 0), (256, 16, 44 << 10), (32, 16, 0),
            (1024, 32, 1 << 10), (96, 32, 0), (256, 255, 0), (128, 24, 8 << 10),
            (128, 24, 10 << 10), (32, 16, 40 << 10), (32, 16, (40 << 10) + 1),
            *(tuple(map(int, one)) for one in some)):
        expected = _resident(threads, registers, shared)
        inputs = f"{threads} threads, {registers} registers each, {shared} bytes"
        with wanting(inputs, expected):
            result = resident(threads, registers, shared)
        agree(inputs, result, expected,
              (expected == 32, "there are places for 32 blocks"),
              (expected == 0, "not even one block fits"),
              (result == min(2048 // threads, 65536 // registers,
                             164 * 1024 // (shared + 1024), 32),
               "each *thread* uses that many registers"),
              (shared and result == min(164 * 1024 // shared, 2048 // threads),
               "a block costs 1 kB more"),
              (result == min(2048 // threads, 65536 // (threads * registers), 32),
               "is there enough shared memory?"),
              (result == min(65536 // (threads * registers), 164 * 1024 // (shared + 1024), 32),
               "64 warps are 2048 threads"),
              "what is used up first?", tolerance=0)


_FIT = "def resident(threads, registers, shared):\n    return min({})"
_ALL = ("2048 // threads", "65536 // (threads * registers)", "164 * 1024 // (shared + 1024)", "32")

exercise("resident", chapter=CHAPTER, grade=grade_resident, solution=_FIT.format(", ".join(_ALL)),
         wrong=[(_FIT.format(", ".join(_ALL[:3])), "places for 32 blocks"),
                (_FIT.format(", ".join((*_ALL[:2], "32"))), "enough shared memory"),
                (_FIT.format(", ".join(_ALL[1:])), "2048 threads"),
                (_FIT.format(", ".join(_ALL).replace("(threads * registers)", "registers")),
                 "each *thread*"),
                (_FIT.format(", ".join(_ALL).replace("(shared + 1024)", "max(shared, 1)")),
                 "1 kB more"),
                (_FIT.format(", ".join(_ALL).replace(" // (shared", " / (shared")),
                 "used up first"),
                (_FIT.format(", ".join(_ALL)).replace("min(", "max(1, min(") + ")",
                 "not even one"),
                (_FIT.format(", ".join(_ALL).replace("164 * 1024", "164000")
                             .replace("1024)", "1000)")), "used up first"),
                (_FIT.format(", ".join(_ALL).replace("65536 // (threads * registers)",
                                                     "round(65536 / (threads * registers))")),
                 "not even one")],
         hints=["four limits, of which the smallest counts"])
