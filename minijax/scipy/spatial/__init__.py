"""`minijax.scipy.spatial`: rotations of space.

Builds on `numpy`.  In JAX: `jax/scipy/spatial/__init__.py`.
"""

from minijax.scipy.spatial import transform as transform
