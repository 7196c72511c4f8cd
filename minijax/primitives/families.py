"""Families: functions that fill the slots of primitives which differ in little.

Stands on `core` and `shape`.  Chapters 02 to 04 show the columns of what is made here.
In JAX: the helpers `unop`, `naryop`, `defjvp`, `deflinear2`, `broadcast_batcher`.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from minijax import dtypes
from minijax.core import (Array, ArrayImpl, Axis, Example, Primitive, ShapedArray, Undefined,
                          Zero, cannot, dtype_name)
from minijax.lazily import importing
from minijax.primitives.shape import broadcast_in_dim_p, reshape_p, transpose_p

Formula = Callable[..., Any]  # (s, *scalars, **params): one element, in the scalar operations
Examples = Callable[[], list[Example]]

# What a primitive may accept, in the order in which messages list it.
BOOL, INTEGER, SIGNED = (np.bool_,), (np.integer,), (np.signedinteger,)
FLOAT, COMPLEX = (np.floating,), (np.complexfloating,)
NUMBER = INTEGER + FLOAT + COMPLEX
INEXACT = FLOAT + COMPLEX
ANYTHING = INTEGER + BOOL + FLOAT + COMPLEX
ORDERED = INTEGER + FLOAT + BOOL
BITS = INTEGER + BOOL

NOT_LINEAR = cannot("it is not a linear operation")
NOT_DIFFERENTIABLE = cannot("its result does not vary smoothly with its arguments")


# ── impl: the meaning, in NumPy ──────────────────────────────────────────────────────────────

SHORT_FLOATS = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


def computed_in(dtype: Any) -> np.dtype:
    """The dtype in which numbers are added up and multiplied."""
    return np.dtype(np.float32) if dtype in SHORT_FLOATS else dtype


def in_numpy(f: Callable[..., Any]) -> Callable[..., list]:
    """A meaning from a NumPy function; 16-bit floats are computed in float32, rounded once."""
    def impl(*arrays: np.ndarray, **params: Any) -> list:
        if arrays[0].dtype not in SHORT_FLOATS:
            return [f(*arrays, **params)]
        wide = [x.astype(np.float32) if x.dtype in SHORT_FLOATS else x for x in arrays]
        out = np.asarray(f(*wide, **params))
        return [out.astype(arrays[0].dtype) if out.dtype == np.float32 else out]
    return impl


def by_formula(f: Formula) -> Callable[..., list]:
    """A meaning that is the formula of one element, run over whole arrays."""
    return in_numpy(lambda *arrays, **params: f(numpy_scalars(), *arrays, **params))


@functools.cache
def numpy_scalars() -> Any:
    with importing:
        return importlib.import_module("minijax.lowering.scalars").NumpyScalars()


def elementary(name: str) -> Formula:
    """The function of that name written in the scalar operations."""
    def formula(s: Any, *scalars: Any) -> Any:
        with importing:
            f = getattr(importlib.import_module("minijax.lowering.elementary"), name)
        if scalars[0].dtype not in SHORT_FLOATS:
            return f(s, *scalars)
        return s.convert(f(s, *(s.convert(x, np.float32) for x in scalars)), scalars[0].dtype)
    return formula


# ── abstract_eval: the type of the result ────────────────────────────────────────────────────

def check_dtypes(name: str, avals: Sequence[ShapedArray], accepts: Sequence[tuple],
                 same: bool = True) -> None:
    """Refuse dtypes that an operation does not take.

    Raises:
      TypeError: in JAX's words.
    """
    for i, (aval, kinds) in enumerate(zip(avals, accepts, strict=True)):
        if any(dtypes.issubdtype(aval.dtype, kind) for kind in kinds):
            continue
        place = f" at position {i}" if len(avals) > 1 else ""
        if aval.dtype == dtypes.float0:
            raise TypeError(_float0_message(name, place))
        words = ", ".join(_kind_name(kind) for kind in kinds)
        raise TypeError(f"{name} does not accept dtype {dtype_name(aval.dtype)}{place}. "
                        f"Accepted dtypes{place} are subtypes of {words}.")
    if same:
        check_same_dtypes(name, *avals)


def _kind_name(kind: type) -> str:
    return "bool" if kind is np.bool_ else kind.__name__


def _float0_message(name: str, place: str) -> str:
    return (f"Called {name} with a float0{place or ' array'}. float0s do not support any "
            "operations by design, because they are not compatible with non-trivial vector "
            "spaces. No implicit dtype conversion is done. You can use np.zeros_like(arr, "
            "dtype=np.float) to cast a float0 array to a regular zeros array. \nIf you didn't "
            "expect to get a float0 you might have accidentally taken a gradient with respect "
            "to an integer argument.")


# What `jnp` calls the function that converts its arguments first, where the name differs.
_IN_NUMPY = {"div": "divide", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
             "gt": "greater", "ge": "greater_equal", "max": "maximum", "min": "minimum",
             "mul": "multiply", "sub": "subtract", "atan2": "arctan2", "rem": "remainder",
             "pow": "power", "select": "where", "add": "add", "nextafter": "nextafter",
             "concatenate": "concatenate"}


def check_same_dtypes(name: str, *avals: ShapedArray) -> None:
    """Refuse operands of different dtypes; `lax` converts nothing by itself.

    Raises:
      TypeError: naming the `jnp` function that converts.
    """
    if len({aval.dtype for aval in avals}) <= 1:
        return
    tip = _IN_NUMPY.get(name)
    tip = (f" (Tip: jnp.{tip} is a similar function that does automatic type promotion on "
           "inputs)." if tip else "")
    got = ", ".join(dtype_name(aval.dtype) for aval in avals)
    raise TypeError(f"lax.{name} requires arguments to have the same dtypes, got {got}.{tip}")


def broadcast_shapes(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of an elementwise result: of equal ranks, sizes of one stretch; scalars too.

    Raises:
      TypeError: where the shapes do not fit.

    >>> broadcast_shapes("add", [(3, 1), (), (1, 4)])
    (3, 4)
    """
    ranked = [shape for shape in shapes if shape]
    if not ranked:
        return ()
    if ranked.count(ranked[0]) == len(ranked):
        return ranked[0]
    if len({len(shape) for shape in ranked}) > 1:
        raise TypeError(f"{name}: arrays must have the same number of dimensions, "
                        f"got {({len(shape) for shape in ranked})}")
    sizes = [{n for n in column if n != 1} for column in zip(*ranked, strict=True)]
    if any(len(found) > 1 for found in sizes):
        raise TypeError(f"{name} got incompatible shapes for broadcasting: "
                        f"{', '.join(map(str, ranked))}.")
    return tuple(found.pop() if found else 1 for found in sizes)


