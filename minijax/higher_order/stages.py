"""The stages of a function, from its program for arguments of given types to machine code.

Stands on `compiled`.  Chapter 08, *jit*.  In JAX: `jax/_src/stages.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax import core, errors, lazily, source_info, tree_util
from minijax.higher_order import compiled
from minijax.jaxpr import ClosedJaxpr


class ShapeDtypeStruct:
    """The shape and dtype of an array that need not exist: an argument for `lower`.

    >>> ShapeDtypeStruct((2, 3), np.float32)
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("aval",)

    def __init__(self, shape: Sequence[int], dtype: Any, *, weak_type: bool = False):
        self.aval = core.ShapedArray(tuple(shape), dtype, weak_type)

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    weak_type = property(lambda self: self.aval.weak_type)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self.aval is other.aval

    def __hash__(self) -> int:
        return hash(self.aval)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return (f"ShapeDtypeStruct(shape={self.shape}, "
                f"dtype={core.dtype_name(self.dtype)}{weak})")


@dataclass(frozen=True, eq=False)
class Traced:
    """A function's program for arguments of given types, and what a call of it needs besides."""

    jaxpr: ClosedJaxpr  # as it was written down, with what the function closed over as constants
    program: ClosedJaxpr  # the same as pure data: constants that are tracers are leading inputs
    captured: tuple[Any, ...]  # those tracers, which belong to enclosing transformations
    fun_name: str
    out_tree: tree_util.PyTreeDef
    debug_info: source_info.DebugInfo
    donated: tuple[int, ...] = ()  # places of the leaves that a call uses up

    def is_current(self) -> bool:
        """Whether what the function closed over is still being traced."""
        trace = core.current_trace.get()
        return all(trace.is_open(x.level) for x in self.captured)

    @lazily.cached_property
    def run(self) -> Callable[..., list[np.ndarray]]:
        return compiled.executable(self.program, self.fun_name)

    @property
    def out_info(self) -> Any:
        """The types of the outputs, in the tree of the result."""
        types = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type)
                 for a in self.jaxpr.out_avals]
        return tree_util.tree_unflatten(self.out_tree, types)

    def lower(self) -> Lowered:
        return Lowered(self)


class Lowered:
    """A program as loops.  ``as_text`` shows a stage, ``compile`` goes on."""

    def __init__(self, traced: Traced):
        self._traced = traced
        self._lowered = compiled.lowered(traced.program, traced.fun_name)

    @property
    def out_info(self) -> Any:
        return self._traced.out_info

    def as_text(self, dialect: str = "loops") -> str:
        """One stage as text.

        Args:
          dialect: ``"jaxpr"``, ``"simplified"``, ``"loops"`` (the loop tree) or ``"source"``
            (the loops as Python that runs).
        """
        return self._lowered.as_text(dialect)

    def compile(self) -> Compiled:
        with compiled.blaming_the_compiler(self._traced.program, self._traced.fun_name):
            return Compiled(self._traced, self._lowered.compile())


class Compiled:
    """Machine code, callable with arguments of the types it was made for."""

    def __init__(self, traced: Traced, run: Any):
        self._traced, self._run = traced, run

    def as_text(self, dialect: str = "asm") -> str:
        """The machine code as text: ``"llvm"`` or ``"asm"``."""
        return self._run.as_text(dialect)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, _ = tree_util.tree_flatten((args, kwargs))
        values = [core.as_value(x) for x in leaves]
        self._check(values)
        program = self._traced.program
        if core.base_trace.goes_straight:
            outs = compiled.run_on_arrays(self._run, program, values)
        else:
            outs = compiled.jit_p.bind(*values, jaxpr=program, name=self._traced.fun_name)
        return tree_util.tree_unflatten(self._traced.out_tree, outs)

    def _check(self, values: Sequence[Any]) -> None:
        """Refuse tracers, and arguments of other types than the code was made for."""
        for x in values:
            if isinstance(x, core.Tracer):
                raise errors.with_cure(
                    TypeError("Cannot apply JAX transformations to a function lowered and compiled "
                              "for a particular signature. Detected argument of Tracer type "
                              f"{type(x)}."),
                    "Inside of a transformation call the function itself, not its compiled form.")
        wanted, info = self._traced.program.in_avals, self._traced.debug_info
        if len(values) != len(wanted):
            raise TypeError(f"{info.func_name} was compiled with {len(wanted)} arrays as its "
                            f"arguments, and is called with {len(values)}.")
        differ = [f"Argument '{name}' compiled with {aval.str_long()} and called with "
                  f"{x.aval.str_long()}"
                  for x, aval, name in zip(values, wanted, info.arg_names, strict=True)
                  if (x.shape, x.dtype) != (aval.shape, aval.dtype)]
        if differ:
            raise TypeError("Argument types differ from the types for which this computation was "
                            "compiled. Perhaps you are calling the compiled executable with a "
                            "different enable_x64 mode than when it was AOT compiled? The "
                            "mismatches are:\n" + "\n".join(differ))
