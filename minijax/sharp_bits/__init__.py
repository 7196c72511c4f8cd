"""Checks for JAX's silent traps: one module for each, and a switch for all of them.

`checking` lists the checks of each event; it is loaded, and the checks with it, when a flag is
first on.  `findings` raises, warns or collects.  Each module names its counterpart in JAX, if any.
Chapters 12 to 20.
"""

from minijax import config
from minijax.sharp_bits.findings import Finding, checking_sharp_bits, sharp_bits

_CHECKING = "minijax.sharp_bits.checking"
call_checks = config.Hook(_CHECKING, config.debug_nans, config.debug_infs, config.debug_key_reuse,
                          config.debug_purity, config.debug_dtype_truncation, config.profiling,
                          config.no_execution, *config.transfer_guard.together)
checks = config.Hook(_CHECKING, *sharp_bits.together, *call_checks.flags, config.no_tracing,
                     config.explain_cache_misses)
