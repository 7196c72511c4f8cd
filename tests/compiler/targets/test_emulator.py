"""The emulator refuses what a GPU would get wrong: mistakes are planted in kernels that work."""

from dataclasses import replace

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler.loops import (
    BOOL, INT64, Barrier, Buffer, Constant, For, If, Kernel, Launch, Let, Load, Scalar, Shuffle,
    Store, walk,
)
from minijax.compiler.targets import launches
from minijax.compiler.targets.emulator import Refused
from minijax.compiler.targets.programs import emulate

X = np.linspace(-2, 3, 3000, dtype=np.float32).reshape(30, 100)


def rewritten(x, change):
    """A tree in which each statement is what `change` gives for it, a tuple of statements."""
    def body(statements):
        return tuple(new for each in statements for new in change(inside(each)))

    def inside(each):
        match each:
            case For() | Launch():
                return replace(each, body=body(each.body))
            case If(test, then, orelse):
                return If(test, body(then), body(orelse))
        return each
    return replace(x, body=body(x.body))


def softmax():
    source = jax.jit(lambda x: jax.nn.softmax(x, -1)).lower(X)._lowered.kernel
    return launches.scheduled(source)


def run(kernel, x=X):
    return emulate(kernel, [x])[0]


def test_the_kernel_itself_is_right():
    np.testing.assert_allclose(run(softmax()), jax.nn.softmax(X, -1), rtol=1e-6)


def test_a_missing_barrier_is_a_race():
    broken = rewritten(softmax(), lambda s: () if isinstance(s, Barrier) else (s,))
    with pytest.raises(Refused, match="a race for"):
        run(broken)


def test_threads_that_store_at_one_place_are_a_race():
    def all_threads(s):
        return s.then if isinstance(s, If) and len(s.then) == 1 and isinstance(
            s.then[0], Store) else (s,)
    with pytest.raises(Refused, match="a race for"):
        run(rewritten(softmax(), all_threads))


def test_blocks_that_store_at_one_place_are_a_race():
    made, number = softmax(), Scalar("number", INT64)
    [launch] = made.body
    last = Let(launch.block, "min", (number, Constant(np.int64(28), INT64)))
    body = (replace(launch, block=number, body=(last, *launch.body)),)
    with pytest.raises(Refused, match="a race for out0"):
        run(replace(made, body=body))


def test_an_index_that_is_off_by_one_is_outside():
    def further(s):
        if isinstance(s, Load) and s.buffer.role == "input":
            index = Scalar("further", INT64)
            return (Let(index, "add", (s.index[0], Constant(np.int64(1), INT64))),
                    replace(s, index=(index, *s.index[1:])))
        return (s,)
    with pytest.raises(Refused, match="an index outside of in0"):
        run(rewritten(softmax(), further))


def test_a_shuffle_whose_mask_names_others_than_are_here_is_refused():
    def fewer(s):
        return (replace(s, mask=s.mask >> 1),) if isinstance(s, Shuffle) else (s,)
    with pytest.raises(Refused, match="not those of its mask"):
        run(rewritten(softmax(), fewer))


def test_a_barrier_that_some_threads_do_not_reach_is_refused():
    made, test = softmax(), Scalar("few", BOOL)
    [launch] = made.body

    def some(s):
        return (Let(test, "lt", (launch.thread, Constant(np.int64(7), INT64))),
                If(test, (s,))) if isinstance(s, Barrier) else (s,)
    with pytest.raises(Refused, match="threads do not reach a barrier"):
        run(rewritten(made, some))


def test_memory_of_which_nothing_is_known_is_not_loaded():
    shared = Buffer("s", np.dtype(np.float32), (32,), "shared")
    out = Buffer("out0", np.dtype(np.float32), (32,), "output")
    block, thread = Scalar("block", INT64), Scalar("thread", INT64)
    x = Scalar("x", np.dtype(np.float32))
    body = (Load(x, shared, (thread,)), Store(out, (thread,), x))
    kernel = Kernel("k", (), (out,), (), (), 0, {}, (Launch(block, 1, thread, 32, body),))
    with pytest.raises(Refused, match="nothing has been stored in s"):
        emulate(kernel, [])


@pytest.mark.of_tests
def test_mistakes_are_found_in_long_kernels_too():
    x = X[:2, :64]
    source = jax.jit(lambda x: jnp.cumsum(jnp.sort(x.ravel()))).lower(x)._lowered.kernel
    made = launches.scheduled(source)
    np.testing.assert_allclose(run(made, x), np.cumsum(np.sort(x.ravel())), atol=1e-3)
    barriers = [each for each in walk(made.body) if isinstance(each, Barrier)]
    found = 0
    for barrier in barriers[:8]:
        try:
            run(rewritten(made, lambda s, b=barrier: () if s is b else (s,)), x)
        except Refused:
            found += 1
    assert found >= 4


def test_a_watch_is_told_of_each_load_and_store_by_block_and_thread():
    def f(x):
        return x.T + 1
    made = launches.scheduled(jax.jit(f).lower(X)._lowered.kernel)
    loaded, stored = np.zeros(X.size, int), np.zeros(X.size, int)
    moved = {}

    def watch(statement, block, threads, places):
        count, way = (loaded, 0) if isinstance(statement, Load) else (stored, 1)
        np.add.at(count, places, 1)
        for thread, place in zip(threads, places, strict=True):
            moved.setdefault((block, int(thread)), ([], []))[way].append(int(place))
    np.testing.assert_array_equal(emulate(made, [X], watch=watch)[0], X.T + 1)
    assert (loaded == 1).all() and (stored == 1).all()
    for froms, tos in moved.values():
        np.testing.assert_array_equal(X.ravel()[froms], X.T.ravel()[tos])
