"""Arrays with shardings: `reshard`, `with_sharding_constraint`, and arrays of shards.

Builds on `named_sharding`.
Chapter 11, *Named axes and many devices*.  In JAX: `jax/_src/pjit.py`, `jax/_src/array.py`.
"""

import collections
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax import core, dtypes, errors, tree_util
from minijax.core import (Array, ArrayImpl, Example, Outs, Params, Primitive, ShapedArray, Zero,
                          refuse)
from minijax.util import lazily, source_info
from minijax.placement.devices import Device, DeviceArray, put
from minijax.placement.meshes import AbstractMesh, AxisType, Mesh, P, current, make_mesh
from minijax.placement.named_sharding import (
    Format, Index, NamedSharding, Sharding, SingleDeviceSharding, full, is_sharded, with_full_spec)
from minijax.primitives import ad_util


# ── One array ────────────────────────────────────────────────────────────────────────────────

def place(x: ArrayImpl, sharding: Sharding) -> Any:
    """The array with another sharding."""
    if sharding.num_devices == 1 and not is_sharded(x):
        [device] = sharding._device_assignment
        if not device.is_host or isinstance(x, DeviceArray):
            return put(x, device)
    if not all(device.is_host for device in sharding.device_set):
        raise NotImplementedError("minijax shards arrays over CPU devices only: start it with "
                                  "JAX_NUM_CPU_DEVICES=8 and JAX_PLATFORMS=cpu.")
    return Primitive.eager_dispatch.placed(x, sharding)


def moving(kind: type[Primitive], name: str, back: Callable[..., dict],
           type_of: Callable = lambda x, **_: [x], **slots: Any) -> Primitive:
    """A primitive whose result is its operand, at the places that its parameters name.

    Args:
      kind: its class, which evaluates it.
      type_of: its abstract evaluation.
      back: from its parameters to those of the move of a cotangent.
    """
    def batch(axis: Any, args: list, dims: list, **places: Any) -> Outs:
        [x], [dim], own = args, dims, axis.sharding
        new = {key: place if None in (place, dim) else
               place.with_batch(dim, own) if own and isinstance(place, NamedSharding) else
               place.with_axis(dim) for key, place in places.items()}
        return [primitive.bind(x, **new)], dims
    primitive = kind(
        name, impl=lambda x, **_: [x.copy()], abstract_eval=type_of, batch=batch,
        transpose=ad_util.transposed(lambda ct, x, **places: primitive.bind(ct, **back(**places))),
        jvp=ad_util.linear(0), program=lambda x, **_: x, handles_keys=True, **slots)
    return primitive


class ShardingPrimitive(Primitive):
    """Evaluated, it reshards the array; in a program it is an annotation of the value."""

    def evaluate(self, args: Sequence[Any], params: Params) -> list[ArrayImpl]:
        sharding = _concrete(params["sharding"], args[0])
        is_known = isinstance(sharding.mesh, Mesh)
        return [place(args[0], sharding) if is_known else args[0]]


def _constrained_type(x: ShapedArray, sharding: Any) -> list[ShapedArray]:
    """The type of an array with a sharding, along axes that are explicit."""
    return [x.update(sharding=sharding)]


sharding_constraint_p = moving(
    ShardingPrimitive, "sharding_constraint", back=dict, type_of=_constrained_type,
    sharding=lazily.later("minijax.placement.partition", "constrained"),
    examples=lambda: [Example((np.array([0.5, -1.0], np.float32),), {"sharding": NamedSharding(
        make_mesh((1,), ("x",), (AxisType.Auto,)), P("x"))})])


def shard_value(x: Any, sharding: Any, what: str = "device_put args") -> Any:
    """A value with a sharding: an array is resharded, a tracer is annotated."""
    if sharding is None:
        return x
    if not isinstance(sharding, Sharding):
        raise ValueError(f"expected a jax.sharding.Sharding, got {sharding!r}")
    x = core.as_value(x)
    sharding = _concrete(sharding, x)
    sharding.check_fits(x.aval, what, evenly=not isinstance(x, core.Tracer))
    is_array_without_devices = isinstance(sharding.mesh, AbstractMesh) and (
        not isinstance(x, core.Tracer))
    return x if is_array_without_devices else sharding_constraint_p.bind(x, sharding=sharding)


