"""Keys as users hold them, beside those of JAX; and what is no key."""

import warnings

import jax
import numpy as np
import pytest

import minijax
from minijax import config, random
from minijax.primitives.keys import original_words
from minijax.primitives.threefry import threefry2x32


def data(key):
    return np.asarray(random.key_data(key))


def theirs(key):
    return np.asarray(jax.random.key_data(key))


SEEDS = [0, 1, 42, -1, 2**31, 2**40 + 5, -2**40, 2**63 - 1, True, np.int8(-3), np.uint8(200),
         np.int32(-1), np.uint32(2**32 - 1), np.int64(2**40 + 5), np.array(7)]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("seed", SEEDS, ids=repr)
def test_a_seed_gives_the_key_of_jax(seed, x64):
    with config.enable_x64(x64), jax.enable_x64(x64):
        np.testing.assert_array_equal(data(random.key(seed)), theirs(jax.random.key(seed)))
        raw = random.PRNGKey(seed)
        assert (raw.dtype, raw.shape) == (np.uint32, (2,))
        np.testing.assert_array_equal(np.asarray(raw), np.asarray(jax.random.PRNGKey(seed)))


def test_a_traced_seed_gives_the_key_of_jax():
    np.testing.assert_array_equal(data(minijax.jit(random.key)(2**20)), [0, 2**20])
    ours = minijax.vmap(random.key)(np.arange(-1, 3))
    np.testing.assert_array_equal(data(ours), theirs(jax.vmap(jax.random.key)(np.arange(-1, 3))))


def test_typed_keys_have_a_dtype_of_their_own():
    key = random.key(0)
    assert (key.shape, key.ndim, key.size) == ((), 0, 1)
    assert str(key.dtype) == "key<fry>"
    assert key.dtype == random.key_dtype() == random.key_dtype("threefry2x32")
    assert random.key_impl(key) == random.key_impl(random.PRNGKey(0)) == "threefry2x32"
    assert random.split(key, (2, 3)).shape == (2, 3)
    assert random.split(random.PRNGKey(0), (2, 3)).shape == (2, 3, 2)


def test_a_generator_is_chosen_by_name_or_dtype():
    for key in [random.key(3, impl="threefry2x32"), random.key(3, impl=random.key_dtype()),
                random.key(3, dtype=random.key_dtype())]:
        np.testing.assert_array_equal(data(key), [0, 3])
    with pytest.raises(ValueError, match='unrecognized PRNG implementation "foo"'):
        random.key(0, impl="foo")
    with pytest.raises(TypeError, match="unrecognized type <class 'int'> for specifying PRNG"):
        random.key(0, impl=3)


KEYS = {
    "full": lambda jnp, keys: jnp.full((2, 3), 100, keys.dtype),
    "full of a key": lambda jnp, keys: jnp.full((2,), keys[0]),
    "zeros": lambda jnp, keys: jnp.zeros(3, keys.dtype),
    "ones": lambda jnp, keys: jnp.ones((), dtype=keys.dtype),
    "full_like": lambda jnp, keys: jnp.full_like(keys, keys[1]),
    "ones_like": lambda jnp, keys: jnp.ones_like(keys, shape=(1, 2)),
    "equality": lambda jnp, keys: keys == keys[1],
    "inequality": lambda jnp, keys: keys[0] != keys}


@pytest.mark.parametrize("name", KEYS)
def test_arrays_are_made_of_keys(name):
    ours, expected = (KEYS[name](lib.numpy, lib.random.split(lib.random.key(3), 3))
                      for lib in (minijax, jax))
    assert str(ours.dtype) == str(expected.dtype) and ours.shape == expected.shape
    if str(ours.dtype) != "bool":
        ours, expected = data(ours), theirs(expected)
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(expected))


