"""The stages of a compiled function, from jaxpr to machine code.  Chapter 08.

Builds on `transforms.compiled`.  In JAX: `jax/stages.py`.
"""

from minijax.transforms.stages import ArgInfo, Compiled, Lowered, Traced
from minijax.transforms.jit import JitFunction as Wrapped
