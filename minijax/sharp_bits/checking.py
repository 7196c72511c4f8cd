"""The checks at each event of evaluation, tracing and compilation, and their flags.

Builds on the checks; loaded when a flag is first on.  Chapter 19, *NaNs*.
JAX reads its flags where it evaluates, compiles and transforms.
"""

import functools
from collections.abc import Callable
from typing import Any

from minijax import config, profiler
from minijax.sharp_bits import (guards, key_reuse, leaks, nans, out_of_bounds, purity, recompiles,
                                truncation)

NON_FINITE = (config.debug_nans, config.debug_infs)
# The checks of each moment, each with its flags; the first is the outermost.
CHECKS: dict[str, list[tuple[Any, ...]]] = {
    "operation": [(guards.refused, config.no_execution), (nans.evaluated, *NON_FINITE),
                  (key_reuse.evaluated, config.debug_key_reuse),
                  (profiler.evaluated, config.profiling),
                  (guards.evaluated, config.transfer_guard_host_to_device)],
    "timed": [(profiler.record, config.profiling)],  # tracing and compilation
    "again": [(key_reuse.as_before, config.debug_key_reuse)],  # a derivative, after the function
    "batch": [(nans.batched, *NON_FINITE)],  # a batching rule
    "call": [(nans.called, *NON_FINITE)],  # of compiled code, which Python could do as well
    "callback": [(nans.called_back, *NON_FINITE)],  # from compiled code
    "interpret": [(nans.interpreted, *NON_FINITE)],  # a program
    "enter": [(leaks.checked, config.check_tracer_leaks)],  # a transformation, on a user's function
    "level": [(leaks.watch, config.check_tracer_leaks), (nans.entered, *NON_FINITE)],  # of one
    "stage": [(guards.retraced, config.no_tracing), (purity.watched, config.debug_purity)],
    "lookup": [(purity.check_current, config.debug_purity)],  # of a jitted function's trace
    "miss": [(recompiles.explain_miss, config.debug_recompiles, config.explain_cache_misses)],
    # NumPy data that becomes an array; and the argument of `device_put`
    "narrow": [(truncation.check, config.debug_dtype_truncation),
               (guards.implicit_transfer, config.transfer_guard_host_to_device)],
    "put": [(guards.explicit_transfer, config.transfer_guard_host_to_device)],
    "gpu": [(truncation.check_products, config.debug_dtype_truncation)],  # of a program for one
    "index": [(out_of_bounds.check, config.debug_out_of_bounds)],
    "cast": [(out_of_bounds.check_cast, config.debug_unsafe_casts)]}


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
    return [check for check, *flags in CHECKS[moment]
            if any(flag.value not in (False, None, "allow") for flag in flags)]
