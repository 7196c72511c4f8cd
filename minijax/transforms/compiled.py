"""Running a program: compiled or interpreted; and `jit_p`, the primitive that stands for it.

Stands on `core`, `compiler`.  Chapter 08, *jit*.
In JAX: `jax/_src/pjit.py`, `jax/_src/interpreters/pxla.py`, `jax/_src/stages.py`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from minijax import config, core, dtypes, errors, tree_util
from minijax.util import lazily, source_info
from minijax.core import ArrayImpl, Params, Primitive, ShapedArray
from minijax.transforms.arguments import check_donated_once
from minijax.placement.devices import CPU, Device, device_of
from minijax.placement.meshes import PartitionSpec
from minijax.control_flow.program_rules import running_one_of
from minijax.placement.named_sharding import (Format, Sharding, SingleDeviceSharding,
                                              explicit_sharding)
from minijax.placement.sharding_propagation import in_use, out_shardings, shard_outputs
from minijax.core.partial_eval import PartialEvalResult, partial_eval_jaxpr
from minijax.core.jaxpr import (ClosedJaxpr, eval_jaxpr, jaxpr_as_fun, partition_list, subjaxprs,
                                types_in)
from minijax.primitives.analytic import sin_p
from minijax.core.tracing import stage

logger = logging.getLogger("minijax")
T = TypeVar("T")


# ── Running a program ────────────────────────────────────────────────────────────────────────

def interpret(closed: ClosedJaxpr, *buffers: np.ndarray) -> list[np.ndarray]:
    """Run a program by the NumPy meaning of its primitives; a check may rather compile it."""
    args = [ArrayImpl(np.asarray(b), aval)
            for b, aval in zip(buffers, closed.in_avals, strict=True)]
    outs = core.base_trace.wrap(
        "interpret", _interpret)(closed, args, lambda: run_program(closed, "f", args))
    return [x._buffer for x in outs]


def _interpret(closed: ClosedJaxpr, args: Sequence[ArrayImpl], _: Callable) -> list[ArrayImpl]:
    return core.run_with(core.base_trace, eval_jaxpr, closed.jaxpr, closed.consts, *args)


def executable(closed: ClosedJaxpr, name: str = "f", device: Device = CPU) -> Callable[..., list]:
    """What runs a program on a device's buffers; compiled once, and kept as long as the program."""
    return closed.derived(("executable", device), lambda: _make_executable(closed, name, device))


# Numbers of so few bits that processors have no registers for them: NumPy computes with them.
_WITHOUT_LOOPS = frozenset(dtypes.SMALL_FLOATS + dtypes.SMALL_INTEGERS)


def is_interpreted(closed: ClosedJaxpr, device: Device) -> bool:
    """Whether a program runs operation by operation, each by its meaning."""
    return device.interprets or device == CPU and closed.derived(("has few bits",), lambda: any(
        x.dtype in _WITHOUT_LOOPS for x in types_in(closed.jaxpr)))


def _make_executable(closed: ClosedJaxpr, name: str, device: Device) -> Callable:
    if is_interpreted(closed, device):
        return functools.partial(interpret, closed)
    if config.log_compiles.value:
        types = ", ".join(map(repr, closed.in_avals))
        logger.warning("Compiling jit(%s) with global shapes and types (%s).", name, types)
    timing = timed(f"compilation of jit({name})", "backend_compile", f"jit({name})")
    with timing, blaming_the_compiler(closed, name):
        return device.compiled(lowered(closed, name))


def lowered(closed: ClosedJaxpr, name: str) -> Any:
    """A program as loops, by the compiler, which is loaded when it is first needed."""
    with lazily.importing:
        from minijax.compiler.lowered import Lowered
    return Lowered(closed, name)


# What lowering says to users: there is no rule, no library, no room, no such axis, no end.
MEANT_FOR_USERS = (NotImplementedError, ImportError, MemoryError, OSError, NameError,
                   errors.JaxRuntimeError, RecursionError)


@contextlib.contextmanager
def blaming_the_compiler(closed: ClosedJaxpr, name: str) -> Iterator[None]:
    """An error that was not meant for the user says where it is from, and what to do.

    Raises:
      JaxRuntimeError: from the original one.
    """
    try:
        yield
    except MEANT_FOR_USERS:
        raise
    except Exception as error:
        if errors.has_cure(error):
            raise
        info = closed.jaxpr.debug_info
        function = info.func_src_info if info is not None else name
        raise errors.with_cure(
            errors.JaxRuntimeError(f"INTERNAL: the compiler failed on jit({name}), the function "
                                   f"{function}, with {type(error).__name__}: {error}"),
            "This is a mistake of minijax, not of your program. Inside of `with "
            "jax.disable_jit():` the function runs without the compiler. Please report it, with "
            "the function and the types of its arguments.") from error


