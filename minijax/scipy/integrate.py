"""`minijax.scipy.integrate`: integrals of sampled functions.

Builds on `numpy`.  In JAX: `jax/_src/scipy/integrate.py`.
"""

from minijax.numpy.sequences import trapezoid
from minijax.transforms.prepared import export_all as _export_all

__all__ = ["trapezoid"]
_export_all(globals())