def with_sharding_of(aval: ShapedArray, x: Any) -> Any:
    """An array with the sharding of a type; replicated, if it has none."""
    if isinstance(x, Zero) or x is None:
        return x
    where = aval.explicit_sharding or NamedSharding(
        x.aval.explicit_sharding.mesh, P(*[None] * aval.ndim))
    return shard_value(x, where)


def called_with_sharding(out_sharding: Any, fun: Callable[..., Any], *args: Any, **kwargs: Any
                         ) -> Any:
    """The result of a function, with a sharding that does not follow from those of arguments."""
    args, kwargs = tree_util.tree_map(cast_to_auto, (args, kwargs))
    return reshard(fun(*args, **kwargs), out_sharding)


def cast_to_auto(x: Any) -> Any:
    """A value, sharded as it is, whose type does not say so: the compiler chooses what follows.

    Under `vmap` the type of the batch still says how its axis is sharded.
    """
    if not isinstance(x, Array) or (where := x.aval.explicit_sharding) is None:
        return x
    return shard_value(x, where.of_type(AxisType.Auto, where.spec.mesh_axes()))


def _concrete(sharding: Sharding, x: Any) -> Sharding:
    """A sharding over an abstract mesh as one over the array's mesh, or over the current mesh."""
    if not isinstance(sharding.mesh, AbstractMesh):
        return sharding
    for mesh in (getattr(getattr(x, "sharding", None), "mesh", None), current.value):
        if isinstance(mesh, Mesh) and mesh.shape_tuple == sharding.mesh.shape_tuple:
            return NamedSharding(mesh.update(axis_types=sharding.mesh.axis_types), sharding.spec,
                                 sharding.memory_kind)
    return sharding


def canonicalize_sharding(sharding: Any, no_mesh: Callable[[Any], Exception]) -> Any:
    """A partition spec as a sharding over the current mesh; another value as it is."""
    sharding = sharding.sharding if isinstance(sharding, Format) else sharding
    if not isinstance(sharding, P):
        return sharding
    if current.value is None:
        raise no_mesh(sharding)
    return NamedSharding(current.value, sharding)


def _no_mesh(spec: Any) -> ValueError:
    return ValueError(
        "Using PartitionSpec when you are not under a mesh context is not allowed. Please pass a "
        f"NamedSharding instance or enter into a mesh context via `jax.set_mesh`. Got {spec}")


def shard_tree(xs: Any, shardings: Any, no_mesh: Callable[[Any], Exception], name: str,
               leaf_name: Callable[[int], str], axis_type: AxisType | None = None) -> Any:
    """A tree of values with the shardings of a tree, or of a prefix; errors have these names.

    Array axes may be sharded along mesh axes of `axis_type` only, if there is one.
    """
    leaves, tree = tree_util.tree_flatten(xs)
    flat_shardings = [canonicalize_sharding(s, no_mesh)
                      for s in tree_util.flatten_axes(name, tree, shardings)]
    if axis_type is not None:
        for sharding in flat_shardings:
            _check_axis_types(sharding, axis_type)
    if axis_type is AxisType.Explicit:
        flat_shardings = list(map(with_full_spec, flat_shardings, map(np.ndim, leaves)))
    return tree.unflatten([shard_value(x, s, leaf_name(i))
                           for i, (x, s) in enumerate(zip(leaves, flat_shardings, strict=True))])


