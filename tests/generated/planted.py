"""Mistakes to be planted in the planner: generated programs must find each of them.

`python -m tests.generated --planted` says after how many. Each is a kind of mistake that was made
once, or may be made: which value lives where, for how long, and who has read it.
"""

import builtins
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from minijax.compiler import (
    builder, digest, memory, nests, row_tiles, schedule, simplify, steps, transpose_folding,
)


@contextmanager
def programs_without_names() -> Iterator[None]:
    """Meanwhile the loops of each program are built: none is known by its name on disk."""
    named, digest.package = digest.package, digest.unnameable
    try:
        yield
    finally:
        digest.package = named


def instead(place: Any, name: str, mistake: Callable) -> Callable[[], AbstractContextManager]:
    """A context in which `place.name` is `mistake(what it was)`."""
    @contextmanager
    def planted() -> Iterator[None]:
        own = name in vars(place)  # or a builtin, which the module is given its own of
        right = vars(place)[name] if own else getattr(builtins, name)
        setattr(place, name, mistake(right))
        try:
            with programs_without_names():
                yield
        finally:
            if own:
                setattr(place, name, right)
            else:
                delattr(place, name)
    return planted


def always(right: Callable) -> Callable:
    return lambda *args: True


def without_one_read(earliest: Callable) -> Callable:
    def found(self: Any, task: Any) -> int:
        producers, made = self.producers, [v for v in task.reads if v in self.producers]
        self.producers = {v: task for v, task in producers.items() if v not in made[-1:]}
        try:
            return earliest(self, task)
        finally:
            self.producers = producers
    return found


def still_frozen(touch: Callable) -> Callable:
    def touched(self: Any, buffer: Any) -> None:
        scope = self._frozen.get(buffer)
        touch(self, buffer)
        if scope is not None:
            self._frozen[buffer] = scope
    return touched


def same_version(touch: Callable) -> Callable:
    def touched(self: Any, buffer: Any) -> None:
        version = self._version.get(buffer, 0)
        touch(self, buffer)
        self._version[buffer] = version
    return touched


MISTAKES = {
    "a life that ends one use too soon": instead(
        memory, "_live_ranges", lambda right: lambda *args: {
            temp: (begin, max(begin, end - 2)) for temp, (begin, end) in right(*args).items()}),
    "a place shared with what is still read": instead(
        schedule.Lowering, "_safe_in_place", always),
    "a later reader forgotten": instead(
        schedule.Lowering, "_before", always),
    "a dropped dependency": instead(nests.Fusion, "earliest", without_one_read),
    "a loop merged with what it reads elsewhere": instead(nests, "_aligned", always),
    "the last row of the tiles": instead(
        builder.Builder, "strip", lambda right: lambda b, k, n, size: right(b, k, n - 1, size)),
    "a load before the store": instead(builder.Builder, "invalidate", still_frozen),
    "a load that is remembered after a store": instead(builder.Builder, "invalidate", same_version),
    "equal but for a parameter": instead(
        simplify, "_equation_key", lambda right: lambda eqn: right(
            eqn.replace(params={}))),
    "equal but for an operand": instead(
        simplify, "_equation_key", lambda right: lambda eqn: right(
            eqn.replace(invars=eqn.invars[:max(len(eqn.invars) - 1, 1)]))),
    "two temps that share memory": instead(
        memory, "_first_gap", lambda right: lambda *_: 0),
    "a temp as small as its maker's loop allows": instead(
        schedule, "_common", lambda right: lambda maker, reader: maker),
    "a row that is stored in part, stored whole": instead(
        row_tiles._Tile, "is_stored_whole", always),
    "a product with its axes in another order": instead(
        transpose_folding, "sorted", lambda right: lambda axes: axes),
}


# Which only bits show: what vectors may do in their own ways.
MISTAKES_OF_BITS = {
    "an index that goes backwards, taken forwards": instead(
        steps.Steps, "at", lambda right: lambda self, *place: (
            step if (step := right(self, *place)) is None else abs(step))),
}


def of(kind: str) -> dict[str, Callable[[], AbstractContextManager]]:
    """The mistakes that programs must find that are run against something."""
    return MISTAKES_OF_BITS if kind == "scalars" else MISTAKES
