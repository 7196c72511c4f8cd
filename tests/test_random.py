"""Small programs that draw: each is written once, and run by minijax and by JAX."""

import itertools
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import minijax
import minijax.numpy as mnp


class Library:
    """What a program needs of either library."""

    def __init__(self, package, numpy):
        self.numpy = numpy
        for name in ["random", "lax", "jit", "vmap", "grad"]:
            setattr(self, name, getattr(package, name))


OURS, JAX = Library(minijax, mnp), Library(jax, jnp)


def monte_carlo_pi(lib, key):
    """The share of points of the unit square that lie in the circle."""
    points = lib.random.uniform(key, (10_000, 2))
    return 4 * lib.numpy.mean((points ** 2).sum(axis=1) < 1)


def monte_carlo_pi_in_batches(lib, key):
    return lib.numpy.mean(lib.vmap(lambda k: monte_carlo_pi(lib, k))(lib.random.split(key, 8)))


def random_walk(lib, key):
    """Where a walker is after each of 100 steps left or right."""
    def step(place, k):
        place = place + lib.random.rademacher(k, dtype="int32")
        return place, place
    return lib.lax.scan(step, lib.numpy.int32(0), lib.random.split(key, 100))[1]


def walk_that_splits_as_it_goes(lib, key):
    """The key itself is carried through the loop."""
    def step(carry, _):
        place, key = carry
        key, spent = lib.random.split(key)
        place = place + lib.random.normal(spent)
        return (place, key), place
    return lib.lax.scan(step, (0.0, key), None, length=50)[1]


def bootstrap(lib, key):
    """The standard error of a mean, from 200 resamples of 30 numbers."""
    data_key, key = lib.random.split(key)
    data = lib.random.exponential(data_key, (30,))

    def mean_of_resample(k):
        return lib.numpy.mean(lib.random.choice(k, data, (30,)))
    return lib.numpy.std(lib.vmap(mean_of_resample)(lib.random.split(key, 200)))


def metropolis(lib, key):
    """A Markov chain for a mixture of two bells; a step is refused where the density falls."""
    def log_density(x):
        return lib.numpy.logaddexp(-(x - 2) ** 2, -(x + 2) ** 2)

    def step(x, key):
        moved, accepted = lib.random.split(key)
        new = x + lib.random.uniform(moved, minval=-1.0, maxval=1.0)
        odds = lib.numpy.exp(log_density(new) - log_density(x))
        x = lib.numpy.where(lib.random.uniform(accepted) < odds, new, x)
        return x, x
    return lib.lax.scan(step, 0.0, lib.random.split(key, 200))[1]


def epochs_of_minibatches(lib, key):
    """The rows that each batch of three epochs holds: every row once an epoch."""
    def epoch(number):
        return lib.random.permutation(lib.random.fold_in(key, number), 12).reshape(4, 3)
    return lib.numpy.stack([epoch(n) for n in range(3)])


def gradient_with_dropout(lib, key):
    """The derivative of a loss in which half of the inputs are dropped."""
    data_key, mask_key = lib.random.split(key)
    x = lib.random.uniform(data_key, (20,))

    def loss(w):
        mask = lib.random.bernoulli(mask_key, 0.5, (20,))
        return lib.numpy.sum(lib.numpy.where(mask, x * w, 0.0) ** 2)
    return lib.grad(loss)(lib.numpy.ones(20))


def reparameterised_gradient(lib, key):
    """The derivative of an expectation, through the numbers that were drawn."""
    def expectation(mean, scale):
        return lib.numpy.mean((mean + scale * lib.random.normal(key, (100,))) ** 2)
    return lib.numpy.stack(lib.grad(expectation, (0, 1))(1.0, 2.0))


def rejection(lib, key):
    """A point in the unit disc: drawn until one lies inside."""
    def outside(state):
        return lib.numpy.sum(state[1] ** 2) > 1

    def draw(state):
        key, spent = lib.random.split(state[0])
        return key, lib.random.uniform(spent, (2,), minval=-1.0, maxval=1.0)
    return lib.lax.while_loop(outside, draw, (key, 2 * lib.numpy.ones(2)))[1]


def gumbel_softmax(lib, key):
    """How often each of four categories is drawn."""
    drawn = lib.random.categorical(key, lib.numpy.log(lib.numpy.arange(1.0, 5.0)), shape=(1000,))
    return lib.numpy.stack([(drawn == c).sum() for c in range(4)])


