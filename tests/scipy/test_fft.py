"""Cosine transforms are JAX's, and come back."""

import jax.scipy.fft  # noqa: F401
import pytest

ARRAYS = ["f", "t", "i", "c", "v"]


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
def test_transforms(agrees_with_jax, name, array):
    norm = "ortho" if array in "tc" else None
    agrees_with_jax(f"jax.scipy.fft.{name}({array}, norm={norm!r}) + 300", 1e-5)


@pytest.mark.parametrize("expression", [
    "dct(t, axis=1)", "dct(t, n=6)", "dct(t, n=2, axis=0)", "idct(t, axis=0, n=5)",
    "dctn(t, axes=(0, 2))", "dctn(t, s=(2, 6))", "idctn(t, axes=(1,))", "idctn(t, s=(4, 4, 4))",
    "dctn(t, s=3)", "dctn(v, s=(1, 2))", "dct(f, type=3)", "idct(f, norm='forward')", "dct([1.])",
    "dctn(f, s=(3,), axes=(0,))",
])
def test_arguments(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.fft." + expression.replace("(t", "(t / 50"), 1e-4)


@pytest.mark.parametrize("expression", [
    "jax.scipy.fft.idctn(jax.scipy.fft.dctn(g))", "jax.vmap(jax.scipy.fft.dct)(g)",
    "jax.jit(jax.scipy.fft.idct)(g)",
    "jax.grad(lambda x: jnp.sum(jax.scipy.fft.dct(x, norm='ortho')[0, 1]))(g)",
])
def test_transformed(agrees_with_jax, expression):
    agrees_with_jax(expression, 1e-4)
