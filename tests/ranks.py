"""Programs on pretended ranks: partitioned, run by threads, put together again and compared."""

import itertools

import numpy as np

from minijax import core
from minijax.core import ArrayImpl
from minijax.core.jaxpr import jaxpr_as_fun
from minijax.core.tracing import stage
from minijax.placement import engine
from minijax.placement.across import Grid
from minijax.placement.devices import CpuDevice
from minijax.placement.meshes import Mesh
from minijax.placement.partition import partition
from minijax.transforms import compiled


def mesh_of(*sizes, names="ijkl"):
    devices = [CpuDevice.numbered(i) for i in range(int(np.prod(sizes)))]
    return Mesh(np.array(devices, object).reshape(sizes), tuple(names[:len(sizes)]))


def place_of(shape, layout, grid, rank):
    """The slices of the block of a rank."""
    place = []
    for n, names in zip(shape, layout, strict=True):
        size = n // grid.count(names)
        start = grid.block(rank, names) * size
        place.append(slice(start, start + size))
    return tuple(place)


def block_of(x, layout, grid, rank):
    x = core.as_value(x)
    buffer = x._buffer[place_of(x.shape, layout, grid, rank)].copy()
    return ArrayImpl(buffer, x.aval.update(shape=buffer.shape[:x.ndim]))


def joined(blocks, layout, grid, aval):
    """The array of these blocks; those of the same place must be equal."""
    stored = core.physical_aval(aval)
    out, known = np.zeros(stored.shape, stored.dtype), np.zeros(stored.shape, bool)
    for rank, block in zip(grid.ranks, blocks, strict=True):
        place = place_of(aval.shape, layout, grid, rank)
        assert block._buffer.shape == out[place].shape, (block.aval, layout, aval)
        assert np.all(~known[place] | _equal(out[place], block._buffer)), (
            f"copies on rank {rank} and another differ")
        out[place], known[place] = block._buffer, True
    assert known.all()
    return out


def _equal(x, y):
    return (x == y) | (x != x) & (y != y)


def run(closed, mesh, layouts, args, layouts_out=None, compiled_once=False):
    """The partitioned program, and its results as NumPy arrays, put together."""
    part, grid = partition(closed, mesh, layouts, layouts_out), Grid.of(mesh)
    function = jaxpr_as_fun(part.jaxpr)
    if compiled_once:
        compiled.executable(part.jaxpr)

        def function(*blocks):
            return compiled.run_program(part.jaxpr, "f", blocks)

    def of_rank():
        rank = engine.current.get().rank
        return function(*(block_of(x, layout, grid, rank)
                          for x, layout in zip(args, layouts, strict=True)))
    outs = engine.on_threads(grid.ranks, of_rank)
    return part, [joined(blocks, layout, grid, aval) for *blocks, layout, aval in zip(
        *outs, part.layouts_out, closed.out_avals, strict=True)]


def whole(x):
    return ((),) * np.ndim(x)


def cuts(args, most=4):
    """Layouts that cut one axis of one argument, in two and in four, or in what divides it."""
    for k, x in enumerate(args):
        for axis, n in enumerate(np.shape(x)):
            counts = [m for m in (2, 4) if n and n % m == 0 and m <= most]
            counts = counts or [n] * (1 < n <= most)
            for count in counts:
                layouts = [whole(y) for y in args]
                layouts[k] = tuple(("i",) if d == axis else () for d in range(np.ndim(x)))
                yield count, layouts


def cut_alike(args, most=4):
    """Layouts that cut the same axis of all arguments that have it, of the same size."""
    shapes = [np.shape(x) for x in args]
    for axis, n in sorted({(d, n) for shape in shapes for d, n in enumerate(shape)}):
        if len([s for s in shapes if s[axis:axis + 1] == (n,)]) > 1 and n and (
                count := next((m for m in (2, n) if n % m == 0 and 1 < m <= most), 0)):
            yield count, [tuple(("i",) if d == axis and s[axis] == n else ()
                                for d in range(len(s))) for s in shapes]


def every_cut(args, most=4):
    return itertools.chain(cuts(args, most), cut_alike(args, most))


def staged(function, args):
    """The program of a function of arrays."""
    return stage(function, [core.get_aval(x) for x in args])
