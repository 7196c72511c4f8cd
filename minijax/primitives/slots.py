"""Rules for the slots of a primitive that name no other primitive: meanings, types, elements.

Builds on `core`.  Chapters 02 to 04 show the rules that are made of them.
In JAX: the helpers of `jax/_src/lax/lax.py`, such as `naryop_dtype_rule`.
"""

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes
from minijax.core import Avals, ShapedArray, cannot, dtype_name
from minijax.dtypes import computed_in, is_narrow
from minijax.util.lazily import later

Formula = Callable[..., Any]  # (s, *scalars, **params): one element, in the scalar operations

# The kinds of dtypes that a primitive accepts, in the order in which messages list them.
BOOL, INTEGER, SIGNED = (np.bool_,), (np.integer,), (np.signedinteger,)
FLOAT, COMPLEX = (np.floating,), (np.complexfloating,)
NUMBER = INTEGER + FLOAT + COMPLEX
INEXACT = FLOAT + COMPLEX
ANYTHING = INTEGER + BOOL + FLOAT + COMPLEX
ORDERED = INTEGER + FLOAT + BOOL
BITS = INTEGER + BOOL

NOT_LINEAR = cannot("it is not a linear operation")
LEFT_TO_NUMPY = cannot("NumPy computes it for complex numbers")
NOT_DIFFERENTIABLE = cannot("its result does not vary smoothly with its arguments")


# ── impl: the meaning, in NumPy ──────────────────────────────────────────────────────────────

def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of complex numbers; any other itself."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def in_numpy(f: Callable[..., Any], takes_halves: bool = False, in_float64: bool = False
             ) -> Callable[..., list]:
    """A meaning from a NumPy function; narrow floats are computed in float32 and rounded once, but
    for float16 if the function takes it as it is. So is float32 in float64 if that is asked for.
    """
    def impl(*arrays: np.ndarray, **params: Any) -> list:
        dtype = arrays[0].dtype
        if in_float64 and dtype.char == "f":
            return [f(*arrays, dtype=np.float64).astype(dtype)]
        wide = computed_in(dtype)
        if wide is dtype or takes_halves and dtype == np.float16:
            return [f(*arrays, **params)]
        out = np.asarray(f(*(x.astype(computed_in(x.dtype)) for x in arrays), **params))
        return [out.astype(dtype) if out.dtype == wide else out]
    return impl


def by_formula(f: Formula) -> Callable[..., list]:
    """A meaning from the formula of one element, run over whole arrays."""
    computed = wide(f)
    return lambda *arrays, **params: [computed(numpy_scalars(), *arrays, **params)]


# The builder that runs scalar operations on NumPy arrays.
numpy_scalars = functools.cache(later("minijax.compiler.scalars", "NumpyScalars"))


def wide(formula: Formula) -> Formula:
    """A formula whose narrow floats are computed in float32 and rounded once.

    Integers keep their width, in which operations wrap around.
    """
    def computed(s: Any, *scalars: Any, **params: Any) -> Any:
        dtype = scalars[0].dtype
        if not is_narrow(dtype) or computed_in(dtype).kind != "f":
            return formula(s, *scalars, **params)
        result = formula(s, *(widened(s, x) for x in scalars), **params)
        return s.convert(result, dtype) if result.dtype == np.float32 else result
    return computed


@contextlib.contextmanager
def nest(b: Any, extents: Sequence[int], vectorize: str = "") -> Iterator[tuple]:
    """A loop nest with these extents; gives its indices."""
    with contextlib.ExitStack() as stack:
        yield tuple(stack.enter_context(b.loop(n, vectorize=vectorize)) for n in extents)


