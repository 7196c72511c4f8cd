"""Looking into running programs: `debug.print`, `debug.callback`, `debug.breakpoint`.

Stands on `higher_order.callbacks`, `debugger`.  Chapter 12.  In JAX: `jax/debug.py`.
"""

from minijax.debugger import breakpoint
from minijax.higher_order.callbacks import DebugEffect, OrderedDebugEffect
from minijax.higher_order.callbacks import debug_callback as callback
from minijax.higher_order.callbacks import debug_log as log
from minijax.higher_order.callbacks import debug_print as print
from minijax.laid_out import (inspect_array_sharding, visualize_array_sharding,
                              visualize_sharding)

__all__ = ["DebugEffect", "OrderedDebugEffect", "breakpoint", "callback",
           "inspect_array_sharding", "log", "print", "visualize_array_sharding",
           "visualize_sharding"]
