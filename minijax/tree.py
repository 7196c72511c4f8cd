"""The short names of the tree functions: ``minijax.tree.map`` is ``tree_util.tree_map``.

Builds on ``tree_util``, which defines them.  Chapter 05, *Trees*.
In JAX: ``jax.tree``.
"""

import dataclasses
from typing import Any

from .tree_util import (tree_all as all, tree_broadcast as broadcast, tree_flatten as flatten,
                        tree_flatten_with_path as flatten_with_path, tree_leaves as leaves,
                        tree_leaves_with_path as leaves_with_path, tree_map as map,
                        tree_map_with_path as map_with_path, tree_reduce as reduce,
                        tree_reduce_associative as reduce_associative, tree_structure as structure,
                        tree_transpose as transpose, tree_unflatten as unflatten)
from minijax.util.exports import export_all as _export_all

__all__ = ["all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path",
           "map", "map_with_path", "reduce", "reduce_associative", "static", "structure",
           "transpose", "unflatten"]


def static(**kwargs: Any) -> Any:
    """Return a dataclass field that `register_dataclass` takes as static data.

    The arguments are those of ``dataclasses.field``.

    >>> @dataclasses.dataclass
    ... class Layer:
    ...     name: str = static(default="first")
    >>> dataclasses.fields(Layer)[0].metadata["static"]
    True
    """
    metadata = {**(kwargs.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(**kwargs, metadata=metadata)


_export_all(globals())
