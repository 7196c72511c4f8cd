"""The public functions besides derivatives and `jit`: `vmap`, `make_jaxpr`, `eval_shape`.

Builds on `core`, `jit`.  Chapters 03 to 08.
In JAX: `jax/_src/api.py`.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from minijax import config, core, errors, tree_util
from minijax.core import Array, jaxpr, tracing
from minijax.util import source_info, tracebacks
from minijax.transforms.derivatives import vjp
from minijax.transforms.gradients import Argnums, as_chosen, by_argnums
from minijax.transforms.arguments import as_tuple, check_function, flattened
from minijax.transforms.jit import jit
from minijax.transforms.discharge import check_distinct, has_refs, of_examples
from minijax.core.vmap import Dim, vmap_flat
from minijax.primitives.ad_util import batch_to, reduce_sum_p
from minijax.primitives.axes import canonical_axis

# ── Vectorising ──────────────────────────────────────────────────────────────────────────────


def vmap(fun: Callable, in_axes: Any = 0, out_axes: Any = 0, axis_name: Hashable | None = None,
         axis_size: int | None = None, spmd_axis_name: Any = None, sum_match: bool = False
         ) -> Callable:
    """Vectorise a function of one example to a function of a batch.

    Args:
      fun: a function of arrays and trees of arrays.
      in_axes: for each argument the axis to map over, None to pass it as it is; an integer for
        all, or a tree prefix of the arguments.
      out_axes: the axis of each result along which the batch goes; a tree prefix of the results.
      axis_name: a name for the axis, for collectives.
      axis_size: its size, needed where no argument is mapped.
      spmd_axis_name: accepted for JAX's sake; there is one device.
      sum_match: whether a result that varies along the axis, with None in `out_axes`, is summed.

    Returns:
      A function of the same arguments with the mapped axes added.

    Raises:
      ValueError: on call, when axes do not exist or their sizes differ.

    >>> import numpy as np
    >>> vmap(lambda x, y: x * y, in_axes=(0, None))(np.arange(3), 10)
    Array([ 0, 10, 20], dtype=int32)
    """
    check_function(fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if in_axes is not None and type(in_axes) not in (tuple, *_types_of_axes()):
        raise TypeError("vmap in_axes must be an int, None, or a tuple of entries corresponding "
                        f"to the positional arguments passed to the function, but got {in_axes}.")
    check_axes("vmap in_axes", in_axes, _types_of_axes())
    check_axes("vmap out_axes", out_axes, _types_of_axes())

    @tracebacks.standing_for(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
                f"positional arguments passed to the function, but got len(in_axes)="
                f"{len(in_axes)}, len(args)={len(args)}")
        if has_refs((args, kwargs)):
            return _mapped_with_references(fun, args, kwargs, in_axes, out_axes, axis_name,
                                           axis_size)
        map_values, _ = next(iter(registered.values()), (map_axes, int))
        return map_values("vmap", fun, args, kwargs, in_axes, out_axes, axis_name, axis_size,
                          joined=_summed if sum_match else None)
    name = mapped.__name__
    mapped.__doc__ = "\n\n".join([
        f"Vectorized version of {name}. Takes similar arguments as {name} but with additional "
        f"array axes over which {name} is mapped.",
        *(["Original documentation:", fun.__doc__] if isinstance(fun.__doc__, str) else [])])
    return mapped


def check_axes(name: str, axes: Any, types: Sequence[type]) -> None:
    """Refuse a tree whose leaves are no axes."""
    if any(type(axis) not in types for axis in tree_util.tree_leaves(axes)):
        raise TypeError(f"{name} must be an int, None, or (nested) container with those types as "
                        f"leaves, but got {axes}.")


def _summed(x: Array, axis: int) -> Array:
    """The sum of all rows."""
    return reduce_sum_p.bind(x, axes=(axis,))


def _mapped_with_references(fun: Callable, args: tuple, kwargs: dict, in_axes: Any, out_axes: Any,
                            axis_name: Hashable, axis_size: int | None) -> Any:
    """`vmap` with references among the arguments: each example has its part of those mapped."""
    leaves, tree = tree_util.tree_flatten((args, kwargs))
    dims = tree_util.flatten_axes("vmap in_axes", tree.children()[0], in_axes)
    dims += [0] * (len(leaves) - len(dims))
    check_distinct(leaves, source_info.describe(fun, args, kwargs, "vmap"))
    mapped = {i: (x, dims[i] % max(x.ndim, 1)) for i, x in enumerate(leaves)
              if core.is_ref(x) and dims[i] is not None}
    args, kwargs = tree_util.tree_unflatten(
        tree, [x.read() if i in mapped else x for i, x in enumerate(leaves)])
    return map_axes("vmap", tracebacks.wraps(fun)(of_examples(fun, mapped)), args, kwargs,
                    in_axes, out_axes, axis_name, axis_size)


def map_axes(api: str, fun: Callable, args: tuple, kwargs: dict, in_axes: Any, out_axes: Any,
             axis_name: Hashable, axis_size: int | None, static: Collection[int] = (),
             placed: Callable[[Array, int, int], Array] = lambda x, axis, size: x,
             joined: Callable[[Array, int], Array] | None = None) -> Any:
    """Map a function over axes of its arguments.

    Args:
      api: the caller's name in errors.
      placed: ``(array, axis, size)``: an argument or result with its mapped axis, on its devices.
      joined: ``(array, axis)``: the rows of a result as one, where out_axes is None; by default
        such a result must not be mapped.
    """
    flat, leaves = flattened(fun, args, api, kwargs=kwargs, static=static)
    dims = tree_util.flatten_axes(f"{api} in_axes", flat.in_tree.children()[0], in_axes)
    dims += [0] * (len(leaves) - len(dims))  # keyword arguments are mapped along axis 0
    values = [x if d is None else tracing.check_arg(x) for x, d in zip(leaves, dims, strict=True)]
    if not leaves and axis_size is None and api == "vmap":
        raise ValueError("vmap wrapped function must be passed at least one argument containing an "
                         f"array or axis_size must be specified, got empty *args={args} and "
                         f"**kwargs={kwargs}")
    size, places, sharding = _mapped_axes(values, dims, flat.debug_info, kwargs, axis_size)

    def to_axis(x: Array, d: Dim, w: int) -> Array:
        """A result with the mapped axis; one that is the same for all examples is broadcast."""
        out = batch_to(x, d, w, size)
        return out if d is not None or sharding is None else (
            core.ShapedArray.shardings.with_batch_sharded(out, x.aval, w, sharding))
    values = [x if d is None else placed(x, d, size) for x, d in zip(values, places, strict=True)]
    outs, out_dims = core.leaving_no_tracer(vmap_flat)(
        flat, size, axis_name, values, places, flat.debug_info, on_devices=api == "pmap")
    to_axes = tree_util.flatten_axes(f"{api} out_axes", flat.out_tree, out_axes)
    if joined:
        outs = [joined(x, d) if w is None and d is not None else x
                for x, d, w in zip(outs, out_dims, to_axes, strict=True)]
        out_dims = [None if w is None else d for d, w in zip(out_dims, to_axes, strict=True)]
    for i, (d, w) in enumerate(zip(out_dims, to_axes, strict=True)):
        if d is not None and w is None:
            if axis_name is not None:
                raise ValueError(f"{api} has mapped output (axis_name={axis_name}) but out_axes is "
                                 "None")
            raise ValueError(
                f"at {api} out_axes{source_info.result_paths(flat.out_tree)[i]}, got axis spec "
                f"None but output was batched on axis {d}")
    return flat.result([
        flat.plain[i] if w is None and i in flat.plain else x if w is None else
        placed(to_axis(x, d, canonical_axis(w, x.ndim + (d is None))), w, size)
        for i, (x, d, w) in enumerate(zip(outs, out_dims, to_axes, strict=True))])


# Of classes with custom conversions for `vmap` the mapper, and the type of axes; see
# `extend.vmappable`.
registered: dict[type, tuple[Callable, type]] = {}


def _types_of_axes() -> tuple[type, ...]:
    return (int, *(axis for _, axis in registered.values()))


def _mapped_axes(values: Sequence[Array], dims: Sequence[Any], info: Any, kwargs: dict,
                 axis_size: int | None) -> tuple[int, list[Dim], Any]:
    """The size of the mapped axis, its position in each argument, and its sharding."""
    api = info.traced_for
    places = [None if d is None else _axis_of(api, x, d, name)
              for x, d, name in zip(values, dims, info.arg_names, strict=True)]
    sizes: dict[int, list[str]] = {}
    names = [f"argument {name}" for name in info.arg_names]
    by_name = [f"kwargs{tree_util.keystr(path)}"
               for path, _ in tree_util.tree_leaves_with_path(kwargs)] if kwargs else []
    names[len(names) - len(by_name):] = by_name
    for x, place, name in zip(values, places, names, strict=True):
        if place is not None:
            sizes.setdefault(x.shape[place], []).append(
                f"axis {place} of {name} of type {x.aval.str_long()}")
    if not sizes and axis_size is None:
        raise ValueError(f"{api} must have at least one non-None value in in_axes or axis_size "
                         "must be specified")
    size = axis_size if axis_size is not None else next(iter(sizes))
    if set(sizes) - {size}:
        note = "" if axis_size is None else f"  * the `axis_size` argument was {axis_size};\n"
        raise ValueError(_sizes_differ(api, sizes, note))
    mapped = [(x.aval, d) for x, d in zip(values, places, strict=True) if d is not None]
    sharding = core.ShapedArray.shardings.of_mapped(mapped) if any(
        aval.explicit_sharding is not None for aval, _ in mapped) else None
    return size, places, sharding


def _axis_of(api: str, x: Array, axis: int, name: str | None) -> int:
    if not -x.ndim <= axis < x.ndim:
        raise errors.with_cure(
            ValueError(f"{api} was requested to map its argument along axis {axis}, which implies "
                       f"that its rank should be at least {axis + 1 if axis >= 0 else -axis}, but "
                       f"is only {x.ndim} (its shape is {x.shape})"),
            f"The argument is {name}. In in_axes, None is for an argument that is the same for all "
            "examples: in_axes=(0, None).")
    return axis % x.ndim


def _sizes_differ(api: str, sizes: dict[int, list[str]], first_line: str) -> str:
    most = max(sizes, key=lambda size: len(sizes[size]))
    lines = []
    for size in sorted(sizes, key=lambda size: size != most):
        count, first = len(sizes[size]), sizes[size][0]
        which = "most" if size == most else "some"
        lines.append(f"  * one axis had size {size}: {first}" if count == 1 else
                     f"  * {which} axes ({count} of them) had size {size}, e.g. {first}")
    return (f"{api} got inconsistent sizes for array axes to be mapped:\n" + first_line
            + ";\n".join(lines))


# ── Programs and types ───────────────────────────────────────────────────────────────────────

def make_jaxpr(fun: Callable, static_argnums: int | Iterable[int] = (),
               axis_env: Sequence[tuple[Hashable, int]] | None = None,
               return_shape: bool = False) -> Callable[..., Any]:
    """A function that returns the program of `fun` for given arguments.

    Args:
      fun: a function of arrays and trees of arrays.
      static_argnums: positions of arguments that are not arrays.
      axis_env: names and sizes of mapped axes, as inside of `vmap`.
      return_shape: whether to return the types of the results, too.

    Returns:
      A function of the arguments of `fun` (or their `ShapeDtypeStruct`) that returns a
      `ClosedJaxpr`.

    >>> make_jaxpr(lambda x: 2 * x)(3.0)
    { lambda ; a:f32[]. let b:f32[] = mul 2.0:f32[] a in (b,) }
    """
    if not callable(fun):
        raise TypeError("the first argument must be callable")
    plain = fun.__func__ if isinstance(fun, staticmethod) else fun
    jitted = jit(plain, static_argnums=as_tuple(static_argnums, int) or None)

    @tracebacks.standing_for(fun)
    def program(*args: Any, **kwargs: Any) -> jaxpr.ClosedJaxpr | tuple[jaxpr.ClosedJaxpr, Any]:
        trace = core.current_trace.get()
        if axis_env:
            trace = core.EvalTrace(None, trace)
            trace.axes += tuple(core.Axis(size, name) for name, size in axis_env)
        traced = core.run_with(trace, jitted.trace, *args, **kwargs)
        return (traced.jaxpr, traced.out_info) if return_shape else traced.jaxpr
    program.__name__, program.__qualname__ = (
        f"make_jaxpr({name})" for name in (program.__name__, program.__qualname__))
    program.__module__ = "jax"
    return program


def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of a function's results, which are not computed.

    Args:
      fun: a function of arrays and trees of arrays.
      args, kwargs: its arguments, or their `ShapeDtypeStruct`.

    Returns:
      The result's tree with a `ShapeDtypeStruct` for every array.

    >>> import numpy as np
    >>> eval_shape(lambda x: x[0] * 2, np.ones((3, 4), np.float32))
    ShapeDtypeStruct(shape=(4,), dtype=float32)
    """
    return jit(fun).eval_shape(*args, **kwargs)


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """A context in which a jitted function runs in Python, operation by operation.

    Args:
      disable: False for a context in which it compiles again.

    >>> with disable_jit():
    ...     jit(lambda x: print("seen:", x))(3.0)
    seen: 3.0
    """
    return config.disable_jit(disable)


def fwd_and_bwd(fun: Callable, argnums: Argnums, has_aux: bool = False, jitted: bool = True
                ) -> tuple[Callable, Callable]:
    """The forward and the backward pass of a function, each compiled once.

    Args:
      fun: a function of arrays and trees of arrays.
      argnums: the argument, or the arguments, to differentiate by.
      has_aux: `fun` returns (result, aux); so does the forward pass, behind the residuals.
      jitted: whether to compile both.

    Returns:
      ``fwd(*args) -> (result, residuals)``, and ``bwd(residuals, cotangent) -> cotangents``.

    >>> fwd, bwd = fwd_and_bwd(lambda x, y: x * y, argnums=1)
    >>> y, residuals = fwd(3.0, 4.0)
    >>> bwd(residuals, 1.0)
    Array(3., dtype=float32, weak_type=True)
    """
    fwd = by_argnums(fun, argnums, lambda partial, chosen: vjp(partial, *chosen, has_aux=has_aux),
                     "Forward pass", "the result, and a function that pulls back to the arguments")

    def bwd(residuals: Callable, cotangent: Any) -> Any:
        return as_chosen(argnums, residuals(cotangent))
    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
