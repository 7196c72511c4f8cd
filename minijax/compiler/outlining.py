"""Outlining: loops become functions, for threads to share or as pieces of long kernels, and so do
parts of these, since LLVM's compile time is superlinear in the length of a function.

Builds on loops.py; llvm.py prints them. Chapters 24 and 26. In XLA: the parallel task assignment of
its CPU backend, outlined computations, and the limits of fusion."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from . import host
from .loops import (Assign, Buffer, Call, Check, Constant, For, Kernel, Load, Scalar, Statement,
                    Store, Variable, accesses, bodies, defined, private_temps, structure, used,
                    walk)
from .memory import overlapping
from .probe import cost_of
from .routines import reads_and_writes

# Statements of a function. Equal functions, as of the layers of a network, are compiled once, and a
# call costs a nanosecond.
MAX_FUNCTION = 200
MIN_COST = 1 << 19     # simple operations: some 20 µs, twice the time of waking a thread
BLOCK_COST = 1 << 17   # simple operations of a block: much longer than taking it
MAX_BLOCKS = 64
CACHE_LINE = 16        # iterations that may write one cache line stay in one block
MAX_PRIVATE = 1 << 20  # bytes of private temps of a thread, which stay in its cache


@dataclass(frozen=True)
class Outlined:
    """The arguments of an outlined loop; for a parallel loop, the number of blocks and the
    iterations (`step`) of a block.

    It is called by the function of the `first` loop that is equal to it.
    """

    captures: tuple[Buffer | Scalar | Variable, ...]
    blocks: int = 0
    step: int = 0
    private: tuple[Buffer, ...] = ()  # temps that each thread has for itself
    first: For | None = None


def outlined_loops(kernel: Kernel) -> dict[For, Outlined]:
    """The outlined loops of a kernel; a piece may be inside of a parallel loop."""
    shared = shared_loops(kernel)
    return shared | dict(_pieces(kernel, set(shared)))


class _FreeNames:
    """The free names of a loop: `outside` are the scalars and variables that it does not define."""

    def __init__(self, body: Sequence[Statement]) -> None:
        every = list(walk(body))
        inner = {defined(each) for each in every}
        operands = dict.fromkeys(x for each in every for x in used(each))
        self.outside = [x for x in operands if not isinstance(x, Constant) and x not in inner]
        self.buffers = dict.fromkeys(accesses(every))
        calls = [reads_and_writes(each) for each in every if isinstance(each, Call)]
        read = {*accesses(every, Load), *(x for reads, _ in calls for x in reads)}
        written = {*accesses(every, Store), *(x for _, writes in calls for x in writes)}
        self.scratch = {x for x in read & written if x.role == "temp"}
        self.assigns = any(isinstance(x, Assign) and x.variable not in inner for x in every)
        # Whether it returns from the kernel or calls Python: such loops run serially.
        self.returns_early = any(
            isinstance(x, Check) or isinstance(x, Call) and x.external == host.CALL for x in every)


# -- threads ---------------------------------------------------------------------------------------


def shared_loops(kernel: Kernel) -> dict[For, Outlined]:
    """The outermost parallel loops that are long. The choice and the block sizes never depend on
    the number of threads.
    """
    uses = cache(lambda: Counter(accesses(walk(kernel.body))))

    def shared(body: Iterable[Statement]) -> Iterator[tuple[For, Outlined]]:
        for each in body:
            if isinstance(each, For) and (outlined := _share(each, uses)):
                yield each, outlined
            elif each.bodies_at:
                yield from shared(x for inner in bodies(each) for x in inner)
    return dict(shared(kernel.body))


def _share(loop: For, uses: Callable[[], Counter[Buffer]]) -> Outlined | None:
    trip_count, cost = loop.trip_count or 0, cost_of((loop,))
    if loop.vectorize not in ("parallel", "apart") or trip_count < 2 or cost < MIN_COST:
        return None
    names = _FreeNames((loop,))
    private = private_temps(loop, uses())
    if names.returns_early or names.assigns or sum(x.nbytes for x in private) > MAX_PRIVATE:
        return None
    # Iterations of an "apart" loop are independent only with private copies of their scratch.
    if loop.vectorize == "apart" and not names.scratch <= set(private):
        return None
    captures = (*(x for x in names.buffers if x not in private and x.role != "local"),
                *names.outside)
    blocks = min(max(int(cost) // BLOCK_COST, 2), MAX_BLOCKS, trip_count)
    step = -(-trip_count // blocks)
    if trip_count >= CACHE_LINE * blocks:
        step = -(-step // CACHE_LINE) * CACHE_LINE
    return Outlined(captures, -(-trip_count // step), step, tuple(private))


# -- pieces ----------------------------------------------------------------------------------------


def _pieces(kernel: Kernel, shared: set[For]) -> Iterator[tuple[For, Outlined]]:
    """The outlined loops of a long kernel, nested where they are long themselves."""
    # The key of equal loops → the first of them, and the positions of its captures.
    functions: dict[Hashable, tuple[For, list[int]] | None] = {}

    def inside(statement: Any) -> Iterator[tuple[For, Outlined]]:
        """The pieces of the long bodies of a statement: with many statements, at any depth, or with
        a parallel loop.
        """
        for part in bodies(statement):
            every = list(walk(part))
            if len(every) > MAX_FUNCTION or not shared.isdisjoint(every):
                for each in part:
                    is_whole = isinstance(each, For) and shared.isdisjoint(walk((each,)))
                    yield from (piece if is_whole else inside)(each)

    def piece(loop: Any) -> Iterator[tuple[For, Outlined]]:
        """A loop, if it can be a function, with the pieces of the first loop equal to it."""
        words, named = structure(loop)
        temps = [x for x in named if isinstance(x, Buffer) and x.role == "temp"]
        key = words, overlapping(temps, kernel.offsets)
        if is_new := key not in functions:
            names = _FreeNames((loop,))
            positions: dict[Any, int] = {x: k for k, x in enumerate(named)}
            inline = names.returns_early or any(isinstance(x, Variable) for x in names.outside)
            functions[key] = None if inline else (
                loop, [positions[x] for x in (*names.buffers, *names.outside)])
        function = functions[key]
        if is_new or function is None:
            yield from inside(loop)
        if function is not None:
            first, captures = function
            own: Any = tuple(named[k] for k in captures)
            yield loop, Outlined(own, first=first)
    return inside(kernel)


# -- parts of the kernel ---------------------------------------------------------------------------


def split_body(body: Sequence[Statement], longest: int) -> list[list[Statement]]:
    """Split a body into parts of about `longest` statements, at points where no scalar or variable
    is live.
    """
    walks = [[*walk((statement,))] for statement in body]
    if sum(map(len, walks)) <= longest:
        return [[*body]]
    last_use: dict[Any, int] = {
        x: k for k, statements in enumerate(walks) for each in statements for x in used(each)}
    parts: list[list[Statement]] = [[]]
    length = last_live = 0
    for k, statements in enumerate(walks):
        if length > longest and last_live < k:
            parts.append([])
            length = 0
        length += len(statements)
        last_live = max(last_live, *(last_use.get(defined(each), 0) for each in statements))
        parts[-1].append(body[k])
    return parts
