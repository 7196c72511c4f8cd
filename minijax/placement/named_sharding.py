"""How an array is distributed over devices: `NamedSharding`.

Builds on `meshes`.  Chapter 11, *Named axes and many devices*.
In JAX: `jax/_src/named_sharding.py`.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any


from minijax import core
from minijax.placement.across import Grid
from minijax.placement.devices import Device, DeviceArray
from minijax.placement.meshes import (AbstractMesh, AxisType, ByValue, Mesh, Names, P,
                                      get_abstract_mesh, interned, is_here)


Index = tuple[slice, ...]


class IndivisibleError(ValueError):
    """The size of an axis is not divisible by the number of its shards."""


class DuplicateSpecError(ValueError):
    """A partition spec names a mesh axis twice."""


# ── Shardings ────────────────────────────────────────────────────────────────────────────────

class Sharding:
    """The partition of an array over devices: a mesh, and the mesh axes of each array axis."""

    mesh: Any
    spec: P
    memory_kind: str | None

    _device_assignment = property(lambda self: tuple(self.mesh.devices.flat))
    _addressable_device_assignment = property(
        lambda self: tuple(filter(is_here, self._device_assignment)))
    device_set = property(lambda self: set(self._device_assignment))
    addressable_devices = property(lambda self: set(self._addressable_device_assignment))
    num_devices = property(lambda self: len(self._device_assignment))

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all its devices belong to this process."""
        return len(self._addressable_device_assignment) == self.num_devices

    def _cuts(self, ndim: int) -> list[int]:
        """The number of shards along each axis."""
        sizes = dict(self.mesh.shape_tuple)
        return [math.prod(sizes[n] for n in names) for names in self.spec.names(ndim)]

    @property
    def is_fully_replicated(self) -> bool:
        return all(cut == 1 for cut in self._cuts(0))

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the shard on one device.

        Raises:
          IndivisibleError: when the size of an axis is not divisible by its number of shards.
        """
        cuts = self._cuts(len(global_shape))
        for axis, (size, cut) in enumerate(zip(global_shape, cuts, strict=False)):
            if size % cut:
                raise IndivisibleError(
                    f"Sharding {self} implies that array axis {axis} is partitioned {cut} times, "
                    f"but the dimension size is {size} (full shape: {global_shape}, per-dimension "
                    f"tiling factors: {cuts} should evenly divide the shape)")
        return tuple(size // cuts[axis] for axis, size in enumerate(global_shape))

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Device, Index]:
        """The part of an array on each device, as an index."""
        grid, block = Grid.of(self.mesh), self.shard_shape(global_shape)
        names = self.spec.names(len(block))

        def part(device: Device, axis: int) -> slice:
            if grid.count(names[axis]) == 1:
                return slice(None)
            start = grid.block(device.rank, names[axis]) * block[axis]
            return slice(start, start + block[axis])
        return {device: tuple(part(device, axis) for axis in range(len(block)))
                for device in self._device_assignment}

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Device, Index]:
        """The part of an array on each device of this process, as an index."""
        return {device: index for device, index in self.devices_indices_map(global_shape).items()
                if is_here(device)}

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether the other sharding puts the same parts of arrays on the same devices."""
        if isinstance(self.mesh, AbstractMesh):
            return bool(self == other)
        shape = tuple(math.lcm(*pair) for pair in
                      zip(self._cuts(ndim), other._cuts(ndim), strict=True))
        return self.devices_indices_map(shape) == other.devices_indices_map(shape)

    def with_axis(self, axis: int, names: Names = ()) -> Sharding:
        """The sharding of an array with one more axis, partitioned along mesh axes."""
        return self

    def check_compatible_aval(self, aval_shape: tuple[int, ...]) -> None:
        """Refuse the shape of an array that has fewer axes than the spec.

        Raises:
          ValueError: when it has.
        """
        if len(self.spec) > len(aval_shape):
            for_scalars = "" if aval_shape else " For scalars the PartitionSpec should be P()"
            raise ValueError(f"Sharding {self} is only valid for values of rank at least "
                             f"{len(self.spec)}, but was applied to a value of rank "
                             f"{len(aval_shape)}.{for_scalars}")

    def check_fits(self, aval: Any, what: str = "device_put args", evenly: bool = True) -> None:
        """Refuse an array that cannot have this sharding; inside of `jit` shards may be uneven.

        Raises:
          ValueError: when it has too few axes; IndivisibleError.
        """
        try:
            self.check_compatible_aval(aval.shape)
        except ValueError as error:
            raise ValueError(f"One of {what} is incompatible with its sharding annotation {self}: "
                             f"{error}") from None
        if evenly:
            self.shard_shape(aval.shape)


