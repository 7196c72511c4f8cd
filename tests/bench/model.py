"""What a GPU would take for the rows of device.py, predicted from their launches without one.

    python -m tests.bench.model [part of a name …]

A launch is timed by the bytes of the sectors that it moves, its instructions of each class, and its
chains of loads that wait for each other; rates and measured times are those of h200.toml.
"""

import math
import statistics
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import minijax
from minijax.compiler.elementary import FORMULAS
from minijax.compiler.function_text import _Instructions
from minijax.compiler.loops import (MMA, Atomic, Barrier, Buffer, Call, Constant, For, If, Kernel,
                                    Launch, Let, Load, Operand, Read, Shuffle, Statement, Store,
                                    While, bodies, walk)
from minijax.compiler.schedule import lower_to_kernel
from minijax.compiler.targets import cublas, special_functions
from minijax.compiler.targets.coalescing import ALIGNMENT, TRIPS, _Strides
from minijax.compiler.targets.launches import UNROLLED, scheduled
from minijax.compiler.targets.look_back import STEP
from minijax.compiler.targets.thread_block import WARP
from minijax.compiler.vectors import function
from minijax.primitives.infix import Number
from tests.bench._report import chosen, geometric_mean, options
from tests.bench._row import Row
from tests.bench.device import large, small

TABLE = tomllib.loads(Path(__file__).with_name("h200.toml").read_text(encoding="utf-8"))
MACHINE, MEASURED, CHANGED = TABLE["machine"], TABLE["rows"], TABLE["changed"]
NEW = TABLE["new"]
SECTOR, PROCESSORS, RESIDENT, SHARED = 32, 132, 2048, 227 << 10  # bytes, …, threads, bytes
MIN_THREADS = 256  # of a processor, whose loads take all the bandwidth
CACHE = 24 << 20  # bytes of an array that stays in the cache from launch to launch
RUN = 16  # elements that a sort moves together: those of a digit in a tile
UNROLLED_LOOP = 16  # iterations at most of a loop that LLVM unrolls
OVERLAP = 2.5  # how moving and computing add up: 1 one after the other, many side by side

# Instructions of an operation, if not one. A rotation, `x << a | x >> b`, is one of three.
FLOATS = {"div": 9, "sqrt": 9, "rem": 40, "neg": 0, "abs": 0, "bitcast": 0, "copysign": 1}
QUOTIENT = 8  # where the divisor stays the same
INTEGERS = {"div": 12, "rem": 14, "or": 0, "shl": 0.5, "shr_logical": 0.5, "bitcast": 0}


class Shapes:
    """Draws zeros, which have the shapes of what is drawn, and cost nothing."""

    def standard_normal(self, shape: Any, dtype: Any) -> Any:
        return np.zeros(shape, dtype)

    def uniform(self, low: float, high: float, shape: Any) -> Any:
        return np.zeros(shape, np.float32)

    def integers(self, low: int, high: int, shape: Any, dtype: Any = np.int64) -> Any:
        return np.zeros(shape, dtype)


def launches_of(row: Row) -> Kernel:
    """The scheduled kernel of a row."""
    types = minijax.tree_util.tree_map(
        lambda draw: minijax.typeof(draw(Shapes())), row.arguments)
    lowered = minijax.jit(row.run).lower(*types)._lowered
    return scheduled(lower_to_kernel(lowered.jaxpr, lowered.name, on_gpu=True))


# -- counts --------------------------------------------------------------------------------------

