"""What samples say of themselves, and the densities estimated from them, are JAX's."""

import jax.scipy.stats  # noqa: F401
import pytest


@pytest.mark.parametrize("expression", [
    "mode(i)", "mode(i, None)", "mode(u, 1, keepdims=True)", "mode(x)", "mode(n, axis=1)",
    "mode(jnp.array([3, 1, 4, 1, 3]))", "mode(jnp.array([2., jnp.nan, jnp.nan, 2., jnp.nan]))",
    "mode(b, 1)", "mode(t, -2)", "mode(e)", "mode(e, 1)", "mode(s)", "mode(f, 2)", "mode(h)",
    "mode(f, nan_policy='omit')", "mode(f, nan_policy='raise')", "mode(f, nan_policy='none')",
    "mode(f, None, keepdims=True)",
])
def test_the_commonest_value(agrees_with_jax, expression):
    agrees_with_jax("tuple(jax.scipy.stats." + expression + ")")


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal", "other"])
@pytest.mark.parametrize("values", [
    "jnp.array([1, 3, 2, 3, 3, 1])", "t % 5, axis=1", "x", "u, axis=0", "t % 3"])
def test_ranks(agrees_with_jax, method, values):
    array, _, axis = values.partition(", ")
    agrees_with_jax(f"jax.scipy.stats.rankdata({array}, '{method}', {axis})")


@pytest.mark.parametrize("expression", [
    "rankdata(e)", "rankdata(s)", "rankdata(f, axis=3)", "rankdata(f, nan_policy='omit')",
    "rankdata(n, axis=1)", "rankdata(b, 'min')"])
def test_ranks_of_other_arrays(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.stats." + expression)


@pytest.mark.parametrize("expression", [
    "sem(f)", "sem(f, None)", "sem(f, 1, ddof=0, keepdims=True)", "sem(i)", "sem(n)",
    "sem(n, nan_policy='omit')", "sem(n, 1, nan_policy='omit', keepdims=True)", "sem(c)",
    "sem(f, nan_policy='raise')", "sem(f, 2)", "sem(h)",
    "sem(jnp.array([1., jnp.nan, 4.]), nan_policy='omit')"])
def test_how_exact_a_mean_is(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.stats." + expression, 1e-2 if "(h" in expression else 1e-5)


LINE, PLANE = "jnp.array([-1., 0., 2., 2.5])", "jnp.array([[1., 2., 0., 5.], [-1., 0., 2., 1.]])"
KDES = [f"({LINE})", f"({LINE}, 'silverman')", f"({LINE}, .5)", f"({LINE}, lambda k: k.n / 9)",
        f"({PLANE})", f"({LINE}, weights=jnp.array([1, 2, 3, 4]))",
        f"({PLANE}, 'scott', jnp.array([1., 2., .5, 4.]))", "(i)"]


@pytest.mark.parametrize("made", KDES)
def test_densities(agrees_with_jax, made):
    points = "jnp.array([[0., 1., 3.], [1., .5, 0.]])" if "[[" in made or made == "(i)" else (
        "jnp.array([0., 1., 3.])")
    agrees_with_jax(f"(lambda k: [k(p) for k in [k] for p in [{points}]] + [k.pdf({points}), "
                    f"k.logpdf({points}), k.neff, k.covariance, k.inv_cov, k.n, k.d])("
                    f"jax.scipy.stats.gaussian_kde{made})", 1e-4)


@pytest.mark.parametrize("expression", [
    "integrate_gaussian(0., 1.)", "integrate_gaussian(jnp.zeros(2), 1.)",
    "integrate_gaussian(0., jnp.eye(2))", "integrate_kde(k)", "integrate_box_1d(-1., 2.)",
    "integrate_kde(jax.scipy.stats.gaussian_kde(g))", "integrate_box_1d(v, 2.)",
    "integrate_box(0., 1.)", "set_bandwidth(2.)", "logpdf(f)", "resample(jax.random.key(0), (5,))",
    "evaluate(c)", "__repr__().partition('(')[0]"])
def test_what_is_asked_of_them(agrees_with_jax, expression):
    agrees_with_jax(f"(lambda k: k.{expression})(jax.scipy.stats.gaussian_kde({LINE}))", 1e-4)


@pytest.mark.parametrize("expression", [
    "(v[:1])", "(c)", "(v, 'other')", "(v, weights=v[:2])", "(v, weights=f)"])
def test_what_is_refused(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.stats.gaussian_kde" + expression)


def test_they_are_trees_that_do_not_change(agrees_with_jax):
    agrees_with_jax(f"jax.jit(lambda k, p: k(p))(jax.scipy.stats.gaussian_kde({LINE}), v)", 1e-5)
    agrees_with_jax(f"setattr(jax.scipy.stats.gaussian_kde({LINE}), 'neff', 3)")
    agrees_with_jax(f"jax.grad(lambda x: jax.scipy.stats.gaussian_kde(x).logpdf(v).sum())({LINE})",
                    1e-3)
