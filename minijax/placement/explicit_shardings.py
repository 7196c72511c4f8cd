"""Shardings in types, along the explicit axes of a mesh: how they go through operations.

A result's follows from the operands' and from the alignment that also partitions programs.
Builds on `partition`.  Chapter 11, *Named axes and many devices*.
In JAX: the `sharding_rule` of each primitive, and `jax/_src/lax/utils.py`.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

from minijax.core import Avals, Params, Primitive, ShapedArray, base_trace, run_with
from minijax.core.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Var, types_in
from minijax.core.types import programs_in
from minijax.errors import ShardingTypeError, with_cure
from minijax.placement.meshes import AxisType, Names, P
from minijax.placement.named_sharding import NamedSharding, explicit_sharding as explicit_sharding
from minijax.placement.partition import alignment_of
from minijax.placement.resharding import (with_sharding_of as with_sharding_of, cast_to_auto)
from minijax.primitives.layouts import Alignment, OnBlocks
from minijax.primitives.named_axes import vma_text

Specs = list[Names]  # for each axis of an array the mesh axes along which it is sharded


def of_results(primitive: Primitive, avals: Avals, outs: Avals, params: Params
               ) -> list[ShapedArray]:
    """The types of an operation's results, with their shardings.

    Args:
      primitive, params: the operation.
      avals: the types of its operands.
      outs: those of its results, as its rule has them.

    Raises:
      ShardingTypeError: where shardings of operands contradict each other, or do not tell the
        sharding of a result.
    """
    alignment = alignment_of(primitive, avals, outs, params)
    if isinstance(alignment, OnBlocks) or primitive.calls_python(params) or not outs:
        return list(outs)  # its rule has types with shardings
    outs = [x.update(sharding=None) for x in outs]
    mesh = next(x.explicit_sharding.mesh for x in avals if x.explicit_sharding)
    if alignment is None:
        raise with_cure(
            ShardingTypeError(f"sharding rule for {primitive.name} is not implemented."),
            "You can work around this error by dropping that operation into full auto sharding "
            "mode via: `jax.sharding.auto_axes(fun, out_sharding=...)`")
    results = RULES[alignment.typed](Operation(primitive, avals, outs, mesh, alignment, params))
    return [_typed(primitive, avals, *pair, mesh) for pair in zip(outs, results, strict=True)]


def specs_of(aval: ShapedArray) -> Specs:
    """For each axis of a type the mesh axes along which it is sharded."""
    sharding = aval.explicit_sharding
    return sharding.spec.names(aval.ndim) if sharding else [()] * aval.ndim


def _typed(primitive: Primitive, avals: Avals, out: ShapedArray, spec: Specs, mesh: Any
           ) -> ShapedArray:
    used = list(itertools.chain(*spec))
    if len(used) > len(set(used)):
        operands = ", ".join(x.str_short(True) for x in avals)
        sizes = ",".join(map(sharded_size, out.shape, spec))
        kind = out.update(shape=()).str_short(True).removesuffix("[]")
        raise ShardingTypeError(f"{primitive.name} operation with inputs: {operands} produces an "
                                f"illegally sharded result: {kind}[{sizes}]")
    return out.update(sharding=NamedSharding(mesh, P(*spec)))


def sharded_size(size: int, names: Names) -> str:
    """The size of an axis with the mesh axes along which it is sharded: ``8@x``, ``8@(x,y)``."""
    if not names:
        return str(size)
    return f"{size}@{names[0] if len(names) == 1 else '(' + ','.join(map(str, names)) + ')'}"


def axes_text(aval: ShapedArray) -> str:
    """The axes of a type as they are printed, with its shardings."""
    sizes = ",".join(map(sharded_size, aval.shape, specs_of(aval)))
    return f"[{sizes}]" + (vma_text(aval) if aval.vma else "")


def without_shardings(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program, in whose types are no shardings: the compiler chooses them."""
    if all(x.explicit_sharding is None for x in types_in(closed.jaxpr)):
        return closed
    program: ClosedJaxpr = closed.derived(("without shardings",), lambda: _stripped(closed))
    return program


