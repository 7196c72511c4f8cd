"""Python functions whose results programs go on with: `pure_callback`, `io_callback`.

Stands on `debug_callback`.  Chapter 12.
In JAX: `jax/_src/callback.py`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes, errors, tree_util
from minijax.core import Axis, Effect, Primitive, ShapedArray, cannot
from minijax.custom.debug_callback import HostCallback
from minijax.control_flow.cond_scan_while import scan
from minijax.core.vmap import Dim, batch_to
from minijax.core.jaxpr import merge_lists, partition_list
from minijax.primitives import ad_util
from minijax.primitives.joining import stack
from minijax.primitives.slicing import index_leading

METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all",
           "legacy_vectorized", None]


class IOEffect(Effect):
    """Python does something: the equation stays, in its place."""

    def __repr__(self) -> str:
        return "IO"


io_effect = IOEffect()


class Called(HostCallback):
    """A Python function of trees of arrays, as one of flat buffers, with flat results.

    Args:
      function: the user's.
      in_tree: of the arguments and keywords.
      result_avals: what it is to return.
    """

    def __init__(self, function: Callable[..., Any], in_tree: Any,
                 result_avals: Sequence[ShapedArray]) -> None:
        super().__init__(function)
        self.in_tree, self.avals = in_tree, result_avals

    def __call__(self, *buffers: np.ndarray) -> list:
        return core.base_trace.wrap("callback", self._results)(*buffers)

    def evaluate(self, *buffers: np.ndarray) -> list:
        try:
            return self(*buffers)
        except Exception as error:
            raise errors.raised_by_callback(error) from error

    def _results(self, *buffers: np.ndarray) -> list:
        given = [core.array_from_buffer(x, core.get_aval(x)) for x in buffers]
        args, kwargs = tree_util.tree_unflatten(self.in_tree, given)
        # the result's leaves alone are looked at: its tree is that which was announced
        leaves = tree_util.tree_leaves(self.function(*args, **kwargs))
        if len(leaves) != len(self.avals):
            raise RuntimeError("Mismatched number of outputs from callback. Expected: "
                               f"{len(self.avals)}, Actual: {len(leaves)}")
        return [_checked(np.asarray(x), aval, i)
                for i, (x, aval) in enumerate(zip(leaves, self.avals, strict=True))]

    def with_results(self, avals: Sequence[ShapedArray]) -> "Called":
        """The same function, whose results are of other types."""
        return Called(self.function, self.in_tree, avals)

    def __repr__(self) -> str:
        return (f"_FlatCallback(callback_func={self.function!r}, in_tree={self.in_tree})")


def _checked(result: np.ndarray, aval: ShapedArray, number: int) -> np.ndarray:
    """A result that a callback returned, which must be of the type that was announced."""
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


def _one_by_one(p: Primitive, axis: Axis, args: Sequence[Any], dims: Sequence[Dim],
                unrolled: bool, params: dict) -> tuple[list, list]:
    """A call for each example."""
    is_row = [d is not None for d in dims]
    rows = [batch_to(x, d, 0, axis.size) if d is not None else x
            for x, d in zip(args, dims, strict=True)]
    fixed, batched = partition_list(rows, is_row)

    def call(examples: Sequence[Any]) -> list:
        return p.bind_list(*merge_lists((fixed, examples), is_row), **params)

    if unrolled and axis.size:
        found = [call([index_leading(x, i) for x in batched]) for i in range(axis.size)]
        outs = [stack(column) for column in zip(*found, strict=True)]
    else:
        _, outs = scan(lambda _, examples: (None, call(examples)), None, batched,
                       length=axis.size)
    return outs, [0] * len(outs)


def _batch_pure(axis: Axis, args: Sequence[Any], dims: Sequence[Dim], *, vmap_method: str | None,
                **params: Any) -> tuple[list, list]:
    if vmap_method is None:
        raise NotImplementedError(
            "vmap is only supported for the pure_callback primitive when vmap_method is one of "
            "'sequential', 'sequential_unrolled', 'expand_dims', 'broadcast_all', or "
            f"'legacy_vectorized'. Got {vmap_method=}.")
    params["vmap_method"] = vmap_method
    if vmap_method.startswith("sequential"):
        return _one_by_one(pure_callback_p, axis, args, dims,
                           vmap_method == "sequential_unrolled", params)
    whole = []
    for x, d in zip(args, dims, strict=True):
        if d is None and vmap_method == "expand_dims":
            x = ad_util.broadcast_batch(x, 0, 1)
        elif d is not None or vmap_method == "broadcast_all":
            x = batch_to(x, d, 0, axis.size)
        whole.append(x)
    avals = tuple(a.update(shape=(axis.size, *a.shape)) for a in params["result_avals"])
    outs = pure_callback_p.bind(*whole, **params | {
        "result_avals": avals, "callback": params["callback"].with_results(avals)})
    return list(outs), [0] * len(outs)


def _batch_io(axis: Axis, args: Sequence[Any], dims: Sequence[Dim], *, ordered: bool,
              **params: Any) -> tuple[list, list]:
    if ordered:
        raise ValueError("Cannot `vmap` ordered IO callback.")
    return _one_by_one(io_callback_p, axis, args, dims, True, {"ordered": ordered, **params})


def _calling(name: str, kind: str, batch: Any, effects: Any = None) -> Primitive:
    def no_derivative(*_: Any, **__: Any) -> Any:
        cure = (" Please use `jax.custom_jvp` to use callbacks while taking gradients."
                if kind == "Pure" else "")
        raise ValueError(f"{kind} callbacks do not support JVP.{cure}")
    return Primitive(
        name,
        impl=lambda *buffers, callback, **_: callback.evaluate(*buffers),
        abstract_eval=lambda *_, result_avals, **__: list(result_avals),
        jvp=no_derivative,
        transpose=cannot("Python is not linear."),
        batch=batch,
        loop=lambda b, outs, operands, *, callback, **_: b.host_call(callback, operands, outs),
        effects=effects or (lambda **_: frozenset()),
        handles_keys=True,  # which are words to Python
        examples=list,  # Python computes its results; its tests watch what is called
        multiple_results=True)


pure_callback_p = _calling("pure_callback", "Pure", _batch_pure)
io_callback_p = _calling("io_callback", "IO", _batch_io, lambda **_: frozenset([io_effect]))


def _bound(p: Primitive, callback: Callable[..., Any], result_shape_dtypes: Any, args: tuple,
           kwargs: dict, **params: Any) -> Any:
    structs, out_tree = tree_util.tree_flatten(result_shape_dtypes)
    avals = []
    for struct in structs:
        dtype = np.dtype(struct.dtype)
        if dtypes.canonicalize_dtype(dtype) != dtype:
            raise ValueError("result_shape_dtypes cannot specify 64-bit types when "
                             "`jax_enable_x64` is disabled")
        avals.append(ShapedArray(tuple(struct.shape), dtype))
    leaves, in_tree = tree_util.tree_flatten((args, kwargs))
    outs = p.bind(*leaves, callback=Called(callback, in_tree, tuple(avals)),
                  result_avals=tuple(avals), sharding=None, **params)
    return tree_util.tree_unflatten(out_tree, outs)


def pure_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any,
                  sharding: Any = None, vmap_method: str | None = None, **kwargs: Any) -> Any:
    """What a Python function without side effects makes of the values that arguments will have.

    Args:
      callback: is given arrays, in the trees of the arguments; it may be called more often, or
        less often, than the program says.
      result_shape_dtypes: a tree of what has a shape and a dtype: what it returns.
      args, kwargs: trees of arrays.
      sharding: accepted for JAX's sake; there is one device.
      vmap_method: what a batch is given to: "sequential" and "sequential_unrolled" call for each
        example; the others call once, with axes of size one ("expand_dims") or copies
        ("broadcast_all") for what is the same in all, or that as it is ("legacy_vectorized").

    Raises:
      ValueError: for another method, 64-bit results without `jax_enable_x64`, and derivatives.

    >>> import minijax as jax
    >>> wanted = jax.ShapeDtypeStruct((2,), np.float32)
    >>> jax.jit(lambda x: pure_callback(np.sort, wanted, x))(np.float32([2, 1]))
    Array([1., 2.], dtype=float32)
    """
    if vmap_method not in METHODS:
        raise ValueError(f"vmap_method must be on of the allowed methods {METHODS}, but got: "
                         f"{vmap_method}")
    return _bound(pure_callback_p, callback, result_shape_dtypes, args, kwargs,
                  vmap_method=vmap_method)


def io_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any,
                sharding: Any = None, ordered: bool = False, **kwargs: Any) -> Any:
    """What a Python function makes of the values that arguments have; it is called each time.

    Args:
      callback, result_shape_dtypes, args, kwargs, sharding: as in `pure_callback`.
      ordered: whether calls must keep their order; here they always do, but then no batch may
        be made of them.

    Raises:
      ValueError: for 64-bit results without `jax_enable_x64`, derivatives, and ordered batches.

    >>> import minijax as jax
    >>> jax.jit(lambda x: io_callback(lambda x: print("saw", x), None, x))(1.)
    saw 1.0
    """
    return _bound(io_callback_p, callback, result_shape_dtypes, args, kwargs, ordered=ordered)


def effects_barrier() -> None:
    """Wait until all calls of Python functions are over: here they are, when a program returns.

    >>> effects_barrier()
    """
