"""`minijax.sharding`: meshes, partition specs, shardings.

Builds on `placement`.  Chapter 11.  In JAX: `jax/sharding.py`.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from minijax.core import ShapedArray, Tracer
from minijax.placement.meshes import (AbstractDevice, AbstractMesh, AxisType, Mesh, PartitionSpec,
                                      current, get_abstract_mesh, get_mesh, set_mesh,
                                      use_abstract_mesh)
from minijax.placement.resharding import reshard, shard_value, with_sharding_constraint
from minijax.placement.named_sharding import (NamedSharding, Sharding, SingleDeviceSharding,
                                              is_sharded, make_single_device_sharding)
from minijax.placement.shard_map import Infer
from minijax.tree_util import tree_map
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


@contextlib.contextmanager
def _axes_of_type(kind: AxisType, axes: Any, name: str) -> Iterator[Any]:
    """Inside, these axes of the mesh that was set, or all, have another type."""
    mesh = current.value
    if mesh is None:
        raise ValueError("Context mesh cannot be empty. Please use `jax.set_mesh` API to enter "
                         f"into a mesh context when using `{name}` API.")
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else axes
    if unknown := [n for n in names if n not in mesh.axis_names]:
        raise KeyError(unknown[0])
    inside = mesh.update(axis_types=tuple(
        kind if n in names else mesh.type_of_axis[n] for n in mesh.axis_names))
    with current(inside):
        yield inside


def _over(mesh: Any, xs: Any) -> Any:
    """A tree whose arrays lie as they do, over a mesh with other types of axes."""
    def cast(x: Any) -> Any:
        if isinstance(x, Tracer) and (own := x.aval.explicit_sharding) is not None:
            return shard_value(x, own.of_type(AxisType.Auto, [
                name for name in own.spec.mesh_axes() if name in mesh.auto_axes]))
        where: Any = x.sharding if is_sharded(x) else None
        is_same = isinstance(where, NamedSharding) and where.mesh.axis_names == mesh.axis_names
        return shard_value(x, where.update(mesh=mesh)) if is_same else x
    return tree_map(cast, xs)


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
        if (mesh := current.value) is None:
            return f(*args, **kwargs)
        with _axes_of_type(AxisType.Auto, axes, "auto_axes") as inside:
            outs = f(*_over(inside, args), **kwargs)
        return (with_sharding_constraint if inside == mesh else reshard)(outs, out_sharding)
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
        mesh = current.value
        with _axes_of_type(AxisType.Explicit, axes, "explicit_axes") as inside:
            outs = f(*reshard(_over(inside, args), in_sharding), **kwargs)
        return _over(mesh, outs)
    return resharded
