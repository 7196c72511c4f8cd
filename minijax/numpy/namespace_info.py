"""The array API's inspection of a namespace: version, devices, dtypes and limits.

Builds on `dtypes` and `device_put`.  Chapter 01, *Arrays, dtypes and weak types*.
In JAX: `jax/_src/numpy/array_api_metadata.py`.
"""

from typing import Any

import numpy as np

from minijax import config, dtypes
from minijax.placement.device_put import devices

__array_api_version__ = "2024.12"

_NARROW = "bool int8 int16 int32 uint8 uint16 uint32 float32 complex64".split()
_WIDE = "int64 uint64 float64 complex128".split()


class ArrayNamespaceInfo:
    """The result of `__array_namespace_info__`; all devices have the same dtypes."""

    def capabilities(self) -> dict[str, Any]:
        """The capabilities of compiled functions, and the largest number of axes."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """None: the default device is not fixed."""

    def devices(self) -> list[Any]:
        """All devices, and None for the default."""
        return [None, *devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """The dtypes that arrays of Python numbers, and indices, have."""
        return {"real floating": dtypes.default_float_dtype(),
                "complex floating": dtypes.dtype(complex),
                "integral": dtypes.default_int_dtype(), "indexing": dtypes.default_int_dtype()}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
               ) -> dict[str, np.dtype[Any]]:
        """The array API's dtypes, or those of a kind or of several, by their names.

        Raises:
          KeyError: for an unknown kind.
        """
        kinds = ("numeric", "bool") if kind is None else kind if isinstance(kind, tuple) else (
            kind,)
        names = [*_NARROW, *(_WIDE if config.enable_x64.value else ())]
        return {dtype.name: dtype for each in kinds for dtype in dtypes.KINDS[each]
                if dtype.name in names}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """The array API's inspection of `minijax.numpy`.

    >>> __array_namespace_info__().dtypes(kind="real floating")
    {'float32': dtype('float32')}
    """
    return ArrayNamespaceInfo()
