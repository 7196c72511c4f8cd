"""Images of another size are JAX's, by every method."""


import jax.image
import pytest

import minijax
import minijax.image


METHODS = ("nearest bilinear trilinear triangle lanczos3 lanczos5 cubic tricubic cubic-pytorch area"
           ).split()


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_resize(agrees_with_jax, method, antialias):
    agrees_with_jax(f"jax.image.resize(t, (2, 5, 2), '{method}', {antialias})", 1e-4)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_scale_and_translate(agrees_with_jax, method, antialias):
    agrees_with_jax(f"jax.image.scale_and_translate(f, (2, 5), (1,), jnp.array([.7]), "
                    f"jnp.array([.3]), '{method}', {antialias})", 1e-4)


@pytest.mark.parametrize("expression", [
    "resize(i, (4, 2), 'linear')", "resize(i, (4, 2), 'nearest')", "resize(h, (4, 3), 'cubic')",
    "resize(c, (4, 2), 'linear')", "resize(f, (0, 2), 'linear')", "resize(f, (2, 3), 'linear')",
    "resize(f, (2,), 'linear')", "resize(f, (2, 3), 'best')", "resize(u, (3, 3), 'nearest')",
    "resize(f, (4, 4), jax.image.ResizeMethod.AREA)", "ResizeMethod.from_string('none')",
    "scale_and_translate(f, (2, 3), (0,), jnp.ones(1), jnp.ones(1), 'linear')",
    "scale_and_translate(f, (2,), (0,), jnp.ones(1), jnp.ones(1), 'linear')",
])
def test_arguments(agrees_with_jax, expression):
    agrees_with_jax("jax.image." + expression, 1e-2 if "(h" in expression else 1e-4)


@pytest.mark.parametrize("expression", [
    "jax.grad(lambda x: jnp.sum(jax.image.resize(x, (4, 5), 'lanczos3') ** 2))(f)",
    "jax.grad(lambda s: jnp.sum(jax.image.scale_and_translate(f, (4, 5), (0, 1), s, s / 9, "
    "'cubic') ** 2))(jnp.array([1.3, .8]))",
    "jax.vmap(lambda x: jax.image.resize(x, (2, 5), 'linear'))(t)",
    "jax.jit(lambda x: jax.image.resize(x, (4, 5), 'area'))(f)",
])
def test_transformed(agrees_with_jax, expression):
    agrees_with_jax(expression, 1e-4)


def test_methods_have_jaxs_names_and_numbers():
    ours, theirs = (dict(library.image.ResizeMethod.__members__) for library in (minijax, jax))
    assert {k: v.value for k, v in ours.items()} == {k: v.value for k, v in theirs.items()}