def _stripped(closed: ClosedJaxpr) -> ClosedJaxpr:
    jaxpr, env = closed.jaxpr, dict[Var, Var]()

    def atoms(some: Sequence[Atom]) -> list[Any]:
        return [env.setdefault(x, Var(x.aval.update(sharding=None))) if isinstance(x, Var) else x
                for x in some]

    def param(x: Any) -> Any:
        if isinstance(x, list | tuple) and any(isinstance(part, ClosedJaxpr) for part in x):
            return type(x)(map(param, x))
        if isinstance(x, NamedSharding):
            return x.of_type(AxisType.Auto, x.mesh.axis_names)
        return without_shardings(x) if isinstance(x, ClosedJaxpr) else x
    eqns = [eqn.replace(invars=atoms(eqn.invars), outvars=atoms(eqn.outvars),
                        params={name: param(x) for name, x in eqn.params.items()})
            for eqn in jaxpr.eqns]
    consts = [run_with(base_trace, cast_to_auto, x) for x in closed.consts]
    return ClosedJaxpr(jaxpr.replace(
        constvars=atoms(jaxpr.constvars), invars=atoms(jaxpr.invars),
        outvars=atoms(jaxpr.outvars), eqns=eqns), consts)


# ── Transformations ──────────────────────────────────────────────────────────────────────────

def of_axis(args: Sequence[Any], dims: Sequence[int | None]) -> NamedSharding | None:
    """The sharding of a batch axis, as of a vector, from the batches."""
    for x, d in zip(args, dims, strict=True):
        if d is not None and (names := specs_of(x.aval)[d]):
            return NamedSharding(x.aval.explicit_sharding.mesh, P(names))
    return None


def of_mapped(mapped: Sequence[tuple[ShapedArray, int]]) -> NamedSharding | None:
    """The sharding of the axis to be mapped, as of a vector, from types and their axes.

    Raises:
      ValueError: where they are sharded in different ways.
    """
    specs = list(dict.fromkeys(aval.sharding.spec[axis] for aval, axis in mapped))
    if len(specs) > 1:
        raise ValueError("Mapped away dimension of inputs passed to vmap should be sharded the "
                         f"same. Got inconsistent axis specs: {specs[0]} vs {specs[1]}")
    mesh = next(aval.explicit_sharding.mesh for aval, _ in mapped if aval.explicit_sharding)
    return NamedSharding(mesh, P(specs[0])) if specs[0] else None


def with_batch_sharded(x: Any, aval: ShapedArray, axis: int, sharding: NamedSharding) -> Any:
    """A batch of one value, of a type, with the sharding of the batch axis."""
    return with_sharding_of(x.aval.update(sharding=of_batch(aval, axis, sharding)), x)


def of_batch(aval: ShapedArray, dim: int | None, sharding: NamedSharding | None) -> Any:
    """The sharding of a batch, from the type of an example and the sharding of the batch axis."""
    own = aval.explicit_sharding
    if dim is None or sharding is None:
        return own if dim is None else own.with_axis(dim)
    return (own or sharding.update(spec=P())).with_batch(dim, sharding)


def to_transpose(eqn: JaxprEqn, cotangents: Sequence[Any], *operands: Any) -> list[Any]:
    """The arguments of a transpose rule, whose types have no shardings: each result will have that
    of its primal. A rule of a program, or a user's, goes by shardings.
    """
    if eqn.primitive.users_transpose or any(programs_in(eqn.params)):
        return [cotangents, *operands]
    return [list(map(cast_to_auto, cotangents)), *map(cast_to_auto, operands)]


# ── Rules ────────────────────────────────────────────────────────────────────────────────────

class Operation:
    """An operation on operands of which some are sharded."""

    def __init__(self, primitive: Primitive, avals: Avals, outs: Avals, mesh: Any,
                 alignment: Alignment, params: Params):
        self.primitive, self.avals, self.outs, self.params = primitive, avals, outs, params
        self.specs, self.mesh, self.alignment = list(map(specs_of, avals)), mesh, alignment
        self.name = primitive.name

    def count(self, names: Names) -> int:
        """The number of shards that mesh axes make."""
        return math.prod(self.mesh.shape[name] for name in names)

    def refused(self, what: str, default: str = "", axis: int | None = None) -> ShardingTypeError:
        """The error whose words are in the alignment."""
        first, shardings = self.avals[0], [x.sharding for x in self.avals]
        return ShardingTypeError(self.alignment.words.get(what, default).format(**self.params | {
            "name": self.name, "axis": axis, "type": first.str_short(),
            "short_type": first.str_short(True), "sharding": shardings[0],
            "spec": shardings[0].spec, "shardings": ", ".join(map(str, shardings)),
            "cases": shardings[1:], "specs": ", ".join(map(spec_text, filter(None, self.specs)))}))


