"""The threads that share long loops: who is free takes the next block, until none is left.

Stands on cpu.py, and on the locks that Python's own threads use. Chapter 26.
In JAX: the thread pool of XLA's CPU client (xla/tsl/platform/threadpool).
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from . import cpu
from .library import thread_setting

# A kernel calls `share(part, frame, blocks)`: part(frame, k) is then run for every k below
# `blocks`, by the calling thread and by the helpers that wake up in time. All of it is machine
# code, so nobody waits for the interpreter, and a loop inside a `while` is shared as well.
#
# One loop is shared at a time (`busy`); whoever comes second, a kernel in another thread or a
# shared loop inside a block, runs its blocks alone. Helpers sleep on a lock each, which is
# released to wake them. `left` counts the blocks down: subtracting one, which processors do in
# one step, is taking a block. A helper makes itself known in `active` *before* it takes a block,
# and the caller goes on only when `active` is zero and no block left: then no block is running.
# A helper that wakes up too late finds nothing left, or helps with the next loop.
#
# On a machine with other work to do the system lets helper and caller take turns on one processor,
# or takes it from a helper in the middle of a block, for milliseconds. Where the caller has lost
# more than half of the time that it ran itself (`wall` against `own`), the next loops are run
# alone (`rest` counts them): sharing is worth it only where there is somebody to share with.
TEXT = """\
@minijax_pool = external global i8
%pool = type { i64, i64, i64, ptr, ptr, i64, ptr, ptr, i64, i64, ptr, ptr, ptr, i64 }
declare i32 @PyThread_acquire_lock(ptr, i32)
declare void @PyThread_release_lock(ptr)
declare i32 @minijax_yield()

define void @minijax_share(ptr %part, ptr %frame, i64 %blocks) nounwind {
  %pool.helpers = getelementptr %pool, ptr @minijax_pool, i64 0, i32 0
  %helpers = load atomic i64, ptr %pool.helpers monotonic, align 8
  %nobody = icmp eq i64 %helpers, 0
  br i1 %nobody, label %alone, label %try
try:
  %busy.at = getelementptr %pool, ptr @minijax_pool, i64 0, i32 6
  %busy = load ptr, ptr %busy.at
  %got = call i32 @PyThread_acquire_lock(ptr %busy, i32 0)
  %mine = icmp ne i32 %got, 0
  br i1 %mine, label %see, label %alone
see:
  %rest.at = getelementptr %pool, ptr @minijax_pool, i64 0, i32 13
  %rest = load i64, ptr %rest.at
  %tired = icmp sgt i64 %rest, 0
  br i1 %tired, label %spare, label %publish
spare:
  %rest.less = sub i64 %rest, 1
  store i64 %rest.less, ptr %rest.at
  call void @PyThread_release_lock(ptr %busy)
  br label %alone
publish:
  %wall.begun = call i64 @now(i32 {wall})
  %own.begun = call i64 @now(i32 {own})
  %part.at = getelementptr %pool, ptr @minijax_pool, i64 0, i32 3
  store ptr %part, ptr %part.at
  %frame.at = getelementptr %pool, ptr @minijax_pool, i64 0, i32 4
  store ptr %frame, ptr %frame.at
  %blocks.at = getelementptr %pool, ptr @minijax_pool, i64 0, i32 5
  store i64 %blocks, ptr %blocks.at
  %left = getelementptr %pool, ptr @minijax_pool, i64 0, i32 1
  store atomic i64 %blocks, ptr %left seq_cst, align 8
  %bells.at = getelementptr %pool, ptr @minijax_pool, i64 0, i32 7
  %bells = load ptr, ptr %bells.at
  br label %wake
wake:
  %k = phi i64 [ 0, %publish ], [ %k.next, %wake ]
  %bell.at = getelementptr ptr, ptr %bells, i64 %k
  %bell = load ptr, ptr %bell.at
  call void @PyThread_release_lock(ptr %bell)
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %helpers
  br i1 %more, label %wake, label %work
work:
  call void @take_blocks()
  br label %wait
wait:
  %active.at = getelementptr %pool, ptr @minijax_pool, i64 0, i32 2
  %active = load atomic i64, ptr %active.at seq_cst, align 8
  %done = icmp eq i64 %active, 0
  br i1 %done, label %end, label %yield
yield:
  call i32 @minijax_yield()
  br label %wait
end:
  %wall.ended = call i64 @now(i32 {wall})
  %own.ended = call i64 @now(i32 {own})
  %wall = sub i64 %wall.ended, %wall.begun
  %own = sub i64 %own.ended, %own.begun
  %lost = sub i64 %wall, %own
  %lost.twice = shl i64 %lost, 1
  %late = icmp sgt i64 %lost.twice, %own
  %rest.new = select i1 %late, i64 15, i64 0
  store i64 %rest.new, ptr %rest.at
  call void @PyThread_release_lock(ptr %busy)
  ret void
alone:
  %j = phi i64 [ 0, %0 ], [ 0, %try ], [ 0, %spare ], [ %j.next, %run ]
  %any = icmp slt i64 %j, %blocks
  br i1 %any, label %run, label %finished
run:
  call void %part(ptr %frame, i64 %j)
  %j.next = add i64 %j, 1
  br label %alone
finished:
  ret void
}

