"""Custom batching rules.  Builds on `custom.custom_vmap`.  Chapter 10.

In JAX: `jax/custom_batching.py`.
"""

from minijax.custom.custom_vmap import custom_vmap, sequential_vmap
