"""Functions of the user's as programs, traced once: bodies of loops and branches, checkpoints.

What was traced is remembered by function, as in `jit`.  Stands on `tracing`, `arguments`.
Chapter 09, *Control flow*.  In JAX: `jax/_src/lax/control_flow/common.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from minijax.util import caches
from minijax import config, core, tree_util
from minijax.core import Array, ShapedArray
from minijax.transforms.arguments import flattened
from minijax.control_flow.program_rules import rearranged
from minijax.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.util.source_info import DebugInfo
from minijax.core.tracing import FlatFunction, convert_constvars, recorder

# By function and by all else that decides what a trace gives.
_bodies: caches.OfObjects[dict[tuple, Body]] = caches.OfObjects(lambda fun: {})


@dataclass(frozen=True, eq=False)
class Body:
    """A function of trees staged as a program, with what it closed over as leading inputs.

    Of what is checkpointed only tracers are: `consts` are those of its constants that were moved.
    """

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
        return TraceRequest(fun, tuple(arg_types), traced_for).body()

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
        return self.out_tree.unflatten_types(self.out_avals)

    def tree_of(self, outs: Any) -> Any:
        """The tree of these leaves, as the function returned it."""
        return tree_util.tree_unflatten(self.out_tree, outs)

    def called(self, *args: Any) -> Any:
        """What the program makes of arguments, in the tree of the function's result."""
        return self.tree_of(jaxpr_as_fun(self.program)(*self.consts,
                                                       *tree_util.tree_leaves(args)))


@dataclass(frozen=True)
class TraceRequest:
    """A function, the types that it is to be traced for, and its static arguments.

    Args:
      fun: the function.
      args, kwargs: its arguments, with a `ShapedArray` for every array.
      traced_for: for messages.
      static: the places of the arguments that are no trees of arrays.
      moves: which of the constants become inputs.
    """

    fun: Callable
    args: tuple
    traced_for: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    static: Collection[int] = ()
    moves: Callable[[Any], bool] = lambda c: True

    @property
    def key(self) -> tuple:
        dynamic = [x for i, x in enumerate(self.args) if i not in self.static]
        avals, tree = tree_util.tree_flatten((dynamic, self.kwargs))
        static = tuple((i, type(self.args[i]), self.args[i]) for i in sorted(self.static))
        axes = tuple((axis.size, axis.name) for axis in core.current_trace.get().axes)
        return self.traced_for, tree, tuple(avals), static, config.trace_key(), axes

    def body(self) -> Body:
        """The program, traced unless it was before."""
        key = self.key
        try:
            hash(key)
        except TypeError:  # a static argument cannot be told from others
            return self.trace()
        table = _bodies[self.fun]
        found = table.get(key)
        if found is not None and found.is_current():
            core.base_trace.notify("lookup", found, self)
            if not config.debug_purity.value:  # which looks at what a trace does besides
                return found
        flat, avals = self.flat()  # as in `trace`, a call of which would be one more frame
        found = self.body_of(flat, recorder()(flat, avals, flat.debug_info))
        if not (found.captures_tracers and config.check_tracer_leaks.value):
            table[key] = found
        core.base_trace.notify("lookup", found, self)
        return found

    def trace(self) -> Body:
        flat, avals = self.flat()
        return self.body_of(flat, recorder()(flat, avals, flat.debug_info))

    def flat(self) -> tuple[FlatFunction, list[Any]]:
        return flattened(self.fun, self.args, self.traced_for, False, self.kwargs, self.static)

    def body_of(self, flat: FlatFunction, recorded: ClosedJaxpr) -> Body:
        program, consts = convert_constvars(recorded, self.moves)
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
