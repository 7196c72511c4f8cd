"""The types of programs, for interpreters and primitives written outside the package.

Builds on `core`, `jaxpr`.  Chapter 06.  In JAX: `jax/extend/core/`.
"""

import contextlib
import functools
import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from minijax import core, dtypes
from minijax.core import dce, jaxpr as jaxprs, Effect, Primitive, ShapedArray
from minijax.errors import InconclusiveDimensionOperation, JaxprTypeError
from minijax.core.vmap import with_axis, without_axis
from minijax.core.jaxpr import (ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, check_jaxpr,
                                jaxpr_as_fun, no_effects)
from minijax.transforms.scopes import set_current_trace
from minijax.util import lazily
from minijax.util.source_info import DebugInfo
from minijax.lax.tokens import Token

# The classes of NumPy that operations take for arrays: arrays, and scalars of each dtype.
array_types = {np.ndarray, np.bool_, *(dtype.type for dtype in dtypes.NUMERIC)}


# ── Programs ─────────────────────────────────────────────────────────────────────────────────


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The programs among an equation's parameters.

    >>> from minijax import make_jaxpr, jit, numpy as jnp
    >>> eqn, = make_jaxpr(jit(jnp.sin))(1.0).eqns
    >>> list(jaxprs_in_params(eqn.params))
    [{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }]
    """
    return (closed.jaxpr for closed in jaxprs.subjaxprs(params))


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs inside a program: those among the parameters of its equations."""
    return (inner for eqn in jaxpr.eqns for inner in jaxprs_in_params(eqn.params))


def dce_jaxpr(jaxpr: Jaxpr, used_outputs: bool | Sequence[bool],
              instantiate: bool | Sequence[bool] = False) -> tuple[Jaxpr, list[bool]]:
    """A program without the equations that no used output needs, also in programs inside.

    Args:
      jaxpr: a program; its constants stay.
      used_outputs: which outputs the result has; a flag stands for all.
      instantiate: which inputs the result has even where nothing reads them.

    Returns:
      The program of the used outputs and of the inputs that they need, and which these are.

    >>> from minijax import make_jaxpr
    >>> closed = make_jaxpr(lambda x, y: (x + 1.0, x * y))(2.0, 3.0)
    >>> dce_jaxpr(closed.jaxpr, [True, False])
    ({ lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }, [True, False])
    """
    from minijax.custom import remat
    used = [used_outputs] * len(jaxpr.outvars) if isinstance(used_outputs, bool) else used_outputs
    kept = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else instantiate
    opened = jaxpr.replace(constvars=(), invars=(*jaxpr.constvars, *jaxpr.invars), outvars=tuple(
        jaxprs.partition_list(jaxpr.outvars, used)[True]))
    live = remat.dce_jaxpr(ClosedJaxpr(opened)).jaxpr
    read = dce.used_inputs(ClosedJaxpr(live))[len(jaxpr.constvars):]
    flags = [used or keep for used, keep in zip(read, kept, strict=True)]
    return live.replace(constvars=jaxpr.constvars, invars=tuple(
        jaxprs.partition_list(jaxpr.invars, flags)[True])), flags


def gensym() -> Callable[[ShapedArray], Var]:
    """A function that makes a new variable of a type.

    >>> gensym()(core.get_aval(1.5)).aval
    ShapedArray(float32[], weak_type=True)
    """
    return Var


def new_jaxpr_eqn(invars: Sequence[Any], outvars: Sequence[Var], primitive: Primitive,
                  params: dict[str, Any], effects: Collection[Effect], source_info: Any = None,
                  ctx: None = None) -> JaxprEqn:
    """An equation ``outvars = primitive[params] invars``.

    >>> from minijax import lax
    >>> x, y = map(gensym(), [core.get_aval(1.5)] * 2)
    >>> new_jaxpr_eqn([x], [y], lax.sin_p, {}, no_effects).replace(invars=(y,)).primitive
    sin
    """
    return JaxprEqn(list(invars), list(outvars), primitive, params, frozenset(effects),
                    source_info)


# ── Types and values ─────────────────────────────────────────────────────────────────────────

def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one example, from the type of a batch.

    >>> mapped_aval(3, 0, ShapedArray((3, 2), "float32"))
    ShapedArray(float32[2])
    """
    return aval if axis is None else without_axis(aval, axis)


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray,
                  explicit_mesh_axis: Any = None) -> ShapedArray:
    """The type of a batch, from the type of one example.

    >>> unmapped_aval(3, 1, ShapedArray((2,), "float32"))
    ShapedArray(float32[2,3])
    """
    return with_axis(aval, axis, size)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of the tangents of a dtype: the same, or `float0` for integers and booleans.

    >>> primal_dtype_to_tangent_dtype("bfloat16"), primal_dtype_to_tangent_dtype("int32")
    (dtype(bfloat16), dtype([('float0', 'V')]))
    """
    return ShapedArray((), primal_dtype).to_tangent_aval().dtype