def all_weak(avals: Sequence[ShapedArray]) -> bool:
    return all(aval.weak_type for aval in avals)


def elementwise_type(name: str, accepts: Sequence[tuple],
                     result: Callable[[Any], Any] | None = None) -> Callable[..., list]:
    """The type rule of an elementwise operation.

    Args:
      name: for messages.
      accepts: for each argument, the kinds of dtypes it may have.
      result: the dtype of the result from that of the first argument; by default the same.
    """
    def rule(*avals: ShapedArray, **params: Any) -> list[ShapedArray]:
        check_dtypes(name, avals, accepts)
        dtype = result(avals[0].dtype) if result else avals[0].dtype
        shape = broadcast_shapes(name, [aval.shape for aval in avals])
        return [ShapedArray(shape, dtype, all_weak(avals))]
    return rule


# ── jvp: derivatives, one rule an argument ───────────────────────────────────────────────────

def per_argument(p: Primitive, *rules: Callable | None) -> Callable[..., tuple[list, list]]:
    """A derivative as a sum over arguments.

    A rule is ``(tangent, result, *arguments, **params) -> tangent``; None: it does not vary.
    """
    def jvp(primals: list, tangents: list, **params: Any) -> tuple[list, list]:
        out = p.bind(*primals, **params)
        terms = [stretched(rule(t, out, *primals, **params), out.shape)
                 for rule, t in zip(rules, tangents, strict=True)
                 if rule is not None and not isinstance(t, Zero)]
        return [out], [sum_of(terms) if terms else Zero(out.aval.to_tangent_aval())]
    return jvp


def sum_of(terms: Sequence[Array]) -> Array:
    from minijax.primitives.elementwise import add_any_p  # it is made by these functions
    return functools.reduce(add_any_p.bind, terms)


def linearly(p: Primitive) -> Callable[..., tuple[list, list]]:
    """The derivative of an operation linear in its only argument: itself."""
    return per_argument(p, lambda t, out, x, **params: p.bind(t, **params))


# ── transpose: cotangents of linear arguments ────────────────────────────────────────────────

