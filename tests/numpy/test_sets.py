"""Arrays as sets agree with JAX, eagerly and, with a size, under jit."""

import jax
import numpy as np
import pytest

import minijax

A, B = "jnp.array([3, 1, 2, 3])", "jnp.array([2, 3, 7])"
F = "jnp.array([1.5, -2., 1.5, 0.])"
NAMES = ["union1d", "intersect1d", "setdiff1d", "setxor1d"]
UNIQUE = ["unique_all", "unique_counts", "unique_inverse", "unique_values"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("arguments", [
    f"{A}, {B}", f"jnp.ones((2, 2), int), {F}", f"{A}, {A}, size=3, fill_value=5",
    f"[1, 2], {A}"])
def test_two_arrays(agrees_with_jax, name, arguments):
    agrees_with_jax(f"jnp.{name}({arguments})")


@pytest.mark.parametrize("options", ["", ", size=3, fill_value=8"])
def test_where_the_common_ones_are(agrees_with_jax, options):
    agrees_with_jax(f"jnp.intersect1d({A}, {B}, return_indices=True{options})")


@pytest.mark.parametrize("name", NAMES)
def test_with_a_size_it_works_under_jit_and_without_one_the_error_says_so(name):
    x, y = np.array([3, 1, 2, 3]), np.array([2, 3, 7])
    sized = [lib.jit(lambda a, b, lib=lib: getattr(lib.numpy, name)(a, b, size=5))(x, y)
             for lib in (minijax, jax)]
    np.testing.assert_array_equal(*map(np.asarray, sized))
    with pytest.raises(minijax.errors.ConcretizationTypeError, match="size argument") as caught:
        minijax.jit(getattr(minijax.numpy, name))(x, y)
    assert f"arose in {name}()" in str(caught.value)


@pytest.mark.parametrize("name", UNIQUE)
@pytest.mark.parametrize("arguments", [A, "jnp.array([1., jnp.nan, jnp.nan])",
                                       f"{A}, size=5, fill_value=0"])
def test_unique_by_name(agrees_with_jax, name, arguments):
    agrees_with_jax(f"tuple(jnp.{name}({arguments}))")


def test_the_results_of_unique_have_the_names_of_the_array_api():
    found = minijax.numpy.unique_all(np.array([3, 1, 3]))
    assert found._fields == jax.numpy.unique_all(np.array([3, 1, 3]))._fields


@pytest.mark.parametrize("expression", [
    f"jnp.setdiff1d({A}, {B}, True)", f"jnp.setdiff1d({A}, {B}, True, size=3, fill_value=8)",
    f"jnp.setdiff1d(e, {F}, True, size=2)", "jnp.setdiff1d(2, 3, assume_unique=True)",
    f"type(jnp.unique_all({A})).__name__", f"type(jnp.unique_inverse({A})).__name__",
    f"type(jnp.unique_counts({A})).__name__", "jnp.unique(i)",
    "jnp.unique(jnp.array([3, 1, 3]), return_index=True, return_inverse=True, return_counts=True)",
    "jnp.unique(f, return_inverse=True)", "jnp.unique(n)", "jnp.unique(n, equal_nan=False)",
    "jnp.unique(b)", "jnp.unique(jnp.array([3, 1, 3]), size=2)",
    "jnp.unique(jnp.array([3, 1, 3]), size=4)",
    "jnp.unique(jnp.array([3, 1, 3]), size=4, fill_value=-1)",
    "jnp.unique(jnp.array([3, 1, 3]), size=4, return_counts=True, return_index=True)",
    "jnp.unique(jnp.array([3, 1, 3]), size=1, return_counts=True)",
    "jnp.unique(jnp.array([[1, 2], [0, 5], [1, 2]]), axis=0)",
    "jnp.unique(jnp.array([[1, 2], [0, 5], [1, 2]]), axis=0, return_counts=True)",
    "jnp.unique(jnp.array([[2, 1, 2], [0, 5, 0]]), axis=1, return_index=True)", "jnp.unique(e)",
    "jnp.unique(3)", "jax.jit(lambda x: jnp.unique(x, size=2))(jnp.array([3, 1, 3]))",
    "jax.jit(jnp.unique)(v)", "jnp.isin(i, jnp.array([3, 5]))", "jnp.isin(2, w)",
    "jnp.isin(i, w, invert=True)", "jnp.unique([1, 2])", "jnp.unique(e, size=3)",
    "jnp.unique(e, size=3, fill_value=7, return_counts=True)",
    "jnp.unique(jnp.zeros((0, 3)), axis=0)",
    "jnp.unique(jnp.zeros((2, 0)), axis=0, return_counts=True)",
    "jnp.unique(jnp.zeros((0, 3)), axis=0, size=2, fill_value=5)",
])
def test_sets(agrees_with_jax, expression):
    agrees_with_jax(expression)
