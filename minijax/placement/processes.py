"""Arrays and programs of all processes: each holds its blocks, and runs its part of a program.

Builds on `partition`, `resharding`; loaded when a sharding spans several processes.
Chapter 11, *Named axes and many devices*.  In JAX: `jax/_src/array.py`, XLA's SPMD partitioner.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax import config, core, errors
from minijax.core import ArrayImpl, ShapedArray
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, subjaxprs
from minijax.core.tracing import stage
from minijax.placement import engine
from minijax.placement.across import Grid
from minijax.placement.devices import (CPU, CpuDevice, Device, DeviceArray, kind_in_use,
                                       known_by_number, on_the_host, processors)
from minijax.placement.meshes import Mesh, P, current, known_devices
from minijax.placement.named_sharding import (NamedSharding, Sharding, SingleDeviceSharding,
                                              type_with_sharding)
from minijax.placement.resharding import Shard, replica_numbers, sharding_constraint_p
from minijax.placement.sharding_propagation import out_shardings, spec_of
from minijax.transforms.compiled import executable
from minijax.sharp_bits.findings import sharp_bits
from minijax.util import caches, lazily
from minijax.util.lazily import cached_property


# ── Arrays ───────────────────────────────────────────────────────────────────────────────────

class Block:
    """What this process holds of an array: the part that its device has, if it has one.

    Without a sharding it is the whole array, which all processes have.
    """

    __slots__ = ("buffer", "sharding")

    def __init__(self, buffer: np.ndarray | None, sharding: NamedSharding | None):
        self.buffer, self.sharding = buffer, sharding

    def read(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """The whole array.

        Raises:
          RuntimeError: where other processes hold the rest.
        """
        if self.buffer is None or self.sharding and not self.sharding.is_fully_replicated:
            raise errors.with_cure(RuntimeError(
                "Fetching value for `jax.Array` that spans non-addressable (non process local) "
                "devices is not possible. You can use "
                "`jax.experimental.multihost_utils.process_allgather` to print the global array or "
                "use `.addressable_shards` method of jax.Array to inspect the addressable (process "
                "local) shards."),
                "If a jitted function closes over it, pass it as an argument.")
        return self.buffer.view()


class GlobalArray(DeviceArray):
    """An array that is sharded over the devices of several processes."""

    __slots__ = ()
    memory: Block

    @property
    def sharding(self) -> Any:
        return self.there().sharding or NamedSharding(whole_mesh(), P())

    @property
    def device(self) -> Any:
        """Its sharding, as it is on several devices."""
        return self.sharding

    @property
    def told_type(self) -> ShapedArray:
        """Its type, with its sharding along explicit axes."""
        return type_with_sharding(self.aval, self.sharding)

    is_fully_addressable = property(lambda self: self.sharding.is_fully_addressable)

    @property
    def global_shards(self) -> list[Shard]:
        """The shards of all devices; those of other processes have no data."""
        parts = self.sharding.devices_indices_map(self.shape)
        numbers = replica_numbers(parts)
        return [Shard(device, index, numbers[device], self._data if device is CPU else None)
                for device, index in parts.items()]

    @property
    def addressable_shards(self) -> list[Shard]:
        """The shard of this process."""
        return [shard for shard in self.global_shards if shard.device is CPU]

    @cached_property
    def _data(self) -> ArrayImpl:
        buffer = self.there().buffer
        ndim = buffer.ndim - core.physical_aval(self.aval).ndim + self.ndim
        data = ArrayImpl(buffer, self.aval.update(shape=buffer.shape[:ndim]))
        data._committed = True
        return data

    def addressable_data(self, index: int) -> ArrayImpl:
        """The block of this process, which has one device."""
        return [shard.data for shard in self.addressable_shards][index]

    def block_until_ready(self) -> GlobalArray:
        self.there()
        return self

    def unsafe_buffer_pointer(self) -> int:
        """The address of the block of this process."""
        return self._data.unsafe_buffer_pointer()

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("to_dlpack can only pack a dlpack tensor from an array on a singular "
                          "device, but an array with a Sharding over "
                          f"{self.sharding.num_devices} devices was provided.")

    __dlpack_device__ = __dlpack__

    def _gathered(self) -> ArrayImpl:
        """All of it in each process, for checks of its numbers."""
        with sharp_bits(False):  # which would tell of this gather
            whole = resharded(self, self.sharding.update(spec=P()))
        return ArrayImpl(whole._buffer, self.aval)

    @property
    def _is_here(self) -> bool:
        """Whether this process has all of it."""
        return self.sharding.is_fully_replicated and self.there().buffer is not None

    def __repr__(self) -> str:
        if self._is_here:
            return super().__repr__()
        kind = f"dtype={self.dtype.name}" + ", weak_type=True" * self.weak_type
        return f"Array(shape={self.shape}, {kind})"

    def __str__(self) -> str:
        return super().__str__() if self._is_here else repr(self)

    def __format__(self, spec: str) -> str:
        return super().__format__(spec) if self._is_here else repr(self)


GlobalArray.__name__ = ArrayImpl.__name__  # errors call all arrays by one name


# ── Placing arrays ───────────────────────────────────────────────────────────────────────────

@caches.remembered(maxsize=4096)
def canonical(sharding: NamedSharding) -> NamedSharding:
    """One object for equal shardings."""
    return sharding


def from_block(buffer: np.ndarray | None, aval: ShapedArray, sharding: Any) -> GlobalArray:
    """An array of this type and sharding, of which this process holds one block."""
    if buffer is not None:
        if buffer.base is not None:  # which may be all of the array
            buffer = np.array(buffer, order="C")
        buffer.setflags(write=False)
    return GlobalArray(Block(buffer, canonical(sharding)), aval, all_processes())


def placed(x: ArrayImpl, sharding: Sharding) -> ArrayImpl:
    """An array with a sharding over several processes: its own block, of a value that all have.

    Raises:
      ValueError: for a device of another process, and for an array that is not all here.
    """
    if isinstance(x, GlobalArray) and (
            sharding.is_fully_addressable or isinstance(sharding, SingleDeviceSharding)):
        raise ValueError(
            "When the second argument to `device_put` is a Device, the first argument must be a "
            "fully addressable array or a non-addressable array with a single device sharding. Got "
            f"value with devices {x.sharding.device_set}")
    if isinstance(x, GlobalArray):
        if x.sharding.device_set != sharding.device_set:
            raise _other_devices(x.sharding, sharding)
        try:
            return resharded(x, sharding)
        except ValueError:  # one mesh has not the parts of the other
            x = resharded(x, x.sharding.update(spec=P()))
    index = sharding.devices_indices_map(x.shape).get(CPU)
    return from_block(None if index is None else x._buffer[index], x.aval, sharding)


def _other_devices(before: Sharding, after: Sharding) -> ValueError:
    (ids, platform), (new_ids, new_platform) = (
        ([d.id for d in s._device_assignment], s._device_assignment[0].platform.upper())
        for s in (before, after))
    return ValueError(
        "For a cross-host reshard in multi-controller JAX, input and target sharding should have "
        f"the same set of devices. Got input's device set ids: {ids} on platform {platform} and "
        f"target sharding's device set ids: {new_ids} on platform {new_platform}.\n\nThere is "
        "experimental support for cross-host transfers with different device sets, when "
        "input/output shardings have the same indices and layouts, in the TFRT TPU runtime only.")


def resharded(x: GlobalArray, sharding: Any) -> GlobalArray:
    """An array with another sharding over the same devices: a program of one equation."""
    sharding, block = canonical(sharding), x.there()
    if not x.sharding.is_equivalent_to(sharding, x.ndim):
        [block] = _resharding(x.aval, sharding)(block)
    return GlobalArray(Block(block.buffer, sharding), x.aval, all_processes())


@caches.remembered(maxsize=1024)
def _resharding(aval: ShapedArray, sharding: NamedSharding) -> Program:
    closed = stage(lambda x: [sharding_constraint_p.bind(x, sharding=sharding)], [aval])
    return Program(closed, "device_put")


# ── All processes as one device ──────────────────────────────────────────────────────────────

class AllProcesses(Device):
    """All processes: each runs its part of a program on its blocks."""

    is_host = False
    is_global = True
    array_type = GlobalArray
    passed = "{x}.there()"

    @classmethod
    def count(cls) -> int:
        return 1

    def operand(self, x: ArrayImpl) -> Block:
        if isinstance(x, GlobalArray):
            return x.there()
        if x._committed:  # to devices of this process
            devices = sorted(x.sharding.device_set, key=lambda device: device.id)
            raise errors.with_cure(ValueError(
                "Received incompatible devices for jitted computation. Got an array of shape "
                f"{x.aval.str_short()} and with device ids {[device.id for device in devices]} on "
                "platform CPU, and others on the devices of several processes."),
                "Put it on them with jax.device_put(x, sharding).")
        return Block(x._buffer, None)

    def array(self, memory: Block, aval: ShapedArray) -> GlobalArray:
        return GlobalArray(memory, aval, self)

    def compiled(self, lowered: Any) -> Program:
        return Program(lowered.jaxpr, lowered.name)

    def __str__(self) -> str:
        return "all processes"


def all_processes() -> AllProcesses:
    return AllProcesses.numbered(0)  # type: ignore[return-value]


def own_engine() -> Any:
    """The engine of this process; that of a program of one, if it has not joined others."""
    return processors.get(all_processes(), engine.ALONE)


# ── Programs ─────────────────────────────────────────────────────────────────────────────────

class Program:
    """A program that all processes run together, from their blocks of its arguments to their
    blocks of its results; partitioned once for each sharding of the arguments.
    """

    def __init__(self, closed: ClosedJaxpr, name: str):
        self.closed, self.name = closed, name
        self.parts: dict[tuple[int, ...], Callable] = {}  # by the identity of the shardings

    def __call__(self, *blocks: Block) -> list[Block]:
        key = tuple([id(x.sharding) for x in blocks])
        part = self.parts.get(key)
        if part is None:
            part = self.parts[key] = self.partitioned([x.sharding for x in blocks])
        return part(blocks)

    def partitioned(self, shardings: list[NamedSharding | None]) -> Callable:
        """The part of the program that each process runs, for arguments with these shardings."""
        with lazily.importing:
            from minijax.placement.partition import partition
        _check_constants(self.closed)
        mesh = _mesh_of(shardings, self.closed)
        grid = Grid.of(mesh)
        layouts = [((),) * aval.ndim if sharding is None else grid.layout_of(sharding, aval.ndim)
                   for sharding, aval in zip(shardings, self.closed.in_avals, strict=True)]
        labels = out_shardings(self.closed, tuple(shardings))
        with _alone():
            local = partition(self.closed, mesh, layouts)
            named = self.named(labels, local.layouts_out, mesh)
            check_same_program(self.closed, self.name, mesh, layouts)
            run, mine = executable(local.jaxpr, self.name), own_engine()
        if CPU not in mesh.devices.flat:
            return lambda blocks: [Block(None, sharding) for sharding in named]

        def on_blocks(blocks: Sequence[Block], keep: Any = shardings) -> list[Block]:
            before = engine.current.set(mine)
            try:
                with _alone() if core.Primitive.eager_dispatch else nothing:
                    outs = run(*[x.buffer for x in blocks])
            finally:
                engine.current.reset(before)
            return [Block(x, sharding) for x, sharding in zip(outs, named, strict=True)]
        return on_blocks

    def named(self, labels: Sequence[Any], layouts: Sequence[Any], mesh: Mesh
              ) -> list[NamedSharding]:
        """The shardings of the results, as the program's annotations name them."""
        outs = []
        for layout, label, aval in zip(layouts, labels, self.closed.out_avals, strict=True):
            actual = NamedSharding(mesh, spec_of(layout, NamedSharding(mesh, P())))
            if isinstance(label, NamedSharding) and actual.is_equivalent_to(label, aval.ndim):
                actual = label
            outs.append(canonical(actual))
        return outs