def _check_axis_types(sharding: Any, axis_type: AxisType) -> None:
    """Refuse a sharding along mesh axes of another type."""
    if not isinstance(sharding, NamedSharding):
        return
    spec, mesh = sharding.spec, sharding.mesh
    for name in spec.mesh_axes():
        if mesh.type_of_axis[name] is not axis_type and axis_type is AxisType.Explicit:
            raise ValueError(
                "PartitionSpec passed to reshard cannot contain axis names that are of type "
                f"Auto or Manual. Got PartitionSpec: {spec} with axis name: {name} of type: "
                f"{mesh.type_of_axis[name]}. This error occurs at source:  "
                f"{frame.place if (frame := source_info.user_frame()) else 'unknown'}")
        if mesh.type_of_axis[name] is not axis_type:
            raise ValueError("The spec of NamedSharding passed to with_sharding_constraint can "
                             f"only refer to Auto axes of the mesh. Got spec={spec} and "
                             f"mesh={mesh.abstract_mesh}. You probably meant to use `reshard` API?")


def reshard(xs: Any, out_shardings: Any) -> Any:
    """A tree of arrays with other shardings.

    Args:
      xs: a tree of arrays.
      out_shardings: a sharding, or a spec over the current mesh; or a tree of them, which may be
        a prefix of `xs`.

    Raises:
      ValueError: for a spec where no mesh was set, and for arrays that cannot be sharded so.

    >>> from minijax import NamedSharding, P, make_mesh
    >>> reshard(np.arange(2), NamedSharding(make_mesh((1,), ("x",)), P("x"))).sharding.spec
    P('x',)
    """
    return shard_tree(xs, out_shardings, _no_mesh, "reshard", lambda _: "reshard arguments",
                      AxisType.Explicit)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """The same tree of arrays with these shardings; may be called inside of `jit`.

    Args:
      x: a tree of arrays.
      shardings: as of `reshard`.

    Raises:
      RuntimeError: for a spec where no mesh was set.
      ValueError: for arrays that cannot be sharded so.

    >>> with_sharding_constraint(np.arange(2), None)
    array([0, 1])
    """
    if current.value is not None and current.value.are_all_axes_explicit:
        return _check_shardings(x, shardings)
    return shard_tree(x, shardings, no_mesh_error("with_sharding_constraint", "shardings"),
                      "with_sharding_constraint", lambda _: "with_sharding_constraint arguments",
                      AxisType.Auto)


def _check_shardings(xs: Any, shardings: Any) -> Any:
    """The same tree, if its arrays have these shardings."""
    leaves, tree = tree_util.tree_flatten(xs)
    for x, sharding in zip(leaves, tree_util.flatten_axes(
            "with_sharding_constraint", tree, shardings), strict=True):
        spec = getattr(canonicalize_sharding(sharding, TypeError), "spec", None)
        x_spec = core.get_aval(x).sharding.spec
        if spec is not None and (
                (own := full(x_spec, np.ndim(x))) != (other := full(spec, np.ndim(x)))):
            raise AssertionError(
                "`with_sharding_constraint` acts as an assert when all axes of mesh are of type "
                f"`Explicit`. The array sharding: {own} did not match the sharding provided: "
                f"{other}. Please use `jax.sharding.reshard` to shard your input to the sharding "
                "you want.")
    return xs


def no_mesh_error(what: str, parameter: str) -> Callable[[Any], Exception]:
    return lambda _: RuntimeError(
        f"{what} requires a non-empty mesh in context if you are passing `PartitionSpec`s to "
        f"{parameter}. You can define a context mesh via `jax.set_mesh(mesh)`. Alternatively, "
        f"provide `Sharding`s to {parameter} and then the mesh context manager is not required.")


# ── Shards ───────────────────────────────────────────────────────────────────────────────────

@dataclass(frozen=True, eq=False)
class Shard:
    """The part of an array on one device; `replica_id` counts the copies of the same part."""

    device: Device
    index: Index
    replica_id: int
    data: Any

    def __repr__(self) -> str:
        return (f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, "
                f"data={self.data})")


def shards(x: ArrayImpl, data_on: Callable[[Device], Any] | None = None) -> list[Shard]:
    """The shards of an array, with the data on each device: itself, of an array on one."""
    counts: collections.Counter[str] = collections.Counter()
    parts = []
    for device, index in x.sharding.devices_indices_map(x.shape).items():
        parts.append(Shard(device, index, counts[str(index)], data_on(device) if data_on else x))
        counts[str(index)] += 1
    return parts


# ── Arrays from shards ───────────────────────────────────────────────────────────────────────

