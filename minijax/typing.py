"""Types for annotations: `ArrayLike`, `DTypeLike`.

In JAX: `jax/typing.py`.
"""

from typing import Any, Protocol, Union

import numpy as np

from minijax.core import Array


class SupportsDType(Protocol):
    """An object with a dtype."""

    @property
    def dtype(self) -> np.dtype: ...


# With `|` they would not be joined with the name of a class: "Module" | ArrayLike.
ArrayLike = Union[Array, np.ndarray, np.bool_, np.number, bool, int, float, complex]  # noqa: UP007
DTypeLike = Union[str, type[Any], np.dtype, SupportsDType]  # noqa: UP007

__all__ = ["ArrayLike", "DTypeLike"]
