"""The stages of a compiled function, to look at: program, loops, source, machine code.

Stands on `jit`, `lowering`.  Chapter 08, *jit*.  In JAX: `jax/_src/stages.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax import core, errors, lowering, tree_util
from minijax.higher_order.compiled import blaming_the_compiler, jit_p
from minijax.higher_order.jit import ShapeDtypeStruct, Traced
from minijax.jaxpr import ClosedJaxpr


class TracedStage:
    """A function's program for arguments of given types."""

    def __init__(self, traced: Traced):
        self._traced = traced

    @property
    def jaxpr(self) -> ClosedJaxpr:
        return self._traced.recorded

    @property
    def fun_name(self) -> str:
        return self._traced.params["name"]

    @property
    def out_info(self) -> Any:
        """The types of the outputs, in the tree of the result."""
        types = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type)
                 for a in self.jaxpr.out_avals]
        return tree_util.tree_unflatten(self._traced.out_tree, types)

    def lower(self) -> LoweredStage:
        return LoweredStage(self)


class LoweredStage:
    """A program as loops.  ``as_text`` shows a stage, ``compile`` goes on."""

    def __init__(self, traced: TracedStage):
        self._traced = traced
        with blaming_the_compiler(traced._traced.jaxpr, traced.fun_name):
            self._lowered = lowering.lower(traced._traced.jaxpr, traced.fun_name)

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

    def compile(self) -> CompiledStage:
        with blaming_the_compiler(self._traced._traced.jaxpr, self._traced.fun_name):
            return CompiledStage(self._traced, self._lowered.compile())


class CompiledStage:
    """Machine code, callable with arguments of the types it was made for."""

    def __init__(self, traced: TracedStage, run: Any):
        self._traced, self._run = traced, run
        self._closed = traced._traced.jaxpr

    def as_text(self, dialect: str = "asm") -> str:
        """The machine code as text: ``"llvm"`` or ``"asm"``."""
        return self._run.as_text(dialect)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, _ = tree_util.tree_flatten((args, kwargs))
        values = [core.as_value(x) for x in leaves]
        self._check(values)
        if not core.base_trace.goes_straight:
            return tree_util.tree_unflatten(self._traced._traced.out_tree, jit_p.bind(
                *values, jaxpr=self._closed, name=self._traced.fun_name))
        outs = self._run(*[x._buffer for x in values])
        arrays = [core.ArrayImpl(b, aval)
                  for b, aval in zip(outs, self._closed.out_avals, strict=True)]
        return tree_util.tree_unflatten(self._traced._traced.out_tree, arrays)

    def _check(self, values: Sequence[Any]) -> None:
        """Refuse tracers, and arguments of other types than the code was made for."""
        for x in values:
            if isinstance(x, core.Tracer):
                raise errors.with_cure(
                    TypeError("Cannot apply JAX transformations to a function lowered and compiled "
                              "for a particular signature. Detected argument of Tracer type "
                              f"{type(x)}."),
                    "Inside of a transformation call the function itself, not its compiled form.")
        wanted, info = self._closed.in_avals, self._traced._traced.debug_info
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
