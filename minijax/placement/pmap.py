"""`pmap`: one function on many devices, each with a row of the arguments.

Builds on `api` (`map_axes`), `jit`.  Chapter 11, *Named axes and many devices*.
In JAX: `jax/_src/pmap.py`.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from minijax.transforms import api
from minijax.placement import device_put
from minijax.placement.resharding import shard_value
from minijax.util import lazily, source_info, tracebacks
from minijax import core, tree_util
from minijax.core.jaxpr import merge_lists, partition_list
from minijax.placement.meshes import Mesh, P
from minijax.placement.named_sharding import NamedSharding, is_sharded
from minijax.primitives.slicing import index_in_dim
from minijax.transforms.arguments import as_tuple, check_function
from minijax.transforms.jit import JitFunction, jit


from_local, to_local = (lazily.later("minijax.placement.gathering", name)
                        for name in ("from_local", "to_local"))


def pmap(fun: Callable, axis_name: Hashable | None = None, *, in_axes: Any = 0, out_axes: Any = 0,
         static_broadcasted_argnums: int | Iterable[int] = (),
         devices: Sequence[device_put.Device] | None = None, backend: str | None = None,
         axis_size: int | None = None, donate_argnums: int | Iterable[int] = ()) -> Callable:
    """A compiled function of one example as a function of one example for each device.

    Args:
      fun: a function of arrays and trees of arrays.
      axis_name: a name for the axis, for collectives such as `lax.psum`.
      in_axes: for each argument the axis to map over, None to pass it whole; an integer for all,
        or a tree prefix of the arguments.
      out_axes: the mapped axis of each result, None for the first device's result alone; a tree
        prefix of the results.
      static_broadcasted_argnums: positions of arguments that are not arrays.
      devices: the devices to use; all of them if None.
      backend: the devices of this backend.
      axis_size: the size of the mapped axis, to be checked.
      donate_argnums: accepted for JAX's sake; arrays are never reused while there is a reference.

    Returns:
      A function of the same arguments with the mapped axes added.

    Raises:
      TypeError: when axes are neither integers nor None.
      ValueError: on call, when the mapped axis is longer than the list of devices.

    >>> import numpy as np
    >>> pmap(lambda x, y: x * y, in_axes=(0, None))(np.ones((1, 3)), 2)
    Array([[2., 2., 2.]], dtype=float32)
    """
    check_function(fun)
    for what, axes in {"in_axes": in_axes, "out_axes": out_axes}.items():
        api.check_axes(f"pmap {what}", axes, (int,))
    if devices is not None and not devices:
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    static = as_tuple(static_broadcasted_argnums, int)

    @tracebacks.wraps(fun)
    def mapped_fun(*args: Any, **kwargs: Any) -> Any:
        if static and max(static) >= len(args):
            raise ValueError(
                f"pmapped function has static_broadcasted_argnums={static} but was called with "
                f"only {len(args)} positional argument{'s' if len(args) > 1 else ''}. All static "
                "broadcasted arguments must be passed positionally.")
        mapped = tree_util.tree_leaves(in_axes) or kwargs
        if not (mapped and any(map(np.ndim, tree_util.tree_leaves((args, kwargs))))):
            raise ValueError("pmap requires at least one argument with a mapped axis.")
        axes = in_axes
        if isinstance(axes, tuple):
            axes = tuple(axis for i, axis in enumerate(axes) if i not in static)
        return api.map_axes("pmap", fun, args, kwargs, axes, out_axes, axis_name, None, static,
                            placed, lambda x, axis: index_in_dim(x, 0, axis, keepdims=False))

    def placed(x: core.Array, axis: int, size: int) -> core.Array:
        if axis_size not in (None, size):
            raise ValueError(f"Specified axis_size {axis_size} doesn't match received "
                             f"axis_size {size}.")
        known = device_put.devices(backend) if devices is None else devices
        _check_devices(fun, size, known)
        mesh = Mesh(known[:size], (name,))
        return shard_value(x, NamedSharding(mesh, P(*[None] * (axis % x.ndim), name))) if (
            mesh.is_on_hosts) else x

    name = "_internal_pmap_axis_name" if axis_name is None else axis_name
    jitted = jit(mapped_fun, static_argnums=static, donate_argnums=donate_argnums)
    jitted.__wrapped__ = fun
    if device_put.process_count(backend) == 1:
        jitted._shardings = devices and DeviceOrder(tuple(devices))
        return jitted
    mesh = Mesh(device_put.devices(backend) if devices is None else devices, (name,))
    return JitFunction(mapped_fun, jitted._static, jitted._donated, inline=False,
                       shardings=Rows(mesh, in_axes, out_axes))


class DeviceOrder:
    """How `jit` calls a function mapped over chosen devices: arrays that are sharded over devices
    in another order are first gathered on the host; one device takes what lies on any other.
    """

    def __init__(self, devices: tuple[device_put.Device, ...]):
        self.devices = devices

    def call(self, fun: Callable, args: tuple, kwargs: dict, *_: Any) -> Any:
        """Call a function of the arguments, of which such arrays are gathered."""
        return fun(*tree_util.tree_map(self._read, (args, kwargs)))

    def _read(self, x: Any) -> Any:
        is_read = (x.is_fully_addressable and x.sharding._device_assignment != (
            self.devices[:x.sharding.num_devices])) if is_sharded(x) else (
            type(x) is core.ArrayImpl and x._committed and len(self.devices) == 1)
        return core.ArrayImpl(x._buffer, x.aval.update(sharding=None)) if is_read else x


class Rows:
    """How `jit` calls a mapped function in several processes: each passes and gets its own rows.

    Args:
      mesh: the devices.
      in_axes: the axis of the rows in each argument.
      out_axes: that in each result.
    """

    def __init__(self, mesh: Mesh, in_axes: Any, out_axes: Any):
        self.mesh, self.in_axes, self.out_axes = mesh, in_axes, out_axes

    def call(self, fun: Callable, args: tuple, kwargs: dict, names: Any,
             static: Callable[[int], set[int]] = lambda count: set()) -> Any:
        """Call a function of the rows of all processes with those of this one."""
        if any(isinstance(x, core.Tracer) for x in tree_util.tree_leaves((args, kwargs))):
            raise NotImplementedError("pmap inside of another transformation runs in one process "
                                      "only: for several there is jax.shard_map.")
        is_static = [i in static(len(args)) for i in range(len(args))]
        dynamic, rest = partition_list(args, is_static)
        axes = tuple(self.in_axes) if isinstance(self.in_axes, list) else self.in_axes
        if isinstance(axes, tuple) and len(axes) == len(args):
            axes = tuple(partition_list(axes, is_static)[0])
        rows = self.converted(from_local, tuple(dynamic), "pmap in_axes", axes)
        out = fun(tuple(merge_lists((list(rows), rest), is_static)),
                  self.converted(from_local, kwargs, "pmap in_axes", 0))
        return self.converted(to_local, out, "pmap out_axes", self.out_axes)

    def converted(self, convert: Callable, tree: Any, what: str, axes: Any) -> Any:
        """A tree of arrays from or to parts of all processes."""
        leaves, treedef = tree_util.tree_flatten(tree)
        return treedef.unflatten([
            convert(x, self.mesh, P() if axis is None else P(*[None] * (axis % max(np.ndim(x), 1)),
                                                             *self.mesh.axis_names))
            for x, axis in zip(leaves, tree_util.flatten_axes(what, treedef, axes), strict=True)])


def _check_devices(fun: Callable, size: int, devices: Sequence[device_put.Device]) -> None:
    name = source_info.function_name(fun)
    if not size:
        raise ValueError(f"pmap of {name} over an axis of size 0: there must be at least one row "
                         "to compute with. vmap maps over axes of any size.")
    if size > len(devices):
        available = "1 device is" if len(devices) == 1 else f"{len(devices)} devices are"
        raise ValueError(f"pmap of {name} over an axis of size {size} requires {size} replicas, "
                         f"one on each device, but only {available} available: {list(devices)}. "
                         "vmap maps over axes of any size on one device. To try a program for more "
                         f"devices, start it with JAX_NUM_CPU_DEVICES={size} in the environment, "
                         "or set the flag jax_num_cpu_devices: each device is then a thread.")
