"""Hand-written loop nests for algorithms; each is a rule of a primitive.

Builds on the primitives for their constants.  Chapter 24, *Loops and Numba*.
In JAX: what XLA's CPU backend calls its runtime functions for.
"""

from ..complex_matrices import lu as complex_lu, triangular_solve as triangular_solve
from .convolutions import convolution as convolution
from .fft import fourier as fourier, of_real as of_real, to_real as to_real
from .prefix_sums import running as running
from .products import dot_general as dot_general
from .scattering import scatter as scatter
from .sort import sort as sort, top_k as top_k
