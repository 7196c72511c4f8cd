"""`jit`: trace once per type of arguments, compile, and call the compiled code ever after.

Stands on `compiled`, `dispatch`, `stage`.  Chapter 08, *jit*.
In JAX: `jax/_src/pjit.py`, `jax/_src/api.py`.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax import caches, config, core, errors, source_info, tree_util
from minijax.core import Array, ArrayImpl, Params, ShapedArray
from minijax.higher_order.compiled import backend, called, executable, jit_p, timed
from minijax.higher_order.dispatch import Dispatcher, Miss
from minijax.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.lazily import cached_property
from minijax.source_info import DebugInfo
from minijax.stage import FlatFunction, abstractify, hoist_tracers, stage
from minijax.tracebacks import api_boundary, hide_internal_frames


# ── Tracing and its cache ────────────────────────────────────────────────────────────────────

@dataclass(frozen=True, eq=False)
class Traced:
    """A function traced for one type of arguments."""

    recorded: ClosedJaxpr  # as it was written down, with what the function closed over as constants
    jaxpr: ClosedJaxpr  # the same as pure data: constants that are tracers are leading inputs
    captured: tuple[Any, ...]  # those tracers, which belong to enclosing transformations
    params: Params
    out_tree: tree_util.PyTreeDef
    debug_info: DebugInfo
    donated: tuple[int, ...] = ()  # places of the leaves that a call uses up

    def is_current(self) -> bool:
        """Whether what the function closed over is still being traced."""
        trace = core.current_trace.get()
        return all(trace.is_open(x.level) for x in self.captured)

    @cached_property
    def run(self) -> Callable[..., list[np.ndarray]]:
        return executable(self.jaxpr, self.params["name"])


# What was traced, by function; an entry goes when its function does.  Two `jit`s of one function
# share their traces.  Nothing in an entry refers to the function.
_traces: weakref.WeakKeyDictionary[Any, dict[tuple, Traced]] = weakref.WeakKeyDictionary()
caches.cleared_by(_traces.clear)


class SameObject:
    """Part of a key: this very object, whatever it says of equality; not kept alive."""

    __slots__ = ("digest", "ref")

    def __init__(self, obj: Any):
        self.digest = id(obj)
        try:
            self.ref: Callable[[], Any] = weakref.ref(obj)
        except TypeError:
            self.ref = lambda: obj  # it cannot be referred to weakly

    def __hash__(self) -> int:
        return self.digest

    def __eq__(self, other: object) -> bool:
        mine = self.ref()
        return isinstance(other, SameObject) and mine is not None and mine is other.ref()


# Dispatchers of another generation are stale; replaced as a whole, so there is nothing to lock.
_generation: list[object] = [object()]


def clear_caches() -> None:
    """Forget everything that was traced and compiled in this process."""
    _generation[0] = object()
    caches.clear_all()


class StaticValue:
    """A static argument: equal values of equal type share a trace."""

    __slots__ = ("digest", "value")

    def __init__(self, value: Any):
        self.value = value
        try:
            self.digest = hash((type(value), value))
        except TypeError as error:
            raise ValueError(
                "Non-hashable static arguments are not supported. An error occurred while trying "
                f"to hash an object of type {type(value)}, {value}. The error was:\n"
                f"TypeError: {error}\n") from error

    def __hash__(self) -> int:
        return self.digest

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, StaticValue) and type(self.value) is type(other.value)
                and self.value == other.value)


# ── The function users hold ──────────────────────────────────────────────────────────────────

def _miss(args: tuple, kwargs: dict) -> Any:
    raise Miss


class Dispatchers:
    """A function's dispatchers by the tree of arguments, for one setting of the flags."""

    def __init__(self, stamp: object = None, generation: object = None):
        self.stamp, self.generation = stamp, generation
        self.by_tree: dict[Any, Dispatcher] = {}
        self.last: Callable = _miss


