"""Activation functions: relu, sigmoid, gelu, softplus, elu, ….

Builds on `numpy`.  Chapter 10 shows why `relu` has a custom derivative.
In JAX: `jax/_src/nn/functions.py`.
"""

from typing import Any

import numpy as np

from minijax import lax, numpy as jnp
from minijax.core import Array
from minijax.custom.custom_jvp_vjp import custom_jvp
from minijax.numpy.arguments import ArrayLike, as_array, check_promotion, promote_dtypes_inexact


@custom_jvp
def relu(x: ArrayLike) -> Array:
    """The larger of x and 0; the derivative at 0 is 0.

    >>> relu(jnp.array([-1., 0., 2.]))
    Array([0., 0., 2.], dtype=float32)
    """
    return jnp.maximum(x, 0)


relu.defjvps(lambda t, out, x: lax.select(x > 0, t, lax.full_like(t, 0)))


@custom_jvp
def relu6(x: ArrayLike) -> Array:
    """x, clipped to [0, 6]; the derivative at both ends is 0.

    >>> relu6(jnp.array([-1., 2., 8.]))
    Array([0., 2., 6.], dtype=float32)
    """
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


relu6.defjvps(lambda t, out, x: lax.select((x > 0) & (x < 6), t, lax.full_like(t, 0)))


def sigmoid(x: ArrayLike) -> Array:
    """``1 / (1 + exp(-x))``: from 0 to 1.

    >>> float(sigmoid(0.))
    0.5
    """
    return lax.logistic(as_array("sigmoid", x))


def softplus(x: ArrayLike) -> Array:
    """``log(1 + exp(x))``: a smooth relu.

    >>> round(float(softplus(0.)), 4)
    0.6931
    """
    return jnp.logaddexp(x, 0)


def log_sigmoid(x: ArrayLike) -> Array:
    """The logarithm of the sigmoid, without underflow.

    >>> round(float(log_sigmoid(-100.)), 1)
    -100.0
    """
    return -softplus(jnp.negative(x))


def soft_sign(x: ArrayLike) -> Array:
    """``x / (1 + abs(x))``: from -1 to 1.

    >>> float(soft_sign(1.))
    0.5
    """
    return jnp.divide(x, jnp.abs(x) + 1)


def silu(x: ArrayLike) -> Array:
    """``x * sigmoid(x)``, also called swish.

    >>> float(silu(0.))
    0.0
    """
    return x * sigmoid(x)


swish = silu


def mish(x: ArrayLike) -> Array:
    """``x * tanh(softplus(x))``.

    >>> float(mish(0.))
    0.0
    """
    return x * jnp.tanh(softplus(x))


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x times the probability that a standard normal number is below x.

    By default it is approximated by a formula with tanh.

    >>> float(gelu(0.)), round(float(gelu(1., approximate=False)), 4)
    (0.0, 0.8413)
    """
    [x] = promote_dtypes_inexact(as_array("gelu", x))
    if approximate:
        slope = np.sqrt(2 / np.pi).astype(x.dtype)
        activation: Any = jnp.tanh(slope * (x + 0.044715 * x ** 3))
        return x * (0.5 * (1.0 + activation))
    return x * (lax.erfc(-x * np.sqrt(0.5).astype(x.dtype)) / 2)


def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x above 0, ``alpha * (exp(x) - 1)`` below.

    >>> float(elu(2.))
    2.0
    """
    x = as_array("elu", x)
    check_promotion(x, alpha)
    negative = jnp.where(x > 0, 0.0, x)  # away from the overflow of the other side
    return jnp.where(x > 0, x, alpha * jnp.expm1(negative))


def selu(x: ArrayLike) -> Array:
    """`elu`, scaled so that from layer to layer means stay near 0 and variances near 1.

    >>> round(float(selu(1.)), 4)
    1.0507
    """
    activation: Any = elu(x, 1.6732632423543772848170429916717)
    return 1.0507009873554804934193349852946 * activation


def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """`elu` with ``x / alpha`` in the exponent: smooth for every alpha.

    >>> float(celu(2.))
    2.0
    """
    check_promotion(x, alpha)
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """x above 0, a small part of it below.

    >>> leaky_relu(jnp.array([-1., 2.]))
    Array([-0.01,  2.  ], dtype=float32)
    """
    x = as_array("leaky_relu", x)
    check_promotion(x, negative_slope)
    return jnp.where(x >= 0, x, negative_slope * x)


def hard_tanh(x: ArrayLike) -> Array:
    """x, clipped to [-1, 1].

    >>> hard_tanh(jnp.array([-3., 0.5, 3.]))
    Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    x = as_array("hard_tanh", x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


def hard_sigmoid(x: ArrayLike) -> Array:
    """A sigmoid of three straight lines.

    >>> float(hard_sigmoid(0.))
    0.5
    """
    return relu6(jnp.add(x, 3.0)) / 6.0


def hard_silu(x: ArrayLike) -> Array:
    """``x * hard_sigmoid(x)``.

    >>> float(hard_silu(0.))
    0.0
    """
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """``(x + sqrt(x * x + b)) / 2``: a smooth relu without an exponential.

    >>> float(squareplus(0.))
    1.0
    """
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


def sparse_plus(x: ArrayLike) -> Array:
    """0 up to -1, x from 1 on, and ``(x + 1)² / 4`` between: softplus with a flat tail.

    >>> sparse_plus(jnp.array([-2., 0., 2.]))
    Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    x = as_array("sparse_plus", x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


def sparse_sigmoid(x: ArrayLike) -> Array:
    """``(x + 1) / 2``, clipped to [0, 1]: the derivative of `sparse_plus`.

    >>> sparse_sigmoid(jnp.array([-2., 0., 2.]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x = as_array("sparse_sigmoid", x)
    return jnp.multiply(0.5, jnp.clip(x + 1.0, 0.0, 2.0))


@custom_jvp
def log1mexp(x: ArrayLike) -> Array:
    """``log(1 - exp(-x))`` for positive x, with all digits near 0 and far away.

    >>> log1mexp(jnp.array([0.1, 1.])).round(4)
    Array([-2.3522, -0.4587], dtype=float32)

    Source: Mächler, Accurately computing log(1 - exp(-|a|)) (2012).
    """
    [x] = promote_dtypes_inexact(as_array("log1mexp", x))
    return jnp.where(x < jnp.log(2.0), jnp.log(-jnp.expm1(-x)), jnp.log1p(-jnp.exp(-x)))


log1mexp.defjvps(lambda t, out, x: t / jnp.expm1(x))


def identity(x: ArrayLike) -> Array:
    """x itself, as an array.

    >>> identity(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    return as_array("identity", x)


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """One half of the array times the sigmoid of the other half.

    >>> glu(jnp.array([3., 0.]))
    Array([1.5], dtype=float32)
    """
    x = as_array("glu", x)
    if x.shape[axis] % 2:
        raise AssertionError("axis size must be divisible by 2")
    first, second = jnp.split(x, 2, axis)
    return first * sigmoid(second)
