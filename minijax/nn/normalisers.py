"""Functions of a whole row: softmax, logsumexp, standardize, one_hot.

Builds on `numpy`.  Chapter 20, *Precision*: why the maximum is subtracted first.
In JAX: `jax/_src/nn/functions.py`, `jax/_src/ops/special.py`.
"""

from typing import Any

import numpy as np

from minijax import config, dtypes, errors, lax, numpy as jnp
from minijax.core import Array
from minijax.custom.custom_jvp_vjp import custom_jvp
from minijax.numpy.arguments import (ArrayLike, Axes, as_array, canonical_axes, canonical_axis,
                                     check_promotion, promote_dtypes_inexact, promote_shapes,
                                     static_axes, static_index)


def _shifted(x: Any, axis: Axes, where: ArrayLike | None) -> Any:
    """x less its largest element, whose derivative cancels and is not computed."""
    masked = x if where is None else jnp.where(where, x, -jnp.inf)
    largest: Any = jnp.max(masked, axis, keepdims=True, initial=_initial(x, where))
    return masked - lax.stop_gradient(largest)


def _initial(x: Any, where: ArrayLike | None) -> float | None:
    return -jnp.inf if where is not None or x.size == 0 else None


def softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None) -> Array:
    """``exp(x)``, divided by its sum along the axis: positive numbers whose sum is 1.

    >>> softmax(jnp.array([1., 1.]))
    Array([0.5, 0.5], dtype=float32)

    Args:
      where: the elements that take part; the others become 0.
    """
    # JAX: jitted, and the maximum starts from -inf.
    [x] = promote_dtypes_inexact(as_array("softmax", x))
    flag = config.flags.get("softmax_custom_jvp")  # absent as long as no program names it
    return (_softmax_by_result if flag and flag.value else _softmax)(x, axis, where)


def _softmax(x: Any, axis: Axes, where: ArrayLike | None) -> Any:
    powers = jnp.exp(_shifted(x, axis, where))
    result = powers / jnp.sum(powers, axis, where=where, keepdims=True)
    return result if where is None else jnp.where(where, result, 0)


_softmax_by_result = custom_jvp(_softmax, nondiff_argnums=(1,))


@_softmax_by_result.defjvp
def _softmax_jvp(axis: Axes, primals: tuple, tangents: tuple) -> tuple:
    x, where = primals
    y = _softmax_by_result(x, axis, where)
    return y, y * (tangents[0] - jnp.sum(y * tangents[0], axis, where=where, keepdims=True))


