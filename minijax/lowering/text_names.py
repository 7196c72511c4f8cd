"""The names in the text of a kernel: those of its values, and what they may call.

Stands on scalars.py, externals.py and printing.py. Chapter 24.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.printing import Names

from .externals import meaning
from .loops import OPS, Buffer, Kernel, Variable
from .scalars import BFLOAT16

# NumPy's words where the name of an operation is Python's already.
CALLED = {"min": "minimum", "max": "maximum"}

_DTYPES = [np.dtype(d) for d in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16",
                                 "uint32", "uint64", "float16", "float32", "float64")]
_DTYPES.append(BFLOAT16)


def _alike(operation: Callable[..., Any]) -> Callable[..., Any]:
    """The operation on scalars, where a bare number takes the dtype of its neighbours."""

    def run(*args: Any) -> Any:
        dtype = next((x.dtype for x in reversed(args) if isinstance(x, np.generic)), None)
        return operation(*(x if isinstance(x, np.generic) or dtype is None
                           else np.asarray(x).astype(dtype)[()] for x in args))

    return run


class _Converter:
    """A dtype that converts what it is called with, as the loops do."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype

    def __call__(self, x: Any) -> Any:
        return OPS["convert"].meaning(np.asarray(x), self.dtype)


def _at(x: np.ndarray, position: int) -> np.ndarray:
    return x.reshape(-1)[position:]


def _external(name: str) -> Callable[..., None]:
    computed = meaning(name)

    def run(*args: Any) -> None:
        computed(*(x.reshape(-1) if isinstance(x, np.ndarray) else x for x in args))

    return run


class _Namespace(dict):
    """The names of the text; library externals are looked up when they are first called."""

    def __missing__(self, name: str) -> Any:
        try:
            return self.setdefault(name, _external(name))
        except KeyError:
            raise NameError(name) from None


def runtime() -> dict[str, Any]:
    """The names that the text uses: converters, operations, and a range of NumPy integers."""
    names: dict[str, Any] = {CALLED.get(name, name): _alike(op.meaning)
                             for name, op in OPS.items()}
    for dtype in _DTYPES:
        names[dtype_name(dtype)] = _Converter(dtype)
    names["select"] = lambda c, x, y: _alike(lambda x, y: x if c else y)(x, y)
    names["bitcast"] = lambda x, to: OPS["bitcast"].meaning(x, to.dtype)
    names["range"] = lambda *ends: (np.int64(i) for i in range(*ends))
    names["empty"] = lambda shape, to: np.zeros(shape, to.dtype)
    names.update(at=_at, inf=float("inf"), nan=float("nan"))
    return _Namespace({**_builtins(), **names})


def _builtins() -> dict[str, Any]:
    # A dict subclass sees missing names only if `exec` does not add the builtins' module itself.
    return {"__builtins__": {}, "abs": abs, "True": True, "False": False}


def dtype_name(dtype: np.dtype) -> str:
    return "bool_" if dtype == np.bool_ else dtype.name


class Namer:
    """Gives every scalar, variable and buffer a name of its own, the jaxpr's where it has one."""

    def __init__(self, kernel: Kernel) -> None:
        self.jaxpr_names = Names(kernel.notes.get("jaxpr"))
        self.origins = dict(kernel.notes.get("origins", {}))
        for scalar, variable in kernel.notes.get("finals", {}).items():
            if scalar in self.origins:
                self.origins.setdefault(variable, self.origins[scalar])
        self.taken = {*Namer.reserved(), *keyword.kwlist}
        self.names: dict[Any, str] = {}
        jaxpr = kernel.notes.get("jaxpr")
        if jaxpr is not None:
            for v in (*jaxpr.constvars, *jaxpr.invars, *(v for e in jaxpr.eqns for v in e.outvars)):
                self.jaxpr_names.of(v)
        for buffer in (*kernel.inputs, *kernel.outputs, *kernel.constants, *kernel.temps):
            self.of(buffer)

    @staticmethod
    def reserved() -> set[str]:
        """The names that the text uses for itself."""
        operations = {CALLED.get(name, name) for name in OPS}
        return {*operations, *map(dtype_name, _DTYPES), "range", "empty", "at", "inf", "nan"}

    def of(self, thing: Any) -> str:
        """The name of a thing, chosen when it is first asked for."""
        if thing not in self.names:
            self.names[thing] = self.unused(self._wish(thing))
        return self.names[thing]

    def _wish(self, thing: Any) -> str:
        v = self.origins.get(thing)
        if v is not None and not hasattr(v, "val"):
            name = self.jaxpr_names.of(v)
            if name.isidentifier() and name != "_":
                return name
        if isinstance(thing, Buffer):
            return thing.name.rstrip("0123456789")
        return "acc" if isinstance(thing, Variable) else "t"

    def unused(self, wish: str) -> str:
        """The wished name, or that name with the first free number."""
        name, number = wish, 1
        while name in self.taken:
            number += 1
            name = f"{wish}{number}"
        self.taken.add(name)
        return name