@contextlib.contextmanager
def timed(what: str, event: str, name: str) -> Iterator[None]:
    """Tell profiles what was done and how long it took, under `log_compiles` the log, listeners."""
    start = time.perf_counter()
    yield
    core.base_trace.notify("timed", what, start)
    if monitoring := sys.modules.get("minijax.monitoring"):  # or else nobody can listen
        monitoring.record_event_duration_secs(
            f"/jax/core/compile/{event}_duration", time.perf_counter() - start, fun_name=name)
    if config.log_compiles.value:
        logger.warning("Finished %s in %.9f sec", what, time.perf_counter() - start)


def called(program: Callable[[], T], python: Callable[[], Any], function: str | None = None
           ) -> T:
    """What a compiled program gives.

    Args:
      program: makes the call.
      python: makes it by running the user's function instead, where a check looks for its lines.
      function: what the user calls the function: ``"jax.jit"``; None to say nothing of it.
    """
    return core.base_trace.wrap("call", lambda *_: program())(python, function)


def run_program(closed: ClosedJaxpr, name: str, args: Sequence[Any]) -> list[ArrayImpl]:
    """What a program makes of arrays, compiled for where they lie."""
    device = device_of(args)
    return run_on_arrays(executable(closed, name, device), device, closed, args)


def run_on_arrays(run: Callable[..., list], device: Device, closed: ClosedJaxpr,
                  args: Sequence[Any]) -> list[ArrayImpl]:
    """What compiled code of a program makes of arrays."""
    outs = list(map(device.array, run(*map(device.operand, args)), closed.out_avals))
    return shard_outputs(closed, args, outs) if in_use else outs


# ── Operations with programs inside ──────────────────────────────────────────────────────────

class ProgramPrimitive(Primitive):
    """A primitive with programs inside: evaluated, it is compiled as a program of its own.

    `impl` stays its meaning, which the NumPy backend runs.
    """

    def evaluate(self, args: Sequence[Any], params: Params) -> list[ArrayImpl]:
        closed = self.as_program([x.aval for x in args], params)
        if is_interpreted(closed, device_of(args)):
            return super().evaluate(args, params)
        return run_program(closed, self.name, args)

    def as_program(self, avals: Sequence[ShapedArray], params: Params) -> ClosedJaxpr:
        """A program of this one equation, kept as long as the first program inside it."""
        key = ("program", self.name, *avals, *params.items())
        return next(subjaxprs(params)).derived(
            key, lambda: stage(lambda *args: self.bind_list(*args, **params), avals))


class CallPrimitive(Primitive):
    """Applies the program in its parameter `jaxpr`; evaluated, it is compiled."""

    def evaluate(self, args: Sequence[Any], params: Params) -> list[ArrayImpl]:
        return run_program(params["jaxpr"], params["name"], args)


def call_of_program(name: str, split: Callable[..., PartialEvalResult],
                    computes_again: bool = False) -> CallPrimitive:
    """A primitive that applies a program.

    Args:
      name: as a jaxpr prints it.
      split: says what its backward pass remembers.
      computes_again: the half that is transposed computes known values, too.
    """
    return CallPrimitive(name, **running("jaxpr"),
                         **running_one_of("jaxpr", computes_again=computes_again),
                         split=split, examples=_examples)


def running(field: str) -> dict[str, Any]:
    """The meaning, type and lowering of an operation that runs the program in a parameter."""
    return {
        "impl": lambda *buffers, **params: interpret(params[field], *buffers),
        "abstract_eval": lambda *_, **params: params[field].out_avals,
        "loop": lambda b, outs, operands, **params: b.jaxpr(params[field], operands, into=outs),
        "multiple_results": True,
        "handles_keys": True}


def _examples() -> list[core.Example]:
    aval = ShapedArray((3,), np.float32)
    closed = stage(lambda x, y: [sin_p.bind(x) * y, x], [aval, aval])
    x = np.array([0.5, -1.0, 2.0], np.float32)
    return [core.Example((x, x + 1), {"jaxpr": closed, "name": "f"})]


def _remembering(unknown: Sequence[bool], args: Sequence[Any], *, jaxpr: ClosedJaxpr,
                 **params: Any) -> PartialEvalResult:
    """The known half hands its residuals to the unknown half."""
    halves = partial_eval_jaxpr(jaxpr, unknown)
    known_args, unknown_args = partition_list(args, unknown)
    return PartialEvalResult(known_args, {"jaxpr": halves.known, **params},
                  lambda residuals: [*halves.needed(args, residuals), *unknown_args],
                  {"jaxpr": halves.unknown, **params}, halves.unknown_out)


