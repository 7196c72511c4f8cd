"""Programs of two processes beside JAX's two processes, whose collectives go over gloo.

`python -m tests.bench.processes [part of a name …] [--quick]`. The libraries take turns, in new
processes each; what counts is the median of the times of all turns. The last rows say how long a
step takes in two processes, each of one thread, beside one process of one thread.
"""

import importlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench._report import chosen, geometric_mean, options

FILE = Path(__file__)
ROUNDS = 60  # of calls in a row


def programs(jax: Any) -> dict[str, Callable[[], Any]]:
    """The rows: calls on arrays over all processes."""
    jnp, P = jax.numpy, jax.P
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))

    def put(x: Any, *names: Any) -> Any:
        return jax.device_put(x, jax.NamedSharding(mesh, P(*names)))

    def psum(x: Any) -> Any:
        return jax.shard_map(lambda x: jax.lax.psum(x, "i"), mesh=mesh, in_specs=P("i"),
                             out_specs=P())(x)

    def loss(w: Any, x: Any, y: Any) -> Any:
        for weights in w[:-1]:
            x = jnp.tanh(x @ weights)
        return ((x @ w[-1] - y) ** 2).mean()

    @jax.jit
    def step(w: Any, x: Any, y: Any) -> Any:
        return [a - 0.1 * b for a, b in zip(w, jax.grad(loss)(w, x, y), strict=True)]

    def network(*sizes: int) -> list:
        return [put(np.full((n, m), 0.01, np.float32))
                for n, m in zip(sizes, sizes[1:], strict=False)]
    few, many = (put(np.ones(n, np.float32), "i") for n in (2, 1 << 20))
    x, y = (put(np.ones((64, n), np.float32), "i") for n in (32, 8))
    large, target = (put(np.ones((2048, n), np.float32), "i") for n in (1024, 10))
    small_net, large_net = network(32, 64, 8), network(1024, 1024, 1024, 10)
    total, affine = jax.jit(psum), jax.jit(lambda x: x * 2 + 1)
    return {"psum of one float": lambda: total(few), "psum of 1M floats": lambda: total(many),
            "x + x, not jitted": lambda: x + x, "x * 2 + 1": lambda: affine(x),
            "sum over all": lambda: jnp.sum(x),
            "step of a small MLP": lambda: step(small_net, x, y),
            "step of a large MLP": lambda: step(large_net, large, target)}


def measured(library: str, words: list[str], quick: bool) -> dict[str, list[float]]:
    """The times of calls in this process, in microseconds."""
    jax = importlib.import_module(library)
    if "COORDINATOR" in os.environ:
        jax.distributed.initialize(os.environ["COORDINATOR"], 2, int(os.environ["RANK"]))
    elif "PMI_SIZE" in os.environ:
        jax.distributed.initialize()
    out = {}
    for name, call in programs(jax).items():
        if not chosen(name, words):
            continue
        for _ in range(3):
            jax.block_until_ready(call())
        times = []
        for _ in range(ROUNDS // 6 if quick else ROUNDS):
            start = time.perf_counter()
            jax.block_until_ready(call())
            times.append(1e6 * (time.perf_counter() - start))
        out[name] = times
    return out


def run(library: str, count: int, words: list[str], quick: bool) -> dict[str, list[float]]:
    """The same, of so many processes."""
    with tempfile.NamedTemporaryFile() as file:
        command = [str(FILE), "child", library, file.name, json.dumps([words, quick])]
        environment = os.environ | {"PYTHONPATH": str(FILE.parents[2]), "JAX_PLATFORMS": "cpu",
                                    "MINIJAX_NUM_THREADS": "1"}
        if library == "minijax" or count == 1:
            launch = ["-m", "minijax.launch", "-n", str(count)] if count > 1 else []
            subprocess.run([sys.executable, *launch, *command], env=environment, check=True)
        else:
            with socket.socket() as free:
                free.bind(("localhost", 0))
                address = f"localhost:{free.getsockname()[1]}"
            both = [subprocess.Popen([sys.executable, *command], env=environment | {
                "COORDINATOR": address, "RANK": str(rank),
                "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo"}) for rank in range(count)]
            codes = [process.wait() for process in both]
            assert not any(codes)
        return json.loads(Path(file.name).read_text())


def main() -> None:
    given = options(__doc__ or "")
    times: dict[str, dict[str, list[float]]] = {"minijax": {}, "jax": {}, "alone": {}}
    for _ in range(1 if given.quick else 3):
        for which, library, count in (("minijax", "minijax", 2), ("jax", "jax", 2),
                                      ("alone", "minijax", 1)):
            for name, some in run(library, count, given.words, given.quick).items():
                times[which].setdefault(name, []).extend(some)
    print(f"{'':24}{'minijax':>14}{'JAX':>14}{'ratio':>8}{'of one process':>16}")
    ratios = []
    for name in times["minijax"]:
        ours, theirs, alone = (statistics.median(each[name]) for each in times.values())
        ratios.append(theirs / ours)
        print(f"{name:24}{ours:11.1f} µs{theirs:11.1f} µs{ratios[-1]:8.2f}{ours / alone:16.2f}")
    print(f"geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _, _, library, path, choice = sys.argv
        result = measured(library, *json.loads(choice))
        if importlib.import_module(library).process_index() == 0:
            Path(path).write_text(json.dumps(result))
    else:
        main()
