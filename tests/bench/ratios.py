"""minijax and JAX on the same workloads, in one process, taking turns: medians and ratios.

`python -m tests.bench.ratios [part of a name …]`. JAX runs with its default flags and threads.
"""

import math
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


def machine() -> tuple[float, float]:
    """What is possible: bytes per second of a copy, operations per second of a product."""
    x = np.ones(16 * MILLION, np.float32)
    y = np.empty_like(x)
    a = np.ones((1024, 1024), np.float32)
    b = np.empty_like(a)
    copy, product = medians([lambda: np.copyto(y, x), lambda: np.matmul(a, a, out=b)])
    return 2 * x.nbytes / copy, 2 * 1024**3 / product


def main(names: list[str]) -> None:
    import jax

    bandwidth, rate = machine()
    print(f"copy {bandwidth / 1e9:.1f} GB/s (one thread), BLAS {rate / 1e9:.0f} GFLOP/s")
    print(f"{'':30}{'minijax':>12}{'JAX':>12}{'ratio':>8}")
    ratios = []
    for row in ROWS:
        if names and not any(name in row.name for name in names):
            continue
        ours, theirs = medians([ready(minijax, row), ready(jax, row)])
        ratios.append(theirs / ours)
        share = ""
        if row.bytes >= MILLION:
            share = f"{row.bytes / bandwidth / ours:8.0%} of a copy's speed"
        elif row.flops:
            share = f"{row.flops / rate / ours:8.0%} of BLAS"
        print(f"{row.name:30}{1e6 * ours:9.1f} µs{1e6 * theirs:9.1f} µs{ratios[-1]:8.2f}{share}",
              flush=True)
    mean = math.exp(statistics.fmean(math.log(min(r, CAP)) for r in ratios))
    print(f"{'geometric mean (capped at 4)':54}{mean:8.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
