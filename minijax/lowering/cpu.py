"""LLVM assembly to object code, and object code to a callable.

Stands on llvmlite, which is the LLVM that Numba brings; Numba itself, which would type Python, is
not asked: types are known. Chapter 24.
In JAX: jaxlib's CPU compiler and its ORC loader (xla/backends/cpu).
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import ctypes
import itertools
import os
import re
import threading
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

import numpy as np

from minijax import config
from minijax.lazily import hold_over_forks

T = TypeVar("T")


# Native work

# llvmlite takes locks of its own by lines of Python. Were a signal's exception to come
# between two of these lines, the lock would stay taken for ever; so nothing of it is called in
# the main thread, which alone handles signals. A worker does it all, unloading included: what a
# program drops anywhere, a destructor or an interrupted call among others, is put on its queue.

_native: Any = threading.RLock()  # held during native work, and while the process forks
_jobs: SimpleQueue[Any] = SimpleQueue()  # what to run; and dead references to what to unload
_workers: set[int] = set()  # the threads that serve the queue: one, and none in a forked child
_linked: dict[int, tuple[weakref.ref, Any]] = {}  # everything loaded, by its reference's id
_engine: list[Any] = []  # that what is linked now belongs to
_numbers = itertools.count()
EACH = 256  # kernels that an engine is for: it remembers a little of each that it ever had
PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.py_object)
_ending: list[bool] = []  # not empty once the interpreter ends


def undisturbed(work: Callable[[], T]) -> T:
    """Run native work in a thread of its own, one at a time, and return its result.

    Only the main thread receives KeyboardInterrupt: it may stop waiting, and what it waited for
    still ends in good order, as LLVM does not bear being left half way.
    """
    if _ending or threading.get_ident() in _workers or not (_workers or _hire()):
        with _native:
            return work()
    outcome: list[tuple[T | None, BaseException | None]] = []
    done = threading.Lock()
    done.acquire()
    work = config.carried(work)

    def run() -> None:
        try:
            outcome.append((work(), None))
        except BaseException as error:
            _let_go(error)
            outcome.append((None, error))

    _jobs.put((run, done))
    done.acquire()
    result, error = outcome.pop()
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


def _hire() -> bool:
    """Start a worker; a second one does no harm. False: there are no more threads."""
    try:
        with room_for_threads():
            _thread.start_new_thread(_serve, ())
    except RuntimeError:
        return False
    return True


@contextmanager
def room_for_threads() -> Iterator[None]:
    """Threads started here have a stack of 16 MB, whatever the program wants for its own."""
    before = threading.stack_size(1 << 24)
    try:
        yield
    finally:
        threading.stack_size(before)


def _serve() -> None:
    """What the worker does: run jobs, and unload the code of what has died."""
    _workers.add(threading.get_ident())
    while True:
        job = _jobs.get()
        with _native:
            if isinstance(job, weakref.ref):
                with contextlib.suppress(RuntimeError):  # what cannot be unloaded stays
                    _linked.pop(id(job))[1].close()
            else:
                run, done = job
                run()
                del run, job  # the result is the caller's alone
                done.release()


def _let_go(error: BaseException | None) -> None:
    """Drop what the frames of an error hold, engines among others, while we are in the worker."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _after_fork() -> None:
    """A forked child has no worker; and in the queue's own lock may be stuck who waited there."""
    global _jobs
    _jobs = SimpleQueue()
    _workers.clear()


hold_over_forks(_native)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _end() -> None:
    """Wait for the work that is under way, and let other threads begin no more."""
    _ending.append(True)
    _native.acquire()


class Host(NamedTuple):
    """The processor that code is made for: another one may not be able to run it."""

    triple: str
    cpu: str
    features: str


@cache
def host() -> Host:
    """Return the processor we run on, as LLVM names it."""
    def found() -> Host:
        binding = _llvm()
        triple, features = binding.get_process_triple(), binding.get_host_cpu_features().flatten()
        if triple.startswith("x86_64"):  # single loads are seldom slower than theirs of vectors
            features += ",+prefer-no-gather"
        return Host(triple, binding.get_host_cpu_name(), features)
    return undisturbed(found)


