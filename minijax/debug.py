"""Looking into running programs: `debug.print`, `debug.callback`.

Stands on `higher_order.callbacks`.  Chapter 12.  In JAX: `jax/debug.py`.
"""

from minijax.higher_order.callbacks import debug_callback as callback
from minijax.higher_order.callbacks import debug_print as print
from minijax.laid_out import (inspect_array_sharding, visualize_array_sharding,
                              visualize_sharding)

__all__ = ["callback", "inspect_array_sharding", "print", "visualize_array_sharding",
           "visualize_sharding"]
