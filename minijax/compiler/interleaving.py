"""Interleaved accesses: those of a loop that together touch all elements of a stretch of memory.

The two parts of complex numbers are such, and the rows that a transform writes as columns. In
vectors they are one access of neighbours, and the elements are sorted in registers. Builds on
loops.py; vector_text.py prints them. Chapter 26. In LLVM: `InterleavedAccessInfo`.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from .loops import (BOOL, INT64, Constant, For, Let, Load, Operand, Store, accesses, bodies,
                    cached_on_node, walk)
from .steps import Steps, strides

MOST = 24  # accesses of a group
NEAR = 16  # bytes from an element to the next
Group = tuple[Load | Store, ...]  # in the order of their elements
Place = tuple[tuple[Any, ...], int]  # the numbers of an index, and its constant in elements


def is_near(access: Load | Store, step: int) -> bool:
    """Whether it pays to load vectors of neighbours for elements so far apart, and to shuffle."""
    dtype = access.buffer.dtype
    return isinstance(access, Load) and 1 < step <= NEAR // dtype.itemsize and dtype != BOOL


@cached_on_node
def groups_in(loop: For) -> Mapping[Load | Store, Group]:
    """The groups of interleaved accesses in the body of a loop, by each of their members."""
    steps, bases = Steps({loop.index: 1}), dict[Operand, tuple[Any, int]]()

    def base(x: Operand) -> tuple[Any, int]:
        """An integer as a number that is computed, or None, and a constant."""
        return (None, int(x.value)) if isinstance(x, Constant) else bases.get(x, (x, 0))

    in_branches = {x for each in loop.body for inner in bodies(each) for x in accesses(walk(inner))}
    places: dict[Load | Store, Place] = {}
    sets: dict[Any, dict[int, Load | Store]] = defaultdict(dict)
    for each in loop.body:
        steps.enter(each)
        if isinstance(each, Let) and each.op == "add" and each.target.dtype == INT64:
            (first, offset), (second, more) = map(base, each.args)
            if first is None or second is None:
                bases[each.target] = first or second, offset + more
        elif isinstance(each, Load | Store):
            buffer, step = each.buffer, steps.at(each.buffer, each.index)
            names, offsets = [*zip(*map(base, each.index), strict=True)] or ((), ())
            places[each] = names, sum(x * y for x, y in zip(
                offsets, strides(buffer, len(names)), strict=True))
            if 1 < abs(step or 0) <= MOST and buffer.dtype != BOOL and buffer not in in_branches:
                sets[type(each), buffer, step, names].setdefault(places[each][1], each)
    groups = [tuple(members[first + k] for k in range(abs(step)))
              for (_, _, step, _), members in sets.items()
              for first in firsts(members, abs(step))]
    order = [*places]
    return {each: group for group in groups if may_move(group, order, places) for each in group}


def firsts(members: Mapping[int, Any], step: int) -> list[int]:
    """Where so many neighbours begin that have no place in two groups."""
    found: list[int] = []
    for place in sorted(members):
        if all(place + k in members for k in range(step)) and (
                not found or place >= found[-1] + step):
            found.append(place)
    return found


def may_move(group: Group, order: list[Load | Store], places: Mapping[Load | Store, Place]
             ) -> bool:
    """Whether loads may be done at the first of them, or stores at the last one: between them no
    other access is of the same element, unless both load. Other iterations have others.
    """
    is_load, at = isinstance(group[0], Load), sorted(map(order.index, group))

    def is_apart(each: Load | Store, other: Load | Store) -> bool:
        if other.buffer is not each.buffer or is_load and isinstance(other, Load):
            return True
        (names, offset), (base, place) = places[each], places[other]
        return names == base and offset != place
    return all(is_apart(order[k], other) for k in at
               for other in (order[at[0]:k] if is_load else order[k:at[-1]]) if other not in group)
