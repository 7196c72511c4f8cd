"""Snapshots of the values that a function reads besides its arguments, for later comparison.

Builds on `core`. Covers the globals in its code, closures, defaults, the objects that these
refer to, and the same for the user's functions among them. Chapter 12, *Pure functions*. JAX has no
counterpart.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import operator
import os
import random
import sys
import types
import weakref
import warnings
import zlib
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.util import caches, source_info
from minijax.core import Array, Tracer
from minijax.errors import is_internal

MOST_SEEN = 20_000  # objects; a program that captures more is looked at in part
_NAMESPACES = (types.SimpleNamespace, argparse.Namespace)
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
MOST_PARTS = 500        # items of a list; the others are compared by identity
WHOLE_BYTES = 1 << 24   # of a larger NumPy array only a part is looked at
GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)


@caches.remembered(maxsize=4096)
def is_own(filename: str) -> bool:
    """Return whether a file is the user's: not of this package, a library or Python.

    >>> is_own("model.py"), is_own(functools.__file__)
    (True, False)
    """
    installed = any(folder in filename for folder in _INSTALLED)
    return not (is_internal(filename) or installed or filename.startswith(("<frozen", _LIBRARY)))


class Place(NamedTuple):
    """The name of an object: ``model.layers[0]`` is root "model", path (".layers", "[0]").

    >>> str(Place("global", "model", (".layers", "[0]")))
    'model.layers[0]'
    """

    kind: str  # "global", "closure variable", "default argument", …
    root: str
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.root + "".join(self.path)

    def at(self, step: str) -> Place:
        return Place(self.kind, self.root, (*self.path, step))

    def is_inside(self, other: Place) -> bool:
        return self[:2] == other[:2] and self.path[:len(other.path)] == other.path

    def overlaps(self, other: Place) -> bool:
        return self.is_inside(other) or other.is_inside(self)

    @property
    def attribute(self) -> str:
        """The last attribute in the path; empty if there is none."""
        return next((step[1:] for step in reversed(self.path) if step.startswith(".")), "")

    @property
    def last_name(self) -> str:
        """The last name that stands in the code: the last attribute, or else the root."""
        return self.attribute or self.root


# ── The walk ─────────────────────────────────────────────────────────────────────────────────

class Snapshot:
    """All that a function reads besides its arguments, by place.

    >>> seen = []
    >>> def f(x):
    ...     seen.append(x)
    >>> before = Snapshot(f)
    >>> f(1)
    >>> [str(change.place) for change in before.changes(Snapshot(f))]
    ['seen']
    """

    def __init__(self, fun: Callable):
        self.contents: dict[Place, Content] = {}
        self.codes: dict[types.CodeType, None] = {}  # of the user's functions, in order
        seen: dict[int, Any] = {}
        pending: deque[tuple[Place | None, Any, frozenset[str]]] = deque([(None, fun, frozenset())])
        while pending and len(seen) < MOST_SEEN:
            place, x, names = pending.popleft()
            if place is not None and not isinstance(x, types.ModuleType | type):
                self.contents.setdefault(place, content(x))
            if id(x) in seen:
                continue
            seen[id(x)] = x
            if isinstance(x, types.FunctionType):
                names = names_in(x.__code__) or names
                if is_own(x.__code__.co_filename):
                    self.codes.update(dict.fromkeys(_with_nested(x.__code__)))
            pending.extend((part, value, names) for part, value in _parts(x, place, names))

    def changes(self, later: Snapshot) -> list[Change]:
        """The differences to a later snapshot; if an object and its parts differ, only the object.
        """
        changes: list[Change] = []
        for place in {**self.contents, **later.contents}:
            old, new = self.contents.get(place), later.contents.get(place)
            same = old is not None and new is not None and old.token == new.token
            if not same and not any(place.is_inside(change.place) for change in changes):
                changes.append(Change(place, old, new, later.has_new_tracer(place, self)))
        return changes

    def has_new_tracer(self, place: Place, earlier: Snapshot) -> bool:
        """Whether there is a tracer at or below a place that an earlier snapshot lacks."""
        return any(part.what == "tracer" and part != earlier.contents.get(where)
                   for where, part in self.contents.items() if where.is_inside(place))


class Change(NamedTuple):
    """A difference between two snapshots; `old` or `new` is None where the place did not exist."""

    place: Place
    old: Content | None
    new: Content | None
    brings_tracer: bool

    @property
    def what(self) -> str:
        return (self.new or self.old).what  # type: ignore[union-attr]

    def texts(self, nothing: str) -> list[str]:
        """Short texts of the old and the new value."""
        return [part.text if part else nothing for part in (self.old, self.new)]


def _with_nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _with_nested(constant)


@caches.remembered(maxsize=4096)
def names_in(code: types.CodeType) -> frozenset[str]:
    """The names that the code of a function looks up, nested functions included."""
    return frozenset(name for part in _with_nested(code) for name in part.co_names)


Part = tuple[Place | None, Any]


def _parts(x: Any, place: Place | None, names: frozenset[str]) -> Iterator[Part]:
    """The parts of an object to be visited, with their places.

    `names` are those in the code that led here: in modules and classes only these are visited.
    """
    here = place or Place("attribute", "self")  # of an object that is called
    if isinstance(x, types.FunctionType):
        yield from _parts_of_function(x)
    elif isinstance(x, types.MethodType):
        yield Place("attribute", "self"), x.__self__
        yield None, x.__func__
    elif isinstance(x, functools.partial):
        yield None, x.func
        names_of = source_info.parameters_of(x.func)
        for i, part in enumerate(x.args):
            yield Place("argument", source_info.position_name(names_of, i)), part
        yield from ((Place("argument", name), part) for name, part in x.keywords.items())
    elif isinstance(x, weakref.ref):
        yield None, x()
    elif isinstance(x, list | tuple | dict | deque):
        yield from ((here.at(f"[{key!r}]"), x[key]) for key in plain_keys(x)[:MOST_PARTS])
    elif isinstance(x, types.ModuleType | type):
        yield from _parts_of_namespace(x, here, names)
    else:
        yield from _parts_of_instance(x, here, names)


def _parts_of_function(fun: types.FunctionType) -> Iterator[Part]:
    if is_own(fun.__code__.co_filename):
        names = sorted(names_in(fun.__code__) & fun.__globals__.keys())
        for kind, variables in (
                ("closure variable", closure(fun)), ("default argument", defaults(fun)),
                ("global", ((name, fun.__globals__[name]) for name in names))):
            yield from ((Place(kind, name), value) for name, value in variables)
    else:
        yield from ((None, value) for _, value in closure(fun) if callable(value))
    if wrapped := fun.__dict__.get("__wrapped__"):
        yield None, wrapped


def closure(fun: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The bound closure variables of a function."""
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):
            yield name, cell.cell_contents