@functools.cache
def extremum_identity(op: str, dtype: Any) -> Any:
    """The identity of "max" or "min": for a maximum -inf, or else the least number, or False."""
    if dtype.kind == "b":
        return dtype.type(op == "min")
    is_integer = dtypes.issubdtype(dtype, np.integer)
    if not is_integer and np.isinf(infinite := dtype.type(-np.inf if op == "max" else np.inf)):
        return infinite
    limits = (dtypes.iinfo if is_integer else dtypes.finfo)(dtype)
    return dtype.type(limits.min if op == "max" else limits.max)


class Reduction(NamedTuple):
    """An element that reduces many others; the loop writer chooses whether it computes one element
    or a row of them, and the order of the terms, if they are many.
    """

    op: str  # one of add, mul, min, max, and, or, xor
    dtype: np.dtype  # of the terms
    extents: tuple[int, ...]
    term: Callable[..., Any]  # of an index within the extents
    finish: Callable[[Any], Any]  # of the total
    in_order: bool = False  # one term after the other, on a CPU


def as_chain(s: Any, extents: tuple[int, ...], term: Callable[..., Any]
             ) -> tuple[tuple[int, ...], Callable[..., Any]]:
    """The extents and terms of a reduction over several axes, as one over a single axis: terms of
    nested loops would be combined row by row.
    """
    return (math.prod(extents),), lambda k: term(*s.unravel(k, extents))


def elementary(name: str) -> Formula:
    """The scalar operation or elementary function of that name, as compiled code computes it.

    Evaluation uses NumPy's function where there is one, so that the two may differ in the last
    bit: over NumPy arrays the polynomial would take a hundred times as long, and one operation
    does not repay compilation.
    """
    return lambda s, *scalars: getattr(s, name)(*scalars)


def layout(function: str, *, words: dict[str, str] | None = None, **known: Any
           ) -> Callable[..., Any]:
    """The rule of that name in `layouts`, for the slot `sharding`; its alignment has these words.
    """
    rule = later("minijax.primitives.layouts", function, **known)
    if words is None:
        return rule
    return lambda ins, outs, **params: rule(ins, outs, **params)._replace(words=words)


def in_pairs(name: str) -> Callable[..., Any]:
    """The formula of that name in `complex_pairs`, for complex numbers."""
    return lambda c, *args, **params: getattr(c, name)(*args, **params)


# ── abstract_eval: the type of the result ────────────────────────────────────────────────────

def check_dtypes(name: str, avals: Avals, accepts: Sequence[tuple], same: bool = True) -> None:
    """Refuse dtypes that an operation does not accept.

    Raises:
      TypeError: in JAX's words.
    """
    for i, (aval, kinds) in enumerate(zip(avals, accepts, strict=True)):
        if any(dtypes.issubdtype(aval.dtype, kind) for kind in kinds):
            continue
        place = f" at position {i}" if len(avals) > 1 else ""
        if aval.dtype == dtypes.float0:
            raise TypeError(float0_message(name, place or " array", ","))
        words = ", ".join(kind_name(kind) for kind in kinds)
        raise TypeError(f"{name} does not accept dtype {dtype_name(aval.dtype)}{place}. "
                        f"Accepted dtypes{place} are subtypes of {words}.")
    if same:
        check_same_dtypes(name, *avals)


def kind_name(kind: type) -> str:
    return "bool" if kind is np.bool_ else kind.__name__


def float0_message(name: str, place: str = " array", comma: str = "") -> str:
    return (f"Called {name} with a float0{place}. float0s do not support any operations by "
            f"design{comma} because they are not compatible with non-trivial vector spaces. No "
            "implicit dtype conversion is done. You can use np.zeros_like(arr, dtype=np.float) to "
            "cast a float0 array to a regular zeros array. \nIf you didn't expect to get a float0 "
            "you might have accidentally taken a gradient with respect to an integer argument.")


# The names of `jnp` for the functions that promote their arguments.
_IN_NUMPY = {"div": "divide", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
             "gt": "greater", "ge": "greater_equal", "max": "maximum", "min": "minimum",
             "mul": "multiply", "sub": "subtract", "atan2": "arctan2", "rem": "remainder",
             "pow": "power", "select": "where", "add": "add", "nextafter": "nextafter",
             "concatenate": "concatenate"}


