"""Special functions agree with JAX, in the tails and in their derivatives."""

import jax
import jax.scipy.special
import numpy as np
import pytest

import minijax
import minijax.scipy


@pytest.mark.parametrize("expression", [
    "logsumexp(f)", "logsumexp(f, axis=1)", "logsumexp(v, b=w)", "softmax(f)", "softmax(f, axis=0)",
    "log_softmax(f, axis=1)", "log_softmax(f)", "erf(f)", "erf(2)", "erfc(f)", "erfinv(g)",
    "expit(f)", "expit(1)", "expit(i)", "logit(g)", "logit(0.3)", "logit(jnp.array([0., 1., 2.]))",
    "xlogy(f, g)", "xlogy(v, 2)", "xlogy(0, 0)", "xlog1py(f, g)", "xlog1py(0., -1.)", "entr(g)",
    "entr(v)", "entr(0.)", "rel_entr(g, g[::-1])", "rel_entr(v, f)", "rel_entr(0, 1)",
    "kl_div(g, g[::-1])", "kl_div(v, f)", "boxcox(g, 0.)", "boxcox(g, f)", "ndtr(f)", "ndtr(i)",
    "ndtr(0.)", "ndtr(h)", "ndtri(g)", "ndtri(0.2)", "ndtri(jnp.array([0., 1., -1., 2.]))",
    "ndtri(jnp.array([1e-30, 1e-10, 1e-4, 1 - 1e-6]))", "ndtri(h)", "log_ndtr(f)", "log_ndtr(0.)",
    "log_ndtr(jnp.array([-100., -12., -9., 4., 6., 40.]))", "log_ndtr(f, series_order=5)",
    "gammaln(f)", "gammaln(i)", "gammaln(jnp.array([0., -0.5, -2., 171.]))",
    "gammasgn(f)", "gamma(g)", "gamma(f[0])", "factorial(w)", "factorial(g)", "digamma(f)",
    "digamma(g)", "digamma(3)", "polygamma(1, g)", "polygamma(2, g)", "betaln(g, g[::-1])",
    "beta(g, g[::-1])", "multigammaln(g + 2, 3)", "loggamma(g)",
    "gammainc(g, f)", "gammainc(2, g)", "zeta(g + 1, g)", "zeta(2, 3)", "betainc(g, 2., g / 5)",
    "betainc(2, 3, 0.3)", "i0(f)", "i0e(f)", "i1(f)", "i1e(f)", "i0(2)", "polygamma(0, g)",
    "polygamma(3, f)", "polygamma(1., g)", "gammaincc(g, g[::-1])",
    "log_ndtr(f, series_order=-1)", "log_ndtr(f, series_order=31)",
])
def test_functions(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.special." + expression, rtol=1e-5)


X = np.float32([.1, .25, .5, .75, .9])


@pytest.mark.parametrize("name", [
    "erf", "erfc", "erfinv", "expit", "logit", "entr", "gammaln", "gamma", "digamma",
    "ndtr", "ndtri", "log_ndtr"])
def test_derivatives(name):
    def slope(top):
        return top.vmap(top.grad(lambda x: getattr(top.scipy.special, name)(x)))
    wanted = jax.jit(slope(jax))(X)
    np.testing.assert_allclose(slope(minijax)(X), wanted, rtol=1e-5)
    np.testing.assert_allclose(minijax.jit(slope(minijax))(X), wanted, rtol=1e-5)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "rel_entr", "kl_div"])
def test_derivatives_in_both_arguments(name):
    def slope(top):
        return top.vmap(top.grad(
            lambda x, y: getattr(top.scipy.special, name)(x, y), (0, 1)))
    args = X, X[::-1] + 1
    np.testing.assert_allclose(slope(minijax)(*args), jax.jit(slope(jax))(*args), rtol=1e-5)


def test_derivatives_at_zero(beside_jax):
    for name in ("xlogy", "xlog1py"):
        f, g = beside_jax(lambda top: top.grad(getattr(top.scipy.special, name), (0, 1)))
        np.testing.assert_allclose(f(0., 2.), g(0., 2.), rtol=1e-6)
    f, g = beside_jax(lambda top: top.grad(top.scipy.special.entr))
    assert float(f(0.)) == float(g(0.))


def test_the_tail_of_the_normal_distribution_has_a_derivative(beside_jax):
    x = np.float32([-80, -30, -12, -9.9, 3, 5.5, 9])
    f, g = beside_jax(lambda top: top.vmap(top.grad(top.scipy.special.log_ndtr)))
    np.testing.assert_allclose(f(x), jax.jit(g)(x), rtol=3e-5, atol=1e-30)


@pytest.mark.parametrize("expression", [
    "kl_div(i, 2.)", "kl_div(2, 3)", "rel_entr(lax.full((2,), 2), 3)", "rel_entr(b, 2)",
    "logit(lax.full((2,), 2))", "entr(c)", "rel_entr(c, 1.)", "kl_div(1., c)", "gammasgn(c)",
    "beta(c, 1.)", "betainc(c, 1., .5)", "polygamma(1, c)", "polygamma(b, 1.)",
    "betainc(1., g, .5)", "betainc(1, 2, .25)", "betainc(i * i + 1, 2, .5)",
    "betainc(h * h, 2, .5)",
    "multigammaln(5., 2)", "multigammaln(b, True)", "multigammaln(p, 0)", "multigammaln(g, 1.5)",
    "multigammaln(5, np.int64(2))", "wofz(1)", "wofz(True)", "wofz(w)", "wofz(1.)", "wofz(h)",
    "owens_t(g, 2.)", "owens_t(p, 1)", "owens_t(2, 3)", "bernoulli(True)", "bernoulli(2.5)",
    "log_ndtr(1.5, 2.5)", "log_ndtr(1.5, True)", "zeta(2., g)", "hyp1f1(1., g, .5)",
])
def test_types_beside_python_numbers_are_jaxs(agrees_with_jax, agrees_with_64_bits, expression):
    agrees_with_jax(f"jax.scipy.special.{expression}", rtol=2e-4, atol=1e-5)
    agrees_with_64_bits(f"jax.scipy.special.{expression}", rtol=2e-4, atol=1e-5)
