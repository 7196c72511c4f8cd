"""Who holds an object: the shortest way from it to a variable, and that way in words.

Stands on the garbage collector, which knows of (nearly) every reference.  Chapter 12.
In JAX: `jax/_src/core.py` (`leaked_tracer_error`, `why_alive_container_info`).
"""

from __future__ import annotations

import functools
import gc
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from minijax.errors import is_internal
from minijax.sharp_bits.captured import is_own_module
from minijax.source_info import SourceInfo

MOST_SEEN = 10_000  # objects; who has looked at so many has found the whole program
UNSEEN = ("something that Python's garbage collector does not look into, such as a NumPy array "
          "of objects")


class Ours(tuple):
    """Objects that are being looked at: it is not counted among those who hold them."""


class Step(NamedTuple):
    """An object on the way outwards, and the step before it, to which it refers."""

    object: Any
    before: Step | None = None


class Heap:
    """Who refers to what, as Python's garbage collector knows it, and which variable is what.

    A pass over the heap is slow, so each object's holders are looked up once.
    """

    def __init__(self) -> None:
        self.variables: dict[int, str] = {}  # by the id of what they are bound to
        self._holders: dict[int, Ours] = {}
        self._snapshots: set[int] = set()    # the dicts that `f_locals` makes are nobody's
        for module in list(sys.modules.values()):
            if isinstance(module, types.ModuleType) and is_own_module(module):
                self._add_variables(vars(module), f"a global of the module `{module.__name__}`")
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:  # the collector does not see the frames that are running
            if not is_internal(frame.f_code.co_filename) and frame.f_locals is not frame.f_globals:
                self._snapshots.add(id(frame.f_locals))
                self._add_variables(frame.f_locals, f"a variable of {_place(frame)}")
            frame = frame.f_back

    def _add_variables(self, variables: Mapping[str, Any], whose: str) -> None:
        for name, value in variables.items():
            self.variables.setdefault(id(value), f"`{name}`, {whose}")

    def holders(self, objects: Ours) -> Ours:
        """For each object all that refers to it, found in one pass."""
        new = Ours(x for x in objects if id(x) not in self._holders)
        if new:
            found: dict[int, list[Any]] = {id(x): [] for x in new}
            for holder in gc.get_referrers(*new):
                if type(holder) not in (Ours, Step) and not self._is_ignored(holder):
                    for x in gc.get_referents(holder):
                        if id(x) in found:
                            found[id(x)].append(holder)
            self._holders.update((key, Ours(some)) for key, some in found.items())
        return Ours(self._holders[id(x)] for x in objects)

    def _is_ignored(self, x: Any) -> bool:
        return id(x) in self._snapshots or (
            isinstance(x, types.FrameType) and is_internal(x.f_code.co_filename))


class Chain(NamedTuple):
    """What holds an object, what holds that, …, in words; whether it ends in a variable."""

    words: list[str]
    is_certain: bool


def chain_of_holders(start: Step, heap: Heap, may_hold: tuple[type, ...]) -> Chain | None:
    """The shortest way from an object out to a variable that keeps it alive, in words.

    Args:
      start: the object.
      heap: what is known of who holds what.
      may_hold: types whose objects hold it by right; who holds those is not asked.

    Returns:
      None where only those hold it who may.
    """
    seen, ring = {id(start.object)}, [start]
    end, excused = None, False
    while ring and len(seen) < MOST_SEEN:
        for step in ring:
            if name := heap.variables.get(id(step.object)):
                return Chain([*_in_words(step), name], True)
            if _is_namespace(step.object):
                return Chain(_in_words(step), True)
        found = heap.holders(Ours(step.object for step in ring))
        fresh = []
        for step, holders in zip(ring, found, strict=True):
            end = end if holders or end else step  # held, by what the collector does not see
            for holder in holders:
                if isinstance(holder, may_hold):
                    excused = True
                elif id(holder) not in seen:
                    seen.add(id(holder))
                    fresh.append(Step(holder, step))
        ring = fresh
    if end is None and excused:
        return None
    while end and end.before and isinstance(end.object, tuple | list | dict | functools.partial):
        end = end.before  # the arguments of a call that is running: of no interest
    return Chain((end and _in_words(end)) or [UNSEEN], False)


