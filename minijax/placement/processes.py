"""The processes of a program: who they are, and whether they run the same.

Builds on `engine`; loaded when an array is first sharded.
Chapter 11, *Named axes and many devices*.  In JAX: `jax/_src/distributed.py`, `multihost_utils`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax import config, core, errors
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from minijax.placement import engine
from minijax.placement.devices import (CPU, CpuDevice, kind_in_use, known_by_number, processors)
from minijax.placement.meshes import Mesh
from minijax.util import caches, lazily


def own_engine() -> Any:
    """The engine of this process; that of a program of one, if it has not joined others."""
    return processors.get(CPU, engine.ALONE)


# ── Whether all processes run the same program ───────────────────────────────────────────────

TOLD = 480  # bytes of a description that other processes see


def other_process(facts: Iterable[str], told: str, group: engine.Group, where: str
                  ) -> tuple[int, str] | None:
    """A process of a group that has other facts, and how it tells of them; None where all agree."""
    said = "".join(f"{fact}\0" for fact in facts)
    mine = hashlib.blake2b(said.encode(), digest_size=16).digest()
    answers = own_engine().agree(mine + told.encode()[:TOLD].ljust(TOLD), group, where)
    return next(((rank, answer[16:].decode(errors="ignore").strip())
                 for rank, answer in zip(group, answers, strict=True) if answer[:16] != mine), None)


def check_same_program(closed: ClosedJaxpr, name: str, mesh: Mesh, layouts: Sequence[Any]) -> None:
    """Refuse a program that differs between processes, before it first runs.

    Raises:
      RuntimeError: names two of the programs.
    """
    process = own_engine()
    group = tuple(sorted({device.process_index for device in mesh.devices.flat}))
    if process.rank not in group or len(group) == 1:
        return
    info = closed.jaxpr.debug_info
    types = ", ".join(aval.str_short() for aval in closed.in_avals)
    told = f"{name} ({info.func_src_info if info else 'one operation'}) of ({types})"
    other = other_process((*_facts(closed), str(mesh.shape_tuple), repr(layouts)), told, group,
                          f"the first run of {told}")
    if other:
        raise errors.with_cure(RuntimeError(
            f"The processes run different programs. Process {process.rank} runs {told[:TOLD]}; "
            f"process {other[0]} runs {other[1]}."),
            "All processes run the same operations on global arrays, with the same shapes and "
            "constants, in the same order: let no `if` depend on jax.process_index() there.")


def _facts(closed: Any) -> Iterator[str]:
    """What a program says, in words that are the same in each process."""
    jaxpr = getattr(closed, "jaxpr", closed)
    numbers: dict[Any, int] = {}
    for v in (*jaxpr.constvars, *jaxpr.invars):
        yield f"{numbers.setdefault(v, len(numbers))}:{v.aval.str_long()}"
    for x in getattr(closed, "consts", ()):
        yield hashlib.blake2b(np.asarray(getattr(x, "_buffer", x)).tobytes()).hexdigest()
    for eqn in jaxpr.eqns:
        operands = [repr(x.val) if isinstance(x, Literal) else numbers.get(x) for x in eqn.invars]
        for v in eqn.outvars:
            numbers[v] = len(numbers)
        yield f"{eqn.primitive.name} {operands} {[v.aval.str_long() for v in eqn.outvars]}"
        for key, value in eqn.params.items():
            yield key
            yield from _facts_of_value(value)
    yield str([repr(x.val) if isinstance(x, Literal) else numbers.get(x) for x in jaxpr.outvars])


def _facts_of_value(value: Any) -> Iterator[str]:
    """What a parameter says, without the addresses of objects and the order of sets."""
    if isinstance(value, ClosedJaxpr | Jaxpr):
        yield from _facts(value)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _facts_of_value(each)
    elif isinstance(value, np.ndarray):
        yield hashlib.blake2b(value.tobytes()).hexdigest()
    elif isinstance(value, bool | int | float | complex | str | np.dtype | np.generic | None):
        yield repr(value)
    else:
        yield type(value).__name__


# ── Joining the others ───────────────────────────────────────────────────────────────────────

MOST_DEVICES = 2048  # of one process: devices are numbered as by JAX


def join() -> Any:
    """Find the other processes by MPI, and number the devices of all; returns the engine.

    Raises:
      ImportError: where there is no mpi4py, or no MPI.
      NotImplementedError: for several devices in each process, and for GPUs.
    """
    kind, devices = kind_in_use(), config.num_cpu_devices.value
    core.refuse((kind is not CpuDevice, "several processes run one program on CPUs only: start it "
                 f"with JAX_PLATFORMS=cpu, not {kind.platform}."),
                (devices > 1, "each process of a program has one device: start more processes, "
                 f"without jax_num_cpu_devices, which is {devices}."), error=NotImplementedError)
    with lazily.importing:
        from minijax.placement.mpi import MPIEngine
    engine = MPIEngine()
    caches.clear_all()  # which may have what was made for the only process
    for rank in range(engine.size):
        device = CPU if rank == engine.rank else CpuDevice()
        vars(device).update(id=rank * MOST_DEVICES, process_index=rank)
        known_by_number[CpuDevice, rank] = device
    processors[CPU] = engine
    config.num_cpu_devices.set(engine.size)
    return engine
