"""The public keys: typed arrays of keys, or raw words as `PRNGKey` returns them.

Builds on `primitives/keys.py`.  Chapter 16, *Random numbers*.  In JAX: `jax/_src/random/core.py`.
"""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import config, core, dtypes, errors
from minijax.core import Array, Primitive, refuse
from minijax.random import generators
from minijax.transforms.jit import jit
from minijax.primitives.convert import converted
from minijax.primitives.shape import reshape
from minijax.primitives.keys import (random_bits_p, random_clone_p, random_fold_in_p,
                                     random_seed_p, random_split_p, random_unwrap_p, random_wrap_p)

LEGACY_KEY = (
    "Legacy uint32 key array passed as key to jax.random function. Please create keys using "
    "jax.random.key(). If use of a raw key array was intended, set jax_legacy_prng_key=\"allow\".")
ASSUMED_KEY = ("Raw arrays as random keys to jax.random functions are deprecated. "
               "Assuming valid threefry2x32 key for now.")


def resolve_impl(spec: Any) -> dtypes.KeyType:
    """The key dtype of a generator: of its name, of a key dtype, or of the flag's name for None.

    Raises:
      ValueError: for an unknown name.
      TypeError: for another type.
    """
    name = config.default_prng_impl.value if spec is None else getattr(spec, "impl", spec)
    if hasattr(name, "key_type"):  # a custom generator
        return name.key_type
    if not isinstance(name, str):
        raise TypeError(f"unrecognized type {type(spec)} for specifying PRNG implementation.")
    return dtypes.key_dtype(name)


def _chosen(impl: Any, dtype: Any) -> dtypes.KeyType:
    """The key dtype, which either of two arguments names.

    Raises:
      ValueError: where both do.
    """
    if impl is not None and dtype is not None:
        raise ValueError("Cannot specify both `impl` and `dtype`.")
    return resolve_impl(dtype if impl is None else impl)


def is_typed(x: Any) -> bool:
    """Whether `x` is an array of typed keys."""
    return isinstance(x, Array) and core.has_key_dtype(x.aval)


# ── Words: in a primitive, and in memory, those of a key form a vector ────────────────────────

def wrapped(words: Array, impl: dtypes.KeyType) -> Array:
    """Keys of words in the shape of their generator."""
    shape = words.shape[:words.ndim - len(impl.key_shape)] + impl.shape
    return random_wrap_p.bind(reshape(words, shape), impl=impl)


def unwrapped(keys: Array) -> Array:
    """The words of keys in the shape of their generator."""
    return reshape(random_unwrap_p.bind(keys), keys.shape + keys.dtype.key_shape)


# ── Making keys ──────────────────────────────────────────────────────────────────────────────

def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Array:
    """A typed random key from a seed.

    Args:
      seed: an integer of at most 64 bits; without 64-bit types, its lower 32 bits count.
      impl: the name of the generator: "threefry2x32", "rbg", "unsafe_rbg", "threefry4x32",
        "philox2x32" or "philox4x32".
      dtype: the dtype of the key, as another way to choose the generator.

    Returns:
      A key: a scalar of dtype ``key<fry>``; of another generator, with its tag.

    Raises:
      TypeError: when the seed is no integer scalar.
      ValueError: for an unknown generator, or for both `impl` and `dtype`.

    >>> key_data(key(3))
    Array([0, 3], dtype=uint32)
    """
    return seeded("key", seed, _chosen(impl, dtype))


def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """A raw random key from a seed: its words, uint32 of shape (2,).

    Under the flag `enable_custom_prng`, a typed key.

    >>> PRNGKey(3)
    Array([0, 3], dtype=uint32)
    """
    return in_form_of(seeded("PRNGKey", seed, resolve_impl(impl)), seed)


def seeded(name: str, seed: Any, impl: dtypes.KeyType) -> Array:
    """A typed key for a seed, the argument of the function `name`."""
    refuse((is_typed(seed), f"{name} accepts a scalar seed, but was given a PRNG key."),
           (np.ndim(seed) > 0, f"{name} accepts a scalar seed, but was given an array of shape "
            f"{np.shape(seed)} != (). Use jax.vmap for batching"))
    # Through 64 bits, so that hashes and times serve as seeds without 64-bit types, too.
    if isinstance(seed, int):
        seed = np.int64(seed).astype(dtypes.default_int_dtype())
    value: Any = core.as_value(seed)
    if not dtypes.issubdtype(value.dtype, np.integer):
        raise TypeError(f"PRNG key seed must be an integer; got {seed!r}")
    if offset := config.random_seed_offset.value:
        value = value + np.asarray(offset).astype(value.dtype)
    if custom := generators.functions(impl):
        return wrapped(custom.seed(value), impl)
    return random_seed_p.bind(value, impl=impl)


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Array:
    """Typed keys from their words.

    Args:
      key_bits_array: uint32, of shape ``(..., 2)``.
      impl, dtype: as for `key`.

    Returns:
      Keys of shape ``(...)``.

    Raises:
      TypeError: for another shape or dtype.

    >>> key_data(wrap_key_data(PRNGKey(3)))
    Array([0, 3], dtype=uint32)
    """
    impl, words = _chosen(impl, dtype), key_bits_array
    shape = impl.key_shape
    problem = "JAX encountered invalid PRNG key data: expected key_data"
    if not all(hasattr(words, name) for name in ("ndim", "shape", "dtype")):
        raise errors.with_cure(
            TypeError(f"{problem} to have ndim, shape, and dtype attributes. Got {words}"),
            "To make a key from a seed, call jax.random.key(0).")
    refuse((words.ndim < 1, f"{problem}.ndim >= 1; got ndim={words.ndim}"),
           (tuple(words.shape[-len(shape):]) != shape, f"{problem}.shape to end with {shape}; got "
            f"shape={words.shape} for impl={impl.tag}"),
           (words.dtype not in (np.uint32, dtypes.float0), f"{problem}.dtype = uint32; got "
            f"dtype={words.dtype}"))
    return wrapped(words, impl)


