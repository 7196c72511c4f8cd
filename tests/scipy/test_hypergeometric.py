"""Functions of series and recurrences agree with SciPy, and with JAX where that has digits."""

import jax
import jax.scipy.special
import numpy as np
import pytest
import scipy.special

import minijax
import minijax.scipy

RANDOM = np.random.default_rng(0)


def parameters(*limits):
    return [RANDOM.uniform(low, high, 500) for low, high in limits]


@pytest.mark.parametrize(("name", "exact", "args"), [
    ("hyp1f1", 2e-13, parameters((.1, 10), (.1, 10), (0, 60))),
    ("hyp1f1", 2e-13, parameters((.1, 5), (5.1, 10), (-1000, 0))),
    ("hyp2f1", 2e-13, parameters((.1, 5), (.1, 5), (.1, 8), (0, 1))),
    ("hyp2f1", 1e-10, parameters((.1, 2), (.1, 2), (2.5, 8), (-30, 0)))])  # SciPy's own error
def test_values_are_those_of_scipy(name, exact, args):
    with minijax.enable_x64(True):
        for dtype, rtol in ((float, exact), (np.float32, 3e-5)):
            given = [x.astype(dtype) for x in args]
            wanted = getattr(scipy.special, name)(*(x.astype(float) for x in given))
            np.testing.assert_allclose(getattr(minijax.scipy.special, name)(*given), wanted, rtol)


def test_whole_parameters_and_all_places_near_one():
    a, b, c = RANDOM.integers(1, 5, (3, 300)).astype(float)
    x = 1 - 10 ** RANDOM.uniform(-9, -.5, 300)
    with minijax.enable_x64(True):
        found = minijax.scipy.special.hyp2f1(a, b, c, x)
    np.testing.assert_allclose(found, scipy.special.hyp2f1(a, b, c, x), 1e-13)


