"""Traces: the interpreters of operations under transformations, and the one current trace.

Builds on `array`.  Chapter 02, *Primitives and tracers*.
In JAX: `Trace`, `Tracer` and `EvalTrace` of `jax/_src/core.py`.
"""

from __future__ import annotations

import contextvars
import types
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from minijax import config, errors
from minijax.util import source_info
from minijax.core.array import Array, ArrayImpl
from minijax.core.types import Params, ShapedArray

if TYPE_CHECKING:
    from minijax.core.primitive import Primitive

T = TypeVar("T")

F = TypeVar("F", bound=Callable[..., Any])


class Level:
    """One active transformation: its depth and its function.

    Tracers belong to a level.  A level lives exactly as long as a trace of it is reachable from
    the current trace, so there is nothing to close and nothing an exception could leave open.
    """

    depth: int
    is_watched = False
    steps_outside: int  # for the nan check, as `is_watched` is for the leak check

    def __init__(self, parent: Trace, debug_info: source_info.DebugInfo | None = None):
        self.depth = parent.level.depth + 1 if parent.level else 1
        self.debug_info = debug_info
        base_trace.notify("level", self)


class Axis(NamedTuple):
    """The mapped axis of a `vmap`, for batching rules and collectives."""

    size: int
    name: Any = None
    level: Level | None = None
    on_devices: bool = False  # whether each example is on its own device
    vma_trace: Any = None  # where types say what varies along the axis: the class of its trace
    sharding: Any = None  # along explicit axes of a mesh, as of a vector

    @property
    def cache_key(self) -> tuple:
        """What a batched program depends on, which is cached without the level."""
        return self.size, self.name, self.sharding


class Trace:
    """The interpreter of primitives under a transformation.

    A plain trace processes every primitive, and remains the current trace meanwhile: it binds in
    its parent by `run_with`.  A `RuleTrace` processes operations on tracers of its level.

    Attributes:
      ground: the trace that is current while `process_primitive` runs; None for this one, which
        would keep itself alive.
      cast_operands: inside of `shard_map`, makes operands vary along the same axes of the mesh.
      staging_level: the level that stages the innermost program; None where values are computed.
    """

    ground: Trace | None = None

    def __init__(self, level: Level | None, parent: Trace | None):
        self.level = level
        self.parent = parent
        self.axes: tuple[Axis, ...] = parent.axes if parent else ()
        self.staging_level: Level | None = parent.staging_level if parent else None
        self.cast_operands: Callable | None = parent.cast_operands if parent else None

    def concerns(self, primitive: Primitive, args: Sequence[Array], params: Params) -> bool:
        """Whether it processes the primitive; otherwise its parent may."""
        return True

    def owns(self, x: Any) -> bool:
        return isinstance(x, Tracer) and x.level is self.level

    def process_primitive(self, primitive: Primitive, args: Sequence[Array],
                          params: Params) -> list:
        raise NotImplementedError

    def ancestry(self) -> Iterator[Trace]:
        trace: Trace | None = self
        while trace is not None:
            yield trace
            trace = trace.parent

    def is_open(self, level: Level) -> bool:
        return any(trace.level is level for trace in self.ancestry())

    def __repr__(self) -> str:
        depth = self.level.depth if self.level else 0
        return f"{type(self).__name__}(level={depth}/0)"


class RuleTrace(Trace):
    """Processes primitives with a tracer of its level among their arguments, in its parent.

    `bind` passes all others to the parent.  While a rule runs, the parent is the current trace, so
    rules bind the values inside of tracers, never the tracers.
    """

    level: Level
    parent: Trace

    def __init__(self, level: Level, parent: Trace):
        super().__init__(level, parent)
        self.ground = parent

    def concerns(self, primitive: Primitive, args: Sequence[Array], params: Params) -> bool:
        return any(map(self.owns, args))