def test_a_generator_is_named_once():
    for lib in (minijax, jax):
        for f, x in (lib.random.key, 3), (lib.random.wrap_key_data, lib.random.PRNGKey(3)):
            with pytest.raises(ValueError, match="Cannot specify both `impl` and `dtype`"):
                f(x, impl="threefry2x32", dtype=lib.random.key_dtype())


@pytest.mark.parametrize("partitionable", [False, True])
@pytest.mark.parametrize("num", [2, 0, (2, 3), [4], np.int32(3)], ids=repr)
@pytest.mark.parametrize("make", ["key", "PRNGKey"])
def test_split_gives_the_keys_of_jax(num, make, partitionable):
    with (config.threefry_partitionable(partitionable),
          jax.threefry_partitionable(partitionable)):
        ours = random.split(getattr(random, make)(42), num)
        expected = jax.random.split(getattr(jax.random, make)(42), num)
        assert ours.shape == expected.shape
        np.testing.assert_array_equal(data(ours), theirs(expected))


@pytest.mark.parametrize("number", [0, 7, 2**32 - 1, True, 1.5, np.int8(-1), np.int64(2**33 + 1)],
                         ids=repr)
def test_fold_in_gives_the_key_of_jax(number):
    ours, expected = random.fold_in(random.key(1), number), jax.random.fold_in(
        jax.random.key(1), number)
    np.testing.assert_array_equal(data(ours), theirs(expected))


def test_fold_in_under_jit_vmap_and_scan():
    key = random.key(1)
    apart = np.stack([data(random.fold_in(key, i)) for i in range(4)])
    steps = np.arange(4)
    np.testing.assert_array_equal(data(minijax.vmap(random.fold_in, (None, 0))(key, steps)), apart)
    np.testing.assert_array_equal(data(minijax.jit(random.fold_in)(key, 2)), apart[2])
    _, scanned = minijax.lax.scan(lambda k, i: (k, random.fold_in(k, i)), key, steps)
    np.testing.assert_array_equal(data(scanned), apart)


def test_keys_go_through_a_loop_as_its_carry():
    def step(carry, _):
        carry, spent = random.split(carry)
        return carry, random.uniform(spent)

    def in_jax(carry, _):
        carry, spent = jax.random.split(carry)
        return carry, jax.random.uniform(spent)

    key, drawn = minijax.lax.scan(step, random.key(3), None, length=5)
    other, expected = jax.lax.scan(in_jax, jax.random.key(3), None, length=5)
    np.testing.assert_array_equal(data(key), theirs(other))
    np.testing.assert_array_equal(np.asarray(drawn), np.asarray(expected))


def test_splitting_in_a_batch_is_splitting_each():
    keys = random.split(random.key(0), 3)
    together = minijax.vmap(lambda k: random.split(k, 4))(keys)
    assert together.shape == (3, 4)
    for i in range(3):
        np.testing.assert_array_equal(data(together[i]), data(random.split(keys[i], 4)))


def test_keys_can_be_unpacked_indexed_and_passed_through_transformations():
    first, second = random.split(random.key(0))
    np.testing.assert_array_equal(data(first), [4146024105, 967050713])
    np.testing.assert_array_equal(data(second), [2718843009, 1272950319])
    np.testing.assert_array_equal(data(minijax.jit(lambda k: k)(first)), data(first))
    keys = random.split(random.key(0), 5)
    np.testing.assert_array_equal(data(keys[1:3]), data(keys)[1:3])
    np.testing.assert_array_equal(data(minijax.jit(lambda k, i: k[i])(keys, 3)), data(keys)[3])
    np.testing.assert_array_equal(data(minijax.numpy.reshape(keys, (5, 1))),
                                  data(keys).reshape(5, 1, 2))


def test_raw_words_can_be_wrapped():
    words = np.uint32([[1, 2], [3, 4]])
    keys = random.wrap_key_data(words)
    assert keys.shape == (2,)
    np.testing.assert_array_equal(data(keys), words)
    np.testing.assert_array_equal(data(random.clone(keys)), words)
    np.testing.assert_array_equal(np.asarray(random.clone(words)), words)
    np.testing.assert_array_equal(data(words), words)


