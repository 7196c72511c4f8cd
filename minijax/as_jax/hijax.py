"""Stubs for JAX's user-defined types, which Flax declares; minijax does not trace them.

Builds on `core`.  In JAX: `jax/experimental/hijax.py`.
"""

from collections.abc import Callable
from typing import Any

from minijax import core
from minijax.extend.rules import is_undefined_primal  # noqa: F401  under JAX's name
from minijax.primitives.ad_util import instantiate as instantiate_zeros  # noqa: F401

Zero = core.Zero
AbstractValue = core.ShapedArray


class MutableHiType:
    """The base class of custom types."""


class AvalQDD:
    """A type with its quasi-dynamic data: facts about the current value."""


class AvalMutableQDD(AvalQDD):
    """The same of a mutable value."""


class HiPrimitive:
    """An operation on values of such types.

    Raises:
      NotImplementedError: when it is used.
    """

    def __init__(self, name: str):
        self.name = name

    def bind(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"{self.name}: minijax does not trace user-defined types; with "
                                  "Flax leave hijax=False, its default, for variables")


class aval_method:
    """A method that tracers of such a type have."""

    def __init__(self, fun: Callable):
        self.fun = fun


class aval_property:
    """A property that tracers of such a type have."""

    def __init__(self, fget: Callable):
        self.fget = fget


def register_hitype(kind: type, type_of: Callable) -> None:
    """Declare the type of a class's values; it is never used."""


class _Effects:
    """The effects that branches and loops may have: here all of them."""

    def add_type(self, effect: type) -> None:
        """Allow one more."""


control_flow_allowed_effects = _Effects()
