"""Generated dispatch: it takes exactly the trees it was written for, and gives up on the rest."""

import collections
import contextlib
import threading

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import core, tree_util
from minijax.placement.devices import CPU
from minijax.transforms.dispatch import Dispatcher, Miss, rebuilder
from minijax.transforms.jit import MOST_STATES, JitFunction

F32 = core.ShapedArray((), np.float32)
WEAK = core.ShapedArray((), np.float32, weak_type=True)


def dispatcher(*args, **kwargs):
    made = Dispatcher()
    leaves = [core.as_value(x) for x in tree_util.tree_leaves((args, kwargs))]
    out_tree = tree_util.tree_structure([0] * len(leaves))
    made.add(tree_util.tree_structure((args, kwargs)), CPU, leaves,
             lambda *buffers: [b.copy() for b in buffers],
             rebuilder(out_tree, [x.aval for x in leaves]))
    return made


ONE = jnp.float32(1)
TREES = {
    "an array": ((ONE,), {}),
    "two": ((ONE, ONE), {}),
    "nested": (({"a": ONE, "b": [ONE, (ONE,)]}, None, ()), {}),
    "keywords": ((ONE,), {"k": ONE, "j": {"x": ONE}}),
    "nothing": ((), {}),
}


@pytest.mark.parametrize("name", TREES)
def test_it_takes_the_tree_it_was_written_for(name):
    args, kwargs = TREES[name]
    out = dispatcher(*args, **kwargs).last(args, kwargs)
    assert len(out) == len(tree_util.tree_leaves((args, kwargs)))
    assert all(x == 1 for x in out)


@pytest.mark.parametrize("other", [
    ((), {}), ((ONE, ONE), {}), (([ONE],), {}), (({"b": ONE},), {}), (({"a": ONE, "b": ONE},), {}),
    (({"a": None},), {}), (({"a": "text"},), {}), (({"a": jnp.ones(2)},), {}),
    (({"a": ONE},), {"k": ONE}), ((collections.OrderedDict(a=ONE),), {}),
], ids=str)
def test_it_gives_up_on_any_other_tree_or_type(other):
    with pytest.raises(Miss):
        dispatcher({"a": ONE}).last(*other)


def test_numbers_and_numpy_arrays_are_leaves_too():
    made = dispatcher(1.0)
    assert made.last((2.0,), {})[0] == 2.0
    with pytest.raises(Miss):
        made.last((2,), {})


def test_a_tracer_is_left_to_the_long_way():
    seen = []

    def inside(x):
        with pytest.raises(Miss):
            dispatcher(ONE).last((x,), {})
        seen.append(True)
        return x
    minijax.jit(inside)(ONE)
    assert seen


def test_results_are_built_in_their_tree():
    Point = collections.namedtuple("Point", "x y")
    buffers = [np.full((), 1, np.float32), np.full((), 2, np.float32)]
    for tree in ({"a": 0, "b": (0, None)}, [0, [0]], Point(0, 0), (0, 0)):
        built = rebuilder(tree_util.tree_structure(tree), (F32, WEAK))([b.copy() for b in buffers])
        assert tree_util.tree_structure(built) == tree_util.tree_structure(tree)
        one, two = tree_util.tree_leaves(built)
        assert (one.weak_type, two.weak_type, float(two)) == (False, True, 2.0)


def test_a_jitted_function_answers_alike_the_short_and_the_long_way():
    f = minijax.jit(lambda tree, *, k: {"sum": tree["a"] + k, "k": k})
    for tree, k in (({"a": 1.0}, 2.0), ({"a": 1.0}, 3.0), ({"a": jnp.ones(2)}, 3.0),
                    ({"a": 1.0}, 4.0), ({"a": 1}, 4)):
        out = f(tree, k=k)
        np.testing.assert_array_equal(out["sum"], np.asarray(tree["a"]) + k)


@pytest.fixture
def only_short_ways(monkeypatch):
    """From when it is called, a call that is not dispatched at once fails."""
    def long_way(*_):
        raise AssertionError("the call was not dispatched at once")
    return lambda: monkeypatch.setattr(JitFunction, "_call_here", long_way)


STATES = {
    "plain": contextlib.nullcontext,
    "enable_x64": lambda: minijax.enable_x64(True),
    "default_matmul_precision": lambda: minijax.default_matmul_precision("highest"),
    "default_device": lambda: minijax.default_device(minijax.devices()[0]),
    "numpy_dtype_promotion": lambda: minijax.numpy_dtype_promotion("strict"),
    "numpy_rank_promotion": lambda: minijax.numpy_rank_promotion("raise"),
    "log_compiles": lambda: minijax.log_compiles(False),
    "checking_leaks": minijax.checking_leaks,
    "named_scope": lambda: minijax.named_scope("layer"),
    "transfer_guard": lambda: minijax.transfer_guard("allow"),
}


def test_a_call_is_dispatched_at_once_in_each_state_of_the_flags(only_short_ways):
    f = minijax.jit(lambda x: x * 2.5)
    calls = [(name, x) for name in STATES for x in (1.0, jnp.ones(3), np.ones(2))]
    first = []
    for name, x in calls:
        with STATES[name]():
            first.append((f(x), f(x))[0])  # the second call prepares the short way
    only_short_ways()
    for (name, x), before in [*zip(calls, first, strict=True)] * 2:
        with STATES[name]():
            after = f(x)
        assert (after.dtype, after.weak_type) == (before.dtype, before.weak_type), name
        np.testing.assert_array_equal(after, before)
    with STATES["enable_x64"](), STATES["numpy_dtype_promotion"](), pytest.raises(AssertionError):
        f(1.0)  # a state that was not met


def test_a_state_of_the_flags_is_the_same_in_each_thread(only_short_ways):
    f = minijax.jit(lambda x: x + 1.0)

    def call():
        with minijax.enable_x64(True):
            dtypes.append(f(np.ones(2)).dtype)
    dtypes = []
    call()
    call()
    only_short_ways()
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert dtypes == [np.float64] * 3


def test_what_is_set_for_good_is_another_state_within_a_context_too():
    f = minijax.jit(lambda x: minijax.random.key_data(minijax.random.key(0)) + x)
    with minijax.numpy_rank_promotion("allow"):
        before = f(0)
        minijax.config.update("jax_random_seed_offset", 5)
        try:
            assert not (f(0) == before).all()
        finally:
            minijax.config.update("jax_random_seed_offset", 0)
        np.testing.assert_array_equal(f(0), before)


def test_trees_take_turns(only_short_ways):
    f = minijax.jit(lambda tree, **kw: sum(map(minijax.numpy.sum, tree)) + sum(kw.values()))
    calls = [(([ONE, 2.0],), {}), (((ONE, 2.0),), {}), (([ONE],), {}), (([ONE],), {"k": ONE})]
    first = [f(*args, **kwargs) for _ in range(2) for args, kwargs in calls]
    only_short_ways()
    for (args, kwargs), before in zip(calls * 2, first, strict=True):
        assert f(*args, **kwargs) == before


def test_states_that_are_gone_do_not_pile_up():
    f = minijax.jit(lambda x: x + 1.0)
    for _ in range(2 * MOST_STATES):
        minijax.config.update("jax_random_seed_offset", 0)
        f(1.0)
    assert len(f._dispatchers) <= MOST_STATES
