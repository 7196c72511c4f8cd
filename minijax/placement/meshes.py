"""Devices in a grid with named axes, and the axes an array is partitioned along: `Mesh`, `P`.

Builds on `devices`.  Chapter 11, *Named axes and many devices*.
In JAX: `jax/_src/mesh.py`, `jax/_src/partition_spec.py`.
"""

from __future__ import annotations

import collections
import enum
import math
from collections.abc import Hashable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from minijax import config
from minijax.placement.devices import CPU, Device, kind_in_use
from minijax.transforms.arguments import Sentinel
from minijax.util import caches

T = TypeVar("T")


@caches.remembered(maxsize=4096)
def interned(x: T) -> T:
    """One object for equal ones."""
    return x


class ByValue:
    """Objects of a class are equal if their parts are."""

    __slots__ = ()

    def _parts(self) -> tuple:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self), *self._parts()))


class AxisType(enum.Enum):
    """The source of shardings along an axis of a mesh: the compiler, types, or the program.

    Along explicit axes types say the shardings, which follow from operation to operation; see
    `placement.explicit_shardings`.
    """

    Auto, Explicit, Manual = range(1, 4)

    def __repr__(self) -> str:
        return self.name


Names = tuple[Hashable, ...]


class PartitionSpec(ByValue):
    """For each axis of an array the mesh axes that it is partitioned along: one, several, or None.

    Args:
      partitions: for each axis of an array.
      unreduced, reduced: sets of mesh axes, of explicit ones, over which values are to be summed,
        or have been.

    Raises:
      ValueError: for an axis in two of them, and for tuples in tuples.
      TypeError: for what is no set.

    >>> PartitionSpec("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    """

    UNCONSTRAINED: ClassVar[Any] = Sentinel("UNCONSTRAINED")

    def __new__(cls, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()
                ) -> PartitionSpec:
        new: Any = super().__new__(cls)
        new._set_parts(tuple(map(_canonical, partitions)), unreduced, reduced)
        return interned(new)

    def _set_parts(self, partitions: tuple, unreduced: Any, reduced: Any) -> None:
        self.partitions = partitions
        for name, axes in (("unreduced", unreduced), ("reduced", reduced)):
            if not isinstance(axes, frozenset | set):
                raise TypeError(f"{name} argument of PartitionSpec should of type `frozenset` or "
                                f"`set`. Got type {axes}")
            if None in axes:
                raise ValueError(f"{name} cannot contain None. All elements in {name} should refer "
                                 "to the mesh axes.")
            if not axes.isdisjoint(self.mesh_axes()):
                raise ValueError(f"partitions cannot overlap with {name} axes passed to "
                                 f"PartitionSpec. Got partitions: {self.partitions} and {name} "
                                 f"axes: {frozenset(axes)}")
        self.unreduced, self.reduced = frozenset(unreduced), frozenset(reduced)
        if self.unreduced & self.reduced:
            raise ValueError("`unreduced` and `reduced` argument to PartitionSpec cannot overlap. "
                             f"Got unreduced: {unreduced} and reduced: {reduced}")

    def __init_subclass__(cls) -> None:
        raise TypeError("Subclassing `jax.P` is prohibited.")

    def names(self, ndim: int) -> list[Names]:
        """The mesh axes for each axis of an array."""
        names = [p if isinstance(p, tuple) else () if p is None or p is self.UNCONSTRAINED else (p,)
                 for p in self.partitions]
        return names + [()] * (ndim - len(names))

    def mesh_axes(self) -> list[Hashable]:
        """All mesh axes that the spec names."""
        return [name for names in self.names(0) for name in names]

    def _parts(self) -> tuple:
        return self.partitions, self.unreduced, self.reduced

    def index(self, part: Any) -> int:
        """The first axis with this entry."""
        return self.partitions.index(part)

    def count(self, part: Any) -> int:
        """The number of axes with this entry."""
        return self.partitions.count(part)

    def update(self, partitions: Any = None, unreduced: Any = None, reduced: Any = None
               ) -> PartitionSpec:
        """The same spec with some of its parts replaced."""
        return _spec_of(*(old if new is None else new for old, new in
                          zip(self._parts(), (partitions, unreduced, reduced), strict=True)))

    def __iter__(self) -> Iterator:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, place: Any) -> Any:
        return self.partitions[place]

    def __add__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, tuple | PartitionSpec):
            raise NotImplementedError(f"{type(other).__name__} is neither a tuple nor a spec")
        more = other if isinstance(other, PartitionSpec) else self._plain(other, "add")
        return PartitionSpec(*self, *other, unreduced=self.unreduced | more.unreduced,
                             reduced=self.reduced | more.reduced)

    def __radd__(self, other: Any) -> PartitionSpec:
        self._plain(other, "radd")
        return PartitionSpec(*other, *self)

    def _plain(self, other: tuple, method: str) -> PartitionSpec:
        """A tuple of partitions as a spec, to be added to one that has no sets."""
        for name in ("unreduced", "reduced"):
            if getattr(self, name):
                raise TypeError(f"other {other} cannot be of instance `tuple` when self {self} has "
                                f"{name} in `__{method}__` of PartitionSpec.")
        return PartitionSpec(*other)

    def __reduce__(self) -> tuple:
        return _spec_of, self._parts()

    def __repr__(self) -> str:
        sets = [f"{name}={set(names)}" for name, names in
                (("unreduced", self.unreduced), ("reduced", self.reduced)) if names]
        if not sets:
            return f"P{self.partitions}"
        return f"P({', '.join([*map(repr, self.partitions), *sets])})"


