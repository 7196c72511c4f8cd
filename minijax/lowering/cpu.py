"""LLVM assembly to object code (through Numba), and object code to a callable (without it).

Stands on llvmlite for loading; Numba is imported by the first compilation only. Chapter 24.
In JAX: jaxlib's CPU compiler and its ORC loader (xla/backends/cpu).
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from minijax import config

from . import library

T = TypeVar("T")
_llvm_lock = threading.Lock()


class Host(NamedTuple):
    """The processor that code is made for: another one may not be able to run it."""

    triple: str
    cpu: str
    features: str


@cache
def host() -> Host:
    """Return the processor we run on, as LLVM names it."""
    import llvmlite.binding as binding

    features = binding.get_host_cpu_features().flatten()
    return Host(binding.get_process_triple(), binding.get_host_cpu_name(), features)


def undisturbed(work: Callable[[], T]) -> T:
    """Run native work in a thread of its own, one at a time, and return its result.

    Only the main thread receives KeyboardInterrupt: it may stop waiting, and what it waited for
    still ends in good order, as neither LLVM nor Numba bears being left half way.
    """
    outcome: list[Callable[[], T]] = []
    work = config.carried(work)

    def run() -> None:
        try:
            with _llvm_lock:
                result = work()
            outcome.append(lambda: result)
        except BaseException as error:
            outcome.append(_raiser(error))

    thread = threading.Thread(target=run, name="minijax compiler")
    try:
        thread.start()
    except RuntimeError:  # the interpreter is ending and gives no more threads
        run()
    else:
        thread.join()
    return outcome[0]()


def _raiser(error: BaseException) -> Callable[[], Any]:
    def again() -> Any:
        raise error

    return again


# Compiling


def compile(assembly: str) -> bytes:
    """Return object code for this processor from the text that llvm.assembly printed."""
    return _optimized(assembly, lambda machine, module: machine.emit_object(module))


def as_text(assembly: str, stage: str) -> str:
    """Return what compiling makes of the text: "llvm" after optimisation, or "asm"."""
    if stage == "llvm":
        return _optimized(assembly, lambda machine, module: str(module))
    return _optimized(assembly, lambda machine, module: machine.emit_assembly(module))


def _optimized(assembly: str, finish: Callable[[Any, Any], T]) -> T:
    """Run Numba's optimisation pipeline over a module and hand target machine and module on."""
    from llvmlite import binding
    from numba.core.compiler_lock import global_compiler_lock

    with global_compiler_lock:
        codegen = _codegen()
        module = binding.parse_assembly(assembly)
        module.triple, module.data_layout = host().triple, codegen._data_layout
        module.verify()
        # A library of Numba's would run two lighter pipelines first, for the sake of its
        # reference counts; there are none here, and the code comes out the same.
        passes, builder = codegen._module_pass_manager()
        passes.run(module, builder)
        return finish(codegen._tm, module)


@cache
def _codegen() -> Any:
    """Numba's ahead-of-time code generator for the processor we run on.

    Its libraries take modules as they are: no Python function is typed, no wrapper is made, and
    the tables of Numba's own functions (a second to load) stay out.
    """
    from numba.core.codegen import AOTCPUCodegen

    class HostCodegen(AOTCPUCodegen):
        def _customize_tm_features(self) -> str:
            return host().features

        def _customize_tm_options(self, options: dict[str, Any]) -> None:
            super()._customize_tm_options(options)
            # In a process full of kernels the loader may put code and constants more than 2 GB
            # apart, which the short addresses of the other models cannot span: LLVM aborts.
            if host().triple.startswith("x86_64"):
                options.update(reloc="static", codemodel="large")

    return HostCodegen("minijax", cpu_name=host().cpu)


# Loading


class UnresolvedSymbol(OSError):
    """Object code refers to a function that nobody provides; running it would jump to nowhere."""

    def __init__(self, symbol: str, names: Iterable[str]) -> None:
        missing = ", ".join(names) or "a function that is not among its externals"
        super().__init__(f"the object code of {symbol!r} cannot be loaded: it calls {missing}")


class Loaded:
    """Machine code in memory; call it with one array per buffer to get the kernel's status.

    It owns its engine: when the last reference goes, the code is unloaded. The lock of the
    interpreter is released while it runs, and calls from several threads may overlap.
    """

    def __init__(self, linked: Linked, symbol: str) -> None:
        self._linked = linked
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.py_object)
        # Called like a method, with the arrays in one list: inputs, outputs, constants, workspace,
        # all C-contiguous. The code finds their addresses itself.
        self.run: Callable[[list[np.ndarray]], int] = prototype(linked.address(symbol))

    def __call__(self, arrays: list[np.ndarray]) -> int:
        """Run on the memory of the arrays."""
        return self.run(arrays)


def load(code: bytes, symbol: str, externals: Iterable[str]) -> Loaded:
    """Return a callable from object code, whose calls go to library externals of these names."""
    return Loaded(link(code, (symbol,), library.addresses(externals)), symbol)


class Linked(NamedTuple):
    """Machine code in memory, as long as this lives."""

    engine: Any
    code: Any

    def address(self, symbol: str) -> int:
        """Where an exported function is."""
        return self.code[symbol]


def link(code: bytes, symbols: Sequence[str], known: Mapping[str, int]) -> Linked:
    """Put object code into memory: it exports `symbols`, and calls what is at `known` addresses.

    ORC's linker refuses code with an unresolved symbol, so nothing half-linked is ever callable.
    """
    import llvmlite.binding as binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    engine = binding.create_lljit_compiler(suppress_errors=True)
    builder = binding.JITLibraryBuilder().add_object_img(code)
    for symbol in symbols:
        builder.export_symbol(symbol)
    for name, address in known.items():
        builder.import_symbol(name, address)
    try:
        return Linked(engine, builder.link(engine, "kernel"))
    except RuntimeError as error:
        missing = _undefined(code, {*symbols, *known, "kernel"})
        raise UnresolvedSymbol(symbols[0], missing) from error


def _undefined(code: bytes, known: set[str]) -> list[str]:
    """What looks like the name of an unknown function in the object code; for the message only.

    Object files keep names as text between zero bytes; llvmlite's reader of them does not survive
    a damaged file.
    """
    names = {word.decode() for word in code.split(b"\0") if re.fullmatch(rb"[A-Za-z_]\w{3,}", word)}
    return sorted(names - known)