class Counts(Counter[str]):
    """What one launch does: instructions of all its threads by class, the sectors at random places,
    the loads that wait for each other, one after the other; `bytes` are those of memory.
    """

    def __init__(self, launch: Launch) -> None:
        super().__init__()
        self.strides = _Strides(launch.thread, set())
        self.carried: set[Any] = set()  # what depends on a variable
        self.depth: dict[Any, int] = {}  # of what is loaded, how many loads wait for each other
        self.chain = 0  # the longest in an iteration of the loop around
        self.shares: dict[Any, float] = {}  # of a test, the threads for which it holds
        self.runs: set[Any] = set()  # what comes from shared memory: neighbours are often close
        self.turns: set[Any] = set()  # by which a block knows that it is the last
        self.loops: list[tuple[_Strides, float]] = []  # around, with their trip counts
        self.blocks = launch.blocks
        self.threads, self.each = launch.threads * launch.blocks, launch.threads
        self.moved: Counter[tuple[Buffer, type]] = Counter()
        self.shared: set[Buffer] = set()
        self["waits"], self["threads"] = 1, self.threads
        self.of(launch.body, 1.0)
        for (buffer, _), nbytes in self.moved.items():
            self["bytes"] += round(min(nbytes, buffer.nbytes))
        room = SHARED // max(sum(x.nbytes for x in self.shared), 1)
        blocks = max(min(RESIDENT // launch.threads, room), 1) * PROCESSORS
        self["waits"] *= math.ceil(launch.blocks / blocks)  # type: ignore[assignment]

    def of(self, body: Sequence[Statement], times: float, turns: float = 0.0) -> None:
        """Count a body that each thread runs so often, of it `turns` one after the other."""
        if turns and any(isinstance(x, Barrier) for x in body) and any(
                isinstance(x, Load) and x.buffer.role != "shared" for x in body):
            self["waits"] += turns  # all threads wait for the slowest load
        for each in body:
            match each:
                case Let(target, op, args):
                    self.operation(op, args, target, times)
                case (Load(target, buffer, at) | Store(buffer, at, target)
                      | Atomic(target, _, buffer, at)):
                    self.access(each, buffer, at, times, turns)
                    self["waits"] += getattr(each, "ordered", 0)  # until all others see it
                    if isinstance(each, Load) and buffer.role == "shared":
                        self.runs.add(target)
                    if isinstance(each, Load) and buffer.name == "turn":
                        self.turns.add(target)
                    if isinstance(each, Load):
                        self.strides[target] = None if self.strides.at(
                            buffer, at) != 0 else 0
                        self.varies(target)
                case Read(target):  # such as the middle of an interval: neighbours are close
                    self.carried.add(target)
                    self.varies(target)
                case Shuffle(target):
                    self.varies(target)
                    self["memory"] += round(self.threads * times)
                case MMA():
                    self["tensor"] += round(self.threads * times)
                case Barrier():
                    self["integer"] += round(self.threads * times)
                case For() | While():
                    trips = each.trip_count if isinstance(each, For) else None
                    n = 1 if not each.body else TRIPS if trips is None else trips
                    if isinstance(each, While) and any(
                            isinstance(x, Atomic) and x.op == "read" for x in walk(each.body)):
                        n //= STEP  # iterations that look back at so many blocks
                    steps = n if n > UNROLLED_LOOP else 0
                    self["integer"] += round(2 * steps * times * self.threads)
                    self.loops.append((_Strides(getattr(each, "index", None), set()), n))
                    chain, self.chain = self.chain, 0
                    for inner in bodies(each):
                        self.of(inner, times * n, max(turns, 1.0) * n)
                    # The cache answers sooner than memory.
                    self["waits"] += max(turns, 1.0) * n / 2 * self.chain
                    self.chain = chain
                    self.loops.pop()
                case If(test, then, orelse):
                    share = self.shares.get(test, 0.5 if orelse else 1.0)
                    for inner in (then, orelse):
                        self.of(inner, times * share, turns)

    def access(self, statement: Statement, buffer: Buffer, at: Sequence[Operand], times: float,
               turns: float) -> None:
        """A load or store of each thread, so often."""
        warps, stride = self.threads / WARP * times, self.strides.at(buffer, at)
        size = buffer.dtype.itemsize
        together = stride if stride == UNROLLED and size * UNROLLED <= ALIGNMENT else 1
        self["memory"] += round(self.threads * times / together)
        if buffer.role in ("shared", "local"):
            self.shared |= {buffer} if buffer.role == "shared" else set()
            return
        if turns and not isinstance(statement, Store) and not self.carried.isdisjoint(at):
            self.depth[statement.target] = 1 + max(self.depth.get(i, 0) for i in at)
            self.chain = max(self.chain, self.depth[statement.target])
        apart = WARP if self.runs.isdisjoint(at[-1:]) else WARP / RUN * (RUN * size / SECTOR + 1)
        sectors = apart if stride is None else max(min(
            WARP * abs(stride) * size / SECTOR, WARP) / together, 1)
        self.moved[buffer, type(statement)] += round(warps * sectors * SECTOR)
        if isinstance(statement, Atomic) and statement.op != "read":
            self["atomic"] += round(warps * sectors / (1 if buffer.nbytes > CACHE else 4))
        elif stride is None and buffer.nbytes > CACHE:
            self["random"] += round(warps * sectors)

    def varies(self, target: Any, stride: int | None = None) -> float:
        """What an integer changes by from one iteration of the loop around to the next; where that
        is known, LLVM computes it before the loop: how often it is computed an iteration.
        """
        if not self.loops:
            return 1
        around, trips = self.loops[-1]
        around[target] = stride
        return 1 if stride is None else 1 / trips

    def operation(self, op: str, args: Sequence[Operand], target: Any, times: float) -> None:
        """An operation of each thread, so often."""
        self.strides[target] = self.strides.operation(op, args)
        self.depth[target] = max((self.depth.get(x, 0) for x in args), default=0)
        if op in ("add", "convert") and not self.runs.isdisjoint(args):
            self.runs.add(target)
        self.carried |= {target} if not self.carried.isdisjoint(args) else set()
        if op == "eq" and self.strides[args[0]]:  # one thread, of a block or a warp
            self.shares[target] = 1 / WARP
        if op == "eq" and args[0] in self.turns:
            self.shares[target] = 1 / self.blocks
        share = self.varies(target, self.loops and self.loops[-1][0].operation(op, args))
        dtype = args[-1].dtype
        if op in FORMULAS:
            for each in formula_of(op, dtype):
                if isinstance(each, Let):
                    self.operation(each.op, each.args, each.target, times)
            return
        is_float = dtype.kind not in "biu"
        count = (FLOATS if is_float else INTEGERS).get(op, 1)
        if op == "convert" and not is_float and target.dtype.kind in "biu":
            count = 0  # LLVM computes indices in as many bits as they need
        if op in ("div", "rem") and isinstance(args[1], Constant) and (
                not is_float and int(args[1].value).bit_count() == 1):
            count = 1
        if op == "div" and is_float and isinstance(args[1], Constant):
            value = args[1].value
            count = 1 if abs(np.frexp(value)[0]) == 0.5 else (
                QUOTIENT if special_functions.reciprocal(value) is None else 2)
        elif op == "div" and is_float and self.loops and self.loops[-1][0][args[1]] == 0:
            count = QUOTIENT
        words = max(dtype.itemsize // 4, 1) if is_float else 1  # LLVM narrows indices to 32 bits
        kind = "special" if "approx" in op else "float" if is_float else "integer"
        times *= share if kind == "integer" else 1
        self[kind] += round(count * words * self.threads * times)


def formula_of(op: str, dtype: np.dtype) -> Sequence[Statement]:
    """An elementary function as a GPU computes it."""
    f = function(op, dtype)
    if dtype != np.float32 or op not in special_functions.FORMULAS:
        return f.body
    b = _Instructions()
    special_functions.FORMULAS[op](*(Number(b, x) for x in f.parameters))
    return b.scopes[0].statements


def counts_of(body: Iterable[Statement]) -> Iterator[Counts]:
    """Of each launch its counts; a loop of the host repeats its launches."""
    for each in body:
        if isinstance(each, Launch):
            yield Counts(each)
        elif not isinstance(each, Call):
            for inner in bodies(each):
                yield from list(counts_of(inner)) * (getattr(each, "trip_count", 0) or 1)


# -- times ---------------------------------------------------------------------------------------

def seconds_of(counts: Mapping[str, int]) -> float:
    """How long a launch takes."""
    rates = MACHINE["instructions"]
    share = min(counts["threads"] / (PROCESSORS * MIN_THREADS), 1)
    moving = max(counts["bytes"] / (MACHINE["bandwidth"] * share),
                 counts["random"] / MACHINE["sectors"], counts["atomic"] / MACHINE["atomics"])
    classes = {kind: counts[kind] / rate for kind, rate in rates.items() if kind != "all"}
    computing = max(sum(counts[kind] for kind in classes) / rates["all"], *classes.values())
    if counts["tensor"]:  # few blocks leave processors idle; a step computes, then moves
        computing = max(computing, classes["tensor"] + classes["memory"])
        computing /= min(counts["threads"] / (PROCESSORS * MIN_THREADS), 1)
    waiting = counts["waits"] * MACHINE["latency"]
    return MACHINE["launch"] + sum(x ** OVERLAP for x in (moving, computing, waiting)) ** (
        1 / OVERLAP)


@dataclass
class Predicted:
    """What is predicted of a row."""

    name: str
    counts: Counter[str]
    launches: int
    device: float  # seconds
    whole: float

    @classmethod
    def of(cls, name: str, kernel: Kernel) -> "Predicted":
        every = list(counts_of(kernel.body))
        calls = [each for each in kernel.body if isinstance(each, Call)]
        launches = len(every) + len(calls)
        device = sum(map(seconds_of, every)) + sum(map(seconds_of_product, calls))
        call, launch = MACHINE["host"]
        total: Counter[str] = Counter()
        for each in every:
            total.update(each)
        return cls(name, total, launches, device, max(device, call + launch * launches))

    @property
    def error(self) -> float:
        """How far it is from what was measured, as a share of that."""
        return 1e6 * self.whole / MEASURED[self.name][0] - 1

    @property
    def ratio(self) -> float:
        """JAX's measured time by ours."""
        return MEASURED[self.name][1] / self.whole / 1e6

    def __str__(self) -> str:
        times = "".join(f"{1e6 * x:10.1f}" for x in (self.device, self.whole))
        counts = f"{self.launches:10}{self.counts['bytes'] / 1e6:9.1f}"
        if self.name not in MEASURED:
            return f"{self.name:30}{times}{'':10}{'new':>8}{'':18}{counts}"
        ours, theirs = MEASURED[self.name]
        error = f"{'new':>8}" if self.name in CHANGED else f"{self.error:8.0%}"
        return f"{self.name:30}{times}{ours:10.1f}{error}{theirs:10.1f}{self.ratio:8.2f}{counts}"


def seconds_of_product(call: Call) -> float:
    """How long cuBLAS takes for a product, whose batch and sizes come last."""
    batch, m, n, k = (float(x.value) for x in call.args[-4:] if isinstance(x, Constant))
    x, _, z, is_tf32 = cublas.dtypes_of(call.external)
    size = np.dtype(x).itemsize
    rate = MACHINE["products"][1 if is_tf32 else 2 if size == 2 else 0]
    nbytes = batch * (size * (m * k + k * n) + np.dtype(z).itemsize * m * n)
    return max(2 * batch * m * n * k / rate, nbytes / MACHINE["bandwidth"])


HEAD = (f"{'microseconds':30}{'GPU alone':>10}{'predicted':>10}{'measured':>10}{'error':>8}"
        f"{'JAX':>10}{'ratio':>8}{'launches':>10}{'MB':>9}")


def main() -> None:
    given, found = options("what a GPU would take, without one"), []
    print(HEAD)
    for row in (*large("minijax", 1 << 24, 1 << 12), *small("minijax")):
        if (row.name in MEASURED or row.name in NEW) and chosen(row.name, given.words):
            found.append(Predicted.of(row.name, launches_of(row)))
            print(found[-1], flush=True)
    there = [each for each in found if each.name in MEASURED]
    errors = [abs(each.error) for each in there if each.name not in CHANGED]
    ratios = [each.ratio for each in there] or [math.nan]
    print(f"median error {statistics.median(errors or [math.nan]):.0%}; JAX's time by ours, "
          f"geometric mean {geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
