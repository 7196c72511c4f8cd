"""The threads that share long loops: one that is free takes the next block, until none is left.

Stands on cpu.py, and on the locks that Python's own threads use. Chapter 26.
In JAX: the thread pool of XLA's CPU client (xla/tsl/platform/threadpool).
"""

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any

from . import cpu
from .library import thread_setting

# A kernel calls `share(part, frame, blocks)`: part(frame, k) is then run for every k below
# `blocks`, by the calling thread and by the helpers that wake up in time. All of it is machine
# code, so no thread waits for the interpreter, and a loop inside a `while` is shared as well.
#
# One loop is shared at a time (`busy`); one that comes second, in a kernel of another thread, waits
# for the first, which has all cores. (A block holds no shared loop.) `left` counts the blocks down:
# subtracting one, which processors do in one step, is taking a block. A helper makes itself known
# in `active` *before* it takes a block, and the caller goes on only when `active` is zero and no
# block left: then no block is running. A helper that comes too late finds nothing left, or helps
# with the next loop: it looks for one for a while, and then sleeps on a lock, the bell. Whoever
# comes to take blocks rings, which wakes one of the sleepers, who comes and rings in turn. The bell
# remembers one ring that nobody heard.
SHARE = """\
declare i32 @PyThread_acquire_lock(ptr, i32)
declare void @PyThread_release_lock(ptr)
declare i32 @YIELD()

define void @minijax_share(ptr %part, ptr %frame, i64 %blocks) nounwind {
  %busy = load ptr, ptr @pool.busy
  call i32 @PyThread_acquire_lock(ptr %busy, i32 1)
  store ptr %part, ptr @pool.part
  store ptr %frame, ptr @pool.frame
  store i64 %blocks, ptr @pool.blocks
  store atomic i64 %blocks, ptr @pool.left seq_cst, align 8
  call void @take_blocks()
  br label %wait
wait:
  %active = load atomic i64, ptr @pool.active seq_cst, align 8
  %done = icmp eq i64 %active, 0
  br i1 %done, label %end, label %yield
yield:
  call i32 @YIELD()
  br label %wait
end:
  call void @PyThread_release_lock(ptr %busy)
  ret void
}

define internal void @take_blocks() nounwind {
  %bell = load ptr, ptr @pool.bell
  call i32 @PyThread_acquire_lock(ptr %bell, i32 0)
  call void @PyThread_release_lock(ptr %bell)
  br label %next
next:
  %left = atomicrmw sub ptr @pool.left, i64 1 seq_cst, align 8
  %any = icmp sgt i64 %left, 0
  br i1 %any, label %run, label %end
run:
  %part = load ptr, ptr @pool.part
  %frame = load ptr, ptr @pool.frame
  %blocks = load i64, ptr @pool.blocks
  %block = sub i64 %blocks, %left
  call void %part(ptr %frame, i64 %block)
  br label %next
end:
  ret void
}

define void @minijax_help() nounwind {
  %bell = load ptr, ptr @pool.bell
  br label %look
look:
  %turn = phi i64 [ 0, %0 ], [ 0, %help ], [ %turn.next, %idle ], [ 0, %sleep ]
  %left = load atomic i64, ptr @pool.left seq_cst, align 8
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %help, label %idle
help:
  atomicrmw add ptr @pool.active, i64 1 seq_cst, align 8
  call void @take_blocks()
  atomicrmw sub ptr @pool.active, i64 1 seq_cst, align 8
  br label %look
idle:
  %turn.next = add i64 %turn, 1
  %short = icmp slt i64 %turn, 10000
  br i1 %short, label %look, label %sleep
sleep:
  call i32 @PyThread_acquire_lock(ptr %bell, i32 1)
  br label %look
}
""".replace("YIELD", "SwitchToThread" if sys.platform == "win32" else "sched_yield")

# BLAS has threads of its own, which would fight with these: while a kernel calls it for much it is
# told to use one. The first to come in (`change` is 1) says so, the last to go out (-1) restores
# what was set before, unless the program has asked for another number meanwhile.
BLAS = """
declare i32 @minijax_blas_get()
declare void @minijax_blas_set(i32)
define void @minijax_blas(i64 %change) nounwind {
  %lock = load ptr, ptr @pool.blas_lock
  call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  %before = load i64, ptr @pool.blas_users
  %after = add i64 %before, %change
  store i64 %after, ptr @pool.blas_users
  %first = icmp eq i64 %before, 0
  %last = icmp eq i64 %after, 0
  %now = call i32 @minijax_blas_get()
  %saved.before = load i32, ptr @pool.blas_saved
  %saved = select i1 %first, i32 %now, i32 %saved.before
  store i32 %saved, ptr @pool.blas_saved
  %ours = icmp eq i32 %now, 1
  %restore = and i1 %last, %ours
  %kept = select i1 %restore, i32 %saved, i32 %now
  %wanted = select i1 %first, i32 1, i32 %kept
  call void @minijax_blas_set(i32 %wanted)
  call void @PyThread_release_lock(ptr %lock)
  ret void
}
"""
NO_BLAS = "define void @minijax_blas(i64 %change) nounwind { ret void }\n"

NAMES = ("minijax_share", "minijax_blas", "minijax_help")
LOCKS = ("busy", "bell", "blas_lock")

# What the text calls @pool and the name.
_state = {name: ctypes.c_int64() for name in (
    "left", "active", "part", "frame", "blocks", "blas_users", "blas_saved", *LOCKS)}
_code: list[Any] = []  # the text as machine code, once it is loaded
asleep = [True]  # not empty until there are helpers; and in a forked child, which has none


def symbols(linked: Callable[..., Any]) -> Any:
    """Where the pool's functions are; the first call loads them and starts the helpers.

    May be called only where machine code may be made: within cpu.undisturbed.
    """
    if not _code:
        fields = {f"pool.{name}": ctypes.addressof(x) for name, x in _state.items()}
        settings = thread_setting()
        text = "".join(f"@{name} = external global i8\n" for name in fields) + SHARE
        text += BLAS if settings else NO_BLAS
        _code.append(linked(lambda: text, NAMES, fields | settings))
    _start_helpers()
    return _code[0]


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


def _start_helpers() -> None:
    """Make the locks and the threads, where there are none yet."""
    if not asleep:
        return
    python = ctypes.pythonapi
    python.PyThread_allocate_lock.restype = ctypes.c_void_p
    for name, x in _state.items():
        x.value = python.PyThread_allocate_lock() if name in LOCKS else 0
    python.PyThread_acquire_lock(ctypes.c_void_p(_state["bell"].value), 1)
    helper = ctypes.CFUNCTYPE(None)(_code[0]["minijax_help"])
    all(cpu.started(helper) for _ in range(wanted() - 1))  # or as many as the system gives
    asleep.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: asleep.append(True))
