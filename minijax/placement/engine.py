"""What ranks send each other: the protocol of an engine, and the engine of threads.

A rank runs the program of one device.  Builds on NumPy alone.
Chapter 11, *Named axes and many devices*.  In JAX: collectives of XLA, `jax/_src/distributed.py`.
"""

import functools
import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent import futures
from contextvars import ContextVar, copy_context
from typing import Any, Protocol, TypeVar

import numpy as np

from minijax import errors
from minijax.util.context import with_values

T = TypeVar("T")
Group = tuple[int, ...]  # ranks, in the order of their blocks; each of them makes the same call
Pairs = Sequence[tuple[int, int]]  # of ranks: one sends, the other receives

MOST_THREADS = 10_000  # ranks at once: one that had to wait for a thread would stop all

REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
              "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


class Engine(Protocol):
    """Communication of one rank with others, of contiguous NumPy buffers.

    Each method takes `where`, the operation and the user's line, for messages on who waits.
    """

    rank: int
    size: int
    ranks_are_processes: bool  # otherwise they are threads of one

    def allreduce(self, x: np.ndarray, op: str, group: Group, where: str = "") -> np.ndarray:
        """The blocks of all ranks combined by `op`, a key of `REDUCTIONS`, as by `combined`."""

    def allgather(self, x: np.ndarray, group: Group, where: str = "") -> np.ndarray:
        """The blocks of all ranks, along a new first axis."""

    def alltoall(self, x: np.ndarray, group: Group, where: str = "") -> np.ndarray:
        """Row k goes to rank k of the group; row k of the result is from there."""

    def permute(self, x: np.ndarray, pairs: Pairs, where: str = "") -> np.ndarray:
        """The block of the rank that sends to this one; zeros, if none does.

        Args:
          pairs: pairs of a sender and a receiver, a rank at most once as each.
        """

    def once(self, call: Callable[[], T], group: Group, where: str = "") -> T:
        """The result of a function that the first rank of each process calls."""


def combined(blocks: Sequence[np.ndarray], op: str) -> np.ndarray:
    """The reduction of blocks in the order that every engine keeps: pairs, then pairs of pairs.

    >>> combined([np.array([1.0]), np.array([2.0]), np.array([4.0])], "add")
    array([7.])
    """
    reduce, alone = REDUCTIONS[op], len(blocks) == 1
    with np.errstate(all="ignore"):
        while len(blocks) > 1:
            pairs = [reduce(a, b) for a, b in zip(blocks[::2], blocks[1::2], strict=False)]
            blocks = pairs + list(blocks[2 * len(pairs):])
    return np.array(blocks[0], copy=alone or None)


# ── Threads ──────────────────────────────────────────────────────────────────────────────────

class Meeting:
    """One collective: what its ranks have brought so far.

    Args:
      group: the ranks that take part.
      where: of the first that came.
    """

    def __init__(self, group: Group, where: str):
        self.group, self.where = group, where
        self.calls: dict[int, tuple] = {}  # what each rank calls, and with which dtype and shape
        self.blocks: dict[int, Any] = {}

    def check_same_call(self) -> None:
        """Refuse ranks that do not make the same call.

        Raises:
          JaxRuntimeError: naming two of them.
        """
        first, *rest = sorted(self.calls.items())
        for rank, call in rest:
            if call != first[1]:
                raise errors.JaxRuntimeError(
                    f"ranks run different programs: at {self.where or 'a collective'}, rank "
                    f"{first[0]} calls {call_text(first[1])} and rank {rank} {call_text(call)}. "
                    "All ranks must run one program on arguments of the same types.")


def call_text(call: tuple) -> str:
    name, *typed = call
    if len(typed) < 2:
        return name
    dtype, shape, *details = typed
    return f"{name} of {dtype}[{','.join(map(str, shape))}]{''.join(f' by {x}' for x in details)}"


