"""The user's functions as programs, traced once: of loops, branches, checkpoints, solvers.

Traces are cached by function, as in `jit`.  Builds on `tracing`, `arguments`.
Chapter 09, *Control flow*.  In JAX: `jax/_src/lax/control_flow/common.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from minijax.util import caches, source_info
from minijax import config, core, errors, tree_util
from minijax.core import Array, Avals, ShapedArray
from minijax.transforms.arguments import flattened
from minijax.control_flow.program_rules import rearranged
from minijax.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.core.tracing import FlatFunction, check_arg, convert_constvars, recorder
from minijax.primitives.named_axes import in_order


class Operands:
    """The arrays that a tree of arguments consists of."""

    def __init__(self, tree: Any):
        self.leaves, self.tree = tree_util.tree_flatten(tree)
        self.values = [check_arg(x) for x in self.leaves]

    @property
    def types(self) -> Any:
        """The tree with the type of each array in its place."""
        return self.tree.unflatten_types([x.aval for x in self.values])


_PACKAGE = errors.__file__.removesuffix("errors.py")


def is_internal(fun: Callable) -> bool:
    """Whether a function is part of the package, or says of itself that it stands for one.

    Files whose frames a library has left out of tracebacks are not: their functions are the user's.
    """
    code = source_info.identify(fun)[1]
    return getattr(fun, "stands_for_internal",
                   code is not None and code.co_filename.startswith((_PACKAGE, "<minijax")))


# By function, and by everything else that a trace depends on.
_traced_functions: caches.OfObjects[dict[tuple, TracedFunction]] = caches.OfObjects(lambda fun: {})


@dataclass(frozen=True, eq=False)
class TracedFunction:
    """A function of trees staged as a program; `consts`, which it closed over, are leading inputs.

    For a checkpoint only tracers become inputs; other constants stay in the program.
    """

    program: ClosedJaxpr
    consts: tuple[Array, ...]
    debug_info: source_info.DebugInfo
    out_tree: tree_util.PyTreeDef

    @classmethod
    def of(cls, fun: Callable, arg_types: Sequence[Any], traced_for: str) -> TracedFunction:
        """The program of a function, from the cache or traced now.

        Args:
          fun: the function.
          arg_types: its arguments, with a `ShapedArray` for every array.
          traced_for: ``"scan"``, ``"cond"`` …, for messages.
        """
        return TraceRequest(fun, tuple(arg_types), traced_for).traced()

    @property
    def captures_tracers(self) -> bool:
        return any(isinstance(c, core.Tracer) for c in self.consts)

    def is_current(self) -> bool:
        """Whether what the function closed over is still being traced."""
        trace = core.current_trace.get()
        return all(trace.is_open(c.level) for c in self.consts if isinstance(c, core.Tracer))

    @property
    def out_avals(self) -> Avals:
        return self.program.out_avals

    @property
    def out_types(self) -> Any:
        return self.out_tree.unflatten_types(self.out_avals)

    def tree_of(self, outs: Any) -> Any:
        """These leaves in the tree of the function's result."""
        return tree_util.tree_unflatten(self.out_tree, outs)

    def called(self, *args: Any) -> Any:
        """The function's result, computed by the program."""
        return self.tree_of(jaxpr_as_fun(self.program)(*self.consts, *tree_util.tree_leaves(args)))


