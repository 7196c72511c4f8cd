"""Products as tiles: of all layouts, sizes and dtypes, with what follows them, on the emulator."""

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler.kernels import products
from minijax.compiler.loops import Barrier, Call, For, Launch, Store, walk
from minijax.compiler.targets import cublas, launches, ptx, tensor_cores, tiles
from minijax.compiler.targets.emulator import Refused
from minijax.compiler.targets.programs import emulate
from tests.compiler.targets.test_emulator import rewritten
from tests.compiler.targets.test_launches import kernel, run
from tests.compiler.targets.test_ptx import PROCESSORS, usage

DTYPES = {np.dtype(name): tolerance for name, tolerance in (
    ("float32", 1e-6), ("float64", 1e-15), ("float16", 1e-3), (ml_dtypes.bfloat16, 8e-3),
    ("int8", 0), ("uint16", 0), ("int32", 0), ("bool", 0))}

LEAST = 6e-8  # float16, of which the next is another


@pytest.fixture(autouse=True)
def launched(monkeypatch):
    monkeypatch.setattr(products, "LAUNCHED", 8)


def numbers(shape, dtype=np.float32, seed=0):
    """Numbers of any dtype, in random order."""
    found = np.random.default_rng(seed).normal(size=shape)
    return found > 0 if np.dtype(dtype).kind == "b" else (
        found * 50 if np.dtype(dtype).kind in "iu" else found).astype(dtype)


def launches_of(f, *args):
    """The launches of a function."""
    return [each for each in walk(launches.scheduled(kernel(f, *args)).body)
            if isinstance(each, Launch)]


def is_tile(launch):
    """Whether it brings factors to shared memory."""
    return launch.threads == tiles.THREADS and any(
        isinstance(each, Store) and each.buffer.name == "strip" for each in walk(launch.body))


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["bij,bjk", "ij,jk", "ji,jk", "ij,kj", "ijb,bkj", "bji,jbk"]),
       st.fixed_dictionaries({"b": st.integers(1, 3), "i": st.integers(8, 40),
                              "j": st.integers(1, 40), "k": st.integers(8, 40)}),
       st.sampled_from(list(DTYPES)), st.integers(0, 9))
def test_products_of_all_layouts_are_those_of_numpy(axes, sizes, dtype, seed):
    axes += "->" + "b" * ("b" in axes) + "ik"
    with jax.enable_x64():
        x, y = (numbers([sizes[a] for a in part], dtype, seed + k)
                for k, part in enumerate(axes.split("->")[0].split(",")))
        [found], made = run(lambda x, y: jnp.einsum(axes, x, y), x, y, seed=seed)
    assert is_tile(made.body[-1]) and found.dtype == dtype
    exact = np.einsum(axes, *((x, y) if dtype.kind in "biu" else (x.astype(float),
                                                                   y.astype(float))))
    scale = np.einsum(axes, *(np.abs(v.astype(float)) for v in (x, y)))
    assert (np.abs(found.astype(float) - exact.astype(float)) <= DTYPES[dtype] * scale + LEAST
            ).all()


@pytest.mark.parametrize("each", [(8, 8), (8, 2), (2, 8), (4, 4)])
def test_tiles_of_each_size_and_their_edges(monkeypatch, each):
    monkeypatch.setattr(tiles.Tile, "plan", lambda _: (0, each, 1))
    for m, n, k in [(128, 128, 9), (130, 65, 8), (20, 150, 33)]:
        x, y = numbers((m, k)), numbers((k, n))
        [found], _ = run(lambda x, y: x @ y, x, y)
        np.testing.assert_allclose(found, x.astype(float) @ y.astype(float), atol=2e-5)


def test_sums_may_be_wider_than_the_factors():
    x, y = numbers((20, 300), np.int8), numbers((300, 20), np.int8)
    [found], _ = run(lambda x, y: jax.lax.dot(x, y, preferred_element_type=np.int32), x, y)
    np.testing.assert_array_equal(found, x.astype(int) @ y.astype(int))


AFTER = {
    "nothing": lambda z, row: z,
    "a chain": lambda z, row: jnp.tanh(z) * 2 + 1,
    "a row beside": lambda z, row: jax.nn.relu(z + row),
    "two results": lambda z, row: (z + row, z > 0),
    "itself and more": lambda z, row: (z, jnp.exp(z)),
    "another shape": lambda z, row: jnp.sin(z.reshape(5, -1, 36)),
}