@dataclass(frozen=True, repr=False)
class NamedSharding(Sharding):
    """The sharding of an array that is partitioned along the axes of a mesh.

    Args:
      mesh: the devices.
      spec: the mesh axes for each axis of the array.
      memory_kind: the kind of memory; there is one.

    Raises:
      ValueError: when the mesh has no such axis, or the spec names it twice.

    >>> from minijax import make_mesh
    >>> NamedSharding(make_mesh((1,), ("x",)), P("x")).shard_shape((4, 2))
    (4, 2)
    """

    mesh: Any
    spec: P
    memory_kind: str | None = None

    def __post_init__(self) -> None:
        if self.memory_kind is None and isinstance(self.mesh, Mesh):
            object.__setattr__(self, "memory_kind", "device")
        names = self.spec.mesh_axes()
        for name in names:
            if name not in self.mesh.axis_names:
                raise ValueError(f"Resource axis: {name} of {self.spec} is not found in mesh: "
                                 f"{self.mesh.axis_names}.")
            if names.count(name) > 1:
                raise DuplicateSpecError(
                    "A single NamedSharding spec specification can map every mesh axis to at most "
                    f"one positional dimension, but {self.spec} has duplicate entries for `{name}`")
        for word, axes in (("Unreduced", self.spec.unreduced), ("Reduced", self.spec.reduced)):
            for name in axes:
                if name not in self.mesh.axis_names:
                    raise ValueError(f"{word} axes {name} is not found in mesh.axis_names="
                                     f"{self.mesh.axis_names}. Got pspec={self.spec}")
                if self.mesh.type_of_axis[name] is not AxisType.Explicit:
                    raise ValueError(f"{word} axes can only refer to mesh axes that is of type "
                                     f"`Explicit`. Got {word.lower()} axes: {axes} and mesh: "
                                     f"{self.mesh}")
        if self.memory_kind not in (None, "device", "pinned_host", "unpinned_host"):
            raise ValueError(f"Got invalid memory kind {self.memory_kind}: there are 'device', "
                             "'pinned_host' and 'unpinned_host'.")

    def update(self, **changes: Any) -> NamedSharding:
        """The same sharding with another mesh, spec or memory kind."""
        return replace(self, **changes)

    def with_memory_kind(self, kind: str) -> NamedSharding:
        return self.update(memory_kind=kind)

    def with_axis(self, axis: int, names: Names = ()) -> NamedSharding:
        parts = [*self.spec, *[None] * (axis - len(self.spec))]
        return self.update(spec=P(*parts[:axis], names, *parts[axis:]))

    def with_batch(self, axis: int, of_batch: NamedSharding) -> NamedSharding:
        """The sharding of a batch, from that of an example and that of the batch axis."""
        own = self.spec.mesh_axes()
        return self.with_axis(axis, tuple(n for n in of_batch.spec.mesh_axes() if n not in own))

    def without_axis(self, axis: int) -> NamedSharding:
        """The sharding of an array without one of its axes."""
        return self.update(spec=P(*self.spec[:axis], *self.spec[axis + 1:]))

    def of_type(self, kind: AxisType, axes: Collection) -> NamedSharding:
        """The same sharding over a mesh some of whose axes have another type."""
        return self.update(mesh=self.mesh.update(axis_types=tuple(
            kind if name in axes else old for name, old in self.mesh.type_of_axis.items())))

    def __repr__(self) -> str:
        kind = f", memory_kind={self.memory_kind}" if self.memory_kind else ""
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind})"


class SingleDeviceSharding(ByValue, Sharding):
    """The sharding of an array that is on one device.

    >>> from minijax import devices
    >>> SingleDeviceSharding(devices("cpu")[0])
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """

    spec = P()

    def __init__(self, device: Device, *, memory_kind: str | None = None):
        self._device, self.memory_kind = device, memory_kind or "device"

    device = property(lambda self: self._device)
    mesh = property(lambda self: Mesh([self._device], ("device",)))
    _device_assignment = property(lambda self: (self._device,))

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def _parts(self) -> tuple:
        return (self._device,)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"


def sharding_of_type(aval: core.ShapedArray) -> NamedSharding:
    """The sharding of a type: along explicit axes of the mesh that was set, if it has any."""
    mesh = get_abstract_mesh()
    return aval.explicit_sharding or NamedSharding(
        mesh if mesh.explicit_axes else AbstractMesh((), ()), P(*[None] * aval.ndim))


