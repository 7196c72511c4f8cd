"""What JAX calls experimental.  Stands on `higher_order`.

In JAX: `jax/experimental/__init__.py`.
"""

from minijax.higher_order.host_results import io_callback

__all__ = ["io_callback"]
