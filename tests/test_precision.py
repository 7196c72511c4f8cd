"""Sums, running sums and products are at most twice as far from float64 as JAX's, or a few ulp."""

import os

import numpy as np
import pytest

from minijax.compiler import builder
from minijax.primitives import summation
from tests.precision import OPERATIONS, SIZES, Case, cases

TALL = ((5000,), 0), ((2500, 2), 0), ((2, 833, 3), (0, 1)), ((70, 70), 1), ((1300, 8), 0)


def few(name):
    """Those that a wrong chain cannot miss; all of them if PRECISION=1."""
    if os.environ.get("PRECISION"):
        return [case for case in cases(SIZES) if case.name == name]
    operation = OPERATIONS[name]
    shapes = [(shape, axis) for shape, axis in TALL
              if isinstance(axis, int) or not operation.one_axis]
    found = [Case(name, operation.data[0], shape, axis, np.float32) for shape, axis in shapes]
    return [*found, Case(name, operation.data[-1], (5000,), 0, np.float32),
            Case(name, operation.data[0], (2500, 2), 0, np.float16)]


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_error_is_above_twice_that_of_jax(name):
    for case in few(name):
        eager, compiled, oracle, most = case.errors(ask=False)
        assert max(eager, compiled) <= most, (
            f"{case}: {eager:.1e} eagerly, {compiled:.1e} compiled, {oracle:.1e} for JAX")


@pytest.mark.parametrize("name", ["sum", "cumsum"])
def test_a_million_terms_are_as_exact_as_a_few(name):
    for shape in (1 << 20,), (1 << 17, 8):
        eager, compiled, _, _ = Case(name, "tenths", shape, 0, np.float32).errors(ask=False)
        assert max(eager, compiled) < 6e-7


@pytest.mark.of_tests
@pytest.mark.parametrize("name", ["sum", "cumsum", "gradient of a bias"])
def test_the_law_finds_a_naive_running_sum(name, monkeypatch):
    monkeypatch.setattr(builder, "CHAIN", 1 << 40)
    monkeypatch.setattr(summation, "CHAIN", 1 << 40)
    eager, compiled, _, most = Case(name, "tenths", (40000, 2), 0, np.float32).errors(ask=True)
    assert min(eager, compiled) > most