def _check_constants(closed: ClosedJaxpr) -> None:
    """Refuse constants of which this process has a part."""
    for x in closed.consts:
        if isinstance(x, GlobalArray) and not x.sharding.is_fully_replicated:
            raise RuntimeError(
                "Closing over jax.Array that spans non-addressable (non process local) devices is "
                "not allowed. Please pass such arrays as arguments to the function. Got jax.Array: "
                f"{x.aval.str_short()}")


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Inside, operations of a program that is partitioned, or interpreted, run in this process."""
    with current(None), on_the_host():
        yield


nothing = contextlib.nullcontext()


def _mesh_of(shardings: Sequence[NamedSharding | None], closed: ClosedJaxpr) -> Mesh:
    """The mesh that a program's arguments are cut along, or its equations, or that was set."""
    known = [s for s in shardings if s is not None]
    cut = [s.mesh for s in known if not s.is_fully_replicated]
    return next(iter([*cut, *_meshes_in(closed), *(s.mesh for s in known),
                      *([current.value] if isinstance(current.value, Mesh) else []),
                      whole_mesh()]))


def _meshes_in(closed: Any) -> list[Mesh]:
    """The meshes of the shardings that equations name."""
    meshes = []
    for eqn in closed.eqns:
        mesh = getattr(eqn.params.get("sharding"), "mesh", None)
        meshes += [mesh] if isinstance(mesh, Mesh) else []
        for inner in subjaxprs(eqn.params):
            meshes += _meshes_in(inner)
    return meshes