def valid_jaxtype(x: Any) -> bool:
    """Whether operations take this for an array.

    >>> valid_jaxtype(1.5), valid_jaxtype("text")
    (True, False)
    """
    try:
        core.get_aval(x)
    except TypeError:
        return False
    return True


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """``force(val)``, of the concrete value of a tracer.

    Raises:
      ConcretizationTypeError: where a tracer has none, with the `context`.

    >>> concrete_or_error(int, 2.5)
    2
    """
    value = core.concrete_or_error(val, context) if isinstance(val, core.Tracer) else val
    return value if force is None else force(value)


def _dimension(which: Callable[[int, int], int], d1: Any, d2: Any) -> int:
    return which(*(concrete_or_error(operator.index, d, f"argument `d{i}` of `core."
                                     f"{which.__name__}_dim`") for i, d in enumerate((d1, d2), 1)))


def max_dim(d1: Any, d2: Any) -> int:
    """The larger of two dimensions.

    >>> max_dim(3, 4)
    4
    """
    return _dimension(max, d1, d2)


def min_dim(d1: Any, d2: Any) -> int:
    """The smaller of two dimensions.

    >>> min_dim(3, 4)
    3
    """
    return _dimension(min, d1, d2)


# ── Traces ───────────────────────────────────────────────────────────────────────────────────

class OpaqueTraceState(NamedTuple):
    """The level of the current trace, to compare with that of another moment."""

    level: core.Level | None


def trace_state_clean() -> bool:
    """Whether no transformation is running.

    >>> trace_state_clean()
    True
    """
    return core.current_trace.get().level is None


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """The state, which differs from that of another moment if a transformation came between.

    >>> get_opaque_trace_state() == get_opaque_trace_state()
    True
    """
    return OpaqueTraceState(core.current_trace.get().level)


def find_top_trace(xs: Any) -> core.Trace:
    """The current trace, which processes the operations on any values.

    >>> find_top_trace(()) is core.base_trace
    True
    """
    return core.current_trace.get()


@contextlib.contextmanager
def take_current_trace() -> Iterator[core.Trace]:
    """A block that gets the current trace, and evaluates its own operations eagerly.

    >>> with take_current_trace() as trace:
    ...     trace is core.base_trace
    True
    """
    trace = core.current_trace.get()
    with set_current_trace(core.base_trace):
        yield trace


def eval_context() -> contextlib.AbstractContextManager[None]:
    """A block whose operations are evaluated eagerly, and take no tracers.

    >>> with eval_context():
    ...     core.current_trace.get() is core.base_trace
    True
    """
    return set_current_trace(core.base_trace)


# ── Names that have a meaning only in JAX's own programs ─────────────────────────────────────

class DropVar(Var):
    """The variable of a result that no equation reads.

    >>> DropVar(core.get_aval(1.5))
    _
    """

    def __repr__(self) -> str:
        return "_"


@dataclass(frozen=True)
class TraceTag:
    """The tag of the tracers of one of JAX's transformations; here all are equal."""


def call_impl(f: Any, *args: Any, **params: Any) -> Any:
    """Call a `linear_util.WrappedFun`; the parameters are those of the equation.

    >>> from minijax.extend.linear_util import wrap_init
    >>> call_impl(wrap_init(abs, debug_info=DebugInfo("f", "f")), -1, name="g")
    1
    """
    return f.call_wrapped(*args)


class CallPrimitive(Primitive):
    """Calls a function of flat arguments, whose equations are inlined.

    `jit_p` makes one equation of a function.
    """

    def __init__(self, name: str):
        super().__init__(name, multiple_results=True)

    def bind(self, *args: Any, subfuns: Sequence[Any], **params: Any) -> Any:
        [fun] = subfuns
        return call_impl(fun, *args)


def _take_methods_as_rules(cls: type[Primitive]) -> None:
    """Let methods of a user's class of primitives be their rules, as JAX does."""
    make = cls.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        self.multiple_results = getattr(cls, "multiple_results", self.multiple_results)
        if rule := vars(cls).get("impl"):
            self.def_impl(functools.partial(rule, self))
        if typed := vars(cls).get("abstract_eval"):  # JAX: its effects, which come with the types
            self.def_abstract_eval(lambda *avals, **params: typed(self, *avals, **params)[0])
    cls.__init__ = init  # type: ignore[method-assign]


Primitive.__init_subclass__ = classmethod(_take_methods_as_rules)  # type: ignore[assignment]
lazily.attach(globals(), table={})  # `primitives` is loaded when a program names it
