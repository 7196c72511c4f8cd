"""The core: types, arrays, traces, primitives; beside them jaxprs and transformations.

Read `trace`, `primitive`, `jvp`, `vmap`, `jaxpr`, `tracing`, `partial_eval`, `linearize`,
`transpose`.  Chapters 01 to 07.  In JAX: `jax/_src/core.py`, `jax/_src/interpreters/`.
"""

from minijax.core.types import (Effect, Effects, NamedAxisEffect, Params, Program, ShapedArray,
                                Undefined, Zero, dtype_name, has_key_dtype, no_effects,
                                physical_aval, programs_in)
from minijax.core.array import (AbstractArray, Array, ArrayImpl, Operators, Typed, alias,
                                array_from_buffer, deleted, donate, is_donated)
from minijax.core.trace import (Axis, EvalTrace, Level, RuleTrace, Trace, Tracer, as_method,
                                base_trace, check_not_leaked, concrete_or_error, current_source,
                                current_trace, is_concrete, leak_message, leaving_no_tracer,
                                run_with, user_frames_for_errors)
from minijax.core.conversion import (as_value, as_value_or, get_aval, is_array_like, refuse_mask,
                                     stand_ins, stood_for, typeof)
from minijax.core.primitive import (LOWERINGS, SLOTS, Cannot, Example, ForPrimitive, Primitive,
                                    bind_physically, cannot, joined_effects)

AbstractValue = ShapedArray
