"""The deprecated name of `jax.shard_map`.

Builds on `shard_map`.  In JAX: `jax/experimental/shard_map.py`.
"""

from collections.abc import Callable
from typing import Any

from minijax import errors, shard_map as of_meshes


def _shard_map(f: Callable, mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True
               ) -> Callable:
    """`jax.shard_map`, with its former parameters: `check_rep` is `check_vma`."""
    return of_meshes(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


def __getattr__(name: str) -> Any:
    if name != "shard_map":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    errors.warn("jax.experimental.shard_map is deprecated in v0.8.0. Used jax.shard_map instead.",
                DeprecationWarning)
    return _shard_map
