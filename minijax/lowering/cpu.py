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
import threading
import traceback
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from minijax import config
from minijax.lazily import hold_over_forks

T = TypeVar("T")


# Native work

# llvmlite takes locks of its own by lines of Python. Were a signal's exception to come
# between two of these lines, the lock would stay taken for ever; so nothing of it is called in
# the main thread, which alone handles signals. Each piece of work has a thread, unloading
# included: what a program drops anywhere, a destructor or an interrupted call among others, is
# put on a list, which the next piece of work goes through.

_native: Any = threading.RLock()  # held during native work, and while the process forks
_starting: Any = threading.RLock()  # held while a thread is started, and its stack has our size
_linked: dict[int, tuple[weakref.ref, Any]] = {}  # everything loaded, by its reference's id
_dead: list[weakref.ref] = []  # of what to unload
_engine: list[Any] = []  # that what is linked now belongs to
_numbers = itertools.count()
EACH = 256  # kernels that an engine is for: it remembers a little of each that it ever had
PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.py_object)

hold_over_forks(_starting, _native)


@atexit.register
def _close() -> None:
    """Let what is under way end, and other threads begin no more: Python ends.

    Its main thread counts as ended then, and all but daemons have; a program may run these
    functions earlier, too.
    """
    if not threading.main_thread().is_alive():
        _native.acquire()


def undisturbed(work: Callable[[], T]) -> T:
    """Run native work in a thread of its own, one at a time, and return its result.

    Only the main thread receives KeyboardInterrupt: it may stop waiting, and what it waited for
    still ends in good order, as LLVM does not bear being left half way.
    """
    outcome: list[tuple[T | None, BaseException | None]] = []
    done = threading.Lock()
    done.acquire()
    carried = config.carried(work)

    def run() -> None:
        with _native:
            try:
                _unload()
                outcome.append((carried(), None))
            except BaseException as error:
                _let_go(error)
                outcome.append((None, error))
        done.release()

    if _native._is_owned() or not started(run):
        with _native:
            return work()
    done.acquire()
    result, error = outcome.pop()
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


def started(work: Callable[..., Any], *args: Any) -> bool:
    """Run it in a new thread with a stack of 16 MB, whatever the program wants for its own.

    False: there are no more threads.
    """
    with _starting:
        before = threading.stack_size(1 << 24)
        try:
            _thread.start_new_thread(work, args)
        except RuntimeError:
            return False
        finally:
            threading.stack_size(before)
    return True


def _unload() -> None:
    while _dead:
        with contextlib.suppress(RuntimeError):  # what cannot be unloaded stays
            _linked.pop(id(_dead.pop()))[1].close()


def _let_go(error: BaseException | None) -> None:
    """Drop what the frames of an error hold, engines among others, while we may."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


class Host(NamedTuple):
    """The processor that code is made for: another one may not be able to run it; and by whom."""

    triple: str
    cpu: str
    features: str
    compiler: str


# What each level of x86-64 adds to the one before it, as LLVM names it.
LEVELS = {
    "x86-64": "cmov cx8 fxsr mmx sse sse2",
    "x86-64-v2": "crc32 cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    "x86-64-v4": "avx512bw avx512cd avx512dq avx512f avx512vl",
}


def host() -> Host:
    """Return the processor that code is made for, as LLVM names it.

    Raises:
      ValueError: the flag `cpu` names a level that needs what this processor does not have.
    """
    return _host(config.cpu.value)


@cache
def _host(level: str | None) -> Host:
    def read() -> Host:
        import llvmlite

        binding = _llvm()
        triple, cpu = binding.get_process_triple(), binding.get_host_cpu_name()
        features = binding.get_host_cpu_features().flatten()
        if level is not None:
            cpu, features = level, _features(level, features.split(","))
        if triple.startswith("x86_64"):  # single loads are seldom slower than theirs of vectors
            features += ",+prefer-no-gather"
        return Host(triple, cpu, features, llvmlite.__version__)
    return undisturbed(read)


def _features(level: str, of_this_processor: Sequence[str]) -> str:
    """The features of a level and of those below it."""
    levels = [*LEVELS]
    features = [f"+{name}" for below in levels[:levels.index(level) + 1]
                for name in LEVELS[below].split()]
    if missing := [name[1:] for name in features if name not in of_this_processor]:
        raise ValueError(
            f"jax_cpu is {level!r}, whose {', '.join(missing)} this processor does not have. "
            "Choose a lower level, or None: all that it has.")
    return ",".join(features)


def vector_registers() -> tuple[int, int]:
    """How many registers for vectors the processor has, and of how many bytes."""
    return _vector_registers(host().features)


@cache
def _vector_registers(features: str) -> tuple[int, int]:
    has = set(features.split(","))
    if "+avx512f" in has:
        return 32, 64
    return (16, 32) if "+avx2" in has else (32 if "+neon" in has else 16, 16)


def has_float16() -> bool:
    """Whether the processor has an instruction that converts float16."""
    processor = host()
    return not processor.triple.startswith("x86_64") or "+f16c" in processor.features.split(",")


@cache
def _llvm() -> Any:
    """llvmlite's binding, ready to make code for this processor."""
    import llvmlite.binding as binding

    hold_over_forks(binding.ffi.lib._lock._lock, _native)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


