"""Communication as operations: reductions, gathers and exchanges across ranks, and the own rank.

The partitioner inserts them.  Builds on `engine`.  Chapter 11, *Named axes and many devices*.
In JAX: the collective operations of StableHLO.
"""

import functools
import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from minijax import errors
from minijax.core import Effect, Primitive, ShapedArray, cannot
from minijax.placement import engine
from minijax.placement.meshes import AbstractMesh
from minijax.primitives.ad_util import each_part
from minijax.primitives.axes import replaced

Names = tuple[Hashable, ...]


class Grid(NamedTuple):
    """The axes of a mesh, with its ranks in row-major order.

    >>> Grid((("x", 2), ("y", 3)), tuple(range(6))).group(4, ("x",))
    (1, 4)
    """

    axes: tuple[tuple[Hashable, int], ...]
    ranks: tuple[int, ...]

    @classmethod
    def of(cls, mesh: Any) -> Self:
        """That of a `Mesh`, of the ranks of its devices."""
        return cls(tuple(mesh.shape_tuple), tuple(device.rank for device in mesh.devices.flat))

    def count(self, names: Sequence[Hashable]) -> int:
        """The number of blocks that axes make."""
        sizes = dict(self.axes)
        return math.prod(sizes[name] for name in names)

    def coordinates(self, rank: int) -> dict[Hashable, int]:
        """The place of a rank along each axis.

        Raises:
          JaxRuntimeError: where it is not in the grid.
        """
        if rank not in self.ranks:
            raise errors.JaxRuntimeError(f"rank {rank} is not one of the mesh, {self.ranks}")
        return _coordinates(self)[rank]

    def block(self, rank: int, names: Names) -> int:
        """The number of a rank's block along some axes, the first of them major."""
        places, sizes = self.coordinates(rank), dict(self.axes)
        return functools.reduce(lambda i, name: i * sizes[name] + places[name], names, 0)

    def layout_of(self, sharding: Any, ndim: int) -> tuple[Names, ...]:
        """The axes of this grid that cut an array as a sharding does, over this mesh or another.

        Raises:
          ValueError: where there are none.
        """
        names, mesh = tuple(sharding.spec.names(ndim)), sharding.mesh
        is_abstract = isinstance(mesh, AbstractMesh)  # over the same ranks
        own = Grid(tuple(mesh.shape_tuple), self.ranks) if is_abstract else Grid.of(mesh)
        same_ranks = set(own.ranks) == set(self.ranks)
        if own == self or same_ranks and not any(names):
            return names
        if same_ranks:
            runs = [run for count in range(len(self.axes) + 1)
                    for run in itertools.permutations([name for name, _ in self.axes], count)]
            choices = [[run for run in runs if all(
                self.block(rank, run) == own.block(rank, some) for rank in self.ranks)
                and self.count(run) == own.count(some)] for some in names]
            for layout in itertools.product(*choices):
                used = list(itertools.chain(*layout))
                if len(set(used)) == len(used):
                    return layout
        raise errors.with_cure(ValueError(
            f"Received incompatible devices for jitted computation. Got {sharding} with device ids "
            f"{[*own.ranks]} beside a mesh of axes {dict(self.axes)} with device ids "
            f"{[*self.ranks]}."),
            "Reshard one of the arrays with jax.device_put(x, sharding), so that all are over one "
            "mesh.")

    def group(self, rank: int, names: Names) -> tuple[int, ...]:
        """The ranks that differ from a rank along some axes only, in the order of their blocks."""
        return _group(self, rank, names)


@functools.lru_cache(1024)
def _coordinates(grid: Grid) -> dict[int, dict[Hashable, int]]:
    sizes = dict(grid.axes)
    places = itertools.product(*map(range, sizes.values()))
    return {rank: dict(zip(sizes, place, strict=True))
            for rank, place in zip(grid.ranks, places, strict=True)}


@functools.lru_cache(1024)
def _group(grid: Grid, rank: int, names: Names) -> tuple[int, ...]:
    own, others = grid.coordinates(rank), [name for name, _ in grid.axes if name not in names]
    members = [each for each in grid.ranks
               if all(grid.coordinates(each)[name] == own[name] for name in others)]
    return tuple(sorted(members, key=lambda each: grid.block(each, names)))


class Communication(Effect):
    """Ranks wait for each other: all must come here, in the same order."""


