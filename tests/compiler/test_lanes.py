"""Sums in lanes: one order of additions, whatever LLVM does with the loop."""

import numpy as np
import pytest

from minijax import config
from tests.compiler.test_llvm import accumulation, run

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def total(op, x, lanes):
    """The reduction of an array in lanes, by NumPy."""
    combine, start = {"add": (np.add, 0), "mul": (np.multiply, 1)}[op]
    partials = np.full(max(lanes, 1), start, x.dtype)
    for first in range(0, x.size, partials.size):
        row = x[first:first + partials.size]
        partials[:row.size] = combine(partials[:row.size], row)
    while partials.size > 1:
        partials = combine(*np.split(partials, 2))
    return combine(x.dtype.type(0), partials[0])


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("op, dtype, size, lanes", [
    ("add", F32, 15, 0), ("add", F32, 16, 16), ("add", F32, 63, 16), ("add", F32, 64, 32),
    ("add", F32, 1000, 32), ("add", F64, 1000, 16), ("add", F64, 17, 8)])
def test_a_sum_has_the_order_of_its_lanes(op, dtype, size, lanes, quick):
    x = np.random.default_rng(size).normal(size=size).astype(dtype)
    with config.disable_most_optimizations(quick):
        _, [result] = run(accumulation(op, dtype, size, "reduce"), x)
    assert result.tobytes() == total(op, x, lanes).tobytes()


def test_sums_in_other_orders_differ():
    x = np.random.default_rng(1000).normal(size=1000).astype(F32)
    assert len({total("add", x, lanes).tobytes() for lanes in (0, 8, 16, 32)}) > 2
