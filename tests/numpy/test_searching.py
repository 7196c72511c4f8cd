"""Where things are, and how many, agrees with JAX."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp


@pytest.mark.parametrize("expression", [
    "jnp.where(b, f, 0)", "jnp.where(b, 1, 2)", "jnp.where(b, i, 2.5)", "jnp.where(True, f, 0)",
    "jnp.where(i, f, g)", "jnp.where(b[:, :1], v, f)", "jnp.where(b, v, 1j)", "jnp.where(b)",
    "jnp.where(b, size=2)", "jnp.where(b, size=5, fill_value=-1)",
    "jnp.where(f > 0, f, jnp.nan)", "jnp.where(b, h, 1)", "jnp.nonzero(f)",
    "jnp.nonzero(v, size=2)", "jnp.nonzero(f, size=8)",
    "jnp.nonzero(f, size=8, fill_value=(7, 9))", "jnp.nonzero(e)", "jnp.nonzero(f, size=0)",
    "jnp.flatnonzero(f)", "jnp.flatnonzero(f, size=3)", "jnp.argwhere(f)",
    "jnp.argwhere(b, size=4, fill_value=-1)", "jnp.bincount(jnp.array([1, 1, 3]))",
    "jnp.bincount(jnp.array([1, 1, 3]), weights=v)",
    "jnp.bincount(jnp.array([1, 1, 3]), weights=np.array([0.5, 1.0, 2.0]))",
    "jnp.bincount(jnp.array([1, 1, 3]), minlength=6)",
    "jnp.bincount(jnp.array([1, 1, 3]), length=2)", "jnp.bincount(w)", "jnp.digitize(f, v[::2])",
    "jnp.digitize(f, jnp.array([0.0, 1.0, 2.0]), right=True)",
    "jnp.digitize(v, jnp.array([2.0, 1.0, 0.0]))", "jnp.histogram(f)", "jnp.histogram(f, 3)",
    "jnp.histogram(g, 4, range=(0, 1))", "jnp.histogram(f, jnp.array([-2.0, 0.0, 3.0]))",
    "jnp.histogram(v, 3, weights=v)", "jnp.histogram(f, 3, density=True)",
    "jnp.histogram(jnp.ones(3), 2)", "jnp.histogram_bin_edges(f, 4)",
    "jnp.histogram(w, 2, weights=w)", "jnp.histogram(w, 2, weights=w > 0, density=True)",
    "jnp.histogram2d(w, w, 2, weights=w > 0)", "jnp.histogramdd(f, 2, weights=k[:2])[0]",
    "jnp.histogramdd(f, 2, density=True)", "jnp.histogramdd(i, 2, range=[None, (0, 1), None])",
    "jax.jit(lambda x: jnp.where(x > 1, x, 0).sum())(jnp.arange(4))",
    "jax.jit(lambda x: jnp.nonzero(x, size=2))(v)",
    "jax.vmap(lambda x: jnp.nonzero(x, size=2)[0])(f)",
    "jax.grad(lambda x: jnp.where(x > 0, x ** 2, 0).sum())(f)",
    "jax.grad(lambda x: jnp.where(x > 0, jnp.log(x), 0).sum())(f)",
    "jax.jit(lambda x: jnp.bincount(x, length=4))(k)",
])
def test_searching(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-05)


@pytest.mark.parametrize("expression", [
    "jnp.where(b, f)", "jnp.where([True], 1, 2)", "jnp.where(b, v, jnp.ones(4))",
    "jnp.nonzero(3)", "jnp.where(b, f, g, size=3)", "jnp.bincount(f)", "jnp.bincount(v)",
    "jax.jit(jnp.nonzero)(v)", "jax.jit(lambda x: jnp.where(x < 0))(v)",
    "jax.jit(jnp.bincount)(k)", "jnp.nonzero([1])", "jnp.histogram(f, weights=v)",
    "jnp.histogram(f, range=(1, 2, 3))", "jnp.histogramdd(f, weights=v)",
    "jnp.histogramdd(f, range=[(0, 1)])", "jnp.histogramdd(f, range=[(0, 1, 2)] * 3)",
])
def test_refusals(agrees_with_jax, expression):
    agrees_with_jax(expression)


def test_places_under_jit_are_refused_as_the_page_of_errors_says():
    import minijax
    import minijax.numpy as jnp

    with pytest.raises(minijax.errors.ConcretizationTypeError,
                       match=r"The error arose in jnp\.nonzero\."):
        minijax.jit(lambda x: jnp.where(x < 0))(jnp.arange(4))


@pytest.mark.parametrize("expression", [
    "jnp.take(v, 1)", "jnp.take(v, k)", "jnp.take(f, k, axis=1)",
    "jnp.take(f, jnp.array([[0, 1], [1, 0]]), axis=0)", "jnp.take(v, jnp.array([5, -1, -9]))",
    "jnp.take(w, jnp.array([5, -1]))", "jnp.take(u, 99)",
    "jnp.take(v, jnp.array([5, -9]), mode='clip')", "jnp.take(v, jnp.array([True, False]))",
    "jnp.take(v, jnp.array([True, False]), mode='clip')",
    "jax.jit(lambda i: jnp.take(v, i, mode='clip'))(jnp.array([True, False]))",
    "jnp.take(v, jnp.array([5, -9]), mode='wrap')", "jnp.take(v, 9, fill_value=7)",
    "jnp.take(b, 99)", "jnp.take(f, 2, axis=0)", "jnp.take_along_axis(f, jnp.argsort(f, 1), 1)",
    "jnp.take_along_axis(f, jnp.array([[2, 0]]), axis=1)",
    "jnp.take_along_axis(f, jnp.array([[1, 0, 1]]), axis=0)",
    "jnp.take_along_axis(f, jnp.array([[9], [-1]]), axis=1)",
    "jnp.take_along_axis(f, jnp.array([5, 0]), axis=None)",
    "jnp.take_along_axis(t, jnp.argmax(t, 1, keepdims=True), 1)",
    "jnp.take_along_axis(f, jnp.array([[9], [-1]]), axis=1, mode='clip')",
    "jnp.compress(b[0], v)", "jnp.compress(b[0], f, axis=1)", "jnp.extract(b, f)",
    "jax.jit(lambda x, i: jnp.take(x, i, axis=1))(f, k)",
    "jax.grad(lambda x: jnp.take(x, k).sum())(v)", "jax.vmap(jnp.take, (0, None))(f, k)",
    "jax.vmap(jnp.take)(f, jnp.array([0, 2]))",
    "jax.grad(lambda x: jnp.take_along_axis(x, jnp.array([[2, 2]]), 1).sum())(f)",
    "jax.vmap(lambda x, i: jnp.take_along_axis(x, i, 0))(f, jnp.array([[0, 2], [1, 1]]))",
    "jnp.take(f, v)", "jnp.take([1, 2], 0)", "jnp.take_along_axis(f, v, 0)",
    "jnp.take_along_axis(f, k, 0)", "jnp.take(f, 0, axis=5)",
    "jnp.take(jnp.zeros((0, 3)), jnp.zeros((2, 0), int), axis=0)",
    "jnp.take(jnp.zeros((2, 0)), jnp.zeros((0, 4), int), axis=1, mode='clip')",
    "jnp.take(jnp.zeros((2, 0)), jnp.zeros((0, 4), int), mode='wrap')",
    "jnp.take(jnp.zeros((2, 0)), jnp.zeros((3, 0), int), axis=0)",
    "jnp.take(jnp.zeros((2, 0)), jnp.zeros((3, 1), int), axis=1)",
])
def test_gathering(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("name", ["take", "take_along_axis"])
def test_a_list_of_places_is_refused_at_its_position(name):
    with pytest.raises(TypeError, match=f"{name} requires .* <class 'list'> at position 1"):
        getattr(jnp, name)(np.ones(2, np.float32), [0])


@pytest.mark.parametrize("expression", [
    "jnp.clip(f, 0, 2)", "jnp.clip(f, min=0)", "jnp.clip(f, max=v)", "jnp.clip(i, -1.5, 2.5)",
    "jnp.clip(f)", "jnp.clip(n, -1, 1)", "jnp.clip(2, 3, 4)",
    "jnp.select([f < 0, f > 2], [f, i], 7)", "jnp.select([b, ~b], [1, 2.5])",
    "jnp.select([b], [f])", "jnp.piecewise(f, [f < 0, f > 2], [lambda x: -x, 1])",
    "jnp.piecewise(f, [f < 0, f > 2], [lambda x: -x, 1, lambda x: x * 2])",
    "jnp.piecewise(f, [f < 9, f > 0], [-1, lambda x: x])",  # the last condition counts
    "jnp.piecewise(v, [v < 0], [5])", "jax.grad(lambda x: jnp.clip(x, 0, 2).sum())(f)",
    "jax.jit(lambda x: jnp.clip(x, 0, 1))(f)",
    "jax.jit(lambda x: jnp.piecewise(x, [x < 0], [0, lambda x: x]))(v)", "jnp.select([], [])",
    "jnp.select([b], [f, f])", "jnp.clip([1], 0)", "jnp.clip(c, 0, 1)",
    "jnp.piecewise(v, [v < 1], [lambda x: x.sum(), lambda x: x - x.max()])",  # of one element
    "jnp.piecewise(v, [v < 1], [lambda x, a, b: a.sum() * x + b, lambda x, a, b: b], f, b=s)",
    "jnp.piecewise(v, [[True, False, False], [0., 2., 0.]], [1, lambda x: x])",
    "jnp.histogram2d(v, v, [0., 1., 4.])", "jnp.histogram2d(v, v, 'auto')",
    "jnp.histogram2d(v, v, np.int32(2))",
    "jnp.piecewise(s, [True], [lambda x: x.ndim + x])", "jnp.piecewise(v, [b], [lambda x: x[0]])",
])
def test_selection(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jnp.where(e > 0, e, k)", "jnp.where(e > 0, 1, 2.5)", "jnp.where(True, e, 2.5)",
    "jnp.where(e > 0, e, c[0])", "jnp.where(b, e[:, None], s)",
])
def test_a_choice_of_nothing_is_jaxs(agrees_with_jax, expression):
    agrees_with_jax(expression)


def test_where_nothing_is_chosen_the_other_side_needs_no_derivative():
    def f(x):
        double = minijax.lax.while_loop(lambda y: y.sum() < 0, lambda y: y * 2, x)
        return jnp.where(x > 0, x, double).sum()
    np.testing.assert_array_equal(minijax.grad(f)(jnp.zeros((0, 3))), np.zeros((0, 3)))
    with pytest.raises(ValueError, match="while_loop"):
        minijax.grad(f)(jnp.ones(3))


@pytest.mark.parametrize("expression", [
    "jnp.extract(b[0], 2)", "jnp.extract(b[0], lax.full((3,), 2))", "jnp.extract(True, 1.5)",
    "jnp.compress(b[0], v[:2])", "jnp.compress(np.array([True, False, False]), v[:2])",
    "jnp.compress(b[0], v[:2], size=1)", "jnp.extract(jnp.ones(4), v)", "jnp.argwhere(s)",
    "jnp.clip(2)", "jnp.clip(np.int8(2))", "jnp.delete(v, True)", "jnp.delete(v, False)",
    "jnp.intersect1d(lax.full((2,), 2), 2)", "jnp.setxor1d(b, 2)", "jnp.setdiff1d(w, 2)",
    "jnp.i0(h)", "jnp.i0(c)",
])
def test_what_is_found_in_few_numbers_is_jaxs(agrees_with_jax, agrees_with_64_bits, expression):
    agrees_with_jax(expression)
    agrees_with_64_bits(expression)
