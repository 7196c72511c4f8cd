"""`shard_map`: a function of shards, run on each device of a mesh.

Builds on `vmap`: one for each axis of the mesh, over the shards, which are then concatenated.
Chapter 11, *Named axes and many devices*.  In JAX: `jax/_src/shard_map.py`.
"""

import functools
import math
from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from minijax import core, tree_util
from minijax.util import context, source_info, tracebacks
from minijax.core import Array, Params, Primitive, tracing
from minijax.transforms.arguments import Sentinel, flattened
from minijax.placement.meshes import AxisType, Mesh, P, PartitionSpec, current
from minijax.placement.resharding import shard_value
from minijax.placement.named_sharding import NamedSharding
from minijax.core.vmap import BatchTrace, BatchTracer, Dim, vmap_flat, without_axis
from minijax.primitives.axes import inverse
from minijax.primitives import dynamic_slice, named_axes
from minijax.primitives.shape import reshape, transpose


Infer: Any = Sentinel("jax.sharding.Infer")  # the specs, or axes, that arguments already have


# That of the `shard_map` whose function runs.
_mesh_around: ContextVar[Any] = ContextVar("minijax_mesh_around", default=None)


# JAX: the primitive `shard_map` has the program of a shard. Here it is mapped over the shards, as
# by `vmap`; the partitioner, which cuts the mapped axes, gives each device its own.
def shard_map(f: Callable | None = None, /, *, out_specs: Any, in_specs: Any = Infer,
              mesh: Any = None, axis_names: Collection[Any] = frozenset(), check_vma: bool = True
              ) -> Callable:
    """A function of the shards on each device as a function of whole arrays.

    Args:
      f: a function of shards; it may call collectives along the axes of the mesh.
      out_specs: for each result the mesh axes along which shards are concatenated: a tree prefix.
      in_specs: for each argument the mesh axes along which it is sharded; by default those of its
        type. What is no array and has None is passed as it is.
      mesh: the devices; those of `set_mesh`, if None, or of the `shard_map` around.
      axis_names: the axes of the mesh that `f` is mapped over; all of them, if empty.
      check_vma: whether types say along which mesh axes values vary, so that gradients by what is
        the same for all devices are summed over them, and results are checked to be the same along
        the axes that their specs do not name; otherwise the result of the first device is taken.

    Returns:
      A function of whole arrays.

    Raises:
      TypeError: for specs of another type.
      ValueError: on call, when arrays cannot be sharded so, or results differ that must not.

    >>> import numpy as np
    >>> from minijax import lax, make_mesh
    >>> from minijax.sharding import AxisType
    >>> whole = make_mesh((1,), ("i",), (AxisType.Auto,))
    >>> total = shard_map(lambda x: lax.psum(x.sum(), "i"), mesh=whole, in_specs=P("i"),
    ...                   out_specs=P())
    >>> total(np.arange(4.0, dtype=np.float32))
    Array(6., dtype=float32)
    """
    if f is None:
        return functools.partial(shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh,
                                 axis_names=axis_names, check_vma=check_vma)
    if not callable(f):
        raise TypeError("shard_map requires a callable for its first argument, but got "
                        f"{f} of type {type(f)}.")
    manual = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)

    @tracebacks.standing_for(f)
    def on_shards(*args: Any) -> Any:
        grid = mesh if mesh is not None else current.value or _mesh_around.get()
        if grid is None or grid.empty:
            raise ValueError("The context mesh cannot be empty. Use `jax.set_mesh(mesh)` to enter "
                             "into a mesh context")
        return _Call(f, grid, manual or grid.axis_names, args, in_specs, out_specs, check_vma)()
    return on_shards


