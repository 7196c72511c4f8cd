"""minijax and JAX on the same programs, in one process, taking turns: times and ratios.

`python -m tests.bench.ratios [part of a name …] [--quick]`. JAX runs with its default flags and
threads. A row is timed once its results agree with JAX's.
"""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

import minijax
from tests.bench._picture import bars
from tests.bench._report import chosen, options, print_means, save
from tests.bench._row import MILLION, Row, arguments
from tests.bench._workloads import rows

FEWEST, MOST = 7, 400  # turns
ROOF, AHEAD = 0.85, 2.0  # a row is done at this share of what the machine can do, or of JAX's speed


@dataclass
class Result:
    """What was found about a row: seconds, and shares of what the machine can do."""

    name: str
    minijax: float = 0.0
    jax: float = 0.0
    ratio: float | None = None
    of_copy: float | None = None
    of_products: float | None = None
    refused: str = ""
    limit: str = ""

    @property
    def share(self) -> float:
        """The greater of the shares."""
        return max(self.of_copy or 0.0, self.of_products or 0.0)

    @property
    def is_done(self) -> bool:
        """Whether the row is at the roof, or far ahead of JAX."""
        return (self.ratio or 0.0) >= AHEAD or self.share >= ROOF


def seconds(run: Callable[[], Any], times: int = 1) -> float:
    """The time of one call, among `times` in a row."""
    start = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - start) / times


def best(run: Callable[[], Any]) -> float:
    """The shortest of some calls."""
    end, found = time.perf_counter() + 0.3, []
    while len(found) < FEWEST or time.perf_counter() < end:
        found.append(seconds(run))
    return min(found)


# -- the same numbers ----------------------------------------------------------------------------


def result(lib: Any, row: Row) -> Any:
    """What the row's program gives. Random bits are those of the layout that both have."""
    layout = lib.threefry_partitionable(False) if row.draws else nullcontext()
    with layout:
        return lib.block_until_ready(row.run(*arguments(row, lib)))


def difference(ours: Any, theirs: Any, tolerance: float, rounded: Any = None) -> str:
    """How our result is not JAX's, in words; nothing if it is.

    Where JAX rounds products more by default than at its highest precision, `rounded` is what it
    gives by default: so far from `theirs`, and as far again, ours may be.
    """
    ours, theirs = minijax.tree_util.tree_leaves(ours), minijax.tree_util.tree_leaves(theirs)
    rounded = theirs if rounded is None else minijax.tree_util.tree_leaves(rounded)
    if len(ours) != len(theirs):
        return f"{len(ours)} arrays, JAX gives {len(theirs)}"
    for x, y, z in zip(*(map(np.asarray, each) for each in (ours, theirs, rounded)), strict=True):
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            return f"{x.dtype}{x.shape}, JAX gives {y.dtype}{y.shape}"
        if x.dtype.kind in "biu":
            apart, most = np.max(x != y, initial=0), 0.0
        else:
            wide = np.complex128 if x.dtype.kind == "c" else np.float64
            x, y, z = x.astype(wide), y.astype(wide), z.astype(wide)
            apart, most = np.max(np.abs(x - y), initial=0), tolerance * np.max(np.abs(y), initial=0)
            most += 2 * np.max(np.abs(z - y), initial=0)
        if not apart <= most:
            return f"numbers differ by {apart:.2g}, at most {most:.2g} is allowed"
    return ""


# -- what the machine can do ---------------------------------------------------------------------


