"""Outlining: loops become functions, for threads to share or as pieces of long kernels, and so do
parts of these, since LLVM's compile time is superlinear in the length of a function.

Builds on loops.py; llvm.py prints them. Chapters 24 and 26. In XLA: the parallel task assignment of
its CPU backend, outlined computations, and the limits of fusion."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from .duplicates import as_statement, captures, is_function, leaves
from .loops import (Assign, Buffer, Call, Duplicate, For, Kernel, Load, Scalar, Statement, Store,
                    Variable, accesses, bodies, defined, private_temps, structure, used, walk)
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
    first: Statement | None = None


def outlined_loops(kernel: Kernel) -> dict[Statement, Outlined]:
    """The outlined loops of a kernel; a piece may be inside of a parallel loop."""
    shared = shared_loops(kernel)
    outlined: dict[Any, Outlined] = {**shared, **dict(_pieces(kernel, set(shared)))}
    for each in kernel.body:
        if isinstance(each, Duplicate):
            names = dict(zip(captures(each.first), each.captures, strict=True))
            first = outlined.setdefault(each.first, Outlined(captures(each.first)))
            own: Any = tuple(map(names.__getitem__, first.captures))
            outlined[each] = replace(first, captures=own, first=first.first or each.first)
    return outlined


def callable_duplicates(kernel: Kernel) -> Kernel:
    """The kernel with loops in place of duplicates that cannot call the function of the first one:
    it is short, or has a parallel loop inside, or expects other temps to be apart.
    """
    every, shared = [*walk(kernel.body)], set(shared_loops(kernel))
    is_short = len(every) + sum(
        len([*walk((x.first,))]) for x in every if isinstance(x, Duplicate)) <= MAX_FUNCTION

    def is_callable(x: Duplicate) -> bool:
        first, own = ([y for y in captures(each) if isinstance(y, Buffer) and y.role == "temp"]
                      for each in (x.first, x))
        return not is_short and shared.isdisjoint([*walk((x.first,))][1:]) and (
            overlapping(own, kernel.offsets) <= overlapping(first, kernel.offsets))
    body = tuple(as_statement(x) if isinstance(x, Duplicate) and not is_callable(x) else x
                 for x in kernel.body)
    return replace(kernel, body=body)


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
    if (loop.vectorize not in ("parallel", "apart") or trip_count < 2 or cost < MIN_COST
            or leaves(loop)):
        return None
    private, inside = private_temps(loop, uses()), [*walk((loop,))]
    own = tuple(x for x in captures(loop)
                if x not in private and getattr(x, "role", "") != "local")
    if sum(x.nbytes for x in private) > MAX_PRIVATE or any(
            isinstance(x, Assign) and x.variable in own for x in inside):
        return None
    # Iterations of an "apart" loop are independent only with private copies of their scratch.
    if loop.vectorize == "apart" and not _scratch(inside) <= set(private):
        return None
    blocks = min(max(int(cost) // BLOCK_COST, 2), MAX_BLOCKS, trip_count)
    step = -(-trip_count // blocks)
    if trip_count >= CACHE_LINE * blocks:
        step = -(-step // CACHE_LINE) * CACHE_LINE
    return Outlined(own, -(-trip_count // step), step, tuple(private))


def _scratch(statements: Sequence[Statement]) -> set[Buffer]:
    """The temps that statements both read and write."""
    calls = [reads_and_writes(each) for each in statements if isinstance(each, Call)]
    read = {*accesses(statements, Load), *(x for reads, _ in calls for x in reads)}
    written = {*accesses(statements, Store), *(x for _, writes in calls for x in writes)}
    return {x for x in read & written if x.role == "temp"}


# -- pieces ----------------------------------------------------------------------------------------


def _pieces(kernel: Kernel, shared: set[For]) -> Iterator[tuple[For, Outlined]]:
    """The outlined loops of a long kernel, nested where they are long themselves."""
    firsts: dict[Hashable, For] = {}  # of equal loops

    def inside(statement: Any) -> Iterator[tuple[For, Outlined]]:
        """The pieces of the long bodies of a statement: with many statements, at any depth, or with
        a parallel loop.
        """
        for part in bodies(statement):
            every = list(walk(part))
            if len(every) > MAX_FUNCTION or not shared.isdisjoint(every) or any(
                    isinstance(each, Duplicate) for each in part):
                for each in part:
                    is_whole = isinstance(each, For) and shared.isdisjoint(walk((each,)))
                    yield from (piece if is_whole else inside)(each)

    def piece(loop: Any) -> Iterator[tuple[For, Outlined]]:
        """A loop, if it can be a function, with the pieces of the first loop equal to it."""
        temps = [x for x in captures(loop) if isinstance(x, Buffer) and x.role == "temp"]
        first = firsts.setdefault((structure(loop)[0], overlapping(temps, kernel.offsets)), loop)
        if first is loop or not is_function(loop):
            yield from inside(loop)
        if is_function(loop):
            yield loop, Outlined(captures(loop), first=first)
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
