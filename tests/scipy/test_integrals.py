"""Functions that are integrals agree with SciPy to the last digits, and with JAX at their ends."""

import jax
import jax.scipy.special
import numpy as np
import pytest
import scipy.special

import minijax
import minijax.scipy

BOTH = np.concatenate([np.linspace(-25, 25, 1001), 10 ** np.linspace(-12, 6, 300)])
ABOVE = np.concatenate([np.linspace(.01, 80, 1001), 10 ** np.linspace(-12, 1.9, 300)])
ROUND = np.random.default_rng(0)
UPPER = 10 ** ROUND.uniform(-3, 3, 999) * np.exp(1j * ROUND.uniform(0, np.pi, 999))
NORMAL = ROUND.normal(size=(2, 999)) * 2
ORDERS, PLACES = (x.ravel() for x in np.meshgrid([0., 1, 2, 5, 50, 6000], ABOVE[::9]))


@pytest.mark.parametrize(("name", "args", "absolute"), [
    ("wofz", [UPPER], 0), ("wofz", [-UPPER[np.abs(UPPER) < 4]], 0), ("erfcx", [BOTH[BOTH > -9]], 0),
    ("dawsn", [BOTH], 0), ("fresnel", [BOTH[np.abs(BOTH) < 30]], 0), ("expi", [-ABOVE], 0),
    ("expi", [ABOVE], 1e-16), ("exp1", [ABOVE], 0), ("expn", [ORDERS, PLACES], 0),
    ("sici", [np.minimum(np.abs(BOTH), 1e4)], 1e-16), ("spence", [np.abs(BOTH)], 0),
    ("owens_t", list(NORMAL), 1e-18)])
def test_values_are_those_of_scipy(name, args, absolute):
    with minijax.enable_x64(True):
        for short, rtol in ((False, 3e-14), (True, 4e-6)):
            given = [x.astype(np.result_type(x, np.float32) if not short else (
                "complex64" if x.dtype.kind == "c" else "float32")) for x in args]
            found = getattr(minijax.scipy.special, name)(*given)
            wanted = getattr(scipy.special, name)(*(x.astype(y.dtype) for x, y in zip(
                given, args, strict=True)))
            for x, y in zip(np.atleast_2d(found), np.atleast_2d(wanted), strict=True):
                np.testing.assert_allclose(x, y, rtol, 4e-7 if short else absolute)


@pytest.mark.parametrize("expression", [
    "wofz(2)", "wofz(h)", "wofz([1])", "erfcx(f)", "erfcx(h)", "erfcx(1j)",
    "erfcx(jnp.array([-30., jnp.inf, jnp.nan]))", "dawsn(2)", "dawsn(h)", "dawsn(1j)",
    "dawsn([1.])", "dawsn(jnp.array([jnp.inf, jnp.nan]))", "fresnel(2)", "fresnel(h)",
    "fresnel(jnp.array([-jnp.inf, jnp.nan]))", "expi(2)", "expi(1j)", "expi([1])",
    "expi(jnp.array([50., 200.]))", "exp1(2)", "exp1(1j)", "expn(k, 0.5)", "expn(1.5, 0.5)",
    "expn(-1, 2.)", "expn(0, 0.)", "expn(1, 0.)", "expn(2, -1.)", "expn(1, 1j)", "sici(2)",
    "sici(1j)", "sici(jnp.array([0., -3., jnp.inf, -jnp.inf, jnp.nan]))", "spence(2)",
    "spence(jnp.array([0., 1., -1., jnp.nan]))", "spence(h)", "spence([1., 2.])",
    "owens_t(1, 2)", "owens_t(jnp.array([1., jnp.nan]), -jnp.inf)",
])
def test_calls(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.special." + expression, rtol=2e-2 if "(h)" in expression else 5e-6)


@pytest.mark.parametrize(("name", "args"), [
    ("erfcx", [.7]), ("dawsn", [.7]), ("fresnel", [.7]), ("expi", [.7]), ("exp1", [.7]),
    ("sici", [.7]), ("spence", [.7]), ("owens_t", [.7, .4])])
def test_derivatives(name, args, beside_jax):
    def slopes(top):
        return top.jacrev(getattr(top.scipy.special, name), tuple(range(len(args))))(*args)
    found, wanted = beside_jax(lambda top: jax.tree.leaves(slopes(top)))
    np.testing.assert_allclose(found, wanted, 2e-6)


def test_a_derivative_of_an_exponential_integral_is_the_one_of_lower_order():
    for n in range(4):
        found = minijax.grad(minijax.grad(minijax.scipy.special.expn, 1), 1)(n, .7)
        with minijax.enable_x64(True):
            wanted = minijax.scipy.special.expn(n - 2, .7)
        np.testing.assert_allclose(found, wanted, 3e-6)


def test_the_derivative_of_the_faddeeva_function(beside_jax):
    for z in (.7 + .2j, .7 - .2j):
        found, wanted = beside_jax(
            lambda top: top.grad(top.scipy.special.wofz, holomorphic=True)(z))
        np.testing.assert_allclose(found, wanted, 1e-6)


def test_ends_where_jax_has_another_value():
    special = minijax.scipy.special
    assert float(special.exp1(np.float32(np.inf))) == float(special.expn(2, np.inf)) == 0
    assert float(special.expi(0.)) == -np.inf and float(special.expi(np.inf)) == np.inf
    assert float(special.owens_t(0., np.inf)) == .25 and float(special.expn(2, 0.)) == 1
    assert float(minijax.grad(special.spence)(1.)) == -1
