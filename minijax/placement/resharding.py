"""Laying arrays over pretended devices: `reshard`, `with_sharding_constraint`, an array's shards.

Stands on `named_sharding`, `eager_dispatch`.  Shards are cut from an array, which stays one.
Chapter 11, *Named axes and many devices*.  In JAX: `jax/_src/pjit.py`, `jax/_src/array.py`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax import core, dtypes, tree_util
from minijax.core import Array, ArrayImpl, Example, Params, Primitive
from minijax.placement import eager_dispatch
from minijax.placement import sharding_propagation
from minijax.placement.devices import CPU, Device, DeviceArray, put
from minijax.placement.meshes import AbstractMesh, AxisType, Mesh, PartitionSpec, current, make_mesh
from minijax.placement.named_sharding import (Format, Index, NamedSharding, PlacedArray, Sharding,
                                              SingleDeviceSharding)
from minijax.primitives import ad_util


# ── Laying ───────────────────────────────────────────────────────────────────────────────────

def lay(x: ArrayImpl, sharding: Sharding) -> Any:
    """The same numbers, as an array that lies there."""
    if sharding.num_devices == 1:
        [device] = sharding._device_assignment
        if not device.is_host or isinstance(x, DeviceArray):
            return put(x, device)
        if device == CPU and isinstance(sharding, SingleDeviceSharding):
            return ArrayImpl(x._buffer, x.aval)
    if not all(device.is_host for device in sharding.device_set):
        raise NotImplementedError("minijax spreads arrays over pretended CPU devices only: start "
                                  "it with JAX_NUM_CPU_DEVICES=8 and JAX_PLATFORMS=cpu.")
    eager_dispatch.begin_looking()
    return PlacedArray(x._buffer, x.aval, sharding)


class LayingPrimitive(Primitive):
    """Evaluated, it lays the array; inside of a program it says how the value is to lie."""

    def evaluate(self, args: Sequence[Any], params: Params) -> list[ArrayImpl]:
        return [lay(args[0], params["sharding"])]


sharding_constraint_p: Primitive = LayingPrimitive(
    "sharding_constraint",
    impl=lambda x, *, sharding: [x.copy()],
    abstract_eval=lambda x, *, sharding: [x],
    jvp=ad_util.linear(0),
    transpose=ad_util.transposed(
        lambda ct, x, *, sharding: sharding_constraint_p.bind(ct, sharding=sharding)),
    batch=lambda axis, args, dims, *, sharding: ([sharding_constraint_p.bind(
        *args, sharding=sharding if dims[0] is None else sharding.with_axis(dims[0]))], dims),
    program=lambda x, *, sharding: x,
    handles_keys=True,
    examples=lambda: [Example((np.array([0.5, -1.0], np.float32),),
                              {"sharding": NamedSharding(make_mesh((1,), ("x",)),
                                                         PartitionSpec("x"))})])


def given(x: Any, where: Any, what: str = "device_put args") -> Any:
    """A value as it is to lie: an array is laid there, of a traced one it is written down."""
    if where is None:
        return x
    if not isinstance(where, Sharding):
        raise ValueError(f"an array lies as a jax.sharding.Sharding says, not {where!r}")
    x = core.as_value(x)
    where = _concrete(where, x)
    where.check_fits(x.aval, what, evenly=not isinstance(x, core.Tracer))
    sharding_propagation.in_use.add("arrays")
    return x if isinstance(where.mesh, AbstractMesh) else (
        sharding_constraint_p.bind(x, sharding=where))


def _concrete(where: Sharding, x: Any) -> Sharding:
    """A sharding over an abstract mesh as one over the mesh that was set, or of the array."""
    for mesh in (getattr(getattr(x, "sharding", None), "mesh", None), current.value):
        if isinstance(mesh, Mesh) and mesh.abstract_mesh == where.mesh:
            return NamedSharding(mesh, where.spec, where.memory_kind)
    return where


def in_context(where: Any, refusal: Exception) -> Any:
    """A partition spec as a sharding over the mesh that was set; anything else as it is."""
    where = where.sharding if isinstance(where, Format) else where
    if not isinstance(where, PartitionSpec):
        return where
    if current.value is None:
        raise refusal
    return NamedSharding(current.value, where)


def _no_mesh(where: Any) -> ValueError:
    return ValueError(
        "Using PartitionSpec when you are not under a mesh context is not allowed. Please pass a "
        "NamedSharding instance or enter into a mesh context via `jax.set_mesh`. Got "
        f"{where}")


def laid_tree(xs: Any, where: Any, refusal: Callable[[Any], Exception], what: str,
              each: Callable[[int], str]) -> Any:
    """A tree of values as a tree of shardings says, or a prefix of it; errors say what it is, and
    what each leaf is.
    """
    leaves, tree = tree_util.tree_flatten(xs)
    places = tree_util.flatten_axes(what, tree, where)
    return tree.unflatten([given(x, in_context(w, refusal(w)), each(i))
                           for i, (x, w) in enumerate(zip(leaves, places, strict=True))])


def reshard(xs: Any, out_shardings: Any) -> Any:
    """A tree of arrays that lie so.

    Args:
      xs: a tree of arrays.
      out_shardings: a sharding, or a spec over the mesh that was set; or a tree of them, which
        may be a prefix of `xs`.

    Raises:
      ValueError: for a spec where no mesh was set, and for arrays that cannot be cut so.

    >>> from minijax import NamedSharding, P, make_mesh
    >>> reshard(np.arange(2), NamedSharding(make_mesh((1,), ("x",)), P("x"))).sharding.spec
    P('x',)
    """
    out = laid_tree(xs, out_shardings, _no_mesh, "reshard", lambda _: "reshard arguments")
    return tree_util.tree_map(_in_full, out)


def _in_full(x: Any) -> Any:
    """An array whose spec says something of each axis."""
    if isinstance(x, PlacedArray) and isinstance(x.sharding, NamedSharding):
        spec, types = x.sharding.spec, x.sharding.mesh.axis_types
        kinds = dict(zip(x.sharding.mesh.axis_names, types, strict=True))
        for name in (name for names in spec.names(0) for name in names):
            if kinds[name] is not AxisType.Explicit:
                raise ValueError(
                    "PartitionSpec passed to reshard cannot contain axis names that are of type "
                    f"Auto or Manual. Got PartitionSpec: {spec} with axis name: {name} of type: "
                    f"{kinds[name]}. Use jax.lax.with_sharding_constraint.")
        return lay(x, x.sharding.update(spec=spec + (None,) * (x.ndim - len(spec))))
    return x


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """The same tree; says how its arrays are to lie, inside of `jit`, too.

    Args:
      x: a tree of arrays.
      shardings: as of `reshard`.

    Raises:
      RuntimeError: for a spec where no mesh was set.
      ValueError: for arrays that cannot be cut so.

    >>> with_sharding_constraint(np.arange(2), None)
    array([0, 1])
    """
    return laid_tree(x, shardings, no_mesh_for("with_sharding_constraint", "shardings"),
                     "with_sharding_constraint", lambda _: "with_sharding_constraint arguments")


def no_mesh_for(what: str, parameter: str) -> Callable[[Any], Exception]:
    return lambda _: RuntimeError(
        f"{what} requires a non-empty mesh in context if you are passing `PartitionSpec`s to "
        f"{parameter}. You can define a context mesh via `jax.set_mesh(mesh)`. Alternatively, "
        f"provide `Sharding`s to {parameter} and then the mesh context manager is not required.")


# ── What `jit` is told ───────────────────────────────────────────────────────────────────────

class _Unspecified:
    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED: Any = _Unspecified()


def checked_shardings(which: str, where: Any) -> Any:
    """What `jit` is told of shardings; refused where it is none.

    Raises:
      TypeError: for a leaf that is neither a sharding nor a spec.
    """
    for leaf in tree_util.tree_leaves(where):
        if not isinstance(leaf, Sharding | Format | PartitionSpec | _Unspecified):
            raise TypeError(f"{which} leaf specifications are expected to be PartitionSpec "
                            f"instances or None, but got {leaf}")
    return where


def laid_arguments(args: tuple, static: set[int], where: Any,
                   names: Callable[[], Sequence[str | None]]) -> tuple:
    """The arguments as `in_shardings` says, of those that are not static.

    Those that lie otherwise are refused, by name.

    Raises:
      ValueError: for an array that was laid elsewhere, and for a tree that does not fit.
    """
    if static:
        laid = iter(laid_arguments(tuple(x for i, x in enumerate(args) if i not in static), set(),
                                   where, names))
        return tuple(x if i in static else next(laid) for i, x in enumerate(args))
    where = tuple(where) if isinstance(where, list) else where
    if isinstance(where, tuple) and len(where) != len(args):
        raise ValueError(
            "pjit in_shardings specification must be a tree prefix of the positional arguments "
            "tuple. In particular, pjit in_shardings must either be a Sharding, a PartitionSpec, "
            "or a tuple of length equal to the number of positional arguments. But pjit "
            f"in_shardings is the wrong length: got a tuple or list of length {len(where)} for an "
            f"args tuple of length {len(args)}.")
    refusal = no_mesh_for("jit", "in_shardings")
    leaves, tree = tree_util.tree_flatten(args)
    places = tree_util.flatten_axes("pjit in_shardings", tree, where)
    for x, place in zip(leaves, places, strict=True):
        wanted = in_context(place, refusal(place))
        if isinstance(x, PlacedArray) and wanted is not None and not (
                x.sharding.is_equivalent_to(wanted, x.ndim)):
            raise ValueError(
                "Sharding passed to jit does not match the sharding on the respective arg. Got "
                f"jit sharding: {wanted},\narg sharding: {x.sharding} for arg type: "
                f"{x.aval.str_long()}")
    return laid_tree(args, where, refusal, "pjit in_shardings",
                     lambda i: f"pjit arguments with pytree key path {names()[i]}")


def laid_results(out: Any, where: Any) -> Any:
    """The result as `out_shardings` says."""
    def each(i: int) -> str:
        path, _ = tree_util.tree_leaves_with_path(out)[i]
        return f"pjit outputs with pytree key path result{tree_util.keystr(path)}"
    return laid_tree(out, where, no_mesh_for("jit", "out_shardings"), "pjit out_shardings", each)


# ── An array's parts ─────────────────────────────────────────────────────────────────────────

@dataclass(frozen=True, eq=False)
class Shard:
    """The part of an array that lies on one device; `replica_id` counts those that are equal."""

    device: Device
    index: Index
    replica_id: int
    data: Any

    def __repr__(self) -> str:
        return (f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, "
                f"data={self.data})")


def shards(x: ArrayImpl) -> list[Shard]:
    """The parts of an array, device by device."""
    counts: dict[str, int] = {}
    found = []
    for device, index in x.sharding.devices_indices_map(x.shape).items():
        replica = counts[str(index)] = counts.get(str(index), -1) + 1
        found.append(Shard(device, index, replica, _part(x, device, index)))
    return found


def _part(x: ArrayImpl, device: Device, index: Index) -> ArrayImpl:
    if x.device == device:
        return x
    part = np.array(x._buffer[index], order="C")
    aval = x.aval.update(shape=part.shape[:x.ndim])
    return lay(ArrayImpl(part, aval), SingleDeviceSharding(device))


# ── Arrays of parts ──────────────────────────────────────────────────────────────────────────

def make_array_from_callback(shape: Sequence[int], sharding: Any, data_callback: Callable,
                             dtype: Any = None) -> Array:
    """An array whose parts a function gives.

    Args:
      shape: the shape of the whole.
      sharding: how it lies.
      data_callback: from the index of a part to its numbers.
      dtype: of the array; that of the parts, if None.

    >>> from minijax import NamedSharding, P, make_mesh
    >>> where = NamedSharding(make_mesh((1,), ("x",)), P("x"))
    >>> make_array_from_callback((3,), where, lambda index: np.arange(3)[index])
    Array([0, 1, 2], dtype=int32)
    """
    parts = {str(index): index for index in sharding.devices_indices_map(tuple(shape)).values()}
    return _assembled(tuple(shape), sharding, [
        (index, data_callback(index)) for index in parts.values()], dtype)


def make_array_from_single_device_arrays(shape: Sequence[int], sharding: Any, arrays: Sequence[Any],
                                         *, dtype: Any = None) -> Array:
    """An array of the parts on each device, in the order of the sharding's devices.

    Raises:
      ValueError: when there are more or fewer than devices, or they have other shapes.
    """
    indices = list(sharding.devices_indices_map(tuple(shape)).values())
    if len(arrays) != len(indices):
        raise ValueError(f"Expected {len(indices)} per-device arrays (this is how many devices are "
                         f"addressable by the sharding), but got {len(arrays)}")
    return _assembled(tuple(shape), sharding, list(zip(indices, arrays, strict=True)), dtype)


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None
                                       ) -> Any:
    """Arrays of what this process has of them: all, as there is one process."""
    def laid(data: Any, shape: Any) -> Array:
        shape = np.shape(data) if shape is None else tuple(shape)
        return make_array_from_callback(shape, sharding, lambda index: np.asarray(data)[index])
    is_one = global_shape is None or isinstance(next(iter(global_shape), 0), int)
    if is_one:
        return tree_util.tree_map(lambda data: laid(data, global_shape), local_data)
    return tree_util.tree_map(laid, local_data, global_shape)


def _assembled(shape: tuple, sharding: Any, parts: list[tuple[Index, Any]], dtype: Any) -> Array:
    kind = dtypes.canonicalize_dtype(dtype or core.get_aval(parts[0][1]).dtype)
    whole, block = np.empty(shape, kind), sharding.shard_shape(shape)
    for index, part in parts:
        if np.shape(part) != block:
            raise ValueError(f"the part at {index} of an array of shape {shape} has shape "
                             f"{np.shape(part)}, where {sharding} wants {block}")
        whole[index] = np.asarray(part)
    return lay(ArrayImpl(whole, core.ShapedArray(shape, kind)), sharding)


def live_arrays(platform: str | None = None) -> list[Array]:
    """The arrays that exist, on the devices of a platform."""
    return [x for x in gc.get_objects() if isinstance(x, ArrayImpl) and not x.is_literal
            and not core.is_donated(x) and platform in (None, _platform(x))]


def _platform(x: ArrayImpl) -> str:
    return next(iter(x.sharding.device_set)).platform
