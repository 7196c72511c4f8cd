"""sort, argmax and argmin agree with JAX: stable, nan last, by several keys, eager and compiled."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax
from minijax import lax

FLOATS = np.array([2.0, np.nan, -0.0, 0.0, -np.inf, 1.0, np.inf, 1.0, -np.nan], np.float32)
ROWS = np.random.default_rng(0).integers(0, 9, (5, 3000)).astype(np.float32)
COUNT = np.arange(9, dtype=np.int32)


@pytest.mark.parametrize("f", [
    lambda lax: lax.sort(FLOATS),
    lambda lax: lax.sort((FLOATS, COUNT)),
    lambda lax: lax.sort((COUNT % 3, FLOATS, COUNT), num_keys=2),
    lambda lax: lax.sort(FLOATS.reshape(3, 3), dimension=0),
    lambda lax: lax.sort(np.array([True, False, True])),
    lambda lax: lax.sort(np.array([1 + 2j, 1 - 1j, np.nan, 0], np.complex64)),
    lambda lax: lax.sort(np.array([3, -128, 127], np.int8)),
    lambda lax: lax.sort_key_val(-COUNT, COUNT),
    lambda lax: lax.top_k(np.array([3, 1, 4, 1, 5, 3]), 4),
    lambda lax: lax.top_k(ROWS[:, :7], 3, axis=0),
    lambda lax: lax.top_k(np.array([1, np.nan, 3], np.float32), 2),
])
def test_results_are_those_of_jax(agrees, f):
    agrees(f)


@pytest.mark.parametrize("f", [
    lambda lax: lax.sort(()),
    lambda lax: lax.sort(FLOATS, num_keys=2),
    lambda lax: lax.sort((FLOATS, FLOATS[:2])),
    lambda lax: lax.top_k(COUNT, -1),
    lambda lax: lax.top_k(COUNT, 10),
    lambda lax: lax.top_k(COUNT * 1j, 1),
])
def test_errors_are_those_of_jax(agrees, f):
    agrees(f)


KEYS = {
    "bool": st.booleans(), "int8": st.integers(-128, 127), "uint8": st.integers(0, 255),
    "int32": st.integers(-2**31, 2**31 - 1), "uint32": st.integers(0, 2**32 - 1),
    "float16": st.floats(width=16), "bfloat16": st.floats(width=16),
    "float32": st.floats(width=32)}


@pytest.mark.parametrize("dtype", list(KEYS))
@pytest.mark.parametrize("size", [1, 2, 7, 31, 3000])
def test_compiled_sorts_are_stable_and_order_every_value(dtype, size):
    strategy = st.lists(KEYS[dtype], min_size=1, max_size=40)
    f = minijax.jit(lambda x, i: lax.sort((x, i)))

    @settings(max_examples=20, deadline=None)
    @given(strategy)
    def check(values):
        with np.errstate(all="ignore"):
            keys = np.resize(np.array(values).astype(minijax.numpy.dtype(dtype)), size)
        order = np.argsort(keys.astype(np.float64), kind="stable")
        found, places = f(keys, np.arange(size, dtype=np.int32))
        np.testing.assert_array_equal(np.asarray(places), order)
        np.testing.assert_array_equal(np.asarray(found).astype(np.float64),
                                      keys[order].astype(np.float64))

    check()


@pytest.mark.parametrize("dimension", [0, 1])
def test_compiled_sorts_of_rows_and_columns_equal_those_of_numpy(dimension):
    got = minijax.jit(lambda x: lax.sort(x, dimension))(ROWS)
    np.testing.assert_array_equal(np.asarray(got), np.sort(ROWS, dimension))


def test_several_long_keys_decide_in_their_order():
    first, second = ROWS[0], -ROWS[1]
    *_, places = minijax.jit(lambda *xs: lax.sort(xs, num_keys=2))(
        first, second, np.arange(3000, dtype=np.int32))
    np.testing.assert_array_equal(np.asarray(places), np.lexsort((second, first)))


def test_tangents_go_where_the_elements_went():
    x, t = FLOATS[[0, 2, 5]], np.array([1, 2, 3], np.float32)
    ours = minijax.jvp(lax.sort, (x,), (t,))[1]
    theirs = jax.jvp(jax.lax.sort, (x,), (t,))[1]
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    grad = minijax.grad(lambda v: (lax.sort(v) * t).sum())(x)
    np.testing.assert_array_equal(np.asarray(grad), [3, 1, 2])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8, np.bool_])
@pytest.mark.parametrize("k", [1, 5, 40, 300])
@pytest.mark.parametrize("rows", [ROWS[:, :700], np.sort(ROWS[:, :700]), ROWS[:, :700] * 0],
                         ids=["mixed", "rising", "all equal"])
def test_the_largest_are_those_of_jax_however_many_are_beside_them(rows, k, dtype):
    x = np.where(rows == 5, -rows, rows).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        x[:, ::7], x[:, ::11], x[:, ::13] = -0.0, np.nan, -np.nan
    f = lambda x: lax.top_k(x, k)
    for ours, compiled, theirs in zip(f(x), minijax.jit(f)(x), jax.lax.top_k(x, k), strict=True):
        for found in (ours, compiled):
            assert np.asarray(found).tobytes() == np.asarray(theirs).tobytes()


def test_the_places_of_the_largest_are_as_weak_as_the_values():
    for number in (2, 2.0, np.float32(2)):
        ours, theirs = ([x.weak_type for x in lib.lax.top_k(lib.numpy.full((2, 3), number), 1)]
                        for lib in (minijax, jax))
        assert ours == theirs


# ── Where the extremum is ────────────────────────────────────────────────────────────────────

X = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)
INTS = (X * 100).astype(np.int32)


@pytest.mark.parametrize("x", [X, INTS // 50, X > 0, np.where(X > 1, np.nan, X)],
                         ids=["float", "int with ties", "bool", "nan"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_extremum_is_found_compiled_or_not(name, x, agrees_closely):
    for axis in range(3):
        agrees_closely(lambda lax, axis=axis: getattr(lax, name)(x, axis, np.int32))
        f = lambda x, axis=axis: getattr(lax, name)(x, axis, np.int32)
        np.testing.assert_array_equal(minijax.jit(f)(x), f(x))


@pytest.mark.parametrize("n", [1 << 21, 3 << 20, (1 << 21) + 17])
def test_the_first_extremum_of_one_long_row_is_found(n):
    find = minijax.jit(lambda x: (lax.argmax(x, 0, np.int32), lax.argmin(-x[None], 1, np.int32)[0]))
    for places, value in [([], 1), ([n - 1], 1), ([9000, 8191], 1), ([1 << 20, 5], np.nan)]:
        x = np.zeros(n, np.float32)
        x[places] = value
        assert find(x) == (min(places, default=0),) * 2


@pytest.mark.parametrize("call", [
    lambda lax: lax.argmax(X, 3, int), lambda lax: lax.argmax(X, -1, int),
    lambda lax: lax.argmax(X[:, :0], 1, int), lambda lax: lax.argmax(X, 1, float),
    lambda lax: lax.argmax(1., 0, int), lambda lax: lax.argmax(X * 1j, 0, int),
    lambda lax: lax.argmin(X > 0, 2, np.int8),
    lambda lax: lax.argmin(np.float32([1, -0., 0.]), 0, int)])
def test_types_and_refusals_are_those_of_jax(call, agrees_closely):
    agrees_closely(call)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_ends_of_every_integer_type_are_in_order(name):
    for dtype in (np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        x = np.array([[low, high // 2 + 1, high - 1], [high // 2, low + 1, high],
                      [high, low, low]], dtype)
        for axis in (0, 1):
            f = lambda x, axis=axis: getattr(lax, name)(x, axis, np.int32)
            expected = getattr(np, name)(x, axis)
            np.testing.assert_array_equal(f(x), expected)
            np.testing.assert_array_equal(minijax.jit(f)(x), expected)
