"""Collectives among the processes of a program, by MPI: `MPIEngine`.

Builds on `config`, `engine`; loads mpi4py when a program joins the others.
Chapter 11, *Named axes and many devices*.  In JAX: XLA's collectives over gloo, MPI or NCCL.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from minijax import config

Group = tuple[int, ...]

SPINS = 200  # polls without a look at the clock: some 50 µs
IMPATIENT = 2e-3  # seconds after which a waiting process leaves its core to others
PAUSE = 50e-6  # seconds between two polls from then on
GRACE = 1.0  # seconds in which other processes answer where they wait
PRINTING = 0.2  # seconds in which the launcher prints what was said, before all ends
SMALL = 1 << 15  # bytes of an array that is reduced where it is needed, in one step

_QUESTION, _ANSWER, _ARRIVAL, _PERMUTED = range(4)  # the tags of messages

REDUCTIONS: dict[str, np.ufunc] = {
    "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or}


class MPIEngine:
    """The collectives of one process of a program that a launcher of MPI has started.

    Each waits with a clock: a process that waits longer than the flag `collective_timeout` says for
    whom, and ends the program. Buffers are passed to MPI as they are, as bytes; numbers are added in
    the order of the ranks, so that results do not depend on the machine.

    Attributes:
      rank: the number of this process.
      size: the number of processes.
    """

    def __init__(self) -> None:
        from mpi4py import MPI
        self._mpi, world = MPI, MPI.COMM_WORLD
        self.rank, self.size = world.Get_rank(), world.Get_size()
        self._started = world
        self._messages, first = world.Idup()  # between two processes
        self._world, second = world.Idup()
        while not (first.Test() and second.Test()):
            time.sleep(PAUSE)
        self._communicators: dict[Group, Any] = {tuple(range(self.size)): self._world}
        self._sent: list[Any] = []  # requests of answers, which end by themselves

    # ── Collectives ──────────────────────────────────────────────────────────────────────────

    def allreduce(self, x: np.ndarray, op: str, group: Group, where: str = "") -> np.ndarray:
        """The sum (or "mul", "max", "min", "and", "or") of the arrays of a group."""
        if len(group) == 1 or not x.size:
            return x
        if x.nbytes <= SMALL or len(group) == 2:
            return _reduced(self.allgather(x, group, where), op)
        # Each process reduces one part, as large as that of each other.
        length = -(-x.size // len(group))
        flat = np.zeros(length * len(group), x.dtype)
        flat[:x.size] = x.reshape(-1)
        parts = self.alltoall(flat.reshape(len(group), length), group, where)
        whole = self.allgather(_reduced(parts, op), group, where)
        return whole.reshape(-1)[:x.size].reshape(x.shape)

    def allgather(self, x: np.ndarray, group: Group, where: str = "") -> np.ndarray:
        """The arrays of a group along a new first axis."""
        out = np.empty((len(group), *x.shape), x.dtype)
        if len(group) == 1 or not x.size:
            out[...] = x
            return out
        self._wait(self._communicator(group, where).Iallgather(_bytes(x), _bytes(out)), where)
        return out

    def alltoall(self, x: np.ndarray, group: Group, where: str = "") -> np.ndarray:
        """For each process of a group its block of this process's array, in order of their rank."""
        out = np.empty(x.shape, x.dtype)
        if len(group) == 1 or not x.size:
            out[...] = x
            return out
        self._wait(self._communicator(group, where).Ialltoall(_bytes(x), _bytes(out)), where)
        return out

    def permute(self, x: np.ndarray, pairs: Sequence[tuple[int, int]], where: str = ""
                ) -> np.ndarray:
        """The array of the process that is the source of this one; zeros if there is none."""
        out, requests = np.zeros(x.shape, x.dtype), []
        for source, target in pairs:
            if source == target == self.rank:
                out[...] = x
            elif target == self.rank:
                requests.append(self._world.Irecv(_bytes(out), source, _PERMUTED))
            elif source == self.rank:
                requests.append(self._world.Isend(_bytes(x), target, _PERMUTED))
        for request in requests:
            self._wait(request, where)
        return out

    def broadcast(self, x: np.ndarray, root: int, group: Group, where: str = "") -> np.ndarray:
        """The array of one process of a group; those of the others have its shape and dtype."""
        if len(group) == 1 or not x.size:
            return x
        out = x if self.rank == root else np.empty(x.shape, x.dtype)
        communicator = self._communicator(group, where)
        self._wait(communicator.Ibcast(_bytes(out), group.index(root)), where)
        return out

    def barrier(self, group: Group, where: str = "", limit: float | None = None) -> None:
        """Returns when all processes of a group have called it."""
        self._wait(self._communicator(group, where).Ibarrier(), where, limit)

    def abort(self, message: str) -> NoReturn:
        """Print a message, and end all processes of the program."""
        sys.stdout.flush()
        print(message, file=sys.stderr, flush=True)
        time.sleep(PRINTING)
        self._started.Abort(1)
        raise SystemExit(1)

    def _communicator(self, group: Group, where: str) -> Any:
        communicator = self._communicators.get(group)
        if communicator is None:
            self._meet(group, where)  # as MPI makes communicators without a clock
            communicator = self._communicators[group] = self._world.Create_group(
                self._world.Get_group().Incl(group))
        return communicator

    def _meet(self, group: Group, where: str) -> None:
        """A barrier of messages between two processes."""
        first, *others = group
        empty = bytearray()
        if self.rank != first:
            self._wait(self._messages.Isend(empty, first, _ARRIVAL), where)
            self._wait(self._messages.Irecv(empty, first, _ARRIVAL), where)
            return
        for call in (self._messages.Irecv, self._messages.Isend):
            for rank in others:
                self._wait(call(empty, rank, _ARRIVAL), where)

    # ── Waiting with a clock ─────────────────────────────────────────────────────────────────

    def _wait(self, request: Any, where: str, limit: float | None = None) -> None:
        done = request.Test
        for _ in range(SPINS):
            if done():
                return
        start = time.monotonic()
        limit = config.collective_timeout.value if limit is None else limit
        while not done():
            waited = time.monotonic() - start
            if waited > limit:
                self._give_up(where, waited)
            self._answer(where)
            time.sleep(PAUSE if waited > IMPATIENT else 0)

    def _answer(self, where: str) -> list[int]:
        """Tell processes that ask where this one waits; returns who has asked."""
        status, asking = self._mpi.Status(), []
        while self._messages.Iprobe(tag=_QUESTION, status=status):
            asking.append(status.Get_source())
            self._messages.recv(source=asking[-1], tag=_QUESTION)
            self._sent.append(self._messages.isend(where, asking[-1], _ANSWER))
        return asking

    def _give_up(self, where: str, waited: float) -> NoReturn:
        """Ask the other processes where they wait, name those that do not answer, and end all."""
        others = [rank for rank in range(self.size) if rank != self.rank]
        self._sent += [self._messages.isend(None, rank, _QUESTION) for rank in others]
        places: dict[int, str] = {}
        asking: list[int] = []
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline and len(places) < len(others):
            asking += self._answer(where)
            for rank in others:
                if rank not in places and self._messages.Iprobe(rank, _ANSWER):
                    places[rank] = self._messages.recv(source=rank, tag=_ANSWER)
            time.sleep(PAUSE)
        if any(rank < self.rank for rank in asking):  # which says the same
            time.sleep(2 * GRACE)
        self.abort(_who_waits(self.rank, where, waited, others, places))


