"""`minijax.scipy`: the parts of SciPy that JAX has, as composites over `numpy` and `lax`.

Builds on `numpy`.  In JAX: `jax/scipy/__init__.py`.
"""

from typing import TYPE_CHECKING

from minijax.util import lazily

if TYPE_CHECKING:
    from minijax.scipy import (cluster, fft, integrate, interpolate, linalg, ndimage, optimize,
                               signal, sparse, spatial, special, stats)

__all__ = lazily.attach(globals())
del TYPE_CHECKING, lazily
