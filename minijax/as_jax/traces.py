"""Traces that libraries define by JAX's internal classes.

Builds on the core.  Such a trace processes every primitive that is bound while it is the current
one, and its tracers hold what the library likes.  In JAX: `Trace` and `Tracer` of
`jax/_src/core.py`.
"""

from collections.abc import Sequence
from typing import Any

from minijax import core, lax
from minijax.core.types import Params
from minijax.custom.custom_jvp_vjp import Rule, custom_jvp_call_p
from minijax.extend.core import set_current_trace
from minijax.extend.linear_util import wrap_init
from minijax.util.source_info import DebugInfo


class Trace(core.Trace):
    """What a library's trace inherits from: it has its `parent_trace` before it is initialised."""

    level: core.Level
    parent_trace: Any

    def __init__(self) -> None:
        super().__init__(core.Level(self.parent_trace), self.parent_trace)
        self.ground = self.parent_trace
        self.level.trace = self  # type: ignore[attr-defined]

    def __init_subclass__(cls) -> None:
        process = cls.process_primitive

        def process_primitive(self: Trace, primitive: core.Primitive, args: Sequence[Any],
                              params: Params) -> list:
            """The results, as a list, of the library's rule, which returns one of one."""
            if primitive is custom_jvp_call_p and "fun" in params:
                info = DebugInfo("custom_jvp", params["name"])
                fun, jvp = (wrap_init(params[name], debug_info=info) for name in ("fun", "jvp"))
                return self.process_custom_jvp_call(  # type: ignore[attr-defined]
                    primitive, fun, jvp, args, symbolic_zeros=False)
            return primitive.listed(process(self, primitive, args, params))
        cls.process_primitive = process_primitive  # type: ignore[assignment,method-assign]

    def full_raise(self, x: Any) -> Any:
        """The value itself: no trace makes tracers of others' values."""
        return x


def _set_trace(tracer: core.Tracer, trace: Trace) -> None:
    tracer.level, tracer.frames = trace.level, ()


# A library's tracer is not initialised: it sets its `_trace`, and has an `aval`.
core.Tracer._trace = property(lambda tracer: tracer.level.trace, _set_trace)


def _bind_with_trace(primitive: core.Primitive, trace: core.Trace, args: Sequence[Any],
                     avals: Sequence[Any], params: Params) -> Any:
    """Bind a primitive under a trace; one whose function has a rule of its own by `subfuns`."""
    functions = {}
    if "subfuns" in params:
        fun, jvp = params["subfuns"]
        call = lambda *xs: jvp.call_wrapped(*map(core.instantiate, xs))
        functions = {"name": fun.__name__, "subfuns": (fun, Rule(call, {}))}
    with set_current_trace(trace):
        return primitive.bind(*args, **functions or params)


core.Primitive.bind_with_trace = _bind_with_trace  # type: ignore[attr-defined]


def _take_shardings(primitive: core.Primitive) -> None:
    """Let a primitive take JAX's parameter for the sharding of its result, where it is None."""
    bind = primitive.bind
    primitive.bind = lambda *args, **params: bind(*args, **{  # type: ignore[method-assign]
        name: value for name, value in params.items()
        if value is not None or name not in ("sharding", "out_sharding")})


for _primitive in (lax.broadcast_in_dim_p, lax.convert_element_type_p, lax.dot_general_p,
                   lax.iota_p, lax.reduce_sum_p, lax.reshape_p):
    _take_shardings(_primitive)
