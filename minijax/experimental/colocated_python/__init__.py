"""Python functions on the hosts of devices, which here are all of this process.

Builds on `placement`.  In JAX: `jax/experimental/colocated_python/`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.placement import devices
from minijax.placement.meshes import Mesh


def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """The CPU device beside each device, or a mesh of them: a CPU device stays what it is.

    >>> import minijax as jax
    >>> colocated_cpu_devices(jax.devices("cpu")[:1])
    [CpuDevice(id=0)]
    """
    if isinstance(mesh := devices_or_mesh, Mesh):
        beside = colocated_cpu_devices(mesh.devices.flat)
        return mesh.update(np.reshape(np.array(beside, object), mesh.devices.shape))
    return [x if x.platform == "cpu" else devices.CPU for x in devices_or_mesh]


class _Colocated:
    """A function that runs on the hosts of its arguments' devices, or of those named for it."""

    def __init__(self, fun: Callable, placed: bool = False):
        self._fun, self._placed = fun, placed
        functools.update_wrapper(self, fun)

    def specialize(self, in_specs: Any = None, out_specs_fn: Callable | None = None,
                   devices: Sequence[Any] | None = None) -> "_Colocated":
        """The function with its devices; types of arguments and results are not needed here."""
        return _Colocated(self._fun, self._placed or devices is not None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (self._placed or tree_util.tree_leaves((args, kwargs))):
            raise ValueError("No devices found. colocated_python function without input arguments "
                             "must be first specialized with devices.")
        return self._fun(*args, **kwargs)


def colocated_python(fun: Callable[..., Any]) -> Any:
    """A function that runs as Python on the hosts of its arguments' devices: in this process.

    Raises:
      ValueError: when it is called without arrays, unless it was specialized with devices.

    >>> import minijax.numpy as jnp
    >>> colocated_python(lambda x: x + 1)(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    return _Colocated(fun)


def colocated_python_class(cls: type) -> type:
    """A class of which an object is made on the host when one of its methods is first called.

    >>> import minijax.numpy as jnp
    >>> class Sum:
    ...     def __init__(self, start):
    ...         self.value = start
    ...     def add(self, x):
    ...         self.value = self.value + x
    ...         return self.value
    >>> total = colocated_python_class(Sum)(1.0)
    >>> total.add(jnp.ones(2)), total.add(jnp.ones(2))
    (Array([2., 2.], dtype=float32), Array([3., 3.], dtype=float32))
    """
    class Wrapper:
        def __init__(self, *args: Any, **kwargs: Any):
            self._made = functools.cache(lambda: cls(*args, **kwargs))

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or not callable(getattr(cls, name)):
                raise AttributeError(name)
            return _Colocated(functools.wraps(getattr(cls, name))(
                lambda *args, **kwargs: getattr(self._made(), name)(*args, **kwargs)))
    Wrapper.__name__ = cls.__name__
    return Wrapper
