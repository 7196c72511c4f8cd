"""Caches: each registers here, so that all can be cleared at once.

Builds on nothing.  Chapter 26, *Threads, caches and dispatch*.
In JAX: `jax/_src/util.py` (`cache`, `clear_all_caches`).
"""

import contextlib
import functools
import time
import types
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
V = TypeVar("V")

loaded_at = time.time()  # when the package was
_clears: list[Callable[[], Any]] = []


def cleared_by(clear: Callable[[], Any]) -> None:
    """Register `clear` with `clear_all`, for a cache that is no `remembered` function."""
    _clears.append(clear)


def remembered(maxsize: int) -> Callable[[F], F]:
    """`functools.lru_cache` that `clear_all` empties.  What it returns must not be changeable.

    What is true of the machine, and not of a program, needs none of this: `functools.cache`.

    >>> @remembered(maxsize=10)
    ... def squared(x):
    ...     return x * x
    >>> squared(3), squared.cache_info().currsize, clear_all(), squared.cache_info().currsize
    (9, 1, None, 0)
    """
    def decorate(f: F) -> F:
        cached = functools.lru_cache(maxsize=maxsize)(f)
        cleared_by(cached.cache_clear)
        return cast(F, cached)
    return decorate


def written(source: str, name: str, names: dict[str, Any]) -> Any:
    """The definition in a text of Python, with these values of its free names."""
    exec(_compiled(source), names)
    return names.pop(name)  # which would keep itself alive


@remembered(maxsize=1024)
def _compiled(source: str) -> types.CodeType:
    return compile(source, "<minijax text>", "exec")


class SameObject:
    """Part of a key: this very object, whatever it says of equality; not kept alive."""

    __slots__ = ("digest", "ref")

    def __init__(self, obj: Any):
        self.digest = id(obj)
        try:
            self.ref: Callable[[], Any] = weakref.ref(obj)
        except TypeError:
            self.ref = lambda: obj  # it cannot be referred to weakly

    def __hash__(self) -> int:
        return self.digest

    def __eq__(self, other: object) -> bool:
        mine = self.ref()
        return isinstance(other, SameObject) and mine is not None and mine is other.ref()


class OfObjects(Generic[V]):
    """A value for each object, made on first use, and kept as long as the object lives.

    Objects are told apart by identity, whatever they say of equality; what is kept must not refer
    to them.

    >>> known = OfObjects(lambda obj: [])
    >>> known[print] is known[print], known[print] is known[len]
    (True, False)
    """

    def __init__(self, make: Callable[[Any], V]):
        self._make = make
        self._all: dict[int, tuple[weakref.ref, V]] = {}
        cleared_by(self._all.clear)

    def __getitem__(self, obj: Any) -> V:
        known = self._all.get(id(obj))
        if known is not None and known[0]() is obj:
            return known[1]
        made = self._make(obj)
        with contextlib.suppress(TypeError):  # it cannot be referred to weakly
            forget = functools.partial(self._forget, id(obj))
            self._all[id(obj)] = weakref.ref(obj, forget), made
        return made

    def _forget(self, place: int, ref: weakref.ref) -> None:
        known = self._all.get(place)
        if known is not None and known[0] is ref:
            del self._all[place]


class Holders:
    """The objects of a kind that have a cache of their own; `forget` empties that of one."""

    def __init__(self, forget: Callable[[Any], Any]):
        self._all: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._forget = forget
        cleared_by(self.clear)

    def add(self, holder: Any) -> None:
        self._all[id(holder)] = holder

    def clear(self) -> None:
        for ref in self._all.valuerefs():
            holder = ref()
            if holder is not None:
                self._forget(holder)


def clear_all() -> None:
    """Empty every cache."""
    for clear in _clears:
        clear()