communication = frozenset([Communication()])


# ── The primitives ───────────────────────────────────────────────────────────────────────────

Run = Callable[..., np.ndarray]  # (engine, group, *buffers, **params) -> buffer
_NO_RULE = cannot("the partitioner inserts it after all transformations.")


def _across(name: str, run: Run, shape: Callable[..., tuple], **slots: Any) -> Primitive:
    """A primitive whose meaning is a call of the engine of the rank that runs.

    Args:
      run: ``(engine, group, *buffers, **params)``, with the ranks along the axes in `names`.
      shape: ``(shape, count, **params)``: the shape of the result for so many ranks.
    """
    def impl(*buffers: np.ndarray, grid: Grid, names: Names, **params: Any) -> list[np.ndarray]:
        here = engine.current.get()
        return [run(here, grid.group(here.rank, names), *buffers, **params)]

    def abstract_eval(x: ShapedArray, *, grid: Grid, names: Names, **params: Any) -> list:
        return [x.update(shape=shape(x.shape, grid.count(names), **params))]

    return Primitive(
        name, impl=impl, abstract_eval=abstract_eval, jvp=_NO_RULE, transpose=_NO_RULE,
        batch=_NO_RULE, examples=list, **slots,
        effects=lambda **_: communication, printed=lambda *, grid, where="", **params: params,
        loop=lambda b, outs, operands, **params: b.host_call(
            functools.partial(impl, **params), operands, outs, views=True))


def _tiled(shape: tuple, axis: int, times: int) -> tuple:
    return replaced(shape, axis, shape[axis] * times)


def _joined(blocks: np.ndarray, axis: int) -> np.ndarray:
    """Blocks along a first axis, one after the other along another."""
    whole = np.moveaxis(blocks, 0, axis)
    return np.ascontiguousarray(whole.reshape(_tiled(blocks.shape[1:], axis, len(blocks))))


def _split(x: np.ndarray, axis: int, count: int) -> np.ndarray:
    """An array as blocks along a new first axis."""
    shape = (*x.shape[:axis], count, x.shape[axis] // count, *x.shape[axis + 1:])
    return np.ascontiguousarray(np.moveaxis(x.reshape(shape), axis, 0))


# The reduction of the blocks of all ranks by `op`, a key of `engine.REDUCTIONS`.
across_reduce_p = _across(
    "across_reduce", lambda here, group, x, *, op, where: here.allreduce(x, op, group, where),
    lambda shape, count, **_: shape, complex_parts=each_part)

# The blocks of all ranks, one after the other along `axis`.
across_gather_p = _across(
    "across_gather",
    lambda here, group, x, *, axis, where: _joined(here.allgather(x, group, where), axis),
    lambda shape, count, *, axis, where: _tiled(shape, axis, count),
    complex_parts=each_part, handles_keys=True)


def _exchange(here: engine.Engine, group: engine.Group, x: np.ndarray, *, split: int, axis: int,
              where: str) -> np.ndarray:
    return _joined(here.alltoall(_split(x, split, len(group)), group, where), axis)


# Part k along `split` goes to rank k; what arrives is joined along `axis`.
across_exchange_p = _across(
    "across_exchange", _exchange,
    lambda shape, count, *, split, axis, where: _tiled(
        replaced(shape, split, shape[split] // count), axis, count),
    complex_parts=each_part, handles_keys=True)

# From rank k of each pair to rank l; zeros where nothing arrives.
across_permute_p = _across(
    "across_permute",
    lambda here, group, x, *, pairs, where: here.permute(
        x, [(group[sender], group[receiver]) for sender, receiver in pairs], where),
    lambda shape, count, **_: shape, complex_parts=each_part, handles_keys=True)

# The number of the own block along the axes.
def _rank(*, grid: Grid, names: Names) -> list:
    return [np.int32(grid.block(engine.current.get().rank, names))]


rank_p = Primitive(
    "rank", impl=_rank, abstract_eval=lambda *, grid, names: [ShapedArray((), np.dtype(np.int32))],
    jvp=_NO_RULE, transpose=_NO_RULE, batch=_NO_RULE, examples=list,
    printed=lambda *, grid, names: {"names": names},
    loop=lambda b, outs, operands, *, grid, names: b.host_call(functools.partial(
        _rank, grid=grid, names=names), operands, outs))
