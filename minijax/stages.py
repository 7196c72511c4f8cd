"""The stages of a compiled function, from its program to machine code.  Chapter 08.

Stands on `higher_order.compiled`.  In JAX: `jax/stages.py`.
"""

from minijax.higher_order.compiled import ArgInfo, Compiled, Lowered, Traced
from minijax.higher_order.jit import JitFunction as Wrapped

__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced", "Wrapped"]
