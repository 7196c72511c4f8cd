"""Neighbouring loops become one where the second loads what the first stores at the same place."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler.builder import Builder
from minijax.compiler.loops import For, Launch, Load, accesses, walk
from minijax.compiler.targets import launches, loop_fusion
from tests.compiler.targets.test_launches import kernel, run

N = 1 << 10
X, Y = np.linspace(-2, 3, N, dtype=np.float32), np.linspace(5, 7, N, dtype=np.float32)


def two(x):
    """Two results of one operation, which loops store side by side."""
    return jax.random.bits(jax.random.wrap_key_data(x.view(np.uint32)[:2]), (N,))


PROGRAMS = {
    "both halves": two,
    "both halves and more": lambda x: jnp.sin(two(x).astype(np.float32)) + x,
    "normal numbers": lambda x: jax.random.normal(jax.random.key(3), (N,)) * x,
    "as a matrix": lambda x: jax.random.uniform(jax.random.key(3), (N // 4, 4)),
    "an odd number": lambda x: jax.random.bits(jax.random.key(3), (N - 1,)),
    "joined": lambda x: jnp.concatenate([x, x[::-1] * 2]),
    "joined three times": lambda x: jnp.concatenate([x * 2, x, x + 1]),
    "rolled": lambda x: jnp.roll(jnp.cumsum(x), 3),
    "padded": lambda x: jnp.pad(x, 3),
}


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    for module, name in [(launches, "WIDE"), (loop_fusion, "MIN_MEMORY_BOUND")]:
        monkeypatch.setattr(module, name, 64)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_numbers_are_the_same(name):
    [found], _ = run(PROGRAMS[name], X)
    np.testing.assert_allclose(found, PROGRAMS[name](jnp.asarray(X)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["both halves", "normal numbers", "as a matrix"])
def test_random_words_go_straight_to_their_places(name):
    made = launches.scheduled(kernel(PROGRAMS[name], X))
    assert [type(each) for each in made.body] == [Launch] and not made.temps


def loops(*bodies):
    """Loops over buffers x, y (temps) and z, with statements by index."""
    b = Builder()
    x, y, z = (b.temp((2 * N,), np.float32, name) for name in "xyz")
    for body in bodies:
        with b.loop(N, vectorize="parallel") as i:
            body(b, i, x, y, z)
    return tuple(b.scopes[0].statements)


def stores_x(b, i, x, y, z):
    b.store(x, (i,), b.convert(i, np.float32))


def count(*bodies):
    return len(loop_fusion.fused_loops(loops(*bodies)))


def test_loops_that_depend_on_other_iterations_stay_apart():
    assert count(stores_x, lambda b, i, x, y, z: b.store(y, (i,), b.load(x, (i,)))) == 1
    assert count(stores_x, lambda b, i, x, y, z: b.store(
        y, (i,), b.load(x, (b.add(i, 1),)))) == 2
    assert count(stores_x, lambda b, i, x, y, z: b.store(
        y, (i,), b.add(b.load(x, (i,)), b.load(x, (b.sub(N - 1, i),))))) == 2
    # What the first loads elsewhere, the second would overwrite too soon.
    def loads_next(b, i, x, y, z):
        b.store(x, (i,), b.load(y, (b.add(i, 1),)))
    assert count(loads_next, lambda b, i, x, y, z: b.store(y, (i,), b.load(x, (i,)))) == 2
    # A loop that shares nothing keeps its launch.
    assert count(stores_x, lambda b, i, x, y, z: b.store(y, (i,), 1)) == 2


def nest(rows, columns, place, start=0):
    """A nest of two loops that copies a matrix into another place of a vector."""
    b = Builder()
    x, y = b.temp((rows, columns), np.float32), b.temp((9 * rows * columns,), np.float32)
    with (b.loop(rows, start, vectorize="parallel") as i,
          b.loop(columns, vectorize="parallel") as j):
        b.store(y, (place(b, i, j),), b.load(x, (i, j)))
    [loop] = loop_fusion.fused_loops(b.scopes[0].statements)
    return not any(isinstance(each, For) for each in walk(loop.body))


def test_a_nest_is_one_loop_where_its_places_are_linear():
    linear = lambda b, i, j: b.add(b.mul(i, 7), j)
    assert nest(5, 7, linear)
    assert nest(5, 7, lambda b, i, j: b.add(linear(b, i, j), 3))
    assert not nest(5, 7, lambda b, i, j: b.add(b.mul(i, 8), j))
    assert not nest(5, 7, lambda b, i, j: b.add(b.mul(j, 5), i))
    assert not nest(5, 7, lambda b, i, j: b.add(linear(b, i, j), j))
    assert not nest(5, 7, linear, start=1)


def test_what_nobody_loads_is_not_stored():
    [loop] = loop_fusion.fused_loops(loops(
        stores_x, lambda b, i, x, y, z: b.store(y, (i,), b.load(x, (i,))),
        lambda b, i, x, y, z: b.store(z, (i,), b.load(y, (i,)))))
    assert not list(accesses(walk((loop,)), Load))
