"""How long until a program first runs: compiled anew, from disk, in a fresh process.

Every row of `_workloads.py` in its order, each library in processes of its own. minijax keeps
compiled kernels on disk by itself; JAX is asked to, so both have a cache in the second columns.
"""

import json
import sys
import tempfile
import time
from typing import Any

from tests.bench._libraries import LIBRARIES, child, library, ready
from tests.bench._picture import bars
from tests.bench._report import chosen, geometric_mean, options, save
from tests.bench._row import arguments
from tests.bench._workloads import TO_COMPILE, rows

Times = dict[str, float]


def first_calls(name: str, words: list[str]) -> Times:
    """The time of tracing, compiling and running each row once; rows that fail are left out."""
    lib, found = ready(name), {}
    for row in rows(name, TO_COMPILE):
        if not chosen(row.name, words):
            continue
        given = arguments(row, lib)
        start = time.perf_counter()
        try:
            lib.block_until_ready(row.run(*given))
        except NotImplementedError:
            continue
        found[row.name] = time.perf_counter() - start
    return found


def from_the_start(name: str) -> Times:
    """The import, and the first result of a process."""
    start = time.perf_counter()
    lib = library(name)
    imported = time.perf_counter() - start
    lib.block_until_ready(lib.jit(lambda x: lib.numpy.tanh(x) * 2 + 1)(lib.numpy.ones(1000)))
    return {"import": imported, "import and first result": time.perf_counter() - start}


def both(words: list[str], runs: int) -> dict[str, list[Times]]:
    """For each library two columns: cold, and from disk. Minima of some runs, in turns."""
    found: dict[str, list[list[Times]]] = {name: [[], []] for name in LIBRARIES}
    for _ in range(runs):
        for name in LIBRARIES:
            with tempfile.TemporaryDirectory() as cache:
                for column in found[name]:
                    column.append(child("first_calls", "--child", name, *words, cache=cache)
                                  | child("first_calls", "--start", name, cache=cache))
    return {name: [{row: min(run[row] for run in column) for row in column[0]}
                   for column in columns] for name, columns in found.items()}


def main() -> None:
    given = options("first calls beside JAX's")
    found = both(given.words, 1 if given.quick else 3)
    results: list[dict[str, Any]] = []
    print(f"{'':34}{'cold':>10}{'JAX':>10}{'part':>7}{'from disk':>13}{'JAX':>10}{'part':>7}")
    for name in found["minijax"][0]:
        cold, disk = ([found[library][k][name] for library in LIBRARIES] for k in (0, 1))
        results.append({"name": name, "cold": cold, "disk": disk})
        print(f"{name:34}" + "   ".join(f"{1e3 * x:7.1f} ms{1e3 * y:7.1f} ms{x / y:7.2f}"
                                        for x, y in (cold, disk)))
    means = [geometric_mean(x / y for x, y in (each[how] for each in results))
             for how in ("cold", "disk")]
    sums = [sum(x for x, _ in column) / sum(y for _, y in column)
            for column in ([each["cold"] for each in results], [each["disk"] for each in results])]
    print(f"{'geometric mean':54}{means[0]:7.2f}{means[1]:33.2f}")
    print(f"{'of all together':54}{sums[0]:7.2f}{sums[1]:33.2f}")
    ahead = [(each["name"], each["cold"][1] / each["cold"][0]) for each in results]
    save("first_calls", results, bars("JAX's first call, cold / minijax's: to the right is ahead",
                                      sorted(ahead, key=lambda entry: entry[1])))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(first_calls(sys.argv[2], sys.argv[3:])))
    elif sys.argv[1:2] == ["--start"]:
        print(json.dumps(from_the_start(sys.argv[2])))
    else:
        main()
