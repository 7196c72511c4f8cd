"""Programs of several processes, which a launcher of MPI starts: `initialize` joins the others.

Builds on `placement.mpi`.  Chapter 11, *Named axes and many devices*.
In JAX: `jax/_src/distributed.py`, `jax/_src/clusters/`.
"""

import atexit
import faulthandler
import functools
import os
import sys
from collections.abc import Sequence
from typing import Any

from minijax import errors
from minijax.util import lazily

_join_others = lazily.later("minijax.placement.processes", "join")
# How each launcher says how many processes there are, and which of them this is.
LAUNCHERS = {"mpiexec of MPICH": ("PMI_SIZE", "PMI_RANK"),
             "mpiexec of Open MPI": ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
             "srun": ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID")}


class State:
    """The processes of the program: ``jax._src.distributed.global_state`` to libraries."""

    process_id, num_processes = 0, 1
    service = preemption_sync_manager = partition_index = None
    client: Any = None  # waits for the others at the end
    coordinator_address: str | None = None


global_state = State()


def initialize(coordinator_address: str | None = None, num_processes: int | None = None,
               process_id: int | None = None, local_device_ids: int | Sequence[int] | None = None,
               cluster_detection_method: str | None = None, initialization_timeout: int = 300,
               heartbeat_timeout_seconds: int = 100, shutdown_timeout_seconds: int = 300,
               **options: Any) -> None:
    """Join the other processes of a program.

    Call it before anything else, in a program that ``python -m minijax.launch -n 4 program.py``, or
    ``mpiexec``, or ``srun``, has started; it knows from the launcher which processes there are.

    Args:
      coordinator_address: the address of the coordinator, such as ``"localhost:1234"``; MPI needs
        none.
      num_processes: the number of processes; that of the launcher, if None.
      process_id: the index of this process; that of the launcher, if None.
      initialization_timeout: the number of seconds after which a process that waits here ends.
      shutdown_timeout_seconds: the number of seconds that a process waits at its end for others.
      local_device_ids, cluster_detection_method, heartbeat_timeout_seconds, options: accepted for
        compatibility.

    Raises:
      ValueError: where one of the first three is missing or out of range, and differs from what the
        launcher says.
      RuntimeError: for the second call, and for several processes without a launcher.

    >>> initialize("localhost:1234", num_processes=1, process_id=0)
    >>> is_initialized()
    True
    >>> shutdown()
    """
    launcher, size, rank = _launched()
    address = coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS")
    if launcher:
        if num_processes not in (None, size) or process_id not in (None, rank):
            raise ValueError(f"this is process {rank} of {size}, says {launcher}, but "
                             f"jax.distributed.initialize has process_id={process_id}, "
                             f"num_processes={num_processes}. Leave them out.")
        address, num_processes, process_id = address or launcher, size, rank
    if address is None:
        raise errors.with_cure(ValueError("coordinator_address should be defined."), HOW_TO_START)
    if num_processes is None:
        raise ValueError("Number of processes must be defined.")
    if process_id is None:
        raise ValueError("The process id of the current process must be defined.")
    if not 0 <= process_id < num_processes:
        raise ValueError("process_id and num_processes must be nonnegative, with process_id < "
                         f"num_processes. Got process_id={process_id}, "
                         f"num_processes={num_processes}.")
    if is_initialized():
        raise RuntimeError("distributed.initialize should only be called once.")
    if num_processes > 1:
        if not launcher:
            raise errors.with_cure(RuntimeError(
                f"no launcher has started this process as one of {num_processes}."), HOW_TO_START)
        _join(num_processes, initialization_timeout, shutdown_timeout_seconds)
    vars(global_state).update(process_id=process_id, num_processes=num_processes,
                              coordinator_address=address)


HOW_TO_START = ("Processes find each other by MPI: start the program with `python -m "
                "minijax.launch -n 4 program.py`, mpiexec or srun, and call "
                "jax.distributed.initialize().")


def _launched() -> tuple[str, int, int]:
    """The launcher that has started this process, the number of processes, and its own."""
    for launcher, names in LAUNCHERS.items():
        if all(name in os.environ for name in names):
            size, rank = (int(os.environ[name]) for name in names)
            return launcher, size, rank
    return "", 1, 0


def _join(count: int, timeout: int, shutdown_timeout: int) -> None:
    # MPI starts without a clock; this one runs outside of Python, and prints where it waits.
    faulthandler.dump_traceback_later(timeout, exit=True)
    try:
        engine = _join_others()
    finally:
        faulthandler.cancel_dump_traceback_later()
    if engine.size != count:
        raise errors.with_cure(RuntimeError(
            f"the launcher has started {count} processes, but MPI finds {engine.size}."),
            "mpi4py belongs to another MPI than the launcher: start the program with `python -m "
            "minijax.launch`, or install mpi4py with the MPI of the launcher.")
    sys.excepthook = engine.ending_all(sys.excepthook)
    global_state.client = functools.partial(engine.finish, shutdown_timeout)
    atexit.register(global_state.client)


def is_initialized() -> bool:
    """Whether `initialize` was called.

    >>> is_initialized()
    False
    """
    return global_state.coordinator_address is not None


def shutdown() -> None:
    """Undo `initialize`: wait for the other processes, which call it, too, or end.

    >>> shutdown()
    """
    if global_state.client is not None:
        atexit.unregister(global_state.client)
        global_state.client()
    vars(global_state).update(coordinator_address=None, client=None)
