"""Python functions that compute values of a program: `pure_callback`, `io_callback`.

Builds on `debug_callback`.  Chapter 12.
In JAX: `jax/_src/callback.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import core, dtypes, tree_util
from minijax.core import Avals, Axis, Effect, ForPrimitive, Outs, Primitive, ShapedArray
from minijax.custom.debug_callback import (HostCallback, batch_unrolled, callback_primitive, logger)
from minijax.control_flow.loops import scan
from minijax.control_flow.program_rules import batch_axes_first, refusing
from minijax.core.jaxpr import merge_lists, partition_list
from minijax.util.callback_errors import raised_by_callback

METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all",
           "legacy_vectorized", None]


class IOEffect(Effect):
    """Python does something: the equation stays, in its place, and happens once."""

    happens_once = True


io_effect = IOEffect()


class FlatCallback(HostCallback):
    """A Python function of trees of arrays, as one of flat buffers, with flat results.

    Args:
      function: the user's function.
      in_tree: the tree of its arguments and keywords.
      result_avals: the types of its results.
      api: the function that calls it, which the log names where it fails.
    """

    def __init__(self, function: Callable, in_tree: Any, result_avals: Avals, api: str) -> None:
        super().__init__(function)
        self.in_tree, self.avals, self.api = in_tree, result_avals, api

    def __call__(self, *buffers: np.ndarray) -> list:
        return core.base_trace.wrap("callback", self._results)(*buffers)

    def evaluate(self, *buffers: np.ndarray) -> list:
        try:
            return self(*buffers)
        except Exception as error:
            raise raised_by_callback(error) from error

    def _results(self, *buffers: np.ndarray) -> list:
        arrays = [core.array_from_buffer(x, core.get_aval(x)) for x in buffers]
        args, kwargs = tree_util.tree_unflatten(self.in_tree, arrays)
        try:
            result = self.function(*args, **kwargs)
        except BaseException:
            logger.exception("jax.%s failed", self.api)
            raise
        # only the leaves count, as in JAX: the tree is that of `result_shape_dtypes`
        leaves = tree_util.tree_leaves(result)
        if len(leaves) != len(self.avals):
            raise RuntimeError("Mismatched number of outputs from callback. Expected: "
                               f"{len(self.avals)}, Actual: {len(leaves)}")
        return [_checked(np.asarray(x), aval, i)
                for i, (x, aval) in enumerate(zip(leaves, self.avals, strict=True))]

    def with_results(self, avals: Avals) -> "FlatCallback":
        """The same function with results of other types."""
        return FlatCallback(self.function, self.in_tree, avals, self.api)

    def __repr__(self) -> str:
        return (f"_FlatCallback(callback_func={self.function!r}, in_tree={self.in_tree})")


def _checked(result: np.ndarray, aval: ShapedArray, number: int) -> np.ndarray:
    """A callback's result, which must be of the type in `result_shape_dtypes`."""
    if not core.is_array_like(result):
        raise TypeError(f"Dtype {result.dtype} is not a valid JAX array type. Only arrays of "
                        "numeric types are supported by JAX.")
    dtype = dtypes.canonicalize_dtype(result.dtype)
    for what, expected, actual in (("shape", aval.shape, result.shape),
                                   ("dtype", aval.dtype, dtype)):
        if expected != actual:
            raise RuntimeError(f"Incorrect output {what} for return value #{number}: Expected: "
                               f"{expected}, Actual: {actual}")
    return result.astype(dtype)


def _one_by_one(p: Primitive, axis: Axis, args: list, dims: list, unrolled: bool, params: dict
                ) -> Outs:
    """One call for each example."""
    if unrolled and axis.size:
        return batch_unrolled.rule(p, axis, args, dims, **params)
    batched = [d is not None for d in dims]
    unbatched_args, rows = partition_list(batch_axes_first(args, dims), batched)
    _, outs = scan(lambda _, row: (None, p.bind_list(
        *merge_lists((unbatched_args, row), batched), **params)), None, rows, length=axis.size)
    return outs, [0] * len(outs)