class Threads:
    """The ranks of one process, one thread each, and where they meet.

    Args:
      ranks: their numbers.
    """

    def __init__(self, ranks: Sequence[int]):
        self.ranks = ranks
        self.condition = threading.Condition()
        self.running = set(ranks)
        self.waiting: dict[int, Meeting] = {}
        self.meetings: dict[tuple, Meeting] = {}
        self.counts: Counter = Counter()  # of a rank's meetings with a group
        self.error: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        """End all ranks that wait, now or later, with this error."""
        with self.condition:
            self.error = self.error or error
            self.condition.notify_all()

    def leave(self, rank: int) -> None:
        """A rank has ended; who waits for it fails."""
        with self.condition:
            self.running.discard(rank)
            self._check_progress()

    def meet(self, rank: int, call: tuple, block: Any, group: Group, where: str) -> list:
        """The blocks of all ranks of the group, in its order; waits for them."""
        if rank not in group:
            raise errors.JaxRuntimeError(f"rank {rank} is not in the group {group} of {where}")
        with self.condition:
            self.counts[rank, group] += 1
            key = group, self.counts[rank, group]
            meeting = self.meetings.setdefault(key, Meeting(group, where))
            meeting.calls[rank], meeting.blocks[rank] = call, block
            if len(meeting.calls) == len(group):
                del self.meetings[key]
                self._end(meeting)
            else:
                self.waiting[rank] = meeting
                self._check_progress()
                self.condition.wait_for(lambda: self.error or rank not in self.waiting)
            if self.error:
                raise errors.JaxRuntimeError(f"rank {rank} ends, as another failed: {self.error}"
                                             ) from self.error
        return [meeting.blocks[member] for member in group]

    def _end(self, meeting: Meeting) -> None:
        try:
            meeting.check_same_call()
        except errors.JaxRuntimeError as error:
            self.fail(error)
            raise
        for member in meeting.group:
            self.waiting.pop(member, None)
        self.condition.notify_all()

    def _check_progress(self) -> None:
        """Fail where no rank is left that could end a meeting."""
        if self.waiting and self.running <= self.waiting.keys() and not self.error:
            self.fail(errors.JaxRuntimeError("\n".join([
                "no rank can go on:",
                *(f"  rank {rank} waits at {meeting.where or 'a collective'} for "
                  f"{sorted(set(meeting.group) - meeting.calls.keys())}"
                  for rank, meeting in sorted(self.waiting.items())),
                *(f"  rank {rank} has ended" for rank in self.ranks
                  if rank not in self.running)])))


class ThreadEngine:
    """The engine of one thread among others of one process.

    >>> def total():
    ...     engine = current.get()
    ...     return engine.allreduce(np.array([engine.rank + 1]), "add", (0, 1))
    >>> on_threads([0, 1], total)
    [array([3]), array([3])]
    """

    ranks_are_processes = False

    def __init__(self, rank: int = 0, threads: Threads | None = None):
        self.rank, self.threads = rank, threads or Threads([rank])
        self.size = len(self.threads.ranks)

    def _meet(self, name: str, x: np.ndarray, group: Group, where: str, *details: Any) -> list:
        # A copy, since the program may overwrite the buffer while others read.
        call = name, x.dtype, x.shape, *details
        return self.threads.meet(self.rank, call, np.array(x), group, where)

    def allreduce(self, x: np.ndarray, op: str, group: Group, where: str = "") -> np.ndarray:
        return combined(self._meet("allreduce", x, group, where, op), op)

    def allgather(self, x: np.ndarray, group: Group, where: str = "") -> np.ndarray:
        return np.stack(self._meet("allgather", x, group, where))

    def alltoall(self, x: np.ndarray, group: Group, where: str = "") -> np.ndarray:
        own = group.index(self.rank)
        return np.stack([block[own] for block in self._meet("alltoall", x, group, where)])

    def permute(self, x: np.ndarray, pairs: Pairs, where: str = "") -> np.ndarray:
        group = tuple(sorted({rank for pair in pairs for rank in pair}))
        if self.rank not in group:
            return np.zeros_like(x)
        blocks = dict(zip(group, self._meet("permute", x, group, where, tuple(pairs)), strict=True))
        senders = [sender for sender, receiver in pairs if receiver == self.rank]
        return blocks[senders[0]] if senders else np.zeros_like(x)

    def once(self, call: Callable[[], T], group: Group, where: str = "") -> T:
        result: Any = call() if self.rank == group[0] else None
        return self.threads.meet(self.rank, ("once", where), result, group, where)[0]


ALONE = ThreadEngine()
# The engine of the rank that runs here.
current: ContextVar[Engine] = ContextVar("minijax_engine", default=ALONE)


def on_threads(ranks: Sequence[int], run: Callable[[], T]) -> list[T]:
    """The results of a function on each of several ranks, which are threads of this process.

    Args:
      ranks: their numbers.
      run: a function, for which `current` holds the engine of its rank.

    Raises:
      Exception: that of the first rank that failed.
    """
    threads = Threads(ranks)

    def as_rank(rank: int) -> T | None:
        try:
            return with_values({current: ThreadEngine(rank, threads)}, run)
        except BaseException as error:
            threads.fail(error)
            return None
        finally:
            threads.leave(rank)
    try:
        others = [_workers(os.getpid()).submit(copy_context().run, as_rank, r) for r in ranks[1:]]
        results = [as_rank(ranks[0]), *(other.result() for other in others)]
    except BaseException as error:  # of a signal: no rank may wait for ever
        threads.fail(error)
        raise
    if threads.error:
        raise threads.error
    return results  # type: ignore[return-value]


@functools.cache
def _workers(process: int) -> futures.ThreadPoolExecutor:
    """The threads of a process, which start when they are needed; a fork has none of them."""
    return futures.ThreadPoolExecutor(MOST_THREADS, "rank")