def whole_mesh() -> Mesh:
    """All devices along one axis."""
    return Mesh(known_devices(), ("processes",))


# ── Whether all processes run the same program ───────────────────────────────────────────────

TOLD = 480  # bytes of a program's description that others see


def check_same_program(closed: ClosedJaxpr, name: str, mesh: Mesh, layouts: Sequence[Any]) -> None:
    """Refuse a program that differs between processes, before it first runs.

    Raises:
      RuntimeError: names two of the programs.
    """
    process = own_engine()
    group = tuple(sorted({device.process_index for device in mesh.devices.flat}))
    if process.rank not in group or len(group) == 1:
        return
    digest = hashlib.blake2b(digest_size=16)
    for fact in (*_facts(closed), str(mesh.shape_tuple), repr(layouts)):
        digest.update(fact.encode() + b"\0")
    info = closed.jaxpr.debug_info
    types = ", ".join(aval.str_short() for aval in closed.in_avals)
    told = f"{name} ({info.func_src_info if info else 'one operation'}) of ({types})"
    others = process.agree(digest.digest() + told.encode()[:TOLD].ljust(TOLD), group,
                           f"the first run of {told}")
    mine = others[group.index(process.rank)]
    for rank, other in zip(group, others, strict=True):
        if other[:16] != mine[:16]:
            raise errors.with_cure(RuntimeError(
                "The processes run different programs. Process "
                f"{process.rank} runs {mine[16:].decode(errors='ignore').strip()}; process {rank} "
                f"runs {other[16:].decode(errors='ignore').strip()}."),
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
    if kind_in_use() is not CpuDevice:
        raise NotImplementedError("several processes run one program on CPUs only: start it with "
                                  f"JAX_PLATFORMS=cpu, not {kind_in_use().platform}.")
    if config.num_cpu_devices.value > 1:
        raise NotImplementedError(
            "each process of a program has one device: start more processes, without "
            f"jax_num_cpu_devices, which is {config.num_cpu_devices.value}.")
    with lazily.importing:
        from minijax.placement.mpi import MPIEngine
    engine = processors[all_processes()] = MPIEngine()
    caches.clear_all()  # which may have what was made for the only process
    for rank in range(engine.size):
        device = CPU if rank == engine.rank else CpuDevice()
        vars(device).update(id=rank * MOST_DEVICES, process_index=rank)
        known_by_number[CpuDevice, rank] = device
    config.num_cpu_devices.set(engine.size)
    return engine