def _spec_of(partitions: tuple, unreduced: Any, reduced: Any) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


def _canonical(part: Any) -> Any:
    """A tuple of no names as None, and of one name as the name."""
    if not isinstance(part, tuple | list):
        return part
    if nested := [name for name in part if isinstance(name, tuple | list)]:
        raise ValueError("A tuple inside PartitionSpec cannot contain a nested tuple. Got "
                         f"partition: {part} and the nested tuple: {nested[0]}")
    return tuple(part) if len(part) > 1 else part[0] if part else None


P = PartitionSpec


# ── Meshes ───────────────────────────────────────────────────────────────────────────────────

@dataclass(frozen=True)
class AbstractDevice:
    """The kind of devices of a mesh, which need not exist."""

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return f"AbstractDevice({self._facts()})"

    def _facts(self) -> str:
        return (f"device_kind={self.device_kind}, num_cores={self.num_cores}, "
                f"platform={self.platform}")


class _Grid(ByValue):
    """Axes with names, sizes and types: a mesh without its devices."""

    axis_names: tuple[Hashable, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]
    empty = property(lambda self: self.size == 0 or not self.axis_names)
    shape_tuple = property(lambda self: tuple(zip(self.axis_names, self.axis_sizes, strict=True)))
    shape = property(lambda self: collections.OrderedDict(self.shape_tuple))
    size = property(lambda self: math.prod(self.axis_sizes) if self.axis_names else 0)
    type_of_axis = property(lambda self: dict(zip(self.axis_names, self.axis_types, strict=True)))
    auto_axes = property(lambda self: self._of_type(AxisType.Auto))
    explicit_axes = property(lambda self: self._of_type(AxisType.Explicit))
    manual_axes = property(lambda self: self._of_type(AxisType.Manual))
    are_all_axes_auto = property(lambda self: set(self.axis_types) == {AxisType.Auto})
    are_all_axes_explicit = property(lambda self: set(self.axis_types) == {AxisType.Explicit})
    are_all_axes_manual = property(lambda self: set(self.axis_types) == {AxisType.Manual})

    def _of_type(self, kind: AxisType) -> tuple:
        return tuple(name for name, type_ in self.type_of_axis.items() if type_ is kind)

    def _set_axes(self, sizes: Sequence[int], names: Any, types: Any) -> None:
        self.axis_sizes = tuple(sizes)
        self.axis_names = (names,) if isinstance(names, str) else tuple(names)
        if None in self.axis_names:
            raise ValueError(f"Mesh axis names cannot be None. Got: {self.axis_names}")
        types = (AxisType.Auto,) * len(self.axis_names) if types is None else types
        self.axis_types = types if isinstance(types, tuple) else (types,)
        if not all(isinstance(x, AxisType) for x in self.axis_types):
            raise TypeError(f"axis_types passed to {type(self).__name__} must be of type "
                            f"`jax.sharding.AxisType`. Got {self.axis_types} of type "
                            f"{tuple(map(type, self.axis_types))}")
        if len(self.axis_types) != len(self.axis_names):
            raise ValueError("Number of axis names should match the number of axis_types. Got "
                             f"axis_names={self.axis_names} and axis_types={self.axis_types}")
        if len(set(self.axis_names)) < len(self.axis_names):
            raise ValueError(f"Axis names must be unique, got {self.axis_names}")

    def _axes(self) -> str:
        return ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)

    def _types(self) -> str:
        return f"axis_types={self.axis_types}"

    def _parts(self) -> tuple:
        return self.shape_tuple, self.axis_types


