"""For extensions of the library: `extend.core` has what interpreters and primitives need.

In JAX: `jax/extend/`.
"""

from minijax.extend import core as core
