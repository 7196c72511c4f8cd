"""From a program to loops, to text and to machine code.

Stands on every module below it in this folder; only `higher_order.jit` calls it. Chapters 22–26.
In JAX: jax/_src/interpreters/mlir.py, and XLA behind it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minijax.jaxpr import ClosedJaxpr
from minijax.lazily import cached_property, importing

if TYPE_CHECKING:
    from .executable import Executable
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
        if stage in ("jaxpr", "simplified"):
            return str(getattr(self, stage))
        if stage == "loops":
            return str(self.kernel)
        if stage == "source":
            from .text import kernel_text

            return kernel_text(self.kernel)
        raise ValueError(f"there is no stage {stage!r}: one of jaxpr, simplified, loops, source")

    def compile(self) -> Executable:
        """Machine code, from the cache on disk where it has been compiled before."""
        from .executable import Executable

        return Executable(self.kernel)


def lower(closed_jaxpr: ClosedJaxpr, name: str) -> Lowered:
    """Prepare a program for compilation; nothing is done before a stage is asked for."""
    _load()
    return Lowered(closed_jaxpr, name)


@functools.cache
def _load() -> None:
    """Import what the stages need, all at once."""
    with importing:
        from . import executable, schedule  # noqa: F401
