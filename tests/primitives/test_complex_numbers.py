"""Complex numbers, computed and differentiated as in JAX, and not compiled."""

import jax
import numpy as np
import pytest

import minijax
from minijax import lax

Z = np.complex64([1 + 2j, -.5j, 3])


@pytest.mark.parametrize("call", [
    lambda lax: lax.real(Z), lambda lax: lax.imag(Z), lambda lax: lax.real(1.),
    lambda lax: lax.conj(Z), lambda lax: lax.conj(1.), lambda lax: lax.complex(1., 2.),
    lambda lax: lax.complex(1, 2), lambda lax: lax.abs(Z), lambda lax: lax.mul(Z, Z),
    lambda lax: lax.complex(np.ones(2, np.float32), np.ones(3, np.float32))])
def test_types_values_and_refusals_are_those_of_jax(call, agrees_closely):
    agrees_closely(call, 1e-6)


@pytest.mark.parametrize("f", [lambda lax, z: lax.real(lax.mul(z, z)), lambda lax, z: lax.abs(z),
                               lambda lax, z: lax.imag(lax.conj(z)),
                               lambda lax, z: lax.real(lax.exp(lax.div(z, 2 + 1j)))])
def test_gradients_in_complex_numbers_are_those_of_jax(f):
    ours = minijax.grad(lambda z: f(lax, z))(3 + 4j)
    theirs = jax.grad(lambda z: f(jax.lax, z))(3 + 4j)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-6)


def test_compiling_complex_numbers_is_refused():
    with pytest.raises(NotImplementedError, match="complex"):
        minijax.jit(lambda z: lax.add(z, z))(1 + 2j)