def spec_text(spec: Specs) -> str:
    return repr(tuple(P(*spec)))


def aligned(op: Operation) -> list[Specs]:
    """An axis with the label of an operand's is sharded as that one; one that the operation needs
    whole, as the same axis of operands.
    """
    cut = joined(op)

    def names(out: ShapedArray, axis: int, label: Any) -> Names:
        if label is not None:
            return cut.get(label, ())
        kept, verb = cut.get(whole(axis), ()), op.alignment.words.get("verb", op.name)
        if out.shape[axis] % op.count(kept):
            raise ShardingTypeError(
                f"{verb} on sharded dims where out dim ({out.shape[axis]}) is not divisible by "
                f"mesh axes ({op.count(kept)}) with spec ({P(kept)[0]}) is not implemented. Got "
                f"input type={op.avals[0].str_short(True)} and output shape={out.shape}")
        return kept
    return [[names(out, axis, label) for axis, label in enumerate(labels)]
            for out, labels in zip(op.outs, op.alignment.results, strict=True)]


def whole(axis: int) -> tuple[str, int]:
    """The label of an axis that an operation needs whole."""
    return "whole", axis


def joined(op: Operation) -> dict[Any, Names]:
    """The mesh axes of each label.

    Raises:
      ShardingTypeError: where operands are sharded in different ways, or must not be.
    """
    cut: dict[Any, Names] = {}
    for labels, spec in zip(op.alignment.operands, op.specs, strict=True):
        for axis, (label, names) in enumerate(zip(labels, spec, strict=True)):
            if names and label is None and "whole" in op.alignment.words:
                raise op.refused("whole", axis=axis)
            label = whole(axis) if label is None else label
            if names and cut.setdefault(label, names) != names:
                raise with_cure(
                    op.refused("differ", "{name} got incompatible shardings for broadcasting: "
                                         "{specs}."),
                    "jax.reshard(x, spec) gives one of them the sharding of the other.")
    return cut


def contracted(op: Operation) -> list[Specs]:
    """Contracted axes may be sharded in one operand only."""
    (left, right), batch = op.params["dimension_numbers"]
    lhs, rhs = ([spec[d] for d in axes] for spec, axes in
                zip(op.specs, (left, right), strict=True))
    specs = [tuple(P(*names)) for names in (lhs, rhs)]
    if any(a and b and a != b for a, b in zip(lhs, rhs, strict=True)):
        raise ShardingTypeError("dot_general requires contracting dimensions to have consistent "
                                f"sharding, got {specs[0]} and {specs[1]}.")
    if any(a and b for a, b in zip(lhs, rhs, strict=True)):
        raise ShardingTypeError(
            "Contracting dimensions are sharded and it is ambiguous how the output should be "
            "sharded. Please specify the output sharding via the `out_sharding` parameter. Got "
            f"lhs_contracting_spec={specs[0]} and rhs_contracting_spec={specs[1]}")
    lhs, rhs = ([spec[d] for d in axes] for spec, axes in zip(op.specs, batch, strict=True))
    if lhs != rhs:
        raise ShardingTypeError("dot_general requires lhs batch dimensions and rhs batch "
                                "dimensions to have the consistent sharding, got "
                                f"{spec_text(lhs)} and {spec_text(rhs)}.")
    return aligned(op)


def reshaped(op: Operation) -> list[Specs]:
    """An axis that is split is sharded along its first part; axes that are merged come first."""
    [x], [out], [spec] = op.avals, op.outs, op.specs
    result: Specs = [()] * out.ndim
    groups = _groups(x.shape, out.shape)
    is_determined = sum(len(old) > 1 or len(new) > 1 for old, new in groups) < 2
    for old, new in groups:
        first = [*itertools.takewhile(bool, (spec[d] for d in old))]
        together = tuple(itertools.chain(*first))
        parts = _spread(op, together, [out.shape[d] for d in new])
        for axis, names in zip(new, parts, strict=True):
            result[axis] = names
        is_whole = sum(len(result[d]) for d in new) == sum(len(spec[d]) for d in old)
        is_determined &= is_whole and (len(old) == 1 or len(new) == 1)
    if not is_determined:
        raise ShardingTypeError(
            "This reshape is not supported. Please specify the sharding of the output via the "
            f"`out_sharding` argument of jax.lax.reshape. Got operand type: {x.str_short()}, "
            f"new sizes: {out.shape}")
    return [result]


