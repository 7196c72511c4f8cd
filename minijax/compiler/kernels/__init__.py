"""Hand-written loop nests for algorithms; each is a rule of a primitive.

Builds on the primitives for their constants.  Chapter 24, *Loops and Numba*.
In JAX: what XLA's CPU backend calls its runtime functions for.
"""

from typing import TYPE_CHECKING

from minijax.util import lazily

if TYPE_CHECKING:
    from minijax.compiler.kernels.complex_matrices import lu as complex_lu, triangular_solve
    from minijax.compiler.kernels.convolutions import convolution
    from minijax.compiler.kernels.fft import fourier, of_real, to_real
    from minijax.compiler.kernels.prefix_sums import running
    from minijax.compiler.kernels.products import dot_general
    from minijax.compiler.kernels.scattering import scatter
    from minijax.compiler.kernels.sorting import sort, top_k

lazily.attach(globals())
