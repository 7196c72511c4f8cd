"""Backends: platforms of devices, with the interface of XLA's clients.

Builds on `device_put`.  In JAX: `jax/_src/xla_bridge.py`.
"""

import dataclasses
import functools
from typing import Any

from minijax import errors
from minijax.util import caches
from minijax.placement import device_put, resharding
from minijax.placement.devices import Device
from minijax.placement.eager_dispatch import default_device as get_default_device  # noqa: F401
from minijax.transforms.jit import clear_caches

clear_in_memory_compilation_cache = clear_caches


@dataclasses.dataclass(frozen=True)
class Memory:
    """A memory that a device reads, of a kind; of the host there is one, which has all names."""

    device: Device
    kind: str

    platform = property(lambda self: self.device.platform)
    process_index = property(lambda self: self.device.process_index)

    def addressable_by_devices(self) -> list[Device]:
        return [self.device]


def memory(device: Device, kind: str = "device") -> Memory:
    """A device's memory of a kind.

    Raises:
      JaxRuntimeError: for a kind that it does not have.

    >>> memory(get_default_device()).kind
    'device'
    """
    kinds = {x.kind: x for x in memories(device)}
    if kind not in kinds:
        raise errors.JaxRuntimeError(
            f"INVALID_ARGUMENT: Could not find memory addressable by device {device.device_kind}. "
            f"Device {device.device_kind} can address the following memory kinds: "
            f"{', '.join(kinds)}. Got memory kind: {kind}")
    return kinds[kind]


def memories(device: Device) -> list[Memory]:
    """A device's memories: under each name that the array's sharding may have for it.

    >>> [memory.kind for memory in memories(get_default_device())]
    ['device', 'pinned_host', 'unpinned_host']
    """
    return [Memory(device, kind) for kind in ("device", "pinned_host", "unpinned_host")]


class Backend:
    """A platform: what it is called, and its devices."""

    runtime_type = "minijax"

    def __init__(self, platform: str):
        self.platform = self.platform_version = platform

    def device_count(self) -> int:
        return len(self.devices())

    def devices(self) -> list[Device]:
        return device_put.devices(self.platform)

    def process_index(self) -> int:
        return device_put.process_index()

    def live_arrays(self) -> list[Any]:
        return resharding.live_arrays(self.platform)

    local_device_count, local_devices, host_id = device_count, devices, process_index


_of_platform = functools.cache(Backend)


def get_backend(platform: str | None = None) -> Backend:
    """The platform of this name, or the one in use.

    Raises:
      RuntimeError: where there is none of that name.

    >>> get_backend().platform, get_backend() is get_backend("cpu")
    ('cpu', True)
    """
    return _of_platform(device_put.devices(platform)[0].platform)


def backends() -> dict[str, Backend]:
    """The platforms that there are: the CPU, and the one in use.

    >>> list(backends())
    ['cpu']
    """
    return {backend.platform: backend for backend in (get_backend("cpu"), get_backend())}


def backend_xla_version(platform: str | None = None) -> None:
    """The version of XLA: None, as in JAX for a platform without one."""


def clear_backends() -> None:
    """Forget everything that was traced and compiled.

    >>> clear_backends()
    """
    clear_caches()


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Have a cache cleared by `jax.clear_caches`, too.

    Args:
      cache: with a method `cache_clear`.
      for_what: what it is for.

    >>> register_backend_cache(functools.cache(abs), "absolute values")
    """
    caches.cleared_by(cache.cache_clear)


def register_backend_factory(name: str, *_: Any, **__: Any) -> None:
    """JAX's way to plug in a client of XLA.

    Raises:
      NotImplementedError: always; there is no such client.
    """
    raise NotImplementedError(f"the platform {name!r} cannot be added: minijax compiles for CPUs "
                              "and NVIDIA's GPUs itself, and has no clients of XLA to plug in")
