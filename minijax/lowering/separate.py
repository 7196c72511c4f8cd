"""Which loops of a long kernel are functions of their own, so that compiling takes linear time.

LLVM's time for a function grows faster than its length, and equal functions are compiled once: so
are the layers of a network. Stands on threads.py. Chapter 24. In XLA: outlined computations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from .loops import Buffer, For, If, Kernel, Scalar, Statement, Variable, While
from .threads import Names

LONG = 200  # statements: what has more is cut, and each call costs a nanosecond or two


@dataclass(frozen=True)
class Separate:
    """What a loop that is a function of its own takes from where it stands."""

    buffers: tuple[Buffer, ...]
    scalars: tuple[Scalar, ...]


def separate_loops(kernel: Kernel, shared: Collection[For]) -> dict[For, Separate]:
    """The largest loops that are not long or cannot be cut, of a kernel that is long; `shared` are
    functions anyway.
    """
    sizes: dict[Statement, int] = {}
    if _measure(kernel.body, shared, sizes) <= LONG:
        return {}
    return dict(_search(kernel.body, shared, sizes))


def _bodies(statement: Statement) -> tuple[Sequence[Statement], ...]:
    """The statements inside of a statement."""
    match statement:
        case For():
            return (statement.body,)
        case While(condition, _, body):
            return condition, body
        case If(_, then, orelse):
            return then, orelse
        case _:
            return ()


def _measure(body: Sequence[Statement], shared: Collection[For], sizes: dict[Statement, int]
             ) -> int:
    """The number of statements at any depth; what holds a shared loop counts as long."""
    total = 0
    for statement in body:
        inner = sum(_measure(part, shared, sizes) for part in _bodies(statement))
        sizes[statement] = LONG + 1 if statement in shared else 1 + inner
        total += sizes[statement]
    return total


def _search(body: Sequence[Statement], shared: Collection[For], sizes: dict[Statement, int]
            ) -> Iterator[tuple[For, Separate]]:
    for statement in body:
        if statement in shared:
            continue
        inside = [] if sizes[statement] <= LONG else [
            found for part in _bodies(statement) for found in _search(part, shared, sizes)]
        yield from inside
        if isinstance(statement, For) and not inside:  # it is not long, or it is in one piece
            found = _alone(statement)
            if found is not None:
                yield statement, found


def _alone(loop: For) -> Separate | None:
    """A loop that neither leaves the kernel nor knows a variable of what is around it."""
    names = Names((loop,))
    outside = [x for x in names.used if x not in names.defined]
    if names.leaves or any(isinstance(x, Variable) for x in outside):
        return None
    return Separate(tuple(names.buffers), tuple(x for x in outside if isinstance(x, Scalar)))
