"""`minijax.sharding`: meshes, partition specs, shardings.

Builds on `placement`.  Chapter 11.  In JAX: `jax/sharding.py`.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from minijax.core import ShapedArray
from minijax.placement.meshes import (AbstractDevice, AbstractMesh, AxisType, Mesh, PartitionSpec,
                                      get_abstract_mesh, get_mesh, set_mesh, use_abstract_mesh)
from minijax.placement.resharding import reshard
from minijax.placement.named_sharding import (NamedSharding, Sharding, SingleDeviceSharding,
                                              make_single_device_sharding)
from minijax.placement.shard_map import Infer
from minijax.util.tracebacks import wraps

__all__ = ["AbstractDevice", "AbstractMesh", "AxisType", "Infer", "ManualAxisType", "Mesh",
           "NamedSharding", "PartitionSpec", "Sharding", "SingleDeviceSharding", "auto_axes",
           "explicit_axes", "get_abstract_mesh", "get_mesh", "make_single_device_sharding",
           "reshard", "set_mesh", "use_abstract_mesh"]


@dataclass(frozen=True, kw_only=True)
class ManualAxisType:
    """The mesh axes along which a value varies, and those along which it is not yet summed."""

    varying: frozenset = frozenset()
    unreduced: frozenset = frozenset()
    reduced: frozenset = frozenset()


def manual_axis_type(aval: ShapedArray) -> ManualAxisType:
    """The mesh axes along which values of a type vary."""
    return ManualAxisType(varying=aval.vma)


def auto_axes(f: Callable | None = None, /, *, axes: Any = None, out_sharding: Any = None
              ) -> Callable:
    """A function in which the compiler decides shardings, and whose results are resharded.

    Args:
      f: a function of arrays.
      axes: the axes of the mesh; all, if None.
      out_sharding: as of `reshard`, for the results; or passed on call.
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @wraps(f)
    def resharded(*args: Any, out_sharding: Any = out_sharding, **kwargs: Any) -> Any:
        if out_sharding is None:
            raise TypeError("Missing required keyword argument: 'out_sharding'")
        return reshard(f(*args, **kwargs), out_sharding)
    return resharded


def explicit_axes(f: Callable | None = None, /, *, axes: Any = None, in_sharding: Any = None
                  ) -> Callable:
    """A function whose arguments are resharded.

    Args:
      f: a function of arrays.
      axes: the axes of the mesh; all, if None.
      in_sharding: as of `reshard`, for the tuple of arguments; or passed on call.
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @wraps(f)
    def resharded(*args: Any, in_sharding: Any = in_sharding, **kwargs: Any) -> Any:
        if in_sharding is None:
            raise TypeError("Missing required keyword argument: 'in_sharding'")
        return f(*reshard(args, in_sharding), **kwargs)
    return resharded
