"""Outer-loop vectorisation: the lanes are short rows, and rows are straight code."""

from dataclasses import replace

import numpy as np
import pytest

from minijax import disable_jit, enable_x64, jit, lax, nn, numpy as jnp, tree
from minijax.compiler import cache
from minijax.compiler.builder import Builder
from minijax.compiler.loops import Buffer, Call, For, Kernel, walk
from minijax.compiler.outer_loop_vectorization import put_rows_in_lanes
from tests.running_text import run_text

F32 = np.dtype(np.float32)
ROWS = 100  # which fill no vectors
LABELS = np.arange(ROWS) % 3


def rows_of(n):
    return np.random.default_rng(n).normal(size=(ROWS, n)).astype(np.float32)


FUNCTIONS = {
    "max": lambda x: x.max(1), "argmax": lambda x: x.argmax(1), "any": lambda x: (x > 1).any(1),
    "prod": lambda x: x.prod(1), "reversed": lambda x: x[:, ::-1] * 2 + 1,
    "softmax": nn.softmax, "norm": lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True),
    "one-hot": lambda x: nn.one_hot(x.argmax(1), x.shape[1]) * x,
    "accuracy": lambda x: (x.argmax(1) == LABELS).sum(), "cumsum": lambda x: x.cumsum(1),
    "outer": lambda x: x[:, :, None] * x[:, None, :2], "rounded": lambda x: lax.round(x * 3),
    "losses": lambda x: -jnp.take_along_axis(nn.log_softmax(x), LABELS[:, None], 1).mean()}


def kernels(f, x):
    """The kernel of a function, before and after."""
    kernel = jit(f).lower(x)._lowered.kernel
    return kernel, replace(kernel, body=put_rows_in_lanes(kernel.body))


def nested(kernel):
    return [loop for loop in walk(kernel.body) if isinstance(loop, For) and any(
        isinstance(each, For) for each in walk(loop.body))]


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("name", ["max", "argmax", "any", "softmax", "one-hot", "accuracy"])
def test_a_loop_over_short_rows_is_straight_and_has_the_same_numbers(name, n):
    x = rows_of(n)
    before, after = kernels(FUNCTIONS[name], x)
    assert nested(before) and not nested(after)
    [found], [wanted] = run_text(after, [x]), run_text(before, [x])
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("f, x", [
    (lambda x: x.max(1), rows_of(40)), (lambda x: x.max(1), rows_of(20)),
    (nn.softmax, rows_of(60)), (nn.softmax, rows_of(3)[:20])])
def test_loops_over_longer_or_few_rows_stay_as_they_are(f, x):
    before, after = kernels(f, x)
    assert len(nested(after)) == len(nested(before)) > 0


@pytest.mark.parametrize("n", [2, 3, 5, 6, 7, 8, 9, 10, 12, 13, 16, 17, 20, 33, 48])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_of_every_length_have_the_numbers_of_the_interpreted_program(name, n):
    x, f = rows_of(n), FUNCTIONS[name]
    with disable_jit():
        expected = f(jnp.asarray(x))
    np.testing.assert_allclose(jit(f)(x), expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "int32", "float16", "float64", "uint8", "complex64"])
@pytest.mark.parametrize("n", [3, 5])
def test_elements_of_every_width_are_sorted_into_lanes_and_back(dtype, n):
    with enable_x64(dtype == "float64"):
        x = (rows_of(n) * 20).astype(dtype)
        f = jit(lambda x: jnp.stack([x[:, k] * (k + 1) for k in range(n)][::-1], 1))
        np.testing.assert_array_equal(f(x), np.stack([
            x[:, k] * np.array(k + 1, dtype) for k in range(n)][::-1], 1))


@pytest.mark.parametrize("n", [2, 3, 8, 13])
@pytest.mark.parametrize("f", [
    lambda x: (x.argmin(1), x.min(1).sum()), lambda x: (nn.softmax(x), nn.logsumexp(x, 1).mean()),
    lambda x: (x - x.max(1, keepdims=True), (x * x).sum(1).sum(), x.argmax(1)),
    lambda x: (jnp.exp(x - x.max(1, keepdims=True)).sum(1).max(), jnp.sort(x, 1)[:, 0])])
def test_results_for_each_row_beside_a_total_of_all_rows(f, n):
    points = rows_of(n)
    for x in (points, np.repeat(points, 2, 0)[:150]):
        with disable_jit():
            expected = f(jnp.asarray(x))
        for found, wanted in zip(jit(f)(x), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [
    (10, 10, 7), (5, 4, 5, 20), (3, 1, 70, 12), (100, 3, 3), (70, 2, 9)])
def test_rows_of_arrays_of_more_axes(shape):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    axes = tuple(range(2, x.ndim))
    for f in (lambda x: nn.softmax(x), lambda x: (x - x.mean(axes, keepdims=True)) / x.std(
            axes, keepdims=True), lambda x: -nn.log_softmax(x)[..., 1].mean()):
        assert any(map(nested, kernels(f, x)[:1]))
        with disable_jit():
            expected = f(jnp.asarray(x))
        np.testing.assert_allclose(jit(f)(x), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [3, 9, 12, 20])
