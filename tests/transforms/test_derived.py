"""Primitives that are programs of others."""

import numpy as np
import pytest

import minijax as jax
from minijax.lax import systems
from minijax.transforms.derived import derived


@pytest.mark.parametrize(("p", "place"), [
    (systems.ormqr_p, 2), (systems.symmetric_product_p, 1), (systems.tridiagonal_solve_p, 3)])
def test_the_transpose_is_the_vjp_of_the_program(p, place):
    for example in p.examples():
        def f(x, args=example.args, params=example.params):
            return p.bind(*args[:place], x, *args[place + 1:], **params)
        x = example.args[place]
        out, pull = jax.vjp(f, x)
        cotangent = np.cos(np.arange(out.size, dtype=np.float32)).reshape(out.shape)
        np.testing.assert_allclose(jax.linear_transpose(f, x)(cotangent)[0], pull(cotangent)[0],
                                   rtol=1e-4, atol=1e-6)


def test_it_is_transposed_in_linear_arguments_only():
    p = derived("area", lambda x, y: x * y, lambda: [], linear=[1])
    with pytest.raises(NotImplementedError, match="area is linear only in its arguments"):
        jax.linear_transpose(lambda x: p.bind(x, 2.0), 1.0)(1.0)
    assert float(jax.linear_transpose(lambda y: p.bind(3.0, y), 1.0)(2.0)[0]) == 6.0