def struct_like(struct: type, x: Any) -> Any:
    """`ShapeDtypeStruct.like`: the structure of a value, with the sharding of a committed array.

    >>> import minijax
    >>> minijax.ShapeDtypeStruct.like(1.5)
    ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
    """
    aval = core.get_aval(x)
    if isinstance(x, core.Tracer):
        sharding = aval.explicit_sharding
    else:
        sharding = getattr(x, "sharding", None) if getattr(x, "committed", True) else None
    return struct(aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type)


def updated_struct(struct: Any, **changes: Any) -> Any:
    """`ShapeDtypeStruct.update`: the same structure with some of its parts replaced.

    >>> import minijax
    >>> minijax.ShapeDtypeStruct((2, 3), "float32").update(shape=(4,))
    ShapeDtypeStruct(shape=(4,), dtype=float32)
    """
    parts = {name: getattr(struct, name) for name in ("shape", "dtype", "sharding", "weak_type")}
    return type(struct)(**{name: changes.get(name, value) for name, value in parts.items()})


def sharding_of_struct(sharding: Any) -> Any:
    """The sharding that a `ShapeDtypeStruct` is given.

    Raises:
      ValueError: for what is none.
    """
    sharding = sharding.sharding if isinstance(sharding, Format) else sharding
    if not isinstance(sharding, Sharding | P | None):
        raise ValueError("sharding should be an instance of `jax.sharding.Sharding`, "
                         "`jax.sharding.PartitionSpec` or `jax.experimental.layout.Format`. Got "
                         f"{sharding} of type {type(sharding)}.")
    return sharding


def with_full_spec(sharding: Any, ndim: int) -> Any:
    """The same sharding; over explicit axes its spec has an entry for each axis of an array."""
    if not (isinstance(sharding, NamedSharding) and AxisType.Explicit in sharding.mesh.axis_types):
        return sharding
    return sharding.update(spec=full(sharding.spec, ndim))


def full(spec: P, ndim: int) -> P:
    """The spec with an entry for each axis of an array."""
    return spec.update((*spec, *(None,) * (ndim - len(spec))))


def explicit_sharding(where: Any, ndim: int) -> NamedSharding | None:
    """The sharding along explicit axes, which is part of an array's type; None without any."""
    if not isinstance(where, NamedSharding) or AxisType.Explicit not in where.mesh.axis_types:
        return None
    explicit = where.mesh.explicit_axes
    specs = [tuple(n for n in names if n in explicit) for names in where.spec.names(ndim)]
    return interned(NamedSharding(where.mesh.abstract_mesh, P(*specs))) if any(specs) else None


def make_single_device_sharding(device: Device, *, memory_kind: str | None = None) -> Sharding:
    """The sharding of an array that is on one device."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


# ── Layouts in memory ────────────────────────────────────────────────────────────────────────

@dataclass(frozen=True)
class Layout:
    """The order of an array's axes in memory: here always row-major.

    Args:
      major_to_minor: the axes, the one with the longest stride first.
      tiling: the shapes of tiles; here there are none.
      sub_byte_element_size_in_bits: the size of an element that is smaller than a byte.
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0


@dataclass(frozen=True)
class Format:
    """The layout and the sharding of an array; the layout is ignored, as it changes no value."""

    layout: Any = None
    sharding: Any = None

    def __post_init__(self) -> None:
        if self.layout is not None and not isinstance(self.sharding, Sharding):
            raise ValueError(
                f"Sharding has to be concrete when layout is of type {type(self.layout)}. Please "
                "pass a `jax.sharding.NamedSharding` or `jax.sharding.SingleDeviceSharding` to the "
                f"sharding argument. Got sharding {self.sharding}")


def format_of(x: Any, sharding: Sharding) -> Format:
    """The format of an array, or of its type: row-major."""
    return Format(Layout(tuple(range(len(x.shape))), ()), sharding)


def sharding_like(x: Any, shape: tuple[int, ...]) -> Any:
    """The sharding of a template, or an array on other devices, for one of this shape, or None."""
    has_none = isinstance(x, core.Array) and not isinstance(x, DeviceArray)
    sharding = None if has_none else getattr(x, "sharding", None)
    fits = sharding and (shape == x.shape or isinstance(sharding, SingleDeviceSharding))
    return sharding if fits else None


def is_sharded(x: Any) -> bool:
    """Whether a value is an array with a sharding, as on another CPU device than the first."""
    return isinstance(x, DeviceArray) and x.home.is_global