define internal void @take_blocks() nounwind {
  %left = getelementptr %pool, ptr @minijax_pool, i64 0, i32 1
  br label %next
next:
  %k = atomicrmw sub ptr %left, i64 1 seq_cst, align 8
  %any = icmp sgt i64 %k, 0
  br i1 %any, label %run, label %end
run:
  %part.at = getelementptr %pool, ptr @minijax_pool, i64 0, i32 3
  %part = load ptr, ptr %part.at
  %frame.at = getelementptr %pool, ptr @minijax_pool, i64 0, i32 4
  %frame = load ptr, ptr %frame.at
  %blocks.at = getelementptr %pool, ptr @minijax_pool, i64 0, i32 5
  %blocks = load i64, ptr %blocks.at
  %block = sub i64 %blocks, %k
  call void %part(ptr %frame, i64 %block)
  br label %next
end:
  ret void
}

define void @minijax_help(ptr %bell) nounwind {
  %active = getelementptr %pool, ptr @minijax_pool, i64 0, i32 2
  br label %sleep
sleep:
  call i32 @PyThread_acquire_lock(ptr %bell, i32 1)
  atomicrmw add ptr %active, i64 1 seq_cst, align 8
  call void @take_blocks()
  atomicrmw sub ptr %active, i64 1 seq_cst, align 8
  br label %sleep
}

