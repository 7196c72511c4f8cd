"""Functions of the user's as programs: the bodies of loops, branches and solvers, traced once.

What was traced is remembered by function, as in `jit`.  Stands on `stage`, `arguments`.
Chapter 09, *Control flow*.  In JAX: `jax/_src/lax/control_flow/common.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from minijax import caches, config, core, tree_util
from minijax.core import Array, ShapedArray
from minijax.higher_order.arguments import flattened
from minijax.higher_order.rules import rearranged
from minijax.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.source_info import DebugInfo
from minijax.stage import hoist

# By function and by all else that decides what a trace gives.
_bodies: caches.OfObjects[dict[tuple, Body]] = caches.OfObjects(lambda fun: {})


@dataclass(frozen=True, eq=False)
class Body:
    """A function of trees staged as a program, with what it closed over as leading inputs."""

    program: ClosedJaxpr
    consts: tuple[Array, ...]
    debug_info: DebugInfo
    out_tree: tree_util.PyTreeDef

    @classmethod
    def of(cls, fun: Callable, arg_types: Sequence[Any], traced_for: str) -> Body:
        """The program of a function, traced unless it was before.

        Args:
          fun: the function.
          arg_types: its arguments, with a `ShapedArray` for every array.
          traced_for: ``"scan"``, ``"cond"`` …, for messages.
        """
        given = _Given(fun, tuple(arg_types), traced_for)
        table = _bodies[fun]
        found = table.get(given.key)
        if found is not None and found.is_current():
            core.base_trace.note("lookup", found, given)
            if not config.debug_purity.value:  # which looks at what a trace does besides
                return found
        found = given.trace()
        if not (found.captures_tracers and config.check_tracer_leaks.value):
            table[given.key] = found
        core.base_trace.note("lookup", found, given)
        return found

    @property
    def captures_tracers(self) -> bool:
        return any(isinstance(c, core.Tracer) for c in self.consts)

    def is_current(self) -> bool:
        """Whether what the function closed over is still being traced."""
        trace = core.current_trace.get()
        return all(trace.is_open(c.level) for c in self.consts if isinstance(c, core.Tracer))

    @property
    def argument_name(self) -> str:
        """What the function calls its first argument."""
        names = self.debug_info.arg_names
        return names[0].split("[")[0] if names and names[0] else "carry"

    @property
    def out_avals(self) -> Sequence[ShapedArray]:
        return self.program.out_avals

    @property
    def out_types(self) -> Any:
        return self.tree_of(self.out_avals)

    def tree_of(self, outs: Any) -> Any:
        """The tree of these leaves, as the function returned it."""
        return tree_util.tree_unflatten(self.out_tree, outs)

    def called(self, *args: Any) -> Any:
        """What the program makes of arguments, in the tree of the function's result."""
        return self.tree_of(jaxpr_as_fun(self.program)(*self.consts,
                                                       *tree_util.tree_leaves(args)))


class _Given:
    """A function and the types that it is to be traced for."""

    def __init__(self, fun: Callable, arg_types: tuple, traced_for: str):
        self.fun, self.arg_types, self.traced_for = fun, arg_types, traced_for

    @property
    def key(self) -> tuple:
        avals, tree = tree_util.tree_flatten(self.arg_types)
        axes = tuple((axis.size, axis.name) for axis in core.current_trace.get().axes)
        return self.traced_for, tree, tuple(avals), config.trace_key(), axes

    def trace(self) -> Body:
        flat, avals = flattened(self.fun, self.arg_types, self.traced_for)
        program, consts = hoist(flat.staged(avals))
        return Body(program, consts, flat.debug_info, flat.out_tree)  # type: ignore[arg-type]


def share_consts(bodies: Sequence[Body]) -> tuple[list[ClosedJaxpr], list[Any]]:
    """The bodies' programs with the same leading inputs: all that any of them closed over."""
    consts = {id(c): c for body in bodies for c in body.consts}
    programs = []
    for body in bodies:
        places = {id(c): i for i, c in enumerate(body.consts)}
        rest = range(len(places), len(body.program.in_avals))
        programs.append(rearranged(body.program, [
            *(places.get(i, c.aval) for i, c in consts.items()), *rest]))
    return programs, list(consts.values())
