"""Arrays that can be written in place.  Builds on `transforms.array_refs`.  Chapter 13.

In JAX: `jax/ref.py`.
"""

from minijax.transforms.array_refs import (AbstractRef, Ref, addupdate, empty_ref, free_ref, freeze,
                                           get, new_ref, set, swap)
