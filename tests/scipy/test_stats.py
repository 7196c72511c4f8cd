"""Distributions agree with JAX: values, dtypes and slopes in every argument."""

import functools

import jax
import jax.scipy.stats
import numpy as np
import pytest

import minijax
import minijax.scipy

NORMAL = [f"norm.{name}({args})" for name in ("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf")
          for args in ("f", "f, 1, 2", "v, f", "0.", "i, 1")]
QUANTILES = [f"{name}({args})" for name in ("norm.ppf", "norm.isf", "logistic.ppf",
                                            "logistic.isf", "cauchy.ppf", "cauchy.isf",
                                            "uniform.ppf") for args in ("g", "g, 1, 2")]
OTHERS = [f"{name}({args})" for name in (
    "uniform.logpdf", "uniform.pdf", "uniform.cdf", "expon.logpdf", "expon.pdf", "expon.cdf",
    "expon.sf", "expon.logsf", "laplace.logpdf", "laplace.pdf", "laplace.cdf", "logistic.logpdf",
    "logistic.pdf", "logistic.cdf", "logistic.sf", "cauchy.logpdf", "cauchy.pdf", "cauchy.cdf",
    "cauchy.sf") for args in ("f", "f, 0.5, 2", "i")]


TAILS = [f"{name}.{function}({args})" for function in ("cdf", "logcdf", "sf", "logsf")
         for name, args in (("gamma", "g, 2."), ("gamma", "g, v + 3, .1, 3."), ("chi2", "f, 3."),
                            ("pareto", "f, 2., .1, .2"), ("gumbel_l", "f, .1, 2."),
                            ("gumbel_r", "g"))]
SINCE = [*(f"{name}({args})" for name in ("gumbel_l.ppf", "gumbel_r.ppf", "expon.ppf")
           for args in ("g", "f, 1, 2")),
         *(f"{name}({args})" for name in ("gumbel_l.logpdf", "gumbel_r.pdf", "cauchy.logcdf",
                                          "cauchy.logsf", "expon.logcdf")
           for args in ("f", "g, .5, 2.")),
         "logistic.logpdf(jnp.array([-jnp.inf, jnp.inf, 99.]))",
         "pareto.logpdf(f, 2., .1, .2)", "pareto.pdf(f, 2.)", "pareto.ppf(g, 2.)",
         "gennorm.logpdf(f, 1.5)", "gennorm.pdf(g, g)", "gennorm.cdf(f, 1.5)",
         "wrapcauchy.logpdf(g, .3)", "wrapcauchy.pdf(f, 1.3)", "poisson.cdf(k, 2.5)",
         "poisson.cdf(f, g, 1)", "geom.logpmf(k, .3)", "geom.pmf(k, g, 1)",
         "nbinom.logpmf(k, 3, .3)", "nbinom.pmf(k, 2, g)", "betabinom.logpmf(k, 5, 2., 3.)",
         "betabinom.pmf(k, 5, -2., 3.)", "multinomial.logpmf(jnp.array([1, 1]), 2, g[:2, 0])",
         "multinomial.pmf(v[:2], 2, g[:2, 0])",
         "dirichlet.logpdf(v[:2], v[:2] + 1)", "dirichlet.pdf(g[:2, 0], v[:3] + 1)",
         "dirichlet.logpdf(g[:2], v[:3] + 1)", "dirichlet.pdf(jnp.array([[.2, .3], [.3, .1]]), "
         "jnp.arange(1, 4))"]


SINCE += [
    *(f"truncnorm.{name}({args})" for name in ("logpdf", "pdf", "logcdf", "cdf", "logsf", "sf")
      for args in ("f, -1, 2", "v, -2., v, .1, 2.", "f, -.5, jnp.inf", "f, 2., 2.1")),
    "truncnorm.cdf(h, -1, 1)", "truncnorm.logcdf(jnp.array([5., 6.]), 4.5, 9.)",
    "truncnorm.logpdf(jnp.array([-9., -7.]), -12., -6.)", "truncnorm.pdf(f, 2., 1.)",
    "vonmises.logpdf(f, g)", "vonmises.pdf(f, 2.)", "vonmises.pdf(1, -2)", "vonmises.logpdf(v, 0.)",
    "poisson.entropy(g)", "poisson.entropy(jnp.array([0., 5., 50., 99., -1.]), 1)",
    "poisson.entropy(w)", "poisson.entropy(2, f)", "poisson.entropy(jnp.float32([300., 1e5]))"]