def check_same_dtypes(name: str, *avals: ShapedArray) -> None:
    """Refuse operands of different dtypes, which `lax` does not promote.

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


def check_reducible(name: str, x: ShapedArray, accepts: tuple) -> None:
    if accepts == BITS and x.dtype.kind not in "biu":  # not the small integers, either
        raise TypeError("logical reduction requires operand dtype bool or int, got "
                        f"{dtype_name(x.dtype)}.")
    if accepts == NUMBER and not dtypes.issubdtype(x.dtype, np.number):
        raise TypeError(f"{name} does not accept dtype {dtype_name(x.dtype)}. "
                        "Accepted dtypes are subtypes of number.")
    check_dtypes(name, [x], [accepts])


def broadcast_shapes(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of an elementwise result: operands have one rank, or are scalars, and broadcast.

    Raises:
      TypeError: where the shapes do not fit.

    >>> broadcast_shapes("add", [(3, 1), (), (1, 4)])
    (3, 4)
    """
    ranked = [shape for shape in shapes if shape]
    if len(set(ranked)) < 2:
        return ranked[0] if ranked else ()
    ranks = {len(shape) for shape in ranked}
    if len(ranks) > 1:
        raise TypeError(f"{name}: arrays must have the same number of dimensions, got {ranks}")
    try:
        return np.broadcast_shapes(*ranked)
    except ValueError:
        raise TypeError(f"{name} got incompatible shapes for broadcasting: "
                        f"{', '.join(map(str, ranked))}.") from None


def all_weak(avals: Avals) -> bool:
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


def widened(s: Any, x: Any) -> Any:
    """A narrow number in the dtype of its accumulation."""
    return s.convert(x, computed_in(x.dtype)) if is_narrow(x.dtype) else x


def ordered_bits(s: Any, x: Any) -> Any:
    """A signed integer for every number, in the same order; nan is the largest."""
    x = widened(s, x)
    signed = np.dtype(f"i{x.dtype.itemsize}")
    limits = np.iinfo(signed)
    if x.dtype.kind == "u":
        return s.bitcast(s.xor(x, 1 << limits.bits - 1), signed)
    if x.dtype.kind != "f":
        return s.convert(x, signed)
    bits = s.bitcast(s.add(x, 0.), signed)  # -0 becomes 0
    ordered = s.select(s.lt(bits, 0), s.xor(bits, limits.max), bits)
    return s.select(s.ne(x, x), s.const(limits.max, signed), ordered)


def falling_bits(s: Any, x: Any) -> Any:
    """An integer for every number, in descending order; -0 is less than +0, and nans have signs."""
    if x.dtype.itemsize == 1:
        x = widened(s, x)
    if not dtypes.issubdtype(x.dtype, np.floating):
        return s.not_(s.convert(x, np.int8) if x.dtype == np.bool_ else x)
    word = np.dtype(f"i{x.dtype.itemsize}")
    bits = s.bitcast(x, word)
    return s.not_(s.select(s.lt(bits, 0), s.xor(bits, np.iinfo(word).max), bits))


# ── element ──────────────────────────────────────────────────────────────────────────────────

def pointwise(f: Formula) -> Callable[..., Any]:
    """One element of the result from the operands' elements at the same index."""
    def element(s: Any, index: tuple, *operands: Any, **params: Any) -> Any:
        return f(s, *(x(place(s, index, x.shape)) for x in operands), **params)
    return element


def place(s: Any, index: tuple, shape: tuple[int, ...]) -> tuple:
    """An operand's index for an index of the result to which it broadcasts."""
    if not shape:
        return ()
    return tuple(s.const(0, np.int64) if n == 1 else i for i, n in zip(index, shape, strict=True))