class JitFunction:
    """What `jit` returns: call it, or look at its stages with `trace` and `lower`."""

    def __init__(self, fun: Callable, static_argnums: Sequence[int],
                 static_argnames: Sequence[str], inline: bool,
                 donated: tuple[Sequence[int], Sequence[str]] = ((), ())):
        functools.update_wrapper(self, fun)
        self._donated = donated
        self._fun = fun
        self._static_argnums, self._static_argnames = static_argnums, static_argnames
        self._has_static = bool(static_argnums or static_argnames)
        self._params = {"name": source_info.function_name(fun)}
        self._inline = inline
        # a bound method is made anew at each access: it counts by its function and its object
        is_method = inspect.ismethod(fun)
        self._owner = fun.__func__ if is_method else fun  # type: ignore[attr-defined]
        self._part: tuple = (
            (SameObject(fun.__self__),) if is_method else ())  # type: ignore[attr-defined]
        if any(donated):
            self._part += (donated,)
        self._dispatchers = Dispatchers()
        self.__wrapped__ = fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if core.current_trace.get() is core.base_trace:
                known = self._dispatchers
                if known.stamp is config.stamp() and known.generation is _generation[0]:
                    try:
                        return known.last(args, kwargs)
                    except Miss:
                        pass
            return self._call_anew(args, kwargs)
        except Exception as error:
            hide_internal_frames(error)
            raise

    def _call_anew(self, args: tuple, kwargs: dict) -> Any:
        if config.disable_jit.value:
            return self._fun(*args, **kwargs)
        traced, leaves = self._traced(args, kwargs)
        outs = called(lambda: self._run(traced, leaves),
                      lambda: self._run_python(args, kwargs, leaves), "jax.jit")
        if core.current_trace.get() is core.base_trace:
            self._remember(args, kwargs, traced, leaves)
            for i in traced.donated:
                if not leaves[i].is_literal:  # which are shared
                    core.give_away(leaves[i])
        return tree_util.tree_unflatten(traced.out_tree, outs)

    def _run(self, traced: Traced, leaves: Sequence[Array]) -> Sequence[Any]:
        """The traced program on the leaves of the arguments."""
        if core.current_trace.get() is core.base_trace:
            return _run_on_arrays(traced, leaves)
        if self._inline:
            return eval_jaxpr(traced.jaxpr.jaxpr, traced.jaxpr.consts, *traced.captured, *leaves)
        return jit_p.bind(*traced.captured, *leaves, jaxpr=traced.jaxpr, **traced.params)

    def _run_python(self, args: tuple, kwargs: dict, leaves: Sequence[Array]) -> Any:
        """The function itself, on the arrays that it was traced for."""
        fun = self._fun
        if self._has_static:
            fun, _, args, kwargs = self._without_static(args, kwargs)
        args, kwargs = tree_util.tree_unflatten(tree_util.tree_structure((args, kwargs)), leaves)
        return fun(*args, **kwargs)

    def _remember(self, args: tuple, kwargs: dict, traced: Traced, leaves: Sequence[Array]
                  ) -> None:
        """Write a dispatcher for arguments like these, unless there is one already."""
        in_tree = tree_util.tree_structure((args, kwargs))
        if (self._has_static or traced.captured or traced.donated
                or not core.base_trace.goes_straight or not Dispatcher.can_take(in_tree)):
            return
        known, stamp = self._dispatchers, config.stamp()
        if known.stamp is not stamp or known.generation is not _generation[0]:
            known = Dispatchers(stamp, _generation[0])
            _holders.add(self)
        dispatcher = known.by_tree.get(in_tree) or Dispatcher(in_tree)
        dispatcher.add(tuple(x.aval for x in leaves), traced.run, traced.out_tree,
                       traced.jaxpr.out_avals)
        known.by_tree[in_tree] = dispatcher
        known.last = dispatcher.call
        self._dispatchers = known

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @api_boundary
    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """The function's program for arguments of these types."""
        from minijax.higher_order.stages import TracedStage
        return TracedStage(self._traced(args, kwargs)[0])

    @api_boundary
    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """The stages from program to loops; ``.compile()`` goes on to machine code."""
        return self.trace(*args, **kwargs).lower()

    @api_boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The types of the outputs, computing nothing."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        self._table().clear()
        self._forget()

    def _forget(self) -> None:
        """Let go of what is found by this object alone."""
        self._dispatchers = Dispatchers()
        self.__dict__.pop("_own_traces", None)

    def _cache_size(self) -> int:
        return len(self._table())

    def _table(self) -> dict[tuple, Traced]:
        """The traces of the function; its own where the function cannot be a weak key."""
        try:
            return _traces.setdefault(self._owner, {})
        except TypeError:
            _holders.add(self)
            return self.__dict__.setdefault("_own_traces", {})

    def __reduce__(self) -> str | tuple:
        """Pickled by its name, where a module or class has it under its name, as functions are;
        otherwise, and copied, as `jit` of its function.
        """
        found: Any = sys.modules.get(getattr(self, "__module__", ""))
        name = getattr(self, "__qualname__", "<none>")
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is self:
            return name
        return JitFunction, (self._fun, self._static_argnums, self._static_argnames, self._inline,
                             self._donated)

    def __repr__(self) -> str:
        return f"<jitted {self._fun!r}>"

    def _traced(self, args: tuple, kwargs: dict) -> tuple[Traced, list[Array]]:
        """The trace for these arguments, and the arguments' leaves as arrays."""
        static: tuple = ()
        fun = self._fun
        donated = self._donated_leaves(args, kwargs) if any(self._donated) else ()
        if self._has_static:
            fun, static, args, kwargs = self._without_static(args, kwargs)
        leaves, in_tree = tree_util.tree_flatten((args, kwargs))
        values = [x if isinstance(x, Array) else self._as_value(x, i, args, kwargs)
                  for i, x in enumerate(leaves)]
        axes = core.current_trace.get().axes
        key = (*self._part, in_tree, *[x.aval for x in values], static, config.trace_key(),
               tuple((a.size, a.name) for a in axes), backend())
        trace = functools.partial(self._trace, fun, args, kwargs, in_tree,
                                  [x.aval for x in values], donated)
        table = self._table()
        found = table.get(key)
        if found is None or not found.is_current():
            core.base_trace.note("miss", self._fun, self._part, args, kwargs, key, table)
            with timed(f"tracing {self._params['name']} for jit"):
                found = trace()
            # what is kept holds the tracers of transformations around, which a check would find
            if not (found.captured and config.check_tracer_leaks.value):
                table[key] = found
        core.base_trace.note("lookup", found, fun, trace)
        return found, values

    def _trace(self, fun: Callable, args: tuple, kwargs: dict, in_tree: Any,
               avals: list[ShapedArray], donated: Sequence[int] = ()) -> Traced:
        info = source_info.describe(fun, args, kwargs, "jit")
        flat = FlatFunction(fun, in_tree, info)
        recorded = stage(flat, avals, info)
        closed, captured = hoist_tracers(recorded)
        assert flat.out_tree is not None
        return Traced(recorded, closed, captured, self._params, flat.out_tree, info,
                      _usable(closed, donated) if donated and not captured else ())

    def _as_value(self, x: Any, place: int, args: tuple, kwargs: dict) -> Array:
        if isinstance(x, ShapeDtypeStruct):
            return x  # type: ignore[return-value]  # enough for `trace` and `lower`
        if not core.is_array_like(x):  # only a refusal needs names, which cost a walk of the tree
            names = source_info.describe(self._fun, args, kwargs, "jit").arg_names
            abstractify(x, self._fun, names[place] if place < len(names) else None)
        return core.as_value(x)

    def _donated_leaves(self, args: tuple, kwargs: dict) -> tuple[int, ...]:
        """The places, among the leaves that are arrays, of those of donated arguments."""
        numbers, names = self._donated
        static = {i % len(args) for i in self._static_argnums if -len(args) <= i < len(args)}
        flags: list[bool] = []
        for i, x in enumerate(args):
            if i not in static:
                flags += [i in numbers] * len(tree_util.tree_leaves(x))
        for name in sorted(kwargs):
            if name not in self._static_argnames:
                flags += [name in names] * len(tree_util.tree_leaves(kwargs[name]))
        return tuple(i for i, flag in enumerate(flags) if flag)

    def _without_static(self, args: tuple, kwargs: dict) -> tuple:
        """The function with its static arguments filled in, and the arguments left."""
        count = len(args)
        nums = {i % count if i < 0 else i for i in self._static_argnums if -count <= i < count}
        names = [k for k in self._static_argnames if k in kwargs]
        static = (tuple((i, StaticValue(args[i])) for i in sorted(nums)),
                  tuple((k, StaticValue(kwargs[k])) for k in sorted(names)))
        fun = FilledFunction(self._fun, args, nums, {k: kwargs[k] for k in names})
        return (fun, static, tuple(x for i, x in enumerate(args) if i not in nums),
                {k: v for k, v in kwargs.items() if k not in names})


