"""Continuous distributions, each a formula over uniform random bits.

Builds on `keys`, `lax`, `jit`.  Chapter 16, *Random numbers*.
In JAX: `jax/_src/random/core.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, errors, lax
from minijax.core import Array
from minijax.transforms.jit import jit
from minijax.primitives.axes import canonical_shape
from minijax.primitives.keys import random_bits_p
from minijax.primitives.threefry import fused_multiply_add
from minijax.random.keys import apply, check_key, split

Shape = tuple[int, ...]


def compiled(*static: str) -> Callable[[Callable], Any]:
    """Compile a sampler; the public functions only check arguments.

    Args:
      static: its static parameters; it is compiled for each value of them.
    """
    return jit(static_argnames=static)


def checked(name: str, key: Any, shape: Any, dtype: Any, kind: Any = np.floating,
            *param_shapes: Shape) -> tuple[Array, Shape, np.dtype]:
    """The arguments of the sampler `name`: one typed key, a shape, and a dtype of a kind.

    The parameters must broadcast to the shape, which for None is their own.

    Raises:
      TypeError, ValueError: for an invalid key or shape, or a dtype of another kind.
    """
    sizes = check_shape(name, shape, *param_shapes) if param_shapes else canonical_shape(shape)
    words, default = _KINDS[kind]
    dtype = supported(dtype, default())
    if not dtypes.issubdtype(dtype, kind):
        raise ValueError(f"dtype argument to `{name}` must be {words} dtype, got {dtype}")
    return check_key(name, key), sizes, dtype


# Of each kind of dtypes that a sampler takes the name, and the default.
_KINDS: dict[Any, tuple[str, Callable[[], np.dtype]]] = {
    np.floating: ("a float", dtypes.default_float_dtype),
    np.inexact: ("a float or complex", dtypes.default_float_dtype),
    np.integer: ("an int", dtypes.default_int_dtype),
    np.unsignedinteger: ("an unsigned int", dtypes.default_uint_dtype)}


def supported(dtype: Any, default: np.dtype) -> np.dtype:
    """The canonical dtype for an argument `dtype`; None is the default."""
    if dtype is None:
        return default
    is_python = isinstance(dtype, type) and not issubclass(dtype, np.generic)
    return np.dtype(dtypes.check_user_dtype_supported(dtype if is_python else np.dtype(dtype)))


def check_shape(name: str, shape: Any, *param_shapes: Shape) -> Shape:
    """The shape of the result, which the parameters must broadcast to; None is their own.

    Raises:
      ValueError: when they do not.
    """
    if shape is None:
        return lax.broadcast_shapes(*param_shapes)
    sizes = canonical_shape(shape)
    joint = lax.broadcast_shapes(sizes, *param_shapes)
    if joint != sizes:
        raise ValueError(f"{name} parameter shapes must be broadcast-compatible with shape "
                         "argument, and the result of broadcasting the shapes must equal the shape "
                         f"argument, but got result {joint} for shape argument {sizes}.")
    return sizes


def broadcast_to(x: Array, shape: Shape) -> Array:
    """`x` with the axes of `shape`, of which its own are the last."""
    return lax.broadcast_in_dim(x, shape, range(len(shape) - x.ndim, len(shape)))


def refuse_wider(name: str, dtype: np.dtype, *parameters: Any) -> None:
    """Check that the dtype can hold the parameters of a sampler.

    Raises:
      TypePromotionError: for the first parameter of a wider dtype.
    """
    for x in parameters:
        if not dtypes.safe_to_cast(x, dtype):
            raise errors.TypePromotionError(
                f"In arguments to {name}, cannot safely cast argument of type {dtypes.dtype(x)} "
                f"to {dtype}. Pass a wider dtype, or round it yourself: x.astype('{dtype}')")


# ── Bits and uniform numbers ─────────────────────────────────────────────────────────────────

def bits(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Uniformly distributed unsigned integers, all their bits random.

    Args:
      key: a key, typed or raw.
      shape: the shape of the result.
      dtype: uint8, uint16, uint32 or uint64; None is the default unsigned integer.
      out_sharding: accepted for compatibility; the result is on one device.

    Raises:
      ValueError: for another dtype.

    >>> from minijax.random import key
    >>> bits(key(0), (2,))
    Array([ 928981903, 3453687069], dtype=uint32)
    """
    typed, sizes, dtype = checked("bits", key, shape, dtype, np.unsignedinteger)
    return apply(random_bits_p, typed, bit_width=dtype.itemsize * 8, shape=sizes)


def uniform(key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0,
            *, out_sharding: Any = None) -> Array:
    """Numbers from minval up to, but not including, maxval, all equally likely.

    Args:
      key: a key, typed or raw.
      shape: the shape of the result.
      dtype: a float dtype.
      minval, maxval: numbers, or arrays that broadcast to `shape`.
      out_sharding: accepted for compatibility; the result is on one device.

    Raises:
      ValueError: for a dtype that is no float.

    >>> from minijax.random import key
    >>> uniform(key(0), (2,))
    Array([0.21629536, 0.8041241 ], dtype=float32)
    """
    return _uniform(*checked("uniform", key, shape, dtype), minval, maxval)


@compiled("shape", "dtype")
def _uniform(key: Array, shape: Shape, dtype: np.dtype, minval: Any, maxval: Any) -> Array:
    low, high = (lax.broadcast_to_rank(lax.convert_element_type(bound, dtype), len(shape))
                 for bound in (minval, maxval))
    scaled = fused_multiply_add(unit_interval(key, shape, dtype), high - low, low)
    return lax.max(low, lax.reshape(scaled, shape))


