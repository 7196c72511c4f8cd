"""The error for a Python integer that is too large for an array, which names the argument.

Builds on `source_info`.  Chapter 15, *Non-array inputs*.  In JAX: `jax/_src/pjit.py`.
"""

from collections.abc import Callable
from typing import Any

from minijax import tree_util
from minijax.util import source_info

# Whose functions JAX compiles: it names the arguments of these computations.
_COMPILED = ("minijax.numpy.", "minijax.nn.", "minijax.random.")
_NOT_COMPILED = ("minijax.numpy.creation", "minijax.numpy.fft", "minijax.numpy.indexing",
                 "minijax.numpy.joining", "minijax.numpy.sets")


def too_large(x: int, dtype: Any) -> OverflowError:
    """The error for a Python integer that is too large for an array.

    Where it leaves a public function, it says for which of the arguments it was.
    """
    error = OverflowError(f"Python int {x} too large to convert to {dtype}")

    def settle(fun: Callable[..., Any], args: tuple, kwargs: dict) -> None:
        module = str(getattr(fun, "__module__", ""))
        if not module.startswith(_COMPILED) or module.startswith(_NOT_COMPILED):
            return
        names = source_info.describe(fun, args, kwargs, "jit").arg_names
        for leaf, name in zip(tree_util.tree_leaves((args, kwargs)), names, strict=False):
            if isinstance(leaf, int) and leaf == x:
                name_argument(error, name)
    error.value, error.settle = x, settle  # type: ignore[attr-defined]
    return error


def name_argument(error: OverflowError, name: str | None) -> None:
    """Name the argument of the outermost function that is too large."""
    if name and hasattr(error, "value"):
        error.args = ("An overflow was encountered while parsing an argument to a jitted "
                      f"computation, whose argument path is {name}. Got <class 'int'> with value "
                      f"{error.value}",)
