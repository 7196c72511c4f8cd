"""Collective operations of the processes of a program on trees of arrays.

Builds on `placement.gathering`.  In JAX: `jax/experimental/multihost_utils.py`.
"""

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.placement.gathering import (assert_equal as assert_equal,
                                         broadcast_one_to_all as broadcast_one_to_all, from_local,
                                         process_allgather as process_allgather, to_local)


def sync_global_devices(name: str) -> None:
    """Wait for all processes at a place of this name.

    Raises:
      AssertionError: where they wait at places of other names.

    >>> sync_global_devices("after the last step")
    """
    digest = np.uint32(zlib.crc32(name.encode()))
    assert_equal(digest, f"sync_global_devices name mismatch ('{name}')")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether a scheduler is about to stop the program: here it never is.

    >>> reached_preemption_sync_point(3)
    False
    """
    return False


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """The arrays of each process as parts of global arrays.

    Args:
      local_inputs: a tree of arrays.
      global_mesh: a `Mesh`.
      pspecs: their shardings: a tree of `PartitionSpec`, or a prefix of one.

    Raises:
      ValueError: for None instead of a spec.

    >>> from minijax import devices
    >>> from minijax.sharding import Mesh, PartitionSpec as P
    >>> mesh = Mesh(np.array(devices()), ("x",))
    >>> host_local_array_to_global_array(np.arange(2), mesh, P("x"))
    Array([0, 1], dtype=int32)
    """
    return _with_specs("input", from_local, local_inputs, global_mesh, pspecs)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """The part of global arrays that belongs to this process.

    Args, raises: as of `host_local_array_to_global_array`.

    >>> from minijax import device_put, devices
    >>> from minijax.sharding import Mesh, PartitionSpec as P
    >>> mesh = Mesh(np.array(devices()), ("x",))
    >>> x = device_put(np.arange(2))
    >>> global_array_to_host_local_array(x, mesh, P("x")) is x
    True
    """
    return _with_specs("output", to_local, global_inputs, global_mesh, pspecs)


def _with_specs(direction: str, converted: Callable, arrays: Any, mesh: Any, pspecs: Any) -> Any:
    leaves, tree = tree_util.tree_flatten(arrays)
    specs = tree_util.flatten_axes(f"{direction} pspecs", tree, pspecs)
    if None in specs:
        raise ValueError("`None` is not a valid input to the pspecs argument. Please use "
                         "jax.sharding.PartitionSpec() if you wanted to replicate your input.")
    return tree.unflatten([converted(x, mesh, spec) for x, spec in zip(leaves, specs, strict=True)])
