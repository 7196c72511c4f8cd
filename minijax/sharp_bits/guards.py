"""JAX's guard flags at run time: implicit transfers and retracing.

Builds on `core`, `config`.  All memory here is the host's; as in JAX on the CPU, converting a
Python number or a NumPy array to an array is a transfer.  In JAX: `jax/_src/config.py`.
"""

import logging
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from minijax import config, core, errors
from minijax.util.context import with_values
from minijax.core import Avals, Params, Primitive, ShapedArray, tracing
from minijax.util.source_info import DebugInfo

T = TypeVar("T")
logger = logging.getLogger("minijax")
_explicit: ContextVar[bool] = ContextVar("minijax_explicit", default=False)


def explicit_transfer(transfer: Callable[..., T], *args: Any) -> T:
    """`transfer(*args)`, as an explicit transfer."""
    return with_values({_explicit: True}, transfer, *args)


def implicit_transfer(x: Any, dtype: np.dtype) -> None:
    """Check an implicit transfer of NumPy data; during tracing it becomes a constant."""
    if core.current_trace.get() is core.base_trace:
        _check_transfer(ShapedArray(np.shape(x), dtype))


def evaluated(evaluate: Callable[..., T], primitive: Primitive, args: Sequence[Any],
              params: Params) -> T:
    """The outputs of an operation; numbers among its operands are implicit transfers."""
    for x in args:
        if x.is_literal:
            _check_transfer(x.aval)
    return explicit_transfer(evaluate, primitive, args, params)  # what it needs for itself


def _check_transfer(aval: ShapedArray) -> None:
    guard = config.transfer_guard_host_to_device.value
    if guard == "allow" or _explicit.get() and not guard.endswith("_explicit"):
        return
    transfer = (f"host-to-device transfer: aval={aval!r}, dst_sharding=SingleDeviceSharding("
                "device=CpuDevice(id=0), memory_kind=device)")
    if guard.startswith("log"):
        logger.warning(transfer)
        return
    raise errors.with_cure(
        errors.JaxRuntimeError(f"INVALID_ARGUMENT: Disallowed {transfer}"),
        "A transfer by jax.device_put is explicit, which transfer_guard('disallow') allows.")


def refused(evaluate: Callable, primitive: Primitive, args: Sequence[Any], params: Params) -> Any:
    """Refuse to run an operation: what is traced may be lowered and compiled, and no more."""
    raise errors.with_cure(
        RuntimeError(f"JAX tried to execute function {params.get('name', primitive.name)}, but the "
                     "no_execution config option is set"),
        "Trace it by jax.make_jaxpr or jax.eval_shape, or compile it by jit(f).lower(x).compile().")


def retraced(stage: Callable[..., T], fun: Any, in_avals: Avals, debug_info: DebugInfo | None) -> T:
    """Refuse to trace a user's function, if the flag forbids it."""
    if isinstance(fun, tracing.FlatFunction):
        whose = debug_info.func_src_info if debug_info is not None else fun.fun
        raise errors.with_cure(
            RuntimeError(f"re-tracing function {whose} for `jit`, but 'no_tracing' is set"),
            "Call the function with arguments of these types earlier, to have it traced by then.")
    return stage(fun, in_avals, debug_info)
