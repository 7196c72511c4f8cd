"""What interpax does: interpolation that can be differentiated."""

import jax
import jax.numpy as jnp
from interpax import Interpolator1D, fft_interp1d, interp1d, interp2d

X = jnp.linspace(0, 3, 7)
F = jnp.sin(X)
AT = jnp.array([0.1, 1.4, 2.9])


def curves_are_interpolated():
    return [interp1d(AT, X, F, method=method)
            for method in ("nearest", "linear", "cubic", "cubic2", "monotonic", "catmull-rom")]


def an_interpolator_has_derivatives():
    spline = Interpolator1D(X, F, method="cubic2", extrap=True)
    slope = jax.vmap(jax.grad(lambda x: spline(x)))
    return spline(AT, dx=1), slope(AT), jax.jit(lambda x: spline(x))(AT + 1)


def surfaces_and_periods():
    z = jnp.outer(jnp.cos(X), F)
    return (interp2d(AT, AT, X, X, z, method="cubic"), fft_interp1d(F, 10),
            jax.grad(lambda z: interp2d(AT, AT, X, X, z).sum())(z))