# Compiling


def compile(assembly: str, stage: str = "object") -> Any:
    """Return object code for this processor from the text that llvm.assembly printed; or, as text,
    what comes before: "llvm" after LLVM's usual passes, or "asm".
    """
    binding, machine = _llvm(), _machine(effort(), host())
    module = binding.parse_assembly(assembly)
    module.triple, module.data_layout = host().triple, str(machine.target_data)
    module.verify()
    options = binding.create_pipeline_tuning_options(speed_level=effort())
    options.slp_vectorization = False  # as Numba has it
    builder = binding.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    passes.add_always_inliner_pass()  # what takes vectors is called now
    try:
        passes.run(module, builder)
        emit = {"object": machine.emit_object, "asm": machine.emit_assembly, "llvm": str}[stage]
        return emit(module)
    finally:
        # `close` would free nothing: a base class hides the method for it.
        binding.newpassmanagers.NewPassManager._dispose(passes)
        passes.detach()  # it is freed once


def effort() -> int:
    """How hard LLVM tries: its level, which counts as part of what a kernel is called."""
    return 0 if config.disable_most_optimizations.value else 3


@cache
def _machine(level: int, processor: Host) -> Any:
    """What LLVM makes code for."""
    triple, cpu, features, _ = processor
    # In a process full of kernels the loader may put code and constants more than 2 GB apart, which
    # the short addresses of the other models cannot span: LLVM aborts.
    model = {"reloc": "static", "codemodel": "large"} if triple.startswith("x86_64") else {}
    target = _llvm().Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=level, **model)


# Loading


def loaded(linked: Any, symbol: str) -> Callable[[list[np.ndarray]], int]:
    """Machine code as a function of a list of arrays, one for each buffer: inputs, outputs,
    constants, workspace, all C-contiguous. It returns the kernel's status.

    When the last reference goes, the code is unloaded. The lock of the interpreter is released
    while it runs, and calls from several threads may overlap.
    """
    run = PROTOTYPE(linked[symbol])
    # Whoever drops it does no more than this, in C: an interrupt cannot come between.
    ref = weakref.ref(run, _dead.append)
    _linked[id(ref)] = ref, linked
    return run


def link(code: bytes, symbols: Sequence[str], known: Mapping[str, int]) -> Any:
    """Put object code into memory, until it is closed: it exports `symbols`, and calls what is at
    `known` addresses, or what this process has by a name.

    Raises:
      RuntimeError: for what is no object code, or calls what is not there: ORC's linker refuses it,
        so nothing half-linked is ever callable.
    """
    binding, number = _llvm(), next(_numbers)
    if number % EACH == 0:
        _engine[:] = [binding.create_lljit_compiler(suppress_errors=True)]
    builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    for name, address in known.items():
        builder.import_symbol(name, address)
    found = builder.link(_engine[0], f"kernel {number}")
    found.engine = _engine[0]  # which goes with the last of its code
    return found
