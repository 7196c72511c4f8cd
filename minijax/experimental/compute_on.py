"""The place of a computation in XLA: accepted without effect.

Builds on nothing.  In JAX: `jax/_src/compute_on.py`.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["compute_on", "compute_on2"]

_KINDS = ("device_host", "device", "tpu_sparsecore")


@contextlib.contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """A block, or a decorator, that changes no number.

    Args:
      compute_type: ``"device_host"``, ``"device"``, ``"tpu_sparsecore"`` or ``"gpu_stream:3"``.

    Raises:
      TypeError: for what is no string.
      ValueError: for another one.

    >>> with compute_on("device_host"):
    ...     pass
    """
    _check(compute_type)
    yield


def compute_on2(f: Callable | None = None, *, compute_type: str, out_memory_spaces: Any,
                compiler_options: Any = None) -> Any:
    """The function itself, or a decorator that returns it.

    Args:
      f: a function.
      compute_type: as for `compute_on`.
      out_memory_spaces, compiler_options: accepted for compatibility.

    Raises:
      TypeError, ValueError: as `compute_on`.

    >>> compute_on2(abs, compute_type="device_host", out_memory_spaces=None)(-1)
    1
    """
    _check(compute_type)
    return f if f is not None else lambda f: f


def _check(compute_type: str) -> None:
    if not isinstance(compute_type, str):
        raise TypeError("`compute_on`'s compute_type argument must be a string.")
    if compute_type not in _KINDS and not compute_type.startswith("gpu_stream:"):
        raise ValueError(f"Invalid compute type {compute_type}. Current supported values are "
                         "`device_host`, `device`, `tpu_sparsecore`, and `gpu_stream:#`.")
