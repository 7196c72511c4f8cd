"""Metadata of operations for XLA, which changes no number: accepted without effect.

Builds on nothing.  In JAX: `jax/_src/xla_metadata.py`.
"""

import contextlib
from collections.abc import Callable
from typing import Any

__all__ = ["set_xla_metadata"]


class _Metadata(contextlib.nullcontext):
    """A block, or a decorator that returns the function itself."""

    def __call__(self, f: Callable) -> Callable:
        return f


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Metadata of a tree of arrays, which is returned; without one, of a block or a function.

    Args:
      x: a tree of arrays.
      kwargs: the metadata.

    >>> with set_xla_metadata(scheduling="late"):
    ...     set_xla_metadata(1.5, note="a number")
    1.5
    """
    return _Metadata() if x is None else x
