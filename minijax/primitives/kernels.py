"""How a block names loops that are an algorithm: `loop=kernel("sort")`.

Stands on `lowering.kernels`, where they are written, and loads it when it is first needed.
In JAX: the name of a custom call.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from minijax.lazily import importing


def kernel(name: str) -> Callable[..., None]:
    """The loops of that name which are written by hand: a `loop` or `library` rule."""
    def rule(b: Any, outputs: Sequence, operands: Sequence, **params: Any) -> None:
        with importing:
            f = getattr(importlib.import_module("minijax.lowering.kernels"), name)
        f(b, outputs, operands, **params)
    return rule
