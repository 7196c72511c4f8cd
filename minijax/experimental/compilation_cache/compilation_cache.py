"""Where compiled programs are kept for the next process.

Stands on `config`.  In JAX: `jax/_src/compilation_cache.py`.
"""

from minijax import config

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: str) -> None:
    """Keep them in this directory: the flag ``jax_compilation_cache_dir``.

    >>> set_cache_dir(config.read("jax_compilation_cache_dir"))
    """
    config.update("jax_compilation_cache_dir", path)


def reset_cache() -> None:
    """Forget where they are kept, for the flag to say it: it is asked each time here.

    >>> reset_cache()
    """
