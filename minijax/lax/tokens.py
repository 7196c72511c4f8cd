"""Tokens, which order effects in JAX; here programs keep their order, and a token says nothing.

Builds on `trees`.  In JAX: `jax/_src/lax/lax.py`.
"""

from dataclasses import dataclass
from typing import Any

from minijax import tree_util


@tree_util.register_static
@dataclass(frozen=True, repr=False)
class Token:
    """What happened before; a tree without leaves, which goes through every transformation."""

    def block_until_ready(self) -> None:
        """Nothing is waited for: what a token stands for was computed when it was made."""


def create_token(_: Any = None) -> Token:
    """A token before which nothing has to happen; the argument is ignored.

    >>> from minijax import jit
    >>> jit(lambda x: (create_token(), x))(1.5)[0] == create_token()
    True
    """
    return Token()


def after_all(*operands: Token) -> Token:
    """A token after all of these.

    Raises:
      TypeError: for other arguments.

    >>> after_all(create_token(), create_token()) == create_token()
    True
    """
    if not all(isinstance(x, Token) for x in operands):
        raise TypeError("Arguments to after_all must be tokens")
    return Token()
