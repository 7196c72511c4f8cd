"""The checks at each event of evaluation, tracing and compilation, and their flags.

Builds on the checks; loaded when a flag is first on.  Chapter 19, *NaNs*.
JAX reads its flags where it evaluates, compiles and transforms.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from minijax import config, profiler
from minijax.sharp_bits import (guards, key_reuse, leaks, nans, out_of_bounds, purity, recompiles,
                                truncation)

T = TypeVar("T")
Flags = tuple[config.Flag, ...]

NON_FINITE = (config.debug_nans, config.debug_infs)
KEYS, LEAKS = (config.debug_key_reuse,), (config.check_tracer_leaks,)
PURITY, NARROW = (config.debug_purity,), (config.debug_dtype_truncation,)
PROFILE, EXECUTION = (config.profiling,), (config.no_execution,)
TRANSFERS, TRACING = (config.transfer_guard_host_to_device,), (config.no_tracing,)
BOUNDS, CASTS = (config.debug_out_of_bounds,), (config.debug_unsafe_casts,)
# The checks of each moment, with their flags; the first is the outermost.
CHECKS: dict[str, list[tuple[Flags, Callable]]] = {
    "operation": [(EXECUTION, guards.refused), (NON_FINITE, nans.evaluated),
                  (KEYS, key_reuse.evaluated), (PROFILE, profiler.evaluated),
                  (TRANSFERS, guards.evaluated)],
    "timed": [(PROFILE, profiler.record)],   # tracing and compilation
    "again": [(KEYS, key_reuse.as_before)],  # a derivative, after the function
    "batch": [(NON_FINITE, nans.batched)],   # a batching rule
    "call": [(NON_FINITE, nans.called)],     # of compiled code, which Python could do as well
    "callback": [(NON_FINITE, nans.called_back)],  # from compiled code
    "interpret": [(NON_FINITE, nans.interpreted)],  # a program
    "enter": [(LEAKS, leaks.checked)],       # a transformation, on a user's function
    "level": [(LEAKS, leaks.watch), (NON_FINITE, nans.entered)],  # of a transformation
    "stage": [(TRACING, guards.retraced), (PURITY, purity.watched)],  # a function
    "lookup": [(PURITY, purity.check_current)],  # of a jitted function's trace
    "miss": [((config.debug_recompiles, config.explain_cache_misses), recompiles.explain_miss)],
    # NumPy data that becomes an array; and the argument of `device_put`
    "narrow": [(NARROW, truncation.check), (TRANSFERS, guards.implicit_transfer)],
    "gpu": [(NARROW, truncation.check_products)],  # of a program that is compiled for one
    "put": [(TRANSFERS, guards.explicit_transfer)],
    "index": [(BOUNDS, out_of_bounds.check)],
    "cast": [(CASTS, out_of_bounds.check_cast)],
}


def notify(moment: str, *facts: Any, **details: Any) -> None:
    """Run the enabled checks of a moment."""
    for check in _enabled_checks(moment):
        check(*facts, **details)


def wrap(moment: str, run: Any) -> Any:
    """The function of an event, wrapped in its enabled checks."""
    for check in reversed(_enabled_checks(moment)):
        run = functools.partial(check, run)
    return run


def _enabled_checks(moment: str) -> list[Callable]:
    return [check for flags, check in CHECKS[moment]
            if any(flag.value not in (False, None, "allow") for flag in flags)]
