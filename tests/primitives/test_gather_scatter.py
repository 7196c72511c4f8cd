"""gather and scatter agree with JAX for generated dimension numbers, and refuse what it refuses."""

import math

import jax
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import minijax
from minijax import lax, numpy as jnp
from minijax.core import as_value

V = np.arange(4, dtype=np.float32)
X = np.arange(12, dtype=np.float32).reshape(3, 4)
MODES = ["clip", "fill", "promise_in_bounds", None]


def scalars(lax):
    return lax.GatherDimensionNumbers((), (0,), (0,))


@st.composite
def gathers(draw):
    """An operand, indices partly outside, dimension numbers and the size of a window."""
    ndim = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 4)) for _ in range(ndim))
    batching = tuple(d for d in range(1, ndim) if draw(st.integers(0, 4)) == 0)
    indexed = [d for d in range(ndim) if d not in batching]
    components = tuple(draw(st.permutations(indexed))[:draw(st.integers(1, max(1, len(indexed))))])
    extra = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, 2)))]
    batch = [*(shape[d] for d in batching), *extra]
    collapsed = tuple(d for d in indexed if draw(st.booleans()))
    window = [d for d in indexed if d not in collapsed]
    sizes = tuple(draw(st.integers(1, shape[d])) if d in window else 1 for d in range(ndim))
    rank = len(window) + len(batch)
    offset = tuple(sorted(draw(st.permutations(range(rank)))[:len(window)]))
    indices = np.array(draw(st.lists(st.integers(-3, 6), min_size=int(np.prod(batch, dtype=int))
                                     * len(components), max_size=200)), np.int32)
    indices = np.resize(indices, (*batch, len(components)))
    numbers = (offset, collapsed, components, batching, tuple(range(len(batching))))
    operand = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return operand, indices, numbers, sizes


@settings(max_examples=60, deadline=None)
@given(gathers(), st.sampled_from(MODES))
def test_gather_reads_what_jax_reads(case, mode):
    operand, indices, numbers, sizes = case
    ours = lax.gather(operand, indices, lax.GatherDimensionNumbers(*numbers), sizes, mode=mode)
    theirs = jax.lax.gather(operand, indices, jax.lax.GatherDimensionNumbers(*numbers), sizes,
                            mode=mode)
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


@settings(max_examples=60, deadline=None)
@given(gathers(), st.sampled_from(["clip", "drop", "promise_in_bounds", None]),
       st.sampled_from(["scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"]))
def test_scatter_writes_what_jax_writes(case, mode, name):
    operand, indices, numbers, sizes = case
    shape = lax.gather(operand, indices, lax.GatherDimensionNumbers(*numbers), sizes).shape
    updates = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 5 - 2
    if name == "scatter":  # which of several values for one place stays is not defined
        times = lax.scatter_add(np.zeros_like(operand), indices, np.ones_like(updates),
                                lax.ScatterDimensionNumbers(*numbers), mode=mode)
        assume(np.max(times, initial=0) <= 1)
    ours = getattr(lax, name)(operand, indices, updates, lax.ScatterDimensionNumbers(*numbers),
                              mode=mode)
    theirs = getattr(jax.lax, name)(operand, indices, updates,
                                    jax.lax.ScatterDimensionNumbers(*numbers), mode=mode)
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


@pytest.mark.parametrize("f", [
    lambda lax: lax.gather(V, np.array([[1.0]]), scalars(lax), (1,)),
    lambda lax: lax.gather(V, np.array([[1]]), scalars(lax), (9,)),
    lambda lax: lax.gather(V, np.array([[1]]), scalars(lax), (1, 1)),
    lambda lax: lax.gather(V, np.array([[1, 2]]), scalars(lax), (1,)),
    lambda lax: lax.GatherScatterMode.from_any("x"),
    lambda lax: lax.scatter(V, np.array([[1]]), np.array([1]),
                            lax.ScatterDimensionNumbers((), (0,), (0,))),
    lambda lax: lax.scatter(V, np.array([[1]]), np.array([[1]], np.float32),
                            lax.ScatterDimensionNumbers((), (0,), (0,))),
])
def test_errors_are_those_of_jax(agrees, f):
    agrees(f)


