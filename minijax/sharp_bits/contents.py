"""What an object is at a moment, to be compared with what it is later: a token, and a short text.

Stands on `core`.  Of an object that has parts (a list, an instance) this is the whole without
them: `captured` looks at each part by itself.  Chapter 12, *Pure functions*.
"""

from __future__ import annotations

import operator
import random
import types
import warnings
import zlib
from collections import deque
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np

from minijax.caches import SameObject
from minijax.core import Array, Tracer

MOST_PARTS = 500        # items of a list; of the others only which objects they are
WHOLE_BYTES = 1 << 24   # of a larger NumPy array only a part is looked at
GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)


class Content(NamedTuple):
    """What was found at a place; equal tokens mean that nothing has changed."""

    token: Hashable
    what: str   # "list", "iterator", "number", …
    text: str   # the value, short
    number: int  # the object's id


def content(x: Any) -> Content:
    """What an object is, its parts apart: those are looked at by themselves."""
    what, token = _what_and_token(x)
    return Content(token, what, _short(x, what), id(x))


def _what_and_token(x: Any) -> tuple[str, Hashable]:
    if x is None or isinstance(x, bool | str | bytes | bytearray):
        return "value", (type(x), bytes(x) if isinstance(x, bytearray) else x)
    if isinstance(x, int):
        return "number", (type(x), int(x))
    if isinstance(x, float | complex | np.number):
        return "number", (type(x), repr(x))  # repr: nan is equal to itself
    if isinstance(x, Tracer):
        return "tracer", SameObject(x)
    if isinstance(x, np.ndarray):
        return "NumPy array", (x.shape, str(x.dtype), _digest(x))
    if isinstance(x, set | frozenset):
        return type(x).__name__, frozenset(map(hash, x))
    if isinstance(x, list | tuple | dict | deque):
        rest = tuple(map(id, x)) if len(x) > MOST_PARTS else ()
        return type(x).__name__, (type(x), len(x), hash(rest or plain_keys(x)))
    if isinstance(x, GENERATORS):
        return "random generator", _random_state(x)
    if isinstance(x, Iterator):
        return "iterator", _iterator_state(x)
    if isinstance(x, types.FunctionType):
        return "function", x.__code__
    return "object", SameObject(x)


def plain_keys(x: Any) -> tuple:
    """The keys of a dict that are written in programs: strings and whole numbers."""
    return tuple(key for key in x if type(key) in (str, int)) if isinstance(x, dict) else ()


def _digest(x: np.ndarray) -> Hashable:
    if x.dtype.hasobject:
        return tuple(map(id, x.flat)) if x.dtype == object else ()
    if x.nbytes > WHOLE_BYTES:
        x = x.reshape(-1)[::x.nbytes // WHOLE_BYTES + 1]
    return zlib.crc32(np.ascontiguousarray(x).view(np.uint8).data if x.size else b"")


def _random_state(x: Any) -> Hashable:
    if isinstance(x, random.Random):
        return x.getstate()
    return repr(x.bit_generator.state if isinstance(x, np.random.Generator) else x.get_state())


def _iterator_state(x: Any, depth: int = 0) -> Hashable:
    """How far an iterator is; what runs Python code is not asked."""
    if isinstance(x, types.GeneratorType):
        return x.gi_frame and (x.gi_frame.f_lasti, repr(sorted(x.gi_frame.f_locals)))
    if type(x).__module__ not in ("builtins", "itertools") or depth > 5:
        return SameObject(x)
    try:
        with warnings.catch_warnings():  # Python 3.12 deprecates it for itertools
            warnings.simplefilter("ignore")
            parts = [part for some in x.__reduce__()[1:] for part in
                     (some if isinstance(some, tuple) else (some,))]
    except TypeError:
        return operator.length_hint(x, -1)
    return tuple(part if isinstance(part, int) else _iterator_state(part, depth + 1)
                 for part in parts if isinstance(part, int | Iterator)
                 ) + (operator.length_hint(x, -1),)


def _short(x: Any, what: str) -> str:
    if isinstance(x, int) and x.bit_length() > 100:
        return "a large number"
    if what in ("value", "number") or isinstance(x, Array | np.ndarray) and x.size <= 4:
        text = str(x) if isinstance(x, np.number | Array | np.ndarray) else repr(x)
        return text if len(text) <= 40 else text[:37] + "..."
    if isinstance(x, Array | np.ndarray):
        return f"{x.dtype}[{','.join(map(str, x.shape))}]"
    if isinstance(x, tuple | list | dict | set | frozenset | deque | bytearray):
        return f"a {type(x).__name__} of {len(x)}"
    if isinstance(x, types.FunctionType | types.BuiltinFunctionType):
        return f"the function {x.__name__}"
    return f"a {type(x).__name__}"