@pytest.mark.parametrize("f", [
    lambda x: nn.logsumexp(jnp.concatenate([x * 2, x[::-1], x + 1]), 1),
    lambda x: jnp.tanh(jnp.pad(x, ((70, 80), (0, 0)))).prod(1),
    lambda x: jnp.tanh(jnp.concatenate([x[:, 0] * 2, x[::-1, 1], x[:, 0] + 1])[:, None] * x[:1])])
def test_rows_of_a_loop_that_begins_in_the_middle(f, n):
    x = rows_of(n)
    with disable_jit():
        expected = f(jnp.asarray(x))
    np.testing.assert_allclose(jit(f)(x), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("d, k", [(1, 3), (2, 3), (3, 7), (5, 2)])
def test_points_are_assigned_to_centres_beside_a_total(d, k):
    points, centres = rows_of(d), rows_of(d)[:k] + 1

    def nearest(x, c):
        distances = ((x[:, None] - c[None]) ** 2).sum(-1)
        return distances.argmin(1), distances.min(1).sum()

    with disable_jit():
        expected = nearest(jnp.asarray(points), jnp.asarray(centres))
    found = jit(nearest)(points, centres)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)


def test_a_row_that_is_updated_at_an_index_from_an_array():
    def sums(x, at):
        def step(x, i):
            return x, lax.dynamic_update_slice(x, x[:1, :1, :3], (0, i, 1)).sum()
        return lax.scan(step, x, at)[1]

    x, at = rows_of(4)[:4][None], np.arange(ROWS) % 4
    with disable_jit():
        expected = sums(jnp.asarray(x), jnp.asarray(at))
    np.testing.assert_allclose(jit(sums)(x, at), expected, rtol=1e-5)


STACKS = {
    "diagonals": lambda x: [jnp.diagonal(x, k, -2, -1) for k in (-1, 0, 1)],
    "triangles": lambda x: (jnp.tril(x), jnp.triu(x, 1), jnp.trace(x, axis1=-2, axis2=-1)),
    "moved": lambda x: (x.mT[..., ::-1], jnp.roll(x, 1, -1), jnp.flip(x, -2) * 2),
    "taken": lambda x: (x[..., [0, 2, 2], :], x[..., [1, 2], [0, 1]], jnp.take(x, 1, -1) + 1),
    "updated": lambda x: (x.at[..., 1].set(0), x.at[..., 0, 1:].add(x[..., 1, :2]),
                          x.at[..., [0, 2], [1, 1]].multiply(3)),
    "joined": lambda x: (jnp.concatenate([x, x[..., :1] * 2], -1), jnp.pad(
        x, [(0, 0)] * (x.ndim - 1) + [(1, 2)]), jnp.stack([x, -x], -1)),
    "products": lambda x: (x @ x, x @ x[..., :1],
                           jnp.einsum("...ij,...kj->...ik", x, x[..., :2, :])),
    "sums": lambda x: (x.sum(-1), x.prod((-1, -2)), jnp.cumsum(x, -1), (x * x).sum(-2)),
    "parts": lambda x: (x.real, x.imag, jnp.conj(x)[..., 0], abs(x)[..., :2]),
    "chosen": lambda x: (jnp.where(abs(x) > 1, x, 0), lax.select(abs(x) > 1, x, x.mT)),
    "called": lambda x: (jnp.exp(x), jnp.sqrt(x[..., 1:]), jnp.tanh(x[..., 0]) + x[..., 1]),
    "carried": lambda x: lax.fori_loop(0, 3, lambda i, x: x.at[..., i].add(x[..., 0] / 2), x),
}


@pytest.mark.parametrize("shape", [(100, 3, 3), (10, 10, 3, 3), (67, 4, 3)])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
@pytest.mark.parametrize("name", STACKS)
def test_stacks_of_small_matrices(name, dtype, shape):
    random = np.random.default_rng(0)
    f = STACKS[name]
    if shape[-1] != shape[-2] and name in ("products", "chosen"):
        f = lambda x: STACKS[name](x[..., :3, :])
    with enable_x64(dtype == "complex128"):
        z = random.normal(size=(2, *shape))
        x = jnp.asarray(z[0] if dtype == "float32" else z[0] + 1j * z[1], dtype)
        with disable_jit():
            expected = f(x)
        found = jit(f)(x)
    for one, other in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=3e-5, atol=1e-5)


def test_what_a_loop_does_not_store_of_its_rows_stays():
    x, y = Buffer("x", F32, (100, 3, 2), "input"), Buffer("y", F32, (100, 4, 2), "output")

    def stored(b, part):
        with b.loop(100, vectorize="parallel") as i, b.loop(3, vectorize="parallel") as j:
            value = b.load(x, (i, j, part))
            for _ in range(50):
                value = b.add(b.mul(value, 0.5), 1.)
            b.store(y, (i, j, part), value)
    b = Builder()
    stored(b, 0)
    stored(b, 1)
    body = tuple(b.scopes[0].statements)
    in_lanes = put_rows_in_lanes(body)  # in tiles, as it is much code
    assert any(isinstance(each, Call) for each in walk(in_lanes))
    given = np.random.default_rng(0).normal(size=x.shape).astype(F32)
    kernel = Kernel("k", (x,), (y,), (), (), 0, {}, body)
    found = np.full(y.shape, 7, F32)
    cache.compile_or_load(kernel).run([given, found, np.zeros(0, np.uint8)])
    np.testing.assert_allclose(found[:, :3], run_text(kernel, [given])[0][:, :3], rtol=1e-6)
    assert (found[:, 3] == 7).all()
