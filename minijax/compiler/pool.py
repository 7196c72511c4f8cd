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
from .restricted_python import translated

YIELD = "SwitchToThread" if sys.platform == "win32" else "sched_yield"

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
SHARE = f"""
def minijax_share(part, frame, blocks):
    if this_thread() == pool.caller:  # a handler's own kernel
        pool.caller = 0
        block = 0
        while block < blocks:
            part(frame, block)
            block += 1
        pool.caller = this_thread()
        return 0
    while int32(PyThread_acquire_lock_timed(pool.busy, 20000, 0)) != 1:
        if minijax_poll():
            return 1
    pool.caller = this_thread()
    pool.stopped = 0
    pool.part = part
    pool.frame = frame
    pool.blocks = blocks
    pool.left = blocks
    take_blocks()
    while pool.active:
        minijax_poll_shared()
        {YIELD}()
    pool.caller = 0
    stopped = pool.stopped
    PyThread_release_lock(pool.busy)
    return stopped

def take_blocks():
    PyThread_acquire_lock(pool.bell, 0)
    PyThread_release_lock(pool.bell)
    while 1:
        left = fetch_add(pool.left, -1)
        if left < 1:
            return
        if minijax_poll_shared() == 0:
            pool.part(pool.frame, pool.blocks - left)

def minijax_help():
    turn = 0
    while 1:
        if pool.left > 0:
            fetch_add(pool.active, 1)
            take_blocks()
            fetch_add(pool.active, -1)
            turn = 0
        else:
            turn += 1
            if turn > 10000:
                PyThread_acquire_lock(pool.bell, 1)
                turn = 0
"""

# The threads of BLAS would compete with these, so BLAS is limited to one thread while kernels call
# it for large problems. The first user (`change` is 1) sets the limit, the last one (-1) restores
# the setting, unless the program has changed it meanwhile.
BLAS = """
def minijax_blas(change):
    PyThread_acquire_lock(pool.blas_lock, 1)
    setting = int32(minijax_blas_get())
    if pool.blas_users == 0:
        pool.blas_saved = setting
        minijax_blas_set(1)
    pool.blas_users = pool.blas_users + change
    if pool.blas_users == 0:
        if setting == 1:
            minijax_blas_set(pool.blas_saved)
    PyThread_release_lock(pool.blas_lock)
"""
NO_BLAS = "def minijax_blas(change): return"

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
        text += translated(interrupts.RUNTIME + SHARE + (BLAS if settings else NO_BLAS))
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
