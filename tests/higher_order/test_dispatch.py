"""Generated dispatch: it takes exactly the trees it was written for, and gives up on the rest."""

import collections

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import core, tree_util
from minijax.higher_order.dispatch import Dispatcher, Miss, rebuilder

F32 = core.ShapedArray((), np.float32)
WEAK = core.ShapedArray((), np.float32, weak_type=True)


def dispatcher(*args, **kwargs):
    made = Dispatcher()
    leaves = [core.as_value(x) for x in tree_util.tree_leaves((args, kwargs))]
    out_tree = tree_util.tree_structure([0] * len(leaves))
    made.add(tree_util.tree_structure((args, kwargs)), tuple(x.aval for x in leaves),
             lambda *buffers: [b.copy() for b in buffers], out_tree, [x.aval for x in leaves])
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
