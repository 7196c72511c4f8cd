"""Debugging of compiled programs: `debug.print`, `debug.callback`, `debug.breakpoint`.

Builds on `custom.debug_callback`, `debug_breakpoint`.  Chapter 12.  In JAX: `jax/debug.py`.
"""

from minijax.custom.debug_breakpoint import breakpoint
from minijax.custom.debug_callback import (DebugEffect, OrderedDebugEffect,
                                           debug_callback as callback, debug_log as log,
                                           debug_print as print)
from minijax.placement.out_sharding import (inspect_array_sharding, visualize_array_sharding,
                                            visualize_sharding)
from minijax.util.exports import export_all as _export_all

_export_all(globals())
