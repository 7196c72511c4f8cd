"""`minijax.scipy.cluster`: vector quantisation.

Builds on `numpy`.  In JAX: `jax/scipy/cluster/__init__.py`.
"""

from minijax.scipy.cluster import vq as vq
