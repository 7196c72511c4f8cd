"""Sums with arrays that are zero outside a window become in-place scatter-adds of that window.

Builds on jaxpr.py. Chapter 22. In JAX: accumulators of cotangents in references; in XLA: fusions of
`dynamic-update-slice`.
"""

from collections.abc import Callable, Mapping, Sequence

from minijax.core import Array, tracing
from minijax.core.jaxpr import Atom, ClosedJaxpr, JaxprEqn
from minijax.primitives.ad_util import broadcast_at
from minijax.primitives.gather_scatter import scatter_add_p
from minijax.primitives.dynamic_slice import one_window
from minijax.primitives.joining import concatenate
from minijax.primitives.windows import ScatterDimensionNumbers

from .one_hot import only_value

LARGE = 1 << 10  # numbers: for fewer it does not matter


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
    zero = only_value(x, producers)
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
