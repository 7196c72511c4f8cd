"""Products: every placement of axes, every dtype, eager, compiled, batched and differentiated."""

import itertools
from fractions import Fraction

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax import lax
from tests.running_text import run_text

RNG = np.random.default_rng(2)
PLACEMENTS = [
    ((2, 3), (3, 4), (((1,), (0,)), ((), ()))), ((3, 2), (4, 3), (((0,), (1,)), ((), ()))),
    ((3,), (3,), (((0,), (0,)), ((), ()))), ((2,), (3,), (((), ()), ((), ()))),
    ((5, 2, 3), (5, 3, 4), (((2,), (1,)), ((0,), (0,)))),
    ((2, 5, 3), (3, 4, 5), (((2,), (0,)), ((1,), (2,)))),
    ((2, 3, 4), (4, 3), (((1, 2), (1, 0)), ((), ()))), ((2, 0), (0, 3), (((1,), (0,)), ((), ()))),
    ((20, 30), (30, 40), (((1,), (0,)), ((), ()))), ((30, 20), (40, 30), (((0,), (1,)), ((), ()))),
    ((20, 30), (40, 30), (((1,), (1,)), ((), ()))), ((20, 30), (30,), (((1,), (0,)), ((), ()))),
    ((30,), (30, 40), (((0,), (0,)), ((), ()))), ((30, 41), (30,), (((0,), (0,)), ((), ()))),
    ((4, 30), (30, 4, 10), (((1,), (0,)), ((0,), (1,)))),
    ((4, 20, 30), (30, 4, 10), (((2,), (0,)), ((0,), (1,)))),
    ((2, 3, 20, 10), (2, 3, 10, 20), (((3,), (2,)), ((0, 1), (0, 1))))]


def of_shape(shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("left", "right", "numbers"), PLACEMENTS, ids=str)
def test_products_are_those_of_jax(left, right, numbers):
    x, y = of_shape(left), of_shape(right)
    wanted = np.asarray(jax.lax.dot_general(x, y, numbers))
    np.testing.assert_allclose(lax.dot_general(x, y, numbers), wanted, rtol=1e-4, atol=1e-5)
    compiled = minijax.jit(lambda x, y: lax.dot_general(x, y, numbers))(x, y)
    np.testing.assert_allclose(compiled, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("left", "right", "numbers"), PLACEMENTS[:8], ids=str)
def test_gradients_of_products_are_the_programs_and_numbers_of_jax(
        left, right, numbers, beside_jax):
    x, y = of_shape(left), of_shape(right)
    weights = np.cos(np.asarray(jax.lax.dot_general(x, y, numbers)))

    def loss(m, x, y):
        product = m.lax.mul(m.lax.dot_general(x, y, numbers), weights)
        return m.lax.reduce_sum(product, tuple(range(product.ndim)))
    ours, theirs = beside_jax(lambda m: m.grad(lambda x, y, m=m: loss(m, x, y), (0, 1))(x, y))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("left", "right", "numbers"), PLACEMENTS[:7], ids=str)
