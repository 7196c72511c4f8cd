"""The Threefry block function and the fused multiply-add."""

from fractions import Fraction

import numpy as np
import pytest

import minijax
from minijax.primitives.threefry import fma_p, fused_multiply_add, threefry2x32, threefry2x32_p

ONES = 0xFFFFFFFF


# Known answers that the authors ship with Random123 (file kat_vectors, threefry2x32, 20 rounds).
@pytest.mark.parametrize(("counters", "key", "expected"), [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((ONES, ONES), (ONES, ONES), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
])
def test_threefry_gives_the_known_answers(counters, key, expected):
    found = threefry2x32(*map(np.uint32, key), *map(np.uint32, counters))
    assert [x.dtype for x in found] == [np.uint32, np.uint32]
    assert tuple(int(np.asarray(x)) for x in found) == expected


def test_threefry_works_place_by_place():
    words = np.arange(24, dtype=np.uint32).reshape(4, 2, 3) * np.uint32(2654435769)
    first, second = threefry2x32(*words)
    for i in np.ndindex(2, 3):
        one, two = threefry2x32(*(w[i] for w in words))
        assert np.asarray(first)[i] == np.asarray(one)
        assert np.asarray(second)[i] == np.asarray(two)


def test_threefry_stretches_keys_over_counters():
    counters = np.arange(5, dtype=np.uint32)
    together = threefry2x32(np.uint32(1), np.uint32(2), counters, counters)
    apart = threefry2x32(*(np.full(5, k, np.uint32) for k in (1, 2)), counters, counters)
    for x, y in zip(together, apart, strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_threefry_batches_some_of_its_words():
    counters = np.arange(6, dtype=np.uint32).reshape(3, 2)
    k1, k2 = np.uint32([7, 8]), np.uint32([9, 9])
    batched = minijax.vmap(lambda c: threefry2x32_p.bind(k1, k2, c, c), in_axes=0)(counters)
    for i in range(3):
        for x, y in zip(batched, threefry2x32_p.bind(k1, k2, counters[i], counters[i]),
                        strict=True):
            np.testing.assert_array_equal(np.asarray(x)[i], np.asarray(y))


def test_compiled_threefry_gives_the_same_words():
    words = [np.uint32([0, 1, ONES]), np.uint32([0, 2, ONES]), np.uint32([0, 3, ONES]),
             np.uint32([0, 4, 5])]
    compiled = minijax.jit(lambda *w: threefry2x32(*w))(*words)
    for x, y in zip(compiled, threefry2x32(*words), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_threefry_refuses_other_dtypes_and_shapes():
    word = np.zeros(2, np.uint32)
    with pytest.raises(TypeError, match="must have uint32 type"):
        threefry2x32_p.bind(word, word, word, word.astype(np.int32))
    with pytest.raises(TypeError, match="must have equal shapes"):
        threefry2x32_p.bind(word, word, word, np.uint32(1))


def exactly(x, y, z):
    """x * y + z in exact arithmetic, rounded to the nearest float32 once; ties to even."""
    total = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    near = np.float32(float(total))
    candidates = [np.nextafter(near, np.float32(-np.inf)), near,
                  np.nextafter(near, np.float32(np.inf))]
    return min(candidates, key=lambda c: (abs(Fraction(float(c)) - total), c.view(np.uint32) & 1))


@pytest.mark.parametrize("run", [lambda f: f, lambda f: minijax.jit(f)], ids=["eager", "jit"])
def test_fma_rounds_once(run):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 300)).astype(np.float32)
    z = np.float32(-x * y * (1 + rng.integers(-2, 3, 300) * 2.0**-24))
    found = np.asarray(run(fused_multiply_add)(x, y, z))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [exactly(*xyz) for xyz in zip(x, y, z, strict=True)])


def test_fma_has_the_derivatives_of_a_product_and_a_sum():
    args = tuple(np.float32(v) for v in (2.0, 3.0, 5.0))
    assert [float(g) for g in minijax.grad(fused_multiply_add, (0, 1, 2))(*args)] == [3, 2, 1]


def test_short_floats_are_multiplied_and_added_in_two_steps():
    x, y, z = (np.float16(v) for v in (1.001, 1.001, -1.002))
    assert float(fused_multiply_add(x, y, z)) == float(np.float16(np.float16(x * y) + z))


def test_fma_refuses_integers():
    one = np.int32(1)
    with pytest.raises(TypeError, match="fma does not accept dtype int32"):
        fma_p.bind(one, one, one)
