"""Initial weights: functions of (key, shape, dtype), and functions that return such functions.

Builds on `numpy`, `random`.  Chapter 00 starts its network with one of them.
In JAX: `jax/_src/nn/initializers.py`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from minijax import dtypes, numpy as jnp, random
from minijax.core import Array
from minijax.numpy.arguments import ArrayLike, documented
from minijax.placement.out_sharding import exported as _exported, with_out_sharding
from minijax.util.exports import export_all as _export_all

AxisNumbers = int | Sequence[int]


@runtime_checkable
class Initializer(Protocol):
    """A function that makes initial weights.

    >>> isinstance(zeros, Initializer)
    True
    """

    def __call__(self, key: Any, shape: Sequence[int], dtype: Any = None) -> Array:
        """Weights of this shape and dtype, drawn with a key."""


def _dtype(dtype: Any) -> Any:
    return dtypes.canonicalize_dtype(float if dtype is None else dtype)


def _initializer(draw: Callable[[Any, Sequence[int], Any], Array], dtype: Any) -> Initializer:
    """An initializer with this default dtype, from a function that takes a canonical one."""
    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Array:
        return with_out_sharding(out_sharding, draw, key, shape, _dtype(dtype))
    return init


def zeros(key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Array:
    """All zeros.

    >>> zeros(None, (2,))
    Array([0., 0.], dtype=float32)
    """
    return jnp.zeros(shape, _dtype(dtype))


def ones(key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Array:
    """All ones.

    >>> ones(None, (2,))
    Array([1., 1.], dtype=float32)
    """
    return jnp.ones(shape, _dtype(dtype))


def constant(value: ArrayLike, dtype: Any = None) -> Initializer:
    """All of one value.

    >>> constant(7)(None, (2,))
    Array([7., 7.], dtype=float32)
    """
    return _initializer(lambda key, shape, dtype: jnp.full(shape, value, dtype), dtype)


def _scaled(draw: Callable[..., Array], scale: Any, dtype: Any) -> Initializer:
    return _initializer(
        lambda key, shape, dtype: draw(key, shape, dtype) * jnp.array(scale, dtype), dtype)


def uniform(scale: float = 1e-2, dtype: Any = None) -> Initializer:
    """Uniform numbers from 0 to `scale`.

    >>> uniform()(random.key(0), (3,)).shape
    (3,)
    """
    return _scaled(random.uniform, scale, dtype)


def normal(stddev: float = 1e-2, dtype: Any = None) -> Initializer:
    """Normal numbers with this standard deviation.

    >>> normal()(random.key(0), (3,)).shape
    (3,)
    """
    return _scaled(random.normal, stddev, dtype)


def truncated_normal(stddev: float = 1e-2, dtype: Any = None, lower: float = -2.0,
                     upper: float = 2.0) -> Initializer:
    """Normal numbers between two limits, which count in standard deviations.

    >>> truncated_normal()(random.key(0), (3,)).shape
    (3,)
    """
    return _scaled(lambda key, *rest: random.truncated_normal(key, lower, upper, *rest), stddev,
                   dtype)


def _sizes(shape: Sequence[int], axes: AxisNumbers) -> int:
    return math.prod(shape[axis] for axis in ((axes,) if isinstance(axes, int) else axes))


def _fans(shape: Sequence[int], in_axis: AxisNumbers, out_axis: AxisNumbers,
          batch_axis: AxisNumbers) -> tuple[float, float]:
    """The number of inputs of each output, and of outputs of each input."""
    if len(shape) <= 1 and in_axis == -2:
        raise ValueError("Can't compute input and output sizes of a "
                         f"{len(shape)}-dimensional weights tensor with default in_axis. Must be "
                         "at least 2D or specify in_axis explicitly.")
    inputs, outputs = _sizes(shape, in_axis), _sizes(shape, out_axis)
    window_size = math.prod(shape) / inputs / outputs / _sizes(shape, batch_axis)
    return inputs * window_size, outputs * window_size


def variance_scaling(scale: float, mode: str, distribution: str, in_axis: AxisNumbers = -2,
                     out_axis: AxisNumbers = -1, batch_axis: AxisNumbers = (),
                     dtype: Any = None) -> Initializer:
    """Random numbers whose variance is `scale` divided by a number of inputs or outputs.

    >>> variance_scaling(1.0, "fan_in", "normal")(random.key(0), (3, 2)).shape
    (3, 2)

    Args:
      mode: "fan_in" counts inputs, "fan_out" outputs; "fan_avg" is their mean, and "fan_geo_avg"
        their geometric mean.
      distribution: "truncated_normal", "normal" or "uniform".
    """
    def draw(key: Any, shape: Sequence[int], dtype: Any) -> Array:
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2,
                "fan_geo_avg": math.sqrt(fan_in * fan_out)}
        if mode not in fans:
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
        return _drawn(distribution, key, shape, dtype, jnp.array(scale / fans[mode], dtype))
    return _initializer(draw, dtype)


def _drawn(distribution: str, key: Any, shape: Sequence[int], dtype: Any, variance: Any) -> Array:
    is_complex = dtypes.issubdtype(dtype, np.complexfloating)
    if distribution == "truncated_normal":
        # the standard deviation of a normal number that is truncated at two of its own
        truncated = 0.95311164380491208 if is_complex else 0.87962566103423978
        stddev = jnp.sqrt(variance) / jnp.array(truncated, dtype)
        if is_complex:
            p = 1 - math.exp(-2 ** 2)  # the probability of a number so small
            return _complex(key, shape, dtype, lambda u: -jnp.log1p(-p * u)) * stddev
        return random.truncated_normal(key, -2, 2, shape, dtype) * stddev
    if distribution == "normal":
        return random.normal(key, shape, dtype) * jnp.sqrt(variance)
    if distribution == "uniform" and is_complex:
        return _complex(key, shape, dtype, lambda u: u) * jnp.sqrt(2 * variance)
    if distribution == "uniform":
        return random.uniform(key, shape, dtype, -1) * jnp.sqrt(3 * variance)
    raise ValueError(f"invalid distribution for variance scaling initializer: {distribution}")


def _complex(key: Any, shape: Sequence[int], dtype: Any, square: Callable[[Array], Array]) -> Array:
    """Complex numbers of uniform angle, whose squared radius is a function of uniform numbers."""
    radius, angle = (random.uniform(k, shape, dtypes.to_floating_dtype(dtype))
                     for k in random.split(key))
    return jnp.sqrt(square(radius)).astype(dtype) * jnp.exp(2j * math.pi * angle).astype(dtype)


def _named(name: str, author: str, scale: float, mode: str, distribution: str) -> Callable:
    """One of the well-known choices of `variance_scaling`."""
    def make(in_axis: AxisNumbers = -2, out_axis: AxisNumbers = -1,
             batch_axis: AxisNumbers = (), dtype: Any = None) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    choice = f"``variance_scaling({scale}, {mode!r}, {distribution!r})``"
    return documented(make, name, f"{author}'s choice: {choice}.",
                      f"{name}()(random.key(0), (3, 2)).shape -> (3, 2)")


glorot_uniform = _named("glorot_uniform", "Glorot and Bengio", 1.0, "fan_avg", "uniform")
glorot_normal = _named("glorot_normal", "Glorot and Bengio", 1.0, "fan_avg", "truncated_normal")
lecun_uniform = _named("lecun_uniform", "LeCun", 1.0, "fan_in", "uniform")
lecun_normal = _named("lecun_normal", "LeCun", 1.0, "fan_in", "truncated_normal")
he_uniform = _named("he_uniform", "He", 2.0, "fan_in", "uniform")
he_normal = _named("he_normal", "He", 2.0, "fan_in", "truncated_normal")
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Weights that preserve norms: an orthonormal matrix, whose columns are `column_axis`.

    >>> orthogonal()(random.key(0), (3, 2)).shape
    (3, 2)
    """
    def draw(key: Any, shape: Sequence[int], dtype: Any) -> Array:
        if len(shape) < 2:
            raise ValueError("orthogonal initializer requires at least a 2D shape")
        if 0 in shape:
            return jnp.zeros(shape, dtype)
        columns = shape[column_axis]
        matrix = random.orthogonal(key, math.prod(shape) // columns, (), dtype, columns)
        return jnp.array(scale, dtype) * jnp.moveaxis(
            matrix.reshape(*np.delete(shape, column_axis), columns), -1, column_axis)
    return _initializer(draw, dtype)


def delta_orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Weights of a convolution that preserves norms: `orthogonal` in the middle, zeros around it.

    >>> delta_orthogonal()(random.key(0), (3, 2, 4)).shape
    (3, 2, 4)
    """
    def draw(key: Any, shape: Sequence[int], dtype: Any) -> Array:
        if len(shape) not in (3, 4, 5):
            raise ValueError("Delta orthogonal initializer requires a 3D, 4D or 5D shape.")
        if shape[-1] < shape[-2]:
            raise ValueError("`fan_in` must be less or equal than `fan_out`. ")
        middle = tuple((size - 1) // 2 for size in shape[:-2])
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        return jnp.zeros(shape, dtype).at[middle].set(matrix)
    return _initializer(draw, dtype)


_export_all(globals(), _exported(__name__))
