"""JAX's experimental modules.  Builds on `transforms`.

In JAX: `jax/experimental/__init__.py`.
"""

from minijax.custom.host_callback import io_callback

__all__ = ["io_callback"]
