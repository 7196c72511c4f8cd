"""Interleaved accesses: which are one access of neighbours, and when they may move."""

import numpy as np
import pytest

from minijax import config, jit
from minijax.compiler.builder import Builder
from minijax.compiler.interleaving import groups_in
from minijax.compiler.loops import Buffer, For, Kernel, Load, Store, walk
from tests.compiler.test_llvm import run
from tests.compiler.test_vectorization import LEVELS

F32 = np.dtype(np.float32)
X = np.arange(64, dtype=F32) ** 2


def kernel_of(write, count=16):
    """A kernel with one loop: from x to y, of 64 elements each."""
    b = Builder()
    x, y = (Buffer(name, F32, (64,), role) for name, role in (("x", "input"), ("y", "output")))
    with b.loop(count, vectorize="parallel") as i:
        write(b, x, y, i)
    return Kernel("k", (x,), (y,), (), (), 0, {}, tuple(b.scopes[0].statements))


def place(b, i, step, k):
    return (b.add(b.mul(i, step), k),)


def groups(kernel):
    """The sizes of the groups of loads, and of those of stores."""
    [loop] = [each for each in walk(kernel.body) if isinstance(each, For)]
    found = set(groups_in(loop).values())
    return [sorted(len(group) for group in found if isinstance(group[0], kind))
            for kind in (Load, Store)]


def copied(step, load_order, store_order):
    """Elements of rows of `step`, each moved to the place before it in its row."""
    def write(b, x, y, i):
        values = {k: b.load(x, place(b, i, step, k)) for k in load_order}
        for k in store_order:
            b.store(y, place(b, i, step, k), b.add(values[(k + 1) % step], 1.0))
    return kernel_of(write, 64 // step)


@pytest.mark.parametrize("step", [2, 4, 8])
@pytest.mark.parametrize("turn", [1, -1])
def test_all_elements_of_a_row_are_a_group_in_whatever_order_they_come(step, turn):
    kernel = copied(step, range(step)[::turn], range(step)[::-turn])
    assert groups(kernel) == [[step], [step]]
    _, [y] = run(kernel, X)
    np.testing.assert_array_equal(y, np.roll(X.reshape(-1, step), -1, 1).ravel() + 1)


@pytest.mark.parametrize("step", [2, 4, 8])
@pytest.mark.parametrize("loads, stores", [(1, -1), (-1, 1), (-1, -1)])
def test_rows_may_come_from_the_last_one_on(step, loads, stores):
    def write(b, x, y, i):
        at = {1: i, -1: b.sub(64 // step - 1, i)}
        values = [b.load(x, place(b, at[loads], step, k)) for k in range(step)]
        for k in range(step):
            b.store(y, place(b, at[stores], step, k), b.mul(values[k], k + 1))
    kernel = kernel_of(write, 64 // step)
    assert groups(kernel) == [[step], [step]]
    _, [y] = run(kernel, X)
    rows = X.reshape(-1, step) * np.arange(1, step + 1)
    np.testing.assert_array_equal(y.reshape(-1, step), rows[::loads * stores])


def test_a_part_of_a_row_is_none():
    def write(b, x, y, i):
        b.store(y, place(b, i, 4, 0), b.load(x, place(b, i, 4, 1)))
    assert groups(kernel_of(write)) == [[], []]


def test_a_row_may_begin_anywhere_and_rows_do_not_overlap():
    def write(b, x, y, i):
        values = [b.load(x, place(b, i, 2, k)) for k in (1, 2, 3)]
        for k in (0, 1):
            b.store(y, place(b, i, 2, k), values[k])
    assert groups(kernel_of(write)) == [[2], [2]]
    _, [y] = run(kernel_of(write), X)
    np.testing.assert_array_equal(y[:32], X[1:33])


def in_place(apart):
    """Pairs of y: the second one is loaded after the first one, or itself, has been stored."""
    def write(b, x, y, i):
        first, second = place(b, i, 2, 0), place(b, i, 2, 1)
        b.store(y, first, b.load(x, first))
        b.store(y, second, 0.5)
        before = b.load(y, first)
        b.store(y, first if apart else second, b.add(before, 1.0))
        b.store(y, second if apart else first, b.load(y, second))
    return kernel_of(write)


@pytest.mark.parametrize("apart", [True, False])
def test_what_is_stored_and_loaded_again_in_an_iteration_stays_in_its_order(apart):
    _, [y] = run(in_place(apart), X)
    even = X[:32:2] + 1
    np.testing.assert_array_equal(y[:32:2], even)
    np.testing.assert_array_equal(y[1:32:2], np.full(16, 0.5, F32) if apart else even)


def test_what_a_branch_accesses_is_in_no_group():
    def write(b, x, y, i):
        for k in (0, 1):
            b.store(y, place(b, i, 2, k), b.load(x, place(b, i, 2, k)))
            with b.when(b.gt(b.load(x, (i,)), 9.0)):
                b.store(y, place(b, i, 2, 0), 0.5)
    assert groups(kernel_of(write)) == [[2], []]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "float32", "float64"])
def test_every_so_many_th_element_up_to_the_last_one_of_an_array(dtype, level):
    with config.cpu(level), config.enable_x64():
        for step in (2, 3, 4, 5, 6, 8, 16):
            x = (np.arange(step * 70 + 1) % 121).astype(dtype)
            outs = jit(lambda x: (x[::step], x[step:][::step] * 2 + 1))(x)  # noqa: B023
            for y, expected in zip(outs, (x[::step], x[step:][::step] * 2 + 1), strict=True):
                np.testing.assert_array_equal(y, expected.astype(y.dtype))


def test_elements_that_are_near_are_shuffled_out_of_vectors():
    text = jit(lambda x: x[:, 0] * 2).lower(np.zeros((1000, 3), np.uint8)).as_text("llvm")
    assert "shufflevector" in text and "insertelement" not in text
