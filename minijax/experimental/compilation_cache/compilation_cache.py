"""The directory of compiled programs, which later processes load.

Builds on `config`.  In JAX: `jax/_src/compilation_cache.py`.
"""

from minijax import config

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: str) -> None:
    """Store compiled programs in this directory: the flag ``jax_compilation_cache_dir``.

    >>> set_cache_dir(config.read("jax_compilation_cache_dir"))
    """
    config.update("jax_compilation_cache_dir", path)


def reset_cache() -> None:
    """Read the flag again: here it is read for each program.

    >>> reset_cache()
    """
