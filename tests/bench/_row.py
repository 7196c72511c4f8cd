"""A row of the benchmark: a program, and how its arguments are drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

KILO, MILLION = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Row:
    """One workload. Each leaf of `arguments`, a list of trees, draws its array from a generator.

    `flops` are those of its products. `draws` says that its numbers are random ones. `limit` is
    what keeps it from copying, and multiplying, as fast as the machine does.
    """

    name: str
    run: Callable
    arguments: list
    flops: int = 0
    draws: bool = False
    limit: str = ""
    tolerance: float = 1e-4  # of the largest number of an array: how far results may be apart


def arguments(row: Row, lib: Any) -> list:
    """The row's arguments as arrays of a library, the same numbers for both."""
    rng = np.random.default_rng(0)
    return lib.tree_util.tree_map(lambda draw: lib.numpy.asarray(draw(rng)), row.arguments)


Draw = Callable[[np.random.Generator], Any]


def normal(*shape: int, scale: float = 1.0, dtype: Any = np.float32) -> Draw:
    """Numbers around 0."""
    return lambda rng: (scale * rng.standard_normal(shape, np.float32)).astype(dtype)


def bfloat16(*shape: int) -> Draw:
    """Numbers around 0, of two bytes each."""
    return normal(*shape, dtype=ml_dtypes.bfloat16)


def uniform(low: float, high: float, *shape: int) -> Draw:
    """Numbers between two others."""
    return lambda rng: rng.uniform(low, high, shape).astype(np.float32)


def below(limit: int, *shape: int, dtype: Any = np.int32) -> Draw:
    """Whole numbers from 0 on."""
    return lambda rng: rng.integers(0, limit, shape, dtype=dtype)


def zeros(*shape: int) -> Draw:
    return lambda rng: np.zeros(shape, np.float32)


def number(value: float) -> Draw:
    return lambda rng: np.float32(value)


def one_hot(count: int, classes: int) -> Draw:
    """Labels, one row each."""
    return lambda rng: np.eye(classes, dtype=np.float32)[rng.integers(0, classes, count)]


def key(rng: np.random.Generator) -> np.ndarray:
    """The key of a random program."""
    return np.array([0, 7], np.uint32)
