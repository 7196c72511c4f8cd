"""What special functions do with their arguments: one dtype, one rank, slopes of their own."""

import numpy as np
import pytest

import minijax
from minijax.scipy.arguments import promote_to_float, promote_to_real, with_derivatives

jnp = minijax.numpy


def test_arguments_are_floats_of_one_dtype():
    dtypes_of = promote_to_float(lambda x, y=1: (x.dtype, y.dtype))
    assert dtypes_of(np.arange(3)) == ("float32", "float32")


def test_slopes_are_the_derivatives():
    halved = with_derivatives(lambda t, out, x: t / 2)(lambda x: x * x)
    assert (float(halved(3.)), float(minijax.grad(halved)(3.))) == (9, .5)


def test_of_reals_half_precision_is_left_meanwhile():
    seen = []

    @promote_to_real(lambda t, out, x: t * out)
    def huge(x):
        seen.append(x.dtype.name)
        return jnp.exp(x) * 1e6, x

    first, second = huge(jnp.float16(-10.))
    assert seen == ["float32"] and first.dtype == second.dtype == "float16"
    assert abs(float(first) - np.exp(-10) * 1e6) < .05


def test_of_reals_refuses_complex_numbers():
    with pytest.raises(ValueError, match="g does not support complex-valued inputs"):
        @promote_to_real(None)
        def g(x):
            return x
        g(1j)
