"""Derivatives along curves are JAX's, and what JAX has no rule for is what it stands for."""

from types import SimpleNamespace

import jax
import jax.experimental.jet
import numpy as np
import pytest

import minijax
import minijax.experimental.jet
import minijax.scipy

theirs = SimpleNamespace(jet=jax.experimental.jet.jet, jax=jax, jnp=jax.numpy, lax=jax.lax)
ours = SimpleNamespace(jet=minijax.experimental.jet.jet, jax=minijax, jnp=minijax.numpy,
                       lax=minijax.lax)
X = np.float32([.3, .7, 1.4])
SERIES = [np.float32(row) for row in (
    [1., .5, -.3], [.2, -1., .4], [.5, .1, .9], [-.5, .2, .3])]
FUNCTIONS = [
    "x * x * x", "1 / (1 + x * x)", "jnp.exp(x)", "jnp.sin(x) * jnp.cos(x)", "jnp.tanh(x)",
    "jnp.log(x)", "jnp.sqrt(x)", "x ** x", "x ** 5", "jnp.maximum(x, .5 * x * x + .3)",
    "jnp.minimum(x, .5 * x / x)", "jnp.max(x * x)", "jnp.cumsum(jnp.sin(x))", "jnp.cumprod(x)",
    "jnp.outer(x, x) @ jnp.exp(x)", "jax.nn.logsumexp(x)", "jax.nn.sigmoid(x)",
    "jax.jit(lambda y: jnp.sin(y) * x)(x * x)", "jnp.arctan2(x, 1 + x)", "jax.lax.erf(x)",
    "jnp.where(x > .5, x ** 2, jnp.exp(x))", "abs(x - .5)", "jnp.floor(x) * x", "x[1] * x[::-1]",
    "jax.nn.gelu(x)", "{'a': x * 2, 'b': [jnp.sum(x)]}", "jnp.ones(3)", "x > 1", "3 * x - 2",
    "jnp.convolve(x, x)", "jax.lax.stop_gradient(x) * x", "jnp.linalg.norm(x)", "jnp.sinh(x)",
]


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_derivatives(function, scaled):
    def found(m):
        f = eval("lambda x: " + function, vars(m))
        return m.jax.tree.leaves(m.jet(f, (X,), (SERIES,), factorial_scaled=scaled))
    for mine, other in zip(found(ours), found(theirs), strict=True):
        np.testing.assert_allclose(mine, other, rtol=3e-4, atol=3e-4)
        assert mine.dtype == other.dtype or other.dtype == bool


def steps(x):
    c = x
    for _ in range(3):
        c = jax.numpy.sin(c) * x
    return c


LOOPS = {
    "scan": lambda x: ours.lax.scan(
        lambda c, _: (ours.jnp.sin(c) * x, None), x, None, length=3)[0],
    "while_loop": lambda x: ours.lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, ours.jnp.sin(s[1]) * x), (0, x))[1],
    "cond": lambda x: ours.lax.cond(x[0] > 0, ours.jax.jit(LOOPS["scan"]), lambda x: x, x),
    "checkpoint": lambda x: ours.jax.checkpoint(LOOPS["scan"])(x),
}


@pytest.mark.parametrize("name", LOOPS)
def test_programs_inside(name):
    _, mine = ours.jet(LOOPS[name], (X,), (SERIES,))
    _, other = theirs.jet(steps, (X,), (SERIES,))
    np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-3)


def test_what_jax_has_no_rule_for():
    _, [first, second] = ours.jet(ours.jnp.sort, (X[::-1],), (SERIES[:2],))
    np.testing.assert_array_equal(first, SERIES[0][::-1])
    np.testing.assert_array_equal(second, SERIES[1][::-1])


def test_a_function_with_a_derivative_of_its_own():
    _, derivatives = ours.jet(ours.jax.nn.relu, (X - .5,), (SERIES,))  # JAX's jet stops there
    np.testing.assert_array_equal(derivatives, np.where(X > .5, SERIES, 0))


def test_a_function_with_a_reverse_derivative_of_its_own():
    @ours.jax.custom_vjp
    def cube(x):
        return x * x * x
    cube.defvjp(lambda x: (cube(x), x), lambda x, ct: (np.nan * ct,))

    def closing_over(x):  # a traced value, which JAX refuses
        one = ours.jax.custom_vjp(lambda y: x * y * y)
        one.defvjp(lambda y: (one(y), y), lambda y, ct: (np.nan * ct,))
        return one(x)
    for f in (cube, ours.jax.jit(cube), closing_over):
        assert [float(t) for t in ours.jet(f, (2.,), ((1., 0., 0.),))[1]] == [12, 12, 6]


def test_several_arguments():
    def found(m):
        return m.jet(lambda x, y: m.jnp.sin(x) / y, (X, X + 1), (SERIES, SERIES[::-1]))[1]
    np.testing.assert_allclose(found(ours), found(theirs), rtol=1e-3, atol=1e-3)


def test_it_nests_with_the_other_transformations():
    def third(x):
        return ours.jet(ours.jnp.sin, (x,), ((1., 0., 0.),))[1][2]
    np.testing.assert_allclose(ours.jax.vmap(third)(X), -np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(ours.jax.jit(third)(.5), -np.cos(.5), rtol=1e-6)
    np.testing.assert_allclose(ours.jax.grad(third)(.5), np.sin(.5), rtol=1e-6)
    np.testing.assert_allclose(
        ours.jet(third, (.5,), ((1., 0.),))[1], [np.sin(.5), np.cos(.5)], rtol=1e-6)


def test_many_orders_take_no_time_that_doubles():
    calls = []

    def counted(x):
        calls.append(1)
        return ours.jnp.tanh(ours.jnp.sin(x) * x) / x
    _, found = ours.jet(counted, (.5,), ([1.] + [0.] * 14,), factorial_scaled=False)
    assert len(calls) == 1 and len(found) == 15 and np.isfinite(found).all()


def test_refused():
    jet, sin = ours.jet, ours.jnp.sin
    with pytest.raises(ValueError, match="jet terms have inconsistent lengths"):
        jet(lambda x, y: x, (1., 2.), ((1.,), (1., 2.)))
    with pytest.raises(ValueError, match="primal value at position 0 is not an array"):
        jet(sin, ((1.,),), ((1.,),))
    with pytest.raises(ValueError, match="term 1 for argument 0 is not an array"):
        jet(sin, (1.,), ((1., (0.,)),))
    with pytest.raises(TypeError, match="jet requires floating-point"):
        jet(sin, (1,), ((1,),))
    with pytest.raises(ValueError, match="they must be equal"):
        jet(sin, (X,), ((1.,),))
    with pytest.raises(ValueError, match="Pure callbacks do not support JVP"):
        jet(lambda x: ours.jax.pure_callback(np.sin, x, x), (X,), (SERIES,))


@pytest.mark.parametrize("terms", [(1., 0.), (np.float32(1), 0.)])
def test_derivatives_of_numbers_are_weak_as_the_terms_are(terms):
    mine, other = ([x.weak_type for x in m.jet(m.jnp.sin, (.3,), (terms,))[1]]
                   for m in (ours, theirs))
    assert mine == other