def test_the_page_on_sharp_bits_is_reproduced():
    key = random.key(0)
    np.testing.assert_allclose(random.normal(key, shape=(1,)), [-0.20584226], rtol=3e-7)
    key, subkey = random.split(key)
    np.testing.assert_array_equal(data(key), [4146024105, 967050713])
    np.testing.assert_array_equal(data(subkey), [2718843009, 1272950319])
    np.testing.assert_allclose(random.normal(subkey, shape=(1,)), [-1.2515389], rtol=3e-7)
    key, subkey = random.split(key)
    np.testing.assert_array_equal(data(key), [2384771982, 3928867769])
    np.testing.assert_array_equal(data(subkey), [1278412471, 2182328957])
    np.testing.assert_allclose(random.normal(subkey, shape=(1,)), [-0.58665055], rtol=3e-7)
    key, *subkeys = random.split(key, 4)
    drawn = [float(random.normal(k, shape=(1,))[0]) for k in subkeys]
    np.testing.assert_allclose(drawn, [-0.37533438, 0.98645043, 0.14553197], rtol=3e-7)


# ── What is no key, and no seed ──────────────────────────────────────────────────────────────

class Foreign:
    """Calls either library, so that one list of mistakes serves both."""

    def __init__(self, package, array):
        self.random, self.array = package, array


