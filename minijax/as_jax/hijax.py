"""JAX's user-defined types, of which Flax has one: operations on them run at once, untraced.

Builds on `core`.  In JAX: `jax/experimental/hijax.py`.
"""

from collections.abc import Callable
from typing import Any

from minijax import core
from minijax.extend.rules import is_undefined_primal  # noqa: F401  under JAX's name
from minijax.primitives.ad_util import instantiate as instantiate_zeros  # noqa: F401

Zero, AbstractValue = core.Zero, core.ShapedArray


class MutableHiType:
    """The base class of custom types."""


class AvalQDD:
    """A type with its quasi-dynamic data: facts about the current value."""


class AvalMutableQDD(AvalQDD):
    """The same of a mutable value."""


class HiPrimitive:
    """An operation on values of such types, which its class has as `impl`."""

    impl: Callable

    def __init__(self, name: str):
        self.name = name

    def bind(self, *args: Any, **params: Any) -> Any:
        """Run it; arrays in such a value may be tracers, but no program has it as an argument."""
        return self.impl(*args, **params)


aval_property, aval_method = property, staticmethod  # of the tracers of such a type


def cur_qdd(x: Any) -> Any:
    """The quasi-dynamic data of a value."""
    return x.cur_qdd()


def register_hitype(kind: type, type_of: Callable) -> None:
    """Declare the type of a class's values; it is never used."""


class _Effects(set):
    """The effects that branches and loops may have: here all of them."""

    add_type = set.add


control_flow_allowed_effects = _Effects()
