"""`jit`: trace once for each type of arguments, compile, and call the compiled code from then on.

Builds on `compiled`, `dispatch`, `tracing`.  Chapter 08, *jit*.
In JAX: `jax/_src/pjit.py`, `jax/_src/api.py`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from minijax.util import caches, lazily, source_info
from minijax import config, core, tree_util
from minijax.core import Array, ArrayImpl
from minijax.transforms.compiled import called, device_for, jit_p, run_on_arrays, timed
from minijax.transforms.stages import Arguments, Lowered, ShapeDtypeStruct, Traced
from minijax.transforms.arguments import (
    UNSPECIFIED, Named, NotCarriedError, check_compiler_options, check_donated_once, check_function,
    check_not_deleted, donated_leaves, looks_like, named_arguments, static_value, usable,
    without_static)
from minijax.placement.devices import Device, device_of, put
from minijax.transforms.dispatch import Dispatcher, Miss, is_plain, rebuilder
from minijax.core.tracing import FlatFunction, convert_tracers, recorder
from minijax.util.tracebacks import api_boundary, hide_internal_frames, name_of


# ── Tracing and its cache ────────────────────────────────────────────────────────────────────

# Traces by function, in a weak dictionary: no entry may refer to its function.  Two `jit`s of one
# function share their traces.
_traces: caches.OfObjects[dict[Key, Traced]] = caches.OfObjects(lambda fun: {})


# A flag set for good leaves a state that never recurs, so the number of dispatchers is bounded.
MOST_STATES = 32


def clear_caches() -> None:
    """Clear all traces and compiled programs of this process."""
    caches.clear_all()


# ── The jitted function ──────────────────────────────────────────────────────────────────
_name_argument = lazily.later("minijax.util.overflow_errors", "name_argument")
_incomparable = lazily.later("minijax.util.tree_errors", "incomparable")


class Key(NamedTuple):
    """The key of a trace: all data on which it depends."""

    part: tuple  # the object of a jitted method, and the donated arguments
    tree: tree_util.PyTreeDef
    avals: tuple[core.ShapedArray, ...]
    static: tuple[tuple, ...]  # the position or name of each, and its value
    flags: tuple
    axes: tuple
    device: Device


class CallArguments:
    """The arguments of one call: the static ones, and the leaves of the others."""

    def __init__(self, jitted: JitFunction, args: tuple, kwargs: dict):
        static = jitted._static
        self.jitted, self.whole, self.all = jitted, jitted._fun, args
        self.places = static.places(len(args))
        self.named = {name: kwargs[name] for name in static.names if name in kwargs}
        self.args = tuple(x for i, x in enumerate(args) if i not in self.places)
        self.kwargs = {name: x for name, x in kwargs.items() if name not in self.named}
        leaves, self.in_tree = tree_util.tree_flatten((self.args, self.kwargs))
        self.leaves: list[Any] = [x if isinstance(x, Array | ShapeDtypeStruct) else
                                  self._as_value(x, i) for i, x in enumerate(leaves)]
        self.avals = [x.aval for x in self.leaves]

    def _as_value(self, x: Any, place: int) -> Any:
        def name() -> str | None:  # lazily, since it walks the tree
            return dict(enumerate(self.info.arg_names)).get(place)

        def refusal() -> str:
            path = f" at path {name()}" if name() else ""
            return (
                f"Error interpreting argument to {self.whole} as an abstract array. The "
                f"problematic value is of type {type(x)} and was passed to the function{path}.\n"
                "This typically means that a jit-wrapped function was called with a non-array "
                "argument, and this argument was not marked as static using the static_argnums or "
                "static_argnames parameters of jax.jit.")
        if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(
                x, (np.ndarray, np.generic, *core.stand_ins)) and not core.is_ref(x):
            with contextlib.suppress(TypeError):
                return ShapeDtypeStruct(x.shape, x.dtype)
        try:
            return core.as_value_or_raise(x, refusal)
        except OverflowError as error:
            _name_argument(error, name())
            raise

    @property
    def info(self) -> source_info.DebugInfo:
        return source_info.describe(self.whole, self.all, {**self.kwargs, **self.named}, "jit",
                                    self.places, self.named)

    @property
    def fun(self) -> Callable:
        """The user's function of its other arguments; needed by a trace, not by every call."""
        return self.whole if not (self.places or self.named) else without_static(
            self.whole, self.all, self.places, self.named)[0]

    @property
    def key(self) -> Key:
        static = [(i, self.all[i]) for i in sorted(self.places)] + sorted(self.named.items())
        return Key(self.jitted._part, self.in_tree, tuple(self.avals),
                   tuple((where, static_value(x)) for where, x in static), config.trace_key(),
                   core.axes_key(), device_of(self.leaves))

    def trace(self) -> Traced:
        """The program of the function for arguments like these."""
        jitted, info = self.jitted, self.info
        flat = FlatFunction(self.fun, self.in_tree, info)
        with timed("tracing {} for jit", "jaxpr_trace", jitted._name):
            recorded = recorder()(flat, self.avals, info)
        closed, captured = convert_tracers(recorded)
        donated = donated_leaves(jitted._donated, self.places, self.all, self.kwargs)
        return Traced(recorded, closed, captured, jitted._name, flat.out_tree, info,
                      Arguments(self.in_tree, donated),
                      () if captured or not donated else usable(closed, donated))

    def run_python(self) -> None:
        """Run the function itself, on arrays, and on the numbers of Python that it was passed."""
        FlatFunction(self.fun, self.in_tree)(*(
            y if isinstance(y, int | float | complex) else x for x, y in zip(
                self.leaves, tree_util.tree_leaves((self.args, self.kwargs)), strict=True)))


