"""The laws of polynomials: products divide, integrals have derivatives, fits go through."""

import jax
import numpy as np
import pytest

import minijax.numpy as jnp

P, Q = np.float32([1, -3, 2, 5]), np.float32([2, 1])


def test_a_product_and_what_is_left_divide():
    quotient, left = jnp.polydiv(jnp.polyadd(jnp.polymul(P, Q), np.float32([7])), Q)
    np.testing.assert_allclose(quotient, P, atol=1e-5)
    np.testing.assert_allclose(jnp.trim_zeros(left), [7], atol=1e-5)


def test_the_derivative_of_the_integral_is_the_polynomial():
    np.testing.assert_allclose(jnp.polyder(jnp.polyint(P, 2, np.float32([3, 4])), 2), P)
    np.testing.assert_allclose(jnp.polyint(P, 2, np.float32([3, 4])), np.polyint(P, 2, [3, 4]))


def test_a_fit_finds_the_polynomial_and_its_covariance():
    x = np.linspace(-1, 1, 9, dtype=np.float32)
    np.testing.assert_allclose(jnp.polyfit(x, jnp.polyval(P, x), 3), P, atol=1e-4)
    ours = jnp.polyfit(x, np.exp(x), 1, cov=True)
    for found, wanted in zip(ours, np.polyfit(x, np.exp(x), 1, cov=True), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-6)


def test_a_sum_aligns_the_first_axes():
    found = jnp.polyadd(np.ones((1, 3)), np.ones((2, 3)))
    np.testing.assert_array_equal(found, [[1, 1, 1], [2, 2, 2]])


@pytest.mark.parametrize("coefficients", [
    [1, -6, 11, -6], [0, 0, 1, 2, 0], [3.], [], [0, 0], [1, 2], [0, 0, 5], [2j, 1, 3]])
@pytest.mark.parametrize("strip_zeros", [True, False])
def test_roots_are_those_of_jax(coefficients, strip_zeros):
    found, wanted = (np.asarray(lib.roots(lib.asarray(coefficients), strip_zeros=strip_zeros))
                     for lib in (jnp, jax.numpy))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_the_polynomial_of_a_matrix_is_that_of_its_eigenvalues():
    a = np.float32([[2, 1, 0], [.5, 3, 1], [0, 2, -1]])
    np.testing.assert_allclose(jnp.poly(a), np.asarray(jax.numpy.poly(a)), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="input must be 1d or non-empty square 2d array"):
        jnp.poly(np.ones((2, 3)))


RANKS = ("s", "v", "f[:1]", "f")  # 0, 1 and 2 axes


@pytest.mark.parametrize("expression", [
    *(f"jnp.{name}({x}, {y})" for name in ("polyadd", "polysub", "polymul", "polydiv", "polyval")
      for x in RANKS for y in RANKS if (name, x) != ("polydiv", "s")),
    *(f"jnp.{name}({x})" for name in ("roots", "poly", "polyder", "polyint") for x in RANKS),
    *(f"jnp.{name}({x}, 0)" for name in ("polyder", "polyint") for x in RANKS),
    "jnp.roots(2.)", "jnp.roots(s, strip_zeros=False)", "jnp.polyfit(v, v, 1.5)",
    "jnp.polyfit(v, v, -1)", "jnp.polyfit(s, s, 1)", "jnp.polyfit(v, f, 1)",
    "jnp.poly(np.complex64([]))", "jnp.poly(e[:, 0].astype('bfloat16'))",
])
def test_polynomials_of_every_rank_are_jaxs(agrees_with_jax, agrees_with_64_bits, expression):
    agrees_with_jax(expression, rtol=1e-4, atol=1e-5)
    agrees_with_64_bits(expression, rtol=1e-4, atol=1e-5)