def _spread(op: Operation, names: Names, sizes: Sequence[int]) -> Specs:
    """Mesh axes for the parts of an axis, major first; some are left over where no part fits."""
    parts, rest = [], list(names)
    for size in sizes:
        taken: Names = ()
        while rest and size % op.count((*taken, rest[0])) == 0:
            taken += (rest.pop(0),)
        parts.append(taken)
        if op.count(taken) < size:
            break
    return parts + [()] * (len(sizes) - len(parts))


def _groups(shape: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The axes of two shapes of one size, in the smallest groups of one size; none of size one."""
    groups, sides = [], [[d for d, n in enumerate(some) if n != 1] for some in (shape, new)]
    left, right = map(list, sides)
    while left and right:
        group: tuple[list[int], list[int]] = [left.pop(0)], [right.pop(0)]
        while (a := math.prod(shape[d] for d in group[0])) != (
                b := math.prod(new[d] for d in group[1])):
            rest, some = (left, group[0]) if a < b else (right, group[1])
            if not rest:  # of arrays without elements
                break
            some.append(rest.pop(0))
        groups.append(group)
    return groups


def gathered(op: Operation) -> list[Specs]:
    """Windows that take whole axes keep them; for others the result's sharding must be said."""
    x, indices = op.avals
    numbers, sizes = op.params["dimension_numbers"], op.params["slice_sizes"]
    partial = [d for d, (n, size) in enumerate(zip(x.shape, sizes, strict=True)) if n != size]
    paired = dict(zip(numbers[3], numbers[4], strict=True))
    is_determined = not any(op.specs[0][d] for d in partial if d not in paired) and all(
        op.specs[0][d] == op.specs[1][k] for d, k in paired.items()) and not any(
        names for k, names in enumerate(op.specs[1]) if k not in paired.values())
    if not is_determined:
        raise ShardingTypeError(
            "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather "
            "indexing as out sharding could not be resolved unambiguously (or would require "
            f"collectives on inputs). Got operand={x!r}, indices={indices!r}")
    return aligned(op)


def scattered(op: Operation) -> list[Specs]:
    """The operand's sharding, whose updated axes must be whole."""
    x, indices, updates = op.avals
    numbers = op.params["dimension_numbers"]
    if any(op.specs[0][d] for d in numbers[1]) or any(
            names for k, names in enumerate(op.specs[1]) if k not in numbers[4]):
        raise ShardingTypeError(
            "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the "
            "scatter update as out sharding could not be resolved unambiguously (or would require "
            f"collectives on inputs). Got operand={x!r}, indices={indices!r}, updates={updates!r}")
    return op.specs[:1]


def updated(op: Operation) -> list[Specs]:
    x, update = op.avals[:2]
    if op.specs[0] != op.specs[1]:
        kinds = {AxisType.Explicit: op.mesh.explicit_axes}
        raise ShardingTypeError(
            "dynamic_update_slice operand sharding must be equal to update sharding, got operand "
            f"sharding {x.str_short()}({kinds}) and update sharding {update.str_short()}({kinds}).")
    return op.specs[:1]


def convolved(op: Operation) -> list[Specs]:
    """The axes of the images."""
    numbers = op.params["dimension_numbers"]
    lhs, rhs = op.specs
    if any(rhs) or lhs[numbers[0][1]]:
        raise ShardingTypeError("Please specify the output sharding via `out_sharding` parameter "
                                "of `conv_general_dilated`")
    [out] = op.outs
    spec: Specs = [()] * out.ndim
    for old, new in zip(numbers[0], numbers[2], strict=True):
        spec[new] = lhs[old] if out.shape[new] % op.count(lhs[old]) == 0 else ()
    return [spec]


# Which rule an operation has, its alignment says.
RULES = {"": aligned} | {rule.__name__: rule for rule in (
    contracted, reshaped, gathered, scattered, updated, convolved)}
