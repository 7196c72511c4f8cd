"""Batching rules of one's own.  Stands on `higher_order.custom_batching`.  Chapter 10.

In JAX: `jax/custom_batching.py`.
"""

from minijax.higher_order.custom_batching import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
