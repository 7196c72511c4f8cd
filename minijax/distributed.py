"""Programs of several processes; minijax runs in one.

Builds on nothing.  In JAX: `jax/_src/distributed.py`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any


class State:
    """The processes of the program: ``jax._src.distributed.global_state`` to libraries."""

    process_id, num_processes = 0, 1
    service = client = preemption_sync_manager = partition_index = None
    coordinator_address: str | None = None


global_state = State()


def initialize(coordinator_address: str | None = None, num_processes: int | None = None,
               process_id: int | None = None, local_device_ids: int | Sequence[int] | None = None,
               cluster_detection_method: str | None = None, initialization_timeout: int = 300,
               heartbeat_timeout_seconds: int = 100, **options: Any) -> None:
    """Join the other processes of a program; here there can be none.

    Args:
      coordinator_address: the address of the coordinator, such as ``"localhost:1234"``.
      num_processes: the number of processes: 1.
      process_id: the index of this process: 0.
      local_device_ids, cluster_detection_method, initialization_timeout,
        heartbeat_timeout_seconds, options: accepted for compatibility.

    Raises:
      ValueError: where one of the first three is missing or out of range.
      NotImplementedError: for several processes.
      RuntimeError: for the second call.

    >>> initialize("localhost:1234", num_processes=1, process_id=0)
    >>> is_initialized()
    True
    >>> shutdown()
    """
    address = coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS")
    if address is None:
        raise ValueError("coordinator_address should be defined.")
    if num_processes is None:
        raise ValueError("Number of processes must be defined.")
    if process_id is None:
        raise ValueError("The process id of the current process must be defined.")
    if not 0 <= process_id < num_processes:
        raise ValueError("process_id and num_processes must be nonnegative, with process_id < "
                         f"num_processes. Got process_id={process_id}, "
                         f"num_processes={num_processes}.")
    if num_processes > 1:
        raise NotImplementedError(
            "minijax runs in one process: leave jax.distributed.initialize out, and let each "
            "process compute on its own, or pretend to have several devices with "
            "jax.config.update('jax_num_cpu_devices', n).")
    if is_initialized():
        raise RuntimeError("distributed.initialize should only be called once.")
    global_state.coordinator_address = address


def is_initialized() -> bool:
    """Whether `initialize` was called.

    >>> is_initialized()
    False
    """
    return global_state.coordinator_address is not None


def shutdown() -> None:
    """Undo `initialize`.

    >>> shutdown()
    """
    global_state.coordinator_address = None