PROGRAMS = [monte_carlo_pi, monte_carlo_pi_in_batches, random_walk, walk_that_splits_as_it_goes,
            bootstrap, metropolis, epochs_of_minibatches, gradient_with_dropout,
            reparameterised_gradient, rejection, gumbel_softmax]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_program_gives_what_it_gives_in_jax(program):
    expected = np.asarray(jax.jit(lambda k: program(JAX, k))(JAX.random.key(5)))
    key = OURS.random.key(5)
    eager = np.asarray(program(OURS, key))
    compiled = np.asarray(minijax.jit(lambda k: program(OURS, k))(key))
    for found in (eager, compiled):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("program", [random_walk, bootstrap, epochs_of_minibatches],
                         ids=lambda p: p.__name__)
def test_a_program_gives_the_same_with_raw_keys(program):
    typed, raw = OURS.random.key(5), OURS.random.PRNGKey(5)
    np.testing.assert_array_equal(np.asarray(program(OURS, raw)), np.asarray(program(OURS, typed)))


@pytest.mark.parametrize("program", [monte_carlo_pi, random_walk, rejection],
                         ids=lambda p: p.__name__)
def test_a_program_in_a_batch_gives_what_it_gives_for_each_key(program):
    keys = minijax.random.split(minijax.random.key(9), 3)
    together = np.asarray(minijax.vmap(lambda k: program(OURS, k))(keys))
    for i in range(3):
        np.testing.assert_array_equal(together[i], np.asarray(program(OURS, keys[i])))


# ---- the promise: the numbers of JAX, whatever way they are drawn

SHAPES = int(os.environ.get("MINIJAX_RANDOM_SHAPES", "0"))  # per kind of number; 0: just one
COUNTS = [(), (1,), (2,), (3,), (8,), (13,), (2, 3), (5, 5), (0, 2), (4, 1, 3), (64,), (101,)]
EXACT = {
    **{f"{bits} bits": (lambda lib, key, shape, bits=bits: lib.random.bits(
        key, shape, f"uint{bits}")) for bits in (8, 16, 32, 64)},
    "uniform": lambda lib, key, shape: lib.random.uniform(key, shape, "float32", -1.5, 2.0),
    "uniform float64": lambda lib, key, shape: lib.random.uniform(key, shape, "float64"),
    "randint": lambda lib, key, shape: lib.random.randint(key, shape, -7, 100, "int32"),
    "randint int64": lambda lib, key, shape: lib.random.randint(key, shape, -2**40, 2**50, "int64"),
    "permutation": lambda lib, key, shape: lib.random.permutation(
        key, lib.numpy.arange(np.prod(shape, dtype=int) + 1)),
    "normal": lambda lib, key, shape: lib.random.normal(key, shape, "float32"),
}


WAYS = {
    "one by one": lambda lib, draw, keys: lib.numpy.stack([draw(key) for key in keys]),
    "compiled": lambda lib, draw, keys: lib.numpy.stack([lib.jit(draw)(key) for key in keys]),
    "in a batch": lambda lib, draw, keys: lib.vmap(draw)(keys),
    "in a loop": lambda lib, draw, keys: lib.lax.scan(lambda c, k: (c, draw(k)), 0, keys)[1],
}


def cases(number):
    """Shapes, ways to draw, kinds of key and layouts: all of them, or one that a number chooses."""
    if SHAPES:
        return list(itertools.product(COUNTS[:SHAPES], WAYS, ("key", "PRNGKey"), (False, True)))
    return [(COUNTS[5 * number % len(COUNTS)], list(WAYS)[number % 4],
             ("key", "PRNGKey")[number // 2 % 2], number % 3 == 0)]


@pytest.mark.parametrize("name", EXACT)
def test_the_numbers_are_those_of_jax_whatever_way_they_are_drawn(name, as_users_compile):
    for shape, way, kind, partitionable in cases(list(EXACT).index(name)):
        with (minijax.threefry_partitionable(partitionable), minijax.enable_x64("64" in name),
              jax.threefry_partitionable(partitionable), jax.enable_x64("64" in name)):
            keys = [lib.random.split(getattr(lib.random, kind)(7), 2) for lib in (OURS, JAX)]
            drawn = np.asarray(WAYS[way](OURS, lambda k, shape=shape: EXACT[name](
                OURS, k, shape), keys[0]))
            in_jax = as_users_compile(lambda k, shape=shape: EXACT[name](JAX, k, shape))
            expected = np.stack([np.asarray(in_jax(key)) for key in keys[1]])
        assert (drawn.dtype, drawn.shape) == (expected.dtype, expected.shape)
        if name == "normal":
            np.testing.assert_array_max_ulp(drawn, expected, maxulp=4)
        else:
            np.testing.assert_array_equal(drawn, expected)
