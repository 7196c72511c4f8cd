"""Comparisons, logic, shifts, counts of bits, selections and clamps, as JAX has them."""

import numpy as np
import pytest

import minijax
from minijax import lax

FLOATS = np.float32([0., -0., 1., -1., np.inf, -np.inf, np.nan])
INTS = np.int32([0, 1, -1, 5, 31, 32, 2**31 - 1, -2**31])
BOOLS = np.array([True, False])


def pairs(x):
    one, two = np.meshgrid(x, x)
    return np.ascontiguousarray(one).ravel(), np.ascontiguousarray(two).ravel()


@pytest.mark.parametrize("x", [FLOATS, INTS, BOOLS, INTS.astype(np.uint8)],
                         ids=lambda x: str(x.dtype))
@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or",
                                  "bitwise_xor", "shift_left", "shift_right_logical",
                                  "shift_right_arithmetic"])
def test_operations_on_pairs_are_as_in_jax(name, x, agrees_closely):
    agrees_closely(lambda lax: getattr(lax, name)(*pairs(x)))


@pytest.mark.parametrize("call", [
    lambda lax: lax.lt(1., 2.), lambda lax: lax.lt(1j, 2j), lambda lax: lax.bitwise_not(INTS),
    lambda lax: lax.bitwise_not(True), lambda lax: lax.bitwise_not(1.),
    lambda lax: lax.bitwise_and(1., 2.), lambda lax: lax.bitwise_and(np.int32(1), np.int8(1)),
    lambda lax: lax.eq(np.ones(3), 1), lambda lax: lax.select(1, 2, 3),
    lambda lax: lax.select(BOOLS, 2., 3.), lambda lax: lax.select(True, 2., 3),
    lambda lax: lax.select(1., 2., 3.), lambda lax: lax.select(BOOLS, INTS[:2], INTS[2:4]),
    lambda lax: lax.select(True, np.ones(2), np.ones(3)), lambda lax: lax.select_n(True),
    lambda lax: lax.select_n(2, 2., 3.), lambda lax: lax.select_n(True, 1, 2, 3),
    lambda lax: lax.select_n(np.int32([-1, 5, 1]), np.arange(3), np.arange(3) * 10),
    lambda lax: lax.clamp(0, np.ones(3), 1), lambda lax: lax.clamp(np.ones(2), np.ones(3), 1.),
    lambda lax: lax.clamp(1., np.ones(3), np.ones(2)), lambda lax: lax.clamp(2., 1.5, 1.),
    lambda lax: lax.clamp(0., np.nan, 1.), lambda lax: lax.clamp(np.nan, 0., 1.),
    lambda lax: lax.clamp(0., 0., np.nan), lambda lax: lax.clamp(np.float32(-1), FLOATS, FLOATS)])
def test_types_values_and_refusals_are_those_of_jax(call, agrees_closely):
    agrees_closely(call)


def test_a_number_out_of_range_selects_the_last_case_also_in_reverse_mode():
    f = lambda x, y: lax.reduce_sum(lax.select_n(np.int32([-1, 5]), x, y), (0,))
    one, other = minijax.grad(f, (0, 1))(np.float32([1, 2]), np.float32([3, 4]))
    np.testing.assert_array_equal(one, [1, 0])
    np.testing.assert_array_equal(other, [0, 1])


def test_keys_are_equal_when_all_their_words_are():
    one, two = minijax.random.split(minijax.random.key(0))
    assert lax.eq(one, one) and lax.ne(one, two) and not lax.eq(one, two)
    both = minijax.random.split(minijax.random.key(0))
    np.testing.assert_array_equal(minijax.jit(lax.eq)(both, both), [True, True])
    np.testing.assert_array_equal(minijax.vmap(lax.eq, (0, None))(both, one), [True, False])


def test_a_batch_of_predicates_selects_for_each_example():
    which, x = np.array([True, False]), np.float32([[1, 2], [3, 4]])
    found = minijax.vmap(lambda p, x: lax.select(p, x, lax.neg(x)))(which, x)
    np.testing.assert_array_equal(found, [[1, 2], [-3, -4]])


def test_a_batch_of_bounds_clamps_each_example():
    low, x = np.float32([0, 3]), np.float32([[-1, 2], [1, 4]])
    found = minijax.vmap(lambda low, x: lax.clamp(low, x, np.float32(9)))(low, x)
    np.testing.assert_array_equal(found, [[0, 2], [3, 4]])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("name", ["population_count", "clz"])
def test_bits_are_counted_as_in_jax_compiled_or_not(name, dtype, agrees_closely):
    limits = np.iinfo(dtype)
    x = np.array([0, 1, 2, 3, 7, 8, 100, 127, limits.min, limits.max, limits.max - 5], dtype)
    agrees_closely(lambda lax: getattr(lax, name)(x))
    np.testing.assert_array_equal(minijax.jit(getattr(lax, name))(x), getattr(lax, name)(x))


def test_floats_have_no_bits_to_count(agrees_closely):
    agrees_closely(lambda lax: lax.population_count(1.))


@pytest.mark.parametrize("name", ["eq_to_p", "lt_to_p", "le_to_p"])
def test_the_total_order_tells_zeros_and_nans_apart(name, agrees):
    x = np.float32([-np.nan, -np.inf, -1, -0., 0, 1e-40, 1, np.inf, np.nan])
    one, two = (np.ascontiguousarray(a).ravel() for a in np.meshgrid(x, x))
    agrees(lambda lax: getattr(lax, name).bind(one, two))
    agrees(lambda lax: getattr(lax, name).bind(np.int32([1, 2]), np.int32([2, 2])))
