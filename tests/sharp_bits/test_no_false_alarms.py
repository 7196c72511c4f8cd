"""Correct programs run under every check at once: nothing is found, and nothing is changed.

The programs beside this file, those of `tests/programs`, and the workloads of the benchmark.
"""

import types

import numpy as np
import pytest

import minijax as jax
from minijax import tree_util
from tests import test_laws as laws
from tests.bench._row import arguments
from tests.bench._workloads import rows
from tests.programs.test_programs import PROGRAMS, results_of
from tests.sharp_bits import correct_programs
from tests.written_for_jax import with_minijax

SMALL = {name: program for name, program in vars(correct_programs).items()
         if isinstance(program, types.FunctionType)
         and program.__module__ == correct_programs.__name__}


# What the larger ones compute, a smaller one does too; complex numbers are not compiled yet.
LARGE = ("16M", "4096²", "2048", "1M×8", "8×1M", "prod", "max", "complex")
# Loops of which each iteration is looked at, and long programs.
SLOW = () if laws.LARGE else ("poisson", "gamma", "transformer", "RK4", "1000003")
SMALLER = [row for row in rows("minijax") if not any(word in row.name for word in LARGE + SLOW)]
WORKLOADS = {row.run: row for row in SMALLER}.values()  # one size of each program


def check_quiet(program):
    plain = program()
    with jax.checking_sharp_bits(collect=True) as findings:
        checked = program()
    assert not findings, "\n".join(map(str, findings))
    plain, checked = tree_util.tree_leaves(plain), tree_util.tree_leaves(checked)
    assert len(plain) == len(checked)
    for one, other in zip(plain, checked, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.filterwarnings("error")
def test_nothing_is_found_in(name):
    check_quiet(SMALL[name])


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("error::minijax.errors.SharpBitWarning")
def test_nothing_is_found_in_the_program(path):
    source = with_minijax(path.read_text())
    with jax.checking_sharp_bits(collect=True) as findings:
        results_of(path, source)
    assert not findings, "\n".join(map(str, findings))


@pytest.mark.parametrize("row", WORKLOADS, ids=lambda row: row.name)
@pytest.mark.filterwarnings("error::minijax.errors.SharpBitWarning")
def test_nothing_is_found_in_the_workload(row):
    once, again = arguments(row, jax), arguments(row, jax)  # a key of its own for each
    with jax.checking_sharp_bits(collect=True) as findings:
        row.run(*once)
        row.run(*again)
    assert not findings, "\n".join(map(str, findings))


def test_there_are_at_least_sixty_programs():
    assert len(SMALL) + len(PROGRAMS) + len(WORKLOADS) >= 60