def _not_abstract(name: str) -> property:
    def refuse(mesh: AbstractMesh) -> Any:
        raise ValueError(f"AbstractMesh does not implement {name}")
    return property(refuse)


class AbstractMesh(_Grid):
    """The axes of a mesh without its devices.

    >>> AbstractMesh((2, 4), ("x", "y"))
    AbstractMesh('x': 2, 'y': 4, axis_types=(Auto, Auto))
    """

    def __init__(self, axis_sizes: Sequence[int], axis_names: Any, axis_types: Any = None, *,
                 abstract_device: AbstractDevice | None = None):
        self._set_axes(axis_sizes, axis_names, axis_types)
        self.abstract_device = abstract_device

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return self

    def update(self, axis_sizes: Sequence[int] | None = None, axis_names: Any = None,
               axis_types: Any = None, **device: Any) -> AbstractMesh:
        """The same mesh with some of its parts replaced."""
        return AbstractMesh(axis_sizes or self.axis_sizes, axis_names or self.axis_names,
                            axis_types or self.axis_types,
                            **{"abstract_device": self.abstract_device} | device)

    def update_axis_types(self, types: dict[Hashable, AxisType]) -> AbstractMesh:
        """The same mesh with other types for some of its axes, by name."""
        new = self.type_of_axis | types
        return self.update(axis_types=tuple(new[name] for name in self.axis_names))

    devices, device_ids, local_devices, local_mesh, is_multi_process = map(
        _not_abstract, ("devices", "device_ids", "local_devices", "local_mesh", "is_multi_process"))

    def __repr__(self) -> str:
        device = f", {self.abstract_device._facts()}" if self.abstract_device else ""
        return f"AbstractMesh({self._axes() or '()'}, {self._types()}{device})"


