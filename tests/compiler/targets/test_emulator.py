"""The emulator refuses what a GPU would get wrong: mistakes are planted in kernels that work."""

from dataclasses import replace

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler.loops import (
    BOOL, INT64, Atomic, Barrier, Buffer, Constant, For, If, Kernel, Launch, Let, Load, Scalar,
    Shuffle, Store, walk,
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
    return jax.jit(lambda x: jax.nn.softmax(x, -1)).lower(X)._lowered.scheduled(False)


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


N = np.linspace(-2, 3, 1 << 17, dtype=np.float32)


def sum_of_all():
    """A launch whose last block adds up what the others have stored."""
    return launches.scheduled(jax.jit(jnp.sum).lower(N)._lowered.kernel)


def test_the_last_block_sees_what_the_others_have_stored():
    np.testing.assert_allclose(run(sum_of_all(), N), N.sum(), rtol=1e-5)


def unordered(s):
    """Other blocks need not see what was stored before."""
    return replace(s, ordered=0) if isinstance(s, Atomic) else s


def too_early(s):
    """The eighth block is taken for the last."""
    is_turn = isinstance(s, Let) and s.op == "eq" and s.args[1].dtype == np.uint32
    return replace(s, args=(s.args[0], Constant(np.uint32(7), np.dtype("u4")))) if is_turn else s


@pytest.mark.parametrize("change", [unordered, too_early])
def test_what_is_handed_on_without_an_order_is_a_race(change):
    with pytest.raises(Refused, match="a race for"):
        run(rewritten(sum_of_all(), lambda s: (change(s),)), N)


def test_what_other_threads_store_without_a_barrier_is_not_handed_on():
    made = sum_of_all()
    [launch] = made.body
    number = [isinstance(x, Barrier) for x in launch.body].index(True, 30)
    body = (*launch.body[:number], *launch.body[number + 1:])
    other = [x for x in body if isinstance(x, If) and isinstance(x.then[0], Store)][1]
    late = Let(Scalar("late", BOOL), "eq", (launch.thread, Constant(np.int64(40), INT64)))
    body = tuple(y for x in body for y in (
        (late, replace(x, test=late.target)) if x is other else (x,)))
    with pytest.raises(Refused, match="a race for"):
        run(replace(made, body=(replace(launch, body=body),)), N)


def one_place(*accesses):
    """A kernel whose threads do something with the one number of its result, which is zero."""
    out, block, thread = (Buffer("out0", np.dtype(np.int32), (1,), "output"),
                          Scalar("block", INT64), Scalar("thread", INT64))
    zero, is_first = Constant(np.int64(0), INT64), Scalar("first", BOOL)
    one = Constant(np.int32(1), out.dtype)
    launch = lambda *body: Launch(block, 1, thread, 32, body)
    first = launch(Let(is_first, "eq", (thread, zero)),
                   If(is_first, (Store(out, (zero,), Constant(np.int32(0), out.dtype)),)))
    made = {"add": Atomic(Scalar("old", out.dtype), "add", out, (zero,), one),
            "load": Load(Scalar("x", out.dtype), out, (zero,)), "barrier": Barrier(),
            "store": If(is_first, (Store(out, (zero,), one),))}
    second = launch(Let(is_first, "eq", (thread, zero)), *(made[each] for each in accesses))
    return emulate(Kernel("k", (), (out,), (), (), 0, {}, (first, second)), [])[0][0]


def test_atomic_operations_are_races_only_with_other_accesses():
    assert one_place("add") == 32 and one_place("add", "add", "barrier", "load") == 64
    for accesses in (("add", "load"), ("load", "add"), ("add", "store"), ("store", "add")):
        with pytest.raises(Refused, match="a race for out0"):
            one_place(*accesses)


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
