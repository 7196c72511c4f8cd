"""The devices, and moving arrays between them: `devices`, `device_put`, `device_get`.

Builds on `placement.devices`.  Chapter 11, *Named axes and many devices*; chapter 27.
In JAX: `jax/_src/xla_bridge.py`, `jax/_src/api.py`.
"""

import platform
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import core, errors, tree_util
from minijax.placement.devices import (CPU, Device, DeviceArray, first_here, kind_in_use,
                                       kind_named, put)
from minijax.placement.eager_dispatch import default_device, named
from minijax.placement.memory_spaces import KINDS, MemorySpace
from minijax.placement.resharding import canonicalize_sharding, moving, shard_value
from minijax.placement.named_sharding import (NamedSharding, Sharding, SingleDeviceSharding,
                                              is_sharded)
from minijax.core.tracing import check_arg
from minijax.primitives import layouts
from minijax.util import lazily

_NO_GPU = ("Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are "
           "present. Platforms present are: cpu")


def devices(backend: str | None = None) -> list[Device]:
    """The devices of a platform; of the one in use, if none is named.

    The flag `num_cpu_devices` sets the number of CPU devices.

    Args:
      backend: ``"cpu"``, ``"gpu"`` or ``"cuda"``; ``"emulator"`` is a GPU in NumPy.

    Raises:
      RuntimeError: for another platform, and where there is no such device, with advice.

    >>> devices("cpu")
    [CpuDevice(id=0)]
    """
    if backend is None:
        return kind_in_use().all()
    kind = kind_named(backend)
    try:
        return kind.all()
    except errors.JaxRuntimeError as error:
        message = _NO_GPU if backend == "gpu" else (
            f"Unknown backend {backend}. Available backends are ['cpu']")
        raise errors.with_cure(RuntimeError(message), str(error)) from error


def local_devices(process_index: int | None = None, backend: str | None = None,
                  host_id: int | None = None) -> list[Device]:
    """The devices of one process.

    Args:
      process_index: its index; that of this process, if None.
      backend: as of `devices`.
      host_id: the older name of `process_index`.

    Raises:
      ValueError: for a process that does not exist.
    """
    number = host_id if process_index is None else process_index
    if number is not None and number not in process_indices(backend):
        raise ValueError(f"Unknown process_index {number}")
    return [device for device in devices(backend)
            if device.process_index == (CPU.process_index if number is None else number)]


def device_count(backend: str | None = None) -> int:
    """The number of devices of all processes."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process."""
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """The index of this process."""
    devices(backend)
    return CPU.process_index


def process_count(backend: str | None = None) -> int:
    """The number of processes."""
    return len(process_indices(backend))


def process_indices(backend: str | None = None) -> list[int]:
    """The indices of all processes."""
    return sorted({device.process_index for device in devices(backend)})


host_id, host_count, host_ids = process_index, process_count, process_indices  # older names


def default_backend() -> str:
    """The platform that programs run on: ``"cpu"`` or ``"gpu"``."""
    return kind_in_use().platform


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: bool = False,
               may_alias: bool | None = None) -> Any:
    """A tree of values as arrays on a device.

    Args:
      x: a tree of arrays and numbers.
      device: a `Device`, a sharding, a spec over the current mesh, or a memory space; a tree of
        them, which may be a prefix of `x`. The default device, if None.
      src: accepted for JAX's sake; an array knows its device.
      donate: whether arrays that are copied to another device are deleted.
      may_alias: whether an array that is there already is its own result; None: it may be.

    Raises:
      ValueError: for another place, and for `donate` with `may_alias`.

    >>> device_put([1.0, 2])
    [Array(1., dtype=float32, weak_type=True), Array(2, dtype=int32, weak_type=True)]
    """
    if may_alias and donate:
        raise ValueError("may_alias and donate cannot be True at the same time.")

    def put_leaf(leaf: Any, place: Any) -> Any:
        if isinstance(place, str):
            raise ValueError("`jax.device_put` only accepts `None`, `jax.sharding.Sharding`, "
                             "`jax.Device`, `Format`, `jax.memory.Space` or a pytree of these "
                             f"values. Received invalid value: {place}")
        out = _put(check_arg(leaf), place, type(leaf))
        out = core.alias(out) if may_alias is False and out is leaf else out
        if donate and isinstance(leaf, core.ArrayImpl) and leaf.device != out.device:
            core.donate(leaf)
        return out
    leaves, tree = tree_util.tree_flatten(x)
    places = tree_util.flatten_axes("device_put device", tree, device)
    return tree.unflatten(core.base_trace.wrap("put", lambda: [*map(put_leaf, leaves, places)])())


