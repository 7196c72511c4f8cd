"""Values of all processes, as NumPy arrays: gathered, sent, compared.

Builds on `processes`.  In JAX: `jax/experimental/multihost_utils.py`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes, tree_util
from minijax.placement.meshes import Mesh, PartitionSpec
from minijax.placement.named_sharding import NamedSharding
from minijax.placement.processes import other_process, own_engine
from minijax.placement.resharding import from_local_data, place, shard_value
from minijax.placement.sharded_arrays import spans_processes, resharded
from minijax.util import source_info


def _everyone() -> tuple[int, ...]:
    return tuple(range(own_engine().size))


def _where(operation: str) -> str:
    frame = source_info.user_frame()
    return f"{operation} at {frame.place}" if frame else operation


def _check_same_tree(operation: str, leaves: Sequence[np.ndarray], tree: Any) -> None:
    """Refuse trees of other structure, shapes or dtypes in other processes.

    Raises:
      ValueError: names two of them.
    """
    told = f"{tree} of {', '.join(f'{x.dtype.name}{[*x.shape]}' for x in leaves)}"
    if other := other_process([told], told, _everyone(), _where(operation)):
        raise ValueError(f"{operation} needs the same shapes and dtypes in all processes: process "
                         f"{own_engine().rank} has {told}, process {other[0]} has {other[1]}.")


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The trees of all processes, as NumPy arrays.

    Args:
      in_tree: a tree of arrays, of the same shapes in all processes. A global array is gathered
        from its shards.
      tiled: whether they are joined along their first axis, instead of along a new one.

    Raises:
      ValueError: for other shapes or dtypes in other processes, and for global arrays unless
        `tiled`.

    >>> process_allgather(np.arange(2)).shape, process_allgather(np.arange(2), tiled=True).shape
    ((1, 2), (2,))
    """
    leaves, tree = tree_util.tree_flatten(in_tree)
    is_global = [spans_processes(x) for x in leaves]
    if any(is_global) and not tiled:
        raise ValueError("Gathering global non-fully-addressable arrays only supports tiled=True")
    here = [np.asarray(x) for x, cut in zip(leaves, is_global, strict=True) if not cut]
    if here and own_engine().size > 1:
        _check_same_tree("process_allgather", here, tree)
    return tree.unflatten([
        np.asarray(x._gathered()) if cut else _gathered(np.asarray(x), tiled)
        for x, cut in zip(leaves, is_global, strict=True)])


def _gathered(x: np.ndarray, tiled: bool) -> np.ndarray:
    if own_engine().size == 1:
        return x if tiled else x[None]
    x = np.array(x, dtypes.canonicalize_dtype(x.dtype), order="C")
    rows = own_engine().allgather(x, _everyone(), _where("process_allgather"))
    return rows.reshape(-1, *x.shape[1:]) if tiled and x.ndim else rows


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The first process's tree, as NumPy arrays.

    Args:
      in_tree: a tree of arrays, of the same shapes in all processes.
      is_source: whether this process is the one whose tree is sent, instead of the first.

    Raises:
      ValueError: for other shapes or dtypes in other processes.

    >>> broadcast_one_to_all({"step": 3})
    {'step': array(3)}
    """
    engine = own_engine()
    leaves, tree = tree_util.tree_flatten(in_tree)
    arrays = [np.asarray(x) for x in leaves]
    if engine.size == 1:
        return tree.unflatten(arrays)
    _check_same_tree("broadcast_one_to_all", arrays, tree)
    where = _where("broadcast_one_to_all")
    flag = np.array([engine.rank == 0 if is_source is None else is_source])
    root = int(engine.allgather(flag, _everyone(), where).argmax())
    return tree.unflatten([
        engine.broadcast(np.array(x, dtypes.canonicalize_dtype(x.dtype), order="C"), root,
                         _everyone(), where) for x in arrays])


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Check that all processes have equal trees; nan differs from itself.

    Raises:
      AssertionError: with the message, if they differ.
    """
    def repeated(x: Any) -> np.ndarray:
        if spans_processes(x):
            return np.asarray(x.addressable_data(0))
        return np.concatenate([np.atleast_1d(np.asarray(x))] * own_engine().size)
    out = process_allgather(in_tree, tiled=True)
    same = tree_util.tree_map(lambda x, y: np.all(np.equal(repeated(x), y)), in_tree, out)
    if not all(tree_util.tree_leaves(same)):
        raise AssertionError(f"{fail_message}. Expected: {out}; got: {in_tree}.")


# ── Parts of each process ────────────────────────────────────────────────────────────────────

def from_local(x: Any, mesh: Mesh, spec: PartitionSpec) -> Any:
    """The array whose part in this process is `x`."""
    if spans_processes(x):
        return x
    x, sharding = core.as_value(x), NamedSharding(mesh, spec)
    return from_local_data(sharding, x) if mesh.is_multi_process else shard_value(x, sharding)


def to_local(x: Any, mesh: Mesh, spec: PartitionSpec) -> Any:
    """The part of an array in this process."""
    if not spans_processes(x):
        return x
    data = resharded(x, NamedSharding(mesh, spec)).addressable_data(0)
    return place(data, NamedSharding(mesh.local_mesh, spec))
