"""The core: types, arrays, traces, primitives, jaxprs, transformations.

Read `types`, `array`, `trace`, `conversion`, `primitive`; `jaxpr`, `tracing`; `jvp`, `vmap`,
`partial_eval`, `linearize`, `transpose`.  Chapters 01 to 07.
In JAX: `jax/_src/core.py`, `jax/_src/interpreters/`.
"""

from typing import TYPE_CHECKING

from minijax.core.types import (Avals, Effect, Effects, NamedAxisEffect, Outs, Params, Program,
                                ShapedArray, Undefined, Zero, dtype_name, has_key_dtype,
                                no_effects, physical_aval, programs_in)
from minijax.core.array import (AbstractArray, Array, ArrayImpl, Typed, alias, array_from_buffer,
                                deleted, donate, is_donated, is_literal,
                                level_of)
from minijax.core.trace import (Axis, EvalTrace, Level, RuleTrace, Trace, Tracer, as_method,
                                axes_key, base_trace, check_not_leaked, concrete_or_error,
                                current_source, current_trace, is_concrete, is_ref,
                                leaving_no_tracer, run_with, user_frames_for_errors)
from minijax.core.conversion import (as_value, as_value_or_raise, get_aval, is_array_like,
                                     refuse, refuse_mask, stand_ins, stood_for, typeof)
from minijax.core.primitive import (LOWERINGS, SLOTS, Cannot, Example, ForPrimitive, Primitive,
                                    bind_physically, cannot, joined_effects)

if TYPE_CHECKING:  # hooks set by `minijax/__init__`: operations of transformations, names of JAX
    from minijax.core.jaxpr import eval_jaxpr
    from minijax.extend.core import eval_context, max_dim, min_dim
    from minijax.primitives.ad_util import (add_cotangents, batch_to, instantiate, move_axis,
                                             public_tangent, repeated, zeros)
    from minijax.primitives.named_axes import pvary
    from minijax.transforms.scopes import ensure_compile_time_eval

AbstractValue = ShapedArray