# ── Keys as arguments and as results ─────────────────────────────────────────────────────────

def check_key(name: str, key: Any, allow_batched: bool = False) -> Array:
    """The typed key of the argument of the function `name`, which is typed or raw words.

    Raises:
      TypeError: for another type.
      ValueError: for several keys in place of one.
    """
    typed = key if is_typed(key) else _from_raw_words(key)
    if typed.ndim and not allow_batched:
        raise ValueError(f"{name} accepts a single key, but was given a key array of shape "
                         f"{np.shape(key)} != (). Use jax.vmap for batching.")
    return typed


def _from_raw_words(key: Any) -> Array:
    if not isinstance(key, Array | np.ndarray | np.generic | int | float | complex | str):
        raise TypeError(f"unexpected PRNG key type {type(key)}")
    typed, mode = wrap_key_data(key), config.legacy_prng_key.value
    if config.enable_custom_prng.value:
        errors.warn(ASSUMED_KEY, FutureWarning)
    elif mode == "error":
        raise ValueError(LEGACY_KEY)
    elif mode == "warn":
        errors.warn(LEGACY_KEY)
    return typed


def in_form_of(keys: Array, like: Any) -> Array:
    """Keys in the form of another key: typed, or raw words."""
    typed = is_typed(like) or config.enable_custom_prng.value
    return keys if typed else unwrapped(keys)


@jit(static_argnames=("primitive", "params"))
def _compiled(*args: Array, primitive: Primitive, params: tuple) -> Array:
    return primitive.bind(*args, **dict(params))


def apply(primitive: Primitive, key: Array, *args: Any, **params: Any) -> Array:
    """Bind a primitive to a key; outside of all transformations compiled, as Threefry is slow.

    Keys of other generators call their function of the primitive's name.
    """
    if custom := getattr(generators.functions(key.dtype), primitive.name, None):
        out = custom(unwrapped(key), *args, *params.values())
        return out if primitive is random_bits_p else wrapped(out, key.dtype)
    args = (key, *args)
    if isinstance(core.current_trace.get(), core.EvalTrace):
        return _compiled(*args, primitive=primitive, params=tuple(params.items()))
    return primitive.bind(*args, **params)


# ── Using keys ───────────────────────────────────────────────────────────────────────────────

def split(key: Any, num: int | Sequence[int] = 2) -> Array:
    """New keys from a key, which must not be used again.

    Args:
      key: one key, typed or raw.
      num: how many, or the shape of the array of keys.

    Returns:
      Keys of shape ``(num,)``; raw ones as uint32 of shape ``(num, 2)``.

    >>> key_data(split(key(0)))
    Array([[4146024105,  967050713],
           [2718843009, 1272950319]], dtype=uint32)
    """
    shape = tuple(map(operator.index, num if isinstance(num, tuple | list) else (num,)))
    return in_form_of(apply(random_split_p, check_key("split", key), shape=shape), key)


def fold_in(key: Any, data: Any) -> Array:
    """A new key from a key and a number, such as the number of a step.

    Args:
      key: one key, typed or raw.
      data: an integer from 0 up to 2**32 - 1.

    Raises:
      TypeError: when `data` is an array with axes.
      OverflowError: when a Python integer is out of range.

    >>> key_data(fold_in(key(0), 7))
    Array([2716826189,  292468403], dtype=uint32)
    """
    typed = check_key("fold_in", key)
    if np.ndim(data):
        raise TypeError("fold_in accepts a scalar, but was given an array of"
                        f"shape {np.shape(data)} != (). Use jax.vmap for batching.")
    is_array = isinstance(data, Array | np.ndarray | np.generic)
    word = converted(data, np.dtype(np.uint32), False) if is_array else np.uint32(data)
    return in_form_of(apply(random_fold_in_p, typed, word), key)


def clone(key: Any) -> Array:
    """The same key, of which `jax.debug_key_reuse` permits another use.

    >>> key_data(clone(key(3)))
    Array([0, 3], dtype=uint32)
    """
    return random_clone_p.bind(key) if is_typed(key) else core.as_value(key)


def key_data(keys: Any) -> Array:
    """The words of keys: uint32 with a trailing axis of two.

    >>> key_data(key(3))
    Array([0, 3], dtype=uint32)
    """
    return unwrapped(check_key("key_data", keys, allow_batched=True))


def key_impl(keys: Any) -> str:
    """The name of the generator that keys are for.

    >>> key_impl(key(0))
    'threefry2x32'
    """
    return check_key("key_impl", keys, allow_batched=True).dtype.impl


def key_dtype(impl_spec: Any = None) -> dtypes.KeyType:
    """The dtype of a generator's typed keys.

    >>> key_dtype()
    key<fry>
    """
    return resolve_impl(impl_spec)
