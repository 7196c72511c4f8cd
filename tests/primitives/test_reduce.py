"""Reductions and running totals: types, empty axes, nan, and refusals, as JAX has them."""

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax import lax

X = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)
INTS = (X * 100).astype(np.int32)
NAMES = ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or",
         "reduce_xor"]
Y = np.random.default_rng(1).standard_normal((3, 5, 2)).astype(np.float32)
RUNNING = ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]


@pytest.mark.parametrize("x", [X, INTS, X > 0, X.astype(np.float16), INTS.astype(np.uint8),
                               X.astype(ml_dtypes.bfloat16), X[:, :0], np.float32([np.nan, 1]),
                               INTS[:0]], ids=lambda x: f"{x.dtype}{list(x.shape)}")
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (), (2, 1)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_reductions_are_those_of_jax(name, axes, x, agrees):
    def f(lax):
        out = getattr(lax, name)(x, axes)
        if out.dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
            decimals = 4 if out.dtype == np.float32 else 0
            return lax.convert_element_type(np.round(np.asarray(out, np.float32), decimals),
                                            np.float32)
        return out
    if x.dtype.itemsize == 2 and name in ("reduce_sum", "reduce_prod"):
        pytest.skip("XLA rounds 16-bit sums after every step")
    agrees(f)


@pytest.mark.parametrize("call", [
    lambda lax: lax.reduce_sum(X, (3,)), lambda lax: lax.reduce_sum(X, (0, 0)),
    lambda lax: lax.reduce_sum(X, (-1,)), lambda lax: lax.reduce_sum(X > 0, (0,)),
    lambda lax: lax.reduce_and(X, (0,)), lambda lax: lax.reduce_max(1., ()),
    lambda lax: lax.reduce_sum(1, ())])
def test_types_and_refusals_are_those_of_jax(call, agrees_closely):
    agrees_closely(call)


@pytest.mark.parametrize("x", [np.float32([2, 3, 0, 5]), np.float32([0, 3, 0, 5]),
                               np.float32([1, 1, 1]), X[0, 0]], ids=str)
@pytest.mark.parametrize("name", NAMES[:4])
def test_gradients_of_reductions_are_those_of_jax(name, x, beside_jax):
    ours, theirs = beside_jax(lambda m: m.grad(lambda x, m=m: getattr(m.lax, name)(x, (0,)))(x))
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-6)


def test_the_tangent_of_a_product_over_an_empty_axis_is_a_symbolic_zero():
    x = np.zeros((0, 2), np.float32)
    _, tangent = minijax.linearize(lambda x: lax.reduce_prod(x, (0,)), x)
    equation, = minijax.make_jaxpr(tangent)(x).eqns
    assert equation.primitive.name == "broadcast_in_dim"  # of zero: no equation reads x


def test_the_second_derivative_of_a_product_is_right():
    x = np.float32([2, 3, 4])
    found = minijax.hessian(lambda x: lax.reduce_prod(x, (0,)))(x)
    np.testing.assert_allclose(np.asarray(found), [[0, 4, 3], [4, 0, 2], [3, 2, 0]], rtol=1e-6)


def test_a_long_sum_keeps_its_accuracy_compiled():
    x = np.full(1_000_000, .1, np.float32)
    assert abs(float(np.asarray(minijax.jit(lambda x: lax.reduce_sum(x, (0,)))(x))) - 1e5) < 1


@pytest.mark.parametrize("name", NAMES)
def test_compiled_reductions_over_nothing_give_their_identity_whichever_axis_is_empty(name):
    kind = bool if name in ("reduce_and", "reduce_or") else np.int32
    shapes = [(0, 3), (3, 0), (2, 0, 3), (1, 0), (0, 0, 1)]
    cases = [(np.ones(shape, kind), axes) for shape in shapes
             for axes in ((0,), (1,), (0, 1))]

    def reduced(xs):
        return [getattr(lax, name)(x, axes) for x, (_, axes) in zip(xs, cases, strict=True)]

    xs = [x for x, _ in cases]
    for one, other in zip(minijax.jit(reduced)(xs), reduced(xs), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", RUNNING)
def test_running_totals_are_those_of_jax(name, axis, reverse):
    ours, theirs = (np.asarray(getattr(m, name)(Y, axis, reverse)) for m in (lax, jax.lax))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    compiled = minijax.jit(lambda x: getattr(lax, name)(x, axis, reverse))(Y)
    np.testing.assert_allclose(np.asarray(compiled), theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", RUNNING)
def test_derivatives_of_running_totals_are_those_of_jax(name, reverse, beside_jax):
    weights = np.cos(np.arange(5, dtype=np.float32))
    for x in (Y[0, :, 0], np.float32([1, 0, 2, 0, 3]), np.float32([1, 3, 2, 5, 4])):
        def loss(m, x):
            total = getattr(m.lax, name)(x, 0, reverse)
            return m.lax.reduce_sum(m.lax.mul(total, weights), (0,))
        ours, theirs = beside_jax(lambda m: m.grad(lambda x, m=m: loss(m, x))(x))
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("call", [
    lambda lax: lax.cumsum(Y, 3), lambda lax: lax.cumsum(Y, -1), lambda lax: lax.cumsum(Y > 0),
    lambda lax: lax.cummax(1.), lambda lax: lax.cummax(Y > 0),
    lambda lax: lax.cummax(np.float32([1, np.nan, 2])), lambda lax: lax.cumsum(np.arange(4)),
    lambda lax: lax.cumsum(np.full(3, 100, np.uint8)),
    lambda lax: lax.cumprod(np.zeros((0, 2), np.float32))])
def test_types_and_refusals_of_running_totals_are_those_of_jax(call, agrees_closely):
    agrees_closely(call, 1e-6)


def test_log_sums_of_infinities_are_infinite_and_not_nan():
    x = np.float32([-np.inf, -np.inf, 1, np.inf, np.inf])
    np.testing.assert_allclose(np.asarray(lax.cumlogsumexp(x)), np.asarray(jax.lax.cumlogsumexp(x)))


@pytest.mark.parametrize("x", [[1, np.nan, 0], [3, np.nan, 1, 2, 1, 0], [complex(1, np.nan), 0],
                               [complex(0, -0.), complex(-0., 0)], [1 + 2j, 1 + 3j, 1 - 1j],
                               [complex(-np.inf, -1), complex(np.inf, 1)]], ids=str)
@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "cummax", "cummin"])
def test_extrema_of_complex_numbers_are_taken_one_after_another_as_in_jax(name, x, agrees):
    given = np.array(x, np.complex64)
    agrees(lambda lax: getattr(lax, name)(given, (0,) if name.startswith("reduce") else 0))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("x", [[0.5 + 0.5j, 1.5 - 3j, 2j, -1], [1 + 3j, 1 + 3j], [], [3j]], ids=str)
def test_log_sums_of_complex_numbers_are_those_of_jax(x, reverse):
    given = np.array(x, np.complex64)
    found, wanted = (np.asarray(lib.cumlogsumexp(given, reverse=reverse)) for lib in (lax, jax.lax))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
