"""`minijax.scipy`: the parts of SciPy that JAX has, as composites over `numpy` and `lax`.

Stands on `numpy`.  In JAX: `jax/scipy/__init__.py`.
"""

from minijax.scipy import linalg, special, stats
from minijax.tracebacks import guard as _guard

_guard(vars(linalg), vars(special))
