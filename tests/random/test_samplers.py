"""Continuous distributions: bits and uniform numbers exactly as in JAX, the others within ulps."""

import contextlib

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax import config, random

FLOATS = [np.float32, np.float16, ml_dtypes.bfloat16]
both_layouts = pytest.mark.parametrize("partitionable", [False, True],
                                       ids=["original", "partitionable"])


@contextlib.contextmanager
def layout(partitionable, x64=False):
    with (config.threefry_partitionable(partitionable), config.enable_x64(x64),
          jax.threefry_partitionable(partitionable), jax.enable_x64(x64)):
        yield


def ulps(ours, theirs):
    """How many floats lie between two arrays' elements, at most."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    if not ours.size:
        return 0
    word = f"i{ours.dtype.itemsize}"
    places = [np.where((w := x.view(word).astype(object)) < 0, np.iinfo(word).min - w, w)
              for x in (ours, theirs)]
    return np.max(abs(places[0] - places[1]))


def assert_same(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(ours, theirs)


# ── bits and uniform: exact ──────────────────────────────────────────────────────────────────

# The primitives' own tests go through more shapes and widths.
@both_layouts
@pytest.mark.parametrize(("shape", "dtype"), [((), None), (7, "uint8"), ([2, 3], "uint16"),
                                              ((2, 0), "uint32")])
def test_bits_are_those_of_jax(shape, dtype, partitionable, jax_says):
    with layout(partitionable):
        assert_same(random.bits(random.key(1), shape, dtype),
                    jax_says(lambda: jax.random.bits(jax.random.key(1), shape, dtype)))


@both_layouts
def test_bits_of_64_are_those_of_jax(partitionable):
    with layout(partitionable, x64=True):
        assert_same(random.bits(random.key(1), (4, 5)), jax.random.bits(jax.random.key(1), (4, 5)))


@both_layouts
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((), np.float32), (7, np.float32), ([4, 5], np.float32), ((2, 0), np.float32),
     ((1001,), np.float32), ((1001,), np.float16), ((1001,), ml_dtypes.bfloat16)], ids=str)
def test_uniform_is_exactly_that_of_jax(shape, dtype, partitionable, as_users_compile, jax_says):
    with layout(partitionable):
        ours, theirs = random.key(1), jax.random.key(1)
        assert_same(random.uniform(ours, shape, dtype),
                    jax_says(lambda: jax.random.uniform(theirs, shape, dtype)))
        wanted = jax_says(lambda: as_users_compile(
            lambda key: jax.random.uniform(key, shape, dtype, minval=-3.3, maxval=1.1))(theirs))
        assert_same(random.uniform(ours, shape, dtype, minval=-3.3, maxval=1.1), wanted)


@both_layouts
def test_uniform_in_float64_is_exactly_that_of_jax(partitionable, as_users_compile, jax_says):
    with layout(partitionable, x64=True):
        wanted = as_users_compile(
            lambda key, low, high: jax.random.uniform(key, (1001,), None, low, high))
        for bounds in [(0.0, 1.0), (-3.3, 1.1), (0.1, 1e10)]:
            assert_same(random.uniform(random.key(1), (1001,), None, *bounds),
                        jax_says(lambda bounds=bounds: wanted(jax.random.key(1), *bounds)))


@pytest.mark.parametrize("bounds", [(0, 5), (2.0, 1.0), (1.0, 1.0), (np.zeros(3), 2),
                                    (np.arange(2.0)[:, None], np.float16(4)),
                                    (np.zeros((2, 1)), np.arange(1, 4)), (-3e38, 3e38)], ids=str)
def test_bounds_may_be_anything_that_stretches(bounds, jax_says):
    assert_same(random.uniform(random.key(1), (2, 3), None, *bounds),
                jax_says(lambda: jax.random.uniform(jax.random.key(1), (2, 3), None, *bounds)))


def test_uniform_stays_below_its_upper_bound_and_above_its_lower():
    x = np.asarray(random.uniform(random.key(0), (100_000,)))
    assert x.min() >= 0
    assert x.max() < 1
    assert abs(x.mean() - 0.5) < 0.01


@pytest.mark.parametrize("make", [random.PRNGKey, random.key])
@pytest.mark.parametrize("name", ["bits", "normal"])
def test_raw_and_typed_keys_draw_the_same(make, name):
    draw = getattr(random, name)
    assert_same(draw(make(3), (5,)), draw(random.key(3), (5,)))
    assert_same(draw(np.asarray(random.PRNGKey(3)), (5,)), draw(random.key(3), (5,)))


# ── The others: within ulps ──────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(), (3,), (101, 99), (0,)])
def test_normal_is_within_four_ulps_of_jax(shape, dtype, jax_says):
    assert ulps(random.normal(random.key(1), shape, dtype),
                jax_says(lambda: jax.random.normal(jax.random.key(1), shape, dtype))) <= 4


def test_normal_in_the_other_layout_is_within_four_ulps_of_jax(jax_says):
    with layout(True):
        assert ulps(random.normal(random.key(1), (999,)),
                    jax_says(lambda: jax.random.normal(jax.random.key(1), (999,)))) <= 4


def test_normal_in_float64_is_near_that_of_jax(jax_says):
    with layout(False, x64=True):
        ours = random.normal(random.key(1), (1001,))
        theirs = jax_says(lambda: jax.random.normal(jax.random.key(1), (1001,)))
        assert ours.dtype == np.float64
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=2e-14)


def test_normal_numbers_are_finite_for_all_bits():
    # the uniform numbers that normal ones are made of never reach -1 or 1
    x = np.asarray(random.normal(random.key(0), (1_000_000,)))
    assert np.isfinite(x).all()
    assert abs(x.mean()) < 0.005
    assert abs(x.std() - 1) < 0.005


SAMPLERS = ["exponential", "laplace", "logistic", "cauchy", "gumbel"]


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("shape", [(), (33, 31)])
def test_samplers_are_near_those_of_jax(name, shape, jax_says):
    ours = getattr(random, name)(random.key(1), shape)
    theirs = np.asarray(jax_says(lambda: getattr(jax.random, name)(jax.random.key(1), shape)))
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    # absolute too: some end in a subtraction that cancels
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=2e-6, atol=3e-7)


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_draw_short_floats(name, jax_says):
    ours = getattr(random, name)(random.key(1), (100,), np.float16)
    theirs = np.asarray(jax_says(
        lambda: getattr(jax.random, name)(jax.random.key(1), (100,), np.float16)))
    assert ours.dtype == np.float16
    np.testing.assert_allclose(np.asarray(ours).astype(float), theirs.astype(float),
                               rtol=4e-3, atol=2e-3)


def test_gumbel_in_high_mode_is_near_that_of_jax(jax_says):
    ours = random.gumbel(random.key(1), (1001,), mode="high")
    theirs = jax_says(lambda: jax.random.gumbel(jax.random.key(1), (1001,), mode="high"))
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=2e-6, atol=3e-7)


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (-1, 1), (2.0, 3.0), (np.zeros((4, 1)), 2.0),
                                    (np.zeros((2, 1)), np.arange(1.0, 4))], ids=str)
def test_truncated_normal_is_near_that_of_jax(bounds, jax_says):
    ours = random.truncated_normal(random.key(1), *bounds)
    theirs = np.asarray(jax_says(
        lambda: jax.random.truncated_normal(jax.random.key(1), *bounds)))
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=2e-6, atol=3e-7)
    inside = np.asarray(random.truncated_normal(random.key(1), 2.0, 3.0, (1000,)))
    assert (inside > 2).all()
    assert (inside < 3).all()


# ── Under transformations ────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("name", ["uniform", "normal", "bits", "laplace"])
def test_batched_draws_are_those_of_each_key(name):
    draw = getattr(random, name)
    keys = random.split(random.key(1), 4)
    together = np.asarray(minijax.vmap(lambda k: draw(k, (3,)))(keys))
    compiled = np.asarray(minijax.jit(minijax.vmap(lambda k: draw(k, (3,))))(keys))
    np.testing.assert_array_equal(compiled, together)
    for i in range(4):
        np.testing.assert_array_equal(together[i], np.asarray(draw(keys[i], (3,))))


@both_layouts
def test_batched_draws_are_those_of_jax(partitionable, jax_says):
    with layout(partitionable):
        ours = minijax.vmap(lambda k: random.uniform(k, (5,)))(random.split(random.key(1), 3))
        theirs = jax_says(lambda: jax.vmap(lambda k: jax.random.uniform(k, (5,)))(
            jax.random.split(jax.random.key(1), 3)))
        assert_same(ours, theirs)


def test_two_levels_of_batching():
    keys = random.split(random.key(1), (2, 3))
    together = np.asarray(minijax.vmap(minijax.vmap(random.uniform))(keys))
    for i in np.ndindex(2, 3):
        assert together[i] == np.asarray(random.uniform(keys[i]))


@pytest.mark.parametrize("shape", [(), (3,), (4, 5)])
def test_compiled_draws_are_the_eager_ones(shape, as_users_compile, jax_says):
    key = random.key(1)
    with config.disable_jit(True):
        eager = np.asarray(random.uniform(key, shape, minval=-1.0, maxval=2.0))
    draw = minijax.jit(lambda k: random.uniform(k, shape, minval=-1.0, maxval=2.0))
    np.testing.assert_array_equal(np.asarray(draw(key)), eager)
    wanted = as_users_compile(lambda k: jax.random.uniform(k, shape, minval=-1.0, maxval=2.0))
    assert_same(draw(key), jax_says(lambda: wanted(jax.random.key(1))))


def test_several_draws_in_one_program_differ():
    def both(key):
        first, second = random.split(key)
        return random.bits(first, (2,)), random.bits(second, (2,))

    for compiled, eager in zip(minijax.jit(both)(random.key(7)), both(random.key(7)), strict=True):
        np.testing.assert_array_equal(np.asarray(compiled), np.asarray(eager))


def test_bounds_are_differentiated_through():
    def at(low, high):
        return random.uniform(random.key(1), (), minval=low, maxval=high)

    def in_jax(low, high):
        return jax.random.uniform(jax.random.key(1), (), minval=low, maxval=high)

    for ours, theirs in zip(minijax.grad(at, (0, 1))(1.0, 3.0), jax.grad(in_jax, (0, 1))(1.0, 3.0),
                            strict=True):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-6)


def test_noise_is_a_constant_to_a_derivative():
    noise = np.asarray(random.normal(random.key(0)))
    assert np.asarray(minijax.grad(lambda x: x * random.normal(random.key(0)))(1.0)) == noise


def test_a_key_has_no_derivative():
    with pytest.raises(TypeError, match="key<fry>"):
        minijax.grad(random.normal)(random.key(0))


def test_programs_read_as_in_jax():
    text = str(minijax.make_jaxpr(lambda k: random.normal(k, (3,)))(random.key(0)))
    for name in ["name=_normal", "name=_normal_real", "name=_uniform",
                 "random_bits[bit_width=32 shape=(3,)]", "erf_inv", "1.4142135381698608:f32[]",
                 "-0.9999999403953552:f32[]"]:
        assert name in text


# ── Mistakes ─────────────────────────────────────────────────────────────────────────────────

MISTAKES = {
    **{f"{name} of integers": (lambda r, name=name: getattr(r, name)(r.key(0), (3,), dtype=int))
       for name in ["uniform", "normal", *SAMPLERS]},
    "uniform of text": lambda r: r.uniform(r.key(0), (3,), "foo"),
    "uniform of booleans": lambda r: r.uniform(r.key(0), (3,), bool),
    "uniform of complex numbers": lambda r: r.uniform(r.key(0), (3,), "complex64"),
    "truncated normal of integers": lambda r: r.truncated_normal(r.key(0), -1, 1, (3,), int),
    "bits of signed integers": lambda r: r.bits(r.key(0), (3,), "int32"),
    "bits of floats": lambda r: r.bits(r.key(0), (3,), "float32"),
    "a float as a shape": lambda r: r.normal(r.key(0), 2.5),
    "a float in a shape": lambda r: r.normal(r.key(0), (2.0, 3)),
    "bounds that do not fit": lambda r: r.truncated_normal(
        r.key(0), np.zeros((2, 1)), np.ones(3), (2, 2)),
    "another mode": lambda r: r.gumbel(r.key(0), (3,), mode="foo"),
    "no key": lambda r: r.normal(shape=(3,)),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_get_the_words_of_jax(mistake):
    with pytest.raises(Exception) as ours:
        mistake(random)
    with pytest.raises(Exception) as theirs:
        mistake(jax.random)
    assert type(ours.value).__name__ == type(theirs.value).__name__
    assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0]


@pytest.mark.parametrize("minval", [np.zeros(2), np.zeros((2, 3))])
def test_bounds_that_do_not_stretch_are_refused(minval):
    with pytest.raises(TypeError):
        random.uniform(random.key(0), (3,), minval=minval)


def test_a_traced_size_is_refused_with_its_name():
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values") as error:
        minijax.jit(lambda n: random.normal(random.key(0), (n,)))(3)
    assert "depends on the value of the argument n" in str(error.value)


def test_a_negative_size_is_refused():
    with pytest.raises(TypeError, match="nonnegative"):
        random.normal(random.key(0), (-1,))


def test_a_dtype_of_64_bits_is_truncated_with_a_warning():
    with pytest.warns(UserWarning, match="float64 .*will be truncated to dtype float32"):
        assert random.normal(random.key(0), (3,), np.float64).dtype == np.float32


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, -1., 0., 1e30])
def test_rejection_ends_whatever_the_parameters(value):
    """Where nothing could ever be accepted; JAX goes on for ever at `binomial(inf, 0)`."""
    draw, key, value = minijax.random, minijax.random.key(3), np.float32(value)
    for p in (0., .3, 1., np.nan):
        found = np.asarray(draw.binomial(key, value, np.float32(p), (2,)))
        wrong = np.isnan(p) or not value >= 0
        assert np.all(np.isnan(found)) if wrong else np.all(found >= 0)
    for sample in (draw.gamma, draw.loggamma, draw.poisson, draw.chisquare, draw.t):
        assert sample(key, value, shape=(2,)).shape == (2,)
    assert draw.dirichlet(key, np.float32([value, 1, 2])).shape == (3,)
