"""Loop fusion on a GPU: a loop and the next become one if the second loads what the first stores.

Builds on index_set_splitting.py. The value stays in a register: random words are stored at once in
both halves of a result. Chapter 27. In XLA: multi-output fusion.
"""

import functools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..arithmetic import Arithmetic
from ..index_set_splitting import affine_functions, split_loops
from ..loops import (INT64, Assign, Buffer, Call, Check, Declare, For, Let, Load, Read,
                     Scalar, Statement, Store, While, accesses, defined, substituted, used, walk,
                     with_bodies)
from .coalescing import MIN_MEMORY_BOUND

Places = dict[Buffer, set[int | None]]


def fused_loops(body: Iterable[Statement]) -> tuple[Statement, ...]:
    """The same statements with loops split where their conditions change, and fused.

    Short loops that nothing is fused with stay whole, for one launch.
    """
    result: list[Statement] = []
    for each in body:
        parts: list[Any] = [*map(_straightened, split_loops((_flattened(each),)))]
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


def _flattened(loop: Any) -> Any:
    """A nest of two loops as one, if all its accesses are linear in the row-major index."""
    inner: Any = loop.body[-1] if isinstance(loop, For) and loop.body else None
    if not (isinstance(inner, For) and loop.vectorize == inner.vectorize == "parallel"):
        return loop
    m, n, starts = loop.trip_count, inner.trip_count, [loop.start, inner.start]
    if not m or not n or any(getattr(x, "value", 1) != 0 for x in starts):
        return loop
    every = (*loop.body[:-1], *inner.body)
    forms = affine_functions(every, loop.index, inner.index)
    b, index = Arithmetic(), Scalar(loop.index.name, INT64)
    names = {x: b.add(index, c) for x, (i, j, c) in forms.items() if (i, j) == (n, 1)}

    def with_places(body: Iterable[Statement]) -> Iterable[Statement]:
        for each in body:
            if isinstance(each, Load | Store) and each.buffer.shape == (m, n) and [
                    *map(forms.get, each.index)] == [(1, 0, 0), (0, 1, 0)]:
                yield replace(each, index=(index,))
            elif defined(each) not in forms:
                yield with_bodies(each, with_places)
    body = tuple(with_places(every))
    rest = {x for each in walk(body) for x in used(each)} & forms.keys() - names.keys()
    if rest or any(isinstance(each, For | While | Call | Check) for each in walk(body)):
        return loop
    return replace(loop, index=index, stop=b.index(m * n), body=(
        *b.scopes[0].statements, *substituted(body, names)))


def _straightened(loop: Any) -> Any:
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
    """Two loops as one, if each iteration of the second depends on the same iteration of the first
    only.
    """
    if not (_is_simple(first) and _is_simple(second) and first.trip_count == second.trip_count):
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
    """For each buffer the indices of the first iteration; None for an index whose stride is not 1.
    """
    affine, places, start = affine_functions(loop.body, loop.index), Places(), loop.start
    for each in loop.body:
        if isinstance(each, kind):
            slope, offset = affine.get(each.index[0], (0, 0)) if len(each.index) == 1 else (0, 0)
            places.setdefault(each.buffer, set()).add(
                offset + int(start.value) if slope == 1 else None)
    return places


def _are_apart(one: set[int | None], other: set[int | None], loop: For) -> bool:
    """Whether the two loops access disjoint ranges."""
    return all(x is not None and y is not None and abs(x - y) >= (loop.trip_count or 0)
               for x in one for y in other)
