"""Sparse arrays: `BCOO`, the values and the indices of the elements that are stored.

`sparsify` runs a function of `jax.numpy` on them; `grad` and its like differentiate by their data.
Builds on `numpy`, `lax`, `vmap`.  In JAX: `jax/experimental/sparse/`.
"""

from typing import Any

from minijax.experimental.sparse.ad import grad, jacfwd, jacobian, jacrev, value_and_grad
from minijax.experimental.sparse.bcoo import (
    BCOO, JAXSparse, SparseEfficiencyError, SparseEfficiencyWarning, bcoo_concatenate, bcoo_extract,
    bcoo_fromdense, bcoo_reduce_sum, bcoo_reshape, bcoo_rev, bcoo_slice, bcoo_sort_indices,
    bcoo_squeeze, bcoo_sum_duplicates, bcoo_todense, bcoo_transpose, bcoo_update_layout, empty, eye,
    random_bcoo, todense)
from minijax.experimental.sparse.products import (bcoo_dot_general, bcoo_multiply_dense,
                                                  bcoo_multiply_sparse)
from minijax.experimental.sparse.transform import bcoo_broadcast_in_dim, sparsify
from minijax.util import absent


def __getattr__(name: str) -> Any:
    """Refuses JAX's other formats, their functions and the modules by name."""
    if sentence := absent.sentence(f"{__name__}.{name}"):
        raise AttributeError(sentence)
    if name.startswith(("bcsr_", "csr_", "coo_")):
        raise AttributeError(f"minijax has no jax.experimental.sparse.{name}: of the formats it "
                             "has BCOO, which BCOO.from_scipy_sparse makes of SciPy's matrices")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
