"""Areas are JAX's."""

import jax.scipy.integrate  # noqa: F401
import pytest

@pytest.mark.parametrize("expression", [
    "trapezoid(v)", "trapezoid(f, dx=2.)", "trapezoid(f, v)", "trapezoid(f, axis=0)",
    "trapezoid(i)", "trapezoid(c, dx=.5)", "trapezoid(e)",
])
def test_trapezoid(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.integrate." + expression)