MISTAKES = {
    "a number as a key": lambda f: f.random.split(5),
    "a string as a key": lambda f: f.random.split("a"),
    "None as a key": lambda f: f.random.split(None),
    "a list as a key": lambda f: f.random.split([0, 1]),
    "a number as words": lambda f: f.random.key_data(3),
    "a number's generator": lambda f: f.random.key_impl(3),
    "signed words": lambda f: f.random.normal(f.array(np.zeros(2, np.int32))),
    "a list of words to wrap": lambda f: f.random.wrap_key_data([0, 0]),
    "one word to wrap": lambda f: f.random.wrap_key_data(f.array(np.uint32(3))),
    "signed words to wrap": lambda f: f.random.wrap_key_data(f.array(np.zeros(2, np.int32))),
    "a key to wrap": lambda f: f.random.wrap_key_data(f.random.key(0)),
    "many keys to split": lambda f: f.random.split(f.random.split(f.random.key(0), 3)),
    "many raw keys to split": lambda f: f.random.split(f.array(np.zeros((3, 2), np.uint32))),
    "many keys to draw with": lambda f: f.random.uniform(f.random.split(f.random.key(0), 3)),
    "many keys to permute with": lambda f: f.random.permutation(f.random.split(f.random.key(0)), 5),
    "many keys to fold in": lambda f: f.random.fold_in(f.random.split(f.random.key(0), 3), 1),
    "many numbers to fold in": lambda f: f.random.fold_in(f.random.key(0), f.array(np.arange(3))),
    "a negative number to fold in": lambda f: f.random.fold_in(f.random.key(0), -1),
    "a large number to fold in": lambda f: f.random.fold_in(f.random.key(0), 2**33),
    "a word to fold in": lambda f: f.random.fold_in(f.random.key(0), "a"),
    "half a key": lambda f: f.random.split(f.random.key(0), 2.5),
    "a seed too large": lambda f: f.random.key(2**63),
    "a list as a seed": lambda f: f.random.key([1, 2]),
    "an array as a seed": lambda f: f.random.PRNGKey(f.array(np.arange(3))),
    "a key as a seed": lambda f: f.random.key(f.random.key(0)),
    "a key as a raw seed": lambda f: f.random.PRNGKey(f.random.key(0)),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_get_the_words_of_jax(mistake):
    with pytest.raises(Exception) as ours:
        mistake(Foreign(random, minijax.numpy.asarray))
    with pytest.raises(Exception) as other:
        mistake(Foreign(jax.random, jax.numpy.asarray))
    assert type(ours.value).__name__ == type(other.value).__name__
    assert str(ours.value).splitlines()[0] == str(other.value).splitlines()[0]


def test_a_key_of_three_words_is_refused():
    with pytest.raises(TypeError, match=r"to end with \(2,\); got shape=\(3,\)"):
        random.normal(np.zeros(3, np.uint32))


@pytest.mark.parametrize("seed", [1.5, np.float32(2), np.bool_(True), 2j])
def test_a_seed_is_an_integer(seed):
    with pytest.raises(TypeError, match="PRNG key seed must be an integer; got"):
        random.key(seed)


def test_a_seed_is_no_text():
    with pytest.raises(TypeError, match="not a valid JAX array type"):
        random.key("a")


def test_a_negative_number_of_keys_is_refused():
    with pytest.raises(TypeError, match="nonnegative"):
        random.split(random.key(0), -1)


# ── Flags ────────────────────────────────────────────────────────────────────────────────────

def test_raw_keys_can_be_warned_of_and_refused():
    raw = random.PRNGKey(0)
    with config.legacy_prng_key("warn"), pytest.warns(UserWarning, match="Legacy uint32 key"):
        random.normal(raw)
    with config.legacy_prng_key("error"), pytest.raises(ValueError, match="Legacy uint32 key"):
        random.split(raw)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        random.split(raw)


def test_prngkey_can_give_typed_keys():
    raw = random.PRNGKey(0)
    with config.enable_custom_prng(True):
        assert random.PRNGKey(0).dtype == random.key_dtype()
        with pytest.warns(FutureWarning, match="Raw arrays as random keys"):
            assert random.split(raw).dtype == random.key_dtype()


def test_seeds_can_be_offset():
    with config.random_seed_offset(3):
        np.testing.assert_array_equal(data(random.key(4)), [0, 7])
        np.testing.assert_array_equal(data(random.key(np.uint8(255))), [0, 2])


def test_programs_over_keys_read_as_in_jax():
    text = str(minijax.make_jaxpr(lambda s: random.fold_in(random.split(random.key(s))[0], 3))(0))
    for part in ["key<fry>[] = random_seed[impl=fry]", "key<fry>[2] = random_split[shape=(2,)]",
                 "random_fold_in", "3:u32[]"]:
        assert part in text
    raw = str(minijax.make_jaxpr(random.split)(random.PRNGKey(0)))
    assert "random_wrap[impl=fry]" in raw
    assert "u32[2,2] = random_unwrap" in raw


def test_more_words_than_a_key_has_counters_are_drawn_in_blocks_from_keys_of_their_own(monkeypatch):
    keys = random.key_data(random.split(random.key(3), 2))
    drawn = [np.asarray(original_words(key, n)) for key, n in zip(
        np.moveaxis(np.asarray(original_words(keys, 6)).reshape(2, 3, 2), 1, 0), (7, 7, 2),
        strict=True)]
    monkeypatch.setattr("minijax.primitives.keys.MOST_WORDS", 7)
    np.testing.assert_array_equal(original_words(keys, 16), np.concatenate(drawn, 1))


@pytest.mark.parametrize("partitionable", [False, True])
@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_large_arrays_of_random_numbers_have_a_type(impl, partitionable):
    with config.threefry_partitionable(partitionable):
        draw = minijax.jit(lambda key: random.normal(key, (10**12,)))
        assert draw.eval_shape(random.key(0, impl=impl)).shape == (10**12,)
        draw.lower(random.key(0, impl=impl))


def test_the_counters_of_large_arrays_have_two_words():
    large = minijax.jit(lambda key: random.bits(key, (2**32 + 6,))[-1])
    with config.threefry_partitionable(True):
        first, second = threefry2x32(np.uint32(0), np.uint32(3), np.uint32(1), np.uint32(5))
        assert large(random.key(3)) == first ^ second
