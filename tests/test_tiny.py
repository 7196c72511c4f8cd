"""The first test to run, in seconds: one program for each transformation and kind of operation.

NumPy, formulas and published words of JAX's say what is right; other files test the rest.
"""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def both_ways(f, *args):
    """The result of a function, evaluated and compiled, which must be one."""
    eager, compiled = f(*args), jax.jit(f)(*args)
    np.testing.assert_allclose(eager, compiled, rtol=1e-6, atol=1e-7)
    return np.asarray(compiled)


OPERATIONS = {
    "elementwise": (lambda np, x: np.exp(np.sin(x)) + x / (1 + x * x)),
    "reduction": (lambda np, x: np.sum(x * x, 0) - np.max(x, 0)),
    "cumulation": (lambda np, x: np.cumsum(x, 1)),
    "product": (lambda np, x: x @ x.T),
    "shape": (lambda np, x: np.concatenate([x.T.reshape(3, 4)[::-1], x[:, 1:3]], 1)),
    "sort": (lambda np, x: np.sort(np.abs(x - 1), 1)),
    "index": (lambda np, x: x[np.array([2, 0]), 1:]),
    "select": (lambda np, x: np.where(x > 0, x, -2 * x)),
    "linear algebra": (lambda np, x: np.linalg.inv(x @ x.T + np.eye(3, dtype="float32"))),
    "transform": (lambda np, x: np.fft.rfft(x).real),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_those_of_numpy(name):
    f = OPERATIONS[name]
    np.testing.assert_allclose(both_ways(lambda x: f(jnp, x), X), f(np, X), rtol=1e-5, atol=1e-5)


def f(x):
    return jnp.sum(jnp.tanh(x) * x ** 2)


def test_reverse_mode_is_the_difference_quotient():
    gradient = both_ways(jax.grad(f), X)
    with jax.enable_x64(True):
        x, step = X.astype(np.float64), 1e-6
        for place in np.ndindex(X.shape):
            shift = step * (np.arange(X.size).reshape(X.shape) == np.ravel_multi_index(
                place, X.shape))
            quotient = (float(f(x + shift)) - float(f(x - shift))) / (2 * step)
            assert gradient[place] == pytest.approx(quotient, rel=1e-4, abs=1e-4)


def test_forward_mode_agrees_with_reverse_mode():
    direction = np.arange(12, dtype=np.float32).reshape(X.shape)
    _, tangent = jax.jvp(f, (X,), (direction,))
    assert float(tangent) == pytest.approx(float(jnp.vdot(jax.grad(f)(X), direction)), rel=1e-5)


def test_a_hessian_is_symmetric_and_second_derivatives_are_right():
    hessian = both_ways(jax.hessian(lambda x: jnp.sum(jnp.sin(x)) + x[0] * x[1]), X[0])
    expected = np.diag(-np.sin(X[0]))
    expected[0, 1] = expected[1, 0] = 1
    np.testing.assert_allclose(hessian, expected, atol=1e-6)


def test_vmap_is_a_loop():
    def g(x, y):
        return jnp.dot(x, y) + jnp.max(x)
    np.testing.assert_allclose(both_ways(jax.vmap(g, (0, None)), X, X[0]),
                               [X[i] @ X[0] + X[i].max() for i in range(3)], rtol=1e-6)


def test_loops_run_carry_and_have_derivatives():
    def power(x):
        return lax.scan(lambda c, _: (c * x, c), 1.0, None, length=5)
    last, rows = jax.jit(power)(2.0)
    assert (float(last), rows.tolist()) == (32, [1, 2, 4, 8, 16])
    assert float(jax.grad(lambda x: power(x)[0])(2.0)) == 5 * 2 ** 4
    assert int(lax.while_loop(lambda n: n < 50, lambda n: n * 3, 1)) == 81
    assert int(lax.fori_loop(0, 10, lambda i, s: s + i, 0)) == 45


def test_a_branch_is_chosen_when_the_program_runs():
    g = jax.jit(lambda x: lax.cond(x > 0, jnp.sqrt, jnp.negative, x))
    assert (float(g(9.0)), float(g(-4.0))) == (3, 4)


def test_random_bits_are_those_of_jax():
    key = jax.random.key(0)
    assert jax.random.key_data(jax.random.split(key)).tolist() == [
        [4146024105, 967050713], [2718843009, 1272950319]]
    assert float(jax.random.uniform(key)) == pytest.approx(0.41845703, abs=1e-7)


def test_updates_are_copies():
    x = jnp.zeros(4)
    y = x.at[jnp.array([1, 1])].add(1.0).at[-1].set(7)
    assert (x.tolist(), y.tolist()) == ([0, 0, 0, 0], [0, 2, 0, 7])


def test_trees_go_through_transformations():
    gradient = jax.grad(lambda p: p["w"] * p["b"][0])({"w": 2.0, "b": (3.0, None)})
    assert jax.tree.map(float, gradient) == {"w": 3, "b": (2, None)}


def test_a_rule_of_the_users_own_is_used():
    @jax.custom_jvp
    def h(x):
        return jnp.abs(x)
    h.defjvp(lambda primals, tangents: (h(*primals), 10 * tangents[0]))
    assert float(jax.jit(jax.grad(h))(0.0)) == 10


def test_a_program_prints_as_in_jax():
    assert str(jax.make_jaxpr(lambda x: x * 2.0 + 1.0)(3.0)).splitlines() == [
        "{ lambda ; a:f32[]. let", "    b:f32[] = mul a 2.0:f32[]", "    c:f32[] = add b 1.0:f32[]",
        "  in (c,) }"]


def test_a_mistake_is_an_error_of_jaxs_class_and_the_library_works_on():
    with pytest.raises(jax.errors.TracerBoolConversionError, match="traced array with shape"):
        jax.jit(lambda x: x if x > 0 else -x)(1.0)
    with pytest.raises(TypeError, match="mutable"):
        jnp.zeros(3)[0] = 1
    assert float(jax.jit(jnp.negative)(1.0)) == -1
