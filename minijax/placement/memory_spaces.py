"""The memory spaces of arrays.

In JAX: `jax/memory.py`.
"""

import enum
from types import SimpleNamespace


class MemorySpace(enum.Enum):
    """A device's own memory, the host's, or either."""

    Device, Host, Any = range(1, 4)

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


memory = SimpleNamespace(Space=MemorySpace)
KINDS = {MemorySpace.Device: "device", MemorySpace.Host: "pinned_host"}  # of shardings


def space_of_type(aval: object) -> MemorySpace:
    """The memory of values of a type: the device's, as all are computed there."""
    return MemorySpace.Device
