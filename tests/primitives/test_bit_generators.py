"""The generators whose key carries their place: the bits and the next key beside JAX's."""

import jax
import numpy as np
import pytest

import minijax
from minijax.primitives.threefry import philox4x32

ONES = 0xFFFFFFFF
DTYPES = [np.uint8, np.uint16, np.uint32, np.uint64]
SHAPES = [(), (0,), (1,), (9,), (2, 5), (5, 2), (3, 3), (3, 5), (3, 0), (2, 3, 4), (4, 1, 6)]
# Counters that are carried into their second word, out of it, and into the words of the key.
KEYS = [[1, 2, 3, 4], [5, 6, ONES - 1, 7], [7, 8, ONES - 1, ONES], [ONES] * 4]
ALGORITHMS = list(jax.lax.RandomAlgorithm)


@pytest.fixture
def x64():
    with minijax.enable_x64(True), jax.enable_x64(True):
        yield


def agree(found, wanted):
    for x, y in zip(jax.tree.leaves(jax.tree.map(np.asarray, found)),
                    jax.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y), strict=True)


# Known answers that the authors ship with Random123 (file kat_vectors, philox4x32, 10 rounds).
@pytest.mark.parametrize(("counter", "key", "expected"), [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([ONES] * 4, [ONES] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0],
     [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
])
def test_philox_gives_the_known_answers(counter, key, expected):
    words = list(map(np.uint32, key + counter))
    for f in (philox4x32, minijax.jit(philox4x32)):
        assert list(map(int, f(*words))) == expected


def test_philox_refuses_what_are_no_words():
    with pytest.raises(TypeError, match="Arguments to philox4x32 must have uint32 type"):
        philox4x32(*[np.uint8(0)] * 6)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_and_next_keys_are_those_of_jax(algorithm, dtype, x64):
    for i, shape in enumerate(SHAPES):
        key = np.array(KEYS[i % len(KEYS)], np.uint32).view([np.uint32, np.uint64][i // 4 % 2])
        wanted = jax.lax.rng_bit_generator(key, shape, dtype, algorithm)
        agree(minijax.lax.rng_bit_generator(key, shape, dtype, algorithm), wanted)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_compiled_bits_are_those_of_jax(algorithm, key, x64):
    def draws(lib):
        def f(key):
            key, some = lib.lax.rng_bit_generator(key, (3, 5), np.uint64, algorithm)
            key, more = lib.lax.rng_bit_generator(key, (7,), np.uint8, algorithm)
            return key, some, more
        return lib.jit(f)(np.array(key, np.uint32).view(np.uint64))
    agree(draws(minijax), draws(jax))


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_a_batch_is_drawn_with_its_first_key_as_in_jax(algorithm):
    keys = np.arange(24, dtype=np.uint32).reshape(2, 3, 4)

    def draws(lib):
        f = lambda key: lib.lax.rng_bit_generator(key, (3,), algorithm=algorithm)
        return (lib.vmap(f)(keys[0]), lib.vmap(f, in_axes=1)(keys[1].T),
                lib.vmap(lib.vmap(f))(keys), lib.jit(lib.vmap(lib.vmap(f, in_axes=1), in_axes=2))(
                    keys.transpose(2, 1, 0)))
    agree(draws(minijax), draws(jax))


def test_a_batch_of_no_keys_draws_nothing():
    keys, bits = minijax.vmap(lambda key: minijax.lax.rng_bit_generator(key, (3,)))(
        np.zeros((0, 4), np.uint32))
    assert (keys.shape, bits.shape, bits.dtype) == ((0, 4), (0, 3), np.uint32)


def test_it_has_no_tangent_and_prints_as_in_jax(beside_jax):
    key = np.uint32([1, 2, 3, 4])

    def loss(lib):
        return lib.grad(lambda x: x * lib.lax.rng_bit_generator(key, ())[1].astype("float32"))(2.0)
    assert float(loss(minijax)) == float(loss(jax))

    def text(lib):
        f = lambda key: lib.lax.rng_bit_generator(
            key, (3,), np.uint8, lib.lax.RandomAlgorithm.RNG_PHILOX)
        return str(lib.make_jaxpr(f)(key)).split()
    ours, theirs = beside_jax(text)
    assert ours == theirs


def test_the_algorithms_print_and_compare_as_in_jax(beside_jax):
    def facts(lib):
        kinds = lib.lax.RandomAlgorithm
        return [(repr(x), str(x), f"{x}", x == i, hash(x), x < 2, kinds(i).name)
                for i, x in enumerate(kinds)]
    ours, theirs = beside_jax(facts)
    assert ours == theirs


@pytest.mark.parametrize(("args", "same_words"), [
    ((np.uint32([1, 2, 3, 4]), (3,), np.int32), True),
    ((np.uint32([1, 2, 3, 4]), (3,), np.float32), True),
    ((np.uint32([1, 2, 3, 4]), (3,), None), True),
    ((np.uint32([1, 2, 3, 4]), (2.5,)), True),
    (([1, 2, 3, 4], (3,)), True),
    # An assertion fails in JAX, or MLIR complains.
    ((np.uint32([1, 2, 3]), (3,)), False), ((np.int32([1, 2, 3, 4]), (3,)), False),
    ((np.uint32([1, 2, 3, 4]), (3,), np.uint32, 3), False),
    ((np.uint32([1, 2, 3, 4]), (3,), np.uint32, "x"), False),
    ((np.uint32([1, 2, 3, 4]), (-3,)), False)])
def test_it_refuses_what_jax_refuses(args, same_words):
    with pytest.raises((TypeError, ValueError)) as ours:
        minijax.lax.rng_bit_generator(*args)
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        jax.lax.rng_bit_generator(*args)
    if same_words:
        assert (ours.type, str(ours.value)) == (theirs.type, str(theirs.value))


def test_64_bits_without_64_bit_types_are_32_with_a_warning():
    with pytest.warns(UserWarning, match="uint64.*will be truncated to dtype uint32"):
        _, bits = minijax.lax.rng_bit_generator(np.uint32([1, 2, 3, 4]), (3,), np.uint64)
    assert bits.dtype == np.uint32
