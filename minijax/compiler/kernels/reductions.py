"""Sums and products of fewer than 4096 floats in XLA's order: windows of 32 of each axis first.

Builds on operands.py. The operand is stored first, as XLA fuses nothing into windows.
Chapter 20. In XLA: `TreeReductionRewriter`.
"""

import functools
import math
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from minijax.core import Primitive
from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn
from minijax.primitives.axes import Axes, expand_index, without
from minijax.primitives.slots import computed_in, widened
from minijax.primitives.summation import WINDOW, has_order, windows


def with_windows(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with reductions in windows, where an axis is longer than a window."""
    eqns = closed.jaxpr.eqns
    if not any(map(_has_windows, eqns)):
        return closed
    return closed.derived(("windows",), lambda: ClosedJaxpr(closed.jaxpr.replace(eqns=[
        eqn.replace(primitive=IN_WINDOWS[eqn.primitive.name]) if _has_windows(eqn) else eqn
        for eqn in eqns]), closed.consts))


def _has_windows(eqn: JaxprEqn) -> bool:
    if eqn.primitive.name not in IN_WINDOWS:
        return False
    aval = eqn.invars[0].aval
    return has_order("add", aval) and aval.size > 0 and any(
        aval.shape[d] > WINDOW for d in eqn.params["axes"])


def in_windows(b: Any, outputs: Sequence, operands: Sequence, *, op: str, axes: Axes, **_: Any
               ) -> None:
    """Reduce along axes: first the elements of each window, then in the same way the results."""
    [out], [x] = outputs, map(b.value, operands)
    axes, wide = tuple(sorted(axes)), computed_in(x.dtype)
    counts = {d: windows(x.shape[d])[0] for d in axes}
    is_last = set(counts.values()) == {1}
    shape = without(x.shape, axes) if is_last else [counts.get(d, n) for d, n in enumerate(x.shape)]
    place = out if is_last else b.temp(shape, wide, "windows")
    with b.loop(math.prod(shape), vectorize="parallel") as position:
        at = b.divided(position, [n for n in shape if n != 1])
        index = b.whole(at, shape)
        total = b.variable(b.starting_value(op, wide))
        with ExitStack() as loops:
            inner = [loops.enter_context(b.loop(*reversed(_range(
                b, 0 if is_last else index[d], x.shape[d])))) for d in axes]
            kept = index if is_last else without(index, axes)
            term = widened(b, x(expand_index(kept, axes, inner)))
            b.assign(total, b.operation(op, (b.read(total), term)))
        b.store(place, index, b.convert(b.read(total), place.dtype))
    if not is_last:
        b.freeze(place)
        in_windows(b, [out], [place], op=op, axes=axes)


def _range(b: Any, window: Any, n: int) -> tuple[Any, Any]:
    """The elements of an axis in one of its windows, from the first to behind the last."""
    count, lacking = windows(n)
    if count == 1:
        return 0, n
    first = b.sub(b.mul(window, WINDOW), lacking)
    return b.max(first, 0), b.min(b.add(first, WINDOW), n)


IN_WINDOWS = {f"reduce_{name}": Primitive(
    f"reduce_{name}", loop=functools.partial(in_windows, op=op))
    for name, op in (("sum", "add"), ("prod", "mul"))}
