"""What managers of checkpoints have in common, under JAX's name; Orbax has one of its own.

Builds on nothing.  In JAX: `jax/experimental/array_serialization/serialization.py`.
"""

import abc
from collections.abc import Callable
from typing import Any


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """What a manager of checkpoints does."""

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise what was raised while a checkpoint was written."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Wait until it is written."""

    @abc.abstractmethod
    def serialize(self, arrays: Any, tensorstore_specs: Any, *, on_commit_callback: Callable
                  ) -> None:
        """Write arrays."""

    @abc.abstractmethod
    def deserialize(self, shardings: Any, tensorstore_specs: Any, global_shapes: Any = None,
                    dtypes: Any = None) -> Any:
        """Read arrays."""
