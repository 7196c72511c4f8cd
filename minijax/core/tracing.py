"""Staging: run a Python function on tracers and record its operations as a jaxpr.

Builds on `core` and `jaxpr`.  Chapter 06, *Programs as data*.
In JAX: `jax/_src/interpreters/partial_eval.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minijax import config, core, tree_util
from minijax.util import lazily, source_info
from minijax.core import Array, Avals, Level, Primitive, ShapedArray, Trace, Tracer
from minijax.core.jaxpr import (Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, check_jaxpr,
                                effects_of, make_eqn, partition_list)
from minijax.util.source_info import DebugInfo

_origin = lazily.later("minijax.util.origins", "origin_of")


class DynamicJaxprTracer(Tracer):
    """A variable of the program: a value with a known type only."""

    __slots__ = ("_trace", "_var")

    def __init__(self, trace: DynamicJaxprTrace, var: Var,
                 frames: tuple[source_info.SourceInfo, ...]):
        self.level, self.aval, self.frames = trace.level, var.aval, frames
        self._trace, self._var = trace, var

    def _origin_msg(self) -> str:
        message = super()._origin_msg()
        return message and message + _origin(self._var, self._trace)


class DynamicJaxprTrace(Trace):
    """Records every primitive as an equation."""

    level: Level
    parent: Trace

    def __init__(self, parent: Trace, debug_info: DebugInfo | None):
        super().__init__(Level(parent, debug_info), parent)
        self.invars: list[Var] = []
        self.eqns: list[JaxprEqn] = []
        self.constants: dict[int, tuple[Var, Array]] = {}
        # the memo of `source_info.user_frames`, which holds what the check for leaks would find
        self.frames: list[Any] | None = None if self.level.is_watched else []

    def new_arg(self, aval: ShapedArray) -> DynamicJaxprTracer:
        var = Var(aval)
        self.invars.append(var)
        return DynamicJaxprTracer(self, var, core.user_frames_for_errors(self.frames))

    def atom(self, x: Array) -> Atom:
        """The atom of `x` in the program: its variable, a literal, or a new constant."""
        if isinstance(x, DynamicJaxprTracer) and x.level is self.level:
            return x._var
        if core.is_literal(x, self.level):
            value = x._buffer.item() if x.weak_type or x.dtype == bool else x._buffer[()]
            return Literal(value, x.aval)
        if id(x) not in self.constants:
            if isinstance(x, Tracer):
                core.check_not_leaked(self, x)
            self.constants[id(x)] = (Var(x.aval), x)
        return self.constants[id(x)][0]

    def process_primitive(self, primitive: Primitive, args: Sequence[Array],
                          params: dict[str, Any]) -> list:
        primitive, args, params = primitive.staged(args, params)
        out_avals = primitive.type_of([x.aval for x in args], params)
        return self.record(primitive, args, params, out_avals)

    def record(self, primitive: Primitive, args: Sequence[Array], params: dict[str, Any],
               out_avals: Sequence[ShapedArray]) -> list[DynamicJaxprTracer]:
        outvars = [Var(aval) for aval in out_avals]
        frames = core.user_frames_for_errors(self.frames)  # once for all outputs
        source = frames[-1] if frames else source_info.user_frame()
        self.eqns.append(make_eqn([*map(self.atom, args)], outvars, primitive, params, source))
        return [DynamicJaxprTracer(self, v, frames) for v in outvars]

    def program(self, outs: Sequence[Array]) -> ClosedJaxpr:
        """The recorded program, with these outputs."""
        outvars = [self.atom(x) for x in outs]
        self.frames = None
        pairs = list(self.constants.values())
        jaxpr = Jaxpr([v for v, _ in pairs], self.invars, outvars, self.eqns,
                      effects_of(self.eqns), self.level.debug_info)
        if config.enable_checks.value:
            check_jaxpr(jaxpr)
        return ClosedJaxpr(jaxpr, tuple(x for _, x in pairs))


def stage(fun: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray],
          debug_info: DebugInfo | None = None) -> ClosedJaxpr:
    """The program of a function of flat arguments.

    Args:
      fun: takes one array for each type, and returns a list of arrays.
      in_avals: the types of its arguments.
      debug_info: the names for errors.

    Returns:
      The program; its constants are what `fun` closed over, tracers of enclosing
      transformations included.

    >>> from minijax import core, lax
    >>> stage(lambda x: [lax.sin(x)], [core.typeof(1.0)])
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """
    return recorder()(fun, in_avals, debug_info)


def recorder() -> Callable[..., ClosedJaxpr]:
    """`stage` as a function, wrapped in the hooks of the checks.

    `jit` and loops call it directly, which saves a frame where functions nest deeply.
    """
    return core.base_trace.wrap("enter", core.base_trace.wrap("stage", _recorded))


def _recorded(fun: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray],
              debug_info: DebugInfo | None) -> ClosedJaxpr:
    before = core.current_trace.get()
    trace = DynamicJaxprTrace(before, debug_info)
    trace.staging_level = trace.level
    # inlined `run_flat`, to save a frame in deep nesting
    try:
        try:
            core.current_trace.set(trace)
            f, args, kwargs, outputs = unflattened_call(fun, [*map(trace.new_arg, in_avals)])
            outs = outputs(f(*args, **kwargs))
        finally:
            core.current_trace.set(before)
    finally:
        core.current_trace.set(before)
    return trace.program(outs)


def run_flat(trace: Trace, fun: Callable[..., Any], leaves: Sequence[Any]) -> list[Array]:
    """The outputs of a function of flat arguments under a trace; see `core.run_with`."""
    before = core.current_trace.get()
    try:
        try:
            core.current_trace.set(trace)
            f, args, kwargs, outputs = unflattened_call(fun, leaves)
            return outputs(f(*args, **kwargs))
        finally:
            core.current_trace.set(before)
    finally:
        core.current_trace.set(before)


def unflattened_call(fun: Callable[..., Any], leaves: Sequence[Any]
                     ) -> tuple[Callable, Sequence[Any], dict[str, Any],
                                Callable[[Any], list[Array]]]:
    """The parts of a call of a flat function, for a call without an extra frame.

    Returns:
      The user's function, its arguments, its keyword arguments, the flattener of its result.
    """
    if isinstance(fun, FlatFunction):
        args, kwargs = tree_util.tree_unflatten(fun.in_tree, leaves)
        return core.as_method(fun.fun), args, kwargs, fun.outputs
    return core.as_method(fun), leaves, {}, lambda outs: list(map(core.as_value, outs))


def stage_with_aux(fun: Callable[..., tuple[Sequence[Any], Any]], in_avals: Avals,
                   debug_info: DebugInfo | None) -> tuple[ClosedJaxpr, Any]:
    """`stage` of a function that returns (outputs, aux); returns the program and aux."""
    all_aux: list[Any] = []

    def outputs(*args: Array) -> Sequence[Any]:
        outs, aux = fun(*args)
        all_aux.append(aux)
        return outs
    return stage(outputs, in_avals, debug_info), all_aux[-1]


def convert_constvars(closed: ClosedJaxpr, moves: Callable[[Any], bool] = lambda c: True
                      ) -> tuple[ClosedJaxpr, tuple[Any, ...]]:
    """The program with the constants chosen by `moves` as leading inputs, and their values.

    Loops and branches take bodies whose constants are all inputs.
    """
    flags = [moves(c) for c in closed.consts]
    if not any(flags):
        return closed, ()
    kept_vars, moved_vars = partition_list(closed.jaxpr.constvars, flags)
    kept, moved = partition_list(closed.consts, flags)
    jaxpr = closed.jaxpr.replace(constvars=kept_vars, invars=(*moved_vars, *closed.jaxpr.invars))
    return ClosedJaxpr(jaxpr, tuple(kept)), tuple(moved)


def convert_tracers(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, tuple[Any, ...]]:
    """The program with what it captured as leading inputs, so that it is pure data."""
    return convert_constvars(closed, is_captured)


def is_captured(x: Any) -> bool:
    """Whether a constant belongs to an enclosing trace: a tracer, or a literal of its program."""
    return core.level_of(x) is not None


def is_tracer(x: Any) -> bool:
    return isinstance(x, Tracer)


class FlatFunction:
    """A function of trees as a function of their leaves; keeps the tree of its last result.

    With `has_aux` the function returns (result, aux), and its aux is kept, too.
    """

    out_tree: tree_util.PyTreeDef
    plain: dict[int, Any]  # results that are no arrays, by position

    def __init__(self, fun: Callable, in_tree: tree_util.PyTreeDef,
                 debug_info: DebugInfo | None = None, has_aux: bool = False):
        self.fun, self.in_tree, self.debug_info = fun, in_tree, debug_info
        self.has_aux = has_aux

    def staged(self, in_avals: Sequence[ShapedArray]) -> ClosedJaxpr:
        """The program of the function for leaves of these types."""
        return stage(self, in_avals, self.debug_info)

    def __call__(self, *leaves: Any) -> list[Array]:
        f, args, kwargs, outputs = unflattened_call(self, leaves)
        return outputs(f(*args, **kwargs))

    def outputs(self, result: Any) -> list[Array]:
        """The flat results of the function; its aux is kept."""
        leaves, self.out_tree = tree_util.tree_flatten(
            self._keeping_aux(result) if self.has_aux else result)
        self.plain = {i: x for i, x in enumerate(leaves) if not isinstance(x, Array)}
        return [self._checked(i, leaf) for i, leaf in enumerate(leaves)]

    def _keeping_aux(self, pair: Any) -> Any:
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise TypeError("expected function with aux output to return a two-element tuple, "
                            f"but got type {type(pair)} with value {pair!r}")
        result, aux = pair
        # without the wrapping of the transformation that runs the function
        trace = core.current_trace.get()
        leaves, self._aux_tree = tree_util.tree_flatten(aux)
        self._aux_leaves = [x.primal if trace.owns(x) else x for x in leaves]
        return result

    def _checked(self, place: int, leaf: Any) -> Array:
        if (info := self.debug_info) is None:
            return check_arg(leaf)
        if core.is_ref(leaf):
            raise leaf.error_of_returning(info, self._at("tree path result", place))
        return core.as_value_or_raise(leaf, lambda: (
            f"function {info.func_src_info} traced for {info.traced_for} returned a value of type "
            f"{type(leaf)}{self._at('component ', place)}, which is not a valid JAX type"))

    def _at(self, what: str, place: int) -> str:
        """Where a leaf is in the result of the user's function; empty if it is the result."""
        path = source_info.result_paths(self.out_tree, source_info.path_name)[place]
        path = path.removeprefix("[0]") if getattr(self.fun, "gives_more", False) else path
        return f" at output {what}{path}" if path else ""

    def result(self, outs: Iterable[Any]) -> Any:
        """The tree of these leaves, in the structure of the function's result."""
        return tree_util.tree_unflatten(self.out_tree, outs)

    def with_aux(self, *results: Any) -> tuple:
        """The public results: the aux last, if there is one."""
        if not self.has_aux:
            return results
        return *results, tree_util.tree_unflatten(self._aux_tree, self._aux_leaves)


def check_arg(x: Any, stop: str = "") -> Array:
    """`x` as an array; the error for any other value ends with `stop`."""
    def refusal() -> str:
        if isinstance(x, np.ndarray) and not stop:
            return (f"Dtype {x.dtype} is not a valid JAX array type. Only arrays of numeric types "
                    "are supported by JAX.")
        return f"Argument '{x}' of type {type(x)} is not a valid JAX type{stop}"
    return core.as_value_or_raise(x, refusal)
