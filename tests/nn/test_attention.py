"""Attention beside JAX: masks, windows, lengths, shared heads, derivatives."""

import functools

import jax
import numpy as np
import pytest

import minijax

RNG = np.random.default_rng(0)
QUERY, = RNG.standard_normal((1, 2, 5, 4, 3)).astype(np.float32)
KEY, VALUE = RNG.standard_normal((2, 2, 6, 4, 3)).astype(np.float32)
FEW = {"key": KEY[:, :, :2], "value": VALUE[:, :, :2]}
BIAS = RNG.standard_normal((2, 4, 5, 6)).astype(np.float32)
MASK = RNG.random((2, 1, 5, 6)) < .7

OPTIONS = [
    {}, {"bias": BIAS}, {"mask": MASK}, {"bias": BIAS[:1], "mask": MASK[:, :, :1]},
    {"is_causal": True}, {"scale": .3}, {"local_window_size": 1}, {"local_window_size": (2, 0)},
    {"query_seq_lengths": np.int32([3, 5])}, {"key_value_seq_lengths": np.int32([2, 6])},
    {"query_seq_lengths": np.int32([3, 1]), "key_value_seq_lengths": np.int32([4, 6]),
     "is_causal": True, "mask": MASK}, FEW, {**FEW, "is_causal": True, "bias": BIAS},
    {"key": KEY[:, :, :1], "value": VALUE[:, :, :1]}, {"implementation": "xla"},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_values_are_those_of_jax(options, jax_says):
    given = {"query": QUERY, "key": KEY, "value": VALUE, **options}
    for residual in (False, True):
        found = minijax.nn.dot_product_attention(**given, return_residual=residual)
        wanted = jax_says(functools.partial(
            jax.nn.dot_product_attention, **given, return_residual=residual))
        pairs = zip(found, wanted, strict=True) if residual else [(found, wanted)]
        for x, y in pairs:
            assert x.shape == y.shape and x.dtype == y.dtype
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=2e-5, atol=2e-5)


def test_without_a_batch_and_in_short_floats(beside_jax):
    for dtype in ("float32", "bfloat16"):
        found, wanted = beside_jax(lambda lib: lib.nn.dot_product_attention(
            *(lib.numpy.asarray(x[0], dtype) for x in (QUERY, KEY, VALUE)), is_causal=True))
        sums = [lib.nn.dot_product_attention(
            *(lib.numpy.asarray(x[0], dtype) for x in (QUERY, KEY, VALUE)),
            return_residual=True)[1].dtype for lib in (minijax, jax)]
        assert sums[0] == sums[1] == dtype
        assert found.shape == wanted.shape and found.dtype == wanted.dtype
        np.testing.assert_allclose(np.asarray(found, np.float32), np.asarray(wanted, np.float32),
                                   rtol=2e-2 if dtype == "bfloat16" else 1e-5, atol=1e-2)


def test_its_derivatives_are_those_of_jax(jax_says):
    def slopes(lib):
        def total(q, k, v):
            return (lib.nn.dot_product_attention(q, k, v, is_causal=True) ** 2).sum()
        return lib.jit(lib.grad(total, (0, 1, 2)))(QUERY, FEW["key"], FEW["value"])
    for x, y in zip(slopes(minijax), jax_says(lambda: slopes(jax)), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("given", [
    {"key": KEY[:, :, :3], "value": VALUE[:, :, :3]}, {"value": VALUE[:, :2]},
    {"query": QUERY[..., :2]}, {"query": QUERY[0, 0]}, {"implementation": "fast"},
    {"value": VALUE.astype(np.float16)}, {"mask": MASK * 1.0}, {"bias": BIAS[None]},
    {"query_seq_lengths": np.int32([3])}, {"key_value_seq_lengths": np.float32([3, 3])}])
def test_what_does_not_fit_is_refused(given):
    said = []
    for lib in (jax, minijax):
        with pytest.raises(ValueError) as caught:
            lib.nn.dot_product_attention(**{"query": QUERY, "key": KEY, "value": VALUE, **given})
        said.append(str(caught.value))
    assert said[0] == said[1]
