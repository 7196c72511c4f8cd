"""`minijax.scipy`: the parts of SciPy that JAX has, as composites over `numpy` and `lax`.

Stands on `numpy`.  In JAX: `jax/scipy/__init__.py`.
"""

from minijax.scipy import (cluster, fft, integrate, interpolate, linalg, ndimage, optimize, signal,
                           sparse, special, stats)
from minijax.util.tracebacks import guard as _guard

_guard(*map(vars, (cluster.vq, fft, integrate, linalg, ndimage, optimize, signal, special,
                   sparse.linalg)))