def defaults(fun: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The arguments with defaults, and these."""
    names, values = fun.__code__.co_varnames[:fun.__code__.co_argcount], fun.__defaults__ or ()
    yield from zip(names[len(names) - len(values):], values, strict=True)
    yield from (fun.__kwdefaults__ or {}).items()


def _parts_of_namespace(x: Any, here: Place, names: frozenset[str]) -> Iterator[Part]:
    """The names of a user's module or class that the code mentions; all methods of a class."""
    if x is random:
        yield here, random._inst
    elif x is np.random or x is np and "random" in names:
        yield here if x is np.random else here.at(".random"), np.random.mtrand._rand
    elif is_own_module(x):
        for name, value in list(vars(x).items()):
            value = getattr(value, "__func__", value)  # under classmethod and staticmethod
            if name in names or isinstance(x, type) and isinstance(value, types.FunctionType):
                yield here.at(f".{name}"), value


def is_own_module(x: Any) -> bool:
    """Whether a module, or the module of a class, is the user's."""
    name = x.__module__ if isinstance(x, type) else x.__name__
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    return is_own(file) if file else name == "__main__" or module is None


def _parts_of_instance(x: Any, here: Place, names: frozenset[str]) -> Iterator[Part]:
    kind = type(x)
    if kind is types.BuiltinMethodType and isinstance(x.__self__, GENERATORS):
        yield here.at(".__self__"), x.__self__  # numpy.random.normal, imported by name
    if isinstance(x, Array | np.ndarray) or kind.__module__ == "builtins":
        return
    fields = dict(attributes(x))
    if kind in _NAMESPACES or is_own_module(kind):
        yield from ((here.at(f".{name}"), value) for name, value in fields.items())
        yield from ((here, base) for base in kind.__mro__ if base is not object)
        return
    for name, value in fields.items():
        if name == "__wrapped__" or isinstance(
                value, types.FunctionType | types.MethodType | functools.partial):
            yield None, value  # what a transformation or a decorator's object calls
        elif name in names and isinstance(value, int | float | complex | str | np.ndarray | Array):
            yield here.at(f".{name}"), value
    for i in fields.get("static", ()):  # a jitted function with its static arguments
        name = source_info.position_name(source_info.parameters_of(fields["fun"]), i)
        yield Place("static argument", name), fields["args"][i]


def attributes(x: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an object, without running a user's `__getattr__`."""
    with contextlib.suppress(AttributeError):
        yield from list(object.__getattribute__(x, "__dict__").items())
    for base in type(x).__mro__:
        for name, slot in vars(base).items() if "__slots__" in vars(base) else ():
            if isinstance(slot, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError):
                    yield name, slot.__get__(x)


# ── The state of an object, without its parts ─────────────────────────────────────────────────

class Content(NamedTuple):
    """The state of an object at a place; equal tokens mean no change."""

    token: Hashable
    what: str   # "list", "iterator", "number", …
    text: str   # the value, short
    number: int  # the object's id; a generator's is that of its frame


def content(x: Any) -> Content:
    """The state of an object without its parts, which have places of their own."""
    what, token = _what_and_token(x)
    shown = x.gi_frame if isinstance(x, types.GeneratorType) else x
    return Content(token, what, _short(x, what), id(shown))


def _what_and_token(x: Any) -> tuple[str, Hashable]:
    if x is None or isinstance(x, bool | str | bytes | bytearray):
        return "value", (type(x), bytes(x) if isinstance(x, bytearray) else x)
    if isinstance(x, int):
        return "number", (type(x), int(x))
    if isinstance(x, float | complex | np.number):
        return "number", (type(x), repr(x))  # repr: nan is equal to itself
    if isinstance(x, Tracer):
        return "tracer", caches.SameObject(x)
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
    return "object", caches.SameObject(x)


def plain_keys(x: Any) -> Sequence:
    """The keys of a dict that can be written in a program, strings and whole numbers; or all
    indices of a list.
    """
    if isinstance(x, dict):
        return tuple(key for key in x if type(key) in (str, int))
    return range(len(x))


def _digest(x: np.ndarray) -> Hashable:
    step = x.nbytes // WHOLE_BYTES + 1
    return zlib.crc32((x if step == 1 else x.reshape(-1)[::step]).tobytes())  # of objects, the ids


def _random_state(x: Any) -> Hashable:
    if isinstance(x, random.Random):
        return x.getstate()
    return repr(x.bit_generator.state if isinstance(x, np.random.Generator) else x.get_state())


def _iterator_state(x: Any, depth: int = 0) -> Hashable:
    """The position of an iterator, if it can be read without running Python code."""
    if isinstance(x, types.GeneratorType):
        return x.gi_frame and (x.gi_frame.f_lasti, repr(sorted(x.gi_frame.f_locals)))
    if type(x).__module__ not in ("builtins", "itertools") or depth > 5:
        return caches.SameObject(x)
    state: tuple = ()
    with warnings.catch_warnings(), contextlib.suppress(TypeError):
        warnings.simplefilter("ignore")  # Python 3.12 deprecates it for itertools
        state = x.__reduce__()[1:]
    return operator.length_hint(x, -1), *(
        part if isinstance(part, int) else _iterator_state(part, depth + 1)
        for some in state for part in (some if isinstance(some, tuple) else (some,))
        if isinstance(part, int | Iterator))


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