@pytest.mark.parametrize("name", AFTER)
def test_what_follows_a_product_is_done_by_its_launch(name):
    x, y, row = numbers((20, 30)), numbers((30, 36), seed=1), numbers(36, seed=2)
    f = lambda x, y, row: AFTER[name](x @ y, row)
    found, made = run(f, x, y, row)
    assert [type(each) for each in made.body] == [Launch]
    for a, b in zip(found, jax.tree.leaves(f(x, y, row)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


APART = {
    "another element": lambda x, y: (x @ y)[::-1] + 1,
    "its transpose too": lambda x, y: (lambda z: z + z.T)(x @ y),
    "a sum": lambda x, y: (x @ y).sum(1),
    "softmax": lambda x, y: jax.nn.softmax(x @ y, -1),
    "a product of it": lambda x, y: (x @ y) @ x,
    "a change of a factor": lambda x, y: jax.lax.fori_loop(0, 3, lambda i, x: jnp.sin(x @ y), x),
}


@pytest.mark.parametrize("name", APART)
def test_what_asks_for_other_elements_comes_later(name):
    x, y = numbers((20, 20)), numbers((20, 20), seed=1)
    found, made = run(APART[name], x, y)
    assert len([each for each in walk(made.body) if isinstance(each, Launch)]) > 1
    np.testing.assert_allclose(found[0], APART[name](x, y), rtol=1e-5, atol=1e-5)


def test_a_product_that_others_ask_for_too_is_stored():
    x, y = numbers((20, 20)), numbers((20, 20), seed=1)
    f = lambda x, y: (lambda z: (jnp.sin(z), z.sum()))(x @ y)
    (a, b), made = run(f, x, y)
    assert is_tile(made.body[0])
    np.testing.assert_allclose(a, jnp.sin(x @ y), atol=1e-5)
    np.testing.assert_allclose(b, (x @ y).sum(), rtol=1e-4)


def test_products_in_loops_and_branches_of_the_host():
    x = numbers((20, 20)) / 9

    def f(x):
        y = jax.lax.cond(x.sum() > 0, lambda: x @ x, lambda: x @ x.T)
        return jax.lax.fori_loop(0, 3, lambda i, y: jnp.tanh(x @ y), y)
    [found], made = run(f, x)
    assert any(isinstance(each, For) and any(map(is_tile, filter(
        lambda each: isinstance(each, Launch), each.body))) for each in made.body)
    np.testing.assert_allclose(found, f(x), rtol=1e-5, atol=1e-5)


def test_derivatives_of_products_are_tiles_too():
    x, y = numbers((20, 30)), numbers((30, 24), seed=1)
    f = jax.grad(lambda x, y: jnp.tanh(x @ y).sum(), (0, 1))
    found, made = run(f, x, y)
    assert sum(map(is_tile, made.body)) == 3
    for a, b in zip(found, f(x, y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_no_barrier_of_a_tile_can_be_spared():
    x, y = numbers((32, 40)), numbers((40, 32))
    made = launches.scheduled(kernel(lambda x, y: x @ y, x, y))
    barriers = [each for each in walk(made.body) if isinstance(each, Barrier)]
    assert len(barriers) == 4
    for barrier in barriers:
        with pytest.raises(Refused, match="a race for|nothing has been stored"):
            emulate(rewritten(made, lambda s, b=barrier: () if s is b else (s,)), [x, y])


def plan(m, n, k=64, dtype=np.float32):
    made = kernel(lambda x, y: x @ y, np.zeros((m, k), dtype), np.zeros((k, n), dtype))
    [call] = [each for each in made.body if isinstance(each, Call)]
    return tiles.Tile.plan(tiles.Product.of(call))[1:]


def test_larger_tiles_where_they_fill_all_processors():
    assert plan(4096, 4096) == ((8, 8), 1)
    assert plan(512, 512) == ((4, 4), 1)
    assert plan(16, 4096)[0][0] == 2
    assert plan(64, 64) == ((2, 2), 1)


def test_long_sums_of_few_tiles_are_in_parts():
    assert plan(64, 64, 4096)[1] == 16
    assert plan(256, 256, 512)[1] > 1
    assert plan(4096, 4096, 4096)[1] == 1


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool"])
@pytest.mark.parametrize("k", [48, 64, 75])
def test_parts_of_a_sum_are_joined_before_what_follows(monkeypatch, k, dtype):
    monkeypatch.setattr(tiles.Tile, "plan", lambda _: (0, (2, 2), 4))
    monkeypatch.setattr(tensor_cores.TensorTile, "plan", lambda product: (0, (2, 2), 4))
    x, y = numbers((2, 20, k), dtype), numbers((2, k, 33), dtype, seed=1)
    found, made = run(lambda x, y: (lambda z: (z, z == z.max()))(x @ y), x, y)
    z = np.einsum("bij,bjk->bik", *(v if v.dtype.kind in "bi" else v.astype(float)
                                    for v in (x, y)))
    assert made.body[0].blocks == 4 * 2 * 1 * 2
    np.testing.assert_allclose(found[0].astype(float), z, rtol=2e-3, atol=1e-2)
    [after], made = run(lambda x, y: x @ y != 0, x, y)
    assert {type(each) for each in made.body} == {Launch}
    np.testing.assert_array_equal(after, found[0] != 0)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "float64"])
def test_tiles_of_any_size_keep_to_their_registers(monkeypatch, dtype, processor, tmp_path):
    monkeypatch.setattr(cublas, "has", lambda call: False)
    with jax.enable_x64():
        for m, n in [(4096, 4096), (4095, 4095), (4095, 517), (100, 100)]:
            x, y = np.zeros((m, 333), dtype), np.zeros((333, n), dtype)
            registers, spilled = usage(kernel(lambda x, y: jnp.maximum(x @ y, 1), x, y),
                                       processor, tmp_path)
            assert max(registers) <= 128 and not any(spilled)


def test_factors_are_loaded_by_four_for_sixteen_multiplications_each(monkeypatch):
    monkeypatch.setattr(cublas, "has", lambda call: False)
    x = np.zeros((4096, 4096), np.float32)
    f = lambda x: jnp.matmul(x, x, precision="highest")
    text = ptx.compile(ptx.assembly(launches.scheduled(kernel(f, x))))
    inner = max(re.split(r"\$L\w+:", text), key=lambda part: part.count("fma.rn.f32"))
    assert inner.count("fma.rn.f32") == 16 * inner.count("ld.shared.v4") == 8 * 8 * 2
    assert inner.count("ld.shared") == inner.count("ld.shared.v4")
