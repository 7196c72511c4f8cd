"""Integers, truth values, choices and permutations: all exactly as in JAX."""

import contextlib

import jax
import numpy as np
import pytest

import minijax
from minijax import config, random

GRID = np.arange(12, dtype=np.float32).reshape(4, 3)
P = np.array([0.1, 0.2, 0.3, 0.4], np.float32)


@contextlib.contextmanager
def layout(partitionable, x64=False):
    with (config.threefry_partitionable(partitionable), config.enable_x64(x64),
          jax.threefry_partitionable(partitionable), jax.enable_x64(x64)):
        yield


@pytest.fixture
def assert_as_jax(jax_says):
    """`check(draw)`: `draw` takes a package's random module and a key of that package."""
    def check(draw):
        ours = np.asarray(draw(random, random.key(1)))
        theirs = np.asarray(jax_says(lambda: draw(jax.random, jax.random.key(1))))
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_array_equal(ours, theirs)
    return check


# ── randint ──────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("shape", [(), (1,), (2,), (3, 4), (0,)])
def test_integers_of_any_shape(shape, assert_as_jax):
    assert_as_jax(lambda r, k: r.randint(k, shape, 0, 10))


def test_integers_in_the_other_layout(assert_as_jax):
    with layout(True):
        assert_as_jax(lambda r, k: r.randint(k, (3, 4), 0, 10))


@pytest.mark.parametrize("bounds", [
    (-5, 1000), (-2**31, 2**31 - 1), (0, 1), (10, 0), (7, 7), (0.0, 10.7),
    (np.zeros(3, int), np.arange(2)[:, None] * 10 + 1), (np.int8(-3), np.uint8(250))], ids=str)
def test_integers_between_any_bounds(bounds, assert_as_jax):
    assert_as_jax(lambda r, k: r.randint(k, (2, 3), *bounds))


@pytest.mark.parametrize(("low", "high", "dtype"), [
    (0, 10, "uint8"), (0, 256, "uint8"), (0, 1000, "uint8"), (-5, 5, "int8"),
    (-500, 500, "int8"), (0, 2**15, "int16"), (0, 2**30, "uint32"), (0, -1, "uint32"),
    (np.uint32(0), np.uint32(2**32 - 1), "uint32")], ids=str)
def test_integers_of_any_dtype(low, high, dtype, assert_as_jax):
    assert_as_jax(lambda r, k: r.randint(k, (100,), low, high, dtype))


@pytest.mark.parametrize("bounds", [(0, 10), (-2**40, 2**40), (-2**63, 2**63 - 1)], ids=str)
def test_integers_of_64_bits(bounds, assert_as_jax):
    with layout(False, x64=True):
        assert_as_jax(lambda r, k: r.randint(k, (100,), *bounds))


# ── bernoulli, rademacher ────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize(("p", "shape", "mode"), [
    (0.5, None, "low"), (0.3, (100,), "low"), (0.3, (100,), "high"),
    (np.float32([0.1, 0.9]), None, "low"), (np.float32([0.1, 0.9]), (50, 2), "low"),
    (np.float16(0.5), (100,), "low")], ids=str)
def test_truth_values(p, shape, mode, assert_as_jax):
    assert_as_jax(lambda r, k: r.bernoulli(k, p, shape, mode=mode))


@pytest.mark.parametrize("dtype", [None, "int8", "uint8", "float32", "bool"])
def test_signs(dtype, assert_as_jax):
    assert_as_jax(lambda r, k: r.rademacher(k, (100,), dtype))


# ── categorical, choice ──────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize(("axis", "shape", "replace", "mode"), [
    (-1, None, True, None), (0, None, True, None), (-2, None, True, "low"),
    (-1, (5, 4), True, None), (1, (2, 3, 4), True, "high"), (0, (5, 3), True, None),
    (-1, (2, 4), False, None), (0, (3, 3), False, None)], ids=str)
def test_categories(axis, shape, replace, mode, assert_as_jax):
    logits = np.sin(GRID)
    assert_as_jax(lambda r, k: r.categorical(k, logits, axis, shape, replace, mode))


@pytest.mark.parametrize(("a", "shape", "options"), [
    (5, (), {}), (5, (2,), {}), (5, (4,), {"replace": False}), (5, (5,), {"replace": False}),
    (GRID, (2, 2), {}), (GRID, (2,), {"axis": 1}), (GRID, (3,), {"replace": False}),
    (GRID, (2,), {"replace": False, "axis": -1}),
    (4, (100,), {"p": P}), (4, (3,), {"p": P, "replace": False}), (GRID, (2, 3), {"p": P}),
    (GRID, (0,), {}), (np.arange(3), (7,), {}), (4, (2,), {"p": np.array([1, 0, 0, 0])})], ids=str)
def test_choices(a, shape, options, assert_as_jax):
    assert_as_jax(lambda r, k: r.choice(k, a, shape, **options))


# ── permutation ──────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("x", [0, 1, 10, -1, np.uint8(9), np.arange(3), np.arange(7.0)], ids=str)
def test_permutations(x, assert_as_jax):
    assert_as_jax(lambda r, k: r.permutation(k, x))


def test_permutations_in_the_other_layout(assert_as_jax):
    with layout(True):
        assert_as_jax(lambda r, k: r.permutation(k, 9))


