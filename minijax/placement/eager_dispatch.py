"""Eager operations on devices other than the CPU: each is a program of one equation.

Builds on `compiled`, `devices`; loaded when another device, or a mesh, is first used.
Chapter 27.  In JAX: `jax/_src/dispatch.py`, `apply_primitive`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from minijax.util import caches, lazily
from minijax import config
from minijax.core import ArrayImpl, Avals, Params, Primitive, ShapedArray, tracing
from minijax.placement import devices
from minijax.transforms.compiled import executable
from minijax.placement.meshes import Mesh, current, is_only_named

def evaluated(primitive: Primitive, args: Sequence[Any], params: Params) -> list[ArrayImpl] | None:
    """The results of an operation on its arguments' device; None if that is the host."""
    device = devices.device_of(args)
    if device.is_host:
        return None
    operation = (primitive, tuple([x.aval for x in args]), tuple(params.items()), device,
                 config.trace_key())
    try:
        run, avals = _executable(*operation)
    except TypeError:  # a parameter has no hash
        run, avals = _executable.__wrapped__(*operation)  # type: ignore[attr-defined]
    return [*map(device.array, run(*device.operands(args, primitive)), avals)]


@caches.remembered(maxsize=8192)
def _executable(primitive: Primitive, avals: tuple[ShapedArray, ...], params: tuple,
                device: devices.Device, trace_key: tuple) -> tuple[Callable[..., list], Avals]:
    closed = tracing.stage(lambda *args: primitive.bind_list(*args, **dict(params)), avals)
    return executable(closed, primitive.name, device), closed.out_avals


def default_device() -> devices.Device:
    """The device of new arrays, and of programs whose arguments are on the host.

    Where a mesh was set, and for another CPU device than the first, they are all devices.
    """
    device = config.default_device.value
    if isinstance(device, devices.Device):
        is_other = device.is_host and device is not devices.first_here(type(device))
        return all_devices() if is_other else device
    if device is None and isinstance(current.value, Mesh) and current.value.is_on_hosts and (
            not is_only_named()):
        return all_devices()
    return devices.first_here(devices.kind_named(device) if device in devices.PLATFORMS else
                              devices.kind_in_use())


# Arrays over several devices, which `resharding` makes through the hook that this module is.
all_devices, placed, from_blocks = (lazily.later("minijax.placement.sharded_arrays", name)
                                    for name in ("all_devices", "placed", "from_blocks"))


def named(device: Any) -> devices.Device | None:
    """The device named by an argument: a device, a platform, or a value with a device.

    Raises:
      ValueError: for anything else.
    """
    if isinstance(device, str):
        device = devices.first_here(devices.kind_named(device))
    device = getattr(device, "device", device)
    if device is not None and not isinstance(device, devices.Device):
        raise ValueError(f"a device is one of jax.devices(), not {device!r}")
    return device