# ── Donated arguments ────────────────────────────────────────────────────────────────────────

# JAX: the buffer becomes that of a result. Here it is let go, and the allocator hands it out again.

def _usable(closed: ClosedJaxpr, donated: Sequence[int]) -> tuple[int, ...]:
    """The donated leaves that have a result of their size; warns of others that are used."""
    invars = closed.jaxpr.invars
    used = {v for eqn in closed.jaxpr.eqns for v in eqn.invars} | {*closed.jaxpr.outvars}
    sizes = [_bytes(aval) for aval in closed.out_avals]
    found, left = [], []
    for i in donated:
        if invars[i] in used and (size := _bytes(invars[i].aval)) in sizes:
            sizes.remove(size)
            found.append(i)
        elif invars[i] in used:
            left.append(invars[i].aval.str_long())
    if left:
        errors.warn(f"Some donated buffers were not usable: {', '.join(left)}.\nSee an "
                    "explanation at https://docs.jax.dev/en/latest/faq.html#buffer-donation.",
                    UserWarning)
    return tuple(found)


def _bytes(aval: ShapedArray) -> int:
    physical = core.physical_aval(aval)
    return physical.size * physical.dtype.itemsize


class FilledFunction:
    """A function of its dynamic arguments, the static ones in their places."""

    def __init__(self, fun: Callable, args: tuple, static: Collection[int], kwargs: dict):
        functools.update_wrapper(self, fun)
        self.fun, self.args, self.static, self.kwargs = fun, args, static, kwargs

    @property
    def __signature__(self) -> inspect.Signature:
        """Without the static parameters: errors name the dynamic ones in their places."""
        whole = inspect.signature(self.fun)
        return whole.replace(parameters=[
            p for i, p in enumerate(whole.parameters.values())
            if i not in self.static and p.name not in self.kwargs])

    def __call__(self, *dynamic: Any, **kwargs: Any) -> Any:
        rest = iter(dynamic)
        args = [x if i in self.static else next(rest) for i, x in enumerate(self.args)]
        return self.fun(*args, **self.kwargs, **kwargs)


