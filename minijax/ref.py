"""Arrays that can be written in place.  Stands on `higher_order.references`.  Chapter 13.

In JAX: `jax/ref.py`.
"""

from minijax.higher_order.references import (AbstractRef, Ref, addupdate, empty_ref, free_ref,
                                             freeze, get, new_ref, set, swap)

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref",
           "set", "swap"]
