"""For extensions of the library: `extend.core` has the types of interpreters and primitives.

In JAX: `jax/extend/`.
"""

from minijax.extend import core as core


def __getattr__(name: str) -> object:
    """The rest is loaded when a program names it."""
    import importlib
    if name in ("backend", "linear_util", "random"):
        return importlib.import_module(f"minijax.extend.{name}")
    raise AttributeError(f"module 'minijax.extend' has no attribute {name!r}")
