"""Arrays of one number, with a sharding: `full`, `full_like`.

Builds on `primitives.convert`, `placement.resharding`.  In JAX: `jax/_src/lax/lax.py`.
"""

from typing import Any

from minijax.placement.named_sharding import sharding_like
from minijax.placement.resharding import shard_value
from minijax.primitives import convert


def full(shape: Any, fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Any:
    """An array of one number.

    Args:
      shape: a sequence of sizes.
      fill_value: a scalar.
      dtype: by default that of the scalar, weak if it is.
      sharding: that of the array.

    Raises:
      TypeError: where `fill_value` is no scalar, or `shape` no sequence of sizes.

    >>> full((2,), 1.5)
    Array([1.5, 1.5], dtype=float32, weak_type=True)
    """
    return shard_value(convert.full(shape, fill_value, dtype), sharding)


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None,
              sharding: Any = None) -> Any:
    """An array of one number, by default of the shape, dtype and sharding of `x`.

    >>> import numpy as np
    >>> full_like(np.zeros(2), 7)
    Array([7., 7.], dtype=float32)
    """
    out = convert.full_like(x, fill_value, dtype, shape)
    return shard_value(out, sharding_like(x, out.shape) if sharding is None else sharding)
