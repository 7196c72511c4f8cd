"""Interrupting compiled programs: long loops poll for signals at their back edges.

Builds on probe.py. llvm.py prints the polls, pool.py loads the functions that they call. Chapter
26. JAX has nothing for this: its programs run to their end.
"""

import sys
import time
from collections.abc import Sequence
from typing import Any

from .arithmetic import Arithmetic
from .builder import Builder
from .loops import (INT64, Duplicate, For, Kernel, Operand, Scalar, Statement, Variable, While,
                    origin, walk)
from .probe import UNKNOWN_TRIP_COUNT, cost_of

# In simple operations: a shorter loop does not poll; the interval between polls if the trip
# count is known; and if it is unknown.
LONG, EACH, BUDGET = 1 << 23, 1 << 20, 1 << 18
STRIP = 64  # iterations: strips are multiples of it, so that vectors are full

# Signal handlers run in Python's main thread only, so only that thread polls. A poll reads the
# clock, and takes the interpreter lock only every PAUSE, since another thread may hold it for a
# while. Handlers then run as between two lines of Python, and the loop goes on unless one raises.
# The error is kept in a dict by thread.
#
# In a parallel loop the calling thread polls, and sets `stopped` for all.
#
# A Python function is called as an object, not through a ctypes callback: a signal may arrive
# before its first line, and ctypes would drop the handler's exception.
PAUSE = 50_000_000  # nanoseconds between two acquisitions of the lock
IS_WINDOWS = sys.platform == "win32"
NOW = """
    return GetTickCount64() * 1000000
""" if IS_WINDOWS else f"""
    time = words(2)
    clock_gettime({time.CLOCK_MONOTONIC}, time)
    return memory[time] * 1000000000 + memory[time + 8]
"""
RUNTIME = f"""
def now():{NOW}
def this_thread():  # an unsigned long of C
    return PyThread_get_thread_ident() & {0xFFFFFFFF if IS_WINDOWS else (1 << 64) - 1}

def minijax_poll():
    if this_thread() != pool.main:
        return 0
    time = now()
    if time < pool.next:
        return 0
    pool.next = time + {PAUSE}
    lock = PyGILState_Ensure()
    raised = int32(PyErr_CheckSignals())
    if raised:
        keep_error()
    PyGILState_Release(lock)
    return raised

def minijax_iterations(iterations):
    pool.iterations = iterations

def minijax_poll_shared():
    if pool.stopped:
        return 1
    if this_thread() == pool.caller:
        if minijax_poll():
            pool.stopped = 1
            return 1
    return 0

def keep_error():
    type = 0
    error = 0
    traceback = 0
    PyErr_Fetch(at(type), at(error), at(traceback))
    PyErr_NormalizeException(at(type), at(error), at(traceback))
    if traceback:
        PyException_SetTraceback(error, traceback)
    key = PyLong_FromUnsignedLong(this_thread())
    PyDict_SetItem(at(pool.raised), key, error)
    Py_DecRef(key)
    Py_DecRef(type)
    Py_DecRef(error)
    Py_DecRef(traceback)

def minijax_host(function, frame):
    lock = PyGILState_Ensure()
    number = PyLong_FromVoidPtr(frame)
    result = PyObject_CallOneArg(function, number)
    Py_DecRef(number)
    Py_DecRef(result)
    if result == 0:
        memory[memory[frame]] = 1
        keep_error()
    PyGILState_Release(lock)
"""
# A poll touches no memory of the kernel, so loads may still be hoisted out of loops.
POLL_DECLARATION = "declare i32 @{}() cold nounwind memory(inaccessiblemem: readwrite)"


# -- polling in loops ------------------------------------------------------------------------------


def poll_interval(loop: For, trip_count: int | None) -> int:
    """The number of iterations between two polls; 0 for a short loop, which does not poll."""
    cost = cost_of(loop.body) + 1
    if (UNKNOWN_TRIP_COUNT if trip_count is None else trip_count) * cost < LONG:
        return 0
    most = max(int(EACH // cost), 1)
    return -(-most // STRIP) * STRIP if most > STRIP else most


class Poll(Statement):
    """A poll for signals, after some iterations of a loop."""

    loop: Statement
    iterations: Operand


class Strip(Statement):
    """The iterations of a loop from `first` to `stop`."""

    loop: For
    first: Operand
    stop: Operand


def spending(text: Any, loop: While, counter: Variable) -> Sequence[Statement]:
    """The end of an iteration: count it, charge its cost to the budget of the function that `text`
    prints, and poll when the budget is spent.

    While loops share one budget of operations, in a register: reading the clock may take longer
    than their iterations.
    """
    b, budget, cost = Builder(), text.budget, cost_of((*loop.condition, *loop.body)) + 1
    if budget not in text.names:
        place = text.names[budget] = text.at_entry("alloca i64")
        text.entry.append(f"  store i64 {BUDGET}, ptr {place}")
    iterations = b.add(b.read(counter), 1)
    b.assign(counter, iterations)
    left = b.sub(b.read(budget), int(min(cost, BUDGET)))
    b.assign(budget, left)
    with b.when(b.lt(left, 0)):
        b.assign(budget, BUDGET)
        b.emit(Poll(loop, iterations))
    return b.scopes[0].statements


def strips(loop: For, start: Operand, stop: Operand, size: int) -> For:
    """The strip-mined loop, in steps of the size of a strip, with a poll after each."""
    b, first = Arithmetic(), Scalar("", INT64)
    last = b.min(b.add(first, size), stop)
    body = *b.scopes[0].statements, Strip(loop, first, last), Poll(loop, last)
    return For(first, start, stop, body, "", "apart")


# -- how a loop is named ---------------------------------------------------------------------------


LOOPS = For | While | Duplicate


def sites(kernel: Kernel) -> dict[Statement, int]:
    """The loops of a kernel, numbered from 0."""
    loops = (each for each in walk(kernel.body) if isinstance(each, LOOPS))
    return {loop: number for number, loop in enumerate(loops)}


def line_of(kernel: Kernel, loop: int) -> str:
    """The user's line of a loop, by its number: its own, else that of the nearest statement before
    it that has one, or after it.
    """
    operations, lines = kernel.notes["loops"], kernel.notes["lines"]
    every = [*walk(kernel.body)]
    place = [k for k, each in enumerate(every) if isinstance(each, LOOPS)][loop]
    for each in map(origin, (*every[place::-1], *every[place:])):
        if line := operations.get(each) or getattr(each, "note", "") or lines.get(each):
            return line.split("\n")[0]
    return ""


def interrupt_message(line: str, iterations: int) -> str:
    """The message to a user whose program was interrupted in the loop of a line, after some
    iterations.
    """
    return ("interrupted in a loop" + (f" after {iterations:,} turns" if iterations >= 0 else "")
            + (f": {line}" if line else ""))
