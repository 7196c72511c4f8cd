"""Loop fusion on a GPU: neighbouring loops become one where the second loads what the first stores.

Stands on index_set_splitting.py. The value stays in a register: random words go straight to their
places in both halves of a result. Chapter 27. In XLA: multi-output fusion.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..arithmetic import Arithmetic
from ..index_set_splitting import affine_functions, split_loops
from ..loops import (Assign, Buffer, Declare, For, Let, Load, Read, Statement, Store, accesses,
                     defined, substituted, walk, with_bodies)
from .coalescing import MIN_MEMORY_BOUND

Places = dict[Buffer, set[int | None]]


def fused_loops(body: Iterable[Statement]) -> tuple[Statement, ...]:
    """The same statements with loops split where their conditions change, and fused.

    Short loops that nothing is fused with stay whole, for one launch.
    """
    result: list[Statement] = []
    for each in body:
        parts: list[Any] = [*map(_straightened, split_loops((each,)))]
        last: Any = result[-1] if result else None
        fused = functools.reduce(_fused, parts, last)
        if fused:
            result[-1] = fused
        elif len(parts) == 1 or min(x.trip_count for x in parts) >= MIN_MEMORY_BOUND:
            result += parts
        else:
            result.append(each)
    used = set(accesses(x for x in walk(result) if not isinstance(x, Store)))
    return tuple(_without_dead_stores(result, used))


def _without_dead_stores(body: Iterable[Statement], used: set[Buffer]) -> Iterable[Statement]:
    for each in body:
        if not (isinstance(each, Store) and each.buffer.role == "temp" and each.buffer not in used):
            yield with_bodies(each, lambda inner: _without_dead_stores(inner, used))


def _straightened(loop: Statement) -> Statement:
    """A loop without variables, if each of its iterations is straight code."""
    if not (isinstance(loop, For) and all(
            isinstance(each, Let | Load | Store | Declare | Assign | Read) for each in loop.body)):
        return loop
    names: dict[Any, Any] = {}
    body: list[Statement] = []
    for each in loop.body:
        match each:
            case Declare(variable, value) | Assign(variable, value):
                names[variable] = names.get(value, value)
            case Read(target, variable) if variable in names:
                names[target] = names[variable]
            case _:
                body.append(substituted(each, names))
    private = {x.variable for x in loop.body if isinstance(x, Declare)}
    is_private = private.issuperset(x.variable for x in loop.body if isinstance(x, Assign | Read))
    return replace(loop, body=tuple(body)) if is_private else loop


def _fused(first: Any, second: Any) -> For | None:
    """Two loops as one, if an iteration of the second loads what the same one of the first has
    stored, and depends on no other.
    """
    if not (first and _is_simple(first) and _is_simple(second)
            and first.trip_count == second.trip_count):
        return None
    stored, loaded = (_places(first, kind) for kind in (Store, Load))
    stores, loads = (_places(second, kind) for kind in (Store, Load))
    handed = {x for x in stored.keys() & loads if x.role == "temp"}
    pairs = [(stored, loads), (loaded, stores), (stored, stores)]
    if not handed or any(len(a[x] | b[x]) > 1 or None in a[x] for a, b in pairs
                         for x in a.keys() & b if not _are_apart(a[x], b[x], first)):
        return None
    b, shift = Arithmetic(), int(second.start.value) - int(first.start.value)
    index = b.add(first.index, shift)
    values = {x.buffer: x.value for x in first.body if isinstance(x, Store)}
    names: dict[Any, Any] = {second.index: index} | {
        x.target: values[x.buffer] for x in second.body
        if isinstance(x, Load) and x.buffer in handed}
    rest = tuple(x for x in second.body if defined(x) not in names)
    note = "\n".join(filter(None, dict.fromkeys((first.note, second.note))))
    return replace(first, note=note, body=(
        *first.body, *b.scopes[0].statements, *substituted(rest, names)))


def _is_simple(loop: Statement) -> bool:
    return (isinstance(loop, For) and loop.vectorize == "parallel" and bool(loop.trip_count)
            and all(isinstance(each, Let | Load | Store) for each in loop.body))


def _places(loop: Any, kind: Any) -> Places:
    """Where an access of each buffer is in the first iteration, if it moves on by one each time."""
    affine, places, start = affine_functions(loop), Places(), loop.start
    for each in loop.body:
        if isinstance(each, kind):
            slope, offset = affine.get(each.index[0], (0, 0)) if len(each.index) == 1 else (0, 0)
            places.setdefault(each.buffer, set()).add(
                offset + int(start.value) if slope == 1 else None)
    return places


def _are_apart(one: set[int | None], other: set[int | None], loop: For) -> bool:
    """Whether no iteration touches what the other loop touches."""
    return all(x is not None and y is not None and abs(x - y) >= (loop.trip_count or 0)
               for x in one for y in other)
