"""Scan hoisting: products of inputs, of outputs, and sums of products leave the loop."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core.jaxpr import subjaxprs
from minijax.compiler import scan_hoisting

STEPS, SIZE = 5, 12


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


H, W, XS = numbers(SIZE), numbers(SIZE, SIZE) / 4, numbers(STEPS, SIZE)


def outside_and_inside(f, *args):
    """The primitives of a simplified program, and those in the body of its loop."""
    closed = jax.jit(f).lower(*args)._lowered.simplified
    body = [eqn.primitive.name for loop in closed.eqns for inner in subjaxprs(loop.params)
            for eqn in inner.eqns]
    return [eqn.primitive.name for eqn in closed.eqns], body


def check(f, *args):
    """What is compiled gives what Python gives."""
    with jax.disable_jit():
        wanted = f(*args)
    for x, y in zip(jax.tree.leaves(jax.jit(f)(*args)), jax.tree.leaves(wanted), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-5)


def rnn(h, w, u, xs, reverse=False):
    def step(h, x):
        h = jnp.tanh(w @ h + u @ x)
        return h, h
    return lax.scan(step, h, xs, reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_product_of_rows_is_one_before_the_loop(reverse):
    def f(h, w, u, xs):
        return rnn(h, w, u, xs, reverse)
    assert outside_and_inside(f, H, W, W.T, XS) == (["dot_general", "scan"],
                                                    ["dot_general", "add", "tanh"])
    check(f, H, W, W.T, XS)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_product_of_results_is_one_after_the_loop(reverse):
    def f(h, w, xs):
        def step(h, x):
            h = jnp.tanh(h * x)
            return h, (w @ h + 1, x, h)
        return lax.scan(step, h, xs, reverse=reverse)
    outside, inside = outside_and_inside(f, H, W, XS)
    assert "dot_general" in outside and "dot_general" not in inside
    check(f, H, W, XS)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_sum_of_products_is_one_product_after_the_loop(reverse):
    def f(start, h, xs):
        def step(state, x):
            total, h = state
            h = jnp.tanh(h * x)
            return (total + jnp.tensordot(h, x, 0), h), None
        return lax.scan(step, (start, h), xs, reverse=reverse)[0]
    outside, inside = outside_and_inside(f, W, H, XS)
    assert "dot_general" in outside and "dot_general" not in inside
    check(f, W, H, XS)


def test_the_gradient_of_a_recurrent_network_has_one_product_a_step_and_matrix():
    def loss(w, u):
        return jnp.sum(rnn(H, w, u, XS)[1] ** 2)
    outside, inside = outside_and_inside(jax.grad(loss, (0, 1)), W, W.T)
    assert inside.count("dot_general") == 2 and outside.count("dot_general") == 3
    check(jax.grad(loss, (0, 1)), W, W.T)


def test_a_loop_of_which_nothing_stays_disappears():
    def f(w, xs):
        return lax.map(lambda x: jnp.sin(w @ x), xs)
    outside, inside = outside_and_inside(f, W, XS)
    assert "scan" not in outside and not inside
    check(f, W, XS)


def test_a_sum_that_is_read_meanwhile_stays():
    def f(start, xs):
        def step(total, x):
            return total + jnp.tensordot(x, jnp.sin(total[0]), 0), total[0, 0]
        return lax.scan(step, start, xs)
    assert "dot_general" in outside_and_inside(f, W, XS)[1]
    check(f, W, XS)


def test_a_product_that_the_next_state_needs_stays():
    def f(h, w, xs):
        def step(h, x):
            y = w @ h
            return jnp.tanh(y + x), y
        return lax.scan(step, h, xs)
    assert "dot_general" in outside_and_inside(f, H, W, XS)[1]
    check(f, H, W, XS)


def test_a_product_of_constants_is_computed_once():
    def f(h, w, xs):
        def step(h, x):
            return jnp.tanh((w @ w) @ h + x), None
        return lax.scan(step, h, xs)[0]
    assert outside_and_inside(f, H, W, XS)[1].count("dot_general") == 1
    check(f, H, W, XS)


def test_one_product_may_feed_what_comes_before_and_after():
    def f(h, w, xs):
        def step(h, x):
            y = w @ x
            h = jnp.tanh(h + y)
            return h, (w @ h + y, w @ y, 1.0)
        return lax.scan(step, h, xs)
    assert "dot_general" not in outside_and_inside(f, H, W, XS)[1]
    check(f, H, W, XS)


def test_what_would_need_too_much_memory_stays(monkeypatch):
    monkeypatch.setattr(scan_hoisting, "MAX_BYTES", 4 * SIZE * STEPS - 1)
    assert outside_and_inside(lambda h, w, u, xs: rnn(h, w, u, xs), H, W, W.T, XS)[0] == ["scan"]


def test_large_batches_stay_in_the_cache():
    xs = numbers(STEPS, 256, SIZE)
    assert outside_and_inside(lambda h, w, u, xs: lax.scan(
        lambda h, x: (jnp.tanh(h @ w + x @ u), h), h, xs), xs[0], W, W, xs)[0] == ["scan"]


def test_rounding_in_each_step_stays():
    def f(start, xs):
        return lax.scan(lambda total, x: (total + jnp.tensordot(x, x, 0), None), start, xs)[0]
    args = W.astype("bfloat16"), XS.astype("bfloat16")
    assert outside_and_inside(f, *args)[0] == ["scan"]


def test_what_python_sees_in_each_step_stays(capsys):
    def f(w, xs):
        def step(_, x):
            jax.debug.print("{}", (w @ x)[0] > 0)
            return None, None
        lax.scan(step, None, xs)
        return xs
    assert "dot_general" not in outside_and_inside(f, W, XS)[1]  # one before prints the same
    jax.jit(f)(W, XS)
    assert len(capsys.readouterr().out.split()) == STEPS


def test_under_vmap_and_twice_derived():
    def loss(h, w, u):
        return jnp.sum(jnp.sin(rnn(h, w, u, XS)[1]))
    batch = numbers(3, SIZE)
    check(jax.vmap(jax.grad(loss, 1), (0, None, None)), batch, W, W.T)
    check(jax.hessian(lambda h: loss(h, W, W.T)), H)