def transposed(*rules: Callable | None) -> Callable[..., list]:
    """A transpose rule from one rule for each argument it may be linear in.

    A rule is ``(cotangent, *arguments, **params) -> cotangent``; None: never linear in it.
    """
    def transpose(cotangents: list, *args: Any, **params: Any) -> list:
        [ct] = cotangents
        found: list[Any] = [None] * len(args)
        for i, (rule, x) in enumerate(zip(rules, args, strict=True)):
            if isinstance(x, Undefined):
                if isinstance(ct, Zero):
                    found[i] = Zero(x.aval)
                elif rule is None:
                    raise NotImplementedError(f"the operation is not linear in argument {i}")
                else:
                    found[i] = unstretched(rule(ct, *args, **params), x.aval.shape)
        return found
    return transpose


# ── Shapes: stretching operands, and summing cotangents back ─────────────────────────────────

def stretched(x: Array, shape: tuple[int, ...]) -> Array:
    """`x` repeated to the shape of an elementwise result it takes part in."""
    if x.shape == shape:
        return x
    kept = tuple(d for d in range(x.ndim) if x.shape[d] == shape[d])
    x = reshaped(x, tuple(shape[d] for d in kept))
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=kept)


def unstretched(ct: Array, shape: tuple[int, ...]) -> Array:
    """The sum of a cotangent over what `stretched` repeated."""
    if ct.shape == shape:
        return ct
    from minijax.primitives.reduce import reduce_sum_p  # it is made by these functions
    axes = [d for d in range(ct.ndim) if not shape or shape[d] != ct.shape[d]]
    return reshaped(reduce_sum_p.bind(ct, axes=tuple(axes)), shape)


def reshaped(x: Array, shape: tuple[int, ...]) -> Array:
    return x if x.shape == shape else reshape_p.bind(x, new_sizes=shape, dimensions=None)


def filled(value: Any, x: Array) -> Array:
    """An array of one number, with the shape and dtype of `x`."""
    scalar = constant(value, x)
    return scalar if not x.ndim else broadcast_in_dim_p.bind(
        scalar, shape=x.shape, broadcast_dimensions=())


def constant(value: Any, x: Array) -> Array:
    """A scalar written into the program, of the dtype of `x`."""
    return ArrayImpl(np.array(value, x.dtype), x.aval.update(shape=()), is_literal=True)


# ── batch ────────────────────────────────────────────────────────────────────────────────────

def moved(x: Array, source: int, destination: int) -> Array:
    order = [d for d in range(x.ndim) if d != source]
    order.insert(destination, source)
    return x if source == destination else transpose_p.bind(x, permutation=tuple(order))


def spread(x: Array, dims: Sequence[int], shape: tuple[int, ...]) -> Array:
    """`x` with its axes at `dims` of a result of this shape."""
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=tuple(dims))


def batch_elementwise(p: Primitive) -> Callable[..., tuple[list, list]]:
    """Batches an operation whose operands stretch: align the batch axes, add axes of one."""
    def batch(axis: Axis, args: list, dims: list, **params: Any) -> tuple[list, list]:
        ranked = [(x.shape, d) for x, d in zip(args, dims, strict=True) if x.ndim]
        if ranked.count(ranked[0]) == len(ranked):
            return [p.bind(*args, **params)], [ranked[0][1]]
        rank = max(x.ndim + (d is None and x.ndim > 0) for x, d in zip(args, dims, strict=True))
        aligned = [_aligned(x, d, rank) for x, d in zip(args, dims, strict=True)]
        return [p.bind(*aligned, **params)], [0]
    return batch


def _aligned(x: Array, dim: int | None, rank: int) -> Array:
    """`x` with the batch axis leading, of size one if it had none, and of this rank."""
    if dim is None:
        return x if not x.ndim else spread(x, range(1, x.ndim + 1), (1, *x.shape))
    x = moved(x, dim, 0)
    return x if x.ndim == rank else spread(x, range(x.ndim), x.shape + (1,) * (rank - x.ndim))


# ── element ──────────────────────────────────────────────────────────────────────────────────

def at_each(f: Formula) -> Callable[..., Any]:
    """One element of the result from the operands' elements at the same place."""
    def element(s: Any, index: tuple, *operands: Any, **params: Any) -> Any:
        return f(s, *(x(place(s, index, x.shape)) for x in operands), **params)
    return element


def place(s: Any, index: tuple, shape: tuple[int, ...]) -> tuple:
    """Where an operand that may stretch holds its element for `index`."""
    if not shape:
        return ()
    return tuple(s.const(0, np.int64) if n == 1 else i
                 for i, n in zip(index, shape, strict=True))