def test_modes_print_as_in_jax():
    assert [repr(mode) for mode in lax.GatherScatterMode] == [
        repr(mode) for mode in jax.lax.GatherScatterMode]
    assert str(lax.GatherScatterMode.CLIP) == "GatherScatterMode.CLIP"
    assert lax.GatherScatterMode.from_any("drop") is lax.GatherScatterMode.FILL_OR_DROP


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "int32", "uint8",
                                   "bool"])
def test_what_stands_outside_by_default_depends_on_the_dtype_as_in_jax(dtype):
    operand = np.zeros(2).astype(minijax.numpy.dtype(dtype))
    found = lax.gather(operand, np.array([[5]]), scalars(lax), (1,), mode="fill")
    wanted = jax.lax.gather(operand, np.array([[5]]), scalars(jax.lax), (1,), mode="fill")
    np.testing.assert_array_equal(np.asarray(found).astype(np.float64),
                                  np.asarray(wanted).astype(np.float64))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8, np.uint32])
def test_compiled_code_touches_no_memory_outside_whatever_the_mode(mode, dtype):
    extremes = np.array([[np.iinfo(dtype).min], [np.iinfo(dtype).max], [3]], dtype)
    read = lambda v, i: lax.gather(v, i, scalars(lax), (1,), mode=mode)
    write = lambda v, i: lax.scatter_add(v, i, np.ones(3, np.float32),
                                         lax.ScatterDimensionNumbers((), (0,), (0,)), mode=mode)
    for f in (read, write):
        np.testing.assert_array_equal(np.asarray(minijax.jit(f)(V, extremes)),
                                      np.asarray(f(as_value(V), as_value(extremes))))


def test_of_several_updates_of_one_place_the_last_stays_and_gets_the_cotangent():
    places, dims = np.array([[1], [1], [2]]), lax.ScatterDimensionNumbers((), (0,), (0,))
    f = lambda x, y: lax.scatter(x, places, y, dims)
    out, pull = minijax.vjp(f, V, np.array([5, 6, 7], np.float32))
    assert np.asarray(out).tolist() == [0, 6, 7, 3]
    for_x, for_y = pull(np.array([1, 2, 3, 4], np.float32))
    assert np.asarray(for_x).tolist() == [1, 0, 0, 4]
    assert np.asarray(for_y).tolist() == [0, 2, 3]


def test_contenders_for_a_maximum_share_the_tangent_as_in_jax():
    places = np.array([[0], [0], [1]])

    def tangent(module, lax):
        dims = lax.ScatterDimensionNumbers((), (0,), (0,))
        f = lambda x, y: lax.scatter_max(x, places, y, dims)
        values = (np.array([2, 9], np.float32), np.array([2, 2, 1], np.float32))
        tangents = (np.array([3, 5], np.float32), np.array([6, 12, 7], np.float32))
        return np.asarray(module.jvp(f, values, tangents)[1])

    np.testing.assert_allclose(tangent(minijax, lax), tangent(jax, jax.lax), rtol=1e-6)


def test_products_scattered_to_repeated_places_have_no_gradient_as_in_jax():
    dims = lax.ScatterDimensionNumbers((), (0,), (0,))
    f = lambda y: lax.scatter_mul(V, np.array([[1], [1]]), y, dims)
    with pytest.raises(NotImplementedError, match="only implemented if `unique_indices=True`"):
        minijax.jvp(f, (np.ones(2, np.float32),), (np.ones(2, np.float32),))


@pytest.mark.parametrize("method", ["add", "multiply", "min", "max", "subtract", "set"])
@pytest.mark.parametrize("width", [(), (3,), (40,)], ids=str)
def test_many_updates_of_few_places_are_those_made_one_by_one(method, width):
    rng = np.random.default_rng(0)
    count = 100_003 // max(math.prod(width), 1)
    x, at = rng.integers(-9, 9, (7, *width), np.int32), rng.integers(-9, 9, count, np.int32)
    updates = rng.integers(-9, 9, (count, *width), np.int32)
    f = lambda x, at, updates: getattr(x.at[at], method)(updates)
    eager = f(*map(jnp.asarray, (x, at, updates)))
    np.testing.assert_array_equal(minijax.jit(f)(x, at, updates), eager)
    theirs = f(*map(jax.numpy.asarray, (x, at, updates)))
    np.testing.assert_array_equal(eager, theirs)