class EvalTrace(Trace):
    """Evaluation: every primitive runs on concrete arrays at once.

    `notify` and `wrap` do nothing unless a check of `sharp_bits` is on.
    """

    checks: Any = None  # the hook
    call_checks: Any = None  # the hook of checks on each call of compiled code

    def process_primitive(self, primitive: Primitive, args: Sequence[Array],
                          params: Params) -> list:
        for x in args:
            if isinstance(x, Tracer):
                raise x._leak_error()
        return self.wrap("operation", type(primitive).evaluate)(primitive, args, params)

    def notify(self, moment: str, *facts: Any, **details: Any) -> None:
        """Report an event to the checks."""
        if self.checks:
            self.checks.notify(moment, *facts, **details)

    def wrap(self, moment: str, run: F) -> F:
        """The function to call in place of `run`, with the checks of this event."""
        return self.checks.wrap(moment, run) if self.checks else run


class Tracer(Array):
    """Represents an array under a transformation."""

    __slots__ = ("aval", "frames", "level")
    level: Level
    frames: Sequence[source_info.SourceInfo]  # the user's frames of its creation, if recorded

    def _concrete(self) -> ArrayImpl | None:
        """The concrete array of the tracer, if the transformation has one."""
        return None

    def __init__(self, trace: Any, aval: ShapedArray):
        self.level = trace.level
        self.aval = aval
        self.frames = user_frames_for_errors() if self.level.is_watched else ()

    def trace_name(self) -> str:
        return type(self).__name__.removesuffix("r")  # a JVPTracer belongs to a JVPTrace

    def _origin_msg(self) -> str:
        """For errors: the traced function, and the arguments that the value depends on."""
        info = self.level.debug_info
        if info is None:
            return ""
        return (f"\nThe error occurred while tracing the function {info.func_src_info} "
                f"for {info.traced_for}.")

    def __repr__(self) -> str:
        return f"Traced<{self.aval!r}>with<{self.trace_name()}(level={self.level.depth}/0)>"


def user_frames_for_errors(memo: list[Any] | None = None) -> tuple[source_info.SourceInfo, ...]:
    """The innermost frames of the user, as many as an error shows; see `source_info.user_frames`.

    An equation of a program has one: the line that made it.
    """
    source = current_source.get()
    return (source,) if source is not None else source_info.user_frames(
        config.tracer_error_num_traceback_frames.value, memo)


base_trace = EvalTrace(None, None)

current_trace: contextvars.ContextVar[Trace] = contextvars.ContextVar(
    "minijax_current_trace", default=base_trace)

# The user's line of the current equation, while a program is evaluated.
current_source: contextvars.ContextVar[source_info.SourceInfo | None] = contextvars.ContextVar(
    "minijax_current_source", default=None)


def axes_key() -> tuple:
    """What a program that is recorded now depends on of the named axes."""
    return tuple((axis.size, axis.name, axis.vma_trace) for axis in current_trace.get().axes)


def is_ref(x: Any) -> bool:
    """Whether a value is an array reference; see `transforms.array_refs`."""
    return getattr(type(x), "is_reference", False)


def run_with(trace: Trace, f: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """`f(*args, **kwargs)` with another current trace.

    It is `context.with_values`, inlined because every traced operation calls it.
    """
    before = current_trace.get()
    try:
        try:
            current_trace.set(trace)
            return f(*args, **kwargs)
        finally:
            current_trace.set(before)
    finally:  # an interrupt may have hit the line above
        current_trace.set(before)


def leaving_no_tracer(enter: F) -> F:
    """`enter`, which runs a user's function at a new level.

    The check for leaks verifies that no tracer of the level outlives the call.
    """
    return base_trace.wrap("enter", enter)


def as_method(fun: Callable) -> Callable:
    """The `__call__` method of an object, which takes one frame less of Python's stack."""
    call = type(fun).__call__
    return types.MethodType(call, fun) if isinstance(call, types.FunctionType) else fun


def check_not_leaked(trace: Trace, x: Tracer) -> None:
    """Refuse a tracer whose transformation has ended."""
    if not trace.is_open(x.level):
        raise x._leak_error()


def concrete_or_error(x: Any, context: str = "") -> np.ndarray | None:
    """The NumPy array of `x`.

    Raises:
      ConcretizationTypeError: when `x` is a tracer that is not concrete.
    """
    if isinstance(x, Array):
        known = x._concrete()
        if known is None:
            raise errors.ConcretizationTypeError(x, context)
        return known._buffer
    return np.asarray(x)


def is_concrete(x: Any) -> bool:
    return not isinstance(x, Tracer) or x._concrete() is not None