jit_p = call_of_program("jit", _remembering)


# ── The stages of a function, from its program for arguments of given types to machine code ───

class ShapeDtypeStruct(core.Typed):
    """The shape and dtype of an array that need not exist: an argument for `lower`.

    >>> ShapeDtypeStruct((2, 3), np.float32)
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("aval", "sharding")

    def __init__(self, shape: Sequence[int], dtype: Any, *, sharding: Any = None,
                 weak_type: bool = False):
        sharding = sharding.sharding if isinstance(sharding, Format) else sharding
        if not isinstance(sharding, Sharding | PartitionSpec | None):
            raise ValueError(
                "sharding should be an instance of `jax.sharding.Sharding`, "
                "`jax.sharding.PartitionSpec` or `jax.experimental.layout.Format`. Got "
                f"{sharding} of type {type(sharding)}.")
        self.aval = core.ShapedArray(tuple(shape), dtype, weak_type)
        self.sharding = sharding

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, ShapeDtypeStruct) and self.aval is other.aval
                and self.sharding == other.sharding)

    def __hash__(self) -> int:
        return hash((self.aval, self.sharding))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        where = f", sharding={self.sharding}" if self.sharding is not None else ""
        return (f"ShapeDtypeStruct(shape={self.shape}, "
                f"dtype={core.dtype_name(self.dtype)}{where}{weak})")


@dataclass(frozen=True)
class ArgInfo(core.Typed):
    """The type of an argument, and whether a call may use it up."""

    aval: ShapedArray
    donated: bool


class Stage:
    """What every stage knows of the arguments and of the results."""

    _traced: Traced

    @property
    def in_tree(self) -> tree_util.PyTreeDef:
        """The tree of (positional arguments, keyword arguments), without the static ones."""
        return self._traced.arguments.in_tree

    @property
    def args_info(self) -> Any:
        """An `ArgInfo` for each argument, in their tree."""
        given_away = self._traced.arguments.donated
        return tree_util.tree_unflatten(self.in_tree, [
            ArgInfo(aval, i in given_away)
            for i, aval in enumerate(self._traced.jaxpr.in_avals)])

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, in their tree."""
        return self.in_tree.unflatten_types(self._traced.jaxpr.in_avals)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The places, among the leaves of the arguments, of those that the user gives away."""
        return self._traced.arguments.donated

    @property
    def out_info(self) -> Any:
        """The types of the results, in their tree."""
        closed = self._traced.jaxpr
        unknown = (None,) * len(closed.in_avals)
        laid = out_shardings(closed, unknown) if in_use else itertools.repeat(None)
        types = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type,
                                  sharding=explicit_sharding(where, a.ndim))
                 for a, where in zip(closed.out_avals, laid, strict=False)]
        return tree_util.tree_unflatten(self._traced.out_tree, types)

    def _leaves(self, args: tuple, kwargs: dict) -> list[Any]:
        """The leaves of arguments, refused where they are in another tree."""
        leaves, tree = tree_util.tree_flatten((args, kwargs))
        if tree != self.in_tree:
            differences = list(tree_util.equality_errors_pytreedef(tree, self.in_tree))
            raise TypeError(
                "Function compiled with input pytree does not match the input pytree it was called "
                f"with. There are {len(differences)} mismatches, including:" + "".join(
                    f"\n    * at {('args', 'kwargs')[path[0].idx]}{tree_util.keystr(path[1:])}, "
                    f"seen {then} but now given {now}, so {why}"
                    for path, now, then, why in differences))
        return leaves


class Arguments(NamedTuple):
    """The arguments that a function was traced for: their tree, the leaves given away, and how
    they and the results are to lie, where `jit` was told.
    """

    in_tree: tree_util.PyTreeDef
    donated: tuple[int, ...]
    laid: Any = None


@dataclass(frozen=True, eq=False)
class Traced(Stage):
    """A function's program for arguments of given types, and what a call of it needs besides."""

    jaxpr: ClosedJaxpr  # as it was written down, with what the function closed over as constants
    program: ClosedJaxpr  # the same as pure data: constants that are tracers are leading inputs
    captured: tuple[Any, ...]  # those tracers, which belong to enclosing transformations
    fun_name: str
    out_tree: tree_util.PyTreeDef
    debug_info: source_info.DebugInfo
    arguments: Arguments
    donated: tuple[int, ...] = ()  # places of the leaves that a call uses up

    _traced = property(lambda self: self)

    def is_current(self) -> bool:
        """Whether what the function closed over is still being traced."""
        trace = core.current_trace.get()
        return all(trace.is_open(x.level) for x in self.captured)

    def run(self, device: Device) -> Callable[..., list]:
        """What runs the program on buffers of a device."""
        for x in self.program.consts:
            if isinstance(x, core.AbstractArray):
                x._buffer  # noqa: B018  says that there is none
        return executable(self.program, self.fun_name, device)

    @property
    def out_avals(self) -> Any:
        """The types of the results, in their tree."""
        return self.out_tree.unflatten_types(self.jaxpr.out_avals)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program as it was written down."""
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
        self._lowered = lowered(traced.program, traced.fun_name)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """One stage as text.

        Args:
          dialect: ``"jaxpr"``, ``"simplified"``, ``"source"`` (the loops, as Python that runs; so
            is None) or ``"launches"`` (as a GPU would run them).
          debug_info: accepted for JAX's sake.
        """
        return self._lowered.as_text(dialect or "source")

    def cost_analysis(self) -> dict[str, float]:
        """How many floating-point operations, elementary functions and bytes the loops take."""
        return {name: float(count) for name, count in self._lowered.costs.items()}

    def compile(self, compiler_options: dict[str, Any] | None = None, *,
                device_assignment: Any = None) -> Compiled:
        """Machine code; the options of XLA's compiler and devices mean nothing here."""
        with blaming_the_compiler(self._traced.program, self._traced.fun_name):
            return Compiled(self._traced, self._lowered, device_of(()))


