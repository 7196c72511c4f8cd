"""Collective operations of the processes of a program, of which minijax has one.

Builds on `device_put`.  In JAX: `jax/experimental/multihost_utils.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.placement import device_put
from minijax import tree_util
from minijax.placement.named_sharding import NamedSharding


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The first process's tree, as NumPy arrays.

    Args:
      in_tree: a tree of arrays.
      is_source: whether this process is the first.

    >>> broadcast_one_to_all({"step": 3})
    {'step': array(3)}
    """
    return tree_util.tree_map(np.asarray, in_tree)


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The trees of all processes, as NumPy arrays.

    Args:
      in_tree: a tree of arrays.
      tiled: whether they are joined along their first axis, instead of along a new one.

    >>> process_allgather(np.arange(2)).shape, process_allgather(np.arange(2), tiled=True).shape
    ((1, 2), (2,))
    """
    return tree_util.tree_map(lambda x: np.asarray(x) if tiled else np.asarray(x)[None], in_tree)


def sync_global_devices(name: str) -> None:
    """Wait for all processes at a place of this name.

    >>> sync_global_devices("after the last step")
    """


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Check that all processes have equal trees; here only nan differs, from itself.

    Raises:
      AssertionError: with the message, if they differ.

    >>> assert_equal({"step": 3})
    """
    out = process_allgather(in_tree, tiled=True)
    if not all(np.all(np.equal(x, x)) for x in tree_util.tree_leaves(out)):
        raise AssertionError(f"{fail_message}. Expected: {out}; got: {in_tree}.")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether a scheduler is about to stop the program: here it never is.

    >>> reached_preemption_sync_point(3)
    False
    """
    return False


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """The arrays of each process as parts of global arrays: here each is the whole array.

    Args:
      local_inputs: a tree of arrays.
      global_mesh: a `Mesh`.
      pspecs: their shardings: a tree of `PartitionSpec`, or a prefix of one.

    Raises:
      ValueError: for None instead of a spec.

    >>> from minijax.sharding import Mesh, PartitionSpec as P
    >>> mesh = Mesh(np.array(device_put.devices()), ("x",))
    >>> host_local_array_to_global_array(np.arange(2), mesh, P("x"))
    Array([0, 1], dtype=int32)
    """
    return _with_specs("input", local_inputs, global_mesh, pspecs)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """The part of global arrays that belongs to this process: the whole array.

    Args, raises: as of `host_local_array_to_global_array`.

    >>> from minijax.sharding import Mesh, PartitionSpec as P
    >>> mesh = Mesh(np.array(device_put.devices()), ("x",))
    >>> x = device_put.device_put(np.arange(2))
    >>> global_array_to_host_local_array(x, mesh, P("x")) is x
    True
    """
    return _with_specs("output", global_inputs, global_mesh, pspecs)


def _with_specs(direction: str, arrays: Any, mesh: Any, pspecs: Any) -> Any:
    leaves, tree = tree_util.tree_flatten(arrays)
    specs = tree_util.flatten_axes(f"{direction} pspecs", tree, pspecs)
    if None in specs:
        raise ValueError("`None` is not a valid input to the pspecs argument. Please use "
                         "jax.sharding.PartitionSpec() if you wanted to replicate your input.")
    if direction == "input":
        leaves = [device_put.device_put(x, NamedSharding(mesh, spec))
                  for x, spec in zip(leaves, specs, strict=True)]
    return tree_util.tree_unflatten(tree, leaves)