def _put(x: Any, place: Any, kind: type) -> Any:
    """An array on a device, or with a sharding; without one, an array on a device stays there."""
    if isinstance(x, DeviceArray) and place is None:
        return x
    if isinstance(place, MemorySpace):
        if place is MemorySpace.Any or isinstance(x, core.Tracer):  # whose type has no memory
            return x
        place = x.sharding.with_memory_kind(KINDS[place])
    place = canonicalize_sharding(place, lambda _: ValueError(
        "Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to device_put"))
    if is_sharded(x) and x.sharding == place:
        return x
    if isinstance(x, core.Tracer) and place is not None and (
            x._concrete() is not None or not isinstance(place, NamedSharding)):
        return _put_tracer(x, place)
    if isinstance(place, Sharding) and not isinstance(place, SingleDeviceSharding):
        if 1 < len({device.process_index for device in place.device_set}) == process_count():
            _check_equal_everywhere(x, kind)
        return shard_value(x, place)
    device = named(place) or default_device()
    if not isinstance(x, core.ArrayImpl):
        return put(x, device)
    if device.is_host and device is not first_here(type(device)) or is_sharded(x):
        return shard_value(x, SingleDeviceSharding(device))
    x = core.ArrayImpl(x._buffer, x.aval) if x.is_literal and device.is_host else x
    out = put(x, device)
    if place is not None and not out._committed:
        out = core.alias(out)
        out._committed = True
    return out


def _put_tracer(x: core.Tracer, place: Any) -> Any:
    """A tracer's value with a sharding; the cotangent returns to where its value is committed."""
    sharding = place if isinstance(place, Sharding) else SingleDeviceSharding(
        named(place) or default_device())
    sharding.check_fits(x.aval, evenly=False)
    value = x._concrete()
    src = value.sharding if value is not None and value._committed else None
    return device_put_p.bind(x, device=sharding, src=src)


class DevicePut(core.Primitive):
    """Evaluated, it moves the array; a program runs on the devices of its arguments."""

    def evaluate(self, args: Sequence[Any], params: core.Params) -> list[core.ArrayImpl]:
        [x], where = args, params["device"]
        if where is not None:
            return [_put(x, where, type(x))]
        on_host = core.ArrayImpl(x._buffer, x.aval.update(sharding=None)) if (
            isinstance(x, DeviceArray)) else x
        return [put(on_host, default_device())]


device_put_p = moving(
    DevicePut, "device_put", back=lambda device, src: {"device": src, "src": device},
    sharding=lambda ins, outs, **_: layouts.elementwise(ins, outs),
    examples=lambda: [core.Example((np.array([0.5, -1.0], np.float32),),
                                   {"device": SingleDeviceSharding(CPU), "src": None})])

_assert_equal = lazily.later("minijax.placement.gathering", "assert_equal")


def _check_equal_everywhere(x: Any, kind: type) -> None:
    """Refuse a value that differs between the processes that put it on their devices together."""
    if not isinstance(x, core.Tracer) and not is_sharded(x):
        _assert_equal(core.as_value(x)._buffer,
                      f"{kind} passed to device_put is not the same on each process. Make sure "
                      f"you are passing the same value of {kind} on each process.")


def device_get(x: Any) -> Any:
    """A tree of arrays as NumPy arrays; keys, tracers and other objects stay as they are."""
    def to_numpy(leaf: Any) -> Any:
        stays = isinstance(leaf, core.Tracer) or core.is_array_like(leaf) and (
            core.has_key_dtype(core.get_aval(leaf)))
        return np.asarray(leaf) if hasattr(leaf, "__array__") and not stays else leaf
    return tree_util.tree_map(to_numpy, x)


def block_until_ready(x: Any) -> Any:
    """Returns `x` when it is computed; on the CPU it is computed when a call returns."""
    for leaf in tree_util.tree_leaves(x):
        if isinstance(leaf, core.ArrayImpl) and core.is_donated(leaf):
            raise errors.JaxRuntimeError("INVALID_ARGUMENT: BlockHostUntilReady() called on "
                                         "deleted or donated buffer")
        if isinstance(leaf, DeviceArray) and not leaf.home.is_global:
            leaf.there().device.wait()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Returns `x`, which is copied to the host when its elements are read.

    Leaves of other classes that have a method of this name are asked to copy themselves.
    """
    for leaf in tree_util.tree_leaves(x):
        if not isinstance(leaf, core.Array) and hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x


def print_environment_info(return_string: bool = False) -> str | None:
    """What a bug report should say of the machine; printed, or returned as text."""
    version = getattr(sys.modules.get("minijax.as_jax.internals"), "version", "")  # JAX's
    text = "\n".join([
        *(f"{name}{version}" for name in ("jax:    ", "jaxlib: ") if version),
        f"minijax: {sys.modules['minijax'].__version__}", f"numpy:  {np.__version__}",
        f"python: {sys.version}",
        f"device info: {devices()[0].device_kind}-{device_count()}, "
        f"{local_device_count()} local devices",
        f"process_count: {process_count()}", f"platform: {platform.uname()}"])
    if return_string:
        return text
    print(text)
    return None
