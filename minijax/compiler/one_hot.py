"""Scatters of one number into each row of equal numbers become comparisons with the column.

The derivative of a loss that reads one column of each row is such a scatter, and is fused with what
reads it then.  Builds on jaxpr.py.  Chapter 22.  In XLA: `ScatterExpander` makes a loop instead.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.core import Array, tracing
from minijax.core.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal
from minijax.primitives.ad_util import broadcast_at, broadcast_in_dim_p, reshaped
from minijax.primitives.algebra import add
from minijax.primitives.axes import without
from minijax.primitives.comparison import clamp, eq, select_n_p
from minijax.primitives.convert import convert_element_type_p
from minijax.primitives.joining import concatenate_p
from minijax.primitives.shape import broadcasted_iota
from minijax.primitives.windows import GatherScatterMode


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
    value, found = only_value(rows, producers), _columns(eqn, producers, value_of)
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
        return [select_n_p.bind(is_here, value, add(value, new) if adds else new)]
    args = value, columns, updates
    return tracing.stage(select, [x.aval for x in args]), args


def only_value(x: Atom, producers: Mapping[Atom, JaxprEqn]) -> Literal | None:
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
