"""What annotations say of arguments: `ArrayLike`, `DTypeLike`.

In JAX: `jax/typing.py`.
"""

from typing import Any, Protocol

import numpy as np

from minijax.core import Array


class SupportsDType(Protocol):
    """What has a dtype."""

    @property
    def dtype(self) -> np.dtype: ...


ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike = str | type[Any] | np.dtype | SupportsDType

__all__ = ["ArrayLike", "DTypeLike"]
