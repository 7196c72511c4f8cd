"""Arrays over several devices: a process holds the blocks of its own devices.

Builds on `spmd`, `resharding`; loaded when an array is first sharded.
Chapter 11, *Named axes and many devices*.  In JAX: `jax/_src/array.py`.
"""

import collections
import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from minijax import core, errors
from minijax.core import ArrayImpl, ShapedArray, tracing
from minijax.placement.devices import CPU, Device, DeviceArray
from minijax.placement.meshes import P, interned, is_here
from minijax.placement.named_sharding import NamedSharding, Sharding, SingleDeviceSharding
from minijax.placement.resharding import Shard, sharding_constraint_p, shards
from minijax.placement.spmd import Blocks, Program, default_sharding
from minijax.sharp_bits.findings import sharp_bits
from minijax.util import caches


class ClassOfArrays(type):
    """To users all arrays have one class: with it, a class of arrays is equal to the others.

    Tables have an entry for each, by a hash of its own.
    """

    def __eq__(cls, other: object) -> bool:
        return isinstance(other, type) and issubclass(other, ArrayImpl)

    __hash__ = type.__hash__


class ShardedArray(DeviceArray, metaclass=ClassOfArrays):
    """An array over the devices of a sharding."""

    __slots__ = ()
    memory: Blocks

    sharding = property(lambda self: self.there().sharding)

    @property
    def device(self) -> Any:
        """Its device, if there is one; otherwise its sharding."""
        where = self.sharding
        return where._device if isinstance(where, SingleDeviceSharding) else where

    is_fully_addressable = property(lambda self: self.sharding.is_fully_addressable)

    @property
    def global_shards(self) -> list[Shard]:
        """The shards of all devices; those of other processes have no data."""
        return shards(self, lambda device: self._data_on(device) if is_here(device) else None)

    @property
    def addressable_shards(self) -> list[Shard]:
        """The shards of this process."""
        return [shard for shard in self.global_shards if is_here(shard.device)]

    def addressable_data(self, index: int) -> ArrayImpl:
        """The block of one of the devices of this process."""
        return self.addressable_shards[index].data

    def _data_on(self, device: Device) -> ArrayImpl:
        """The block of a device, as an array on it."""
        if isinstance(self.sharding, SingleDeviceSharding):
            return self
        buffer = self.there().buffers[device.rank]
        ndim = buffer.ndim - core.physical_aval(self.aval).ndim + self.ndim
        return _on_device(buffer, self.aval.update(shape=buffer.shape[:ndim]), device)

    def block_until_ready(self) -> Self:
        self.there()
        return self

    def __dlpack__(self, **options: Any) -> Any:
        if self.sharding.num_devices > 1:
            raise BufferError("to_dlpack can only pack a dlpack tensor from an array on a singular "
                              "device, but an array with a Sharding over "
                              f"{self.sharding.num_devices} devices was provided.")
        return super().__dlpack__(**options)

    def _gathered(self) -> ArrayImpl:
        """All of it in each process."""
        if self.is_fully_addressable:
            return self
        with sharp_bits(False):  # which would tell of this gather, though it is meant
            whole = resharded(self, self.sharding.update(spec=P()))
        return ArrayImpl(whole._buffer, self.aval.update(sharding=None))

    @property
    def _is_here(self) -> bool:
        """Whether this process has all of it."""
        return self.there().is_whole or self.is_fully_addressable

    _is_unreduced = property(lambda self: bool(self.sharding.spec.unreduced))
    _is_shown = property(lambda self: self._is_here and not self._is_unreduced)

    def __repr__(self) -> str:
        if self._is_shown:
            return super().__repr__()
        kind = f"dtype={self.dtype.name}" + ", weak_type=True" * self.weak_type
        where = f", sharding={self.sharding}" if self._is_unreduced else ""
        return f"Array(shape={self.shape}, {kind}{where})"

    def __str__(self) -> str:
        return super().__str__() if self._is_shown else repr(self)

    def __format__(self, spec: str) -> str:
        return super().__format__(spec) if self._is_shown else repr(self)


ShardedArray.__name__ = ArrayImpl.__name__  # errors call all arrays by one name


def spans_processes(x: Any) -> bool:
    """Whether a value is an array over several processes."""
    return isinstance(x, ShardedArray) and not x.is_fully_addressable


def _argument(args: Sequence[Any], place: int, of: Any) -> str:
    """What an argument is called: by its function, or by its place in an operation."""
    names = getattr(of, "arg_names", ())[-len(args):]
    name = names[place] if place < len(names) else (
        "xyz"[place] if len(args) <= 3 else f"args[{place}]")
    return f"argument {name} of {getattr(of, 'func_name', '') or getattr(of, 'name', 'a function')}"


