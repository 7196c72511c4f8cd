"""Whole programs on an emulated GPU give the CPU's results: all that they compute runs there.

The emulator takes minutes for some; by default the quick ones run, with `LARGE=1` all.
"""

import os

import numpy as np
import pytest

import minijax as jax
from tests.programs.test_programs import PROGRAMS, results_of
from tests.written_for_jax import with_minijax

QUICK = ("kmeans", "laplace_approximation", "mandelbrot", "newton")
CHOSEN = [path for path in PROGRAMS if os.environ.get("LARGE") or path.stem in QUICK]


@pytest.mark.parametrize("path", CHOSEN, ids=lambda path: path.stem)
def test_results_are_those_of_the_cpu(path):
    source = with_minijax(path.read_text())
    on_the_cpu = results_of(path, source)
    with jax.default_device(jax.devices("emulator")[0]):
        on_the_gpu = results_of(path, source)
    for (_, x), (_, y) in zip(on_the_gpu, on_the_cpu, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        scale = 1e-5 * np.max(np.abs(y), initial=0) if x.dtype.kind == "f" else 0
        np.testing.assert_allclose(x, y, rtol=1e-4 if scale else 0, atol=scale)
