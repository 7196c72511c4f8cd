"""Types for annotations: `ArrayLike`, `DTypeLike`.

In JAX: `jax/typing.py`.
"""

from typing import Any, Protocol

import numpy as np

from minijax.core import Array


class SupportsDType(Protocol):
    """An object with a dtype."""

    @property
    def dtype(self) -> np.dtype: ...


ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike = str | type[Any] | np.dtype | SupportsDType

__all__ = ["ArrayLike", "DTypeLike"]
