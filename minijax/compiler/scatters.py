"""Scatters at a known place become updates of a slice; of one number into each row of equal numbers
comparisons with the column, fused with what reads them; sums with zeros in-place scatter-adds.

The last two are derivatives, of reading a column of each row, and a window.  Builds on jaxpr.py.
Chapter 22. In XLA: fusions of `dynamic-update-slice`; in JAX: references that accumulate.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.core import Array, tracing
from minijax.core.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal
from minijax.primitives import algebra
from minijax.primitives.ad_util import broadcast_at, broadcast_in_dim_p, reshaped
from minijax.primitives.axes import without
from minijax.primitives.comparison import clamp, eq, select_n_p
from minijax.primitives.convert import convert_element_type_p
from minijax.primitives.dynamic_slice import dynamic_update_slice, one_window
from minijax.primitives.gather_scatter import scatter_add_p
from minijax.primitives.joining import concatenate, concatenate_p
from minijax.primitives.shape import broadcasted_iota
from minijax.primitives.slicing import slice
from minijax.primitives.windows import GatherScatterMode, ScatterDimensionNumbers

LARGE = 1 << 10  # numbers: for fewer it does not matter


def as_comparison(eqn: JaxprEqn, producers: Mapping[Atom, JaxprEqn],
                  value_of: Callable[[Atom], Any]) -> tuple[ClosedJaxpr, Sequence[Atom]] | None:
    """The program for a scatter of one number into each row, and its arguments; else None.

    Args:
      value_of: finds the array of an atom that depends on no input, else None.

    >>> import minijax, numpy as np
    >>> loss = lambda x, label: -minijax.nn.log_softmax(x)[np.arange(5), label].sum()
    >>> lowered = minijax.jit(minijax.grad(loss)).lower(np.ones((5, 3), np.float32), np.arange(5))
    >>> "scatter" in lowered.as_text("simplified")
    False
    """
    if eqn.primitive.name not in ("scatter", "scatter-add") or len(eqn.outvars) > 1:
        return None
    rows, _, updates = eqn.invars
    value, found = _only_value(rows, producers), _columns(eqn, producers, value_of)
    if value is None or found is None:
        return None
    columns, axis = found
    shape, adds = rows.aval.shape, eqn.primitive.name == "scatter-add"
    rest = without(range(len(shape)), [axis])

    def select(value: Array, columns: Array, updates: Array) -> list[Array]:
        columns, updates = (reshaped(x, without(shape, [axis])) for x in (columns, updates))
        if eqn.params["mode"] is GatherScatterMode.CLIP:
            columns = clamp(np.int32(0), columns, np.int32(shape[axis] - 1))
        is_here = eq(broadcasted_iota(columns.dtype, shape, axis),
                     broadcast_at(columns, rest, shape))
        value = broadcast_at(value, (), shape)
        new = broadcast_at(updates, rest, shape)
        return [select_n_p.bind(is_here, value, algebra.add(value, new) if adds else new)]
    args = value, columns, updates
    return tracing.stage(select, [x.aval for x in args]), args


def as_update(eqn: JaxprEqn, value_of: Callable[[Atom], Any]
              ) -> tuple[ClosedJaxpr, Sequence[Atom]] | None:
    """The program for a scatter of one window whose place is known, and its arguments; else None.

    >>> import minijax, numpy as np
    >>> lowered = minijax.jit(lambda x: x.at[1:-1].add(2)).lower(np.ones(9, np.float32))
    >>> "scatter" in lowered.as_text("simplified")
    False
    """
    scatter, _, op = eqn.primitive.name.partition("-")
    if scatter != "scatter" or len(eqn.outvars) > 1 or eqn.invars[1].aval.ndim != 1:
        return None
    (x, indices, updates), numbers = eqn.invars, eqn.params["dimension_numbers"]
    known = value_of(indices)
    if known is None:
        return None
    starts = [0] * x.aval.ndim
    for axis, start in zip(numbers.scatter_dims_to_operand_dims, known.tolist(), strict=True):
        starts[axis] = start
    sizes, shape = iter(updates.aval.shape), x.aval.shape
    window = tuple(1 if d in numbers.inserted_window_dims else next(sizes)
                   for d in range(len(shape)))
    ends = [i + size for i, size in zip(starts, window, strict=True)]
    if any(i < 0 or end > n for i, end, n in zip(starts, ends, shape, strict=True)):
        return None

    def update(x: Array, updates: Array) -> list[Array]:
        new = reshaped(updates, window)
        joined = getattr(algebra, op)(slice(x, starts, ends), new) if op else new
        return [dynamic_update_slice(x, joined, starts)]
    return tracing.stage(update, [x.aval, updates.aval]), (x, updates)


def _only_value(x: Atom, producers: Mapping[Atom, JaxprEqn]) -> Literal | None:
    """The number that all elements of an array are, if it is known."""
    while (eqn := producers.get(x)) and (eqn.primitive is broadcast_in_dim_p or (
            eqn.primitive is convert_element_type_p and eqn.invars[0].aval.dtype == x.aval.dtype)):
        x = eqn.invars[0]
    return x if isinstance(x, Literal) else None


def _columns(eqn: JaxprEqn, producers: Mapping[Atom, JaxprEqn], value_of: Callable[[Atom], Any]
             ) -> tuple[Atom, int] | None:
    """The column for each row that a scatter writes to, and their axis; None if it may write to
    several columns of a row, or none.
    """
    (rows, indices, updates), numbers = eqn.invars, eqn.params["dimension_numbers"]
    joined, axes = producers.get(indices), numbers.scatter_dims_to_operand_dims
    parts = joined.invars if joined and joined.primitive is concatenate_p else [indices]
    if (numbers.update_window_dims or not axes or len(parts) != len(axes)
            or {x.aval.shape for x in parts} != {(*updates.aval.shape, 1)}):
        return None
    # For axes of the rows: the axis of the updates along which they are for one after the other.
    along = dict(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims,
                     strict=True))
    for axis, part in zip(axes, parts, strict=True):
        if (d := _counted_axis(value_of(part))) is not None:
            along[axis] = d
    axis = next((k for k in axes if k not in along), axes[-1])
    rest = without(range(rows.aval.ndim), [axis])
    dims, sizes = [along.get(k, -1) for k in rest], [rows.aval.shape[k] for k in rest]
    if (dims != sorted({*dims} - {-1}) or sizes != [updates.aval.shape[d] for d in dims]
            or updates.aval.size != math.prod(sizes)):
        return None
    return parts[axes.index(axis)], axis


def _counted_axis(value: Any) -> int | None:
    """The axis, but not the last one, along which an array counts from 0; None if there is none."""
    for d, n in enumerate(getattr(value, "shape", ())[:-1]):
        if np.array_equal(value, np.broadcast_to(
                np.arange(n).reshape(-1, *[1] * (value.ndim - d - 1)), value.shape)):
            return d
    return None


# -- sums ------------------------------------------------------------------------------------------


def as_scatter_add(eqn: JaxprEqn, sums: set[Atom], producers: Mapping[Atom, JaxprEqn]
                   ) -> tuple[ClosedJaxpr, Sequence[Atom]] | None:
    """The program for a sum with a scatter into zeros, and its arguments; else None.

    >>> import minijax, numpy as np
    >>> def f(x):
    ...     row = lambda h, i: (h * x[i], None)
    ...     return minijax.lax.scan(row, x[0], np.arange(9))[0].sum()
    >>> lowered = minijax.jit(minijax.grad(f)).lower(np.ones((999, 9), np.float32))
    >>> "scatter-add" in lowered.as_text("simplified")
    True
    """
    if eqn.primitive.name != "add_any" or eqn.outvars[0].aval.size < LARGE:
        return None
    for total, term in (eqn.invars, eqn.invars[::-1]):
        producer = producers.get(term)
        rewrite = producer and total in sums and _scatter_into_zeros(producer, producers)
        if rewrite:
            add, operands = rewrite
            args = (total, *operands)
            if 2 * operands[0].aval.size <= total.aval.size:
                return tracing.stage(add, [x.aval for x in args]), args
    return None


def _scatter_into_zeros(eqn: JaxprEqn, producers: Mapping[Atom, JaxprEqn]
                        ) -> tuple[Callable[..., list[Array]], Sequence[Atom]] | None:
    """The scatter-add that replaces adding the result of an equation, if that puts updates into
    zeros; and its operands.
    """
    x, *operands = eqn.invars
    zero = _only_value(x, producers)
    if eqn.primitive.name not in ("dynamic_update_slice", "scatter-add") or (
            zero is None or zero.value != 0):
        return None
    if eqn.primitive.name == "scatter-add":
        indices, updates = operands
        return lambda total, updates, indices: [
            scatter_add_p.bind(total, indices, updates, **eqn.params)], (updates, indices)

    def add(total: Array, update: Array, *starts: Array) -> list[Array]:
        indices = concatenate([broadcast_at(i, (), (1,)) for i in starts], 0)
        return [scatter_add_p.bind(total, indices, update, **one_window(
            ScatterDimensionNumbers, len(starts)))]
    return add, operands