class Compiled(Stage):
    """Machine code, callable with arguments of the types it was made for."""

    out_tree = property(lambda self: self._traced.out_tree)

    def __init__(self, traced: Traced, lowered: Any, device: Device):
        self._traced, self._lowered, self._device = traced, lowered, device
        self._run = traced.run(device)

    def as_text(self, dialect: str = "asm") -> str:
        """The machine code as text: ``"llvm"`` or ``"asm"``, or ``"ptx"`` for a GPU."""
        return self._lowered.as_text(dialect)

    def cost_analysis(self) -> dict[str, float]:
        """As that of `Lowered`: machine code does what its loops do."""
        return {name: float(count) for name, count in self._lowered.costs.items()}

    def memory_analysis(self) -> Any:
        """How many bytes a call takes for its arguments, its results, and between them."""
        return self._lowered.memory

    @property
    def input_shardings(self) -> Any:
        """How the arguments lie: a sharding for each leaf, in their tree."""
        positional, named = self.in_tree.children()
        return self._shardings(positional, "given"), self._shardings(named, "")

    @property
    def output_shardings(self) -> Any:
        """How the results lie: a sharding for each leaf, in their tree."""
        return self._shardings(self.out_tree, "result")

    def _shardings(self, tree: tree_util.PyTreeDef, which: str) -> Any:
        laid = self._traced.arguments.laid
        places = laid.places(which, tree) if laid and which else [None] * tree.num_leaves
        here = SingleDeviceSharding(self._device)
        return tree.unflatten([place if isinstance(place, Sharding) else here for place in places])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        laid = self._traced.arguments.laid
        if laid is None:
            return self._call(args, kwargs)
        return laid.around(self._call, args, kwargs, lambda: self._traced.debug_info.arg_names)

    def _call(self, args: tuple, kwargs: dict) -> Any:
        values = [core.as_value(x) for x in self._leaves(args, kwargs)]
        self._check(values)
        program = self._traced.program
        check_donated_once(values, program, self._traced.donated, has_run=False)
        if core.base_trace.goes_straight:
            outs = run_on_arrays(self._run, self._device, program, values)
        else:
            outs = jit_p.bind(*values, jaxpr=program, name=self._traced.fun_name)
        for i in self._traced.donated:
            core.donate(values[i])
        return tree_util.tree_unflatten(self._traced.out_tree, outs)

    def __deepcopy__(self, memo: object = None) -> Compiled:
        return self  # as a function does

    __copy__ = __deepcopy__

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle the machine code of {self._traced.fun_name!r}: it belongs "
                        "to this process. Pickle the function, and compile it again.")

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
        differ = [f"Argument '{name}' compiled with {aval.str_long()} and called with "
                  f"{x.aval.str_long()}"
                  for x, aval, name in zip(values, wanted, info.arg_names, strict=True)
                  if (x.shape, x.dtype) != (aval.shape, aval.dtype)]
        if differ:
            raise TypeError("Argument types differ from the types for which this computation was "
                            "compiled. Perhaps you are calling the compiled executable with a "
                            "different enable_x64 mode than when it was AOT compiled? The "
                            "mismatches are:\n" + "\n".join(differ))
