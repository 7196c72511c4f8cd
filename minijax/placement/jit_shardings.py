"""`in_shardings` and `out_shardings` of `jit`.

Builds on `resharding`; `jit` loads it for these arguments.  Chapter 11, *Named axes and many
devices*.  In JAX: `jax/_src/pjit.py`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from minijax import core, tree_util
from minijax.core.jaxpr import merge_lists, partition_list
from minijax.placement.meshes import Mesh, PartitionSpec, current
from minijax.placement.named_sharding import Format, NamedSharding, Sharding, is_sharded
from minijax.placement.resharding import canonicalize_sharding, no_mesh_error, shard_tree
from minijax.transforms.arguments import UNSPECIFIED
from minijax.util.tracebacks import standing_for


ArgNames = Callable[[], Sequence[str | None]]  # the names of the leaves of arguments


class JitShardings:
    """The shardings of the arguments and of the results of a function, each a tree."""

    def __init__(self, arguments: Any, results: Any):
        self.arguments, self.results = arguments, results
        self._annotated: Any = None  # the jitted function, which itself shards its results
        self._known: dict[tree_util.PyTreeDef, list] = {}  # the shardings of the last arguments

    def __reduce__(self) -> tuple:
        return JitShardings, (self.arguments, self.results)

    @classmethod
    def checked(cls, in_shardings: Any, out_shardings: Any) -> Self:
        """The shardings passed to `jit`; raises the errors of `check_shardings`."""
        return cls(UNSPECIFIED if in_shardings is None else
                   check_shardings("in_shardings", in_shardings),
                   check_shardings("out_shardings", out_shardings))

    def call(self, fun: Callable, args: tuple, kwargs: dict, names: ArgNames,
             static: Callable[[int], set[int]] = lambda count: set()) -> Any:
        """Call a function with its arguments and its results resharded.

        `names` gives the names of the arguments' leaves, `static` the places of the arguments that
        are no arrays, from the number of arguments.
        """
        if self.arguments is UNSPECIFIED:
            return self._results(fun, args, kwargs)
        if kwargs:
            raise ValueError("pjit does not support kwargs when in_shardings is specified.")
        placed = self._placed(args, static, names)
        copies = [] if placed is args else [
            (x, y) for x, y in zip(*map(tree_util.tree_leaves, (args, placed)), strict=True)
            if is_sharded(y) and y.is_fully_replicated]  # the first device has the same numbers
        out = self._results(fun, placed, kwargs)
        for x, y in copies:
            if core.is_donated(y):
                core.donate(x)
        return out

    def _results(self, fun: Callable, args: tuple, kwargs: dict) -> Any:
        """The results of a function, resharded."""
        jitted = getattr(fun, "__self__", None)
        if (self.results is not UNSPECIFIED and core.current_trace.get() is core.base_trace
                and hasattr(jitted, "with_function") and self._spans_devices()):
            return self._call_annotated(jitted, args, kwargs)
        out = fun(args, kwargs)
        return out if self.results is UNSPECIFIED else shard_results(out, self.results)

    def _placed(self, args: tuple, static: Callable[[int], set[int]], names: ArgNames) -> tuple:
        """The arguments with their shardings: as they are, if they are as in an earlier call."""
        leaves, tree = tree_util.tree_flatten(args)
        shardings = [x.sharding if is_sharded(x) else None for x in leaves]
        if (known := self._known.get(tree)) and all(
                x is not None and x is y for x, y in zip(shardings, known, strict=True)):
            return args
        args = shard_args(args, static(len(args)), self.arguments, names)
        if not isinstance(current.value, Mesh):  # which a spec may refer to
            self._known[tree] = [getattr(x, "sharding", None) for x in tree_util.tree_leaves(args)]
        return args

    def _spans_devices(self) -> bool:
        """Whether results are sharded over several devices."""
        return any(isinstance(sharding := canonicalize_sharding(x, ValueError), NamedSharding)
                   and isinstance(sharding.mesh, Mesh)
                   for x in tree_util.tree_leaves(self.results))

    def _call_annotated(self, jitted: Any, args: tuple, kwargs: dict) -> Any:
        """A call of all devices together: the program itself has the shardings of its results."""
        if self._annotated is None:
            @standing_for(jitted._fun)
            def annotated(*args: Any, **kwargs: Any) -> Any:
                out = shard_results(jitted._fun(*args, **kwargs), self.results)
                leaves, tree = tree_util.tree_flatten(out)
                for x, sharding in zip(leaves, self.of_leaves("result", tree), strict=True):
                    if isinstance(sharding, Sharding):
                        sharding.shard_shape(np.shape(x))  # refuses one that cuts it unevenly
                return out
            self._annotated = jitted.with_function(annotated)
        return self._annotated(*args, **kwargs)

    def of_leaves(self, which: str, tree: tree_util.PyTreeDef) -> list:
        """The sharding of each leaf of a tree, of the "given" arguments or of the "result"."""
        shardings = self.arguments if which == "given" else self.results
        no_mesh = no_mesh_error("jit", f"{which} shardings")
        return [canonicalize_sharding(x, no_mesh)
                for x in tree_util.flatten_axes(which, tree, shardings)]


def check_shardings(which: str, shardings: Any) -> Any:
    """The same tree.

    Raises:
      TypeError: for a leaf that is neither a sharding nor a spec.
    """
    for leaf in tree_util.tree_leaves(shardings):
        if leaf is not UNSPECIFIED and not isinstance(leaf, Sharding | Format | PartitionSpec):
            raise TypeError(f"{which} leaf specifications are expected to be PartitionSpec "
                            f"instances or None, but got {leaf}")
    return shardings


def shard_args(args: tuple, static: set[int], shardings: Any, names: ArgNames) -> tuple:
    """The arguments with the shardings of `in_shardings`, which static arguments do not have.

    Raises:
      ValueError: for an array with another sharding, and for a tree that does not fit.
    """
    is_static = [i in static for i in range(len(args))]
    dynamic, others = partition_list(args, is_static)
    args = tuple(dynamic)
    shardings = tuple(shardings) if isinstance(shardings, list) else shardings
    if isinstance(shardings, tuple) and len(shardings) != len(args):
        raise ValueError(
            "pjit in_shardings specification must be a tree prefix of the positional arguments "
            "tuple. In particular, pjit in_shardings must either be a Sharding, a PartitionSpec, "
            "or a tuple of length equal to the number of positional arguments. But pjit "
            "in_shardings is the wrong length: got a tuple or list of length "
            f"{len(shardings)} for an args tuple of length {len(args)}.")
    no_mesh = no_mesh_error("jit", "in_shardings")
    leaves, tree = tree_util.tree_flatten(args)
    flat_shardings = tree_util.flatten_axes("pjit in_shardings", tree, shardings)
    for x, spec in zip(leaves, flat_shardings, strict=True):
        sharding = canonicalize_sharding(spec, no_mesh)
        if not isinstance(x, core.Array) and isinstance(sharding, Sharding) and isinstance(
                sharding.mesh, Mesh) and not (
                sharding.is_fully_addressable or sharding.is_fully_replicated):
            raise ValueError("Passing non-trivial shardings for numpy inputs is not allowed. To "
                             "fix this error, either specify a replicated sharding explicitly or "
                             "use `jax.make_array_from_process_local_data(...)` to convert your "
                             "host local numpy inputs to a jax.Array which you can pass to jit. If "
                             "the numpy input is the same on each process, then you can use "
                             "`jax.make_array_from_callback(...) to create a `jax.Array` which you "
                             f"can pass to jit. Got arg type: {core.get_aval(x).str_short()}")
        if is_sharded(x) and sharding is not None and not (
                x.sharding.is_equivalent_to(sharding, x.ndim)):
            raise ValueError("Sharding passed to jit does not match the sharding on the respective "
                             f"arg. Got jit sharding: {sharding},\narg sharding: {x.sharding} for "
                             f"arg type: {x.aval.str_long()}")
    placed = shard_tree(args, shardings, no_mesh, "pjit in_shardings",
                        lambda i: f"pjit arguments with pytree key path {names()[i]}")
    return tuple(merge_lists((placed, others), is_static))


def shard_results(out: Any, shardings: Any) -> Any:
    """The result with the shardings of `out_shardings`."""
    def leaf_name(i: int) -> str:
        path, _ = tree_util.tree_leaves_with_path(out)[i]
        return f"pjit outputs with pytree key path result{tree_util.keystr(path)}"
    return shard_tree(out, shardings, no_mesh_error("jit", "out_shardings"), "pjit out_shardings",
                      leaf_name)
