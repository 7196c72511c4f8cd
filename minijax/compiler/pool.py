"""The thread pool: each free thread takes the next block of a parallel loop, until none is left.

Builds on cpu.py, and on the locks that Python's own threads use. Chapter 26.
In JAX: the thread pool of XLA's CPU client (xla/tsl/platform/threadpool).
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Set
from typing import Any

from . import cpu, host, interrupts
from .library import thread_setting

# A kernel calls `share(part, frame, blocks)`, which runs part(frame, k) for every k below `blocks`,
# on the calling thread and on workers. All of it is machine code, so no thread waits for the
# interpreter, and a loop inside a `while` is parallel as well.
#
# One loop runs in parallel at a time (`busy`); a second one, in a kernel of another thread, waits
# for it. (A block contains no parallel loop.) A thread takes a block by an atomic decrement of
# `left`. A worker increments `active` *before* it takes a block. The caller returns when no block
# is left and `active` is zero: then no block is running. A worker without work spins for a while,
# and then sleeps on a lock, the bell. A thread that starts to take blocks rings the bell, which
# wakes one worker, which rings it in turn. The bell remembers one ring without a sleeper.
#
# The caller polls for signals (interrupts.py) while it waits and before each block. When a handler
# has raised, the remaining blocks are skipped, and the caller returns a status. A handler may run
# a kernel itself: its loops run serially.
SHARE = """\
declare i32 @PyThread_acquire_lock(ptr, i32)
declare i32 @PyThread_acquire_lock_timed(ptr, i64, i32)
declare void @PyThread_release_lock(ptr)
declare i32 @YIELD()

define i32 @minijax_share(ptr %part, ptr %frame, i64 %blocks) nounwind {
  %me = call IDENT @PyThread_get_thread_ident()
  %caller = load IDENT, ptr @pool.caller
  %is_nested = icmp eq IDENT %me, %caller
  br i1 %is_nested, label %nested, label %enter
nested:
  store IDENT 0, ptr @pool.caller
  br label %each
each:
  %block = phi i64 [ 0, %nested ], [ %following, %each ]
  call void %part(ptr %frame, i64 %block)
  %following = add i64 %block, 1
  %more = icmp slt i64 %following, %blocks
  br i1 %more, label %each, label %resume
resume:
  store IDENT %me, ptr @pool.caller
  ret i32 0
enter:
  %busy = load ptr, ptr @pool.busy
  %taken = call i32 @PyThread_acquire_lock_timed(ptr %busy, i64 20000, i32 0)
  %is_ours = icmp eq i32 %taken, 1
  br i1 %is_ours, label %begin, label %poll
poll:
  %raised = call i32 @minijax_poll()
  %never = icmp ne i32 %raised, 0
  br i1 %never, label %leave, label %enter
leave:
  ret i32 1
begin:
  store IDENT %me, ptr @pool.caller
  store atomic i64 0, ptr @pool.stopped seq_cst, align 8
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
  call i32 @minijax_poll_shared()
  call i32 @YIELD()
  br label %wait
end:
  store IDENT 0, ptr @pool.caller
  %stopped = load atomic i64, ptr @pool.stopped seq_cst, align 8
  %status = trunc i64 %stopped to i32
  call void @PyThread_release_lock(ptr %busy)
  ret i32 %status
}

define internal void @take_blocks() nounwind {
  %bell = load ptr, ptr @pool.bell
  call i32 @PyThread_acquire_lock(ptr %bell, i32 0)
  call void @PyThread_release_lock(ptr %bell)
  br label %take
take:
  %left = atomicrmw sub ptr @pool.left, i64 1 seq_cst, align 8
  %any = icmp sgt i64 %left, 0
  br i1 %any, label %poll, label %end
poll:
  %stopped = call i32 @minijax_poll_shared()
  %is_over = icmp ne i32 %stopped, 0
  br i1 %is_over, label %take, label %run
run:
  %part = load ptr, ptr @pool.part
  %frame = load ptr, ptr @pool.frame
  %blocks = load i64, ptr @pool.blocks
  %block = sub i64 %blocks, %left
  call void %part(ptr %frame, i64 %block)
  br label %take
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
""".replace("YIELD", "SwitchToThread" if sys.platform == "win32" else "sched_yield").replace(
    "IDENT", interrupts.IDENT)

# The threads of BLAS would compete with these, so BLAS is limited to one thread while kernels call
# it for large problems. The first user (`change` is 1) sets the limit, the last one (-1) restores
# the setting, unless the program has changed it meanwhile.
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
  %threads = select i1 %first, i32 1, i32 %kept
  call void @minijax_blas_set(i32 %threads)
  call void @PyThread_release_lock(ptr %lock)
  ret void
}
"""
NO_BLAS = "define void @minijax_blas(i64 %change) nounwind { ret void }\n"

SHARING = ("minijax_share", "minijax_blas")  # functions that need the workers
NAMES = (*SHARING, "minijax_help", "minijax_poll", "minijax_poll_shared", "minijax_iterations",
         "minijax_host")
LOCKS = ("busy", "bell", "blas_lock")

# What the text calls @pool and the name.
_state = {name: ctypes.c_int64() for name in (
    "left", "active", "part", "frame", "blocks", "blas_users", "blas_saved", "caller", "stopped",
    "main", "next", "iterations", *LOCKS)}
_code: list[Any] = []  # the machine code, once it is loaded
asleep = [True]  # not empty until there are workers; and in a forked child, which has none


def symbols(linked: Callable[..., Any], names: Set[str] = frozenset(SHARING)) -> Any:
    """The addresses of the pool's functions. The first call loads them; workers start with the
    first of the functions that need them.

    Call it only within cpu.undisturbed, where native code may be compiled.
    """
    if not _code:
        fields = {f"pool.{name}": ctypes.addressof(x) for name, x in _state.items()}
        fields["pool.raised"] = id(host.raised)
        settings = thread_setting()
        text = "".join(f"@{name} = external global i8\n" for name in fields)
        text += interrupts.RUNTIME + SHARE + (BLAS if settings else NO_BLAS)
        _state["main"].value = threading.main_thread().ident or 0
        _code.append(linked(lambda: text, NAMES, fields | settings, level=0))
    if not names.isdisjoint(SHARING):
        _start_workers()
    return _code[0]


def iterations() -> int:
    """The iteration count of the loop in which a handler raised; -1 if it was not counted."""
    return _state["iterations"].value


def wake() -> None:
    """Start the workers of a forked child."""
    cpu.undisturbed(_start_workers)


def thread_count() -> int:
    """The number of threads: MINIJAX_NUM_THREADS, or one for each available processor."""
    setting = os.environ.get("MINIJAX_NUM_THREADS", "")
    if setting.isdecimal() and int(setting) > 0:
        return int(setting)
    has_affinity = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1


def _start_workers() -> None:
    """Create the locks and the worker threads, unless they exist."""
    if not asleep:
        return
    python = ctypes.pythonapi
    python.PyThread_allocate_lock.restype = ctypes.c_void_p
    for name, x in _state.items():
        x.value = python.PyThread_allocate_lock() if name in LOCKS else 0
    _state["main"].value = threading.main_thread().ident or 0
    python.PyThread_acquire_lock(ctypes.c_void_p(_state["bell"].value), 1)
    helper = ctypes.CFUNCTYPE(None)(_code[0]["minijax_help"])
    all(cpu.started(helper) for _ in range(thread_count() - 1))  # or as many as the system gives
    asleep.clear()


def _forked() -> None:
    """A forked child has no workers, and its only thread is the main one."""
    asleep.append(True)
    _state["main"].value = threading.get_ident()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
