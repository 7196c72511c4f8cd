"""A transformation at work: one line for each primitive, indented under the rule that binds it.

Builds on `core`.  Chapters 03, 04 and 07 watch `jvp`, `vmap` and `grad`.
JAX has no counterpart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from minijax import core
from minijax.transforms.prepared import prepared_calls
from minijax.util import jaxpr_text
from minijax.core import Primitive
from minijax.core.jaxpr import JaxprEqn

# What a reader calls the columns; another trace is called by its class.
COLUMNS = {"EvalTrace": "eval", "JVPTrace": "jvp", "BatchTrace": "vmap",
           "DynamicJaxprTrace": "stage", "SplitTrace": "record"}

NOTHING = "no primitive was seen; a jitted function that was traced before runs unseen"


@dataclass(eq=False)
class Line:
    """One primitive, met by one trace; `inner` is what its rule asked the parent for."""

    column: str
    level: int  # 0: evaluation, which has none
    primitive: str
    operands: Sequence[Any]
    results: Sequence[Any] | None = None  # None: it failed
    inner: list[Line] = field(default_factory=list)

    def text(self, names: Names, indent: int = 0) -> list[str]:
        call = " ".join([self.primitive, *map(names.of, self.operands)])
        results = "…" if self.results is None else ", ".join(map(names.defined, self.results))
        mine = f"{'  ' * indent}{self.column:6} {results} = {call}"
        return [mine] + [line for inner in self.inner for line in inner.text(names, indent + 1)]


class Names:
    """Short forms of values: numbers, types of larger arrays, letters for tracers."""

    def __init__(self) -> None:
        self._letters: dict[int, str] = {}

    def of(self, x: Any) -> str:
        if isinstance(x, core.Tracer):
            new = jaxpr_text.variable_name(len(self._letters))
            return self._letters.setdefault(id(x), new)
        aval = core.get_aval(x)
        if aval.shape == () and not core.has_key_dtype(aval):
            value = core.as_value(x)._buffer.item()
            return str(value) if isinstance(value, bool) else f"{value:.4g}"
        return aval.str_short(True)

    def defined(self, x: Any) -> str:
        """With its type where it has a letter."""
        return self.of(x) + (f":{x.aval.str_short(True)}" if isinstance(x, core.Tracer) else "")


class Watcher:
    """Listens to `Primitive.bind` and writes down who met what."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._open = [self.lines]
        self._thread = threading.get_ident()

    def run(self, fun: Callable, *args: Any, **kwargs: Any) -> Any:
        """Call a function and listen; Python floats go in as arrays."""
        ordinary = Primitive.bind

        def bind(primitive: Primitive, *args: Any, **params: Any) -> Any:
            return self.bind(ordinary, primitive, args, params)

        with mock.patch.object(Primitive, "bind", bind), prepared_calls(False):
            return fun(*[core.as_value(x) if isinstance(x, float) else x for x in args], **kwargs)

    def bind(self, ordinary: Callable, primitive: Primitive, args: Sequence[Any],
             params: dict[str, Any]) -> Any:
        if threading.get_ident() != self._thread:
            return ordinary(primitive, *args, **params)
        trace = core.current_trace.get()
        while not trace.concerns(primitive, args, params):
            trace = trace.parent or core.base_trace
        kinds = [kind.__name__ for kind in type(trace).__mro__]  # a check is an evaluation
        column = next((COLUMNS[kind] for kind in kinds if kind in COLUMNS), kinds[0])
        level = trace.level.depth if trace.level else 0
        line = Line(column, level, _with_params(primitive, params), args)
        self._open[-1].append(line)
        self._open.append(line.inner)
        try:
            outs = ordinary(primitive, *args, **params)
        finally:
            self._open.pop()
        line.results = outs if primitive.multiple_results else [outs]
        return outs

    def text(self) -> str:
        names = Names()
        return "\n".join(text for line in self.lines for text in line.text(names))


def _with_params(primitive: Primitive, params: dict[str, Any]) -> str:
    shown = jaxpr_text.printed_params(JaxprEqn([], [], primitive, params))
    text = " ".join(f"{name}={value}" for name, value in shown.items())
    if not text:
        return primitive.name
    return f"{primitive.name}[{text if len(text) <= 40 and chr(10) not in text else '…'}]"


def watch(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call a function and print every primitive that ran, and which transformation met it.

    A line under another, indented, was asked for by the rule of the upper one.  Letters are
    tracers; numbers and types stand for arrays of numbers.  Python floats go in as arrays, so that
    operators on them are seen.

    Returns:
      What the function returns.

    >>> import minijax
    >>> out = watch(lambda x: minijax.jvp(lambda y: y * y, (x,), (1.0,)), 3.0)
    jvp    b:f32[] = mul a a
      eval   9 = mul 3 3
      eval   3 = mul 1 3
      eval   3 = mul 3 1
      eval   6 = add_any 3 3
    """
    watcher = Watcher()
    try:
        return watcher.run(fun, *args, **kwargs)
    finally:
        print(watcher.text() or NOTHING)
