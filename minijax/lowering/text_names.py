"""The names in the text of a kernel: those of its values, and what they may call.

Stands on scalars.py, routines.py and printing.py. Chapter 24.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from minijax.printing import Names

from .loops import OPS, Buffer, Kernel, Variable
from .routines import external
from .scalars import BFLOAT16, NumpyScalars

# NumPy's words where the name of an operation is Python's already.
CALLED = {"min": "minimum", "max": "maximum"}

_DTYPES = [BFLOAT16, *map(np.dtype, "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8".split())]


def _external(name: str) -> Callable[..., None]:
    computed = external(name).meaning

    def run(*args: Any) -> None:
        computed(*(x.reshape(-1) if isinstance(x, np.ndarray) else x for x in args))

    return run


def runtime(externals: Iterable[str] = ()) -> dict[str, Any]:
    """The names that the text uses: converters, operations, library routines, NumPy integers."""
    s = NumpyScalars()
    names: dict[str, Any] = {CALLED.get(name, name): getattr(s, name) for name in OPS}
    # A dtype converts what it is called with, as the loops do.
    names |= {dtype_name(dtype): partial(s.convert, dtype=dtype) for dtype in _DTYPES}
    names |= {name: _external(name) for name in externals}
    return names | {
        "__builtins__": {}, "inf": float("inf"), "nan": float("nan"),
        "at": lambda x, position: x.reshape(-1)[position:],
        "bitcast": lambda x, to: s.bitcast(x, **to.keywords),
        "range": lambda *ends: (np.int64(i) for i in range(*ends)),
        "empty": lambda shape, to: np.zeros(shape, **to.keywords)}


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
        self.taken = {*runtime(), *keyword.kwlist}
        self.names: dict[Any, str] = {}
        jaxpr = kernel.notes.get("jaxpr")
        if jaxpr is not None:
            for v in (*jaxpr.constvars, *jaxpr.invars, *(v for e in jaxpr.eqns for v in e.outvars)):
                self.jaxpr_names.of(v)
        for buffer in kernel.buffers:
            self.of(buffer)

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
