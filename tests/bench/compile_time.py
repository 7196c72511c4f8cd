"""How long until a program first runs: compiled anew, from disk, in a fresh process.

Chains of 1, 20 and 100 operations; minijax keeps compiled kernels on disk by itself, JAX is asked
to (`jax_compilation_cache_dir`), so both have their cache in the last two columns.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

RUNS = 3
LENGTHS = (1, 20, 100)


def chain(lib: Any, length: int, scale: float) -> Any:
    """A function of so many operations; another scale is another program."""
    jnp = lib.numpy
    kinds = (lambda x: x * scale, jnp.tanh, lambda x: x + scale, lambda x: jnp.maximum(x, -scale),
             lambda x: 1 - x)

    def f(x: Any) -> Any:
        for k in range(length):
            x = kinds[k % len(kinds)](x)
        return x
    return lib.jit(f)


def first_call(lib: Any, length: int, scale: float) -> float:
    """The time of tracing, compiling and running once."""
    x = lib.numpy.ones(1000)
    start = time.perf_counter()
    lib.block_until_ready(chain(lib, length, scale)(x))
    return time.perf_counter() - start


def library(name: str) -> Any:
    """minijax or JAX, with a cache on disk."""
    if name == "minijax":
        import minijax
        return minijax
    import jax
    jax.config.update("jax_compilation_cache_dir", os.environ["MINIJAX_CACHE_DIR"] + "/jax")
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return jax


def child(name: str, what: str) -> None:
    """In a process of its own: the times of first calls, or of everything since the start."""
    begun = time.perf_counter()
    lib = library(name)
    if what == "process":
        lib.block_until_ready(chain(lib, 20, 0.5)(lib.numpy.ones(1000)))
        print(time.perf_counter() - begun)
        return
    first_call(lib, 2, 0.25)  # what a library loads for its first compilation is not counted
    print(*(first_call(lib, length, 0.5) for length in LENGTHS))


def run(name: str, what: str, cache: str) -> list[float]:
    """The numbers that a fresh process prints."""
    environment = os.environ | {"MINIJAX_CACHE_DIR": cache}
    command = [sys.executable, "-m", "tests.bench.compile_time", name, what]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [float(x) for x in done.stdout.split()]


def measure(name: str) -> list[float]:
    """Medians: the chains cold, the chains from disk, the process from disk."""
    rows = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as cache:
            cold = run(name, "calls", cache)
            warm = run(name, "calls", cache)
            run(name, "process", cache)
            rows.append([*cold, *warm, *run(name, "process", cache)])
    return [statistics.median(column) for column in zip(*rows, strict=True)]


def main() -> None:
    ours, theirs = measure("minijax"), measure("jax")
    labels = [f"{n} operations, {how}" for how in ("cold", "from disk") for n in LENGTHS]
    labels.append("import and first result, from disk")
    print(f"{'':36}{'minijax':>10}{'JAX':>10}{'ratio':>8}")
    for label, x, y in zip(labels, ours, theirs, strict=True):
        print(f"{label:36}{1e3 * x:7.1f} ms{1e3 * y:7.1f} ms{y / x:8.2f}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        child(*sys.argv[1:])
    else:
        main()
