"""What libraries take of JAX's own insides, each small; `names` says who asks for what.

Stands on the core.  In JAX: `jax/_src/`, `jax/extend/`, `jax/api_util.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from minijax import core, errors, source_info, tree_util
from minijax.core import ShapedArray
from minijax.interpreters.jvp import JVPTracer
from minijax.interpreters.split import SplitTrace
from minijax.stage import FlatFunction
from minijax.tree_util import PyTreeDef

version = "0.10.2"  # of JAX: the one whose behaviour this is
version_info = (0, 10, 2)


# ── Types ────────────────────────────────────────────────────────────────────────────────────

class TypedNdArray:
    """JAX's constants from NumPy; there is none here, so nothing is an instance."""


class ExtendedDType:
    """A dtype of one's own: Flax declares one of 8 bits, which no array here may have."""


result_handlers: dict[type, Any] = {}  # of such dtypes


# ── Lists ────────────────────────────────────────────────────────────────────────────────────

def safe_zip(*lists: Iterable[Any]) -> list[tuple]:
    """`zip` of lists that are as long as each other, as a list."""
    return list(zip(*lists, strict=True))


def safe_map(function: Callable[..., Any], *lists: Iterable[Any]) -> list:
    """`map` of lists that are as long as each other, as a list."""
    return [function(*each) for each in safe_zip(*lists)]


# ── Traces ───────────────────────────────────────────────────────────────────────────────────

class PartialVal(NamedTuple):
    """A value of which the type is known, or the value itself: a pair with a None."""

    aval: ShapedArray | None
    const: Any

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        return cls(aval, None)

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        return cls(None, const)


def trace_to_jaxpr_nounits(fun: Callable[..., Sequence[Any]], pvals: Sequence[PartialVal],
                           instantiate: bool = False) -> tuple[Any, list[PartialVal], Sequence]:
    """Run what is known of a function of flat arguments, and record the rest.

    Returns:
      The program of the rest, the outputs as partial values, and the program's constants.
    """
    trace = SplitTrace(core.current_trace.get(), getattr(fun, "debug_info", None))
    args = [core.as_value(const) if aval is None else trace.new_arg(aval) for aval, const in pvals]
    outs = [core.as_value(x) for x in core.run_with(trace, fun, *args)]
    unknown = [instantiate or trace.owns(x) for x in outs]
    closed = trace.program([x for x, u in zip(outs, unknown, strict=True) if u])
    return closed.jaxpr, [PartialVal.unknown(x.aval) if u else PartialVal.known(x)
                          for x, u in zip(outs, unknown, strict=True)], closed.consts


# ── Functions of flat arguments ──────────────────────────────────────────────────────────────

def debug_info(traced_for: str, fun: Callable, args: Sequence[Any], kwargs: dict[str, Any],
               **options: Any) -> source_info.DebugInfo:
    """Whom to name in errors; the names of arguments are not asked for."""
    return source_info.DebugInfo(traced_for, source_info.function_name(fun))


def wrap_init(f: Callable, params: dict[str, Any] | None = None, *,
              debug_info: source_info.DebugInfo | None = None) -> Callable:
    """The function itself, with its parameters: nothing here needs it wrapped."""
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **(params or {}), **kwargs)
    wrapped.debug_info = debug_info  # type: ignore[attr-defined]
    return wrapped


def flatten_fun(f: Callable, in_tree: PyTreeDef) -> tuple[FlatFunction, Callable[[], PyTreeDef]]:
    """A function of the leaves of ``(args, kwargs)``, and how to ask for its result's tree."""
    flat = FlatFunction(f, in_tree)
    return flat, lambda: flat.out_tree


def flatten_fun_nokwargs(f: Callable, in_tree: PyTreeDef
                         ) -> tuple[FlatFunction, Callable[[], PyTreeDef]]:
    """The same for the leaves of ``args``."""
    return flatten_fun(f, tree_util.treedef_tuple((in_tree, tree_util.tree_structure({}))))


# ── Errors, backends ─────────────────────────────────────────────────────────────────────────

class Excluded(list[str]):
    """The files whose frames errors leave out besides our own."""

    def append(self, path: str) -> None:
        super().append(path)
        errors.internal_files[path] = True

    def remove(self, path: str) -> None:
        super().remove(path)
        errors.internal_files.pop(path, None)


excluded = Excluded()


def register_exclusion(path: str) -> None:
    """Leave a file's frames out of errors, as our own are."""
    excluded.append(path)


backends: dict[str, Any] = {}  # none is started: there is no client to hold


def backend_compile_and_load(*args: Any, **kwargs: Any) -> Any:
    """JAX's way to XLA, which nothing here takes; libraries patch it to count compilations."""
    raise NotImplementedError("minijax compiles with LLVM: there is no XLA client to compile with")


def wait_for_tokens() -> None:
    """Effects have happened when a call returns, so that there is nothing to wait for."""


# Equinox tells the tracers of a transformation by `tracer._trace.main`: here, by their level.

core.Trace.main = property(lambda trace: trace.level)  # type: ignore[attr-defined]
core.Level.main = property(lambda level: level)  # type: ignore[attr-defined]
JVPTracer._trace = property(lambda tracer: tracer.level)
