"""Devices in the order of a mesh, which here is their own order.

Builds on `placement.meshes`.  In JAX: `jax/experimental/mesh_utils.py`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.placement.devices import kind_in_use


def create_device_mesh(mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, *,
                       contiguous_submeshes: bool = False, allow_split_physical_axes: bool = False
                       ) -> np.ndarray:
    """An array of devices for `Mesh`.

    Args:
      mesh_shape: the size of each axis.
      devices: the devices; those of the platform in use, if None.
      contiguous_submeshes, allow_split_physical_axes: accepted for compatibility; they concern
        the connections between TPUs.

    Raises:
      ValueError: when the number of devices is not the product of the sizes.

    >>> create_device_mesh((1, 1)).shape
    (1, 1)
    """
    devices = kind_in_use().all() if devices is None else devices
    if len(devices) != np.prod(mesh_shape, dtype=int):
        raise ValueError(f"Number of devices {len(devices)} must equal the product of mesh_shape "
                         f"{tuple(mesh_shape)}")
    return np.array(devices, object).reshape(mesh_shape)
