"""Chapter 00's training on minijax and on JAX: the chapter's own cells, only the imports changed.

Ten epochs in one process, alternating; then in fresh processes, kernels not on disk and on disk.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHAPTER = Path(__file__).parents[2] / "notebooks" / "00_tour.ipynb"
RUNS = 15
FRESH = 3


def program(library: str) -> dict[str, Any]:
    """The chapter's cells tagged `program`, run with this library: what they define."""
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells
               if "program" in cell["metadata"].get("tags", ())]
    text = "\n\n\n".join(sources).replace("import minijax", f"import {library}")
    namespace: dict[str, Any] = {"__name__": "tour"}
    before = Path.cwd()
    os.chdir(CHAPTER.parent)  # the data lie beside the chapter
    try:
        exec(compile(text, f"<the tour on {library}>", "exec"), namespace)
    finally:
        os.chdir(before)
    return namespace


def training(library: str) -> dict[str, Callable[[int], Any]]:
    """Ten epochs from a seed, as a loop in Python and as one program."""
    tour = program(library)
    jax = tour["jax"]
    in_one = jax.jit(tour["train_in_one"])
    return {"a step per batch": lambda seed: tour["train"](jax.random.key(seed))[0],
            "one program": lambda seed: in_one(jax.random.key(seed))}


def seconds(train: Callable[[int], Any], seed: int) -> float:
    """How long one training takes, to its last number."""
    start = time.perf_counter()
    params = train(seed)
    for layer in params:
        for array in layer.values():
            array.block_until_ready()
    return time.perf_counter() - start


def side_by_side() -> None:
    """Both libraries in this process, in turn."""
    ours, theirs = training("minijax"), training("jax")
    for name in ours:
        seconds(ours[name], 0), seconds(theirs[name], 0)
        pairs = [(seconds(ours[name], n), seconds(theirs[name], n)) for n in range(RUNS)]
        a, b = map(statistics.median, zip(*pairs, strict=True))
        ratio = statistics.median(y / x for x, y in pairs)
        print(f"{'ten epochs, ' + name:34}{a:9.4f} s{b:9.4f} s{ratio:8.2f}")


def fresh(library: str, cache: str) -> float:
    """From the start of a process to the end of its ten epochs."""
    environment = os.environ | {"MINIJAX_CACHE_DIR": cache}
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "tests.bench.tour", library],
                   env=environment, check=True)
    return time.perf_counter() - start


def main() -> None:
    print(f"{'':34}{'minijax':>11}{'JAX':>11}{'JAX / ours':>12}")
    side_by_side()
    times: dict[str, list[float]] = {"cold": [], "disk": [], "jax": []}
    for _ in range(FRESH):
        with tempfile.TemporaryDirectory() as cache:
            times["cold"].append(fresh("minijax", cache))
            times["disk"].append(fresh("minijax", cache))
        times["jax"].append(fresh("jax", ""))
    cold, disk, jax = (statistics.median(times[name]) for name in ("cold", "disk", "jax"))
    print(f"{'a fresh process, no kernels':34}{cold:9.3f} s{jax:9.3f} s{jax / cold:8.2f}")
    print(f"{'a fresh process, kernels on disk':34}{disk:9.3f} s{jax:9.3f} s{jax / disk:8.2f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        seconds(training(sys.argv[1])["a step per batch"], 0)
    else:
        main()
