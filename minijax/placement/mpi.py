"""Collectives among the processes of a program, by MPI: `MPIEngine`.

Builds on `config`, `engine`; loads mpi4py when a program joins the others.
Chapter 11, *Named axes and many devices*.  In JAX: XLA's collectives over gloo, MPI or NCCL.
"""

import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from minijax import config
from minijax.placement.engine import REDUCTIONS, Group, Pairs, combined

T = TypeVar("T")

SPINS = 1000  # polls at once: some 250 µs
FEW_SPINS = 20  # where the processes of a machine share its cores
YIELDS = 1000  # polls from then on, between which other programs may run
PAUSE = 50e-6  # seconds between two polls from then on
LOOKING = 0.25  # seconds between two looks whether the other processes live
GRACE = 1.0  # seconds in which other processes answer where they wait
PRINTING = 0.2  # seconds in which the launcher prints what was said, before all ends
SMALL = 1 << 15  # bytes of an array that is reduced where it is needed, in one step

_QUESTION, _ANSWER, _ARRIVAL, _PERMUTED = range(4)  # the tags of messages


class MPIEngine:
    """The collectives of one process of a program that a launcher of MPI has started.

    Each waits with a clock: a process that waits longer than the flag `collective_timeout` says for
    whom, and ends the program. Buffers are passed to MPI as they are, as bytes; numbers are
    reduced here, in the order of every engine, so that results depend on no implementation of MPI.

    Attributes:
      rank: the number of this process.
      size: the number of processes.
    """

    ranks_are_processes = True

    def __init__(self) -> None:
        from mpi4py import MPI
        self._mpi, self._byte, world = MPI, MPI.BYTE, MPI.COMM_WORLD
        self.rank, self.size = world.Get_rank(), world.Get_size()
        self._started = world
        everyone = tuple(range(self.size))
        self._world, self._messages, checks = world.Dup(), world.Dup(), world.Dup()
        self._communicators: dict[tuple[Group, str], Any] = {
            (everyone, ""): self._world, (everyone, "checks"): checks}
        here, cores = _pid_space(), cores_of_process()
        every = world.allgather((here, os.getpid(), cores))
        self._neighbours = {  # the other processes of this machine, which can be seen to live
            rank: pid for rank, (space, pid, _) in enumerate(every)
            if here and space == here and rank != self.rank}
        sharing = sum(space == here and bool(cores & theirs) for space, _, theirs in every)
        self._spins = range(SPINS if sharing <= len(cores) else FEW_SPINS)
        # Where the launcher binds no process to cores of its own, each takes its share of threads.
        os.environ.setdefault("MINIJAX_NUM_THREADS", str(max(1, len(cores) // sharing)))
        self._sent: list[Any] = []  # requests of answers, which end by themselves

    # ── Collectives ──────────────────────────────────────────────────────────────────────────

    def allreduce(self, x: np.ndarray, op: str, group: Group, where: str = "") -> np.ndarray:
        """The sum (or "mul", "max", "min", "and", "or") of the arrays of a group."""
        if len(group) == 1 or not x.size:
            return x
        if len(group) == 2 and self.rank in group:
            other = self.permute(x, (group, group[::-1]), where)
            with np.errstate(all="ignore"):
                pair = (x, other) if self.rank == group[0] else (other, x)
                return REDUCTIONS[op](*pair, out=other)
        if x.nbytes <= SMALL:
            return combined([*self.allgather(x, group, where)], op)
        # Each process reduces one part, as large as that of each other.
        length = -(-x.size // len(group))
        flat = np.zeros(length * len(group), x.dtype)
        flat[:x.size] = x.reshape(-1)
        parts = self.alltoall(flat.reshape(len(group), length), group, where)
        whole = self.allgather(combined([*parts], op), group, where)
        return whole.reshape(-1)[:x.size].reshape(x.shape)

    def allgather(self, x: np.ndarray, group: Group, where: str = "") -> np.ndarray:
        """The arrays of a group along a new first axis."""
        out = np.empty((len(group), *x.shape), x.dtype)
        return self._exchange("Iallgather", x, out, group, where)

    def alltoall(self, x: np.ndarray, group: Group, where: str = "") -> np.ndarray:
        """For each process of a group its block of this process's array, in order of their rank."""
        return self._exchange("Ialltoall", x, np.empty_like(x), group, where)

    def _exchange(self, collective: str, x: np.ndarray, out: np.ndarray, group: Group, where: str
                  ) -> np.ndarray:
        """A collective of MPI, to which dtypes are bytes."""
        if len(group) == 1 or not x.size:
            out[...] = x
        else:
            start = getattr(self._communicator(group, where), collective)
            self._wait(start((x, self._byte), (out, self._byte)), where)
        return out

    def permute(self, x: np.ndarray, pairs: Pairs, where: str = "") -> np.ndarray:
        """The array of the process that is the source of this one; zeros if there is none."""
        arrives = any(target == self.rank for _, target in pairs)
        out, requests = (np.empty_like if arrives else np.zeros_like)(x), []
        for source, target in pairs:
            if source == target == self.rank:
                out[...] = x
            elif target == self.rank:
                requests.append(self._world.Irecv((out, self._byte), source, _PERMUTED))
            elif source == self.rank:
                requests.append(self._world.Isend((x, self._byte), target, _PERMUTED))
        for request in requests:
            self._wait(request, where)
        return out

    def broadcast(self, x: np.ndarray, root: int, group: Group, where: str = "") -> np.ndarray:
        """The array of one process of a group; those of the others have its shape and dtype."""
        if len(group) == 1 or not x.size:
            return x
        out = x if self.rank == root else np.empty(x.shape, x.dtype)
        communicator = self._communicator(group, where)
        self._wait(communicator.Ibcast((out, self._byte), group.index(root)), where)
        return out

    def once(self, call: Callable[[], T], group: Group, where: str = "") -> T:
        """The result of a function: each process calls it."""
        return call()

    def abort(self, message: str) -> NoReturn:
        """Print a message, and end all processes of the program."""
        sys.stdout.flush()
        print(message, file=sys.stderr, flush=True)
        time.sleep(PRINTING)
        self._started.Abort(1)
        raise SystemExit(1)

    def ending_all(self, before: Callable) -> Callable[..., None]:
        """A hook for exceptions that nobody has caught: after the one before, all processes end."""
        def hook(kind: Any, error: Any, traceback: Any) -> None:
            before(kind, error, traceback)
            self.abort(f"minijax: process {self.rank} of {self.size} has failed with this "
                       f"{kind.__name__}, and ends all.")
        return hook

    def finish(self, limit: float) -> None:
        """Wait at the end of the program for the other processes."""
        self._wait(self._world.Ibarrier(), "the end of its program", limit)

    def agree(self, told: bytes, group: Group, where: str) -> list[bytes]:
        """What each process of a group says, in as many bytes; apart from the data of programs."""
        x, communicator = np.frombuffer(told, np.uint8), self._communicator(group, where, "checks")
        out = np.empty((len(group), x.size), np.uint8)
        self._wait(communicator.Iallgather(x, out), where)
        return [row.tobytes() for row in out]

    def _communicator(self, group: Group, where: str, use: str = "") -> Any:
        if (communicator := self._communicators.get((group, use))) is None:
            self._meet(group, where)  # as MPI makes communicators without a clock
            communicator = self._communicators[group, use] = self._world.Create_group(
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
        for _ in self._spins:
            if done():
                return
        for _ in range(YIELDS):
            _yield()
            if done():
                return
        start, look = time.monotonic(), LOOKING
        limit = config.collective_timeout.value if limit is None else limit
        while not done():
            waited = time.monotonic() - start
            if waited > limit:
                self._give_up(where, waited)
            if waited > look:
                look += LOOKING
                dead = [rank for rank, pid in self._neighbours.items() if not _lives(pid)]
                if dead and not done():
                    self._give_up(where, waited, dead)
            self._answer(where)
            time.sleep(PAUSE)

    def _answer(self, where: str) -> list[int]:
        """Tell processes that ask where this one waits; returns who has asked."""
        status, asking = self._mpi.Status(), []
        while self._messages.Iprobe(tag=_QUESTION, status=status):
            asking.append(status.Get_source())
            self._messages.recv(source=asking[-1], tag=_QUESTION)
            self._sent.append(self._messages.isend(where, asking[-1], _ANSWER))
        return asking

    def _give_up(self, where: str, waited: float, dead: Sequence[int] = ()) -> NoReturn:
        """Ask the other processes where they wait, name those that do not answer, and end all."""
        others = [rank for rank in range(self.size) if rank != self.rank and rank not in dead]
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
        self.abort(_who_waits(self.rank, where, waited, others, places, dead))


def _who_waits(rank: int, where: str, waited: float, others: Sequence[int],
               places: dict[int, str], dead: Sequence[int]) -> str:
    """The message of a process that has waited too long, with what the others have answered."""
    lines = [f"minijax: process {rank} has waited {waited:.1f} s for other processes at {where}.",
             *(f"Process {other} has died." for other in dead),
             *(f"Process {other} waits at {place}." for other, place in sorted(places.items())),
             *(f"Process {other} does not answer: it is stopped, asleep, or busy elsewhere."
               for other in others if other not in places)]
    if not dead and len(places) == len(others):
        lines.append("All processes wait, for each other: they do not run the same operations in "
                     "the same order.")
    if not dead:
        lines.append("The flag jax_collective_timeout sets how many seconds a process waits.")
    return "\n  ".join(lines)


def cores_of_process() -> set[int]:
    """The cores on which this process may run."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


_yield: Callable[[], None] = getattr(os, "sched_yield", lambda: None)


def _pid_space() -> tuple[str, int] | None:
    """What processes have in common that see each other's pids; None where it is unknown."""
    try:
        return socket.gethostname(), os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None


def _lives(pid: int) -> bool:
    """Whether a process of this machine runs: what has ended may still have its pid."""
    try:
        with open(f"/proc/{pid}/stat") as facts:
            return facts.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
