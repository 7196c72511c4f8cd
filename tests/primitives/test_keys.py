"""The primitives over keys, word for word as in JAX, in both layouts."""

import contextlib

import jax
import numpy as np
import pytest

import minijax
from minijax import config, core, dtypes
from minijax.core import ArrayImpl, ShapedArray
from minijax.primitives import keys
from minijax.primitives.keys import (random_bits_p, random_clone_p, random_fold_in_p,
                                     random_seed_p, random_split_p, random_unwrap_p,
                                     random_wrap_p)

FRY = dtypes.key_dtype("threefry2x32")
SHAPES = [(), (2,), (3,), (3, 5), (2, 0), (1001,)]
ALL = [p for p in vars(keys).values() if isinstance(p, core.Primitive) and "random" in p.name]


@contextlib.contextmanager
def layout(partitionable, x64=True):
    """Both libraries with one layout of counters, and 64-bit types."""
    with (config.threefry_partitionable(partitionable), config.enable_x64(x64),
          jax.threefry_partitionable(partitionable), jax.enable_x64(x64)):
        yield


both_layouts = pytest.mark.parametrize("partitionable", [False, True],
                                       ids=["original", "partitionable"])


def typed(words):
    words = np.array(words, np.uint32)
    return ArrayImpl(words, ShapedArray(words.shape[:-1], FRY))


def words_of(x):
    return x._buffer


def assert_same(ours, theirs):
    ours, theirs = words_of(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("seed", [0, 1, -1, 2**40, -2**40 + 3, 2**63 - 1])
def test_seeds_become_the_words_of_jax(seed):
    with layout(False):
        ours = random_seed_p.bind(np.int64(seed), impl=FRY)
        assert_same(ours, jax.random.key_data(jax.random.key(seed)))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_short_seeds_are_extended_by_their_sign(dtype):
    seed = np.array(-3).astype(dtype)[()]
    ours = random_seed_p.bind(seed, impl=FRY)
    assert_same(ours, jax.random.key_data(jax.random.key(seed)))


@both_layouts
@pytest.mark.parametrize("shape", [(2,), (3,), (2, 3), (0,), (), (7, 1, 3)])
def test_split_gives_the_keys_of_jax(partitionable, shape):
    with layout(partitionable):
        ours = random_split_p.bind(typed([0, 42]), shape=shape)
        theirs = jax.random.split(jax.random.key(42), shape)
        assert_same(ours, jax.random.key_data(theirs))


@both_layouts
@pytest.mark.parametrize("bit_width", [8, 16, 32, 64])
@pytest.mark.parametrize("shape", SHAPES)
def test_bits_are_those_of_jax(partitionable, bit_width, shape):
    with layout(partitionable):
        ours = random_bits_p.bind(typed([0, 42]), bit_width=bit_width, shape=shape)
        assert_same(ours, jax.random.bits(jax.random.key(42), shape, f"uint{bit_width}"))


@both_layouts
@pytest.mark.parametrize("data", [0, 1, 2**32 - 1])
def test_fold_in_gives_the_key_of_jax(partitionable, data):
    with layout(partitionable):
        ours = random_fold_in_p.bind(typed([0, 42]), np.uint32(data))
        theirs = jax.random.fold_in(jax.random.key(42), data)
        assert_same(ours, jax.random.key_data(theirs))


@both_layouts
@pytest.mark.parametrize("bit_width", [8, 32, 64])
def test_many_keys_at_once_give_what_each_gives(partitionable, bit_width):
    many = typed(np.arange(12).reshape(2, 3, 2))
    with layout(partitionable):
        together = random_bits_p.bind(many, bit_width=bit_width, shape=(5,))
        split = random_split_p.bind(many, shape=(2, 2))
        for i in np.ndindex(2, 3):
            one = typed(words_of(many)[i])
            assert_same(random_bits_p.bind(one, bit_width=bit_width, shape=(5,)),
                        words_of(together)[i])
            assert_same(random_split_p.bind(one, shape=(2, 2)), words_of(split)[i])


@pytest.mark.parametrize("primitive", ALL, ids=str)
def test_compiled_programs_give_the_same_words(primitive):
    with layout(False):
        for args, params in primitive.examples():
            def run(*xs, params=params):
                return primitive.bind(*xs, **params)
            assert_same(minijax.jit(run)(*args), words_of(run(*args)))


@pytest.mark.parametrize("primitive", ALL, ids=str)
@pytest.mark.parametrize("dim", [0, 1])
def test_batching_gives_what_each_member_gives(primitive, dim):
    words = np.arange(24, dtype=np.uint32).reshape(4, 3, 2) * np.uint32(2654435769)
    whole, params = np.moveaxis(words, 0, dim), primitive.examples()[0].params
    rest = [np.int32([7, 8, 9])] if primitive is random_fold_in_p else []
    as_given = np.asarray if primitive in (random_seed_p, random_wrap_p) else typed
    with layout(False):
        found = minijax.vmap(lambda x, *r: primitive.bind(x, *r, **params),
                             in_axes=(dim,) + (None,) * len(rest))(as_given(whole), *rest)
        for i in range(4):
            one = primitive.bind(as_given(words[i]), *rest, **params)
            assert_same(one, words_of(found)[i])


def test_keys_are_wrapped_and_unwrapped_without_a_change():
    words = np.uint32([[1, 2], [3, 4], [5, 6]])
    wrapped = random_wrap_p.bind(words, impl=FRY)
    assert wrapped.shape == (3,)
    assert wrapped.dtype == FRY
    assert_same(random_unwrap_p.bind(random_clone_p.bind(wrapped)), words)


@pytest.mark.parametrize("primitive", [random_split_p, random_unwrap_p, random_clone_p,
                                       random_bits_p], ids=str)
def test_what_wants_keys_refuses_words(primitive):
    params = {random_split_p: {"shape": (2,)},
              random_bits_p: {"shape": (), "bit_width": 32}}.get(primitive, {})
    with pytest.raises(TypeError, match="takes key array operand, got keys.dtype=dtype"):
        primitive.bind(np.uint32([0, 0]), **params)


@pytest.mark.parametrize("words", [np.uint32([0, 0, 0]), np.int32([0, 0]), np.uint32(0)])
def test_what_are_no_words_are_not_wrapped(words):
    with pytest.raises(TypeError, match="random_wrap must get uint32 words"):
        random_wrap_p.bind(words, impl=FRY)


def test_a_negative_shape_is_refused():
    with pytest.raises(TypeError, match="nonnegative"):
        random_split_p.bind(typed([0, 0]), shape=(-1,))
    with pytest.raises(TypeError, match="nonnegative"):
        random_bits_p.bind(typed([0, 0]), bit_width=32, shape=(-1,))


@pytest.mark.parametrize("primitive", ALL, ids=str)
def test_transposing_says_why_it_cannot(primitive):
    with pytest.raises(NotImplementedError, match="keys and random bits have no tangents"):
        primitive.rule("transpose")
