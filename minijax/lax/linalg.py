"""`minijax.lax.linalg`: factorisations of matrices and triangular systems.

Stands on `primitives`.  In JAX: `jax/lax/linalg.py`.
"""

from minijax.primitives.linalg import (
    cholesky as cholesky, cholesky_p as cholesky_p, triangular_solve as triangular_solve,
    triangular_solve_p as triangular_solve_p,
)
from minijax.primitives.lu import (
    lu as lu, lu_p as lu_p, lu_pivots_to_permutation as lu_pivots_to_permutation,
    lu_pivots_to_permutation_p as lu_pivots_to_permutation_p,
)
from minijax.primitives.spectral import (
    eigh as eigh, eigh_p as eigh_p, qr as qr, qr_p as qr_p, svd as svd, svd_p as svd_p,
)
from minijax.tracebacks import guard as _guard

_guard(globals())