def test_every_batch_axis_of_either_side_is_right(left, right, numbers):
    ways = list(itertools.product([None, *range(len(left) + 1)], [None, *range(len(right) + 1)]))
    ways.remove((None, None))
    pairs = [[of_shape(s if d is None else (*s[:d], 6, *s[d:]))
              for s, d in zip((left, right), in_axes, strict=True)] for in_axes in ways]

    def batched(m, pairs):
        return [m.vmap(lambda x, y: m.lax.dot_general(x, y, numbers), in_axes)(x, y)
                for in_axes, (x, y) in zip(ways, pairs, strict=True)]
    wanted = jax.jit(lambda pairs: batched(jax, pairs))(pairs)
    for ours, theirs in zip(batched(minijax, pairs), wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


X = of_shape((3, 4))
INTS = (X * 50).astype(np.int8)


@pytest.mark.parametrize("call", [
    lambda lax: lax.dot(X[0], X[:, 0]), lambda lax: lax.dot(1., 2.),
    lambda lax: lax.dot(INTS[0], X[0]), lambda lax: lax.dot(INTS[0], INTS[1]),
    lambda lax: lax.dot(INTS[0], INTS[1], preferred_element_type=np.int32),
    lambda lax: lax.dot(INTS[0].astype(np.int32), INTS[1], preferred_element_type=np.int8),
    lambda lax: lax.dot(X[0] > 0, X[1] > 0), lambda lax: lax.dot(X[0], X[0], precision="foo"),
    lambda lax: lax.dot(X[0], X[0], precision="highest"),
    lambda lax: lax.dot(INTS[0], INTS[1].astype(np.uint8)),
    lambda lax: lax.dot(X[0].astype(ml_dtypes.bfloat16), X[0]),
    lambda lax: lax.dot_general(X, X, (((1,), (0,)), ((), ()))),
    lambda lax: lax.dot_general(X, X, (((2,), (0,)), ((), ()))),
    lambda lax: lax.dot_general(X, X, (((1,), (3,)), ((), ()))),
    lambda lax: lax.dot_general(X, X, (((1,), (1,)), ((0,), ()))),
    lambda lax: lax.dot_general(X, X, (((1, 1), (1, 1)), ((), ()))),
    lambda lax: lax.dot_general(X, X, (((1,), (1,)), ((1,), (1,)))),
    lambda lax: lax.dot_general(X, X[:2], (((1,), (1,)), ((0,), (0,)))),
    lambda lax: lax.dot_general(2., 3., (((), ()), ((), ()))),
    lambda lax: lax.batch_matmul(X, X), lambda lax: lax.batch_matmul(X[0], X[0]),
    lambda lax: lax.batch_matmul(X[None], X)])
def test_types_and_refusals_are_those_of_jax(call, agrees_closely):
    agrees_closely(call, 1e-4)


@pytest.mark.parametrize("dtype", [np.int32, np.int8, bool])
def test_large_products_of_integers_wrap_around_compiled(dtype):
    x, y = (of_shape(s).astype(dtype) * 99 for s in ((20, 30), (30, 40)))
    x, y = x.astype(dtype), y.astype(dtype)
    for f in (lax.dot, lambda x, y: lax.dot_general(x, y.T, (((1,), (1,)), ((), ())))):
        wanted = np.asarray(f(x, y))
        np.testing.assert_array_equal(wanted, x @ y)
        np.testing.assert_array_equal(minijax.jit(lax.dot)(x, y), wanted)


def test_bfloat16_products_are_summed_in_float32():
    x = np.full(1000, 1, ml_dtypes.bfloat16)
    assert lax.dot(x, x) == 1000
    assert minijax.jit(lax.dot)(x, x) == 1000


@pytest.mark.parametrize("contract", [((2, 3), (1, 2)), ((1, 2), (2, 3)), ((2, 3), (2, 3)),
                                      ((1, 2), (1, 2))])
@pytest.mark.parametrize("batch", [((), ()), ((0,), (0,))])
def test_long_thin_products_are_added_up_in_parts(contract, batch):
    rng = np.random.default_rng(0)

    def operand(axes):
        return rng.random([2, *(25 if d in axes else 3 for d in (1, 2, 3))]).astype(np.float32)
    x, y = operand(contract[0]), operand(contract[1])
    f = lambda x, y: lax.dot_general(x, y, (contract, batch))
    rows = [np.moveaxis(a.astype(np.float64), axes, (2, 3)).reshape(2, 3, 625)
            for a, axes in zip((x, y), contract, strict=True)]
    exact = np.einsum("bik,bjk->bij" if batch[0] else "bik,cjk->bicj", *rows)
    program = minijax.jit(f).lower(x, y)
    for found in (f(x, y), minijax.jit(f)(x, y), run_text(program._lowered.kernel, [x, y])[0]):
        np.testing.assert_allclose(np.asarray(found).astype(np.float64), exact, rtol=1e-6)


def rounded_once(terms, dtype):
    """A sum of products whose every sum is rounded once."""
    total = dtype(0)
    for x, y in terms:
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(total))
        total = nearest(exact, dtype)
    return total


def nearest(exact, dtype):
    """The number of a dtype that is nearest to a fraction: float64 is, and so may be a neighbour
    of what it becomes.
    """
    middle = dtype(float(exact))
    return min((np.nextafter(middle, dtype(-np.inf)), middle, np.nextafter(middle, dtype(np.inf))),
               key=lambda x: abs(Fraction(float(x)) - exact))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("terms", range(1, 17))
def test_a_short_sum_of_products_rounds_every_sum_once(terms, dtype):
    x, y = (np.random.default_rng(k).standard_normal((6, terms)).astype(dtype) for k in range(2))
    exact = [rounded_once(zip(*rows, strict=True), dtype) for rows in zip(x, y, strict=True)]
    with minijax.enable_x64(True):
        for f in (lambda x, y: (x * y).sum(1), minijax.vmap(lax.dot)):
            np.testing.assert_array_equal(minijax.jit(f)(x, y), exact)


def test_a_product_that_is_stored_beside_its_sum_is_rounded_by_itself():
    x, y = (np.random.default_rng(k).standard_normal((6, 5)).astype(np.float32) for k in range(2))
    products, largest, sums = minijax.jit(lambda x, y: (
        x * y, (x * y).max(1), (x * y).sum(1)))(x, y)
    np.testing.assert_array_equal(products, x * y)
    np.testing.assert_array_equal(largest, (x * y).max(1))
    np.testing.assert_allclose(sums, (x * y).sum(1), rtol=1e-6)