def log_softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None) -> Array:
    """The logarithm of the softmax, without underflow.

    >>> log_softmax(jnp.array([0., 0.]))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    [x] = promote_dtypes_inexact(as_array("log_softmax", x))
    shifted = _shifted(x, axis, where)
    result = shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis, where=where, keepdims=True))
    return result if where is None else jnp.where(where, result, -jnp.inf)


def logsumexp(a: ArrayLike, axis: Axes = None, b: ArrayLike | None = None, keepdims: bool = False,
              return_sign: bool = False, where: ArrayLike | None = None) -> Any:
    """``log(sum(b * exp(a)))``, without overflow.

    >>> round(float(logsumexp(jnp.array([1000., 1000.]))), 3)
    1000.693

    Args:
      b: factors; 1 by default.
      return_sign: whether to return the logarithm of the sum's absolute value, and its sign.
    """
    if b is None:
        [x], factors = promote_dtypes_inexact(as_array("logsumexp", a)), None
    else:
        x, factors = promote_shapes("mul", *promote_dtypes_inexact(
            as_array("logsumexp", a), as_array("logsumexp", b)))
        x = jnp.where(factors != 0, x, -jnp.inf)
    axes = canonical_axes(static_axes("logsumexp", axis), x.ndim)
    largest: Any = jnp.max(lax.real(x) if jnp.iscomplexobj(x) else x, axes, keepdims=True,
                           where=where, initial=_initial(x, where))
    largest = lax.stop_gradient(jnp.where(jnp.isfinite(largest), largest, 0))
    if where is not None:  # what is left out may overflow, whose derivative would be nan
        x = jnp.where(where, x, -jnp.inf)
    # `lax` leaves a weak x as it is: the cotangent of what is weak is strong, as in JAX
    powers = jnp.exp(lax.sub(x, lax.convert_element_type(largest, x.dtype)))
    powers = powers if factors is None else powers * factors
    total: Any = jnp.sum(powers, axes, keepdims=keepdims, where=where)
    shift = largest if keepdims else jnp.squeeze(largest, axes)
    if return_sign:
        return jnp.log(jnp.abs(total)) + shift, jnp.sign(total)
    if factors is not None and not jnp.iscomplexobj(x):
        total = jnp.where(total < 0, jnp.nan, total)
    return jnp.log(total) + shift


def logmeanexp(x: ArrayLike, axis: Axes = None, where: ArrayLike | None = None,
               keepdims: bool = False) -> Array:
    """``log(mean(exp(x)))``, without overflow.

    >>> float(logmeanexp(jnp.array([2., 2.])))
    2.0
    """
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    ones = jnp.ones_like(x) if where is None else jnp.broadcast_to(where, jnp.shape(x))
    return total - jnp.log(jnp.sum(ones, axis, total.dtype, keepdims=keepdims))


def standardize(x: ArrayLike, axis: Axes = -1, mean: ArrayLike | None = None,
                variance: ArrayLike | None = None, epsilon: ArrayLike = 1e-5,
                where: ArrayLike | None = None, *, algorithm: str = "fast") -> Array:
    """x less its mean, divided by its standard deviation.

    Args:
      x: an array.
      axis: along which; all axes, if None.
      mean, variance: those of x, if they are computed already.
      epsilon: is added to the variance.
      where: which elements count for mean and variance.
      algorithm: of the variance: "fast", the mean of squares less the square of the
        mean, which reads x once; "stable", the mean of the squared distances, which loses fewer
        digits where the mean is large.

    Raises:
      ValueError: for another algorithm.

    >>> standardize(jnp.array([-1., 1.]), epsilon=0)
    Array([-1.,  1.], dtype=float32)
    """
    [x] = promote_dtypes_inexact(as_array("standardize", x))
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"Unknown algorithm {algorithm!r}. Expected 'fast' or 'stable'.")
    check_promotion(x, mean, variance)
    mean = jnp.mean(x, axis, keepdims=True, where=where) if mean is None else mean
    if variance is None and algorithm == "stable":
        variance = jnp.mean(jnp.square(x - mean), axis, keepdims=True, where=where)
    elif variance is None:
        squares = jnp.mean(jnp.square(x), axis, keepdims=True, where=where)
        variance = jnp.maximum(squares - jnp.square(mean), 0)
    return (x - mean) * lax.rsqrt(jnp.add(variance, epsilon))


def one_hot(x: ArrayLike, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Array:
    """A row for each integer, with a one at that index; all zeros if it is out of bounds.

    >>> one_hot(jnp.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)

    Raises:
      ConcretizationTypeError: when `num_classes` is traced.
    """
    num_classes = static_index(num_classes, "The error arose in jax.nn.one_hot argument "
                               "`num_classes`.")
    dtype = dtypes.check_user_dtype_supported(dtype, "one_hot")
    x = jnp.asarray(x)
    if not dtypes.issubdtype(x.dtype, np.integer):
        errors.warn(f"jax.nn.one_hot input should be integer-typed; got dtype={x.dtype}",
                    DeprecationWarning)
    axis = canonical_axis(axis, x.ndim + 1)
    shape = [num_classes if d == axis else 1 for d in range(x.ndim + 1)]
    classes = lax.broadcasted_iota(dtypes.to_numeric_dtype(x.dtype), shape, axis)
    is_class = lax.expand_dims(x, (axis,)) == classes
    return lax.convert_element_type(is_class, dtype or dtypes.default_float_dtype())
