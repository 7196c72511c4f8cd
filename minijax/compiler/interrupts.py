"""Interrupting compiled programs: long loops poll for signals at their back edges.

Builds on probe.py. llvm.py prints the polls, pool.py loads the functions that they call. Chapter
26. JAX has nothing for this: its programs run to their end.
"""

import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, subjaxprs

from .arithmetic import Arithmetic
from .loops import BOOL, INT64, For, Kernel, Let, Operand, Scalar, Statement, While, bodies, walk
from .probe import cost_of, note_of

# In simple operations: a shorter loop does not poll; the interval between polls if the trip
# count is known; and if it is unknown.
LONG, EACH, BUDGET = 1 << 23, 1 << 20, 1 << 18
STRIP = 64  # iterations: strips are multiples of it, so that vectors are full
UNKNOWN = 16  # assumed iterations of a loop of unknown length, as in probe.py

# Signal handlers run in Python's main thread only, so only that thread polls. A poll reads the
# clock, and takes the interpreter lock only every PAUSE, since another thread may hold it for a
# while. Handlers then run as between two lines of Python, and the loop goes on unless one raises.
# The error is kept in a dict by thread.
#
# In a parallel loop the calling thread polls, and sets `stopped` for all.
PAUSE = 50_000_000  # nanoseconds between two acquisitions of the lock
IDENT = "i32" if sys.platform == "win32" else "i64"  # an unsigned long of C
NOW = """
declare i64 @GetTickCount64()
define internal i64 @now() nounwind {
  %milliseconds = call i64 @GetTickCount64()
  %now = mul i64 %milliseconds, 1000000
  ret i64 %now
}
""" if sys.platform == "win32" else f"""
declare i32 @clock_gettime(i32, ptr)
define internal i64 @now() nounwind {{
  %time = alloca [2 x i64]
  call i32 @clock_gettime(i32 {time.CLOCK_MONOTONIC}, ptr %time)
  %seconds = load i64, ptr %time
  %behind = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %behind
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}}
"""
POLL = NOW + """
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare i32 @PyException_SetTraceback(ptr, ptr)
declare ptr @PyLong_FromUnsignedLong(IDENT)
declare ptr @PyLong_FromVoidPtr(ptr)
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare void @Py_DecRef(ptr)
declare IDENT @PyThread_get_thread_ident()

define i32 @minijax_poll() nounwind {
  %me = call IDENT @PyThread_get_thread_ident()
  %main = load IDENT, ptr @pool.main
  %is_main = icmp eq IDENT %me, %main
  br i1 %is_main, label %look, label %go_on
look:
  %now = call i64 @now()
  %next = load i64, ptr @pool.next
  %is_due = icmp sge i64 %now, %next
  br i1 %is_due, label %poll, label %go_on
poll:
  %later = add i64 %now, PAUSE
  store i64 %later, ptr @pool.next
  %lock = call i32 @PyGILState_Ensure()
  %raised = call i32 @PyErr_CheckSignals()
  %any = icmp ne i32 %raised, 0
  br i1 %any, label %keep, label %release
keep:
  call void @keep_error()
  br label %release
release:
  call void @PyGILState_Release(i32 %lock)
  ret i32 %raised
go_on:
  ret i32 0
}

define void @minijax_iterations(i64 %iterations) nounwind {
  store i64 %iterations, ptr @pool.iterations
  ret void
}

define i32 @minijax_poll_shared() nounwind {
  %stopped = load atomic i64, ptr @pool.stopped seq_cst, align 8
  %is_over = icmp ne i64 %stopped, 0
  br i1 %is_over, label %over, label %look
look:
  %me = call IDENT @PyThread_get_thread_ident()
  %caller = load IDENT, ptr @pool.caller
  %is_caller = icmp eq IDENT %me, %caller
  br i1 %is_caller, label %poll, label %go_on
poll:
  %raised = call i32 @minijax_poll()
  %any = icmp ne i32 %raised, 0
  br i1 %any, label %stop, label %go_on
stop:
  store atomic i64 1, ptr @pool.stopped seq_cst, align 8
  br label %over
over:
  ret i32 1
go_on:
  ret i32 0
}

define internal void @keep_error() nounwind {
  %type.at = alloca ptr
  %error.at = alloca ptr
  %traceback.at = alloca ptr
  call void @PyErr_Fetch(ptr %type.at, ptr %error.at, ptr %traceback.at)
  call void @PyErr_NormalizeException(ptr %type.at, ptr %error.at, ptr %traceback.at)
  %type = load ptr, ptr %type.at
  %error = load ptr, ptr %error.at
  %traceback = load ptr, ptr %traceback.at
  %none = icmp eq ptr %traceback, null
  br i1 %none, label %keep, label %trace
trace:
  call i32 @PyException_SetTraceback(ptr %error, ptr %traceback)
  br label %keep
keep:
  %me = call IDENT @PyThread_get_thread_ident()
  %key = call ptr @PyLong_FromUnsignedLong(IDENT %me)
  call i32 @PyDict_SetItem(ptr @pool.raised, ptr %key, ptr %error)
  call void @Py_DecRef(ptr %key)
  call void @Py_DecRef(ptr %type)
  call void @Py_DecRef(ptr %error)
  call void @Py_DecRef(ptr %traceback)
  ret void
}
"""

