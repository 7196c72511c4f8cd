"""How the results of a program lie, from how its arguments do: names go along with their axes.

Stands on `named_sharding`, `jaxpr`.  Chapter 11, *Named axes and many devices*.
In JAX: XLA's partitioner, and `jax/_src/lax/*`'s sharding rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minijax.core import ArrayImpl
from minijax.placement.meshes import AxisType, Mesh, Names, P, current
from minijax.placement.named_sharding import NamedSharding, PlacedArray, Sharding
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

Layout = list[Names]  # for each axis of a value the names it is cut along

in_use: set[str] = set()  # "arrays", once there is one that is spread


def spread(closed: ClosedJaxpr, args: Sequence[Any], outs: list[ArrayImpl]) -> list[ArrayImpl]:
    """The results of a program, as they lie."""
    given = tuple(x.sharding if isinstance(x, PlacedArray) else None for x in args)
    return [x if where is None or type(x) is not ArrayImpl else
            PlacedArray(x._buffer, x.aval, where)
            for x, where in zip(outs, places(closed, given), strict=True)]


def places(closed: ClosedJaxpr, given: tuple[Sharding | None, ...]) -> list[Sharding | None]:
    """How the outputs of a program lie, from how its inputs do; None where nothing is known.

    Where a mesh was set, what is not cut lies on all its devices.
    """
    mesh = current.value if isinstance(current.value, Mesh) else None
    return closed.derived(("spread", given, mesh), lambda: [
        where if where is not None or mesh is None else
        _in_full(NamedSharding(mesh, P()), v.aval.ndim)
        for where, v in zip(_through(closed.jaxpr, given), closed.jaxpr.outvars, strict=True)])


def _through(jaxpr: Jaxpr, given: Iterable[Sharding | None]) -> list[Sharding | None]:
    known: dict[Any, Sharding | None] = dict(zip(jaxpr.invars, given, strict=True))

    def read(atom: Any) -> Sharding | None:
        return None if isinstance(atom, Literal) else known.get(atom)
    for eqn in jaxpr.eqns:
        known.update(zip(eqn.outvars, _after(eqn, list(map(read, eqn.invars))), strict=True))
    return [read(x) for x in jaxpr.outvars]


def _after(eqn: JaxprEqn, given: list[Sharding | None]) -> list[Sharding | None]:
    inner = eqn.params.get("jaxpr")
    if eqn.params.get("sharding") is not None:
        return [_in_full(eqn.params["sharding"], x.aval.ndim) for x in eqn.outvars]
    if isinstance(inner, ClosedJaxpr) and len(inner.jaxpr.invars) == len(given):
        rows = [_row(where) if len(v.aval.shape) < x.aval.ndim else where
                for where, v, x in zip(given, inner.jaxpr.invars, eqn.invars, strict=True)]
        return [where.with_axis(0) if where and len(v.aval.shape) < x.aval.ndim else where
                for where, v, x in zip(_through(inner.jaxpr, rows), inner.jaxpr.outvars,
                                       eqn.outvars, strict=True)]
    first = next((where for where in given if where is not None), None)
    if not isinstance(first, NamedSharding):
        return [first] * len(eqn.outvars)
    layouts = [where.spec.names(x.aval.ndim) if where is not None else [()] * x.aval.ndim
               for where, x in zip(given, eqn.invars, strict=True)]
    rule = _RULES.get(eqn.primitive.name, _same_axes)
    return [first.update(spec=_spec(rule(eqn, layouts, out.aval.shape), first))
            for out in eqn.outvars]


def _in_full(where: Sharding, ndim: int) -> Sharding:
    """The same, with a word on each axis if axes are explicit."""
    if isinstance(where, NamedSharding) and AxisType.Explicit in where.mesh.axis_types:
        return where.update(spec=where.spec + (None,) * (ndim - len(where.spec)))
    return where


def _row(where: Sharding | None) -> Sharding | None:
    """How each row of an array lies, which a loop goes along."""
    return where.update(spec=P(*where.spec[1:])) if isinstance(where, NamedSharding) else where


def _spec(layout: Layout, like: NamedSharding) -> P:
    """The spec of a layout; an axis of the mesh cuts one axis of the array, the first."""
    used: set = set()
    parts: list[Any] = []
    for names in layout:
        parts.append(names if names and not used & set(names) else None)
        used |= set(names)
    if AxisType.Explicit not in like.mesh.axis_types:
        while parts and parts[-1] is None:
            parts.pop()
    return P(*parts)


def _same_axes(eqn: JaxprEqn, layouts: list[Layout], shape: tuple) -> Layout:
    """An axis that keeps its place and size is cut as it was."""
    found: Layout = [()] * len(shape)
    for layout, x in zip(layouts, eqn.invars, strict=True):
        if x.aval.ndim == len(shape):
            found = [names or (new if x.aval.shape[i] == shape[i] else ())
                     for i, (names, new) in enumerate(zip(found, layout, strict=True))]
    return found


def _without(name: str) -> Callable[..., Layout]:
    """The axes that a parameter names go."""
    return lambda eqn, layouts, shape: [
        names for i, names in enumerate(layouts[0]) if i not in eqn.params[name]]


def _broadcast(eqn: JaxprEqn, layouts: list[Layout], shape: tuple) -> Layout:
    found: Layout = [()] * len(shape)
    for axis, names in zip(eqn.params["broadcast_dimensions"], layouts[0], strict=True):
        found[axis] = names
    return found


def _product(eqn: JaxprEqn, layouts: list[Layout], shape: tuple) -> Layout:
    contracted, batch = eqn.params["dimension_numbers"]
    free = [[names for i, names in enumerate(layout) if i not in (*c, *b)]
            for layout, c, b in zip(layouts, contracted, batch, strict=True)]
    return [layouts[0][i] for i in batch[0]] + free[0] + free[1]


def _convolution(eqn: JaxprEqn, layouts: list[Layout], shape: tuple) -> Layout:
    """Examples and features are cut as they were, and windows go over whole axes."""
    numbers = eqn.params["dimension_numbers"]
    found: Layout = [()] * len(shape)
    found[numbers.out_spec[0]] = layouts[0][numbers.lhs_spec[0]]
    found[numbers.out_spec[1]] = layouts[1][numbers.rhs_spec[0]]
    return found


_RULES: dict[str, Callable[..., Layout]] = {
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and",
                     "reduce_or", "reduce_xor", "argmax", "argmin"), _without("axes")),
    "squeeze": _without("dimensions"),
    "transpose": lambda eqn, layouts, shape: [layouts[0][i] for i in eqn.params["permutation"]],
    "broadcast_in_dim": _broadcast,
    "dot_general": _product,
    "conv_general_dilated": _convolution,
}
