"""The primitives, for interpreters that distinguish equations by them.

Builds on `lax`, and on all that has equations.  In JAX: `jax/extend/core/primitives.py`.
"""

from typing import Any

from minijax import lax
from minijax.ad_checkpoint import name_p  # noqa: F401
from minijax.extend.core import CallPrimitive
from minijax.custom.checkpoint import checkpoint_p as remat_p  # noqa: F401
from minijax.transforms.compiled import jit_p  # noqa: F401
from minijax.custom.custom_jvp_vjp import custom_jvp_call_p, custom_vjp_call_p  # noqa: F401
from minijax.lax.linalg import (  # noqa: F401
    cholesky_p, eig_p, eigh_p, hessenberg_p, lu_p, qr_p, schur_p, svd_p, triangular_solve_p,
    tridiagonal_p)
from minijax.primitives.ad_util import add_any_p as add_jaxvals_p  # noqa: F401
from minijax.primitives.keys import (  # noqa: F401
    random_bits_p, random_fold_in_p, random_seed_p, random_split_p)
from minijax.primitives.threefry import threefry2x32_p  # noqa: F401

call_p, closed_call_p = CallPrimitive("call"), CallPrimitive("closed_call")


def __getattr__(name: str) -> Any:
    if name.endswith("_p"):
        return getattr(lax, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(name for name in {*globals(), *dir(lax)} if name.endswith("_p"))
