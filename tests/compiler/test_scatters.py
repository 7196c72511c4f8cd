"""Scatters of one number into each row are comparisons with the column; others are updates."""

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
PLACES = {
    "slices": ("x.at[1:-1, 2:].set(x[1:-1, :3])", True), "rows": ("x.at[2].add(x[3])", True),
    "the last element": ("x.at[-1, -2].multiply(2)", True), "extrema": (
        "x.at[1:3].min(0.1).at[:, 1].max(0.2)", True), "divided": ("x.at[:2].divide(3)", True),
    "clipped, inside": ("x.at[2:4].set(7., mode='clip')", True),
    "outside": ("x.at[9].set(1., mode='drop')", False), "to powers": ("x.at[1].power(2)", True),
    "by a function": ("x.at[1].apply(jnp.sin)", True), "one index from an array": (
        "x.at[L[1]].set(1.)", False), "two rows": ("x.at[np.array([1, 2])].add(1.)", False),
    "gradient of a slice": ("jax.grad(lambda x: (x[1:3] ** 2).sum())(x)", True),
    "in a scan": ("lax.scan(lambda c, r: (c.at[1:-1].add(r[2:] - r[:-2]), c[0]), x[0, 1:], "
                  "x[:, :4])", True),
    "in a loop": ("lax.fori_loop(0, 9, lambda i, c: c.at[0].set(c[-1]).at[1:, 2].add(i), x)", True),
    "in a while loop and its condition": (
        "lax.while_loop(lambda c: c[1:3].at[1:].add(c[0]).sum() < 9, "
        "lambda c: c.at[1:-1].add(c[2:]).at[0].add(1.), x[:, 0])", True),
    "in branches": ("lax.switch(L[0], [lambda c: c.at[1:3, 1:].set(c[0, 2]), "
                    "lambda c: c.at[2].multiply(3)], x)", True),
    "in branches of a scan": (
        "lax.scan(lambda c, i: (lax.cond(i % 2 == 0, lambda: c.at[1:3, 1:].set(c[0, 2]), "
        "lambda: c.at[2].multiply(1.5)), i), x, L)", True),
    "in a batch": ("jax.vmap(lambda r: r.at[1:3].add(r[0]))(x)", True),
    "read in a scan at two": ("lax.scan(lambda c, r: (c.at[1].set(c[np.array([0, 2])].sum()), c[3])"
                              ", x[0], x)", True)}
OPERANDS = "(jnp.sin(jnp.arange(35.)).reshape(7, 5), jnp.array([0, 4, 2, 2, 3, -1, 1]))"


@pytest.mark.parametrize("name", PLACES)
def test_at_a_known_place_they_are_updates_of_a_slice(name):
    text, is_update = PLACES[name]
    program = f"jax.jit(lambda x, L: {text})"
    found, wanted = (evaluated(f"{f}{OPERANDS}", minijax) for f in (program, program[7:]))
    for one, other in zip(minijax.tree.leaves(found), minijax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    text = evaluated(f"{program}.lower{OPERANDS}.as_text('simplified')", minijax)
    assert ("scatter" not in text) == is_update


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
