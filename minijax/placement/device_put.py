"""Which devices there are, and how arrays come to them: `devices`, `device_put`, `device_get`.

Stands on `placement.devices`.  Chapter 11, *Named axes and many devices*; chapter 27.
In JAX: `jax/_src/xla_bridge.py`, `jax/_src/api.py`.
"""

import platform
import sys
from typing import Any

import numpy as np

from minijax import core, errors, tree_util
from minijax.placement.devices import (Device, DeviceArray, default_device as where_new_arrays_lie,
                                       kind_in_use, kind_named, put)
from minijax.placement.eager_dispatch import named
from minijax.placement.resharding import given, in_context
from minijax.placement.named_sharding import PlacedArray, Sharding, SingleDeviceSharding
from minijax.core.tracing import check_arg

_NO_GPU = ("Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are "
           "present. Platforms present are: cpu")


def devices(backend: str | None = None) -> list[Device]:
    """The devices of a platform; of the one in use, if none is named.

    Of CPUs there are as many as the flag `num_cpu_devices` pretends.

    Args:
      backend: ``"cpu"``, ``"gpu"`` or ``"cuda"``; ``"emulator"`` is a GPU in NumPy.

    Raises:
      RuntimeError: for another platform, and where there is no such device, with what would help.

    >>> devices("cpu")
    [CpuDevice(id=0)]
    """
    kind = kind_in_use() if backend is None else kind_named(backend)
    try:
        count = kind.count()
    except errors.JaxRuntimeError as error:
        if backend is None:
            raise
        words = _NO_GPU if backend == "gpu" else (
            f"Unknown backend {backend}. Available backends are ['cpu']")
        raise errors.with_cure(RuntimeError(words), str(error)) from error
    return [kind.numbered(i) for i in range(count)]


def local_devices(process_index: int | None = None, backend: str | None = None,
                  host_id: int | None = None) -> list[Device]:
    """The devices of one process: all of them, as there is one process.

    Args:
      process_index: 0, or None.
      backend: as of `devices`.
      host_id: the same as `process_index`, which took its place.

    Raises:
      ValueError: for a process that does not exist.
    """
    number = host_id if process_index is None else process_index
    if number not in (None, 0):
        raise ValueError(f"Unknown process_index {number}")
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    return len(devices(backend))


local_device_count = device_count


def process_index(backend: str | None = None) -> int:
    """The number of this process, of which there is one: 0."""
    devices(backend)
    return 0


def process_count(backend: str | None = None) -> int:
    """How many processes there are: 1."""
    return len(process_indices(backend))


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes: [0]."""
    return [process_index(backend)]


def host_id(backend: str | None = None) -> int:
    """The same as `process_index`, which took its place."""
    return process_index(backend)


def host_count(backend: str | None = None) -> int:
    """The same as `process_count`, which took its place."""
    return process_count(backend)


def host_ids(backend: str | None = None) -> list[int]:
    """The same as `process_indices`, which took its place."""
    return process_indices(backend)


def default_backend() -> str:
    """The platform that programs run on: ``"cpu"`` or ``"gpu"``."""
    return kind_in_use().platform


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: bool = False,
               may_alias: bool | None = None) -> Any:
    """A tree of values as arrays on a device.

    Args:
      x: a tree of arrays and numbers.
      device: a `Device`, a sharding, or a spec over the mesh that was set; a tree of them, which
        may be a prefix of `x`. The default device, if None.
      src: where it comes from, which an array knows itself.
      donate: whether arrays that are copied to another device may be given away.
      may_alias: whether the result may have the memory of `x`, which cannot change: it may.

    >>> device_put([1.0, 2])
    [Array(1., dtype=float32, weak_type=True), Array(2, dtype=int32, weak_type=True)]
    """
    def settled(leaf: Any, where: Any) -> Any:
        out = _settled(check_arg(leaf), where)
        if donate and isinstance(leaf, core.ArrayImpl) and leaf.device != out.device:
            core.donate(leaf)
        return out
    leaves, tree = tree_util.tree_flatten(x)
    places = tree_util.flatten_axes("device_put device", tree, device)
    return tree.unflatten(core.base_trace.wrap("put", lambda: [*map(settled, leaves, places)])())


def _settled(x: Any, where: Any) -> Any:
    """An array where it is to lie; if that is not said, what lies on a device stays there."""
    if isinstance(x, DeviceArray | PlacedArray) and where is None:
        return x
    where = in_context(where, ValueError("Please set a mesh via `jax.set_mesh` if a PartitionSpec "
                                         "is passed to device_put"))
    if isinstance(where, Sharding) and not isinstance(where, SingleDeviceSharding):
        return given(x, where)
    device = named(where) or where_new_arrays_lie()
    if not isinstance(x, core.ArrayImpl):
        return put(x, device)
    if device.is_host and device.id:
        return given(x, SingleDeviceSharding(device))
    if isinstance(x, PlacedArray) or x.is_literal and device.is_host:
        x = core.ArrayImpl(x._buffer, x.aval)
    lying = put(x, device)
    if where is not None and not lying._committed:
        lying = core.alias(lying)
        lying._committed = True  # it is to stay there
    return lying


def device_get(x: Any) -> Any:
    """A tree of arrays as NumPy arrays; keys, tracers and what is no array stay as they are."""
    def numbers(leaf: Any) -> Any:
        stays = isinstance(leaf, core.Tracer) or core.is_array_like(leaf) and (
            core.has_key_dtype(core.get_aval(leaf)))
        return np.asarray(leaf) if hasattr(leaf, "__array__") and not stays else leaf
    return tree_util.tree_map(numbers, x)


def block_until_ready(x: Any) -> Any:
    """Returns `x` when it is computed; on the CPU all is ready when a call returns."""
    for leaf in tree_util.tree_leaves(x):
        if isinstance(leaf, core.ArrayImpl) and core.is_donated(leaf):
            raise errors.JaxRuntimeError("INVALID_ARGUMENT: BlockHostUntilReady() called on "
                                         "deleted or donated buffer")
        if isinstance(leaf, DeviceArray):
            leaf.there().device.wait()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Returns `x`, whose numbers are here when somebody asks for them."""
    return x


def print_environment_info(return_string: bool = False) -> str | None:
    """What a report of a mistake should say of the machine; printed, or returned as text."""
    text = "\n".join([
        f"minijax: {sys.modules['minijax'].__version__}", f"numpy:  {np.__version__}",
        f"python: {sys.version}",
        f"device info: {devices()[0].device_kind}-{device_count()}, "
        f"{local_device_count()} local devices",
        f"process_count: {process_count()}", f"platform: {platform.uname()}"])
    if return_string:
        return text
    print(text)
    return None
