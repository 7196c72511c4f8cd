"""The shardings and formats of a compiled function's arguments and results.

Builds on `named_sharding`.  In JAX: `jax/_src/stages.py` (`Compiled`).
"""

from typing import Any

from minijax import tree_util
from minijax.placement.named_sharding import Sharding, SingleDeviceSharding, format_of


def input_shardings(compiled: Any) -> tuple[Any, Any]:
    """The shardings of the arguments, in their tree."""
    positional, named = compiled.in_tree.children()
    return _shardings(compiled, positional, "given"), _shardings(compiled, named, "")


def output_shardings(compiled: Any) -> Any:
    """The shardings of the results, in their tree."""
    return _shardings(compiled, compiled.out_tree, "result")


def _shardings(compiled: Any, tree: tree_util.PyTreeDef, which: str) -> Any:
    of_jit = compiled._traced.arguments.shardings
    leaves = of_jit.of_leaves(which, tree) if of_jit and which else [None] * tree.num_leaves
    here = SingleDeviceSharding(compiled._device)
    return tree.unflatten([x if isinstance(x, Sharding) else here for x in leaves])


def input_formats(compiled: Any) -> Any:
    """The formats of the arguments, in their tree."""
    return tree_util.tree_map(format_of, compiled.in_avals, compiled.input_shardings)


def output_formats(compiled: Any) -> Any:
    """The formats of the results, in their tree."""
    return tree_util.tree_map(format_of, compiled.out_info, compiled.output_shardings)
