"""How time and memory grow with a program: traced, differentiated, lowered, compiled; beside JAX.

Each point is a fresh process without a cache. A curve ends where a point takes longer than LIMIT.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from tests.bench._libraries import LIBRARIES, child, ready
from tests.bench._picture import Curve, Panel, panels
from tests.bench._report import chosen, options, save

STAGES = ("trace", "differentiate", "lower", "compile")
LIMIT, QUICK_LIMIT = 120.0, 25.0  # seconds


# -- the programs: of a size, the function to trace, and the one to compile ----------------------


def straight_line(lib: Any, size: int) -> tuple:
    """So many operations, one after the other."""
    jnp = lib.numpy
    kinds = (lambda x: x * 0.5, jnp.tanh, lambda x: x + 0.5, lambda x: jnp.maximum(x, -0.5),
             lambda x: 1 - x)

    def f(x: Any) -> Any:
        for k in range(size):
            x = kinds[k % len(kinds)](x)
        return jnp.sum(x)
    return f, lib.grad(f), (jnp.ones(1000),)


def layers(lib: Any, size: int) -> tuple:
    """A network whose gradient has about so many equations."""
    jnp = lib.numpy

    def loss(params: Any, x: Any) -> Any:
        for w, b in params:
            x = jnp.tanh(x @ w + b)
        return jnp.sum(x ** 2)
    params = [(jnp.ones((16, 16)), jnp.ones(16)) for _ in range(size // 14)]
    return loss, lib.grad(loss), (params, jnp.ones((8, 16)))


def adam(lib: Any, leaves: int) -> tuple:
    """A step of Adam, written leaf by leaf as people write it."""
    jnp = lib.numpy

    def step(params: Any, grads: Any, means: Any, squares: Any, count: Any) -> Any:
        new = []
        for p, g, m, v in zip(params, grads, means, squares, strict=True):
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            rate = jnp.sqrt(1 - 0.999 ** count) / (1 - 0.9 ** count)
            new.append((p - 0.001 * rate * m / (jnp.sqrt(v) + 1e-8), m, v))
        return new
    tree = [jnp.ones((16, 4 + k % 7)) for k in range(leaves)]
    return step, None, (tree, tree, tree, tree, 3.0)


def unrolled(lib: Any, size: int) -> tuple:
    """So many sines, one within the other."""
    def f(x: Any) -> Any:
        for _ in range(size):
            x = lib.numpy.sin(x)
        return x
    return f, None, (lib.numpy.ones(1000),)


PROGRAMS: dict[str, tuple[Callable, tuple[int, ...]]] = {
    "straight line": (straight_line, (100, 300, 1000, 3000, 10_000)),
    "gradient of layers": (layers, (100, 300, 1000, 3000, 10_000)),
    "Adam, leaves": (adam, (20, 50, 100)),
    "sin, unrolled": (unrolled, (20, 50, 100, 200)),
}


def stages(name: str, program: str, size: int) -> dict[str, float]:
    """Seconds of each stage, and the megabytes that all of them added."""
    lib = ready(name)
    f, derivative, given = PROGRAMS[program][0](lib, size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found, at = {}, time.perf_counter()

    def done(stage: str) -> None:
        nonlocal at
        found[stage] = time.perf_counter() - at
        at = time.perf_counter()

    lib.make_jaxpr(f)(*given)
    done("trace")
    if derivative:
        lib.make_jaxpr(derivative)(*given)
        done("differentiate")
    traced = lib.jit(derivative or f).trace(*given)
    at = time.perf_counter()
    lowered = traced.lower()
    if name == "minijax":
        _ = lowered._lowered.compact  # the loops, which are made when first asked for
    done("lower")
    lowered.compile()
    done("compile")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found | {"megabytes": (after - before) / 1024}


def curve(name: str, program: str, limit: float) -> dict[int, dict[str, float]]:
    """The stages at each size, up to the first that fails."""
    found: dict[int, dict[str, float]] = {}
    for size in PROGRAMS[program][1]:
        label = f"{program:20}{size:7}  {name:8}"
        try:
            with tempfile.TemporaryDirectory() as cache:
                found[size] = child("growth", "--child", name, program, str(size),
                                    cache=cache, limit=limit)
        except subprocess.TimeoutExpired:
            print(f"{label} more than {limit:.0f} s", flush=True)
            break
        except RuntimeError as error:
            print(f"{label} {error}", flush=True)
            break
        cells = "".join(f"{found[size][stage]:12.3f} s" if stage in found[size] else " " * 14
                        for stage in STAGES)
        print(f"{label}{cells}{found[size]['megabytes']:9.0f} MB", flush=True)
    return found


def panel(program: str, both: dict[str, dict]) -> list[Panel]:
    """A program's times and memory."""
    def curves(names: tuple[str, ...]) -> list[Curve]:
        return [Curve(k, library == "jax", points) for library, found in both.items()
                for k, name in enumerate(names)
                if (points := [(size, each[name]) for size, each in found.items()
                               if name in each])]
    return [Panel(program, "seconds", curves(STAGES)),
            Panel(program, "megabytes", curves(("megabytes",)))]


def main() -> None:
    given = options("how time and memory grow with a program")
    limit = QUICK_LIMIT if given.quick else LIMIT
    print(" " * 37 + "".join(f"{stage:>14}" for stage in STAGES) + f"{'memory':>12}")
    results = {program: {name: curve(name, program, limit) for name in LIBRARIES}
               for program in PROGRAMS if chosen(program, given.words)}
    save("growth", results, panels("minijax, and JAX (dashed), by number of equations or leaves",
                                   STAGES, [panel(*each) for each in results.items()]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(stages(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
    else:
        main()
