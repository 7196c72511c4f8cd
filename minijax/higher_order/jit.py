"""`jit`: trace once per type of arguments, compile, and call the compiled code ever after.

Stands on `compiled`, `dispatch`, `stage`.  Chapter 08, *jit*.
In JAX: `jax/_src/pjit.py`, `jax/_src/api.py`.
"""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any


from minijax import caches, config, core, source_info, tree_util
from minijax.core import Array, ShapedArray
from minijax.higher_order.compiled import backend, called, jit_p, timed
from minijax.higher_order.arguments import (Named, SameObject, StaticValue, donated_leaves,
                                            named_arguments, usable, without_static)
from minijax.higher_order.dispatch import Dispatcher, Miss, is_plain
from minijax.higher_order.stages import Lowered, ShapeDtypeStruct, Traced
from minijax.jaxpr import eval_jaxpr
from minijax.stage import FlatFunction, abstractify, hoist_tracers, stage
from minijax.tracebacks import api_boundary, hide_internal_frames


# ── Tracing and its cache ────────────────────────────────────────────────────────────────────

# What was traced, by function; an entry goes when its function does.  Two `jit`s of one function
# share their traces.  Nothing in an entry refers to the function.
_traces: weakref.WeakKeyDictionary[Any, dict[tuple, Traced]] = weakref.WeakKeyDictionary()
caches.cleared_by(_traces.clear)


def clear_caches() -> None:
    """Forget everything that was traced and compiled in this process."""
    caches.clear_all()


# ── The function users hold ──────────────────────────────────────────────────────────────────

class JitFunction:
    """What `jit` returns: call it, or look at its stages with `trace` and `lower`."""

    def __init__(self, fun: Callable, static: Named, donated: Named, inline: bool):
        functools.update_wrapper(self, fun)
        self._fun, self._static, self._donated, self._inline = fun, static, donated, inline
        self._has_static = any(static)
        self._name = source_info.function_name(fun)
        # a bound method is made anew at each access: it counts by its function and its object
        is_method = inspect.ismethod(fun)
        self._owner = fun.__func__ if is_method else fun  # type: ignore[attr-defined]
        self._part: tuple = (
            (SameObject(fun.__self__),) if is_method else ())  # type: ignore[attr-defined]
        if any(donated):
            self._part += (donated,)
        self._dispatcher = Dispatcher()
        self.__wrapped__ = fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if core.current_trace.get() is core.base_trace:
                known = self._dispatcher
                if known.stamp is config.stamp():
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
            return traced.on_arrays(leaves)
        program = traced.program
        if self._inline:
            return eval_jaxpr(program.jaxpr, program.consts, *traced.captured, *leaves)
        return jit_p.bind(*traced.captured, *leaves, jaxpr=program, name=traced.fun_name)

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
                or not core.base_trace.goes_straight or not is_plain(in_tree)):
            return
        known, stamp = self._dispatcher, config.stamp()
        if known.stamp is not stamp:
            known = Dispatcher(stamp)
            _holders.add(self)
        known.add(in_tree, tuple(x.aval for x in leaves), traced.run, traced.out_tree,
                  traced.program.out_avals)
        self._dispatcher = known

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @api_boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The function's program for arguments of these types."""
        return self._traced(args, kwargs)[0]

    @api_boundary
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
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
        self._dispatcher = Dispatcher()
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
        return JitFunction, (self._fun, self._static, self._donated, self._inline)

    def __repr__(self) -> str:
        return f"<jitted {self._fun!r}>"

    def _traced(self, args: tuple, kwargs: dict) -> tuple[Traced, list[Array]]:
        """The trace for these arguments, and the arguments' leaves as arrays."""
        static: tuple = ()
        fun = self._fun
        donated = (donated_leaves(self._donated, self._static, args, kwargs)
                   if any(self._donated) else ())
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
            with timed(f"tracing {self._name} for jit"):
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
        return Traced(recorded, closed, captured, self._name, flat.out_tree, info,
                      usable(closed, donated) if donated and not captured else ())

    def _as_value(self, x: Any, place: int, args: tuple, kwargs: dict) -> Array:
        if isinstance(x, ShapeDtypeStruct):
            return x  # type: ignore[return-value]  # enough for `trace` and `lower`
        if not core.is_array_like(x):  # only a refusal needs names, which cost a walk of the tree
            names = source_info.describe(self._fun, args, kwargs, "jit").arg_names
            abstractify(x, self._fun, names[place] if place < len(names) else None)
        return core.as_value(x)

    def _without_static(self, args: tuple, kwargs: dict) -> tuple:
        """The function with its static arguments filled in, their key, and the arguments left."""
        places = self._static.places(len(args))
        named = {k: kwargs[k] for k in self._static.names if k in kwargs}
        key = (tuple((i, StaticValue(args[i])) for i in sorted(places)),
               tuple((k, StaticValue(named[k])) for k in sorted(named)))
        fun, dynamic = without_static(self._fun, args, places, named)
        return fun, key, dynamic, {k: v for k, v in kwargs.items() if k not in named}


_holders = caches.Holders(JitFunction._forget)



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
    static = named_arguments(fun, static_argnums, static_argnames, "static")
    donated = named_arguments(fun, donate_argnums, donate_argnames, "donate")
    if both := set(static.names) & set(donated.names):
        raise ValueError("static_argnames and donate_argnames cannot intersect. Argument names "
                         f"{both} appear in both static_argnames and donate_argnames")
    return JitFunction(fun, static, donated, inline)
