"""Generators of one's own, XLA's, and Threefry, beside JAX."""

import importlib
import pickle

import jax
import numpy as np
import pytest

import minijax

BOTH = [minijax, jax]


def extend(lib, name):
    return importlib.import_module(f"{lib.__name__}.extend.{name}")


def outcome(f):
    try:
        return f()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def generator(lib, key_shape):
    """A generator whose words are easy to follow: three or more, each a multiple."""
    jnp, words = lib.numpy, int(np.prod(key_shape))
    return extend(lib, "random").define_prng_impl(
        key_shape=key_shape, name="counting", tag="count",
        seed=lambda seed: seed.astype(np.uint32) * np.arange(
            1, words + 1, dtype=np.uint32).reshape(key_shape),
        split=lambda key, shape: key + jnp.arange(
            np.prod(shape) * words, dtype=np.uint32).reshape(*shape, *key_shape),
        random_bits=lambda key, width, shape: (
            key.sum() * np.uint32(2654435761) + jnp.arange(np.prod(shape), dtype=np.uint32)
            * np.uint32(40503) << 7).astype(f"uint{width}").reshape(shape),
        fold_in=lambda key, data: key * 3 + data)


def drawn(lib, key_shape):
    random, impl = lib.random, generator(lib, key_shape)
    yield str(impl), repr(impl)
    key = random.key(5, impl=impl)
    yield str(key.dtype), str(key), str(random.key_impl(key))
    yield random.key_data(random.split(key, (2, 2)))
    yield random.key_data(random.fold_in(key, 7))
    yield random.PRNGKey(5, impl=impl)
    for width in (8, 16, 32):
        yield random.bits(key, (2, 3), f"uint{width}")
    yield random.uniform(key, (4,))
    yield lib.vmap(lambda key: random.normal(key, (2,)))(random.split(key, 3))
    yield lib.jit(lambda key: random.randint(key, (3,), 0, 100))(key)
    yield random.permutation(key, 7)
    yield lib.lax.scan(lambda key, _: (random.fold_in(key, 1), random.bits(key)), key, None, 3)[1]
    yield random.key_data(lib.numpy.stack([key, key])[1])
    yield random.key_data(random.wrap_key_data(np.ones((4, *key_shape), np.uint32), impl=impl))
    for shape in [(), (2,), (*key_shape[:-1], 7)]:
        yield outcome(lambda shape=shape: random.wrap_key_data(
            np.ones(shape, np.uint32), impl=impl)).partition(" for impl")[0]
    yield outcome(lambda: key + 1).partition(":")[0]


@pytest.mark.parametrize("key_shape", [(3,), (2, 2), (2, 1, 3)])
def test_a_generator_of_ones_own_draws_what_it_draws_in_jax(key_shape):
    for mine, theirs in zip(drawn(minijax, key_shape), drawn(jax, key_shape), strict=True):
        if isinstance(mine, tuple | str):
            assert mine == theirs
        else:
            assert mine.dtype == theirs.dtype
            np.testing.assert_allclose(mine, theirs, 3e-7)


def test_threefry_by_name_and_word_by_word():
    for count in (np.arange(5, dtype=np.uint32), np.zeros((2, 3), np.uint32),
                  np.zeros(0, np.uint32)):
        mine, theirs = (extend(lib, "random").threefry_2x32(
            lib.numpy.array([7, 2**31], np.uint32), lib.numpy.asarray(count)) for lib in BOTH)
        np.testing.assert_array_equal(mine, theirs)
    for lib in BOTH:
        r = extend(lib, "random")
        key = r.seed_with_impl(r.threefry_prng_impl, 3)
        assert str(key.dtype) == "key<fry>" and key == lib.random.key(3)
        assert r.random_seed(3, r.threefry_prng_impl) == key
        with pytest.raises(TypeError, match="requires uint32 arguments"):
            r.threefry_2x32((np.uint32(1), np.uint32(2)), lib.numpy.arange(3))


@pytest.mark.parametrize("partitionable", [False, True])
@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_the_generators_of_xla(impl, partitionable, beside_jax):
    def drawn(lib):
        r, key = lib.random, lib.random.key(42, impl=impl)
        results = {
            "split": lambda k: r.key_data(r.split(k, (2, 3))),
            "fold_in": lambda k: r.key_data(r.fold_in(k, 7)),
            **{f"bits{n}": lambda k, n=n: r.bits(k, (5,), f"uint{n}") for n in (8, 16, 32)},
            "randint": lambda k: r.randint(k, (2, 2), 0, 100)}
        with lib.threefry_partitionable(partitionable), lib.default_prng_impl(impl):
            for name, f in results.items():
                yield f"{name} of a key", f(key)
                yield f"{name}, vmap", lib.vmap(f)(r.split(key, 3))
                yield f"{name}, jit", lib.jit(f)(key)
            yield "raw", r.split(r.PRNGKey(5))
            yield "texts", f"{key} {r.key_impl(key)} {r.key_impl(r.PRNGKey(0))} {r.key_dtype()}"
            yield "seeds", lib.vmap(lambda seed: r.key_data(r.key(seed)))(np.arange(3))
    for (name, ours), (_, theirs) in zip(*beside_jax(lambda lib: list(drawn(lib))), strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    dtype = getattr(extend(minijax, "random"), f"{impl}_prng_impl")
    assert pickle.loads(pickle.dumps(dtype)) is dtype is minijax.random.key_dtype(impl)
