"""The shardings of a program's results, from those of its arguments.

Builds on `named_sharding`, `jaxpr`.  Chapter 11, *Named axes and many devices*.
In JAX: XLA's partitioner, and `jax/_src/lax/*`'s sharding rules.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from minijax.placement.meshes import AxisType, Mesh, Names, P, current
from minijax.placement.named_sharding import NamedSharding, Sharding, explicit_sharding
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

AxisNames = list[Names]  # for each axis of a value the mesh axes it is sharded along


def explicit_shardings(closed: ClosedJaxpr) -> list[NamedSharding | None]:
    """What the types of a program's outputs say of their shardings, of unknown inputs."""
    shardings = out_shardings(closed, (None,) * len(closed.in_avals))
    return [explicit_sharding(sharding, aval.ndim)
            for sharding, aval in zip(shardings, closed.out_avals, strict=True)]


def out_shardings(closed: ClosedJaxpr, in_shardings: tuple[Sharding | None, ...]
                  ) -> list[Sharding | None]:
    """The shardings of a program's outputs, from those of its inputs; None where it is unknown.

    Where a mesh was set, values with unknown shardings are replicated.
    """
    mesh = current.value if isinstance(current.value, Mesh) else None
    replicated = mesh and NamedSharding(mesh, P())
    return closed.derived(("out_shardings", in_shardings, mesh), lambda: [
        sharding or replicated and _with_full_spec(replicated, v.aval.ndim) for sharding, v in
        zip(_propagate(closed.jaxpr, in_shardings), closed.jaxpr.outvars, strict=True)])


def _propagate(jaxpr: Jaxpr, in_shardings: Iterable[Sharding | None]) -> list[Sharding | None]:
    shardings: dict[Any, Sharding | None] = dict(zip(jaxpr.invars, in_shardings, strict=True))

    def read(atom: Any) -> Sharding | None:
        return None if isinstance(atom, Literal) else shardings.get(atom)
    for eqn in jaxpr.eqns:
        outs = _eqn_shardings(eqn, list(map(read, eqn.invars)))
        shardings.update(zip(eqn.outvars, outs, strict=True))
    return [read(x) for x in jaxpr.outvars]


def _eqn_shardings(eqn: JaxprEqn, shardings: list[Sharding | None]) -> list[Sharding | None]:
    """The shardings of an equation's outputs, from those of its inputs."""
    inner = eqn.params.get("jaxpr")
    if eqn.params.get("sharding") is not None:
        return [eqn.params["sharding"]] * len(eqn.outvars)
    if isinstance(inner, ClosedJaxpr) and len(inner.jaxpr.invars) == len(shardings):
        rows = [_row(s) if len(v.aval.shape) < x.aval.ndim else s
                for s, v, x in zip(shardings, inner.jaxpr.invars, eqn.invars, strict=True)]
        return [s.with_axis(0) if s and len(v.aval.shape) < x.aval.ndim else s
                for s, v, x in zip(_propagate(inner.jaxpr, rows), inner.jaxpr.outvars,
                                   eqn.outvars, strict=True)]
    first = next((s for s in shardings if s is not None), None)
    if not isinstance(first, NamedSharding):
        return [first] * len(eqn.outvars)
    operands: list[AxisNames] = [
        s.spec.names(x.aval.ndim) if s is not None else [()] * x.aval.ndim
        for s, x in zip(shardings, eqn.invars, strict=True)]
    rule = eqn.primitive.sharding
    aligned = rule and rule(
        [x.aval for x in eqn.invars], [x.aval for x in eqn.outvars], **eqn.params)
    if not hasattr(aligned, "results"):
        return [first.update(spec=spec_of(_same_axes(eqn, operands, out.aval.shape), first))
                for out in eqn.outvars]
    of_label: dict[Any, Names] = {}
    for labels, names in zip(aligned.operands, operands, strict=True):
        of_label.update((label, some) for label, some in zip(labels, names, strict=True)
                        if some and label not in of_label)
    return [first.update(spec=spec_of([of_label.get(x, ()) for x in labels], first))
            for labels in aligned.results]


def _with_full_spec(sharding: Sharding, ndim: int) -> Sharding:
    """The same sharding; over explicit axes its spec has an entry for each axis."""
    if isinstance(sharding, NamedSharding) and AxisType.Explicit in sharding.mesh.axis_types:
        return sharding.update(spec=sharding.spec + (None,) * (ndim - len(sharding.spec)))
    return sharding


def _row(sharding: Sharding | None) -> Sharding | None:
    """The sharding of a row of an array, over which a loop iterates."""
    if isinstance(sharding, NamedSharding):
        return sharding.update(spec=P(*sharding.spec[1:]))
    return sharding


def spec_of(axis_names: Sequence[Names], like: NamedSharding) -> P:
    """The spec of these names; a mesh axis partitions only the first array axis that has it."""
    used: set = set()
    parts: list[Any] = []
    for names in axis_names:
        parts.append(names if names and not used & set(names) else None)
        used |= set(names)
    if AxisType.Explicit not in like.mesh.axis_types:
        while parts and parts[-1] is None:
            parts.pop()
    return P(*parts)


def _same_axes(eqn: JaxprEqn, operands: list[AxisNames], shape: tuple) -> AxisNames:
    """An axis of the same position and size keeps its names."""
    out: AxisNames = [()] * len(shape)
    for operand, x in zip(operands, eqn.invars, strict=True):
        if x.aval.ndim == len(shape):
            out = [names or (new if x.aval.shape[i] == shape[i] else ())
                   for i, (names, new) in enumerate(zip(out, operand, strict=True))]
    return out
