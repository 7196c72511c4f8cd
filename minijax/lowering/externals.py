"""Every named external, by its name.

Stands on library.py and on those that define some: products.py, lapack.py, host.py. Chapter 24.
In JAX: the registry of custom calls.
"""

from __future__ import annotations

from collections.abc import Callable

from .host import host_call, is_host_call
from .lapack import ROUTINES
from .library import External
from .products import PRODUCTS

EXTERNALS: dict[str, External] = PRODUCTS | ROUTINES


def external(name: str) -> External:
    """Return the external of this name, or raise KeyError naming those that exist.

    >>> external("sgemm").name
    'sgemm'
    """
    if is_host_call(name):
        return host_call(name)
    if name not in EXTERNALS:
        raise KeyError(f"there is no external {name!r}; there are {', '.join(EXTERNALS)}")
    return EXTERNALS[name]


def meaning(name: str) -> Callable[..., None]:
    """Return what an external does, in NumPy."""
    return external(name).meaning