def make_array_from_callback(shape: Sequence[int], sharding: Any, data_callback: Callable,
                             dtype: Any = None) -> Array:
    """An array whose shards a function returns.

    Args:
      shape: the shape of the array.
      sharding: its sharding.
      data_callback: from the index of a shard to its elements.
      dtype: the dtype of the array; that of the shards, if None.

    >>> from minijax import NamedSharding, P, make_mesh
    >>> sharding = NamedSharding(make_mesh((1,), ("x",)), P("x"))
    >>> make_array_from_callback((3,), sharding, lambda index: np.arange(3)[index])
    Array([0, 1, 2], dtype=int32)
    """
    here = sharding.addressable_devices_indices_map(tuple(shape)).values()
    places = {str(index): index for index in here}
    parts = [(index, data_callback(index)) for index in places.values()]
    if any(isinstance(part, core.Tracer) for _, part in parts):
        raise errors.UnexpectedTracerError(
            "jax.make_array_from_callback cannot be called within a traced context.")
    return _assembled(tuple(shape), sharding, parts, dtype)


def make_array_from_single_device_arrays(shape: Sequence[int], sharding: Any, arrays: Sequence[Any],
                                         *, dtype: Any = None) -> Array:
    """An array of the shards on each device of this process.

    Raises:
      ValueError: when they are on other devices, or have other shapes or dtypes.
      TypeError: for another container.
    """
    name = "jax.make_array_from_single_device_arrays"
    if not isinstance(arrays, list | tuple):
        raise TypeError(f"{name} `arrays` argument must be a list or tuple, but got "
                        f"{type(arrays)}.")
    refuse((any(isinstance(x, core.Tracer) for x in arrays), f"{name} requires a list of concrete "
            f"arrays as input, but got types {set(map(type, arrays))}"),
           (dtype is None and not arrays, "If the Array has no addressable shards, `dtype` must be "
            f"provided via the `dtype` argument to `{name}`."), error=ValueError)
    for x in arrays:
        if not isinstance(x, Array):
            raise TypeError(f"Unsupported type for elements in `arrays`: {type(x)}")
        refuse((x.sharding.num_devices > 1, "When making an array from single-device arrays the "
                "input arrays must have one shard each. An argument array had "
                f"{x.sharding.num_devices} shard(s)."),
               (dtype is not None and x.dtype != dtype, f"If `dtype` is provided to `{name}`, it "
                "must match the dtype of the addressable shards. Got dtype="
                f"{np.dtype(dtype)} and shard dtype={x.dtype}`."), error=ValueError)
    indices = sharding.addressable_devices_indices_map(tuple(shape))
    if len(arrays) != len(indices):
        raise ValueError(f"Expected {len(indices)} per-device arrays (this is how many devices are "
                         f"addressable by the sharding), but got {len(arrays)}")
    by_device = {next(iter(x.sharding.device_set)): x for x in arrays}
    _check_devices([next(iter(x.sharding.device_set)).id for x in arrays],
                   {device.id for device in indices})
    dtype = dtype or (arrays[0].dtype if arrays else None)
    if others := [x for x in arrays if x.dtype != dtype]:
        raise ValueError("Input buffers to `Array` must have matching dtypes. Got "
                         f"{others[0].dtype}, expected {dtype} for buffer: {others[0]}")
    return _assembled(tuple(shape), sharding,
                      [(index, by_device[device]) for device, index in indices.items()], dtype)