@dataclass(frozen=True)
class TraceRequest:
    """A function, the types to trace it for, and its static arguments.

    Args:
      fun: the function.
      args, kwargs: its arguments, with a `ShapedArray` for every array.
      traced_for: for messages.
      static: the positions of the static arguments.
      moves: says of a constant whether it becomes an input.
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
        return (self.traced_for, tree, tuple(avals), static, config.trace_key(), core.axes_key())

    def traced(self) -> TracedFunction:
        """The program, from the cache or traced now."""
        key = self.key
        try:
            hash(key)
        except TypeError:  # a static argument that cannot be hashed
            return self.trace()
        cache = _traced_functions[self.fun]
        cached = cache.get(key)
        if cached is not None and cached.is_current():
            core.base_trace.notify("lookup", cached, self)
            if not config.debug_purity.value:  # which checks the side effects of each trace
                return cached
        flat, avals = self.flat()  # as in `trace`, a call of which would be one more frame
        traced = self.traced_from(flat, recorder()(flat, avals, flat.debug_info))
        if not (traced.captures_tracers and config.check_tracer_leaks.value):
            cache[key] = traced
        core.base_trace.notify("lookup", traced, self)
        return traced

    def trace(self) -> TracedFunction:
        flat, avals = self.flat()
        return self.traced_from(flat, recorder()(flat, avals, flat.debug_info))

    def flat(self) -> tuple[FlatFunction, list[Any]]:
        flat, avals = flattened(self.fun, self.args, self.traced_for, False, self.kwargs,
                                self.static)
        if described := getattr(self.fun, "debug_info_of", None):
            flat.debug_info = described(*self.args)
        return flat, avals

    def traced_from(self, flat: FlatFunction, recorded: ClosedJaxpr) -> TracedFunction:
        program, consts = convert_constvars(recorded, self.moves)
        info: Any = flat.debug_info
        return TracedFunction(program, consts, info, flat.out_tree)


def share_consts(functions: Sequence[TracedFunction]) -> tuple[list[ClosedJaxpr], list[Any]]:
    """The programs with the same leading inputs: everything that any function closed over."""
    consts = {id(c): c for f in functions for c in f.consts}
    programs = []
    for f in functions:
        places = {id(c): i for i, c in enumerate(f.consts)}
        rest = range(len(places), len(f.program.in_avals))
        programs.append(rearranged(f.program, [
            *(places.get(i, c.aval) for i, c in consts.items()), *rest]))
    return programs, list(consts.values())


# ── What differs between types that should be the same ───────────────────────────────────────

def listed(lines: Sequence[str], gap: str = "") -> str:
    """A sentence, or a list of several with gaps before the last but one, for an error message."""
    if len(lines) == 1:
        return f"{lines[0]}."
    *others, last = (f"  * {line}" for line in lines)
    return f";\n{gap}".join(others) + f";\n{last}."


def capitalized(text: str) -> str:
    return text[0].upper() + text[1:]


def mismatch(one: ShapedArray, two: ShapedArray) -> str:
    """In what two types differ, weakness aside: a clause, empty if they do not."""
    parts = {"dtypes": "dtype", "shapes": "shape", "manual axis types": "vma"}
    differs = [f"the {what} do not match" for what, part in parts.items()
               if getattr(one, part) != getattr(two, part)]
    return ", and ".join([", ".join(differs[:-1])] * (len(differs) > 1) + differs[-1:])


def pcast_advice(cases: Iterable[tuple[ShapedArray, ShapedArray, str]]) -> str:
    """How to make values vary along the axes of a mesh along which others do.

    Args:
      cases: the type of a value, that of the other one, and where the value comes from.
    """
    fixes = [f"applying `jax.lax.pcast(..., {in_order(two.vma - one.vma)}, to='varying')`{where}"
             for one, two, where in cases if two.vma - one.vma]
    if not fixes:
        return ""
    return ("This might be fixed by" + (" " if len(fixes) == 1 else ":\n") + listed(fixes)
            + "\nSee https://docs.jax.dev/en/latest/notebooks/shard_map.html#scan-vma for more "
            "information.\n\n")


def type_differences(pairs: Iterable[tuple[str, ShapedArray, str, ShapedArray]]) -> list[str]:
    """A phrase for each pair of types that differ.

    Args:
      pairs: the name of a value and its type, twice.
    """
    phrases = []
    for what, one, other, two in pairs:
        if (why := mismatch(one, two)) or one.explicit_sharding != two.explicit_sharding:
            phrases.append(f"{what} has type {one.str_long()} but the corresponding {other} has "
                           f"type {two.str_long()}" + f", so {why}" * bool(why))
    return phrases
