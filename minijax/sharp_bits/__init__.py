"""Checks for the traps that JAX leaves silent: one module for each, and a switch for all of them.

`checking` says which check looks at what; it is loaded, and the checks with it, when a flag is
first on.  `findings` says where a finding goes.
Chapters 12 to 20.  In JAX: each file names its counterpart, where there is one.
"""

from minijax import config
from minijax.util.lazily import importing
from minijax.sharp_bits.findings import (Finding as Finding,
                                         checking_sharp_bits as checking_sharp_bits, sharp_bits)


def _begin(value: object) -> None:
    with importing:
        from minijax.sharp_bits import checking
    checking.begin()


config.before_on((*sharp_bits.together, config.explain_cache_misses, config.profiling,
                  config.no_tracing, *config.transfer_guard.together), _begin)
