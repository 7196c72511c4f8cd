"""How exact sums are: minijax, eager and compiled, and JAX on the same data, against float64.

`python -m tests.precision [part of a name or size …]` prints the table; the law is in
`test_precision.py`. An error is relative to the largest element of the result.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

USUAL = {"xla_backend_optimization_level": 3, "xla_cpu_use_fusion_emitters": True}
FLOOR = 4  # units in the last place that are granted, whatever JAX's error is
STRIDED = 16  # where neighbours in memory belong to other sums, fewer are added side by side


@dataclass(frozen=True)
class Operation:
    """A function `of(lib, x, axis)` with a module like `jax`, and its meaning in NumPy."""

    of: Callable[..., Any]
    meaning: Callable[..., Any] | None = None
    data: tuple[str, ...] = ("tenths", "uniform", "offset")
    one_axis: bool = False
    most: int = 1 << 24  # elements
    rounds: bool = False  # each step, so that the error grows as the root of their number
    floor: float = FLOOR


def of_numpy(name: str, **params: Any) -> Callable[..., Any]:
    """A function of `numpy`, which the oracle of the oracle has, too."""
    return lambda lib, x, axis: getattr(lib.numpy, name)(x, axis=axis, **params)


class InNumpy:
    """NumPy in the place of the library."""

    numpy = np


def _softmax(lib: Any, x: np.ndarray, axis: Any) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _logsumexp(lib: Any, x: np.ndarray, axis: Any) -> Any:
    top = x.max(axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(x - top).sum(axis))


def _standardized(lib: Any, x: np.ndarray, axis: Any) -> Any:
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-5)


def _bias_gradient(lib: Any, x: Any, axis: Any) -> Any:
    """Of a bias that is added to a batch, along all axes but those of the batch."""
    shape = [1 if axis is None or d in np.atleast_1d(axis) else n for d, n in enumerate(x.shape)]
    return lib.grad(lambda b: ((b + lib.numpy.zeros_like(x)) * x).sum())(
        lib.numpy.zeros(shape, x.dtype))


def _axes(x: np.ndarray, axis: Any) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if axis is None else tuple(np.atleast_1d(axis).tolist())


def _flat(lib: Any, x: Any, axis: int) -> Any:
    """A matrix whose rows are what stands along an axis."""
    return lib.numpy.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])


def _segments(lib: Any, x: Any, axis: int) -> Any:
    rows = _flat(lib, x, axis).T
    return lib.ops.segment_sum(rows, np.arange(len(rows)) // 40, len(rows) // 40 + 1)


def _segment_sums(lib: Any, x: np.ndarray, axis: int) -> np.ndarray:
    rows = _flat(lib, x, axis).T
    sums = np.zeros((len(rows) // 40 + 1, rows.shape[1]))
    np.add.at(sums, np.arange(len(rows)) // 40, rows)
    return sums


OPERATIONS = {
    "sum": Operation(of_numpy("sum")),
    "lax.reduce_sum": Operation(lambda lib, x, axis: lib.lax.reduce_sum_p.bind(
        x, axes=_axes(x, axis), **({} if "mini" in lib.__name__ else {"out_sharding": None})),
                                of_numpy("sum")),
    "mean": Operation(of_numpy("mean")),
    "var": Operation(of_numpy("var"), data=("uniform", "offset", "near")),
    "std": Operation(of_numpy("std"), data=("uniform", "offset", "near")),
    "nansum": Operation(of_numpy("nansum")),
    # Where vectors hold eight numbers instead of sixteen, twice as many are added in a row.
    "nanmean": Operation(of_numpy("nanmean"), floor=6),
    "prod": Operation(of_numpy("prod"), data=("ratios",), rounds=True),
    "norm": Operation(lambda lib, x, axis: lib.numpy.sqrt((x * x).sum(axis))),
    "logsumexp": Operation(lambda lib, x, axis: lib.nn.logsumexp(x, axis), _logsumexp),
    "softmax": Operation(lambda lib, x, axis: lib.nn.softmax(x, axis), _softmax),
    "standardize": Operation(lambda lib, x, axis: lib.nn.standardize(x, axis), _standardized,
                             data=("uniform",), floor=16),
    "gradient of a bias": Operation(_bias_gradient, lambda lib, x, axis: x.sum(
        axis, keepdims=True)),
    "cumsum": Operation(of_numpy("cumsum"), one_axis=True),
    "cumsum from the end": Operation(
        lambda lib, x, axis: lib.lax.cumsum(x, axis, reverse=True),
        lambda lib, x, axis: np.flip(np.cumsum(np.flip(x, axis), axis), axis), one_axis=True),
    "cumprod": Operation(of_numpy("cumprod"), data=("ratios",), one_axis=True,
                         rounds=True),
    "cumlogsumexp": Operation(
        lambda lib, x, axis: lib.lax.cumlogsumexp(x, axis),
        lambda lib, x, axis: np.logaddexp.accumulate(x, axis), data=("uniform",),
        one_axis=True, most=1 << 17),
    "sum of a gather": Operation(lambda lib, x, axis: x.take(
        np.arange(x.shape[axis]) ^ 1 if x.shape[axis] % 2 == 0 else np.arange(x.shape[axis]),
        axis).sum(axis), data=("tenths",), one_axis=True),
    "sum of a transpose": Operation(lambda lib, x, axis: x.T.sum(x.ndim - 1 - axis),
                                    data=("tenths",), one_axis=True, floor=STRIDED),
    "sum of squares of every third": Operation(lambda lib, x, axis: (x[::3] * x[::3]).sum(axis),
                                               one_axis=True, floor=STRIDED),
    "segment_sum": Operation(_segments, _segment_sums, data=("tenths",), one_axis=True,
                             most=1 << 17),
    "matrix by its transpose": Operation(lambda lib, x, axis: lib.numpy.tensordot(
        x, x, ((axis,), (axis,))), one_axis=True, floor=STRIDED),
    "vector by matrix": Operation(lambda lib, x, axis: (lambda rows: rows[0] @ rows.T)(
        _flat(lib, x, axis)), one_axis=True, floor=STRIDED),
    "matrix by vector": Operation(lambda lib, x, axis: (lambda rows: rows @ rows[0])(
        _flat(lib, x, axis)), one_axis=True, floor=STRIDED),
    "rows by rows": Operation(lambda lib, x, axis: lib.numpy.einsum(
        "bi,bi->b", *[_flat(lib, x, axis)] * 2), one_axis=True, floor=STRIDED),
}


def data(kind: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Numbers whose sums are hard."""
    rng = np.random.default_rng(0)
    match kind:
        case "tenths":
            x = np.full(shape, 0.1)
        case "uniform":
            x = rng.random(shape)
        case "offset":
            x = 1000 + rng.standard_normal(shape)
        case "near":
            x = 1000 + 0.01 * rng.standard_normal(shape)
        case "ratios":
            x = np.exp(0.02 * rng.standard_normal(shape))
    return x.astype(dtype)


