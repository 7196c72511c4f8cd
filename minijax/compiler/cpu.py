"""LLVM assembly to object code, and object code to a callable.

Builds on llvmlite, the LLVM bindings of Numba. Numba's type inference is not needed: all types are
known. Chapter 24.
In JAX: jaxlib's CPU compiler and its ORC loader (xla/backends/cpu).
"""

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
from minijax.util.lazily import hold_over_forks

T = TypeVar("T")


# Native work

# llvmlite takes locks in Python code. An exception from a signal handler between two of its lines
# would leave a lock taken for ever. So llvmlite is never called in the main thread, which alone
# handles signals: each task runs in a thread of its own. Unloading is such a task, too. Code may
# be dropped anywhere, as in a destructor, so it is put on a list for the next task to unload.

_native: Any = threading.RLock()  # held during native work, and while the process forks
_starting: Any = threading.RLock()  # held while a thread is started, and its stack has our size
_linked: dict[int, tuple[weakref.ref, Any]] = {}  # everything loaded, by its reference's id
_unreferenced: list[weakref.ref] = []  # references to code that is to be unloaded
_engine: list[Any] = []  # the current engine, which code is linked into
_numbers = itertools.count()
EACH = 256  # kernels of an engine, which keeps a little memory of each
PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.py_object)

hold_over_forks(_starting, _native)


@atexit.register
def _close() -> None:
    """At exit: wait for the work in progress, and refuse any more.

    By then the main thread counts as ended, and so have all threads but daemons. A program may call
    its exit functions earlier, too.
    """
    if not threading.main_thread().is_alive():
        _native.acquire()


def undisturbed(work: Callable[[], T]) -> T:
    """Run native work in a thread of its own, one task at a time, and return its result.

    Only the main thread receives KeyboardInterrupt. It may stop waiting; the task still runs to its
    end, since LLVM must not be interrupted.
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
                _clear_frames(error)
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
    """Start a thread with a stack of 16 MB, whatever the program's setting is.

    Returns False if the system has no more threads.
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
    while _unreferenced:
        with contextlib.suppress(RuntimeError):  # what cannot be unloaded stays
            _linked.pop(id(_unreferenced.pop()))[1].close()


def _clear_frames(error: BaseException | None) -> None:
    """Clear the frames of an error, which may hold engines, while native work is allowed."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


class Host(NamedTuple):
    """The processor that code is generated for, and the compiler's version."""

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
    """Return the target processor, as LLVM names it.

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
    """The features of a level of x86-64 and of those below it."""
    levels = [*LEVELS]
    features = [f"+{name}" for below in levels[:levels.index(level) + 1]
                for name in LEVELS[below].split()]
    if missing := [name[1:] for name in features if name not in of_this_processor]:
        raise ValueError(
            f"jax_cpu is {level!r}, but this processor lacks {', '.join(missing)}. "
            "Choose a lower level, or None for all features of the processor.")
    return ",".join(features)


def vector_registers() -> tuple[int, int]:
    """The number of vector registers, and their size in bytes."""
    return _vector_registers(host().features)


@cache
def _vector_registers(features: str) -> tuple[int, int]:
    has = set(features.split(","))
    if "+avx512f" in has:
        return 32, 64
    return (16, 32) if "+avx2" in has else (32 if "+neon" in has else 16, 16)


def has(feature: str) -> bool:
    """Whether the processor has a feature of x86-64: "fma", or "f16c", which converts float16."""
    triple, _, features, _ = host()
    return not triple.startswith("x86_64") or f"+{feature}" in features.split(",")


@cache
def _llvm() -> Any:
    """llvmlite's binding, initialised for this processor."""
    import llvmlite.binding as binding

    hold_over_forks(binding.ffi.lib._lock._lock, _native)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


# Compiling

# Characters of a function from which on code is not optimised: LLVM's time is superlinear in them.
LONGEST = 1 << 20


def compile(assembly: str, stage: str = "object", level: int | None = None) -> Any:
    """Return object code for this processor from the text of llvm.assembly; or an intermediate
    stage as text: "llvm" after LLVM's passes, or "asm".
    """
    if max(map(len, assembly.split("\ndefine "))) > LONGEST:
        level = 0
    binding, machine = _llvm(), _machine(effort() if level is None else level, host())
    module = parsed(assembly, host().triple, machine)
    passes = binding.create_new_module_pass_manager()
    passes.add_sroa_pass()  # variables become registers
    passes.add_simplify_cfg_pass()
    run_passes(passes, module, machine)
    return {"object": machine.emit_object, "asm": machine.emit_assembly, "llvm": str}[stage](module)


def parsed(assembly: str, triple: str, machine: Any) -> Any:
    """LLVM's module of an assembly text."""
    module = _llvm().parse_assembly(assembly)
    module.triple, module.data_layout = triple, str(machine.target_data)
    module.verify()
    return module


def run_passes(passes: Any, module: Any, machine: Any) -> None:
    """Run LLVM's passes on a module."""
    binding = _llvm()
    try:
        passes.run(module, binding.create_pass_builder(
            machine, binding.create_pipeline_tuning_options()))
    finally:
        # `close` would free nothing: a base class hides the method for it.
        binding.newpassmanagers.NewPassManager._dispose(passes)
        passes.detach()  # it is freed once


def effort() -> int:
    """LLVM's optimisation level, which is part of the cache key. Loops are transformed and printed
    in vectors before; higher levels take four times as long, and the code is as fast.
    """
    return 0 if config.disable_most_optimizations.value else 1


@cache
def _machine(level: int, processor: Host) -> Any:
    """LLVM's target machine."""
    triple, cpu, features, _ = processor
    # In a process full of kernels the loader may put code and constants more than 2 GB apart, which
    # the short addresses of the other models cannot span: LLVM aborts.
    model = {"reloc": "static", "codemodel": "large"} if triple.startswith("x86_64") else {}
    target = _llvm().Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=level, **model)


# Loading


def loaded(linked: Any, symbol: str) -> Callable[[list[np.ndarray]], int]:
    """Machine code as a function of a list of C-contiguous arrays, one for each buffer: inputs,
    outputs, constants, workspace. It returns the kernel's status.

    The code is unloaded with the last reference. The interpreter lock is released while it runs,
    and several threads may call it at once.
    """
    run = PROTOTYPE(linked[symbol])
    # Whoever drops it does no more than this, in C: an interrupt cannot come between.
    ref = weakref.ref(run, _unreferenced.append)
    _linked[id(ref)] = ref, linked
    return run


def link(code: bytes, symbols: Sequence[str], addresses: Mapping[str, int]) -> Any:
    """Link object code into memory, until it is closed: it exports `symbols`, and imports the
    `addresses` and the symbols of this process.

    Raises:
      RuntimeError: for invalid object code or unresolved symbols: ORC's linker refuses it, so no
        half-linked code is callable.
    """
    binding, number = _llvm(), next(_numbers)
    if number % EACH == 0:
        _engine[:] = [binding.create_lljit_compiler(suppress_errors=True)]
    builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    for name, address in addresses.items():
        builder.import_symbol(name, address)
    tracker = builder.link(_engine[0], f"kernel {number}")
    tracker.engine = _engine[0]  # kept alive as long as its code
    return tracker
