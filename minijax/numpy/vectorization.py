"""Functions of small arrays, mapped over large ones: vectorize, apply_along_axis, ….

Builds on `api.vmap`.  Chapter 04, *Vectorising*.
In JAX: `jax/_src/numpy/vectorize.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.lib import _function_base_impl

from minijax.transforms import api
from minijax import lax, tree_util
from minijax.util import tracebacks
from minijax.core import Array
from minijax.numpy import creation, shaping
from minijax.numpy.arguments import (ArrayLike, as_array, canonical_axis, check_loop_ranks, public)

CoreDims = tuple[str, ...]


def vectorize(pyfunc: Callable, *, excluded: Collection[int | str] = frozenset(),
              signature: str | None = None) -> Callable:
    """A function of scalars, or of arrays as its signature says, that broadcasts.

    >>> import minijax.numpy as jnp
    >>> dot = vectorize(lambda x, y: (x * y).sum(), signature="(n),(n)->()")
    >>> dot(jnp.ones((4, 1, 3)), jnp.ones((2, 3))).shape
    (4, 2)

    Args:
      excluded: arguments, by number or name, that are passed as they are.
      signature: the axes of arguments and results that belong to the function.
    """
    if any(not isinstance(name, (int, str)) for name in excluded):
        raise TypeError("jax.numpy.vectorize can only exclude integer or string arguments, "
                        f"but excluded={set(excluded)!r}")
    if any(isinstance(name, int) and name < 0 for name in excluded):
        raise ValueError(f"excluded={set(excluded)!r} contains negative numbers")

    @tracebacks.standing_for(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        fixed = {i: x for i, x in enumerate(args) if i in excluded}
        places = [i for i in range(len(args)) if i not in fixed]
        none = {k for k, i in enumerate(places) if args[i] is None}
        none = none if any(none) else set()  # JAX: one None alone, in front, is refused as an array
        fixed |= {places[k]: None for k in none}
        mapped = [x for i, x in enumerate(args) if i not in fixed]
        if unknown := set(kwargs) - set(excluded):
            raise ValueError("jax.numpy.vectorize maps only positional arguments; "
                             f"exclude {sorted(unknown)} or pass them by position.")

        def call(*arrays: Any) -> Any:
            rest = iter(arrays)
            return pyfunc(*(fixed[i] if i in fixed else next(rest) for i in range(len(args))),
                          **kwargs)
        whose = f" on vectorized function with {excluded=!r} and {signature=!r}"
        arrays = [creation.asarray(x) if x is None or isinstance(x, list | tuple) else
                  as_array("vectorize", x) for x in mapped]
        return _broadcasting(call, signature, whose, arrays, none)

    return vectorized


def _broadcasting(function: Callable, signature: str | None, whose: str, args: list[Any],
                  none: set[int]) -> Any:
    inputs: list[CoreDims] = [()] * (len(args) + len(none))
    outputs: list[CoreDims] = []  # unknown without a signature
    if signature is not None:
        inputs, outputs = _function_base_impl._parse_gufunc_signature(  # type: ignore[attr-defined]
            signature)
    if len(inputs) != len(args) + len(none):
        raise TypeError(f"wrong number of positional arguments: expected {len(inputs)}, "
                        f"got {len(args) + len(none)}{whose}")
    if any(inputs[k] for k in none):
        raise ValueError(f"Cannot pass None at locations {none} with {signature=}")
    inputs = [dims for k, dims in enumerate(inputs) if k not in none]
    sizes: dict[str, int] = {}
    for x, dims in zip(args, inputs, strict=True):
        if x.ndim < len(dims):
            raise ValueError(f"input with shape {x.shape} does not have enough dimensions for all "
                             f"core dimensions {dims}{whose}")
        _note_sizes(sizes, x.shape, dims, whose)
    loops = [x.shape[:x.ndim - len(dims)] for x, dims in zip(args, inputs, strict=True)]
    shape = lax.broadcast_shapes(*loops)
    check_loop_ranks(str(signature), loops, args)

    @tracebacks.wraps(function)
    def checked(*arrays: Any) -> Any:
        out = function(*arrays)
        outs = out if isinstance(out, tuple) else (out,)
        if outputs and len(outs) != len(outputs):
            raise TypeError(
                f"wrong number of output arguments: expected {len(outputs)}, got {len(outs)}{whose}"
                if isinstance(out, tuple) else
                f"output must be a tuple when multiple outputs are expected, got: {out!r}{whose}")
        for shape, dims in zip(map(np.shape, outs if outputs else ()), outputs, strict=True):
            if len(shape) != len(dims):
                raise ValueError(f"output shape {shape} does not match core dimensions {dims}"
                                 f"{whose}")
            _note_sizes(sizes, shape, dims, whose)
        return out
    mapped = checked
    for back in range(-1, -len(shape) - 1, -1):  # from the innermost loop outwards
        if shape[back] != 1:
            in_axes = [0 if len(loop) >= -back and loop[back] != 1 else None for loop in loops]
            mapped = api.vmap(mapped, in_axes=tuple(in_axes))
    squeezed = [lax.squeeze(x, [d for d in range(len(loop)) if loop[d] == 1])
                for x, loop in zip(args, loops, strict=True)]
    out = mapped(*squeezed)
    ones = [d for d, n in enumerate(shape) if n == 1]
    return tree_util.tree_map(lambda x: lax.expand_dims(x, ones), out) if ones else out


def _note_sizes(sizes: dict[str, int], shape: tuple, dims: CoreDims, whose: str) -> None:
    for name, size in zip(dims, shape[len(shape) - len(dims):], strict=True):
        if sizes.setdefault(name, size) != size:
            raise ValueError(f"inconsistent size for core dimension '{name}': "
                             f"{size} vs {sizes[name]}{whose}")


def apply_along_axis(func1d: Callable, axis: int, arr: ArrayLike, *args: Any,
                     **kwargs: Any) -> Array:
    """A function of vectors, applied to every vector along an axis.

    >>> import minijax.numpy as jnp
    >>> apply_along_axis(jnp.sum, 0, jnp.ones((2, 3)))
    Array([2., 2., 2.], dtype=float32)
    """
    x = as_array("apply_along_axis", arr)
    axis = canonical_axis(axis, x.ndim)
    mapped: Callable = lambda v: func1d(v, *args, **kwargs)
    for _ in range(x.ndim - 1):
        mapped = api.vmap(mapped)
    out, loops = mapped(shaping.moveaxis(x, axis, -1)), x.ndim - 1
    return out if not loops else tree_util.tree_map(lambda y: shaping.moveaxis(
        y, range(loops, y.ndim), range(axis, axis + y.ndim - loops)), out)


public(globals())