; BLAS has threads of its own, which would fight with these: while a product of ours runs it is
; told to use one. The first to come in says so, the last to go out restores what was set before,
; unless the program has asked for another number meanwhile.
define void @minijax_blas(i64 %change) nounwind {
  %get.at = getelementptr %pool, ptr @minijax_pool, i64 0, i32 11
  %get = load ptr, ptr %get.at
  %unknown = icmp eq ptr %get, null
  br i1 %unknown, label %end, label %count
count:
  %set.at = getelementptr %pool, ptr @minijax_pool, i64 0, i32 12
  %set = load ptr, ptr %set.at
  %lock.at = getelementptr %pool, ptr @minijax_pool, i64 0, i32 10
  %lock = load ptr, ptr %lock.at
  call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  %users.at = getelementptr %pool, ptr @minijax_pool, i64 0, i32 8
  %saved.at = getelementptr %pool, ptr @minijax_pool, i64 0, i32 9
  %before = load i64, ptr %users.at
  %after = add i64 %before, %change
  store i64 %after, ptr %users.at
  %first = icmp eq i64 %before, 0
  br i1 %first, label %limit, label %maybe
limit:
  %now = call i32 %get()
  %now.64 = sext i32 %now to i64
  store i64 %now.64, ptr %saved.at
  call void %set(i32 1)
  br label %unlock
maybe:
  %last = icmp eq i64 %after, 0
  br i1 %last, label %restore, label %unlock
restore:
  %found = call i32 %get()
  %untouched = icmp eq i32 %found, 1
  br i1 %untouched, label %put.back, label %unlock
put.back:
  %saved.64 = load i64, ptr %saved.at
  %saved = trunc i64 %saved.64 to i32
  call void %set(i32 %saved)
  br label %unlock
unlock:
  call void @PyThread_release_lock(ptr %lock)
  br label %end
end:
  ret void
}
"""


# The time in nanoseconds, by the clock on the wall or by that of the calling thread.
CLOCK = """
declare i32 @minijax_clock(i32, ptr)
define internal i64 @now(i32 %clock) nounwind {
  %time = alloca [2 x i64]
  call i32 @minijax_clock(i32 %clock, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}
"""
NO_CLOCK = "define internal i64 @now(i32 %clock) nounwind { ret i64 0 }"


class State(ctypes.Structure):
    """The memory that the text calls %pool, field by field."""

    _fields_ = [
        ("helpers", ctypes.c_int64), ("left", ctypes.c_int64), ("active", ctypes.c_int64),
        ("part", ctypes.c_void_p), ("frame", ctypes.c_void_p), ("blocks", ctypes.c_int64),
        ("busy", ctypes.c_void_p), ("bells", ctypes.c_void_p),
        ("blas_users", ctypes.c_int64), ("blas_saved", ctypes.c_int64),
        ("blas_lock", ctypes.c_void_p), ("blas_get", ctypes.c_void_p),
        ("blas_set", ctypes.c_void_p), ("rest", ctypes.c_int64),
    ]


NAMES = ("minijax_share", "minijax_blas", "minijax_help")
MEMORY = ("PyMem_RawMalloc", "PyMem_RawFree")  # for the temps that each thread has for itself

_state = State()
_started: list[Any] = []  # the code, and whatever the helpers hold on to
asleep: list[bool] = []  # not empty in a forked child, until it has helpers of its own


def symbols(machine_code: Callable[[str], bytes]) -> dict[str, int]:
    """Where the pool's functions are; the first call loads them and starts the helpers.

    May be called only where machine code may be made: within cpu.undisturbed.
    """
    if not _started:
        _started.append(_load(machine_code))
    _start_helpers()
    code = _started[0]
    memory = {name: _address(ctypes.pythonapi, name) for name in MEMORY}
    return {name: code.address(name) for name in NAMES} | memory


def wake() -> None:
    """Start the helpers of a forked child."""
    cpu.undisturbed(_start_helpers)


def wanted() -> int:
    """How many threads share a loop: MINIJAX_NUM_THREADS, or one for each processor we may use."""
    given = os.environ.get("MINIJAX_NUM_THREADS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    can_ask = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if can_ask else os.cpu_count() or 1


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Let fewer threads share the loops that begin while the context is open, in this process."""
    before = _state.helpers
    _state.helpers = min(before, threads - 1)
    try:
        yield
    finally:
        _state.helpers = before


def _load(machine_code: Callable[[str], bytes]) -> cpu.Linked:
    python = ctypes.pythonapi
    known = {name: _address(python, name)
             for name in ("PyThread_acquire_lock", "PyThread_release_lock")}
    windows = sys.platform == "win32"
    system = ctypes.CDLL("kernel32" if windows else None)
    known["minijax_yield"] = _address(system, "SwitchToThread" if windows else "sched_yield")
    known["minijax_pool"] = ctypes.addressof(_state)
    text = TEXT + (NO_CLOCK if windows else CLOCK)
    clocks = (0, 0) if windows else (time.CLOCK_MONOTONIC, time.CLOCK_THREAD_CPUTIME_ID)
    for name, clock in zip(("{wall}", "{own}"), clocks, strict=True):
        text = text.replace(name, str(clock))
    if not windows:
        known["minijax_clock"] = _address(system, "clock_gettime")
    return cpu.link(machine_code(text), NAMES, known)


def _address(library: ctypes.CDLL, name: str) -> int:
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address


def _start_helpers() -> None:
    if len(_started) == 1:
        _started.append(_start(_started[0].address("minijax_help")))
        asleep.clear()


def _start(help_address: int) -> Any:
    """Make the locks and the threads."""
    python = ctypes.pythonapi
    python.PyThread_allocate_lock.restype = ctypes.c_void_p
    start = python.PyThread_start_new_thread
    start.restype, start.argtypes = ctypes.c_ulong, [ctypes.c_void_p, ctypes.c_void_p]
    _state.left = _state.active = _state.blas_users = 0
    _state.busy, _state.blas_lock = (python.PyThread_allocate_lock() for _ in range(2))
    _state.blas_get, _state.blas_set = thread_setting()
    bells = (ctypes.c_void_p * max(wanted() - 1, 1))()
    _state.bells = ctypes.addressof(bells)
    helpers = 0
    for k in range(wanted() - 1):
        bells[k] = python.PyThread_allocate_lock()
        python.PyThread_acquire_lock(ctypes.c_void_p(bells[k]), 1)
        with cpu.room_for_threads():
            thread = start(help_address, bells[k])
        if thread == ctypes.c_ulong(-1).value:
            break  # the system gives no more threads
        helpers += 1
    _state.helpers = helpers
    return bells


def _after_fork() -> None:
    """A forked child has none of the helpers: the first kernel that wants them starts its own."""
    if len(_started) < 2:
        return
    _state.helpers = 0
    if _state.blas_users:  # another thread of the parent was inside a product
        ctypes.CFUNCTYPE(None, ctypes.c_int32)(_state.blas_set or 0)(_state.blas_saved)
    ctypes.pythonapi.PyThread_allocate_lock.restype = ctypes.c_void_p
    _state.blas_users, _state.blas_lock = 0, ctypes.pythonapi.PyThread_allocate_lock()
    asleep.append(True)
    del _started[1:]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
