"""The generator with a hidden state: ranges, types and spread, beside JAX where it answers."""

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax.lax import rng_uniform

BOUNDS = [np.float32([-2, 3]), np.float16([0, 1]), np.array([1, 1.5], ml_dtypes.bfloat16),
          np.int32([-5, 6]), np.int32([-2**31, 2**31 - 1]), np.uint32([3, 9]),
          np.uint8([0, 255])]  # XLA ends the process for integers of 8 bits
WAYS = {"eager": lambda f: f, "jit": minijax.jit}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bounds", BOUNDS, ids=lambda x: f"{x.dtype} {x}")
def test_numbers_fill_the_range(bounds, way):
    low, high = bounds
    drawn = WAYS[way](lambda a, b: rng_uniform(a, b, (40, 50)))(low, high)
    assert (drawn.shape, drawn.dtype) == ((40, 50), bounds.dtype)
    x, a, b = (np.asarray(v, float) for v in (drawn, low, high))
    assert a <= x.min() < a + (b - a) / 5
    assert b > x.max() >= b - (b - a) / 5
    last = b - 1 if bounds.dtype.kind in "iu" else b
    assert abs(x.mean() - (a + last) / 2) < (b - a) / 20


def test_64_bits_reach_their_ends():
    with minijax.enable_x64(True):
        for dtype in (np.int64, np.uint64):
            info = np.iinfo(dtype)
            x = np.asarray(rng_uniform(dtype(info.min), dtype(info.max), (99,))).astype(float)
            assert x.min() < info.min + 2**61
            assert x.max() > info.max - 2**61
        assert rng_uniform(np.float64(0), np.float64(1), ()).dtype == np.float64


def test_each_draw_is_another():
    twice = minijax.jit(lambda: (rng_uniform(0., 1., (9,)), rng_uniform(0., 1., (9,))))
    drawn = np.concatenate([*twice(), *twice(), rng_uniform(0., 1., (9,))])
    assert len(set(drawn.tolist())) > 40
    _, steps = minijax.lax.scan(lambda c, _: (c, rng_uniform(0., 1., ())), 0, length=20)
    assert len(set(np.asarray(steps).tolist())) > 15
    done = minijax.lax.fori_loop(0, 9, lambda i, x: x + rng_uniform(1., 2., (3,)), np.zeros(3))
    assert ((np.asarray(done) >= 9) & (np.asarray(done) < 18)).all()


def test_an_empty_range_gives_its_begin():
    for a, b in ((2., 1.), (5, 5), (5, 2), (np.float32(1), np.float32(np.nan))):
        assert (np.asarray(rng_uniform(a, b, (9,))) == a).all()


def test_its_type_and_its_text_are_those_of_jax():
    for a, b in ((0., 1.), (0., np.float32(1)), (0, 1), (np.float32(0), np.float32(1))):
        def facts(lib, a=a, b=b):
            x = lib.lax.rng_uniform(a, b, [2])
            return x.shape, x.dtype, x.weak_type, str(lib.make_jaxpr(
                lambda a, b: lib.lax.rng_uniform(a, b, (2,)))(a, b)).split()
        assert facts(minijax) == facts(jax)


@pytest.mark.parametrize("args", [(0., 1, (2,)), (np.ones(3), 1., (2,)), (0., 1., (2.5,)),
                                  ("a", 1., (2,))], ids=str)
def test_it_refuses_in_the_words_of_jax(args):
    with pytest.raises((TypeError, ValueError)) as ours:
        rng_uniform(*args)
    with pytest.raises((TypeError, ValueError)) as theirs:
        jax.lax.rng_uniform(*args)
    assert (ours.type, str(ours.value)) == (theirs.type, str(theirs.value))


def test_it_refuses_what_ends_or_stops_xla():
    for args in ((True, False, ()), (1j, 2j, ()), (0., 1., (-3,))):
        with pytest.raises((TypeError, ValueError), match="rng_uniform"):
            rng_uniform(*args)


@pytest.mark.parametrize("transformed", [
    lambda lib: lib.vmap(lambda a: lib.lax.rng_uniform(a, 1., (3,)))(np.zeros(2, np.float32)),
    lambda lib: lib.grad(lambda a: lib.lax.rng_uniform(a, 1., ()))(0.)], ids=["vmap", "grad"])
def test_it_is_not_transformed_as_in_jax(transformed):
    with pytest.raises(NotImplementedError) as theirs:
        transformed(jax)
    with pytest.raises(NotImplementedError) as ours:
        transformed(minijax)
    assert str(theirs.value) in str(ours.value)
