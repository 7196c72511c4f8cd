"""JAX's internals that libraries use; `names` lists the users of each.

Builds on the core.  In JAX: `jax/_src/`, `jax/extend/`, `jax/api_util.py`.
"""

import inspect
import logging
import operator
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from minijax import core, device_put, errors, tree_util
from minijax.custom import host_callback
from minijax.flatten_util import ravel_pytree
from minijax.util.source_info import DebugInfo, SourceInfo, function_name
from minijax.placement import meshes
from minijax.placement.devices import Device
from minijax.placement.named_sharding import NamedSharding
from minijax.transforms.arguments import as_tuple, static_value
from minijax.core.jvp import JVPTracer
from minijax.core.partial_eval import SplitTrace
from minijax.core.tracing import FlatFunction
from minijax.extend import backend
from minijax.extend.linear_util import WrappedFun, transformation2, wrap_init
from minijax.tree_util import PyTreeDef

version = "0.10.2"  # of JAX, whose behaviour minijax has
version_info = (0, 10, 2)


# ── Types ────────────────────────────────────────────────────────────────────────────────────

class TypedNdArray:
    """JAX's constants from NumPy; there is none here, so nothing is an instance."""


class TypedInt(int):
    """JAX's integers of a dtype among the constants of programs, where here are plain ones."""

    def __new__(cls, value: int, dtype: Any) -> Self:
        self = super().__new__(cls, value)
        self.dtype = np.dtype(dtype)  # type: ignore[attr-defined]
        return self

    def __repr__(self) -> str:
        return f"TypedInt({int(self)}, dtype={self.dtype.name})"  # type: ignore[attr-defined]

    def __getnewargs__(self) -> tuple:
        return int(self), self.dtype  # type: ignore[attr-defined]


class TypedFloat(float):
    """JAX's floats of a dtype, likewise; nothing is an instance."""


class TypedComplex(complex):
    """JAX's complex numbers of a dtype, likewise; nothing is an instance."""


class ExtendedDType:
    """A dtype of one's own: Flax declares one of 8 bits, which no array here may have."""


result_handlers: dict[type, Any] = {}  # of such dtypes


# ── Lists ────────────────────────────────────────────────────────────────────────────────────

def safe_zip(*lists: Iterable[Any]) -> list[tuple]:
    """`zip` of lists of equal length, as a list."""
    return list(zip(*lists, strict=True))


def safe_map(function: Callable[..., Any], *lists: Iterable[Any]) -> list:
    """`map` of lists of equal length, as a list."""
    return [function(*each) for each in safe_zip(*lists)]


def is_constant_dim(d: Any) -> bool:
    """Whether a size is known: an integer that is no tracer without a value."""
    try:
        operator.index(d)
    except (TypeError, errors.TracerIntegerConversionError):
        return False
    return True


# ── Arrays ───────────────────────────────────────────────────────────────────────────────────

def array_from_pickle(function: Callable, args: tuple, state: Any, of_type: dict[str, bool]
                      ) -> core.Array:
    """The array of a pickle that JAX wrote: how NumPy restores its numbers, and its weak type."""
    numbers = function(*args)
    numbers.__setstate__(state)
    array = device_put(numbers)
    return core.array_from_buffer(array._buffer, array.aval.update(**of_type))


# ── Traces ───────────────────────────────────────────────────────────────────────────────────

class PartialVal(NamedTuple):
    """A value of which the type is known, or the value itself: a pair with a None."""

    aval: core.ShapedArray | None
    const: Any

    @classmethod
    def unknown(cls, aval: core.ShapedArray) -> Self:
        return cls(aval, None)

    @classmethod
    def known(cls, const: Any) -> Self:
        return cls(None, const)


def trace_to_jaxpr_nounits(fun: Callable[..., Sequence[Any]], pvals: Sequence[PartialVal],
                           instantiate: bool = False) -> tuple[Any, list[PartialVal], Sequence]:
    """Partial evaluation of a function of flat arguments: run its known part, record the rest.

    Returns:
      The program of the rest, the outputs as partial values, and the program's constants.
    """
    trace = SplitTrace(core.current_trace.get(), getattr(fun, "debug_info", None))
    args = [core.as_value(const) if aval is None else trace.new_arg(aval) for aval, const in pvals]
    outs = list(map(core.as_value, core.run_with(trace, fun, *args)))
    unknown = [instantiate or trace.owns(x) for x in outs]
    closed = trace.program([x for x, u in zip(outs, unknown, strict=True) if u])
    return closed.jaxpr, [PartialVal.unknown(x.aval) if u else PartialVal.known(x)
                          for x, u in zip(outs, unknown, strict=True)], closed.consts


# ── Functions of flat arguments ──────────────────────────────────────────────────────────────

def debug_info(traced_for: str, fun: Callable, args: Sequence[Any], kwargs: dict[str, Any],
               **options: Any) -> DebugInfo:
    """The name of the function for errors; those of its arguments are not looked up."""
    return DebugInfo(traced_for, function_name(fun))


