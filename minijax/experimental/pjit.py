"""The deprecated name of `jax.jit` for arrays on several devices.

Builds on `transforms.jit`.  In JAX: `jax/experimental/pjit.py`.
"""

from typing import Any

from minijax import errors
from minijax.transforms.jit import jit


def __getattr__(name: str) -> Any:
    if name != "pjit":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    errors.warn("jax.experimental.pjit.pjit has been deprecated. Please use `jax.jit` instead.",
                DeprecationWarning)
    return jit