def _is_namespace(x: Any) -> bool:
    """Whether an object is the dict of a module's globals."""
    return type(x) is dict and "__name__" in x and ("__builtins__" in x or "__loader__" in x)


# ── In words ─────────────────────────────────────────────────────────────────────────────────

def _in_words(last: Step) -> list[str]:
    """One phrase for each holder, from the object outwards; several objects may be one phrase."""
    path: list[Any] = []
    step: Step | None = last
    while step is not None:
        path.insert(0, step.object)
        step = step.before
    phrases: list[str] = []
    while len(path) > 1:
        phrase, count = _phrase(*path[:4])
        if phrase:
            phrases.append(phrase)
        path = path[count:]
    return phrases


def _phrase(held: Any, holder: Any, second: Any = None, third: Any = None) -> tuple[str, int]:
    """How `holder` holds `held`, and how many steps of the way that tells."""
    if isinstance(holder, types.CellType):
        if isinstance(third, types.FunctionType) and third.__closure__ is second:
            name = third.__code__.co_freevars[_index(second, holder)]
            return f"`{name}`, which {_function(third)} closes over", 3
        return "a variable of a function", 1
    if isinstance(second, types.FunctionType) and isinstance(holder, tuple) and (
            second.__defaults__ is holder):
        names = second.__code__.co_varnames[:second.__code__.co_argcount]
        name = names[_index(holder, held) - len(holder)]
        return f"the default of the argument `{name}` of {_function(second)}", 2
    if isinstance(holder, dict):
        return _phrase_of_dict(held, holder, second)
    if isinstance(holder, types.FrameType):
        return f"`{_key(holder.f_locals, held)}`, a variable of {_place(holder)}", 1
    if isinstance(holder, types.GeneratorType) and holder.gi_frame is not None:
        return (f"`{_key(holder.gi_frame.f_locals, held)}`, a variable of the suspended generator "
                f"{_place(holder.gi_frame)}"), 1
    if isinstance(holder, Sequence):
        return f"item {_index(holder, held)} of {_a(holder)}", 1
    if type(holder).__module__.split(".")[0] == "minijax" or isinstance(holder, types.ModuleType):
        return "", 1
    attribute = next((name for name in _attributes(holder)
                      if getattr(holder, name, None) is held), None)
    prefix = f"attribute `{attribute}` of " if attribute else ""
    return prefix + _a(holder), 1


def _phrase_of_dict(held: Any, holder: dict, second: Any) -> tuple[str, int]:
    name = _key(holder, held)
    if _is_namespace(holder):
        return f"`{name}`, a global of the module `{holder['__name__']}`", 1
    if isinstance(second, type):
        return f"attribute `{name}` of the class {second.__name__}", 2
    if isinstance(second, types.FunctionType) and second.__kwdefaults__ is holder:
        return f"the default of the argument `{name}` of {_function(second)}", 2
    if getattr(second, "__dict__", None) is holder:
        return f"attribute `{name}` of {_a(second)}", 2
    return f"entry {name!r} of {_a(holder)}", 1


def _a(x: Any) -> str:
    name = type(x).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _key(mapping: Mapping, value: Any) -> Any:
    return next((key for key, x in mapping.items() if x is value), "?")


def _index(sequence: Sequence | None, value: Any) -> int:
    return next((i for i, x in enumerate(sequence or ()) if x is value), 0)


def _attributes(x: Any) -> list[str]:
    slots = [name for kind in type(x).__mro__ for name in getattr(kind, "__slots__", ())]
    return [*getattr(x, "__dict__", ()), *slots]


def _function(fun: types.FunctionType) -> str:
    place = SourceInfo(fun.__code__, fun.__code__.co_firstlineno)
    return f"{fun.__name__}() at {place.short_file}:{place.line}"


def _place(frame: types.FrameType) -> str:
    place = SourceInfo(frame.f_code, frame.f_lineno)
    return f"{place.function}() at {place.short_file}:{place.line}"