def infer_argnums_and_argnames(sig: inspect.Signature, argnums: int | Iterable[int] | None,
                               argnames: str | Iterable[str] | None
                               ) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of arguments, of which the ones imply the others by the signature."""
    numbers, names = as_tuple(argnums, int), as_tuple(argnames, str)
    named = [(i, name) for i, (name, p) in enumerate(sig.parameters.items())
             if p.kind is p.POSITIONAL_OR_KEYWORD]
    if argnums is None:
        numbers = tuple(i for i, name in named if name in names)
    elif argnames is None:
        names = tuple(name for i, name in named if i in numbers)
    return numbers, names


def flatten_fun(f: Callable, in_tree: PyTreeDef) -> tuple[WrappedFun, Callable[[], PyTreeDef]]:
    """A function of the leaves of ``(args, kwargs)``, and one that returns its result's tree."""
    flat = FlatFunction(f, in_tree)
    info = getattr(f, "debug_info", None) or debug_info("flatten_fun", f, (), {})
    return wrap_init(flat, debug_info=info), lambda: flat.out_tree


def flatten_fun_nokwargs(f: Callable, in_tree: PyTreeDef
                         ) -> tuple[WrappedFun, Callable[[], PyTreeDef]]:
    """The same for the leaves of ``args``."""
    return flatten_fun(f, tree_util.treedef_tuple((in_tree, tree_util.tree_structure({}))))


def argnums_partial(f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence[Any],
                    require_static_args_hashable: bool = True) -> tuple[WrappedFun, tuple]:
    """A function of some of the arguments, whose others are these, and those arguments."""
    places = [range(len(args))[i] for i in as_tuple(dyn_argnums, int)]

    def run(call: Callable, *dynamic: Any) -> Any:
        return call(*(dynamic[places.index(i)] if i in places else x for i, x in enumerate(args)))
    if require_static_args_hashable:
        for i, x in enumerate(args):
            static_value(None if i in places else x)  # which refuses what has no hash
    return transformation2(run)(f), tuple(args[i] for i in places)


def ravel_first_arg(f: Callable, unravel: Callable, debug_info: DebugInfo) -> WrappedFun:
    """A function whose first argument and result are vectors, in place of trees."""
    return wrap_init(lambda y, *args: ravel_pytree(f(unravel(y), *args))[0], debug_info=debug_info)


# ── Trees ────────────────────────────────────────────────────────────────────────────────────

def prefix_leaves(leaves: Sequence[Any], prefix: PyTreeDef, full: PyTreeDef) -> list[Any]:
    """For each leaf of a structure, the leaf of its prefix that stands over it."""
    parts = prefix.flatten_up_to(full.unflatten(range(full.num_leaves)))
    return [leaf for leaf, part in safe_zip(leaves, parts) for _ in tree_util.tree_leaves(part)]


# ── Errors, backends ─────────────────────────────────────────────────────────────────────────

class Excluded(list[str]):
    """Files besides our own whose frames tracebacks leave out."""

    def append(self, path: str) -> None:
        if path not in self:  # JAX keeps two such lists
            super().append(path)
        errors.internal_files[path] = True

    def remove(self, path: str) -> None:
        super().remove(path)
        errors.internal_files.pop(path, None)


excluded = Excluded()
register_exclusion = excluded.append  # of a file


def summarize(source: SourceInfo) -> str:
    """Where an equation comes from: path, line, column and function."""
    return source.place


backends: dict[str, Any] = {}  # none is started: there is no client to hold


class _Environment:
    """JAX's thread-local state: here the mesh that was set, or entered."""

    physical_mesh = property(lambda self: meshes.get_mesh())


def canonicalize_sharding(sharding: Any, api_name: str) -> Any:
    """A sharding over a mesh that has axes, or None."""
    if isinstance(sharding, meshes.PartitionSpec):
        sharding = NamedSharding(meshes.get_abstract_mesh(), sharding)
    return None if sharding is None or sharding.mesh.empty else sharding


thread_resources = types.SimpleNamespace(env=_Environment())


def backend_compile_and_load(*args: Any, **kwargs: Any) -> Any:
    """JAX's call of XLA, which minijax never makes; libraries patch it to count compilations."""
    raise NotImplementedError("minijax compiles with LLVM, and has no XLA client")


def plugin_program(*args: Any, **kwargs: Any) -> Any:
    """JAX's program for the runtime of a cloud, which Orbax makes there."""
    raise NotImplementedError("minijax has no runtime of XLA: call jax.jit")


class DeviceList(tuple):
    """JAX's sequence of devices."""


def wait_for_tokens() -> None:
    """Effects have happened when a call returns, so that there is nothing to wait for."""


# Orbax asks devices of which runtime they are, and what memories they have.
_device: Any = Device
_device.client = property(lambda device: backend.get_backend(device.platform))
_device.addressable_memories = backend.memories
_device.memory = _device.default_memory = backend.memory

# Equinox filters what this logger says of a callback that fails.
host_callback.logger = logging.getLogger("jax._src.callback")

# Equinox tells the tracers of a transformation by `tracer._trace.main`: here, by their level.

core.Trace.main = property(lambda trace: trace.level)  # type: ignore[attr-defined]
core.Level.main = property(lambda level: level)  # type: ignore[attr-defined]
JVPTracer._trace = property(lambda tracer: tracer.level)
