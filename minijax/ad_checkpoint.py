"""Policies of checkpointing, and names for what they keep.  Chapter 10.

Stands on `higher_order.checkpoint`.  In JAX: `jax/ad_checkpoint.py`.
"""

from minijax.higher_order.checkpoint import checkpoint, remat
from minijax.higher_order.policies import checkpoint_name, checkpoint_policies

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "remat"]
