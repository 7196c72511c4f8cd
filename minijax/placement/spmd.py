"""One program for all devices: each runs it on its blocks of the arguments, and sends to others.

Several devices of one process are threads; those of several processes are processes of MPI.
Builds on `partition`.  Chapter 11, *Named axes and many devices*.  In JAX: XLA's SPMD partitioner.
"""

import contextlib
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax import config, errors
from minijax.core import ShapedArray
from minijax.core.jaxpr import ClosedJaxpr, subjaxprs
from minijax.placement import devices, engine, processes
from minijax.placement.across import Communication, Grid
from minijax.placement.meshes import (AbstractMesh, AxisType, Mesh, Names, P, current, interned,
                                      is_here)
from minijax.placement.named_sharding import (NamedSharding, Sharding, SingleDeviceSharding,
                                              is_sharded)
from minijax.transforms.compiled import executable, is_interpreted
from minijax.util import context, lazily

_partition = lazily.later("minijax.placement.partition", "partition")


class Blocks:
    """What this process holds of an array: the parts on its devices.

    Args:
      buffers: the part on each device, by the device's rank.
      sharding: None for an array of which each device has the whole.
    """

    __slots__ = ("buffers", "sharding")

    def __init__(self, buffers: dict[int, np.ndarray], sharding: Sharding | None):
        self.buffers, self.sharding = buffers, sharding

    @property
    def is_whole(self) -> bool:
        """Whether each block is the whole array, and there is one here."""
        return self.sharding is None or bool(self.buffers) and self.sharding.is_fully_replicated

    def read(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """The whole array.

        Raises:
          RuntimeError: where other processes hold the rest.
        """
        where = self.sharding
        if where is None or self.is_whole:
            return self.buffers[min(self.buffers, default=0)].view()
        if not where.is_fully_addressable:
            raise errors.with_cure(RuntimeError(
                "Fetching value for `jax.Array` that spans non-addressable (non process local) "
                "devices is not possible. You can use "
                "`jax.experimental.multihost_utils.process_allgather` to print the global array or "
                "use `.addressable_shards` method of jax.Array to inspect the addressable (process "
                "local) shards."),
                "If a jitted function closes over it, pass it as an argument.")
        whole = np.empty(shape, dtype)
        for device, index in where.devices_indices_map(shape).items():
            whole[index] = self.buffers[device.rank]
        return whole


# ── Programs ─────────────────────────────────────────────────────────────────────────────────

class Program:
    """A program that all devices run together, from their blocks of its arguments to their blocks
    of its results; partitioned once for each sharding of the arguments.
    """

    def __init__(self, closed: ClosedJaxpr, name: str):
        self.closed, self.name = closed, name
        self.parts: dict[tuple[int, ...], Callable] = {}  # by the identity of the shardings

    def __call__(self, *blocks: Blocks) -> list[Blocks]:
        key = tuple(map(id, map(_sharding_of, blocks)))
        if (part := self.parts.get(key)) is None:
            part = self.parts[key] = self.partitioned([x.sharding for x in blocks])
        return part(blocks)

    def partitioned(self, shardings: list[Sharding | None]) -> Callable:
        """The part of the program that this process runs, for arguments with these shardings."""
        _check_constants(self.closed)
        mesh = _mesh_of(shardings, self.closed)
        grid = Grid.of(mesh)
        layouts = [sharding and grid.layout_of(sharding, aval.ndim)
                   for sharding, aval in zip(shardings, self.closed.in_avals, strict=True)]
        layouts_out = [layout_of_type(aval, mesh, grid) for aval in self.closed.out_avals]
        is_free = all(layout is None for layout in layouts_out)
        program = ShapedArray.shardings.without_shardings(self.closed)
        with _alone():
            local = context.with_values({engine.current: processes.own_engine()}, _partition,
                                        program, mesh, layouts, None if is_free else layouts_out)
            named = self.named(shardings, local.layouts_out, mesh)
            processes.check_same_program(self.closed, self.name, mesh, local.layouts_in)
            device = devices.first_here(type(mesh.devices.flat[0]))
            run = executable(local.jaxpr, self.name, device)
        has_callbacks = calls_python(local.jaxpr)
        if has_callbacks or is_interpreted(local.jaxpr, device):
            run = _alone()(run)
        meets = has_callbacks or any(isinstance(x, Communication) for x in local.jaxpr.effects)
        is_cut = any(map(any, [*local.layouts_in, *local.layouts_out]))
        parts = {i: NamedSharding(mesh, P(*layout)).addressable_devices_indices_map(aval.shape)
                 for i, (sharding, layout, aval) in enumerate(zip(
                     shardings, local.layouts_in, self.closed.in_avals, strict=True))
                 if sharding is None and any(layout)}
        ranks = [device.rank for device in mesh.devices.flat if is_here(device)]
        results = _on_ranks(run, ranks, meets, is_cut) if ranks else lambda _: [{} for _ in named]

        def on_blocks(blocks: Sequence[Blocks], keep: Any = shardings) -> list[Blocks]:
            operands = list(map(_buffers_of, blocks))
            for i, places in parts.items():
                operands[i] = {device.rank: np.array(operands[i][device.rank][index], order="C")
                               for device, index in places.items()}
            return list(map(Blocks, results(operands), named))
        return on_blocks

    def named(self, shardings: Sequence[Sharding | None], layouts: Sequence[Any], mesh: Mesh
              ) -> list[Sharding]:
        """The shardings of the results, as an argument or an annotation of the program names them.
        """
        jaxpr, outs = self.closed.jaxpr, []
        names: dict[Any, Any] = dict(zip(jaxpr.invars, shardings, strict=True)) | {
            v: sharding for eqn in jaxpr.eqns for v in eqn.outvars
            if isinstance(getattr(sharding := eqn.params.get("sharding"), "mesh", None), Mesh)}
        device = next((s for s in (*shardings, default_sharding())
                       if isinstance(s, SingleDeviceSharding) and s.mesh == mesh), None)
        meshes = [mesh, *_meshes_in(self.closed)]
        for layout, x in zip(layouts, jaxpr.outvars, strict=True):
            actual = NamedSharding(mesh, spec_of(layout, mesh))
            if (typed := x.aval.explicit_sharding) is not None:
                actual = NamedSharding(_concrete(typed.mesh, meshes), typed.spec)
            name = names.get(x) or device or actual
            outs.append(interned(name if actual.is_equivalent_to(name, x.aval.ndim) else actual))
        return outs


_buffers_of, _sharding_of = map(operator.attrgetter, ("buffers", "sharding"))
Buffers = dict[int, np.ndarray]  # by rank


def _on_ranks(run: Callable[..., list], ranks: Sequence[int], meets: bool, is_cut: bool
              ) -> Callable[[list[Buffers]], list[Buffers]]:
    """A function that runs the program of each rank of this process on its buffers.

    Args:
      meets: whether ranks wait for each other.
      is_cut: whether ranks have different blocks.
    """
    own = processes.own_engine()
    engines = [own] if own.ranks_are_processes else list(map(engine.ThreadEngine, ranks))

    def of_rank(here: engine.Engine, operands: list[Buffers]) -> list[np.ndarray]:
        before = engine.current.set(here)
        try:
            return run(*map(operator.itemgetter(here.rank), operands))
        finally:
            engine.current.reset(before)

    def on_all(operands: list[Buffers]) -> list[Buffers]:
        outs = (engine.on_threads(ranks, lambda: of_rank(engine.current.get(), operands))
                if meets else [of_rank(here, operands) for here in engines])
        return [dict(zip(ranks, x, strict=True)) for x in zip(*outs, strict=True)]

    def on_first(operands: list[Buffers]) -> list[Buffers]:
        return [dict.fromkeys(ranks, x) for x in of_rank(engines[0], operands)]
    return on_first if len(engines) == 1 or not (meets or is_cut) else on_all


def calls_python(closed: ClosedJaxpr) -> bool:
    """Whether a program calls a function of the user."""
    return any("callback" in eqn.params or any(map(calls_python, subjaxprs(eqn.params)))
               for eqn in closed.eqns)


def _check_constants(closed: ClosedJaxpr) -> None:
    """Refuse constants of which this process has a part."""
    for x in closed.consts:
        if is_sharded(x) and not x.is_fully_addressable and not x.is_fully_replicated:
            raise RuntimeError("Closing over jax.Array that spans non-addressable (non process "
                               "local) devices is not allowed. Please pass such arrays as "
                               f"arguments to the function. Got jax.Array: {x.aval.str_short()}")


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Inside, operations of a program that is partitioned, or interpreted, run in this process."""
    with current(None), devices.on_the_host():
        yield


# ── Shardings ────────────────────────────────────────────────────────────────────────────────

def layout_of_type(aval: ShapedArray, mesh: Mesh, grid: Grid) -> tuple[Names, ...] | None:
    """The layout that a type says; None where the partitioner chooses."""
    if aval.explicit_sharding is not None:
        return grid.layout_of(aval.explicit_sharding, aval.ndim)
    return ((),) * aval.ndim if mesh.are_all_axes_explicit else None


def spec_of(layout: Sequence[Names], mesh: Mesh) -> P:
    """The spec of a layout; it has an entry for each axis where the mesh has explicit axes."""
    parts = list(layout)
    while parts and not parts[-1] and AxisType.Explicit not in mesh.axis_types:
        parts.pop()
    return P(*parts)


def _mesh_of(shardings: Sequence[Sharding | None], closed: ClosedJaxpr) -> Mesh:
    """The mesh that a program's arguments are cut along, or its equations, or that was set."""
    known = [s for s in shardings if s is not None]
    cut = [s.mesh for s in known if not s.is_fully_replicated]
    return [*cut, *_meshes_in(closed), *(s.mesh for s in known), default_sharding().mesh][0]


def _concrete(mesh: AbstractMesh, meshes: Sequence[Mesh]) -> Mesh:
    """A mesh with these axes: one of these meshes, or one of the devices of the first of them."""
    return next((each for each in meshes if each.abstract_mesh == mesh), None) or Mesh(
        meshes[0].devices.reshape(mesh.axis_sizes), mesh.axis_names, mesh.axis_types)


def _meshes_in(closed: Any) -> Iterator[Mesh]:
    """The meshes of the shardings that equations name."""
    for eqn in closed.eqns:
        if isinstance(mesh := getattr(eqn.params.get("sharding"), "mesh", None), Mesh):
            yield mesh
        for inner in subjaxprs(eqn.params):
            yield from _meshes_in(inner)


def default_sharding() -> Sharding:
    """The default device; otherwise the whole of an array over the mesh that was set, or over all
    devices.
    """
    device = config.default_device.value
    if isinstance(device, devices.Device) and not device.is_global:
        return SingleDeviceSharding(device)
    mesh = current.value
    return NamedSharding(mesh if isinstance(mesh, Mesh) else
                         Mesh(devices.kind_in_use().all(), ("processes",)), P())
