"""Compiled kernels as Python calls: buffers in, new buffers out.

Stands on cache.py, and on recycling.py for large results. Chapter 26.
In JAX: `jaxlib`'s loaded executables (`xla/pjrt`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import ShapedArray

from . import cache, cpu, host, llvm, pool, recycling
from .costs import CompiledMemoryStats, costs_of, memory_of
from .loops import Kernel
from .memory import ALIGNMENT


class Executable:
    """A compiled kernel: call it with the input buffers, it returns new output buffers."""

    def __init__(self, kernel: Kernel, gives: Sequence[ShapedArray]) -> None:
        self.kernel, self.gives = kernel, gives
        self.constants = [np.asarray(buffer.value) for buffer in kernel.constants]
        self.code = cache.compile_or_load(kernel)
        self.call = self._written()

    def __call__(self, *inputs: np.ndarray) -> list[np.ndarray]:
        return self.call(*inputs)

    def _written(self) -> Callable[..., list[np.ndarray]]:
        """The call as Python text without a loop: half a microsecond sooner than with one."""
        kernel = self.kernel
        inputs = [f"x{k}" for k in range(len(kernel.inputs))]
        outputs = [f"o{k}" for k in range(len(kernel.outputs))]
        names: dict[str, Any] = {
            "ndarray": np.ndarray, "asarray": np.asarray, "empty": np.empty,
            "large": recycling.empty, "run": self.code.run, "reraise": host.reraise,
            "take": recycling.take, "give_back": recycling.give_back,
            "size": kernel.workspace_size + ALIGNMENT, "uint8": np.uint8}
        lines = []
        if "threads" in self.code.externals:
            names |= {"asleep": pool.asleep, "wake": pool.wake}
            lines.append("if asleep: wake()")
        for x in inputs:
            # Anything but an array has no address to pass on: machine code would read elsewhere.
            lines.append(f"if type({x}) is not ndarray: {x} = asarray({x})")
        for k, (buffer, aval) in enumerate(zip(kernel.outputs, self.gives, strict=True)):
            names[f"shape{k}"], names[f"dtype{k}"] = aval.shape, np.dtype(aval.dtype)
            make = "large" if buffer.nbytes >= recycling.LARGE else "empty"
            lines.append(f"o{k} = {make}(shape{k}, dtype{k})")
        names |= {f"c{k}": value for k, value in enumerate(self.constants)}
        passed = [*inputs, *outputs, *(f"c{k}" for k in range(len(self.constants)))]
        recycled = kernel.workspace_size >= recycling.LARGE
        if kernel.temps:
            lines.append("w = take(size)" if recycled else "w = empty(size, uint8)")
            passed.append("w.memory" if recycled else "w")
        lines.append(f"status = run([{', '.join(passed)}])")
        if recycled:
            lines.append("give_back(w)")
        lines += ["if status: reraise()", f"return [{', '.join(outputs)}]"]
        source = f"def call({', '.join(inputs)}):\n" + "".join(f"    {x}\n" for x in lines)
        exec(compile(source, f"<minijax call of {kernel.name}>", "exec"), names)
        return names["call"]

    def __copy__(self) -> Executable:
        return self  # as a function does

    def __deepcopy__(self, memo: dict) -> Executable:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle the machine code of {self.kernel.name!r}: it belongs to "
                        "this process. Pickle the function, and compile it again.")

    @property
    def costs(self) -> Counter[str]:
        """What a call does."""
        return costs_of(self.kernel.body)

    @property
    def memory(self) -> CompiledMemoryStats:
        """What memory a call takes."""
        return memory_of(self.kernel)

    def as_text(self, stage: str = "llvm") -> str:
        """What the processor runs, as text: "llvm" or "asm"."""
        text = llvm.assembly(self.kernel)
        return cpu.undisturbed(lambda: cpu.as_text(text, stage))
