"""Arrays that other libraries made, without a copy: `from_dlpack`.

Builds on `numpy`.  In JAX: `jax/dlpack.py`.
"""

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.numpy import from_dlpack

__all__ = ["from_dlpack", "is_supported_dtype"]


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be exchanged by DLPack.

    Raises:
      TypeError: for None.

    >>> is_supported_dtype("float32"), is_supported_dtype("U3")
    (True, False)
    """
    if dtype is None:
        raise TypeError(f"Expected a string or dtype-like object; got {dtype=}")
    return np.dtype(dtype) in dtypes.VALID - {dtypes.float0}