class _Call:
    """One call: arguments are sharded, the function mapped over shards, its results concatenated.
    """

    def __init__(self, f: Callable, mesh: Any, names: Sequence, args: tuple, in_specs: Any,
                 out_specs: Any, check: bool):
        self.mesh, self.check, self.out_specs = mesh, check, out_specs
        self.axes = [(n, size) for n, size in mesh.shape_tuple if n in names]
        self.sizes = dict(self.axes)
        self.flat, leaves = flattened(f, args, "shard_map")
        self.name = source_info.function_name(f)
        if in_specs is Infer:
            self.refuse_inference()
            inferred: list[Any] = list(map(self.own_spec, leaves))
        else:
            _check_specs("in_specs", in_specs, self.sizes)
            in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
            inferred = tree_util.flatten_axes("shard_map in_specs",
                                              tree_util.tree_structure(args), in_specs)
        _check_specs("out_specs", out_specs, self.sizes)
        self.in_specs = [P() if spec is None else spec for spec in inferred]
        self.static = {i: x for i, (x, spec) in enumerate(zip(leaves, inferred, strict=True))
                       if spec is None and not isinstance(x, Array)}
        self.values = [tracing.check_arg(0 if i in self.static else x)
                       for i, x in enumerate(leaves)]

    def own_spec(self, x: Any) -> PartitionSpec:
        """The spec of an argument, by its type."""
        return P(*(tuple(n for n in names if n in self.sizes)
                   for names in core.get_aval(x).sharding.spec.names(0)))

    def __call__(self) -> Any:
        outs = context.with_values({_mesh_around: self.mesh}, self.mapped, self.axes,
                                   [self.sharded(i) for i in range(len(self.values))],
                                   [spec.mesh_axes() for spec in self.in_specs])
        if self.check:
            self.refuse_varying()
        return self.flat.result(list(map(self.concatenated, outs, self.specs)))

    # ── Sharding and concatenation ───────────────────────────────────────────────────────────

    def count(self, names: Sequence) -> int:
        """The number of shards along mesh axes."""
        return math.prod(self.sizes[name] for name in names)

    def order(self, spec: PartitionSpec, ndim: int) -> list[int]:
        """For axes split into mesh axes and blocks, the permutation that puts mesh axes first."""
        parts = [part for names in spec.names(ndim) for part in (*names, None)]
        mesh_axes = [parts.index(name) for name, _ in self.axes if name in parts]
        return [*mesh_axes, *(i for i, part in enumerate(parts) if part is None)]

    def sharded(self, i: int) -> Array:
        """An argument with a leading axis for each axis of the mesh that it is sharded along."""
        x, spec = self.values[i], self.in_specs[i]
        if len(spec) > x.ndim:
            raise self._too_long("in", spec, x, f"the passed {self._argument(i)}, has shape "
                                 f"{x.aval.str_long()}, which")
        sizes = []
        for axis, names in enumerate(spec.names(x.ndim)):
            count = self.count(names)
            if x.shape[axis] % count:
                raise self._not_divisible(i, axis, names, count)
            sizes += [*(self.sizes[n] for n in names), x.shape[axis] // count]
        self.refuse_other_sharding(x, spec)
        x = shard_value(x, self.full_sharding(x, P(*spec)).of_type(AxisType.Manual, self.sizes))
        return transpose(reshape(x, sizes), self.order(spec, x.ndim))

    def full_sharding(self, x: Array, spec: PartitionSpec) -> NamedSharding:
        """The sharding by a spec, and by the type along axes that the function is not mapped over.
        """
        others = [tuple(n for n in names if n not in self.sizes)
                  for names in x.aval.sharding.spec.names(x.ndim)]
        both = zip(spec.names(x.ndim), others, strict=True)
        return NamedSharding(self.mesh, P(*((*names, *rest) for names, rest in both))
                             if any(others) else spec)

    def concatenated(self, x: Array, spec: PartitionSpec) -> Any:
        """A whole result, from one with the axes of the mesh in front."""
        block = x.shape[len(spec.mesh_axes()):]
        order = self.order(spec, len(block))
        shape = [size * self.count(names)
                 for size, names in zip(block, spec.names(len(block)), strict=True)]
        x = reshape(transpose(x, inverse(order)), shape)
        return shard_value(x, self.full_sharding(x, spec))

    # ── Mapping ──────────────────────────────────────────────────────────────────────────────

    def mapped(self, axes: Sequence[tuple[Any, int]], values: Sequence[Any],
               used: Sequence[Sequence]) -> list:
        """The function mapped over these mesh axes, which come first in results that name them."""
        if not axes:
            return self.results(values)
        (name, size), rest = axes[0], axes[1:]
        places = [0 if name in names else None for names in used]
        outs, dims = core.leaving_no_tracer(vmap_flat)(
            lambda *xs: self.mapped(rest, xs, used), size, name, values, places,
            self.flat.debug_info, on_devices=True, vma_trace=ShardMapTrace if self.check else None)
        return [dynamic_slice.with_batch_axis(x, d, 0 if name in spec.mesh_axes() else None, size)
                for x, d, spec in zip(outs, dims, self.specs, strict=True)]

    def results(self, values: Sequence[Any]) -> list[Array]:
        outs = self.flat(*(self.static.get(i, x) for i, x in enumerate(values)))
        tree = self.flat.out_tree
        self.specs = [P() if spec is None else spec for spec in tree_util.flatten_axes(
            "shard_map out_specs", tree, self.out_specs)]
        self.vma = [x.aval.vma for x in outs]
        for path, x, spec in zip(source_info.result_paths(tree), outs, self.specs, strict=True):
            if len(spec) > x.ndim:
                where = f"{self.name}(*args){path}"
                shape = x.aval.update(vma=frozenset()).str_long()
                raise self._too_long("out", spec, x, f"{where} has shape {shape}, which")
        return outs

    # ── Refusals ─────────────────────────────────────────────────────────────────────────────

    def _error(self, what: str, details: str, cure: str) -> ValueError:
        return ValueError(f"shard_map applied to the function '{self.name}' was given {what}:\n\n"
                          f"{details}\n\n{cure}")

    @property
    def _grid(self) -> str:
        return (f"The mesh given has shape {self.mesh.axis_sizes} with corresponding axis names "
                f"{self.mesh.axis_names}.\n\n")

    def _argument(self, i: int) -> str:
        name = self.flat.debug_info.arg_names[i]  # type: ignore[union-attr]
        return f"args[{i}], where args[{i}] is bound to {self.name}'s parameter '{name}'"

    def refuse_inference(self) -> None:
        """Refuse to infer specs along axes of which types say nothing."""
        types = [self.mesh.type_of_axis[name] for name in self.sizes]
        if AxisType.Auto in types:
            raise TypeError(
                "shard_map in_specs argument must be a pytree of `jax.sharding.PartitionSpec` "
                f"instances, but it was `None` when axis_names={frozenset(self.sizes)} are of type "
                f"{', '.join(map(str, types))}")

    def refuse_varying(self) -> None:
        """Refuse results that vary, by their types, along axes that their specs do not name."""
        paths = tree_util.tree_map_with_path(lambda path, _: tree_util.keystr(path), self.out_specs)
        paths, lines = tree_util.flatten_axes("out_specs", self.flat.out_tree, paths), []
        for path, spec, vma in zip(paths, self.specs, self.vma, strict=True):
            rest = [name for name in self.mesh.axis_names if name not in spec.mesh_axes()]
            if varying := [name for name in rest if name in vma and name in self.sizes]:
                meant = f"replicated across mesh axis '{rest[0]}', but could not infer " \
                        "replication over any axes"
                if len(rest) > 1:
                    need, differ, got = (
                        "{" + ",".join(str(n) for n in self.mesh.axis_names if n in names) + "}"
                        for names in (spec.mesh_axes(), varying, vma))
                    meant = (f"only varying across mesh axes {need} and not {differ}, but it was "
                             f"inferred to be possibly varying over {got}")
                lines.append(f"out_specs{path or ''} is {spec} which implies that the "
                             f"corresponding output value is {meant}")
        if lines:
            bullets = lines if len(lines) == 1 else [f"* {line}" for line in lines]
            raise self._error(
                "out_specs which require replication which can't be statically inferred given the "
                "mesh", self._grid + "\n\n".join(bullets),
                "Check if these output values are meant to be replicated over those mesh axes. If "
                "not, consider revising the corresponding out_specs entries. If so, consider "
                "disabling the check by passing the check_vma=False argument to `jax.shard_map`.")

    def refuse_other_sharding(self, x: Any, spec: PartitionSpec) -> None:
        """Refuse an array whose type says, where all axes are explicit, that it is sharded
        otherwise.
        """
        if not self.mesh.are_all_axes_explicit:
            return
        of_argument, of_type = (P(*(tuple(n for n in names if n in self.sizes)
                                    for names in each.names(x.ndim)))
                                for each in (spec, x.aval.sharding.spec))
        if of_argument != of_type:
            raise ValueError(
                f"in_specs passed to shard_map: {of_argument} does not match the specs of the "
                f"input: {of_type} for arg: {x.aval.str_long()}. `in_specs` is an optional "
                "argument so you can omit specifying it and shard_map will infer the in_specs from "
                "the arguments. If you want to reshard your inputs, you can use `jax.reshard` on "
                "the arguments and then pass those args to shard_map.")

    def _not_divisible(self, i: int, axis: int, names: tuple, count: int) -> ValueError:
        x = self.values[i]
        which = (f"axis {names[0]!r} (of size {count})" if len(names) == 1 else
                 f"axes {names} (of total size {count})")
        passed = self._argument(i).replace(",", f" of shape {x.aval.str_long()},", 1)
        return self._error(
            "argument arrays with axis sizes that are not evenly divisible by the corresponding "
            "mesh axis sizes",
            f"{self._grid}the passed {passed}, corresponds to in_specs of value "
            f"{self.in_specs[i]}, which maps array axis {axis} (of size {x.shape[axis]}) to mesh "
            f"{which}, but {count} does not evenly divide {x.shape[axis]}",
            "Array arguments' axis sizes must be evenly divisible by the mesh axis or axes "
            "indicated by the corresponding elements of the argument's in_specs entry. Consider "
            "checking that in_specs are correct, and if so consider changing the mesh axis sizes "
            f"or else padding the input and adapting '{self.name}' appropriately.")

    def _too_long(self, way: str, spec: PartitionSpec, x: Array, what: str) -> ValueError:
        scalars = ("\n\nFor scalar values (rank 0), consider using an out_specs entry of `P()`, "
                   "where `P = jax.sharding.PartitionSpec`. In particular, for rank 0 outputs "
                   "which are not constant over the mesh, add at least one (singleton) axis to "
                   "them so that they can be concatenated using out_specs.")
        return self._error(
            f"an {way}_specs entry which is too long to be compatible with the corresponding "
            f"{way}put value from the function",
            f"{way}_specs is {spec} which has length {len(spec)}, but {what} has rank {x.ndim} "
            f"(and {x.ndim} < {len(spec)})",
            f"Entries in {way}_specs must be of length no greater than the number of axes in the "
            f"corresponding {way}put value.\n\nEither revise the spec to be shorter, or modify "
            f"'{self.name}' so that its {way}puts have sufficient rank."
            + (scalars if way == "out" and not x.ndim else ""))


# ── Devices, and what types say of them ──────────────────────────────────────────────────────

class ShardMapTracer(BatchTracer):
    """What a device has, and whether its type says that it varies along the axis.

    It may vary by its type and be there once, without a batch axis; or the other way about.
    """

    __slots__ = ("axis_name",)

    def __init__(self, trace: "ShardMapTrace", value: Array, dim: Dim, varies: bool):
        aval = value.aval if dim is None else without_axis(value.aval, dim)
        core.Tracer.__init__(self, trace, aval.update(
            vma=aval.vma | {trace.axis.name} if varies else aval.vma))
        self.axis_name = trace.axis.name
        self.value, self.batch_dim = value, dim  # type: ignore[assignment]

    def __repr__(self) -> str:
        mesh, value = _mesh_around.get(), self.value
        while isinstance(value, ShardMapTracer):
            value = value.value
        if isinstance(value, core.Tracer) or not isinstance(mesh, Mesh):
            return super().__repr__()
        names = ", ".join(map(str, mesh.axis_names))
        return "\n".join(f"On {device} at mesh coordinates ({names},) = {place}:\n"
                         f"{self.on_device(dict(zip(mesh.axis_names, place, strict=True)))}\n"
                         for place, device in np.ndenumerate(mesh.devices))

    def on_device(self, place: dict) -> Array:
        """What the device at a place of the mesh has."""
        value: Any = self.value
        value = value.on_device(place) if isinstance(value, ShardMapTracer) else value
        index = (*[slice(None)] * (self.batch_dim or 0), place[self.axis_name])
        return value if self.batch_dim is None else value[index]


class ShardMapTrace(BatchTrace):
    """A `vmap` along an axis of the mesh, in which types say which values vary along it."""

    vma_trace = property(type)

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.cast_operands = named_axes.cast_operands

    def join(self, value: Array, dim: Dim) -> Array:
        return self.typed(value, dim, dim is not None)

    def typed(self, value: Array, dim: Dim, varies: bool) -> Array:
        return ShardMapTracer(self, value, dim, varies)

    def process_primitive(self, primitive: Primitive, args: Sequence, params: Params) -> list:
        if primitive.calls_python(params):
            primitive, args, params = core.run_with(self, primitive.staged, args, params)
            args = [self.with_batch_axis(x) for x in args]
        out_avals = primitive.type_of([x.aval for x in args], params)
        values = [self.split(x)[0] for x in args]
        if primitive.standard_vma and not any(self.split(x)[1] is not None for x in args):
            outs = primitive.bind_list(*values, **params)
        else:
            outs = super().process_primitive(primitive, args, params)
        return [self.typed(*self.split(x), self.axis.name in aval.vma)
                for x, aval in zip(outs, out_avals, strict=True)]

    def with_batch_axis(self, x: Array) -> Array:
        """A value that has a batch axis if it varies."""
        value, dim = self.split(x)
        varies = self.axis.name in x.aval.vma
        return self.join(core.batch_to(value, dim, 0, self.axis.size), 0) if varies else x


def _check_specs(which: str, specs: Any, sizes: dict) -> None:
    """Refuse objects that are not specs, and names that are not manual mesh axes."""
    cure = f"\n\nCheck the {which} values passed to shard_map."
    for path, spec in tree_util.tree_leaves_with_path(specs):
        where = which + tree_util.keystr(path)
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"shard_map {which} argument must be a pytree of "
                            f"`jax.sharding.PartitionSpec` instances, but:\n\n  {where} is {spec} "
                            f"of type {type(spec).__name__}, {cure}")
        for name in spec.mesh_axes():
            if name not in sizes:
                raise ValueError(f"shard_map {which} argument must refer to an axis marked as "
                                 f"manual ({frozenset(sizes)}), but:\n\n  {where} refers to "
                                 f"{name!r}{cure}")


def smap(f: Callable | None = None, /, *, in_axes: Any = Infer, out_axes: Any, axis_name: Any
         ) -> Callable:
    """`shard_map` along one axis of the current mesh, with axes in place of specs, as in `vmap`.

    Args:
      f: a function of shards.
      in_axes: the axis along which each argument is sharded, or None: a tree prefix.
      out_axes: the axis along which the shards of each result are concatenated.
      axis_name: the axis of the mesh.

    >>> import numpy as np
    >>> from minijax import make_mesh, set_mesh
    >>> from minijax.sharding import AxisType
    >>> with set_mesh(make_mesh((1,), ("i",), (AxisType.Auto,))):
    ...     smap(lambda x: 2 * x, in_axes=0, out_axes=0, axis_name="i")(np.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)

    def specs(axes: Any) -> Any:
        return axes if axes is Infer else tree_util.tree_map(
            lambda axis: P() if axis is None else P(*[None] * axis, axis_name), axes,
            is_leaf=lambda axis: axis is None)
    return shard_map(f, in_specs=specs(in_axes), out_specs=specs(out_axes), axis_names={axis_name})