@cache
def vector_registers() -> tuple[int, int]:
    """How many registers for vectors the processor has, and of how many bytes."""
    has = set(host().features.split(","))
    if "+avx512f" in has:
        return 32, 64
    return (16, 32) if "+avx2" in has else (32 if "+neon" in has else 16, 16)


@cache
def _llvm() -> Any:
    """llvmlite's binding, ready to make code for this processor."""
    import llvmlite.binding as binding

    hold_over_forks(binding.ffi.lib._lock._lock, _native)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


# Compiling


def compile(assembly: str) -> bytes:
    """Return object code for this processor from the text that llvm.assembly printed."""
    return _optimized(assembly, lambda machine, module: machine.emit_object(module))


def as_text(assembly: str, stage: str) -> str:
    """Return what compiling makes of the text: "llvm" after optimisation, or "asm"."""
    return _optimized(assembly, lambda machine, module: str(module) if stage == "llvm"
                      else machine.emit_assembly(module))


def _optimized(assembly: str, finish: Callable[[Any, Any], T]) -> T:
    """Run LLVM's usual passes over a module, and hand target machine and module on."""
    binding, machine = _llvm(), _machine()
    module = binding.parse_assembly(assembly)
    module.triple, module.data_layout = host().triple, str(machine.target_data)
    module.verify()
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.slp_vectorization = False  # as Numba has it
    builder = binding.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    try:
        passes.run(module, builder)
        return finish(machine, module)
    finally:
        # `close` would free nothing: a base class hides the method for it.
        binding.newpassmanagers.NewPassManager._dispose(passes)
        passes.detach()  # it is freed once


@cache
def _machine() -> Any:
    """What LLVM makes code for: the processor we run on."""
    triple, cpu, features = host()
    # In a process full of kernels the loader may put code and constants more than 2 GB apart, which
    # the short addresses of the other models cannot span: LLVM aborts.
    model = {"reloc": "static", "codemodel": "large"} if triple.startswith("x86_64") else {}
    target = _llvm().Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=3, **model)


# Loading


class UnresolvedSymbol(OSError):
    """Object code refers to a function that is not there; running it would jump to nowhere."""

    def __init__(self, symbol: str, names: Iterable[str]) -> None:
        missing = ", ".join(names) or "a function that is not among its externals"
        super().__init__(f"the object code of {symbol!r} cannot be loaded: it calls {missing}")


def loaded(linked: Any, symbol: str) -> Callable[[list[np.ndarray]], int]:
    """Machine code as a function of a list of arrays, one for each buffer: inputs, outputs,
    constants, workspace, all C-contiguous. It returns the kernel's status.

    When the last reference goes, the code is unloaded. The lock of the interpreter is released
    while it runs, and calls from several threads may overlap.
    """
    run = PROTOTYPE(linked[symbol])
    # Whoever drops it does no more than this, in C: an interrupt cannot come between.
    ref = weakref.ref(run, _jobs.put)
    _linked[id(ref)] = ref, linked
    return run


def link(code: bytes, symbols: Sequence[str], known: Mapping[str, int]) -> Any:
    """Put object code into memory, until it is closed: it exports `symbols`, and calls what is at
    `known` addresses, or what this process has by a name.

    ORC's linker refuses code with an unresolved symbol, so nothing half-linked is ever callable.
    """
    binding, number = _llvm(), next(_numbers)
    if number % EACH == 0:
        _engine[:] = [binding.create_lljit_compiler(suppress_errors=True)]
    builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    for name, address in known.items():
        builder.import_symbol(name, address)
    try:
        found = builder.link(_engine[0], f"kernel {number}")
    except RuntimeError as error:
        missing = _undefined(code, {*symbols, *known, "kernel"})
        raise UnresolvedSymbol(symbols[0], missing) from error
    found.engine = _engine[0]  # which goes with the last of its code
    return found


def _undefined(code: bytes, known: set[str]) -> list[str]:
    """What looks like the name of an unknown function in the object code; for the message only.

    Object files keep names as text between zero bytes; llvmlite's reader of them does not survive
    a damaged file.
    """
    names = {word.decode() for word in code.split(b"\0") if re.fullmatch(rb"[A-Za-z_]\w{3,}", word)}
    return sorted(names - known)
