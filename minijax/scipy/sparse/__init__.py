"""`minijax.scipy.sparse`: linear equations with an implicit matrix.

Builds on `lax`.  In JAX: `jax/scipy/sparse/__init__.py`.
"""

from minijax.scipy.sparse import linalg as linalg
