"""What a GPU makes of the benchmark's programs, at sizes of a GPU: `make bench-cuda`.

`DEVICE=cuda python -m tests.bench.device [part of a name …] [--quick]`. Beside a copy on the GPU,
cuBLAS where its wheel is installed, and JAX where it has the device too. It takes a quarter of an
hour (MINUTES), small programs and 16M numbers first, then 128M, and names what it had no time for.
On the emulator the arrays are small, and its times say nothing of a GPU's.
"""

import ctypes
import functools
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

import minijax
from minijax.placement import devices
from minijax.compiler.targets import cublas, driver
from minijax.compiler.targets.programs import Memory
from tests.bench._report import FOLDER, chosen, geometric_mean, options
from tests.bench._row import (MILLION, Row, arguments, below, bfloat16, key, normal, number,
                              one_hot, uniform)
from tests.bench._workloads import rows
from tests.bench.ratios import difference, in_turn, seconds
from tests.on_device import chosen as chosen_device
from tests.on_device import facts

IN_A_ROW = 10e-3  # seconds of calls between two waits, or the wait would be what is timed
MINUTES = float(os.environ.get("MINUTES", 15))
# Numbers of an array, and rows of a square.
SIZES = {"16M": (1 << 24, 1 << 12), "128M": (1 << 27, 1 << 13)}


@dataclass
class Result:
    """What was found about a row: seconds a call, and shares of what the GPU can do."""

    name: str
    megabytes: float = 0.0
    minijax: float = 0.0
    jax: float | None = None
    of_copy: float | None = None
    of_cublas: float | None = None
    refused: str = ""
    size: str = ""

    @property
    def ratio(self) -> float | None:
        """JAX's time over ours."""
        return self.jax / self.minijax if self.jax is not None else None

    def __str__(self) -> str:
        if self.refused:
            return f"{self.name:30}  {self.refused}"
        share = lambda x: f"{x:9.0%}" if x is not None else f"{'':9}"
        jax = (f"{1e6 * self.jax:11.1f} µs{self.ratio:7.2f}" if self.jax is not None
               else f"{'':21}")
        return (f"{self.name:30}{self.megabytes:9.1f}{1e6 * self.minijax:11.1f} µs{jax}"
                f"{share(self.of_copy)}{share(self.of_cublas)}")


HEAD = (f"{'':30}{'MB':>9}{'minijax':>14}{'JAX':>14}{'ratio':>7}{'of copy':>9}"
        f"{'of cuBLAS':>10}")


# -- the rows ------------------------------------------------------------------------------------

