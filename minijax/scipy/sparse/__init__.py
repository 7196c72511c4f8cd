"""`minijax.scipy.sparse`: equations whose matrix is never written down.

Stands on `lax`.  In JAX: `jax/scipy/sparse/__init__.py`.
"""

from minijax.scipy.sparse import linalg as linalg
