"""Which loops are functions of their own: those that threads share, and pieces of long kernels.

Stands on loops.py; llvm.py prints them. Chapters 24 and 26. In XLA: the parallel task assignment of
its CPU backend, and outlined computations.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from . import host
from .loops import (
    Assign, Buffer, Call, Check, Constant, For, Kernel, Load, Scalar, Statement, Store, Variable,
    bodies, defined, touched, used, walk,
)
from .probe import cost_of
from .stretches import LONG

WORTH = 1 << 19        # simple operations: some 20 µs, twice what waking a thread takes
BLOCK = 1 << 17        # of a block: long against the taking of it
MOST_BLOCKS = 64
LINE = 16              # turns that write one cache line stay in one block
OWN = 256 * 1024       # bytes of temps that each thread has a copy of, in its cache


@dataclass(frozen=True)
class Outlined:
    """What a loop takes from where it stands; where threads share it, `step` turns are a block."""

    taken: tuple[Buffer | Scalar | Variable, ...]
    blocks: int = 0
    step: int = 0
    private: tuple[Buffer, ...] = ()  # temps that each thread has for itself


def outlined_loops(kernel: Kernel) -> dict[For, Outlined]:
    """The loops that are functions; a piece may be inside of one that threads share."""
    shared = shared_loops(kernel)
    pieces = _pieces(kernel.body, shared) if _is_long(kernel.body, shared) else ()
    return shared | dict(pieces)


class _Names:
    """What a loop knows: `outside` are the scalars and variables that it does not define itself."""

    def __init__(self, body: Sequence[Statement]) -> None:
        every = list(walk(body))
        inside = {defined(each) for each in every}
        known = dict.fromkeys(x for each in every for x in used(each))
        self.outside = [x for x in known if not isinstance(x, Constant) and x not in inside]
        self.buffers = Counter(x for each in every for x in touched(each))
        self.scratch = {x for each in every if not isinstance(each, Store) for x in touched(each)
                        if x.role == "temp"}
        self.scratch &= {x for each in every if not isinstance(each, Load) for x in touched(each)}
        self.assigns = any(isinstance(x, Assign) and x.variable not in inside for x in every)
        # The kernel, or into Python: in a certain order, and one by one.
        self.leaves = any(isinstance(each, Check) or (isinstance(each, Call)
                          and each.external == host.CALL) for each in every)


# -- threads ---------------------------------------------------------------------------------------


def shared_loops(kernel: Kernel) -> dict[For, Outlined]:
    """The outermost loops that are long and whose turns are independent. Which they are, and their
    blocks, never depends on threads.
    """
    return dict(_shared(kernel.body, _Names(kernel.body).buffers))


def _shared(body: Sequence[Statement], uses: Counter[Buffer]) -> Iterator[tuple[For, Outlined]]:
    for statement in body:
        found = _share(statement, uses) if isinstance(statement, For) else None
        if found is not None:
            yield statement, found  # type: ignore[misc]
        else:
            for inner in bodies(statement):
                yield from _shared(inner, uses)


def _share(loop: For, uses: Counter[Buffer]) -> Outlined | None:
    turns, cost = loop.turns or 0, cost_of((loop,))
    starts_late = not isinstance(loop.start, Constant) or loop.start.value != 0
    if loop.vectorize not in ("parallel", "apart") or starts_late or turns < 2 or cost < WORTH:
        return None
    names = _Names((loop,))
    private = [x for x in names.buffers if x.role == "temp"
               and names.buffers[x] == uses[x] and loop.vectorize == "apart"]
    if names.leaves or names.assigns or sum(x.nbytes for x in private) > OWN:
        return None
    # Turns of an "apart" loop are independent only if each has its own copy of its scratch space.
    if loop.vectorize == "apart" and not names.scratch <= set(private):
        return None
    taken = (*(x for x in names.buffers if x not in private), *names.outside)
    wanted = min(max(int(cost) // BLOCK, 2), MOST_BLOCKS, turns)
    step = -(-turns // wanted)
    if turns >= LINE * wanted:
        step = -(-step // LINE) * LINE
    return Outlined(taken, -(-turns // step), step, tuple(private))


# -- pieces ----------------------------------------------------------------------------------------


def _is_long(body: Sequence[Statement], shared: Collection[For]) -> bool:
    """By its statements at any depth; what holds a shared loop counts as long."""
    every = list(walk(body))
    return len(every) > LONG or any(each in shared for each in every)


def _pieces(body: Sequence[Statement], shared: Collection[For]
            ) -> Iterator[tuple[For, Outlined]]:
    """The largest loops that are not long or cannot be cut, of a kernel that is long."""
    for statement in body:
        inside = [found for part in bodies(statement) if _is_long(part, shared)
                  for found in _pieces(part, shared)]
        yield from inside
        # It is not long, or it is in one piece.
        if isinstance(statement, For) and statement not in shared and not inside:
            names = _Names((statement,))
            if not names.leaves and not any(isinstance(x, Variable) for x in names.outside):
                yield statement, Outlined((*names.buffers, *names.outside))
