"""A manager of checkpoints under JAX's name: TensorStore keeps its arrays. Orbax has its own.

Builds on the public functions.  In JAX: `jax/experimental/array_serialization/serialization.py`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import device_put


def get_tensorstore_spec(path: str) -> dict[str, Any]:
    """Where TensorStore keeps an array: in a folder."""
    return {"driver": "zarr", "kvstore": {"driver": "file", "path": path}}


class GlobalAsyncCheckpointManager:
    """Writes a checkpoint at once, so that none is ever on its way."""

    def check_for_errors(self) -> None:
        """Raise what was raised while a checkpoint was written: `serialize` has raised it."""

    wait_until_finished = check_for_errors

    def serialize(self, arrays: Sequence, tensorstore_specs: Sequence[dict], *,
                  on_commit_callback: Callable[[], Any] | None = None) -> None:
        """Write arrays, and call the function."""
        import tensorstore
        for x, spec in zip(map(np.asarray, arrays), tensorstore_specs, strict=True):
            tensorstore.open(spec, create=True, delete_existing=True, dtype=x.dtype.name,
                             shape=x.shape).result().write(x).result()
        if on_commit_callback is not None:
            on_commit_callback()

    def deserialize(self, shardings: Sequence, tensorstore_specs: Sequence[dict],
                    global_shapes: Sequence | None = None, dtypes: Sequence | None = None) -> list:
        """Read arrays; one of another shape is cut, or continues with zeros."""
        import tensorstore
        arrays = [tensorstore.open(x).result().read().result() for x in tensorstore_specs]
        shapes = global_shapes or [x.shape for x in arrays]
        results = list(map(np.zeros, shapes, dtypes or [x.dtype for x in arrays]))
        for x, result in zip(arrays, results, strict=True):
            result[tuple(map(slice, x.shape))] = x[tuple(map(slice, result.shape))]
        return [device_put(*each) for each in zip(results, shardings, strict=True)]


GlobalAsyncCheckpointManagerBase = GlobalAsyncCheckpointManager