@pytest.mark.parametrize("expression", [
    *NORMAL, *QUANTILES, *OTHERS, *TAILS, *SINCE, "poisson.logpmf(k, 2.5)", "poisson.pmf(f, g)",
    "poisson.logpmf(k, g, 1)", "gamma.logpdf(f, g)", "gamma.pdf(g, 2., 0.1, 3.)",
    "beta.cdf(g / 9, 2., 3.)", "beta.cdf(g, 2, 3, 0.2, 1.5)",
    "beta.logcdf(g / 9, 2., 3.)", "beta.sf(g / 9, 2., 3.)", "beta.logsf(g / 9, 2., 3., -1.)",
    "beta.logpdf(g, 2., 3.)", "beta.pdf(f, g, g[::-1])", "beta.logpdf(g, 2, 3, 0.2, 0.5)",
    "t.logpdf(f, 3.)", "t.pdf(g, v, 1., 2.)", "binom.logpmf(k, 3, 0.3)", "binom.pmf(k, 2, g)",
    "chi2.logpdf(f, 3.)", "chi2.pdf(g, v + 3, 0.1, 2.)", "uniform.ppf(v)",
    "bernoulli.logpmf(k, 0.3)", "bernoulli.logpmf(k, g)", "bernoulli.pmf(k, 0.3, 1)",
    "bernoulli.logpmf(f, g)",
    "bernoulli.cdf(f, g)", "bernoulli.ppf(g, g[::-1])", "bernoulli.cdf(k, v)",
    "multivariate_normal.logpdf(v, 0., 2.)", "multivariate_normal.logpdf(f, v, 2.)",
    "multivariate_normal.pdf(v[:2], g[:, 0], m @ m.T)", "multivariate_normal.logpdf(f, v, m)",
    "multivariate_normal.logpdf(t[..., :2], v[:2], m @ m.T)",
])
def test_values(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.stats." + expression, rtol=2e-5)


@pytest.mark.parametrize("name", [
    "norm.logpdf", "norm.cdf", "norm.logcdf", "norm.sf", "expon.logpdf", "expon.cdf",
    "laplace.logpdf", "laplace.cdf", "logistic.logpdf", "logistic.cdf", "cauchy.logpdf",
    "cauchy.cdf", "norm.ppf", "logistic.ppf", "cauchy.ppf"])
def test_slopes(name):
    family, function = name.split(".")
    x = np.float32([.6, .7, .8, .95])

    def slopes(top):
        f = getattr(getattr(top.scipy.stats, family), function)
        return top.vmap(top.grad(f, (0, 1, 2)), (0, None, None))
    args = (x, np.float32(.5), np.float32(1.5))
    wanted = jax.jit(slopes(jax))(*args)
    np.testing.assert_allclose(slopes(minijax)(*args), wanted, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(minijax.jit(slopes(minijax))(*args), wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("name", "args"), [
    ("truncnorm.logpdf", (.6, -1.2, 2.1, .3, 1.5)), ("truncnorm.logcdf", (.6, -1.2, 2.1, .3, 1.5)),
    ("truncnorm.logsf", (5., 4.5, 6., 0., 1.)), ("vonmises.logpdf", (.6, 2.))])
def test_slopes_in_every_argument(name, args, jax_says):
    def slopes(top):
        f = functools.reduce(getattr, name.split("."), top.scipy.stats)
        return top.grad(f, tuple(range(len(args))))(*args)
    np.testing.assert_allclose(slopes(minijax), jax_says(lambda: slopes(jax)), rtol=2e-4)


def test_the_slope_of_an_entropy():
    entropy = minijax.scipy.stats.poisson.entropy
    with minijax.enable_x64(True):
        for mu in (3., 80., 150.):
            difference = (entropy(mu + 1e-4) - entropy(mu - 1e-4)) / 2e-4
            np.testing.assert_allclose(minijax.grad(entropy)(mu), difference, 1e-6)