class AllDevices(Device):
    """All devices of the program as one: each runs its part of a program on its blocks."""

    is_host = False
    is_global = True
    array_type = ShardedArray
    passed = "{x}.there()"

    count = classmethod(lambda cls: 1)

    def operands(self, args: Sequence[Any], of: Any) -> Iterator[Blocks]:
        """The blocks of arguments.

        Raises:
          ValueError: for two arguments on different devices.
        """
        ids = {i: sorted(device.id for device in x.sharding.device_set)
               for i, x in enumerate(args) if x._committed}
        first, *others = ids or [0]
        differs = [i for i in others if ids[i] != ids[first]]
        is_on_one = ids and not isinstance(args[first], ShardedArray)  # but the program is on more
        if differs or is_on_one:
            given = [f"{_argument(args, i, of)} with shape {args[i].aval.str_short()} and with "
                     f"device ids {ids[i]} on platform CPU" for i in (first, *differs[:1])]
            raise errors.with_cure(ValueError(
                "Received incompatible devices for jitted computation. Got "
                f"{' and '.join(given) if differs else given[0] + ', and others on several'}"),
                "Put both on the same devices with jax.device_put(x, sharding).")
        return map(self.operand, args)

    def operand(self, x: ArrayImpl) -> Blocks:
        if isinstance(x, ShardedArray):
            return x.there()
        return Blocks(collections.defaultdict(lambda: x._buffer), None)

    def array(self, memory: Blocks, aval: ShapedArray) -> ShardedArray:
        return ShardedArray(memory, aval, self)

    def new_array(self, x: ArrayImpl) -> ArrayImpl:
        return placed(x, default_sharding())

    def compiled(self, lowered: Any) -> Program:
        return Program(lowered.jaxpr, lowered.name)

    def __str__(self) -> str:
        return "all devices"


def all_devices() -> AllDevices:
    return AllDevices.numbered(0)  # type: ignore[return-value]


# ── Placing arrays ───────────────────────────────────────────────────────────────────────────

def from_blocks(buffers: dict[int, np.ndarray], aval: ShapedArray, sharding: Any) -> ShardedArray:
    """An array of this type and sharding, from the blocks of the devices of this process."""
    owned = {rank: np.array(x, order="C") if x.base is not None else x  # a view of all of it
             for rank, x in buffers.items()}
    for x in owned.values():
        x.setflags(write=False)
    return ShardedArray(Blocks(owned, interned(sharding)), aval.update(sharding=sharding),
                        all_devices())


def _on_device(buffer: np.ndarray, aval: ShapedArray, device: Device) -> ArrayImpl:
    """An array on one CPU device."""
    if device is not CPU:
        here = {device.rank: buffer} if is_here(device) else {}
        return from_blocks(here, aval, SingleDeviceSharding(device))
    out = ArrayImpl(buffer, aval)
    out._committed = True
    return out


def placed(x: ArrayImpl, sharding: Sharding) -> ArrayImpl:
    """An array with a sharding over several devices, or on another CPU device than the first.

    Raises:
      ValueError: for an array that is not all here, and a device or other devices.
    """
    if isinstance(x, ShardedArray):
        if not x.is_fully_addressable:
            _check_is_moved(x.sharding, sharding)
        if x.sharding.device_set == sharding.device_set:
            with contextlib.suppress(ValueError):  # one mesh has not the parts of the other
                return resharded(x, sharding)
        x = x._gathered()
    if isinstance(sharding, SingleDeviceSharding):
        return _on_device(x._buffer, x.aval.update(sharding=None), sharding._device)
    parts = sharding.addressable_devices_indices_map(x.shape)
    is_whole = sharding.is_fully_replicated
    return from_blocks({device.rank: x._buffer if is_whole else x._buffer[index]
                        for device, index in parts.items()}, x.aval, sharding)


def _check_is_moved(before: Sharding, after: Sharding) -> None:
    """Refuse to move an array of several processes to other devices than theirs."""
    if after.is_fully_addressable or isinstance(after, SingleDeviceSharding):
        raise ValueError("When the second argument to `device_put` is a Device, the first argument "
                         "must be a fully addressable array or a non-addressable array with a "
                         f"single device sharding. Got value with devices {before.device_set}")
    if before.device_set != after.device_set:
        (ids, platform), (new_ids, new_platform) = (
            ([d.id for d in s._device_assignment], s._device_assignment[0].platform.upper())
            for s in (before, after))
        raise ValueError(
            "For a cross-host reshard in multi-controller JAX, input and target sharding should "
            f"have the same set of devices. Got input's device set ids: {ids} on platform "
            f"{platform} and target sharding's device set ids: {new_ids} on platform "
            f"{new_platform}.\n\nThere is experimental support for cross-host transfers with "
            "different device sets, when input/output shardings have the same indices and "
            "layouts, in the TFRT TPU runtime only.")


def resharded(x: ShardedArray, sharding: Any) -> ShardedArray:
    """An array with another sharding over the same devices: a program of one equation."""
    sharding, blocks = interned(sharding), x.there()
    if not x.sharding.is_equivalent_to(sharding, x.ndim):
        [blocks] = _resharding(x.aval, sharding)(blocks)
    return ShardedArray(Blocks(blocks.buffers, sharding), x.aval.update(sharding=sharding),
                        all_devices())


@caches.remembered(maxsize=1024)
def _resharding(aval: ShapedArray, sharding: NamedSharding) -> Program:
    closed = tracing.stage(lambda x: [sharding_constraint_p.bind(x, sharding=sharding)], [aval])
    return Program(closed, "device_put")
