"""Where arrays live: `devices`, `device_put`, `device_get`; here all of them live on one CPU.

Stands on `derivatives`.  Chapter 11, *Named axes and many devices*.
In JAX: `jax/_src/xla_bridge.py`, `jax/_src/api.py`.
"""

import dataclasses
from typing import Any, ClassVar

import numpy as np

from minijax import config, core, tree_util
from minijax.core import Array
from minijax.stage import check_arg


@dataclasses.dataclass(frozen=True)
class Device:
    """A processor.  Arrays live on the first; the flag `num_cpu_devices` pretends that more exist.

    >>> devices()
    [CpuDevice(id=0)]
    """

    id: int = 0
    platform: ClassVar[str] = "cpu"
    device_kind: ClassVar[str] = "cpu"
    process_index: ClassVar[int] = 0

    def __repr__(self) -> str:
        return f"CpuDevice(id={self.id})"

    def __str__(self) -> str:
        return f"TFRT_CPU_{self.id}"


def devices(backend: str | None = None) -> list[Device]:
    """All devices: one, or as many as the flag `num_cpu_devices` says.

    Raises:
      RuntimeError: for a backend other than the CPU.
    """
    if backend not in (None, "cpu"):
        raise RuntimeError(f"Unknown backend {backend}. Available backends are ['cpu']")
    return [Device(i) for i in range(max(1, config.num_cpu_devices.value))]


local_devices = devices


def device_count(backend: str | None = None) -> int:
    return len(devices(backend))


local_device_count = device_count


def default_backend() -> str:
    return "cpu"


def device_put(x: Any, device: Any = None, **_: Any) -> Any:
    """A tree of values as arrays on the device.

    >>> device_put([1.0, 2])
    [Array(1., dtype=float32, weak_type=True), Array(2, dtype=int32, weak_type=True)]
    """
    return tree_util.tree_map(lambda leaf: _settled(check_arg(leaf)), x)


def _settled(x: Array) -> Array:
    if isinstance(x, core.ArrayImpl) and x.is_literal:
        return core.ArrayImpl(x._buffer, x.aval)
    return x


def device_get(x: Any) -> Any:
    """A tree of arrays as NumPy arrays; what is no array stays as it is."""
    return tree_util.tree_map(
        lambda leaf: np.asarray(leaf) if hasattr(leaf, "__array__") else leaf, x)


def block_until_ready(x: Any) -> Any:
    """Returns `x`: what is computed here is ready when the call returns."""
    return x