def _check_devices(ids: list[int], expected: set[int]) -> None:
    """Refuse arrays that are not one on each device of a sharding."""
    refuse((len(set(ids)) < len(ids), "When making an array from single-device arrays, the input "
            f"arrays must be from distinct devices, but got device IDs {ids}"),
           (set(ids) != expected, "Addressable devices and per-device arrays devices do not match. "
            f"Sharding contains devices {expected - set(ids)} that are not present in per-device "
            f"arrays. Per-device arrays contain devices {set(ids) - expected} that are not present "
            "in the sharding."), error=ValueError)


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None
                                       ) -> Any:
    """Arrays from the data of each process.

    Args:
      sharding: their sharding, or a spec over the current mesh; a tree prefix of `local_data`.
      local_data: a tree of arrays. Along each axis an array has the size of the whole, or that of
        the part of this process.
      global_shape: the shape of the whole, or a tree of them; what the parts of all processes make,
        if None.

    Raises:
      ValueError: for an array of another size.

    >>> from minijax import NamedSharding, P, make_mesh
    >>> sharding = NamedSharding(make_mesh((1,), ("x",)), P("x"))
    >>> make_array_from_process_local_data(sharding, np.arange(2))
    Array([0, 1], dtype=int32)
    """
    leaves, tree = tree_util.tree_flatten(local_data)
    shardings = tree_util.flatten_axes("make_array_from_process_local_data", tree, sharding)
    is_one = global_shape is None or isinstance(next(iter(global_shape), 0), int)
    shapes = [global_shape] * len(leaves) if is_one else tree.flatten_up_to(global_shape)
    no_mesh = no_mesh_error("make_array_from_process_local_data", "sharding")
    return tree.unflatten([
        from_local_data(SingleDeviceSharding(where) if isinstance(where, Device) else
                         canonicalize_sharding(where, no_mesh), np.asarray(data), shape)
        for data, where, shape in zip(leaves, shardings, shapes, strict=True)])


def from_local_data(sharding: Any, data: Any, shape: Any = None) -> Array:
    """The array with a sharding of which this process has the data, or what lies on its devices."""
    cuts = sharding._cuts(data.ndim)
    here = [sorted({index[axis].start or 0 for index in
                    sharding.addressable_devices_indices_map(tuple(cuts)).values()})
            for axis in range(data.ndim)]  # along each axis the numbers of this process's parts
    if shape is None:
        shape = [size * cut // len(parts)
                 for size, cut, parts in zip(data.shape, cuts, here, strict=True)]
    shape = tuple(shape)
    for axis, (size, whole) in enumerate(zip(data.shape, shape, strict=True)):
        part = whole * len(here[axis]) // cuts[axis]
        if size not in (whole, part):
            raise ValueError(
                "Invalid host data, each dimension should match either global or process shape. In "
                f"dimension {axis}, the process data has {size} elements. Process addresses {part} "
                f"elements and global_shape={shape}.")

    def local(place: slice, axis: int) -> slice:
        if data.shape[axis] == shape[axis]:
            return place
        size = shape[axis] // cuts[axis]
        number = here[axis].index((place.start or 0) // size)
        return slice(number * size, (number + 1) * size)
    return make_array_from_callback(shape, sharding, lambda index: data[
        tuple(local(place, axis) for axis, place in enumerate(index))])


def _assembled(shape: tuple, sharding: Any, parts: list[tuple[Index, Any]], dtype: Any) -> Array:
    if dtype is None and not parts:
        raise ValueError("If the Array has no addressable shards, `dtype` must be provided via the "
                         "`dtype` argument to `jax.make_array_from_callback`.")
    dtype = dtypes.canonicalize_dtype(dtype or core.get_aval(parts[0][1]).dtype)
    aval, block = core.ShapedArray(shape, dtype), sharding.shard_shape(shape)
    for _, part in parts:
        if np.shape(part) != block:
            raise ValueError(
                f"Expected shard shape {block} doesn't match the single device array shape "
                f"{np.shape(part)}. Shape of Array is {aval.str_short()} with sharding {sharding}")
    stored = core.physical_aval(aval).dtype
    blocks = {str(index): np.array(core.as_value(part)._buffer, stored) for index, part in parts}
    here = sharding.addressable_devices_indices_map(shape)
    return Primitive.eager_dispatch.from_blocks(
        {device.rank: blocks[str(index)] for device, index in here.items()}, aval, sharding)


def live_arrays(platform: str | None = None) -> list[Array]:
    """The arrays that exist, on the devices of a platform."""
    return [x for x in gc.get_objects() if isinstance(x, ArrayImpl) and not x.is_literal
            and not core.is_donated(x)
            and platform in (None, next(iter(x.sharding.device_set)).platform)]