class JitFunction:
    """A jitted function: call it, or inspect its stages with `trace` and `lower`."""

    _dispatcher: Dispatcher  # for the flags of the last call
    _dispatchers: dict[config.State, Dispatcher]

    def __init__(self, fun: Callable, static: Named, donated: Named, inline: bool,
                 device: Device | None = None, shardings: Any = None):
        looks_like(self, fun)
        self._device, self._shardings = device, shardings
        self._fun, self._static, self._donated, self._inline = fun, static, donated, inline
        self._name = name_of(fun)
        # each access makes a new bound method, so the key has its function and its object
        is_method = inspect.ismethod(fun)
        self._owner: Any = fun.__func__ if is_method else fun  # type: ignore[attr-defined]
        self._part: tuple = (
            (caches.SameObject(fun.__self__),) if is_method else ())  # type: ignore[attr-defined]
        if any(donated):
            self._part += (donated,)
        try:
            weakref.ref(self._owner)
        except TypeError:  # it has no weak references
            self._owner = self
        self._forget()
        self._discharged: Any = None  # after the first use of references

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if core.current_trace.get() is core.base_trace:
                dispatcher, state = self._dispatcher, config.state()
                if dispatcher.state is not state:
                    dispatcher = self._dispatcher = self._dispatchers.get(state, dispatcher)
                if dispatcher.state is state:
                    try:
                        return dispatcher.last(args, kwargs)
                    except Miss:
                        with contextlib.suppress(Miss):
                            return dispatcher.other_trees(args, kwargs)
            if self._shardings is None and self._device is None:
                return self._call_here(args, kwargs)
            return self._call_there(args, kwargs)
        except Exception as error:
            hide_internal_frames(error)
            raise

    def _call_there(self, args: tuple, kwargs: dict) -> Any:
        """A call that first moves its arguments to a device, or reshards them."""
        if self._shardings is not None:
            return self._shardings.call(
                self._call_here, args, kwargs,
                lambda: CallArguments(self, args, kwargs).info.arg_names, self._static.places)
        device: Any = self._device
        args, kwargs = tree_util.tree_map(lambda x: put(x, device), (args, kwargs))
        with config.default_device(device):
            return self._call_here(args, kwargs)

    # Nested calls pass here, so each frame saved allows deeper nesting.
    def _call_here(self, args: tuple, kwargs: dict) -> Any:
        if config.disable_jit.value:
            return self._fun(*args, **kwargs)
        error = None
        uses_refs = self._discharged is not None and self._discharged.captured or any(
            map(core.is_ref, tree_util.tree_leaves((args, kwargs))))
        if not uses_refs:
            try:
                call = self._with_values(args, kwargs)
                count = len(self._table())
                traced = self._traced(call)
                return self._result(call, traced, has_run=len(self._table()) == count)
            except NotCarriedError as caught:
                error = caught
        if self._discharged is None:  # the function of the values of its references
            self._discharged = lazily.later("minijax.transforms.discharge", "DischargedJit")(self)
        return self._discharged(args, kwargs, error)

    def with_function(self, fun: Callable, shift: int = 0) -> JitFunction:
        """`jit` of another function, with `shift` more arguments before its own."""
        static, donated = (named._replace(numbers=tuple(
            n + shift if n >= 0 else n for n in named.numbers))
            for named in (self._static, self._donated))
        return JitFunction(fun, static, donated, self._inline)

    def _with_values(self, args: tuple, kwargs: dict) -> CallArguments:
        call = CallArguments(self, args, kwargs)
        for i, x in enumerate(call.leaves):
            if isinstance(x, ShapeDtypeStruct):
                call.leaves[i] = core.as_value_or_raise(x, functools.partial(
                    "{!r} has no value: functions can be traced and lowered with it".format, x))
        return call

    def _result(self, call: CallArguments, traced: Traced, has_run: bool) -> Any:
        """Run the traced program; its second call adds a dispatcher, which makes later ones faster.
        """
        if core.current_trace.get() is core.base_trace:
            if has_run:
                check_not_deleted(call.leaves, traced.program)
            if traced.donated:
                check_donated_once(call.leaves, traced.program, traced.donated, has_run)
        outs = called(lambda: self._run(traced, call.leaves), call.run_python, "jax.jit")
        if core.current_trace.get() is core.base_trace:
            if has_run:
                self._remember(call, traced)
            for i in traced.donated:
                if not call.leaves[i].is_literal:  # literals are shared
                    core.donate(call.leaves[i])
        return tree_util.tree_unflatten(traced.out_tree, outs)

    def _run(self, traced: Traced, leaves: Sequence[Array]) -> Sequence[Any]:
        """The traced program on the leaves of the arguments."""
        program = traced.program
        if core.current_trace.get() is core.base_trace:
            if not core.base_trace.call_checks and all(isinstance(x, ArrayImpl) for x in leaves):
                device = device_for(program, leaves)  # a shortcut for `bind`
                return run_on_arrays(traced.run(device), device, program, leaves)
        elif self._inline and not isinstance(core.current_trace.get(), core.EvalTrace):
            return core.eval_jaxpr(program.jaxpr, program.consts, *traced.captured, *leaves)
        return jit_p.bind(*traced.captured, *leaves, jaxpr=program, name=traced.fun_name)

    def _remember(self, call: CallArguments, traced: Traced) -> None:
        """Generate a dispatcher for such arguments, unless there is one already."""
        state, avals = config.state(), traced.program.out_avals
        if (any(self._static) or self._device or self._shardings or traced.captured
                or traced.donated or core.base_trace.call_checks or not is_plain(call.in_tree)):
            return
        device = device_for(traced.program, call.leaves)
        if device is not device_of(call.leaves):  # the program's annotations decide
            return
        dispatcher = self._dispatchers.get(state)
        if dispatcher is None:
            if len(self._dispatchers) >= MOST_STATES:
                self._forget()
            dispatcher = self._dispatchers[state] = Dispatcher(state)
            _holders.add(self)
        dispatcher.add(call.in_tree, device, call.leaves, traced.run(device), rebuilder(
            traced.out_tree, avals, device))
        self._dispatcher = dispatcher

    def _traced(self, call: CallArguments) -> Traced:
        """The trace for these arguments."""
        key, table = call.key, self._table()
        try:
            traced = table.get(key)
        except Exception as error:
            raise _incomparable([kind for _, (kind, _) in key.static], error) from error
        if traced is None or not traced.is_current():
            core.base_trace.notify("miss", call, key, table)
            traced = call.trace()
            # a cached trace has tracers of outer transformations, which the leak check would find
            if not (traced.captured and config.check_tracer_leaks.value):
                table[key] = traced
        core.base_trace.notify("lookup", traced, call)
        return traced

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @api_boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The function's program for arguments of these types."""
        traced = self._traced(CallArguments(self, args, kwargs))
        # The trace belongs to the function; another `jit` of it may have other shardings.
        return traced if self._shardings is None else replace(
            traced, arguments=traced.arguments._replace(shardings=self._shardings))

    @api_boundary
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The stages from program to loops; ``.compile()`` goes on to machine code."""
        return self.trace(*args, **kwargs).lower()

    @api_boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The types of the outputs, which are not computed."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        self._table().clear()
        self._forget()

    def _forget(self) -> None:
        """Drop cached values that only this object can reach."""
        self._dispatcher, self._dispatchers = Dispatcher(), {}

    def _cache_size(self) -> int:
        return len(self._table())

    def _table(self) -> dict[Key, Traced]:
        return _traces[self._owner]

    @functools.cached_property
    def __signature__(self) -> inspect.Signature:
        # `inspect` would unwrap nested functions twice at each level
        return inspect.signature(inspect.unwrap(
            self._fun, stop=lambda fun: "__signature__" in getattr(fun, "__dict__", ())))

    def __reduce__(self) -> str | tuple:
        """Pickled by name, as functions are, if its module or class has it under that name;
        otherwise, and for copies, as `jit` of its function.
        """
        value: Any = sys.modules.get(getattr(self, "__module__", ""))
        name = getattr(self, "__qualname__", "<none>")
        for part in name.split("."):
            value = getattr(value, part, None)
        if value is self:
            return name
        return JitFunction, (self._fun, self._static, self._donated, self._inline, self._device,
                             self._shardings)

    def __repr__(self) -> str:
        with contextlib.suppress(Exception):  # of the function's own text
            return f"<PjitFunction of {self._fun!r}>"
        return "<PjitFunction>"


# Libraries recognise jitted functions by the name of their type, which pickle needs, too.
PjitFunction = JitFunction
JitFunction.__qualname__ = JitFunction.__name__ = "PjitFunction"


_holders = caches.Holders(JitFunction._forget)


def jit(fun: Callable = UNSPECIFIED, /, *, in_shardings: Any = UNSPECIFIED,
        out_shardings: Any = UNSPECIFIED, static_argnums: int | Iterable[int] | None = None,
        static_argnames: str | Iterable[str] | None = None,
        donate_argnums: int | Iterable[int] | None = None,
        donate_argnames: str | Iterable[str] | None = None, keep_unused: bool = False,
        device: Any = None, backend: str | None = None, inline: bool = False,
        compiler_options: dict[str, Any] | None = None) -> Any:
    """Compile a function: trace it once for each type of arguments, then run machine code.

    Args:
      fun: a pure function of arrays and trees of arrays.
      static_argnums: positions of arguments that are not arrays; each value is traced anew.
      static_argnames: the same by name.
      donate_argnums: positions of arguments that a call uses up: where a result has the size of
        such an array, the array's memory is freed, and reading it raises.
      donate_argnames: the same by name.
      keep_unused: accepted for JAX's sake; unused arguments cost nothing here.
      device: the device of every call and of its arguments; None for that of the arguments.
      backend: a platform, for its first device.
      inline: whether a call while tracing leaves no ``jit`` equation.
      in_shardings: shardings of the arguments: a sharding, a spec over the mesh that was set, or a
        tree of them that is a prefix of the tuple of positional arguments.
      out_shardings: the same for the result.
      compiler_options: accepted for JAX's sake; the options of XLA's compiler, ``xla_…``, mean
        nothing here.

    Returns:
      A function of the same arguments.

    Raises:
      TypeError: on call, when an argument that is not static is no array.
      ValueError: when the function has no such argument, or one is both static and donated; on
        call, when a static argument is not hashable.

    >>> @jit
    ... def double(x):
    ...     return 2 * x
    >>> double(3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    if fun is UNSPECIFIED:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames,
            donate_argnums=donate_argnums, donate_argnames=donate_argnames,
            keep_unused=keep_unused, device=device, backend=backend, inline=inline,
            in_shardings=in_shardings, out_shardings=out_shardings,
            compiler_options=compiler_options)
    check_function(fun)
    check_compiler_options(compiler_options)
    static = named_arguments(fun, static_argnums, static_argnames, "static")
    donated = named_arguments(fun, donate_argnums, donate_argnames, "donate")
    if both := set(static.names) & set(donated.names):
        raise ValueError("static_argnames and donate_argnames cannot intersect. Argument names "
                         f"{both} appear in both static_argnames and donate_argnames")
    placement = shardings = None
    if device is not None or backend is not None:
        placement = lazily.later("minijax.placement.eager_dispatch", "named")(device or backend)
    if not (in_shardings is UNSPECIFIED and out_shardings is UNSPECIFIED):
        with lazily.importing:
            from minijax.placement.jit_shardings import JitShardings
        shardings = JitShardings.checked(in_shardings, out_shardings)
    return JitFunction(fun, static, donated, inline, placement, shardings)