_holders = caches.Holders(JitFunction._forget)


def _run_on_arrays(traced: Traced, leaves: Sequence[Any]) -> list[ArrayImpl]:
    """The compiled program on concrete arrays; the shortest way through."""
    for x in leaves:
        if type(x) is not ArrayImpl:
            refuse_abstract(x)
    if not core.base_trace.goes_straight:
        return jit_p.bind(*leaves, jaxpr=traced.jaxpr, **traced.params)
    outs = traced.run(*[x._buffer for x in leaves])
    return [ArrayImpl(out, aval) for out, aval in zip(outs, traced.jaxpr.out_avals, strict=True)]


def refuse_abstract(x: Any) -> None:
    """Raise for an argument that has a type but no numbers."""
    if isinstance(x, core.Tracer):
        raise errors.UnexpectedTracerError(x.leak_message())
    raise TypeError(f"{x!r} has no values to compute with; it can only be traced and lowered.")


class ShapeDtypeStruct:
    """The shape and dtype of an array that need not exist: an argument for `lower`.

    >>> ShapeDtypeStruct((2, 3), np.float32)
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("aval",)

    def __init__(self, shape: Sequence[int], dtype: Any, *, weak_type: bool = False):
        self.aval = ShapedArray(tuple(shape), dtype, weak_type)

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


def jit(fun: Callable | None = None, *, static_argnums: int | Iterable[int] | None = None,
        static_argnames: str | Iterable[str] | None = None,
        donate_argnums: int | Iterable[int] | None = None,
        donate_argnames: str | Iterable[str] | None = None, keep_unused: bool = False,
        device: Any = None, backend: str | None = None, inline: bool = False) -> Any:
    """Compile a function: trace it once for each type of arguments, then run machine code.

    Args:
      fun: a pure function of arrays and trees of arrays.
      static_argnums: positions of arguments that are not arrays; each value is traced anew.
      static_argnames: the same by name.
      donate_argnums: positions of arguments that a call uses up: where a result has the size of
        such an array, its memory is given back, and reading it raises.
      donate_argnames: the same by name.
      keep_unused: accepted for JAX's sake; unused arguments cost nothing here.
      device: accepted for JAX's sake; there is one device.
      backend: accepted for JAX's sake; `config.platforms` chooses the backend.
      inline: leave no ``jit`` equation behind when called while tracing.

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
    if fun is None:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames,
            donate_argnums=donate_argnums, donate_argnames=donate_argnames,
            keep_unused=keep_unused, device=device, backend=backend, inline=inline)
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"Expected a function, got a generator function: {fun}")
    nums, names = _named_arguments(fun, static_argnums, static_argnames, "static")
    donated = _named_arguments(fun, donate_argnums, donate_argnames, "donate")
    if both := set(names) & set(donated[1]):
        raise ValueError("static_argnames and donate_argnames cannot intersect. Argument names "
                         f"{both} appear in both static_argnames and donate_argnames")
    return JitFunction(fun, nums, names, inline, donated)


