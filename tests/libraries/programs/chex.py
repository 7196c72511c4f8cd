"""What Chex's documentation does: asserts on arrays, trees and values, dataclasses, fakes."""

import functools
import io
import unittest

import chex
import jax
import jax.numpy as jnp


@chex.dataclass
class Params:
    """A tree with names."""

    w: chex.ArrayDevice
    b: chex.ArrayDevice


def a_dataclass_is_a_tree():
    params = Params(w=jnp.arange(3.0), b=jnp.ones(()))
    grads = jax.jit(jax.grad(lambda p: jnp.sum(jnp.sin(p.w)) * p.b))(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), params.replace(b=jnp.zeros(()))


def said(check, *args, **kwargs):
    """Which error a check raises, by Python's own class of it."""
    try:
        check(*args, **kwargs)
    except (AssertionError, TypeError, ValueError) as error:
        return next(k.__name__ for k in type(error).__mro__ if k.__module__ == "builtins")
    return "passed"


def shapes_ranks_and_types_are_checked():
    x, i = jnp.ones((2, 3)), jnp.arange(4)
    return [said(chex.assert_shape, x, (2, 3)), said(chex.assert_shape, x, (2, None)),
            said(chex.assert_shape, [x, i], [(2, 3), (5,)]), said(chex.assert_rank, x, {1, 2}),
            said(chex.assert_rank, x, 3), said(chex.assert_type, [x, i], [float, int]),
            said(chex.assert_type, x, int), said(chex.assert_equal_shape, [x, x + 1]),
            said(chex.assert_equal_shape, [x, i]), said(chex.assert_axis_dimension, x, 1, 3),
            said(chex.assert_is_broadcastable, (3,), x.shape), said(chex.assert_scalar_in, 2, 0, 1)]


def trees_are_compared():
    tree = {"a": jnp.arange(3.0), "b": [jnp.ones(2)]}
    other = jax.tree.map(lambda x: x + 1e-3, tree)
    return [said(chex.assert_trees_all_close, tree, other, atol=1e-2),
            said(chex.assert_trees_all_close, tree, other),
            said(chex.assert_trees_all_equal, tree, tree),
            said(chex.assert_trees_all_equal_structs, tree, {"a": 1}),
            said(chex.assert_tree_all_finite, {"x": jnp.array([1.0, jnp.nan])}),
            said(chex.assert_trees_all_equal_shapes_and_dtypes, tree, other),
            said(chex.assert_tree_has_only_ndarrays, tree),
            said(chex.assert_tree_no_nones, {"a": None})]


def tracing_is_counted():
    chex.clear_trace_counter()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def f(x):
        return x + 1
    return f(jnp.ones(2)), f(jnp.zeros(2)), said(f, jnp.ones(3))


def dimensions_have_names():
    dims = chex.Dimensions(B=2, T=3)
    x = jnp.zeros((2, 3))
    dims["BTN"] = (2, 3, 5)
    return dims["NB"], [said(chex.assert_shape, x, dims[names]) for names in ("BT", "TB")]


def fakes_run_in_python():
    with chex.fake_jit(), chex.fake_pmap_and_jit():
        calls = []

        @jax.jit
        def f(x):
            calls.append(float(x))  # a number, where nothing is traced
            return x * 2
        return f(3.0), calls


def gradients_are_checked_by_differences():
    chex.assert_numerical_grads(lambda x: jnp.sin(x) * x, (jnp.float32(0.7),), order=1, atol=1e-2)
    wrong = jax.custom_jvp(jnp.sin)
    wrong.defjvp(lambda primals, tangents: (jnp.sin(*primals), *tangents))
    return [said(chex.assert_numerical_grads, f, (jnp.float32(0.7),), order=1, atol=1e-2)
            for f in (jnp.sin, wrong)]


def a_mapping_with_fields():
    @chex.dataclass(mappable_dataclass=True, frozen=True)
    class State:
        position: chex.Array
        velocity: chex.Array

    s = State(position=jnp.ones(2), velocity=jnp.arange(2.0))
    step = jax.jit(lambda s: s.replace(position=s["position"] + 0.1 * s["velocity"]))
    return jax.lax.fori_loop(0, 3, lambda i, s: step(s), s), sorted(s.keys())


def values_are_checked_inside_of_jit():
    @chex.chexify
    @jax.jit
    def log_abs(x):
        chex.assert_tree_all_finite(x)
        return jnp.log(jnp.abs(x) + 1)

    def told():
        log_abs(jnp.array([jnp.nan, 3]))
        log_abs.wait_checks()

    out = log_abs(jnp.ones(2))
    log_abs.wait_checks()
    return out, said(told)


def values_of_a_loop_are_checked():
    @functools.partial(chex.chexify, async_check=False)
    @jax.jit
    def halved(x, y):
        def body(i, x):
            chex.assert_trees_all_close(x, y, atol=1.0)
            return x / 2
        return jax.lax.fori_loop(0, 3, body, x)
    return halved(jnp.ones(2), jnp.ones(2)), said(halved, 4 * jnp.ones(2), jnp.ones(2))


def divisions_are_checked():
    inverse = chex.chexify(jax.jit(lambda x: 1 / x), async_check=False,
                           errors=chex.ChexifyChecks.float)
    return inverse(jnp.arange(1.0, 3.0)), said(inverse, jnp.arange(2.0))


def a_test_runs_in_variants():
    class Doubled(chex.TestCase):
        @chex.variants(with_jit=True, without_jit=True, with_device=True, without_device=True)
        def test_twice(self):
            self.assertEqual(float(self.variant(lambda x: 2 * x)(jnp.float32(2))), 4)

    tests = unittest.defaultTestLoader.loadTestsFromTestCase(Doubled)
    result = unittest.TextTestRunner(stream=io.StringIO()).run(tests)
    return jnp.array([result.testsRun, len(result.errors), len(result.failures)])