# ── examples: loaded when they are asked for ─────────────────────────────────────────────────

def points(*ranges: tuple[float, float], special: bool = True) -> Examples:
    """Arguments of floating dtypes, one drawn from each range; nan, inf and zeros too."""
    return lambda: _examples().points(*ranges, special=special)


def points_and_integers(*ranges: tuple[float, float]) -> Examples:
    """Those of `points`, and integers up to their limits."""
    return lambda: _examples().points(*ranges) + _examples().integers(len(ranges))


def integers(count: int) -> Examples:
    """Integer arguments, their limits among them."""
    return lambda: _examples().integers(count)


def bits(count: int) -> Examples:
    """Integer and bool arguments."""
    return lambda: _examples().integers(count) + _examples().bools(count)


def anything(count: int) -> Examples:
    """Arguments of all kinds."""
    return lambda: (_examples().points(*[(-2., 2.)] * count) + _examples().integers(count)
                    + _examples().bools(count))


def _examples() -> Any:
    return importlib.import_module("minijax.primitives.examples")


# ── The families ─────────────────────────────────────────────────────────────────────────────

def elementwise(name: str, *, impl: Callable[..., list], abstract_eval: Callable[..., list],
                derivatives: Sequence[Callable | None], transpose: Any = NOT_LINEAR,
                element: Formula, examples: Examples) -> Primitive:
    """A primitive that works place by place, on operands that stretch to one shape."""
    p = Primitive(name, impl=impl, abstract_eval=abstract_eval, transpose=transpose,
                  element=at_each(element), examples=examples)
    p.jvp = per_argument(p, *derivatives)
    p.batch = batch_elementwise(p)
    return p


def unary(name: str, meaning: str, *, impl: Callable[..., Any], derivative: Callable | None,
          element: Formula, accepts: tuple = INEXACT, result: Callable | None = None,
          transpose: Any = NOT_LINEAR, examples: Examples, shows: str = ""
          ) -> tuple[Primitive, Callable[[Any], Any]]:
    """A primitive of one operand without parameters, and the function that applies it.

    Args:
      name: as a jaxpr prints it and users call it.
      meaning: what the function's docstring says.
      impl: a NumPy function.
      derivative: ``(tangent, result, x) -> tangent``.
      element: the formula of one element.
      shows: an argument and the result, for the docstring: ``"0.5 -> Array(...)"``.
    """
    p = elementwise(name, impl=in_numpy(impl), derivatives=[derivative], transpose=transpose,
                    abstract_eval=elementwise_type(name, [accepts], result),
                    element=element, examples=examples)

    def function(x: Any) -> Any:
        return p.bind(x)
    return p, documented(function, name, meaning, "x", accepts, shows)


def binary(name: str, meaning: str, *, impl: Callable[..., list],
           derivatives: Sequence[Callable | None], element: Formula, accepts: tuple = NUMBER,
           result: Callable | None = None, transpose: Any = NOT_LINEAR, examples: Examples,
           shows: str = "") -> tuple[Primitive, Callable[[Any, Any], Any]]:
    """A primitive of two operands without parameters, and the function that applies it.

    The arguments are those of `unary`, but `impl` takes and gives what the slot does.
    """
    p = elementwise(name, impl=impl, derivatives=derivatives, transpose=transpose,
                    abstract_eval=elementwise_type(name, [accepts, accepts], result),
                    element=element, examples=examples)

    def function(x: Any, y: Any) -> Any:
        return p.bind(x, y)
    return p, documented(function, name, meaning, "x, y", accepts, shows)


def documented(function: Callable, name: str, meaning: str, args: str, accepts: tuple,
               shows: str) -> Callable:
    """Give a function of a family its name, home and docstring."""
    kinds = ", ".join(_kind_name(kind) for kind in accepts)
    together = "" if args == "x" else (
        "; of one dtype, and of one rank or scalars; axes of size one stretch")
    function.__name__ = function.__qualname__ = name
    function.__module__ = sys._getframe(2).f_globals["__name__"]
    function.__doc__ = (f"{meaning}\n\n    Args:\n      {args}: arrays of a dtype among: {kinds}"
                        f"{together}.\n\n    Raises:\n      TypeError: for other types.\n")
    if shows:
        call, _, shown = shows.partition(" -> ")
        function.__doc__ += f"\n    >>> {name}({call})\n    {shown}\n    "
    return function
