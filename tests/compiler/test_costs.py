"""What compiled programs are said to cost is what JAX says, and what their loops do."""

import numpy as np
import pytest

import jax
import minijax

PROGRAMS = {
    "elementwise": (lambda np: lambda x: np.sin(x) * x + 1, [(1000,)]),
    "product": (lambda np: lambda x, y: x @ y, [(8, 16), (16, 4)]),
    "large product": (lambda np: lambda x, y: x @ y, [(128, 256), (256, 64)]),
    "two numbers": (lambda np: lambda x, y: 2 * x + y, [(), ()]),
}


@pytest.mark.parametrize(("name", "dtype"), [*((name, np.float32) for name in PROGRAMS),
                                             ("two numbers", np.int32), ("product", np.int32)])
def test_operations_are_counted_as_in_jax(name, dtype):
    make, shapes = PROGRAMS[name]
    args = [np.ones(shape, dtype) for shape in shapes]
    ours, theirs = (lib.jit(make(lib.numpy)).lower(*args).compile() for lib in (minijax, jax))
    expected = theirs.cost_analysis()
    for word in ("flops", "transcendentals"):
        assert ours.cost_analysis().get(word, 0) == expected.get(word, 0)
    got, wanted = ours.memory_analysis(), theirs.memory_analysis()
    assert got.argument_size_in_bytes == wanted.argument_size_in_bytes
    assert got.output_size_in_bytes == wanted.output_size_in_bytes


def test_a_loop_multiplies_what_is_in_it():
    def f(x):
        return minijax.lax.fori_loop(0, 7, lambda i, x: minijax.numpy.sin(x), x)
    compiled = minijax.jit(f).lower(np.ones(10, np.float32)).compile()
    assert compiled.cost_analysis()["transcendentals"] in (10, 70)  # its turns are known, or not


def test_temporary_memory_is_what_the_workspace_holds():
    def f(x):
        return minijax.numpy.sort(x) + minijax.numpy.cumsum(x)[::-1]
    stats = minijax.jit(f).lower(np.ones(1000, np.float32)).compile().memory_analysis()
    assert stats.temp_size_in_bytes >= 4000 and stats.alias_size_in_bytes == 0
