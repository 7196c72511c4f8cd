"""What a call costs on the host, in microseconds: `python -m tests.bench.host_cost [--quick]`.

The driver does nothing, so no GPU is needed, and what is timed is Python alone. Rows take turns,
and the first, which asks no driver for anything, says how fast this machine was meanwhile.
"""

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.compiler.targets import driver
from tests.bench._report import chosen, options
from tests.compiler.targets.played import Played

GOALS = {"f(x)": 6.0, "50 launches": 15.0}  # microseconds


class Idle(Played):
    """A driver whose functions do nothing, and are not counted."""

    def __init__(self) -> None:
        super().__init__(count=2)
        self.addresses = itertools.count(1 << 30, 1 << 9)
        self.free: list[int] = []

    def counted(self, name: str, function: Callable) -> Callable:
        return function

    def cuMemAllocAsync(self, nbytes: int, stream: Any) -> tuple[int, int]:
        return 0, self.free.pop() if self.free else next(self.addresses)

    def cuMemFreeAsync(self, address: int, stream: Any) -> tuple[int]:
        self.free.append(address)
        return (0,)

    def nothing(self, *arguments: Any) -> tuple[int]:
        return (0,)

    cuMemcpyHtoDAsync = cuMemcpyDtoHAsync = cuMemcpyDtoDAsync = nothing  # type: ignore[assignment]
    cuLaunchKernel = cuGraphExecKernelNodeSetParams = cuGraphLaunch = nothing  # type: ignore


def many(x: Any) -> Any:
    """Fifty launches, or so."""
    for _ in range(25):
        x = x - x.sum()
    return x


def rnn(w: Any, carry: Any, xs: Any) -> Any:
    """A recurrent network of a step for each of `xs`."""
    def step(carry: Any, x: Any) -> tuple[Any, None]:  # by our own tiles: without cuBLAS
        return jnp.tanh(jnp.dot(carry, w, precision="highest") + x), None
    return lax.scan(step, carry, xs)[0]


def calls() -> dict[str, Callable[[], Any]]:
    """What is timed, by its name; the arrays lie on a GPU, which is not the default device."""
    gpus = minijax.devices("cuda")
    ones = np.ones(100, np.float32)
    f, g, h = (minijax.jit(each) for each in (lambda x: x * 2.5, many, rnn))
    x, y, host = (minijax.device_put(ones, device)
                  for device in (*gpus, minijax.devices("cpu")[0]))
    wide, weights, carry, xs = (minijax.device_put(np.zeros(shape, np.float32), gpus[0])
                                for shape in (1 << 20, (256, 256), (32, 256), (32, 32, 256)))
    last = [wide]

    def again() -> None:
        last[0] = g(last[0])
    return {"f(x) on the CPU": lambda: f(host), "f(x)": lambda: f(x), "f(x), second GPU":
            lambda: f(y), "x + x": lambda: x + x, "50 launches": lambda: g(wide),
            "50 launches, x = g(x)": again, "RNN of 32 steps": lambda: h(weights, carry, xs)}


def within(device: Any) -> dict[str, Callable[[], Any]]:
    """What is timed where a GPU is the default device."""
    f, x = minijax.jit(lambda x: x * 2.5), jnp.ones(100, np.float32)
    return {"f(x), default device": lambda: f(x), "f(1.0), default device": lambda: f(1.0),
            "x + x, default device": lambda: x + x}


def microseconds(call: Callable[[], Any], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return 1e6 * (time.perf_counter() - start) / count


def main() -> None:
    given = options("what a call costs on the host, with a driver that does nothing")
    idle = Idle()
    with mock.patch.object(driver, "bindings", lambda: idle):
        device = minijax.devices("cuda")[0]
        outside = {name: call for name, call in calls().items() if chosen(name, given.words)}
        with minijax.default_device(device):
            inside = {name: call for name, call in within(device).items()
                      if chosen(name, given.words)}
        took: dict[str, list[float]] = {}
        for _ in range(3 if given.quick else 25):
            for name, call in outside.items():
                took.setdefault(name, []).append(microseconds(call, 100))
            with minijax.default_device(device):
                for name, call in inside.items():
                    took.setdefault(name, []).append(microseconds(call, 100))
    print(f"{'µs':30}{'median':>9}{'least':>9}{'goal':>9}")
    for name, times in took.items():
        goal = next((x for key, x in GOALS.items() if name.startswith(key)), "")
        print(f"{name:30}{statistics.median(times):9.2f}{min(times):9.2f}{goal:>9}")


if __name__ == "__main__":
    main()
