"""The benchmark's own promises: the same rows for both libraries, wrong numbers refused, and what
the model of a GPU counts.
"""

import functools
import statistics
from xml.etree import ElementTree

import numpy as np
import pytest

import minijax as jax
from minijax.compiler.loops import Call
from minijax.compiler.schedule import lower_to_kernel
from minijax.compiler.targets import launches, tensor_cores
from tests.bench import model
from tests.bench._picture import Curve, Panel, bars, panels
from tests.bench._report import geometric_mean
from tests.bench._workloads import TO_COMPILE, rows
from tests.bench.device import large, small
from tests.bench.ratios import Result, difference, print_roofs


def test_both_libraries_run_the_same_rows():
    ours, theirs = ([(row.name, row.flops) for row in rows(name, TO_COMPILE)]
                    for name in ("minijax", "jax"))
    assert ours == theirs


def test_no_two_rows_have_the_same_name():
    names = [row.name for row in rows("minijax", TO_COMPILE)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("ours, theirs, reason", [
    (np.float32([1, 2]), np.float32([1, 2.1]), "differ"),
    (np.float32([1, np.nan]), np.float32([1, 2]), "differ"),
    (np.int32([1, 100_000]), np.int32([1, 100_001]), "differ"),
    (np.float32([1]), np.float16([1]), "JAX gives float16"),
    (np.float32([1]), np.float32([[1]]), "JAX gives"),
    ([np.float32(1)], [np.float32(1)] * 2, "1 arrays, JAX gives 2"),
])
def test_a_result_is_refused_where_it_is_not_jax_s(ours, theirs, reason):
    assert reason in difference(ours, theirs, 1e-4)


def test_a_result_is_taken_where_only_its_last_digits_differ():
    assert not difference(np.float32([1, 2]), np.float32([1, 2.00001]), 1e-4)


def test_products_may_be_rounded_as_much_as_jax_s():
    theirs, rounded = np.float32([1, 2]), np.float32([1, 2.01])
    assert not difference(np.float32([1, 2.015]), theirs, 1e-4, rounded)
    assert "at most 0.02" in difference(np.float32([1, 2.03]), theirs, 1e-4, rounded)


def test_the_mean_of_twice_and_half_as_fast_is_as_fast():
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1)


def test_a_row_is_done_at_a_roof_or_far_ahead(capsys):
    print_roofs([Result("copying", ratio=1.1, of_copy=0.9), Result("ahead", ratio=2.1, of_copy=0.1),
                 Result("below", ratio=1.9, of_copy=0.1, of_products=0.8, limit="its sums")])
    printed = capsys.readouterr().out
    assert "1 of 3 rows" in printed and "copying" not in printed and "ahead " not in printed
    assert "below" in printed and "80%  its sums" in printed


def test_pictures_are_well_formed():
    chart = bars("a < b", [("x & y", 0.5), ("fast", 30.0), ("complex", None)])
    growth = panels("growth", ["trace"], [[Panel("line", "seconds", [
        Curve(0, False, [(100, 0.1), (1000, 1.0)]), Curve(0, True, [])])]])
    for picture in (chart, growth):
        ElementTree.fromstring(picture)
        assert "prefers-color-scheme: dark" in picture


# -- what a GPU would take -----------------------------------------------------------------------

# Of 16M numbers: megabytes moved, operations a number at least and at most, and launches.
COUNTS = {
    "3 operations": (134.2, 2, 6, 1),
    "tanh, exp, log1p": (134.2, 45, 55, 1),
    "Black–Scholes": (469.8, 110, 140, 1),
    "softmax of rows": (134.2, 20, 35, 1),
    "sum along rows": (67.1, 2, 8, 1),
    "transpose": (134.2, 5, 12, 1),
    "transpose (0,2,1)": (134.2, 5, 15, 1),
    "gather": (201.3, 4, 10, 1),
    "sum of all": (67.1, 2, 8, 1),
    "argmax of all": (67.2, 2, 5, 1),
    "cumulative sum": (134.3, 15, 20, 1),
    "cumulative sum along rows": (134.2, 10, 18, 1),
    "random bits": (67.1, 30, 45, 1),
    "layer norm of rows, gradient": (134.2, 20, 40, 1),
    "sort of rows": (134.2, 200, 350, 1),
    "sort": (671.3, 300, 450, 6),
    "scatter-add": (335.5, 4, 12, 2),
}


@pytest.fixture(scope="module")
def predicted():
    """Of the name of a row what the model says."""
    rows = (*large("minijax", 1 << 24, 1 << 12), *small("minijax"))
    programs = {row.name: row for row in rows}
    return functools.cache(lambda name: model.Predicted.of(name, model.launches_of(programs[name])))


@pytest.mark.parametrize("name", COUNTS)
def test_launches_move_and_compute_no_more_than_they_must(predicted, name):
    found, (megabytes, least, most, launches) = predicted(name), COUNTS[name]
    assert found.launches == launches
    assert found.counts["bytes"] / 1e6 == pytest.approx(megabytes, rel=1e-2)
    assert least <= (found.counts["float"] + found.counts["integer"]) / (1 << 24) <= most


def test_predicted_times_are_less_than_those_that_jax_took(predicted):
    ratios = {name: predicted(name).ratio for name in model.MEASURED}
    assert {name for name, ratio in ratios.items() if round(ratio, 2) < 1} <= {"Black–Scholes"}
    assert model.geometric_mean(ratios.values()) >= 1.5


def test_times_that_were_measured_are_predicted(predicted):
    names = model.MEASURED.keys() - set(model.CHANGED)
    assert statistics.median(abs(predicted(name).error) for name in names) < 0.25


FOLLOWED = [(4096, 4096, 64), (4096, 4096, 4096), (512, 512, 512), (16384, 256, 64),
            (128, 128, 4096)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tiles_are_chosen_where_the_model_says_that_they_are_faster(monkeypatch, dtype):
    for m, n, k in FOLLOWED:
        shapes = (m, k), (k, n), (n,)
        types = [jax.ShapeDtypeStruct(shape, jax.numpy.dtype(dtype)) for shape in shapes]
        lowered = jax.jit(lambda x, y, b: jax.nn.gelu(x @ y + b)).lower(*types)._lowered
        source = lower_to_kernel(lowered.jaxpr, lowered.name, on_gpu=True)
        chosen = launches.scheduled(source)
        device = []
        for is_faster in (True, False):
            with monkeypatch.context() as context:
                context.setattr(tensor_cores, "is_faster", lambda product, x=is_faster: x)
                device.append(model.Predicted.of("", launches.scheduled(source)).device)
        is_tile = not any(isinstance(each, Call) for each in chosen.body)
        assert device[not is_tile] <= 1.25 * min(device)
