"""`minijax.lax.linalg`: factorisations of matrices and triangular systems.

Builds on `primitives`.  In JAX: `jax/lax/linalg.py`.
"""

from minijax.lax.polar import qdwh
from minijax.lax.systems import (cholesky_update, cholesky_update_p, householder_product,
                                 householder_product_p, ormqr, ormqr_p, symmetric_product,
                                 symmetric_product_p, tridiagonal_solve, tridiagonal_solve_p)
from minijax.primitives.lapack_host import (eig, eig_p, EigImplementation, hessenberg, hessenberg_p,
                                            qr, schur, schur_p, tridiagonal, tridiagonal_p)
from minijax.primitives.linalg import cholesky, cholesky_p, triangular_solve, triangular_solve_p
from minijax.primitives.lu import lu, lu_p, lu_pivots_to_permutation, lu_pivots_to_permutation_p
from minijax.primitives.eigh_svd import (eigh, eigh_p, EighImplementation, qr_p, svd, svd_p,
                                         SvdAlgorithm)
from minijax.transforms.prepared import export_all as _export_all


_export_all(globals())