def error(found: Any, exact: np.ndarray) -> float:
    """Relative to the largest element; where the dtype has hardly room for it, none."""
    found = np.asarray(found)
    with np.errstate(all="ignore"):
        room = np.isfinite((1.01 * exact).astype(found.dtype).astype(np.float64))
        gap = np.abs(found.astype(np.float64) - exact)[room]
        if not gap.any():
            return 0.0
        return float(np.max(np.where(np.isnan(gap), np.inf, gap)) / np.max(np.abs(exact[room])))


@dataclass(frozen=True)
class Case:
    """One operation on one array."""

    name: str
    kind: str
    shape: tuple[int, ...]
    axis: Any
    dtype: Any

    def __str__(self) -> str:
        shape = ",".join(map(str, self.shape))
        return f"{self.name} {self.kind} {np.dtype(self.dtype).name}[{shape}] axis {self.axis}"

    def errors(self, ask: bool = True) -> tuple[float, float, float, float]:
        """Eagerly, compiled, JAX's, and the largest that is allowed.

        Unless to `ask` is wanted, JAX is asked only where the errors are above the floor.
        """
        import jax

        import minijax
        operation = OPERATIONS[self.name]
        x = data(self.kind, self.shape, self.dtype)
        wide = x.astype(np.float64)
        exact = np.asarray((operation.meaning or operation.of)(InNumpy, wide, self.axis))
        with minijax.disable_jit():
            eager = error(operation.of(minijax, minijax.numpy.asarray(x), self.axis), exact)
        compiled = error(minijax.jit(lambda x: operation.of(minijax, x, self.axis))(x), exact)
        floor = operation.floor * float(minijax.numpy.finfo(self.dtype).eps)
        if operation.rounds:
            floor *= np.sqrt(x.size / exact.size if exact.size < x.size else x.shape[self.axis])
        if self.name in ("var", "std"):  # so much is a mean off that is rounded, and squared
            floor += (floor * wide.mean()) ** 2 / max(wide.var(), 1e-30)
        if not ask and max(eager, compiled) <= floor:
            return eager, compiled, np.nan, floor
        oracle = error(jax.jit(lambda x: operation.of(jax, x, self.axis),
                               compiler_options=USUAL)(x), exact)
        if np.dtype(self.dtype).itemsize == 2:  # XLA rounds seldom, we after every equation
            with jax.disable_jit():
                oracle = max(oracle, error(operation.of(jax, x, self.axis), exact))
        return eager, compiled, oracle, 2 * oracle + floor


def shapes(size: int) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Tall, wide, and deep arrays of about so many elements, with axes."""
    yield (size,), 0
    if size < 64:
        return
    for few in (2, 8):
        yield (size // few, few), 0
    yield (8, size // 8), 1
    yield (size // 8, 8), 1
    yield (size // 70, 70), 1
    side = int(size ** .5)
    yield (side, side), 0
    yield (2, size // 6, 3), 1
    for axis in ((0, 1), (1, 2)):
        yield (2, size // 6, 3), axis
    yield (size // 6, 3, 2), (0, 2)
    yield (size // 6, 2, 3), None


def cases(sizes: tuple[int, ...], names: tuple[str, ...] = ()) -> Iterator[Case]:
    """All operations on all arrays; where `names` are given, those whose text has one of them."""
    for name, operation in OPERATIONS.items():
        for size in sizes:
            for shape, axis in shapes(size):
                if size > operation.most or operation.one_axis and not isinstance(axis, int):
                    continue
                if name == "matrix by its transpose" and size // shape[axis] > 1000:
                    continue
                kinds = [(kind, np.float32) for kind in operation.data]
                kinds += [(operation.data[0], dtype) for dtype in (np.float16, bfloat16)]
                for kind, dtype in kinds:
                    case = Case(name, kind, shape, axis, dtype)
                    if not names or any(part in str(case) for part in names):
                        yield case


SIZES = (1, 100, 5000, 1 << 17, 1 << 20, 1 << 24)


def main(names: list[str]) -> None:
    sizes = tuple(int(n) for n in names if n.isdigit()) or SIZES
    print(f"{'':66}{'eagerly':>10}{'compiled':>10}{'JAX':>10}")
    for case in cases(sizes, tuple(n for n in names if not n.isdigit())):
        *found, oracle, most = case.errors()
        worse = "  <" if max(found) > most else ""
        print(f"{str(case):66}" + "".join(f"{x:10.1e}" for x in (*found, oracle)) + worse,
              flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