# A Python function is called as an object, not through a ctypes callback: a signal may arrive
# before its first line, and ctypes would drop the handler's exception.
HOST = """
define void @minijax_host(ptr %function, ptr %frame) nounwind {
  %lock = call i32 @PyGILState_Ensure()
  %number = call ptr @PyLong_FromVoidPtr(ptr %frame)
  %result = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %function, ptr %number, ptr null)
  call void @Py_DecRef(ptr %number)
  call void @Py_DecRef(ptr %result)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %keep, label %release
keep:
  %flag = load ptr, ptr %frame
  store i32 1, ptr %flag
  call void @keep_error()
  br label %release
release:
  call void @PyGILState_Release(i32 %lock)
  ret void
}
"""
RUNTIME = (POLL + HOST).replace("IDENT", IDENT).replace("PAUSE", str(PAUSE))
# A poll touches no memory of the kernel, so loads may still be hoisted out of loops.
POLL_DECLARATION = "declare i32 @{}() cold nounwind memory(inaccessiblemem: readwrite)"


# -- polling in loops ------------------------------------------------------------------------------


def poll_interval(loop: For, trip_count: int | None) -> int:
    """The number of iterations between two polls; 0 for a short loop, which does not poll."""
    cost = cost_of(loop.body) + 1
    if (UNKNOWN if trip_count is None else trip_count) * cost < LONG:
        return 0
    most = max(int(EACH // cost), 1)
    return -(-most // STRIP) * STRIP if most > STRIP else most


class SignalPolls:
    """Emits the polls of one function, which llvm.py prints by `text`.

    While loops share one budget of operations, in a register: reading the clock may take longer
    than their iterations.
    """

    def __init__(self, text: Any, poll: str) -> None:
        self.text, self.name = text, poll
        self.budget = ""  # where it is, once it is needed

    def poll(self, loop: Statement, iterations: str) -> None:
        """Poll for signals, and return if a handler has raised."""
        text = self.text
        text.module.functions.setdefault(self.name, POLL_DECLARATION.format(self.name))
        status = text.fresh("%status")
        text.emit(f"{status} = call i32 @{self.name}()")
        text.return_if_interrupted(status, loop, iterations)

    def spend(self, loop: While, counter: str) -> None:
        """At the end of an iteration: count it, charge its cost to the budget, and poll when the
        budget is spent.
        """
        text = self.text
        if not self.budget:
            self.budget = text.at_entry("alloca i64")
            text.entry.append(f"  store i64 {BUDGET}, ptr {self.budget}")
        iterations, before, left, spent, label = map(
            text.fresh, ("%iterations", "%before", "%left", "%spent", "ask"))
        text.emit(f"{iterations}.before = load i64, ptr {counter}")
        text.emit(f"{iterations} = add nuw nsw i64 {iterations}.before, 1")
        text.emit(f"store i64 {iterations}, ptr {counter}")
        text.emit(f"{before} = load i64, ptr {self.budget}")
        cost = int(min(cost_of(loop.condition) + cost_of(loop.body) + 1, BUDGET))
        text.emit(f"{left} = sub nsw i64 {before}, {cost}")
        text.emit(f"store i64 {left}, ptr {self.budget}")
        text.emit(f"{spent} = icmp slt i64 {left}, 0")
        text.emit(f"br i1 {spent}, label %{label}, label %{label}.on")
        text.start_block(label)
        text.emit(f"store i64 {BUDGET}, ptr {self.budget}")
        self.poll(loop, iterations)
        text.emit(f"br label %{label}.on")
        text.start_block(f"{label}.on")

    def strip_mine(self, loop: For, start: Operand, stop: Operand, size: int) -> None:
        """Strip-mine a loop, with a poll after each strip."""
        text, label, counter = self.text, self.text.fresh("strip"), self.text.at_entry("alloca i64")
        first, again, b = Scalar("", INT64), Scalar("", BOOL), Arithmetic()
        last = b.min(b.add(first, size), stop)
        text.emit(f"store {text.typed(start)}, ptr {counter}")
        text.emit(f"br label %{label}")
        text.start_block(label)
        text.define(first, f"load i64, ptr {counter}")
        text.print_let(Let(again, "lt", (first, stop)))
        text.emit(f"br i1 {text.value(again)}, label %{label}.body, label %{label}.end")
        text.start_block(f"{label}.body")
        text.body(b.scopes[0].statements)
        text.emit(f"store {text.typed(last)}, ptr {counter}")
        text.loop_over_range(loop, first, last)
        self.poll(loop, text.value(last))
        text.emit(f"br label %{label}")
        text.start_block(f"{label}.end")


# -- how a loop is named ---------------------------------------------------------------------------


def sites(kernel: Kernel) -> dict[Statement, int]:
    """The loops of a kernel, numbered from 0."""
    loops = (each for each in walk(kernel.body) if isinstance(each, For | While))
    return {loop: number for number, loop in enumerate(loops)}


def lines_of(kernel: Kernel) -> list[str]:
    """The user's line of each loop: of the operation that it implements, or of one inside it."""
    operations, lines = kernel.notes["loops"], kernel.notes["lines"]

    def line_of(statement: Statement) -> str:
        return (operations.get(statement) or getattr(statement, "note", "")
                or lines.get(statement, ""))

    def search(body: Sequence[Statement], before: str) -> Iterator[str]:
        for each in body:
            before = line_of(each) or before
            if isinstance(each, For | While):
                line = before or next(filter(None, map(line_of, walk((each,)))), "")
                yield line.split("\n")[0]
            for inner in bodies(each):
                yield from search(inner, before)
    return list(search(kernel.body, ""))


def _equations(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """All equations of a program, at any depth."""
    for eqn in jaxpr.eqns:
        yield eqn
        for closed in subjaxprs(eqn.params):
            yield from _equations(closed.jaxpr)


def equations_of(kernel: Kernel, closed: ClosedJaxpr) -> tuple[int, ...]:
    """For each loop of a kernel the number of an equation with its line; -1 if there is none.

    The numbers are equal in all programs with this kernel; the lines need not be.
    """
    places: dict[str, int] = {}
    for place, eqn in enumerate(_equations(closed.jaxpr)):
        places.setdefault(note_of(eqn), place)
    return tuple(places.get(line, -1) if line else -1 for line in lines_of(kernel))


def interrupt_message(loop: int, iterations: int, equations: Sequence[int],
                      closed: ClosedJaxpr | None) -> str:
    """The message to a user whose program was interrupted in a loop, after some iterations."""
    place = equations[loop] if loop < len(equations) else -1
    eqn = None if closed is None or place < 0 else next(
        itertools.islice(_equations(closed.jaxpr), place, None))
    line = note_of(eqn) if eqn is not None else ""
    return ("interrupted in a loop" + (f" after {iterations:,} turns" if iterations >= 0 else "")
            + (f": {line}" if line else ""))