def test_large_permutations_take_two_rounds(assert_as_jax):
    assert_as_jax(lambda r, k: r.permutation(k, 5000))


@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": -1}, {"independent": True},
                                     {"axis": 1, "independent": True}], ids=str)
def test_permutations_along_an_axis(options, assert_as_jax):
    assert_as_jax(lambda r, k: r.permutation(k, GRID, **options))
    assert_as_jax(lambda r, k: r.permutation(k, np.ones((3, 0), np.float32), **options))


def test_a_permutation_keeps_the_elements():
    shuffled = np.asarray(random.permutation(random.key(0), 1000))
    np.testing.assert_array_equal(np.sort(shuffled), np.arange(1000))


# ── Under transformations ────────────────────────────────────────────────────────────────────

DRAWS = {
    "randint": lambda r, k: r.randint(k, (2,), 0, 5),
    "bernoulli": lambda r, k: r.bernoulli(k, 0.3, (4,)),
    "permutation": lambda r, k: r.permutation(k, 6),
    "rows": lambda r, k: r.permutation(k, GRID),
    "choice": lambda r, k: r.choice(k, 4, (3,), p=P),
    "categorical": lambda r, k: r.categorical(k, np.log(P), shape=(3,)),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_batched_and_compiled_draws_are_those_of_each_key(draw):
    keys = random.split(random.key(1), 3)
    each = np.stack([np.asarray(draw(random, k)) for k in keys])
    batched = minijax.vmap(lambda k: draw(random, k))
    np.testing.assert_array_equal(np.asarray(batched(keys)), each)
    np.testing.assert_array_equal(np.asarray(minijax.jit(batched)(keys)), each)
    np.testing.assert_array_equal(np.asarray(minijax.jit(lambda k: draw(random, k))(keys[2])),
                                  each[2])


def test_programs_read_as_in_jax():
    text = str(minijax.make_jaxpr(lambda k: random.permutation(k, 10))(random.key(0)))
    for part in ["name=_shuffle", "random_split[shape=(2,)]",
                 "sort[dimension=0 is_stable=True num_keys=1]"]:
        assert part in text
    text = str(minijax.make_jaxpr(lambda k: random.randint(k, (3,), 0, 10))(random.key(0)))
    assert "name=_randint" in text
    assert "65536:u32[]" in text


# ── Mistakes ─────────────────────────────────────────────────────────────────────────────────

MISTAKES = {
    "integers of floats": lambda r, k: r.randint(k, (3,), 0, 10, "float32"),
    "integers of booleans": lambda r, k: r.randint(k, (3,), 0, 10, bool),
    "bounds that do not fit": lambda r, k: r.randint(k, (3,), np.zeros(2, int), 5),
    "an integer probability": lambda r, k: r.bernoulli(k, 1),
    "probabilities that do not fit": lambda r, k: r.bernoulli(k, P, (3,)),
    "another mode": lambda r, k: r.bernoulli(k, 0.5, mode="foo"),
    "another mode of categories": lambda r, k: r.categorical(k, P, mode="foo"),
    "a list of logits": lambda r, k: r.categorical(k, [0.0, 1.0]),
    "integer logits": lambda r, k: r.categorical(k, np.arange(3)),
    "no such axis of logits": lambda r, k: r.categorical(k, GRID, axis=3),
    "a scalar logit": lambda r, k: r.categorical(k, 1.0),
    "too many without replacement": lambda r, k: r.categorical(k, P, shape=(5,), replace=False),
    "a larger sample": lambda r, k: r.choice(k, 5, (6,), replace=False),
    "a choice of nothing": lambda r, k: r.choice(k, 0, (3,)),
    "too few probabilities": lambda r, k: r.choice(k, 5, (2,), p=P),
    "a list to choose from": lambda r, k: r.choice(k, [1, 2, 3], (3,)),
    "a list of probabilities": lambda r, k: r.choice(k, 4, (2,), p=[0.25] * 4),
    "a number as shape": lambda r, k: r.choice(k, 5, 3),
    "a float to permute": lambda r, k: r.permutation(k, 5.0),
    "a truth value to permute": lambda r, k: r.permutation(k, True),
    "a list to permute": lambda r, k: r.permutation(k, [1, 2, 3]),
    "no such axis": lambda r, k: r.permutation(k, GRID, axis=5),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_get_the_words_of_jax(mistake):
    with pytest.raises(Exception) as ours:
        mistake(random, random.key(0))
    with pytest.raises(Exception) as theirs:
        mistake(jax.random, jax.random.key(0))
    assert type(ours.value).__name__ == type(theirs.value).__name__
    assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0]


@pytest.mark.parametrize("name", ["permutation", "choice"])
def test_a_traced_size_is_refused_with_its_name(name):
    with pytest.raises(minijax.errors.ConcretizationTypeError) as error:
        minijax.jit(lambda n: getattr(random, name)(random.key(0), n))(3)
    assert f"jax.random.{name}()" in str(error.value)
    assert "depends on the value of the argument n" in str(error.value)


def test_a_bound_that_does_not_fit_is_refused():
    with pytest.raises(OverflowError):
        random.randint(random.key(0), (3,), 0, 2**31)