def as_tuple(x: Any, kind: type) -> tuple:
    return () if x is None else (x,) if isinstance(x, kind) else tuple(x)


def _named_arguments(fun: Callable, argnums: Any, argnames: Any, what: str
                     ) -> tuple[tuple, tuple]:
    """Positions and names that are static (or donated); each implies the other by the signature.

    Raises:
      ValueError: for a position or name that the function does not have.
    """
    nums, names = as_tuple(argnums, int), as_tuple(argnames, str)
    nums = tuple(map(operator.index, nums))
    if not nums and not names:
        return (), ()
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return nums, names
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    kinds = {p.kind for p in parameters}
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        for n in nums:
            if not -len(named) <= n < len(named):
                raise ValueError(f"Jitted function has {what}_argnums={nums}, but only "
                                 f"accepts {len(named)} positional arguments.")
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        known = {p.name for p in parameters}
        if wrong := [n for n in names if n not in known]:
            raise ValueError(f"Jitted function has invalid argnames {set(wrong)} in "
                             f"{what}_argnames. Function does not take these args.")
    by_name = tuple(named.index(n) for n in names if n in named)
    by_number = tuple(named[n] for n in nums if -len(named) <= n < len(named))
    return tuple(dict.fromkeys(nums + by_name)), tuple(dict.fromkeys(names + by_number))
