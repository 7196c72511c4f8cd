"""Scatters of one number into each row are comparisons with the column."""

import numpy as np
import pytest

import minijax
from tests.oracle import evaluated

# For an array `x` and labels `L`: the expression, and whether it is one number for each row of
# equal numbers, so that no scatter is left.
SCATTERS = {
    "take_along_axis of labels": ("jax.grad(lambda x: jnp.take_along_axis("
                                  "jax.nn.log_softmax(x), L[:, None], 1).mean())(x)", True),
    "rows by number": (
        "jax.grad(lambda x: jax.nn.log_softmax(x)[jnp.arange(7), L].sum())(x)", True),
    "rows of NumPy's": (
        "jax.grad(lambda x: (x[np.arange(7), L] ** 2).sum())(x)", True),
    "rows by number, from the end": (
        "jax.grad(lambda x: (x[jnp.arange(-7, 0), L] ** 2).sum())(x)", True),
    "columns by number": ("jax.grad(lambda x: (x[L[:5] % 7, jnp.arange(5)] ** 2).sum())(x)", True),
    "batches": ("jax.grad(lambda x: (x[jnp.arange(7)[:, None], L[:, None] % 2, jnp.arange(5)[None]]"
                " ** 2).sum())(jnp.stack([x, x + 1], 1))", True),
    "one element": ("jnp.zeros(5).at[L[1]].set(x[0, 0])", True),
    "set": ("jnp.full((7, 5), 3.).at[jnp.arange(7), L].set(x[:, 0])", True),
    "clipped": ("jnp.zeros((7, 5)).at[jnp.arange(7), 3 * L].add(x[:, 0], mode='clip')", True),
    "dropped": ("jnp.zeros((7, 5)).at[jnp.arange(7), 3 * L].add(-0. * x[:, 0], mode='drop')", True),
    "batched": ("jax.vmap(lambda row, k: jnp.zeros(5).at[k].add(row[1]))(x, L)", True),
    "integers": ("jnp.zeros((7, 5), int).at[jnp.arange(7), L].add(L)", True),
    "complex": ("jnp.zeros((7, 5), complex).at[jnp.arange(7), L].add(x[:, 0] * 1j)", True),
    "two in a row": ("jax.grad(lambda x: (jnp.take_along_axis(x, L[:, None] * jnp.array([0, 1]), 1)"
                     " ** 2).sum())(x)", False),
    "rows in another order": ("jnp.zeros((7, 5)).at[jnp.arange(7)[::-1], L].add(x[:, 0])", False),
    "some rows": ("jnp.zeros((7, 5)).at[jnp.arange(6), L[:6]].add(x[:6, 0])", False),
    "windows": ("jnp.zeros((7, 5)).at[L].add(x)", False),
    "other numbers": ("x.at[jnp.arange(7), L].add(x[:, 0])", False),
}
OPERANDS = "(jnp.sin(jnp.arange(35.)).reshape(7, 5), jnp.array([0, 4, 2, 2, 3, -1, 1]))"


@pytest.mark.parametrize("name", SCATTERS)
def test_it_has_the_numbers_of_the_scatter(name, agrees_with_jax):
    agrees_with_jax(f"jax.jit(lambda x, L: {SCATTERS[name][0]})(*{OPERANDS})")


@pytest.mark.parametrize("name", SCATTERS)
def test_a_scatter_is_left_where_a_row_may_have_several_numbers(name):
    text, is_comparison = SCATTERS[name]
    lowered = evaluated(f"jax.jit(lambda x, L: {text}).lower(*{OPERANDS})", minijax)
    assert ("scatter" in lowered.as_text("simplified")) is not is_comparison


def test_minus_zero_is_added_to_zero():
    found = evaluated(f"jax.jit(lambda x, L: {SCATTERS['dropped'][0]})(*{OPERANDS})", minijax)
    assert not np.signbit(found).any()