class Mesh(_Grid):
    """Devices in a grid whose axes have names.

    Args:
      devices: an array of devices, with as many axes as there are names.
      axis_names: the names.
      axis_types: an `AxisType` for each.

    Raises:
      ValueError: when their numbers differ, or names are not unique.

    >>> from minijax import devices
    >>> Mesh(devices(), "x")
    Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Auto,))
    """

    devices: np.ndarray

    def __new__(cls, devices: Any, axis_names: Any, axis_types: Any = None) -> Mesh:
        new: Any = super().__new__(cls)
        new.devices = np.array(devices, dtype=object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if new.devices.ndim != len(names) and None not in names:
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of "
                "its second argument (`axis_names`), but got devices.ndim == "
                f"{new.devices.ndim} and len(axis_names) == {len(names)}.")
        new.devices.flags.writeable = False
        new._set_axes(new.devices.shape, names, axis_types)
        return interned(new)

    device_ids = property(lambda self: np.vectorize(lambda d: d.id, otypes=[int])(self.devices))
    is_multi_process = property(lambda self: len({d.process_index for d in self.devices.flat}) > 1)
    is_on_hosts = property(lambda self: self.devices.flat[0].is_host)
    is_scalar = property(lambda self: self.devices.ndim == 0)
    local_devices = property(lambda self: [*filter(is_here, self.devices.flat)])

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh whose devices belong to this process."""
        is_local = np.vectorize(is_here, otypes=[bool])(self.devices)
        if self.devices.size and not is_local.any():
            raise ValueError("When you call `mesh.local_mesh`, the mesh must have devices of this "
                             f"process, but it has {list(self.devices.flat)}.")
        places = np.ix_(*(np.unique(place) for place in np.nonzero(is_local)))
        return Mesh(self.devices[places], self.axis_names)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        device = next(self.devices.flat, None)
        kind = device and AbstractDevice(device.device_kind, None, device.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=kind)

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """The same mesh with some of its parts replaced."""
        return Mesh(self.devices if devices is None else devices, axis_names or self.axis_names,
                    axis_types or self.axis_types)

    def _parts(self) -> tuple:
        return *super()._parts(), tuple(self.devices.flat)

    def __reduce__(self) -> tuple:
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    def __enter__(self) -> Mesh:
        held = current(self)
        held.__enter__()
        _entered.set((*_entered.get(), held))
        return self

    def __exit__(self, *error: Any) -> None:
        *outer, held = _entered.get()
        _entered.set(tuple(outer))
        held.__exit__(*error)

    def __str__(self) -> str:
        return f"Mesh({', '.join(filter(None, [self._axes(), self._types()]))})"

    def __repr__(self) -> str:
        types = f", {self._types()}" if self.axis_names else ""
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}{types})"


def is_here(device: Device) -> bool:
    """Whether a device belongs to this process."""
    return device.process_index == CPU.process_index


_entered: ContextVar[tuple] = ContextVar("minijax_meshes_entered", default=())
EMPTY = Mesh(np.empty((), object), ())
current = config.mesh


def make_mesh(axis_shapes: Sequence[int], axis_names: Sequence[str], axis_types: Any = None, *,
              devices: Sequence[Any] | None = None) -> Mesh:
    """A mesh of the first devices.

    Args:
      axis_shapes: the size of each axis.
      axis_names: the name of each axis.
      axis_types: the type of each axis; explicit, if None.
      devices: the devices; those of the platform in use, if None.

    Raises:
      ValueError: when there are too few devices.

    >>> make_mesh((1, 1), ("x", "y"))
    Mesh(axis_sizes=(1, 1), axis_names=('x', 'y'), axis_types=(Explicit, Explicit))
    """
    devices = kind_in_use().all() if devices is None else devices
    size = math.prod(axis_shapes)
    if size > len(devices):
        raise ValueError(f"Number of devices {len(devices)} must be >= the product of mesh_shape "
                         f"{tuple(axis_shapes)}")
    if axis_types is None:
        axis_types = (AxisType.Explicit,) * len(axis_names)
    return Mesh(np.array(devices[:size], object).reshape(axis_shapes), axis_names, axis_types)


class set_mesh:
    """Set the mesh that partition specs refer to: from now on, or inside of a ``with``.

    >>> with set_mesh(make_mesh((1,), ("x",))):
    ...     get_mesh()
    Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Explicit,))
    """

    def __init__(self, mesh: Mesh | AbstractMesh | None):
        if not isinstance(mesh, _Grid | None):
            raise ValueError(f"Expected mesh of type `jax.sharding.Mesh`. Got {type(mesh)}")
        self.mesh, self.before = mesh, current.value
        current.set(mesh)

    def __enter__(self) -> Mesh | AbstractMesh | None:
        current.set(self.before)
        self._inside = current(self.mesh)
        self._inside.__enter__()
        return self.mesh

    def __exit__(self, *error: Any) -> None:
        self._inside.__exit__(*error)


class use_abstract_mesh(set_mesh):
    """The same for a mesh without devices."""


def is_only_named() -> bool:
    """Whether the mesh comes from ``with mesh:``, which names axes and places no new arrays."""
    return bool(_entered.get())


def get_mesh() -> Mesh:
    """The mesh that was set, or one without axes."""
    return current.value if isinstance(current.value, Mesh) else EMPTY


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the mesh that was set."""
    return AbstractMesh((), ()) if current.value is None else current.value.abstract_mesh
