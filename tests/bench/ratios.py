"""minijax and JAX on the same workloads, in one process, taking turns: medians and ratios.

`python -m tests.bench.ratios [part of a name …]`. JAX runs with its default flags and threads.
"""

import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax
from tests.bench._workloads import MILLION, ROWS, Row

CAP = 4.0        # no single row carries the mean
SECONDS = 1.5    # for each row, both libraries together
FEWEST, MOST = 7, 400


def seconds(run: Callable[[], Any], times: int) -> float:
    """The time of one call, among `times` in a row."""
    start = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - start) / times


def ready(lib: Any, row: Row) -> Callable[[], Any]:
    """A call of the row's program that ends when its result is there."""
    f, args = row.make(lib, np.random.default_rng(0))
    args = lib.tree_util.tree_map(lib.numpy.asarray, args)

    def run() -> Any:
        return lib.block_until_ready(f(*args))

    run()
    return run


def medians(runs: list[Callable[[], Any]]) -> list[float]:
    """The median times of some calls that take turns."""
    once = max(min(seconds(run, 1) for _ in range(3)) for run in runs)
    times = max(1, int(100e-6 / once))  # what takes no time is measured many times at once
    turns = min(MOST, max(FEWEST, int(SECONDS / (len(runs) * times * once))))
    found: list[list[float]] = [[] for _ in runs]
    for turn in range(turns):
        for k in range(len(runs)):  # who is first changes, or one would always warm the cache
            k = (k + turn) % len(runs)
            found[k].append(seconds(runs[k], times))
    return [statistics.median(each) for each in found]


def limit(row: Row) -> tuple[str, Callable[[], Any]] | None:
    """What the machine itself needs for a row's memory or products: NumPy's copy, or its BLAS."""
    if row.flops:
        n = round((row.flops / 2) ** (1 / 3))
        a, c = np.ones((n, n), np.float32), np.empty((n, n), np.float32)
        return "BLAS", lambda: np.matmul(a, a, out=c)
    if row.bytes < MILLION:
        return None
    x, y = np.ones(row.bytes // 2, np.uint8), np.empty(row.bytes // 2, np.uint8)
    return "a copy", lambda: np.copyto(y, x)


def main(names: list[str]) -> None:
    import jax

    if kind := os.environ.get("OPENBLAS_CORETYPE"):
        print(f"OPENBLAS_CORETYPE={kind} is set: NumPy's BLAS, and so ours, may be slower for it")
    print(f"{'':30}{'minijax':>12}{'JAX':>12}{'ratio':>8}   of the speed of")
    ratios = []
    for row in ROWS:
        if names and not any(name in row.name for name in names):
            continue
        runs, best = [ready(minijax, row), ready(jax, row)], limit(row)
        ours, theirs, *least = medians([*runs, best[1]] if best else runs)
        ratios.append(theirs / ours)
        share = f"{least[0] / ours:8.0%} {best[0]}" if best else ""
        print(f"{row.name:30}{1e6 * ours:9.1f} µs{1e6 * theirs:9.1f} µs{ratios[-1]:8.2f}{share}",
              flush=True)
    mean = math.exp(statistics.fmean(math.log(min(r, CAP)) for r in ratios))
    print(f"{'geometric mean (capped at 4)':54}{mean:8.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