def large(library: str, n: int, m: int) -> list[Row]:
    """Programs of the benchmark on arrays of `n` numbers, and on squares of `m`."""
    lib = minijax if library == "minijax" else __import__("jax")
    there = {row.name: row for row in rows(library)}
    square, wide = [normal(m, m)], max(1, n // 64)
    product, batch = 2 * m ** 3, max(1, m // 16)
    mlp = [(normal(m, m, scale=m ** -0.5), normal(m, scale=0.0)) for _ in range(2)]
    found = {
        "3 operations": ("3 operations, 16M", [normal(n)], 0),
        "20 operations": ("20 operations, 16M", [normal(n)], 0),
        "tanh, exp, log1p": ("tanh(exp(-x²)+log1p|x|), 16M", [normal(n)], 0),
        "Black–Scholes": ("Black–Scholes, 1M", [
            uniform(50, 150, n), uniform(50, 150, n), uniform(0.1, 2, n), uniform(0, 0.1, n),
            uniform(0.1, 0.5, n)], 0),
        "softmax of rows": ("softmax 4096²", square, 0),
        "softmax of rows, gradient": ("softmax 1024², gradient", square, 0),
        "layer norm of rows": ("layer norm 1024²", square, 0),
        "layer norm of rows, gradient": ("layer norm 1024², gradient", square, 0),
        "sum of all": ("sum, 16M", [uniform(0, 1, n)], 0),
        "sum along rows": ("sum 1M×8, last", [uniform(0, 1, m, m)], 0),
        "sum along columns": ("sum 1M×8, first", [uniform(0, 1, m, m)], 0),
        "argmax of all": ("argmax, 1M", [normal(n)], 0),
        "cumulative sum": ("cumsum, 1M", [uniform(0, 1, n)], 0),
        "cumulative sum along rows": ("cumsum 1024², last", square, 0),
        "transpose": ("transpose 2048²", square, 0),
        "transpose (0,2,1)": ("transpose (0,2,1) 64×256×256", [normal(batch, 16, m)], 0),
        "gather": ("gather, 1M", [normal(n), below(n, n)], 0),
        "gather of rows of 64": ("gather of rows, 16k of 64", [normal(wide, 64), below(wide, wide)],
                                 0),
        "scatter-add": ("scatter-add, 1M", [normal(n), below(n, n), normal(n)], 0),
        "concatenate": ("concatenate, last", [normal(m, m), normal(m, m)], 0),
        "sort": ("sort, 1M", [normal(n)], 0),
        "sort of rows": ("sort 1024², last", square, 0),
        "product": ("matmul 2048", [normal(m, m), normal(m, m)], product),
        "product, tall": ("matmul tall, 64k×64×64", [normal(wide, 64), normal(64, 64)],
                          2 * wide * 64 * 64),
        "products of 64²": ("matmul batched, 256 of 64", [normal(batch, 64, 64)] * 2,
                            2 * batch * 64 ** 3),
        "step of training an MLP": ("MLP step 128: 784-256-10",
                                    [mlp, normal(m, m), one_hot(m, m)], 5 * product),
    }
    images, weights = (max(1, n // (56 * 56 * 64)), 56, 56, 64), (3, 3, 64, 64)
    tokens, width = max(1, n >> 19), max(8, m // 8)
    layer = {name: normal(rows, columns, scale=rows ** -0.5) for name, rows, columns in (
        *((name, width, width) for name in "qkvo"), ("up", width, 4 * width),
        ("down", 4 * width, width))}
    transformer = [{"embed": normal(256, width, scale=0.1), "place": normal(256, width, scale=0.1),
                    "layers": [layer, layer]}, below(256, tokens, 257)]

    def convolution(x: Any, w: Any) -> Any:
        return lib.nn.relu(lib.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    known = [replace(there[which], name=name, arguments=given, flops=flops, tolerance=1e-3)
             for name, (which, given, flops) in found.items()]
    flops = 2 * math.prod(images) * math.prod(weights[:3])
    return known + [
        Row("convolution", lib.jit(convolution), [normal(*images), normal(*weights)], flops,
            tolerance=1e-3),
        Row("convolution, bfloat16", lib.jit(convolution), [bfloat16(*images), bfloat16(*weights)],
            flops, tolerance=1e-2),
        Row("bias and gelu of a product", lib.jit(lambda x, w, b: lib.nn.gelu(x @ w + b)),
            [normal(m, m // 32), normal(m // 32, m), normal(m)], 2 * m * m * (m // 32),
            tolerance=1e-3),
        replace(there["transformer step, 2×128, 8×64"], name="step of training a transformer",
                arguments=transformer, tolerance=1e-2),
        Row("random bits", lib.jit(lambda key: lib.random.bits(key, (n,))), [key], draws=True),
        Row("random normal", lib.jit(lambda key: lib.random.normal(key, (n,))), [key], draws=True)]


def small(library: str, n: int = 1 << 17, m: int = 32) -> list[Row]:
    """Programs of which the host's part is what costs, if a loop over `n` is a launch."""
    lib = minijax if library == "minijax" else __import__("jax")
    there = {row.name: row for row in rows(library)}

    def launches(x: Any) -> Any:
        for _ in range(50):
            x = x - x.mean()
        return x

    def rnn(w: Any, carry: Any, xs: Any) -> Any:
        return lib.lax.scan(lambda carry, x: (lib.numpy.tanh(carry @ w + x), None), carry, xs)[0]
    return [
        replace(there["dispatch f(x)"], name="dispatch", arguments=[number(1)]),
        replace(there["eager x + y"], arguments=[normal(100), normal(100)]),
        Row("100 launches", lib.jit(launches), [normal(n)], tolerance=1e-3),
        Row("RNN of 32 steps", lib.jit(rnn), [
            normal(m, m, scale=0.1), normal(m, m), normal(32, m, m)],
            flops=32 * 2 * m ** 3, tolerance=1e-3)]


# -- what the GPU can do -------------------------------------------------------------------------

def bandwidth(gpu: Any, nbytes: int) -> float:
    """Bytes a second that a copy from the device to itself reads and writes."""
    x, y = Memory(gpu, nbytes), Memory(gpu, nbytes)
    gpu.store(x.address, np.zeros(nbytes, np.uint8))

    def copies(count: int) -> Callable[[], Any]:
        return lambda: ([gpu.copy(y.address, x.address, nbytes) for _ in range(count)], gpu.wait())
    return 2 * nbytes / per_call(copies)


def launch_seconds(gpu: Any) -> float:
    """What a launch costs that does next to nothing, among many."""
    from minijax.compiler.lowered import Lowered
    closed = minijax.make_jaxpr(lambda x: x + 1)(np.float32(1))
    program = Lowered(closed, "f").compile_for(gpu)
    one = Memory.of(gpu, np.float32(1))

    def calls(count: int) -> Callable[[], Any]:
        return lambda: ([program(one) for _ in range(count)], gpu.wait())
    return per_call(calls)


def per_call(calls: Callable[[int], Callable[[], Any]]) -> float:
    """The median time of one among many: `calls` gives what makes so many, and waits."""
    once = min(seconds(calls(1)) for _ in range(3))
    count = max(1, min(1000, int(IN_A_ROW / once)))
    return statistics.median(seconds(calls(count)) for _ in range(7)) / count


def cublas_rate(gpu: Any, n: int) -> float | None:
    """Operations a second of cuBLAS's float32 product of squares; None where it is not installed.

    It multiplies in float32, without its shorter formats, as ours does.
    """
    if not isinstance(gpu, driver.Gpu):
        return None
    try:
        library, (handle, _) = cublas.library(), cublas.handle(gpu)
    except cublas.NoCublas:
        return None
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    a, b, c = (Memory.of(gpu, np.ones((n, n), np.float32)) for _ in range(3))

    def product() -> None:
        gpu.enter()
        cublas.done(library.cublasSgemm_v2(
            handle, 0, 0, n, n, n, ctypes.byref(one), ctypes.c_void_p(a.address), n,
            ctypes.c_void_p(b.address), n, ctypes.byref(zero), ctypes.c_void_p(c.address), n),
            "multiply")

    def products(count: int) -> Callable[[], Any]:
        return lambda: ([product() for _ in range(count)], gpu.wait())
    return 2 * n ** 3 / per_call(products)


def jax_there() -> Any:
    """JAX, where it is installed with the GPU; None elsewhere."""
    try:
        import jax
        jax.devices("cuda")
        return jax
    except (ImportError, RuntimeError):
        return None


# -- a row ---------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Measured:
    """What rows are compared with."""

    device: devices.Device
    bandwidth: float
    products: float | None
    jax: Any
    quick: bool


def measure(ours: Row, theirs: Row | None, beside: Measured) -> Result:
    """One row: compared with JAX where it is there, with NumPy's meaning elsewhere; then timed."""
    try:
        given = arguments(ours, minijax)
        out = minijax.block_until_ready(ours.run(*given))
    except Exception as error:
        return Result(ours.name, refused=f"{type(error).__name__}: {str(error).splitlines()[0]}")
    if wrong := difference(out, *expected(ours, theirs, beside)):
        return Result(ours.name, refused=wrong)
    calls = [several(minijax, ours, given)]
    if theirs is not None and beside.jax is not None:
        calls.append(several(beside.jax, theirs, arguments(theirs, beside.jax)))
    count = 1 if is_played(beside) else count_of(calls[0])
    runs = [call(count) for call in calls]
    took = ([seconds(run) for run in runs] if is_played(beside) else in_turn(runs, beside.quick))
    took = [each / count for each in took]
    moved = sum(x.nbytes for x in minijax.tree_util.tree_leaves((given, out))
                if isinstance(x, minijax.Array))
    return Result(
        ours.name, moved / 1e6, took[0], took[1] if len(took) > 1 else None,
        moved / beside.bandwidth / took[0] if moved >= MILLION and not ours.flops else None,
        ours.flops / beside.products / took[0] if ours.flops and beside.products else None)


def expected(ours: Row, theirs: Row | None, beside: Measured) -> tuple[Any, float, Any]:
    """The same by JAX on the GPU, or by minijax on the CPU, how far from it we may be, and what JAX
    gives by default, where `default_matmul_precision` decides.
    """
    if theirs is None or beside.jax is None:
        with minijax.default_device(minijax.devices("cpu")[0]):
            return ours.run(*arguments(ours, minijax)), ours.tolerance, None
    with beside.jax.threefry_partitionable(False):
        given = arguments(theirs, beside.jax)
        by_default = theirs.run(*given)
        if not theirs.flops:
            return by_default, ours.tolerance, None
        with beside.jax.default_matmul_precision("highest"):
            return theirs.run(*given), ours.tolerance, by_default


def several(lib: Any, row: Row, given: list) -> Callable[[int], Callable[[], Any]]:
    """What makes so many calls in a row, and waits for the last."""
    def calls(count: int) -> Callable[[], Any]:
        def run() -> None:
            for _ in range(count):
                out = row.run(*given)
            lib.block_until_ready(out)
        return run
    return calls


def count_of(calls: Callable[[int], Callable[[], Any]]) -> int:
    """How many calls take long enough to be timed."""
    return max(1, min(1000, int(IN_A_ROW / min(seconds(calls(1)) for _ in range(3)))))


def is_played(beside: Measured) -> bool:
    return isinstance(beside.device, devices.EmulatedDevice)


def tables(is_emulator: bool) -> Iterator[tuple[str, Callable[[str], list[Row]]]]:
    """The name of each table, and what makes its rows for a library."""
    yield "small", functools.partial(small, **{"n": 16, "m": 2} if is_emulator else {})
    for size, (n, m) in {"tiny": (1 << 8, 1 << 4)}.items() if is_emulator else SIZES.items():
        yield size, lambda library, n=n, m=m: large(library, n, m)


def main() -> None:
    given = options("programs at sizes of a GPU, beside its copy, cuBLAS and JAX")
    device, end = chosen_device(), time.monotonic() + 60 * MINUTES
    is_emulator = isinstance(device, devices.EmulatedDevice)
    n, m = (1 << 8, 1 << 4) if is_emulator else SIZES["16M"]
    gpu, jax = device.processor, None if is_emulator else jax_there()
    beside = Measured(device, bandwidth(gpu, 4 * n), cublas_rate(gpu, m), jax, given.quick)
    about = facts(device) | {
        "copy": f"{beside.bandwidth / 1e9:.1f} GB/s, read and written",
        "cuBLAS": f"{beside.products / 1e12:.1f} TFLOP/s" if beside.products else "not installed",
        "launch": f"{1e6 * launch_seconds(gpu):.1f} µs",
        "JAX": jax.__version__ if jax else "not installed with this device"}
    if is_emulator:
        about["times"] = "of the emulator: they say nothing of a GPU's"
    text, found, late = [f"{key:10}{value}" for key, value in about.items()], [], []
    print("\n".join(text))

    def say(line: str) -> None:
        print(line, flush=True)
        text.append(line)
    with minijax.default_device(device):
        for size, made in tables(is_emulator):
            ours = made("minijax")
            theirs = made("jax") if jax else [None] * len(ours)
            say(f"\n{size}\n{HEAD}")
            for mine, other in zip(ours, theirs, strict=True):
                if chosen(mine.name, given.words) and time.monotonic() < end:
                    found.append(replace(measure(mine, other, beside), size=size))
                    say(str(found[-1]))
                elif chosen(mine.name, given.words):
                    late.append(f"{mine.name} ({size})")
            summary([each for each in found if each.size == size], say)
    if late:
        say(f"\nno time was left, of {MINUTES:g} minutes, for {', '.join(late)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "device.json").write_text(json.dumps(
        {"about": about, "rows": [asdict(each) for each in found]}, indent=1), encoding="utf-8")
    (FOLDER / "device.txt").write_text("\n".join(text) + "\n", encoding="utf-8")
    where = os.path.relpath(FOLDER)
    print(f"kept in {where}/device.txt and {where}/device.json: please send them back")


def summary(found: list[Result], say: Callable[[str], None]) -> None:
    """The geometric mean of a table, and its rows under 1; nothing without JAX."""
    ratios = {each.name: each.ratio for each in found if each.ratio is not None}
    if ratios:
        say(f"geometric mean {geometric_mean(ratios.values()):.2f}")
        under = sorted((ratio, name) for name, ratio in ratios.items() if ratio < 1)
        say(f"under 1: {', '.join(f'{name} {x:.2f}' for x, name in under) or 'none'}")


if __name__ == "__main__":
    main()
