"""From a program to loops, to text and to machine code.

Stands on every module below it in this folder; only `higher_order.jit` calls it. Chapters 22–26.
In JAX: jax/_src/interpreters/mlir.py, and XLA behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from minijax.jaxpr import ClosedJaxpr

from . import host

if TYPE_CHECKING:
    from .loops import Kernel


@dataclass(frozen=True)
class Lowered:
    """A program on its way to machine code; each stage is made when first asked for."""

    jaxpr: ClosedJaxpr
    name: str

    @cached_property
    def simplified(self) -> ClosedJaxpr:
        """The program without what can be computed or dropped beforehand, keys as words."""
        from .simplify import physical, simplify

        return simplify(physical(self.jaxpr))

    @cached_property
    def kernel(self) -> Kernel:
        """The loops."""
        from .schedule import lower_to_kernel

        return lower_to_kernel(self.simplified, self.name)

    def as_text(self, stage: str = "source") -> str:
        """One stage as text: "jaxpr", "simplified", "loops" or "source" (readable Python)."""
        if stage == "jaxpr":
            return str(self.jaxpr)
        if stage == "simplified":
            return str(self.simplified)
        if stage == "loops":
            return str(self.kernel)
        if stage == "source":
            from .text import kernel_text

            return kernel_text(self.kernel)
        raise ValueError(f"there is no stage {stage!r}: one of jaxpr, simplified, loops, source")

    def compile(self) -> Executable:
        """Machine code, from the cache on disk where it has been compiled before."""
        return Executable(self.kernel)


class Executable:
    """A compiled kernel: call it with the input buffers, it returns new output buffers."""

    def __init__(self, kernel: Kernel) -> None:
        from . import cache

        self.kernel = kernel
        self._calls_host = any(map(host.is_host_call, cache.external_names(kernel.body)))
        self._run = cache.compile_or_load(kernel)
        self._outputs = [(buffer.shape, buffer.dtype) for buffer in kernel.outputs]
        self._constants = [np.asarray(buffer.value) for buffer in kernel.constants]
        # Workspaces not in use; taking and giving back one element is atomic, so threads share.
        self._workspaces: list[np.ndarray] = []

    def __call__(self, *inputs: np.ndarray) -> list[np.ndarray]:
        # Anything but an array has no address to pass on: machine code would read elsewhere.
        arrays = [x if type(x) is np.ndarray else np.asarray(x) for x in inputs]
        outputs = [np.empty(shape, dtype) for shape, dtype in self._outputs]
        try:
            workspace = self._workspaces.pop()
        except IndexError:
            workspace = np.empty(self.kernel.workspace_size, np.uint8)
        status = self._run([*arrays, *outputs, *self._constants, workspace])
        self._workspaces.append(workspace)
        if self._calls_host:
            host.reraise()
        if status:
            raise RuntimeError(f"{self.kernel.name}: check {status} failed")
        return outputs

    def as_text(self, stage: str = "llvm") -> str:
        """What the processor runs, as text: "llvm" or "asm"."""
        from . import cpu, llvm

        text = llvm.assembly(self.kernel)
        return cpu.undisturbed(lambda: cpu.as_text(text, stage))


def lower(closed_jaxpr: ClosedJaxpr, name: str) -> Lowered:
    """Prepare a program for compilation; nothing is done before a stage is asked for."""
    return Lowered(closed_jaxpr, name)
