"""What is joined in windows, beside JAX: sums, extrema, and where the extrema stood."""

import jax
import numpy as np
import pytest

import minijax
from minijax.primitives.comparison import ge_p
from minijax.primitives.windowed_reductions import select_and_gather_add_p

X = np.random.default_rng(0).normal(size=(2, 3, 6, 7)).astype(np.float32)
X[0, 0, :2, :3] = 1.5  # extrema that stand at several places


def pooled(library, name, **sizes):
    start = {"add": 0., "max": -np.inf, "min": np.inf}[name]
    return lambda x: library.lax.reduce_window(x, start, getattr(library.lax, name), **sizes)


@pytest.mark.parametrize("sizes", [
    {"window_dimensions": (1, 1, 2, 3), "window_strides": (1, 1, 2, 1), "padding": "SAME"},
    {"window_dimensions": (1, 1, 3, 2), "window_strides": (1, 1, 3, 2)},
    {"window_dimensions": (1, 2, 2, 2), "padding": [(0, 0), (1, 0), (0, 1), (2, 2)]},
    {"window_dimensions": (1, 1, 2, 2), "window_dilation": (1, 1, 2, 1),
     "base_dilation": (1, 1, 1, 2)}], ids=["same", "apart", "around", "dilated"])
@pytest.mark.parametrize("name", ["add", "max", "min"])
def test_values_and_derivatives_of_any_order_are_those_of_jax(name, sizes):
    def outcome(library):
        f = pooled(library, name, **sizes)
        if name != "add" and "base_dilation" in sizes:
            return [library.jit(f)(X), library.jvp(f, (X,), (2 * X,))[1]]
        slope = library.grad(lambda x: (f(x) ** 2).sum())
        return [library.jit(f)(X), library.jit(slope)(X), library.jvp(slope, (X,), (2 * X,))[1],
                library.vmap(f, 1, 1)(X[:, None])]
    for found, wanted in zip(*map(outcome, (minijax, jax)), strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-5, atol=1e-5)


def test_what_stands_beside_extrema_keeps_its_dtype():
    x, z = minijax.numpy.asarray(X), minijax.numpy.asarray(X + 2j * X)
    ones = (1,) * X.ndim
    [found] = select_and_gather_add_p.bind_list(
        z, x, select_prim=ge_p, window_dimensions=(1, 1, 2, 2), window_strides=ones,
        padding=((0, 0),) * X.ndim, base_dilation=ones, window_dilation=ones)
    extrema = pooled(minijax, "max", window_dimensions=(1, 1, 2, 2))(x)
    assert found.dtype == z.dtype and (found == extrema + 2j * extrema).all()


def test_no_derivative_is_taken_of_extrema_far_apart():
    for library in (minijax, jax):
        f = pooled(library, "max", window_dimensions=(1, 1, 2, 2), window_dilation=(1, 1, 2, 1))
        with pytest.raises(NotImplementedError, match="VJP not implemented for select_and_gather"):
            library.grad(lambda x, f=f: f(x).sum())(X)


@pytest.mark.parametrize("call", [
    lambda lax: lax.reduce_window(X, 0., lax.add, (1, 1, 2, 2), (1, 1, 0, 1), "SAME"),
    lambda lax: lax.reduce_window(X, 0., lax.add, (1, 1, 2, 0), (1, 1, 1, 1), "SAME"),
    lambda lax: lax.reduce_window(X, 0., lax.add, (1, 1, 2, 2), (1, 1, 1, 1), "foo"),
    lambda lax: lax.reduce_window(X, np.zeros(2), lax.add, (1, 1, 2, 2), (1, 1, 1, 1), "SAME")])
def test_what_does_not_fit_is_refused_in_jaxs_words(call, agrees):
    agrees(call)
