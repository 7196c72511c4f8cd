"""What JAX does with several processes, with one."""

import importlib

import jax
import numpy as np
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import minijax

BOTH = [minijax, jax]


def module(lib, name):
    return importlib.import_module(f"{lib.__name__}.experimental.{name}")


def outcome(f):
    try:
        return f()
    except Exception as error:
        return type(error), str(error)


def same(mine, theirs):
    """Whether two trees have the same structure, and leaves of the same kind and value."""
    assert minijax.tree.structure(mine).num_leaves == jax.tree.structure(theirs).num_leaves
    for x, y in zip(minijax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
        assert isinstance(x, np.ndarray) == isinstance(y, np.ndarray)
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("tree", [3, {"a": np.arange(3), "b": (1.5, None)}, [np.ones((2, 0))]])
def test_trees_of_one_process_are_gathered_and_sent(tree):
    mine, theirs = (module(lib, "multihost_utils") for lib in BOTH)
    for name, options in [("broadcast_one_to_all", {}), ("broadcast_one_to_all",
                          {"is_source": False}), ("process_allgather", {}),
                          ("process_allgather", {"tiled": True})]:
        same(getattr(mine, name)(tree, **options), getattr(theirs, name)(tree, **options))
    for lib in (mine, theirs):
        assert lib.assert_equal(tree) is lib.sync_global_devices("here") is None
        assert lib.reached_preemption_sync_point(3) is False
        with pytest.raises(AssertionError, match="they differ. Expected: "):
            lib.assert_equal(np.nan, "they differ")


def test_arrays_of_one_process_are_the_whole_arrays():
    results = []
    for lib in BOTH:
        utils = module(lib, "multihost_utils")
        mesh = (Mesh if lib is jax else lib.sharding.Mesh)(np.array(lib.devices()), ("x",))
        spec = P("x") if lib is jax else lib.sharding.PartitionSpec("x")
        tree = {"a": np.arange(4.), "b": lib.numpy.ones(2)}
        placed = utils.host_local_array_to_global_array(tree, mesh, spec)
        back = utils.global_array_to_host_local_array(placed, mesh, {"a": spec, "b": spec})
        assert back["a"] is placed["a"] and placed["a"].sharding.spec == spec
        results.append((placed, str(outcome(lambda u=utils, m=mesh: (
            u.host_local_array_to_global_array([np.ones(2)], m, [None]))))))
    same(results[0][0], results[1][0])
    assert "`None` is not a valid input" in results[0][1]