@pytest.mark.parametrize("expression", [
    "hyp1f1(1, 2, 3)", "hyp1f1(jnp.array([0., 1., -2.]), jnp.array([0., 0., -3.]), 3.)",
    "hyp1f1(1., 2., jnp.nan)", "hyp1f1(1., 1., 1j)", "hyp2f1(1, 2, 3, 0)",
    "hyp2f1(1., 2., jnp.array([3., 3., 4., 3., -3.]), jnp.array([.5, 1., 1., 1.5, .7]))",
])
def test_calls(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.special." + expression, rtol=3e-6)


def test_series_that_end_and_places_below_minus_one():
    special = minijax.scipy.special
    for args in ((-2., 2., 3., 7.), (-1., 2., -3., .7), (1., 2., 3., -7.), (.5, .5, 1.5, -1e6)):
        np.testing.assert_allclose(special.hyp2f1(*args), scipy.special.hyp2f1(*args), 1e-6)
    assert np.isnan(special.hyp2f1(1., 2., 3., np.nan)) and special.hyp2f1(1., 2., 3., -np.inf) == 0


@pytest.mark.parametrize(("name", "args"), [
    ("hyp1f1", [.7, 1.3, 2.1]), ("hyp2f1", [.7, 1.2, 2.1, .4])])
def test_derivatives_by_every_argument(name, args):
    found = minijax.grad(getattr(minijax.scipy.special, name), tuple(range(len(args))))(*args)
    near, truth = 1e-5 * np.eye(len(args)), getattr(scipy.special, name)
    differences = [(truth(*(args + h)) - truth(*(args - h))) / 2e-5 for h in near]
    np.testing.assert_allclose(found, differences, 2e-6)


def test_derivatives_by_the_last_argument_go_on():
    for name, a in (("hyp1f1", np.array([.7, 1.3])), ("hyp2f1", np.array([.7, 1.2, 2.1]))):
        function, last = getattr(minijax.scipy.special, name), a.size
        second = minijax.grad(minijax.grad(function, last), last)(*a, .4)
        rise = a * (a + 1)
        wanted = np.prod(rise[:-1]) / rise[-1] * getattr(scipy.special, name)(*a + 2, .4)
        np.testing.assert_allclose(second, wanted, 3e-6)


def test_bessel_functions_of_whole_order():
    x = np.linspace(-20, 20, 401)
    wanted = np.array([scipy.special.jv(k, x) for k in range(6)])
    np.testing.assert_allclose(minijax.scipy.special.bessel_jn(x, v=5), wanted, 0, 3e-7)
    with minijax.enable_x64(True):
        np.testing.assert_allclose(minijax.scipy.special.bessel_jn(x, v=5), wanted, 0, 3e-15)
        slopes = minijax.jacfwd(lambda z: minijax.scipy.special.bessel_jn(z, v=2))(1.3)
        np.testing.assert_allclose(slopes, [scipy.special.jvp(k, 1.3) for k in range(3)], 1e-13)
    assert minijax.scipy.special.bessel_jn(np.zeros((3, 2), "f"), v=1).tolist() == [
        [[1, 1]] * 3, [[0, 0]] * 3]


@pytest.mark.parametrize("expression", [
    "bessel_jn(2., v=2).shape", "bessel_jn(h, v=2).dtype", "bessel_jn([1., 2.], v=1).dtype",
    "bessel_jn(2., v=1.5)", "bessel_jn(2., v=-1)", "sph_harm_y(k, 0 * k, v % 3, v)",
    "sph_harm_y(k, -k, v % 3, v)", "sph_harm_y(k, k % 2, v % 3, v, n_max=1)",
    "sph_harm_y(k, k, v % 3, .4)", "sph_harm_y(k, k, v, v, diff_n=1)",
    "sph_harm_y(k[:1], k[:1], .3, .4)", "jax.jit(sph_harm_y)(k, k, v, v)",
    "jax.jit(sph_harm_y, static_argnums=(4, 5))(k, k, v % 3, v, None, 2)",
])
def test_recurrences(agrees_with_jax, expression):
    agrees_with_jax(expression.replace("bessel_jn", "jax.scipy.special.bessel_jn").replace(
        "sph_harm_y", "jax.scipy.special.sph_harm_y"), rtol=2e-5)


def test_spherical_harmonics():
    n, m = (x.ravel() for x in np.meshgrid(np.arange(12), np.arange(-11, 12)))
    n, m = n[abs(m) <= n], m[abs(m) <= n]
    theta, phi = RANDOM.uniform(0, 3, (2, n.size))
    with minijax.enable_x64(True):
        np.testing.assert_allclose(minijax.scipy.special.sph_harm_y(n, m, theta, phi),
                                   scipy.special.sph_harm_y(n, m, theta, phi), 0, 3e-14)

    def slope(top):
        return top.jacrev(lambda t: top.scipy.special.sph_harm_y(
            np.array([3]), np.array([2]), t, np.float32([.4])).real)(top.numpy.array([.5]))
    np.testing.assert_allclose(slope(minijax), slope(jax), 1e-5)


@pytest.mark.filterwarnings("ignore:jax.scipy.special.lpmn_values is deprecated")
@pytest.mark.parametrize("is_normalized", [True, False])
def test_legendre_functions_of_all_orders_and_degrees(is_normalized):
    z = np.linspace(-0.95, 0.9, 5).astype(np.float32)

    def found(lib, special):
        def total(z):
            return lib.numpy.sin(special.lpmn_values(4, 4, z, is_normalized)).sum()
        yield special.lpmn_values(6, 6, z, is_normalized)
        yield special.lpmn_values(0, 0, z, is_normalized)
        yield lib.jit(lib.grad(total))(z)
    for mine, theirs in zip(found(minijax, minijax.scipy.special),
                            found(jax, jax.scipy.special), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, 2e-5, 2e-5)
    for m, n, x in [(2, 3, z), (2, 2, z[None]), (2, 2, z.astype(int))]:
        said = []
        for special in (minijax.scipy.special, jax.scipy.special):
            with pytest.raises((TypeError, ValueError, NotImplementedError)) as error:
                special.lpmn_values(m, n, x, is_normalized)
            said.append((error.type, str(error.value)))
        assert said[0] == said[1]
