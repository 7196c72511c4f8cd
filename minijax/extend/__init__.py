"""For extensions of the library: `extend.core` has the types of interpreters and primitives.

In JAX: `jax/extend/`.
"""

from minijax.extend import core as core
from minijax.util import lazily

lazily.attach(globals(), table={})  # the other modules are loaded when a program names them
