"""The stages of a function: its jaxpr for some arguments, loops, machine code.

Builds on `compiled`.  Chapter 08, *jit*.  In JAX: `jax/_src/stages.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from minijax import config, core, dtypes, errors, tree_util
from minijax.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.placement.devices import Device, device_of
from minijax.transforms import compiled
from minijax.transforms.arguments import check_compiler_options, check_donated_once
from minijax.util import lazily, source_info

_compiled_for_another = lazily.later("minijax.util.tree_errors", "compiled_for_another")


class ShapeDtypeStruct(core.Typed):
    """The shape and dtype of an array that need not exist: an argument for `lower`.

    >>> ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("sharding", "struct")

    def __init__(self, shape: Sequence[int], dtype: Any, *, sharding: Any = None,
                 weak_type: bool = False):
        if sharding is not None:
            sharding = lazily.later(
                "minijax.placement.named_sharding", "sharding_of_struct")(sharding)
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        self.struct, self.sharding = core.ShapedArray(
            tuple(shape), dtype, weak_type, sharding=sharding), sharding

    like = classmethod(lazily.later("minijax.placement.named_sharding", "struct_like"))
    update = lazily.later("minijax.placement.named_sharding", "updated_struct")

    @property
    def aval(self) -> core.ShapedArray:  # type: ignore[override]
        """The type of such an array; it has 32 bits in place of 64, unless enable_x64 is on."""
        return self.struct.update(dtype=dtypes.canonicalize_dtype(self.struct.dtype))

    dtype = property(operator.attrgetter("struct.dtype"))
    __len__ = core.Array.__len__

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, ShapeDtypeStruct) and self.struct is other.struct
                and self.sharding == other.sharding)

    def __hash__(self) -> int:
        return hash((self.struct, self.sharding))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        where = f", sharding={self.sharding}" if self.sharding is not None else ""
        return (f"ShapeDtypeStruct(shape={self.shape}, "
                f"dtype={core.dtype_name(self.dtype)}{where}{weak})")


@dataclass(frozen=True)
class ArgInfo(core.Typed):
    """The type of an argument, and whether it is donated."""

    _aval: core.ShapedArray
    donated: bool

    aval = property(operator.attrgetter("_aval"))