def _who_waits(rank: int, where: str, waited: float, others: Sequence[int],
               places: dict[int, str]) -> str:
    """The message of a process that has waited too long, with what the others have answered."""
    silent = [str(other) for other in others if other not in places]
    lines = [f"minijax: process {rank} has waited {waited:.1f} s for other processes, in {where}."]
    lines += [f"Process {other} waits in {place}." for other, place in sorted(places.items())]
    if silent:
        subject, verb = ("Process", "does") if len(silent) == 1 else ("Processes", "do")
        lines.append(f"{subject} {', '.join(silent)} {verb} not answer: stopped, asleep, or busy "
                     "with something else.")
    else:
        lines.append("All processes wait, for each other: they do not run the same operations in "
                     "the same order.")
    return " ".join([*lines, "The flag jax_collective_timeout sets how many seconds a process "
                     "waits."])


def _bytes(x: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array: MPI needs no dtype."""
    return x.reshape(-1).view(np.uint8)


def _reduced(parts: np.ndarray, op: str) -> np.ndarray:
    """The sum along the first axis, term by term."""
    first, second, *others = parts.reshape(len(parts), -1)
    total = REDUCTIONS[op](first, second)
    for part in others:
        REDUCTIONS[op](total, part, out=total)
    return total.reshape(parts.shape[1:])


def with_traceback(engine: MPIEngine) -> Callable[..., None]:
    """A hook for exceptions that nobody has caught: it prints them, and ends all processes."""
    before = sys.excepthook

    def ending_all(kind: Any, error: Any, traceback: Any) -> None:
        before(kind, error, traceback)
        engine.abort(f"minijax: process {engine.rank} of {engine.size} has ended all processes, "
                     f"because of this {kind.__name__}.")
    return ending_all
