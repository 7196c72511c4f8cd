"""The stages of a program, from a jaxpr to text and machine code.

Builds on every other module of this folder; only `transforms.compiled` calls it. Chapters 22–26.
In JAX: jax/_src/interpreters/mlir.py, and XLA behind it.
"""

import gc
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from minijax import config
from minijax.core import ShapedArray, physical_aval
from minijax.core.jaxpr import ClosedJaxpr, types_in
from minijax.util.lazily import cached_property

from . import cache, cpu, executable, llvm, pool
from .costs import CompiledMemoryStats, costs_of, memory_of
from .duplicates import expanded
from .interrupts import interrupt_message, line_of
from .loops import Kernel
from .schedule import lower_to_kernel
from .simplify import simplify


T = TypeVar("T")


def without_gc(work: Callable[[], T]) -> T:
    """The result of `work`, with Python's cyclic garbage collector off."""
    was_enabled = gc.isenabled()
    try:
        gc.disable()
        return work()
    finally:
        if was_enabled:
            gc.enable()


@dataclass(frozen=True)
class Lowered:
    """A program to be compiled; each stage is computed on first use."""

    jaxpr: ClosedJaxpr
    name: str
    in_tiers: bool = True  # else optimised before the first call

    @cached_property
    def program(self) -> ClosedJaxpr:
        """The program, in whose types are no shardings."""
        is_sharded = any(x.explicit_sharding is not None for x in {*types_in(self.jaxpr.jaxpr)})
        hook = ShapedArray.shardings
        return hook.without_shardings(self.jaxpr) if is_sharded else self.jaxpr

    @cached_property
    def simplified(self) -> ClosedJaxpr:
        """The simplified program, with keys as words and complex numbers as pairs."""
        with config.disable_jit(False):  # as in `lower_to_kernel`
            return simplify(self.program)

    @cached_property
    def compact(self) -> Kernel:
        """The loop tree, with duplicates of equal loops."""
        return without_gc(lambda: lower_to_kernel(self.program, self.name))

    @property
    def kernel(self) -> Kernel:
        """The loop tree."""
        return expanded(self.compact)

    @cached_property
    def launches(self) -> Kernel:
        """The loop tree scheduled for a GPU; Numba does not know tensor cores."""
        return self.scheduled(config.compiler.value != "numba")

    def scheduled(self, has_tensor_cores: bool) -> Kernel:
        """The loop tree scheduled for a GPU, with or without tensor cores."""
        from .targets.launches import scheduled  # which is for GPUs alone

        kernel = lower_to_kernel(self.program, self.name, on_gpu=True)
        return scheduled(kernel, has_tensor_cores)

    def as_text(self, stage: str = "source") -> str:
        """One stage as text: "jaxpr", "simplified", "source" (the loops, as readable Python),
        "launches" (the same for a GPU), "numba" and "numba.cuda" (programs for Numba),
        or what a processor runs, "llvm", "asm" or "ptx".
        """
        from . import numba_text, text  # which no compilation needs
        from .targets import numba_cuda, ptx

        def by_llvm() -> str:
            assembly = llvm.assembly(self.compact)
            return cpu.undisturbed(lambda: cpu.compile(assembly, stage))

        stages: dict[str, Callable[[], str]] = {
            "jaxpr": lambda: str(self.jaxpr), "simplified": lambda: str(self.simplified),
            "source": lambda: text.kernel_text(self.kernel),
            "launches": lambda: text.kernel_text(self.launches),
            "numba": lambda: numba_text.numba_text(self.kernel, *self.avals),
            "numba.cuda": lambda: numba_cuda.numba_cuda_text(self.scheduled(False), *self.avals),
            "llvm": by_llvm, "asm": by_llvm,
            "ptx": lambda: ptx.compile(ptx.assembly(self.launches))}
        if stage not in stages:
            raise ValueError(f"there is no stage {stage!r}: one of {', '.join(stages)}")
        return stages[stage]()

    @property
    def avals(self) -> tuple[list[ShapedArray], list[ShapedArray]]:
        """The types of the arrays that it takes and returns: keys as their words."""
        return tuple(list(map(physical_aval, x)) for x in (  # type: ignore[return-value]
            self.jaxpr.in_avals, self.jaxpr.out_avals))

    @property
    def costs(self) -> Counter[str]:
        """The cost of a call."""
        return costs_of(self.kernel.body)

    @property
    def memory(self) -> CompiledMemoryStats:
        """The memory that a call takes."""
        return memory_of(self.kernel)

    def compile(self) -> Callable[..., list[np.ndarray]]:
        """A callable of machine code, from the disk cache if possible."""
        in_avals, out_avals = self.avals
        if config.compiler.value == "numba":
            from . import numba_compiler  # which most programs never need

            return numba_compiler.callable_of(self.kernel, out_avals)
        code = without_gc(lambda: cache.code_of(
            self.program, lambda: self.compact, self.in_tiers))
        program, name = weakref.ref(self.jaxpr), self.name  # a jaxpr keeps its executable

        def describe_loop(loop: int) -> str:
            closed = program()
            line = line_of(llvm.transformed(Lowered(closed, name).compact), loop) if closed else ""
            return interrupt_message(line, pool.iterations())
        return executable.callable_of(code, len(in_avals), out_avals,
                                      config.carried(describe_loop))

    def compile_for(self, processor: Any) -> Callable[..., list]:
        """A callable of launches on a GPU, from buffers in its memory."""
        from .targets.programs import Program

        return Program(self.launches if processor.has_tensor_cores else self.scheduled(False),
                       processor)