def unit_interval(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    """Numbers in [0, 1): random bits as the fraction of a number in [1, 2), less 1."""
    info = dtypes.finfo(dtype)
    drawn = 8 if info.nmant < 8 else info.bits
    word = np.dtype(f"uint{info.bits}")
    words = lax.convert_element_type(bits(key, shape, f"uint{drawn}"), word)
    fraction = lax.shift_right_logical(words, word.type(drawn - info.nmant))
    one = dtype.type(1)
    return lax.bitcast_convert_type(fraction | one.view(word), dtype) - one


# ── The normal distribution ──────────────────────────────────────────────────────────────────

def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Standard normal numbers: mean 0, variance 1.

    Args:
      key: a key, typed or raw.
      shape: the shape of the result.
      dtype: a float dtype, or a complex one, whose two parts share the variance.
      out_sharding: accepted for compatibility; the result is on one device.

    Raises:
      ValueError: for another dtype.

    >>> from minijax.random import key
    >>> normal(key(0), (1,))
    Array([-0.20584226], dtype=float32)
    """
    return _normal(*checked("normal", key, shape, dtype, np.inexact))


@compiled("shape", "dtype")
def _normal(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    if not dtypes.issubdtype(dtype, np.complexfloating):
        return _normal_real(key, shape, dtype)
    part = dtypes.to_floating_dtype(dtype)
    real, imaginary = (_normal_real(k, shape, part) for k in split(key))
    root = part.type(np.sqrt(2))
    return lax.complex(real / root, imaginary / root)


@compiled("shape", "dtype")
def _normal_real(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    uniforms = _uniform(key, shape, dtype, after_minus_one(dtype), dtype.type(1))
    return scaled_erf_inv(uniforms, dtype)


def after_minus_one(dtype: np.dtype) -> Any:
    """The least number above -1, so that the open interval (-1, 1) is drawn from."""
    return dtype.type(-1 + float(dtypes.finfo(dtype).epsneg))


def scaled_erf_inv(x: Array, dtype: np.dtype) -> Array:
    """Numbers in (-1, 1) to standard normal ones: the inverse of their distribution."""
    return dtype.type(np.sqrt(2)) * lax.erf_inv(x)


# ── Gumbel's distribution ────────────────────────────────────────────────────────────────────

def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: str | None = None, *,
           out_sharding: Any = None) -> Array:
    """Numbers whose distribution function is exp(-exp(-x)); `categorical` adds them to logits.

    Args:
      key: a key, typed or raw.
      shape: the shape of the result.
      dtype: a float dtype.
      mode: "low" (the default) draws one uniform number each; "high" draws two, for a finer
        upper tail; "highest" makes one float32 of 64 bits, for fine tails at both ends.
      out_sharding: accepted for compatibility; the result is on one device.

    Raises:
      ValueError: for a dtype that is no float, or another mode.

    >>> from minijax.random import key
    >>> gumbel(key(0), (3,)).shape
    (3,)
    """
    if mode not in (None, "low", "high", "highest"):
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    return _gumbel(*checked("gumbel", key, shape, dtype), mode or "low")


@compiled("shape", "dtype", "mode")
def _gumbel(key: Array, shape: Shape, dtype: np.dtype, mode: str) -> Array:
    if mode == "low":
        u = _uniform(key, shape, dtype, minval=dtypes.finfo(dtype).tiny, maxval=1.0)
        return -lax.log(-lax.log(u))
    if mode == "highest" and dtype == np.float32:
        return _gumbel_of_64_bits(key, shape)
    u = _uniform_with_fine_tail(key, shape, dtype)
    return -lax.log(-lax.log1p(-u))


def _gumbel_of_64_bits(key: Array, shape: Shape) -> Array:
    """From the distance of a uniform number to the nearer end of (0, 1), kept to 24 bits."""
    upper, lower = lax.unstack(apply(random_bits_p, key, bit_width=32, shape=(2, *shape)))
    is_low = upper < np.uint32(1 << 31)
    # the distance to 1, in units of 2^-64
    beyond = ~upper + lax.convert_element_type(lower == 0, np.uint32)
    x = _fraction(lax.select(is_low, upper, beyond), lax.select(is_low, lower, ~lower + 1))
    return -lax.log(-lax.select(is_low, lax.log1p(-x), lax.log(x)))


def _fraction(upper: Array, lower: Array) -> Array:
    """The float32 of ``(upper · 2^32 + lower) / 2^64``, rounded towards zero."""
    zeros, more = lax.clz(upper), lax.clz(lower)
    is_small = zeros == 32
    leading = lax.select(is_small, lower << more,
                         upper << zeros | lax.shift_right_logical(lower, 32 - zeros))
    exponent = 126 - zeros - lax.select(is_small, more, lax.full_like(more, 0))
    digits = lax.shift_right_logical(leading, np.uint32(8)) & np.uint32((1 << 23) - 1)
    return lax.bitcast_convert_type(exponent << 23 | digits, np.float32)


def _uniform_with_fine_tail(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    """Uniform numbers in (0, 1), those below a half with twice as many random bits."""
    upper, lower = _uniform(key, (2, *shape), dtype, minval=0.0, maxval=1.0)
    info = dtypes.finfo(dtype)
    return lax.select(upper >= 0.5, upper, fused_multiply_add(info.eps, lower, upper) + info.tiny)
