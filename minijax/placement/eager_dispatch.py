"""Eager operations on devices other than the CPU: each is a program of one equation.

Builds on `compiled`, `devices`; loaded when another device, or a mesh, is first used.
Chapter 27.  In JAX: `jax/_src/dispatch.py`, `apply_primitive`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.util import caches, lazily
from minijax import config
from minijax.core import ArrayImpl, Params, Primitive, ShapedArray
from minijax.placement import devices
from minijax.transforms.compiled import executable
from minijax.placement.meshes import Mesh, current
from minijax.placement.named_sharding import ShardedArray
from minijax.placement.sharding_propagation import (explicit_shardings as explicit_shardings,
                                                    out_shardings as out_shardings, shard_outputs)
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.tracing import stage

Operation = tuple[Primitive, tuple[ShapedArray, ...], tuple]


def evaluated(primitive: Primitive, args: Sequence[Any], params: Params
              ) -> list[ArrayImpl] | None:
    """The results of an operation on its arguments' device or mesh; None if that is the host."""
    operation = primitive, tuple([x.aval for x in args]), tuple(params.items())
    device = devices.device_of(args)
    if device.is_global or not (isinstance(current.value, Mesh) or ShardedArray in map(type, args)):
        return None if device.is_host else _on_device(operation, device, args)
    try:
        closed = _cached_program(*operation, config.trace_key())
    except TypeError:  # a parameter has no hash
        closed = _program(*operation)
    plain = [ArrayImpl(x._buffer, x.aval) if isinstance(x, ShardedArray) else x for x in args]
    with current(None):  # which would bring each operation here again
        outs = primitive.evaluate(plain, params)
    return shard_outputs(closed, args, outs)


def _on_device(operation: Operation, device: devices.Device, args: Sequence[Any]
               ) -> list[ArrayImpl]:
    try:
        run, avals = _cached_executable(*operation, device, config.trace_key())
    except TypeError:  # a parameter has no hash
        run, avals = _executable(*operation, device)
    return [*map(device.array, run(*map(device.operand, args)), avals)]


def _executable(primitive: Primitive, avals: tuple[ShapedArray, ...], params: tuple,
                device: devices.Device) -> tuple[Callable[..., list], Sequence[ShapedArray]]:
    closed = _program(primitive, avals, params)
    return executable(closed, primitive.name, device), closed.out_avals


def placement(program: ClosedJaxpr, leaves: Sequence[Any], where: Sequence[int]
              ) -> tuple[type, Sequence[Any]]:
    """The class of a program's results, and the sharding of each; leaves `where` have one."""
    return type(leaves[where[0]]), out_shardings(
        program, tuple(x.sharding if i in where else None for i, x in enumerate(leaves)))


@caches.remembered(maxsize=8192)
def _cached_executable(primitive: Primitive, avals: tuple[ShapedArray, ...], params: tuple,
                       device: devices.Device, trace_key: tuple
                       ) -> tuple[Callable[..., list], Sequence[ShapedArray]]:
    return _executable(primitive, avals, params, device)


def _program(primitive: Primitive, avals: tuple[ShapedArray, ...], params: tuple) -> ClosedJaxpr:
    return stage(lambda *args: primitive.bind_list(*args, **dict(params)), avals)


@caches.remembered(maxsize=8192)
def _cached_program(primitive: Primitive, avals: tuple[ShapedArray, ...], params: tuple,
                    trace_key: tuple) -> ClosedJaxpr:
    return _program(primitive, avals, params)


def default_device() -> devices.Device:
    """The device of new arrays, and of programs whose arguments are on the host.

    Where the mesh that was set spans several processes, all of them.
    """
    device = config.default_device.value
    if isinstance(device, devices.Device):
        return device
    if device is None and isinstance(current.value, Mesh) and current.value.is_multi_process:
        return all_processes()
    return _first(devices.kind_named(device) if device in devices.PLATFORMS else
                  devices.kind_in_use())


# Arrays of several processes, which `resharding` makes through the hook that this module is.
all_processes, placed, from_block = (lazily.later("minijax.placement.processes", name) for name in (
    "all_processes", "placed", "from_block"))


def _first(kind: type[devices.Device]) -> devices.Device:
    """The first device of a kind that belongs to this process."""
    return devices.CPU if kind is devices.CpuDevice else kind.numbered(0)


def named(device: Any) -> devices.Device | None:
    """The device named by an argument: a device, a platform, or a value with a device.

    Raises:
      ValueError: for anything else.
    """
    if isinstance(device, str):
        device = _first(devices.kind_named(device))
    device = getattr(device, "device", device)
    if device is not None and not isinstance(device, devices.Device):
        raise ValueError(f"a device is one of jax.devices(), not {device!r}")
    return device
