"""Classes with custom conversions for `vmap`: `register_vmappable`.

Builds on `api`.  In JAX: `jax/_src/interpreters/batching.py`.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from minijax.transforms import api
from minijax import core, tree_util
from minijax.primitives.slicing import index_leading

# Class → the functions that split a value of it into examples, and join examples.
_vmappables: dict[type, tuple[Callable, Callable]] = {}


def register_vmappable(data_type: type, spec_type: type, axis_size_type: type, to_elt: Callable,
                       from_elt: Callable, make_iota: Callable | None) -> None:
    """Set how `vmap` maps values of a class.

    Args:
      data_type: the class.
      spec_type: of what `in_axes` and `out_axes` hold for them.
      axis_size_type: of sizes: `int`.
      to_elt: ``(cont, get_index, value, spec)`` to one example; ``cont(part, spec)`` maps a part.
      from_elt: ``(cont, size, example, spec)`` to the batch; ``cont(size, part, spec)`` joins one.
      make_iota: None.

    Raises:
      NotImplementedError: for sizes that are no integers.
    """
    if axis_size_type is not int or make_iota is not None:
        raise NotImplementedError(
            f"vmap requires an int as the size of an axis: {data_type.__name__} has "
            f"{axis_size_type.__name__}; pad it to arrays of one size")
    _vmappables[data_type] = to_elt, from_elt
    api.registered[data_type] = _map_arguments, spec_type


def unregister_vmappable(data_type: type) -> None:
    """Accepted for compatibility, where it does nothing either."""


def is_vmappable(x: Any) -> bool:
    """Whether `vmap` converts a value by rules of its class."""
    return type(x) in _vmappables


def _with_batches(api_name: str, out_axes: Any, result: Any) -> Any:
    """A result in which such values are examples whose arrays are already joined."""
    leaves, tree = tree_util.tree_flatten(result, is_vmappable)
    if not any(map(is_vmappable, leaves)):
        return result
    specs = tree_util.flatten_axes(f"{api_name} out_axes", tree, out_axes)

    def batch(x: Any, spec: Any) -> Any:
        if not is_vmappable(x):
            return x
        size = None if spec is None else tree_util.tree_leaves(x)[0].shape[spec]
        return _vmappables[type(x)][1](lambda size, part, spec: part, size, x, spec)
    return tree_util.tree_unflatten(tree, map(batch, leaves, specs))


def _recorder(parts: list[tuple[Any, Any]]) -> Callable[[Any, Any], Any]:
    """A function that appends arrays with their specs to a list, and returns their first examples.
    """
    def record(x: Any, spec: Any) -> Any:
        parts.append((x, spec))
        array = core.as_value(x)
        return x if spec is None or not array.shape[spec] else index_leading(
            core.move_axis(array, spec, 0), 0)
    return record


def _map_arguments(api_name: str, fun: Callable, args: tuple, kwargs: dict, in_axes: Any,
                   out_axes: Any, axis_name: Hashable, axis_size: int | None, **options: Any
                   ) -> Any:
    """`map_axes` with such values among the arguments.

    The arguments are split twice: outside to collect their arrays, and inside into examples. The
    results are joined inside, of arrays with their batch axes.
    """
    leaves, tree = tree_util.tree_flatten((args, kwargs), is_vmappable)
    if not any(map(is_vmappable, leaves)):
        return _with_batches(api_name, out_axes, api.map_axes(
            api_name, fun, args, kwargs, in_axes, out_axes, axis_name, axis_size, **options))
    specs = tree_util.flatten_axes(f"{api_name} in_axes", tree.children()[0], in_axes)
    specs += [0] * (len(leaves) - len(specs))

    def examples(of_array: Callable[[Any, Any], Any], index: Any) -> list[Any]:
        def example(x: Any, spec: Any) -> Any:
            if not is_vmappable(x):
                return of_array(x, spec)
            return _vmappables[type(x)][0](example, lambda: index, x, spec)
        return list(map(example, leaves, specs))

    def joined(of_array: Callable[[Any, Any], Any], outs: Iterable, specs: Iterable) -> list:
        def batch(size: Any, x: Any, spec: Any) -> Any:
            return (_vmappables[type(x)][1](batch, size, x, spec) if is_vmappable(x) else
                    of_array(x, spec))
        return [batch(size, x, spec) for x, spec in zip(outs, specs, strict=True)]
    inputs: list[tuple[Any, Any]] = []
    examples(_recorder(inputs), 0)
    size = axis_size if axis_size is not None else next(
        (core.as_value(x).shape[spec] for x, spec in inputs if spec is not None), 0)
    returned: list[Any] = []

    def of_arrays(index: core.Array, *arrays: core.Array) -> list[Any]:
        trace: Any = core.current_trace.get()
        rest = iter(arrays)

        def batched(x: Any, spec: Any) -> Any:
            value, dim = trace.split(core.as_value(x))
            if spec is None and dim is not None:
                raise ValueError(f"at {api_name} out_axes, got axis spec None but output was "
                                 f"batched on axis {dim}")
            return value if spec is None else core.run_with(
                trace.parent, core.batch_to, value, dim, spec, size)
        args, kwargs = tree_util.tree_unflatten(tree, examples(lambda *_: next(rest), index))
        outs, out_tree = tree_util.tree_flatten(fun(*args, **kwargs), is_vmappable)
        out_specs = tree_util.flatten_axes(f"{api_name} out_axes", out_tree, out_axes)
        returned.append(tree_util.tree_unflatten(out_tree, joined(batched, outs, out_specs)))
        return []
    index = np.arange(size, dtype=np.int32)
    api.map_axes(api_name, of_arrays, (index, *(x for x, _ in inputs)), {},
                 (0, *(spec for _, spec in inputs)), 0, axis_name, axis_size, **options)
    return returned[0]