@cache
def copy_seconds(size: int) -> float:
    """How long the fastest copy takes that reads and writes so many bytes in all."""
    x, y = np.ones(size // 2, np.uint8), np.empty(size // 2, np.uint8)
    count = os.cpu_count() or 1
    parts = list(zip(np.array_split(x, count), np.array_split(y, count), strict=True))
    with ThreadPoolExecutor(count) as pool:
        shared = best(lambda: list(pool.map(lambda part: np.copyto(part[1], part[0]), parts)))
    return min(shared, best(lambda: np.copyto(y, x)))


@cache
def product_rate() -> float:
    """Operations a second of the fastest float32 product there is, NumPy's or JAX's."""
    import jax

    product, rates = jax.jit(lambda a, b: a @ b), []
    for n in (256, 512, 1024):
        x = np.ones((n, n), np.float32)
        y = jax.numpy.asarray(x)
        took = min(best(lambda x=x: x @ x), best(lambda y=y: product(y, y).block_until_ready()))
        rates.append(2 * n ** 3 / took)
    return max(rates)


def shares(row: Row, given: list, out: Any, took: float) -> dict[str, float]:
    """The row's speed as a part of the machine's, where memory or products are what counts."""
    read, written = (sum(x.nbytes for x in minijax.tree_util.tree_leaves(tree)
                         if isinstance(x, minijax.Array)) for tree in (given, out))
    found, size = {}, read + written
    if written and size >= MILLION:
        found["of_copy"] = copy_seconds(size) / took
    if row.flops:
        found["of_products"] = row.flops / product_rate() / took
    return found


# -- a row ---------------------------------------------------------------------------------------


def in_turn(runs: list[Callable[[], Any]], quick: bool) -> list[float]:
    """The times of some calls that take turns: medians, or minima of few."""
    once = max(min(seconds(run) for _ in range(3)) for run in runs)
    times = max(1, int(100e-6 / once))  # what takes no time is measured many times at once
    budget = 0.4 if quick else 1.5
    turns = min(MOST, max(FEWEST, int(budget / (len(runs) * times * once))))
    found: list[list[float]] = [[] for _ in runs]
    for turn in range(turns):
        for k in range(len(runs)):  # who is first changes, or one would always warm the cache
            k = (k + turn) % len(runs)
            found[k].append(seconds(runs[k], times))
    return [min(each) if quick else statistics.median(each) for each in found]


def measure(ours: Row, theirs: Row, quick: bool) -> Result:
    """One row: compared, then timed."""
    import jax

    try:
        out = result(minijax, ours)
    except Exception as error:
        return Result(ours.name, refused=f"{type(error).__name__}: {str(error).split('. ')[0]}")
    if wrong := difference(out, result(jax, theirs), ours.tolerance):
        return Result(ours.name, refused=wrong)

    def call(lib: Any, row: Row) -> Callable[[], Any]:
        given = arguments(row, lib)
        return lambda: lib.block_until_ready(row.run(*given))

    x, y = in_turn([call(minijax, ours), call(jax, theirs)], quick)
    return Result(ours.name, x, y, y / x, limit=ours.limit,
                  **shares(ours, arguments(ours, minijax), out, x))


def line(found: Result) -> str:
    """A row of the table."""
    if found.ratio is None:
        return f"{found.name:34}  {found.refused}"
    copied = f"{found.of_copy:8.0%}" if (found.of_copy or 0) > 0.005 else " " * 8
    products = f"{found.of_products:10.0%}" if found.of_products else ""
    return (f"{found.name:34}{1e6 * found.minijax:11.1f} µs{1e6 * found.jax:11.1f} µs"
            f"{found.ratio:8.2f}{copied}{products}")


def print_roofs(found: Sequence[Result]) -> None:
    """The rows that are neither at the roof nor far ahead, with the reason of each."""
    below = sorted((each for each in found if not each.is_done), key=lambda each: -each.share)
    print(f"\n{len(below)} of {len(found)} rows below {ROOF:.0%} of copy and of product, and below "
          f"{AHEAD:.0f} times JAX's speed")
    for each in below:
        share = f"{each.share:8.0%}" if each.share else " " * 8
        print(f"{each.name:34}{each.ratio or 0:8.2f}{share}  "
              f"{each.refused or each.limit or 'no reason is known'}")


def main() -> None:
    given = options("minijax beside JAX, row by row")
    if kind := os.environ.get("OPENBLAS_CORETYPE"):
        print(f"OPENBLAS_CORETYPE={kind} is set: NumPy's BLAS, and so ours, may be slower for it")
    print(f"{'':34}{'minijax':>14}{'JAX':>14}{'ratio':>8}{'of copy':>8}{'of product':>11}")
    found = []
    for ours, theirs in zip(rows("minijax"), rows("jax"), strict=True):
        if chosen(ours.name, given.words):
            found.append(measure(ours, theirs, given.quick))
            print(line(found[-1]), flush=True)
    ratios = [each.ratio for each in found if each.ratio is not None]
    print_means(ratios, 62)
    behind = sorted((each for each in found if (each.ratio or 0) < 1), key=lambda r: r.ratio or 0)
    print(f"\n{len(behind)} of {len(found)} rows under 1")
    print(*map(line, behind), sep="\n")
    print_roofs(found)
    found.sort(key=lambda each: each.ratio or 0)
    save("ratios", [asdict(each) for each in found],
         bars("JAX's time / minijax's: to the right is ahead",
              [(each.name, each.ratio) for each in found]))


if __name__ == "__main__":
    main()