@ForPrimitive
def _batch_pure(p: Primitive, axis: Axis, args: list, dims: list, /, *, vmap_method: str | None,
                **params: Any) -> Outs:
    if axis.on_devices:
        return _one_by_one(p, axis, args, dims, True, {**params, "vmap_method": vmap_method})
    if vmap_method is None:
        raise NotImplementedError(
            "vmap is only supported for the pure_callback primitive when vmap_method is one of "
            "'sequential', 'sequential_unrolled', 'expand_dims', 'broadcast_all', or "
            f"'legacy_vectorized'. Got {vmap_method=}.")
    params["vmap_method"] = vmap_method
    if vmap_method.startswith("sequential"):
        return _one_by_one(p, axis, args, dims, vmap_method == "sequential_unrolled", params)
    new_size: Any = {"expand_dims": 1, "broadcast_all": axis.size}.get(vmap_method)
    operands = [x if d is None and new_size is None else core.batch_to(x, d, 0, new_size)
                for x, d in zip(args, dims, strict=True)]
    avals = tuple(a.update(shape=(axis.size, *a.shape)) for a in params["result_avals"])
    outs = p.bind(*operands, **params | {
        "result_avals": avals, "callback": params["callback"].with_results(avals)})
    return list(outs), [0] * len(outs)


@ForPrimitive
def _batch_io(p: Primitive, axis: Axis, args: list, dims: list, /, **params: Any) -> Outs:
    if params["ordered"] and not axis.on_devices:
        raise ValueError("Cannot `vmap` ordered IO callback.")
    return _one_by_one(p, axis, args, dims, True, params)


pure_callback_p = callback_primitive(
    "pure_callback", batch=_batch_pure, jvp=refusing(
        ValueError, "Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use "
        "callbacks while taking gradients."), transpose=refusing(
        ValueError, "Pure callbacks do not support transpose. Please use `jax.custom_vjp` to use "
        "callbacks while taking gradients."))
io_callback_p = callback_primitive(
    "io_callback", batch=_batch_io,
    jvp=refusing(ValueError, "IO callbacks do not support JVP."),
    transpose=refusing(ValueError, "IO callbacks do not support transpose."),
    effects=lambda **_: frozenset([io_effect]))


def _bind(p: Primitive, callback: Callable[..., Any], result_shape_dtypes: Any, args: tuple,
           kwargs: dict, **params: Any) -> Any:
    structs, out_tree = tree_util.tree_flatten(result_shape_dtypes)
    avals = tuple(ShapedArray(struct.shape, np.dtype(struct.dtype)) for struct in structs)
    if any(dtypes.canonicalize_dtype(aval.dtype) != aval.dtype for aval in avals):
        raise ValueError("result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` "
                         "is disabled")
    leaves, in_tree = tree_util.tree_flatten((args, kwargs))
    outs = p.bind(*leaves, callback=FlatCallback(callback, in_tree, avals, p.name),
                  result_avals=avals, sharding=None, **params)
    return tree_util.tree_unflatten(out_tree, outs)


def pure_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any,
                  sharding: Any = None, vmap_method: str | None = None, **kwargs: Any) -> Any:
    """Call a Python function without side effects when the program runs.

    Args:
      callback: takes arrays, in the trees of the arguments; it may be called more often, or
        less often, than the program says.
      result_shape_dtypes: the shapes and dtypes of its results, such as `ShapeDtypeStruct`: a tree.
      args, kwargs: trees of arrays.
      sharding: accepted for JAX's sake; there is one device.
      vmap_method: how a batch is computed: "sequential" and "sequential_unrolled" call the
        function for each example; the others call it once, and unbatched arguments get an axis of
        size one ("expand_dims"), are repeated ("broadcast_all") or stay ("legacy_vectorized").

    Raises:
      ValueError: for another method, 64-bit results without `jax_enable_x64`, and derivatives.

    >>> import minijax as jax
    >>> result = jax.ShapeDtypeStruct((2,), np.float32)
    >>> jax.jit(lambda x: pure_callback(np.sort, result, x))(np.float32([2, 1]))
    Array([1., 2.], dtype=float32)
    """
    if vmap_method not in METHODS:
        raise ValueError(f"vmap_method must be on of the allowed methods {METHODS}, but got: "
                         f"{vmap_method}")
    return _bind(pure_callback_p, callback, result_shape_dtypes, args, kwargs,
                 vmap_method=vmap_method)


def io_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any,
                sharding: Any = None, ordered: bool = False, **kwargs: Any) -> Any:
    """Call a Python function, which may have side effects, each time the program runs.

    Args:
      callback, result_shape_dtypes, args, kwargs, sharding: as in `pure_callback`.
      ordered: whether calls must keep their order. Here they always do, but an ordered call
        cannot be batched.

    Raises:
      ValueError: for 64-bit results without `jax_enable_x64`, derivatives, and ordered batches.

    >>> import minijax as jax
    >>> jax.jit(lambda x: io_callback(lambda x: print("saw", x), None, x))(1.)
    saw 1.0
    """
    return _bind(io_callback_p, callback, result_shape_dtypes, args, kwargs, ordered=ordered)


def effects_barrier() -> None:
    """Wait until all calls of Python functions are over; here they are when a program returns.

    >>> effects_barrier()
    """