class Stage:
    """The types and trees of arguments and results, for every stage."""

    _traced: Traced

    in_tree = property(operator.attrgetter("_traced.arguments.in_tree"), doc=(
        "The tree of (positional arguments, keyword arguments), without the static ones."))

    @property
    def args_info(self) -> Any:
        """An `ArgInfo` for each argument, in their tree."""
        return tree_util.tree_unflatten(self.in_tree, [
            ArgInfo(aval, i in self._traced.arguments.donated)
            for i, aval in enumerate(self._traced.jaxpr.in_avals)])

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, in their tree."""
        return self.in_tree.unflatten_types(self._traced.jaxpr.in_avals)

    donate_argnums = property(operator.attrgetter("_traced.arguments.donated"), doc=(
        "The positions of donated leaves among the leaves of the arguments."))

    @property
    def out_info(self) -> Any:
        """The types of the results, in their tree; those of a lowered program are never weak."""
        closed, of_jit = self._traced.jaxpr, self._traced.arguments.shardings
        is_explicit = config.mesh.value is not None and config.mesh.value.explicit_axes
        shardings = of_jit.of_leaves("result", self._traced.out_tree) if of_jit else [
            a.sharding if is_explicit else a.explicit_sharding for a in closed.out_avals]
        is_traced = self is self._traced
        types = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=is_traced and a.weak_type,
                                  sharding=sharding)
                 for a, sharding in zip(closed.out_avals, shardings, strict=True)]
        return tree_util.tree_unflatten(self._traced.out_tree, types)

    def _leaves(self, args: tuple, kwargs: dict) -> list[Any]:
        """The leaves of arguments, refused if their tree differs."""
        leaves, tree = tree_util.tree_flatten((args, kwargs))
        if tree != self.in_tree:
            raise _compiled_for_another(tree, self.in_tree)
        return leaves


class Arguments(NamedTuple):
    """The arguments of a traced function: their tree, the donated leaves, and the shardings of
    arguments and results passed to `jit`.
    """

    in_tree: tree_util.PyTreeDef
    donated: tuple[int, ...]
    shardings: Any = None


@dataclass(frozen=True, eq=False)
class Traced(Stage):
    """A function's program for some types of arguments, and further data of a call."""

    jaxpr: ClosedJaxpr  # as recorded, with closed-over values as constants
    program: ClosedJaxpr  # the same as pure data: constants that are tracers are leading inputs
    captured: tuple[Any, ...]  # what belongs to enclosing traces
    fun_name: str
    out_tree: tree_util.PyTreeDef
    debug_info: source_info.DebugInfo
    arguments: Arguments
    donated: tuple[int, ...] = ()  # positions of the donated leaves

    _traced = property(lambda self: self)

    def is_current(self) -> bool:
        """Whether the tracers that the function closes over are still live."""
        trace = core.current_trace.get()
        return all(trace.is_open(core.level_of(x)) for x in self.captured)

    def run(self, device: Device, loops: Any = None) -> Callable[..., list]:
        """The executable of the program on a device; see `compiled.executable`."""
        for x in self.program.consts:
            if isinstance(x, core.AbstractArray):
                x._buffer  # noqa: B018  says that there is none
        return compiled.executable(self.program, self.fun_name, device, loops)

    @property
    def out_avals(self) -> Any:
        """The types of the results, in their tree."""
        return self.out_tree.unflatten_types(self.jaxpr.out_avals)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the recorded program."""
        return tree_util.tree_unflatten(
            self.out_tree, jaxpr_as_fun(self.jaxpr)(*self._leaves(args, kwargs)))

    def lower(self, *, lowering_platforms: tuple[str, ...] | None = None) -> Lowered:
        """The program as loops, which are the same for every platform."""
        return Lowered(self)


class Lowered(Stage):
    """A program as loops.  ``as_text`` shows a stage, ``compile`` goes on."""

    out_tree = property(lambda self: self._traced.out_tree)

    def __init__(self, traced: Traced):
        self._traced = traced
        self._lowered = compiled.lowered(traced.program, traced.fun_name, in_tiers=False)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """One stage as text.

        Args:
          dialect: ``"jaxpr"``, ``"simplified"``, ``"source"`` (the loops, as Python that runs; so
            is None), ``"launches"`` (as a GPU would run them), ``"numba"`` or ``"numba.cuda"`` (a
            program for Numba that runs alone, with a ``main`` on NumPy arrays).
          debug_info: accepted for JAX's sake.
        """
        return self._lowered.as_text(dialect or "source")

    compiler_ir = lazily.later("minijax.util.absent", "compiler_ir")

    def cost_analysis(self) -> dict[str, float]:
        """How many floating-point operations, elementary functions and bytes the loops take."""
        return {name: float(count) for name, count in self._lowered.costs.items()}

    def compile(self, compiler_options: dict[str, Any] | None = None, *,
                device_assignment: Any = None) -> Compiled:
        """Compile to machine code; options of XLA and devices have no effect."""
        check_compiler_options(compiler_options)
        with compiled.blaming_the_compiler(self._traced.program, self._traced.fun_name):
            return Compiled(self._traced, self._lowered, device_of(()))


class Compiled(Stage):
    """Machine code, callable with arguments of the types it was made for."""

    out_tree = property(lambda self: self._traced.out_tree)

    def __init__(self, traced: Traced, lowered: Any, device: Device):
        self._traced, self._lowered, self._device = traced, lowered, device
        getattr(traced.run(device, lowered), "improve", lambda: None)()  # to optimised code

    def as_text(self, dialect: str = "asm") -> str:
        """The machine code as text: ``"llvm"`` or ``"asm"``, or ``"ptx"`` for a GPU."""
        return self._lowered.as_text(dialect)

    cost_analysis = Lowered.cost_analysis

    runtime_executable = lazily.later("minijax.util.absent", "runtime_executable")

    def memory_analysis(self) -> Any:
        """How many bytes a call takes for its arguments, its results, and between them."""
        return self._lowered.memory

    input_shardings, output_shardings, input_formats, output_formats = (
        property(lazily.later("minijax.placement.formats", name)) for name in (
            "input_shardings", "output_shardings", "input_formats", "output_formats"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        shardings = self._traced.arguments.shardings
        if shardings is None:
            return self._call(args, kwargs)
        return shardings.call(self._call, args, kwargs, lambda: self._traced.debug_info.arg_names)

    def _call(self, args: tuple, kwargs: dict) -> Any:
        values = [core.as_value(x) for x in self._leaves(args, kwargs)]
        self._check(values)
        program = self._traced.program
        check_donated_once(values, program, self._traced.donated, has_run=False)
        if not core.base_trace.call_checks:
            there = compiled.device_for(program, values)
            device = there if there.is_global else self._device
            outs = compiled.run_on_arrays(self._traced.run(device), device, program, values)
        else:
            outs = compiled.jit_p.bind(*values, jaxpr=program, name=self._traced.fun_name)
        for i in self._traced.donated:
            core.donate(values[i])
        return tree_util.tree_unflatten(self._traced.out_tree, outs)

    __copy__ = __deepcopy__ = lambda self, memo=None: self  # as a function does

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle the machine code of {self._traced.fun_name!r}: it belongs "
                        "to this process. Pickle the function, and compile it again.")

    def _check(self, values: Sequence[Any]) -> None:
        """Refuse tracers, and arguments of other types than those of the compiled code."""
        for x in values:
            if isinstance(x, core.Tracer):
                raise errors.with_cure(
                    TypeError("Cannot apply JAX transformations to a function lowered and compiled "
                              "for a particular signature. Detected argument of Tracer type "
                              f"{type(x)}."),
                    "Inside of a transformation call the function itself, not its compiled form.")
        in_avals, info = self._traced.program.in_avals, self._traced.debug_info
        differ = [f"Argument '{name}' compiled with {aval.str_long()} and called with "
                  f"{x.aval.str_long()}"
                  for x, aval, name in zip(values, in_avals, info.arg_names, strict=True)
                  if (x.shape, x.dtype) != (aval.shape, aval.dtype)]
        if differ:
            raise TypeError("Argument types differ from the types for which this computation was "
                            "compiled. Perhaps you are calling the compiled executable with a "
                            "different enable_x64 mode than when it was AOT compiled? The "
                            "mismatches are:\n" + "\n".join(differ))
