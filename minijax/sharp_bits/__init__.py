"""Checks for the traps that JAX leaves silent: one module for each, and a switch for all of them.

`checking` says which check looks at what; it is loaded, and the checks with it, when a flag is
first on.  `findings` says where a finding goes.
Chapters 12 to 20.  In JAX: each file names its counterpart, where there is one.
"""

from minijax import config
from minijax.sharp_bits.findings import (Finding as Finding,
                                         checking_sharp_bits as checking_sharp_bits, sharp_bits)

_CHECKING = "minijax.sharp_bits.checking"
call_checks = config.Hook(
    _CHECKING, config.debug_nans, config.debug_infs, config.debug_key_reuse, config.debug_purity,
    config.debug_dtype_truncation, config.profiling, *config.transfer_guard.together)
checks = config.Hook(_CHECKING, *sharp_bits.together, *call_checks.flags, config.no_tracing,
                     config.explain_cache_misses)
