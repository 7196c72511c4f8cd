"""Sorting and searching agree with JAX, nan and equal elements included."""

import jax
import numpy as np
import pytest

import minijax

@pytest.mark.parametrize("expression", [
    "jnp.sort(f)", "jnp.sort(f, axis=0)", "jnp.sort(f, axis=None)", "jnp.sort(n)",
    "jnp.sort(i, descending=True)", "jnp.sort(b)", "jnp.sort(u)", "jnp.sort(h)", "jnp.sort(2)",
    "jnp.argsort(f)", "jnp.argsort(n, axis=0)", "jnp.argsort(jnp.array([1, 0, 1, 0]))",
    "jnp.argsort(jnp.array([1, 0, 1, 0]), descending=True)", "jnp.argsort(f, axis=None)",
    "jnp.lexsort((w, v))", "jnp.lexsort((jnp.array([1, 1, 0]), jnp.array([2, 2, 2])))",
    "jnp.searchsorted(jnp.arange(5), 2)", "jnp.searchsorted(jnp.arange(5.0), f)",
    "jnp.searchsorted(jnp.array([1, 2, 2, 3]), jnp.array([2, 0, 9]), side='right')",
    "jnp.searchsorted(jnp.array([1, 2, 2, 3]), jnp.array([2, 0, 9]), side='left')",
    "jnp.searchsorted(jnp.array([1.0, 2.0, jnp.nan]), jnp.array([jnp.nan, 1.5, jnp.inf]))",
    "jnp.searchsorted(jnp.array([1.0, jnp.nan]), jnp.array([jnp.nan, 1.5]), side='right')",
    "jnp.searchsorted(jnp.array([]), 1.0)",
    "jnp.searchsorted(jnp.array([3, 1, 2]), 2, sorter=jnp.array([1, 2, 0]))",
    "jnp.searchsorted(jnp.array([-0.0, 0.0]), 0.0)",
    "jnp.searchsorted(jnp.array([1]), jnp.array([0, 1, 2]))", "jax.jit(jnp.sort)(f)",
    "jax.vmap(jnp.argsort)(f)", "jax.grad(lambda x: (jnp.sort(x) * jnp.arange(3)).sum())(v)",
    "jax.jit(jnp.searchsorted)(jnp.arange(5.0), f)",
    "jax.vmap(jnp.searchsorted, (None, 0))(jnp.arange(5.0), f)", "jnp.sort([1])",
    "jnp.sort(f, axis=2)", "jnp.searchsorted(f, 1)", "jnp.searchsorted(v, 1, side='up')",
])
def test_sorting(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "sort", "compare_all", "other"])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("a", ["jnp.array([1., 2, nan])", "jnp.array([1., nan, 2])",
                               "jnp.array([-jnp.inf, -0., 0, jnp.inf, nan, nan])",
                               "jnp.array([1, 1 + 1j, 2 - 1j, nan + 1j])"])
def test_every_method_of_a_search_puts_nan_last(agrees_with_jax, a, side, method):
    v = a.replace("2", "nan").replace("jnp.inf", "0")
    agrees_with_jax(f"(lambda nan: jnp.searchsorted({a}, {v}, side={side!r}, method={method!r}))"
                    "(jnp.nan)")


@pytest.mark.parametrize(("shape", "kth", "axis"), [
    ((7,), 2, -1), ((7,), -1, 0), ((7,), 0, -1), ((4, 5), 1, 0), ((4, 5), -2, 1)])
@pytest.mark.parametrize("name", ["partition", "argpartition"])
def test_parts_are_in_the_order_of_jax(name, shape, kth, axis):
    x = np.random.default_rng(0).integers(0, 9, shape).astype(np.float32)
    ours, theirs = (getattr(lib.numpy, name)(x, kth, axis) for lib in (minijax, jax))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("expression", [
    "jnp.lexsort(v)", "jnp.lexsort([1, 2])", "jnp.lexsort((v, w))", "jnp.lexsort(f)",
    "jnp.lexsort(s)", "jnp.lexsort([s], -2)", "jnp.lexsort(())", "jnp.lexsort((v, f))",
])
def test_lexsort_of_few_axes_is_jaxs(agrees_with_jax, agrees_with_64_bits, expression):
    agrees_with_jax(expression)
    agrees_with_64_bits(expression)
