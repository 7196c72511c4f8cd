"""Lazy operators and methods of arrays: the first use loads them.

Builds on nothing; `minijax/__init__` sets the hook, `numpy.operators` defines them.
Chapter 02, *Primitives and tracers*.  JAX sets them when it is imported.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar


class Operators:
    """Operators and methods of arrays, which `minijax.numpy` defines; the first use loads them.

    `load` is the hook: it puts them on `Array`.  By default there are none.
    """

    __slots__ = ()
    load: ClassVar[Callable[[], Any]] = staticmethod(lambda: None)

    def __getattr__(self, name: str) -> Any:
        Operators.load()
        return object.__getattribute__(self, name)


def loading(name: str) -> Callable[..., Any]:
    """A special method that loads the operators, and calls the one that has replaced it."""
    def method(self: Any, *args: Any) -> Any:
        Operators.load()
        loaded = getattr(type(self), name)
        return (getattr(object, name) if loaded is method else loaded)(self, *args)
    return method


# To a type checker an array may have any operator and method.
Methods: Any = Any if TYPE_CHECKING else Operators

BINARY = ("add and divmod floordiv lshift matmul mod mul or pow rshift sub truediv xor").split()
SPECIAL = [*BINARY, *(f"r{name}" for name in BINARY), *(
    "abs array array_namespace bool buffer complex contains copy deepcopy dlpack dlpack_device eq "
    "float format ge getitem gt index int invert iter le lt ne neg pos reduce repr reversed "
    "round setitem str").split()]
for _name in SPECIAL:  # Python looks for these on the class
    setattr(Operators, f"__{_name}__", loading(f"__{_name}__"))
