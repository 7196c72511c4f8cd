"""How cut axes go through an operation: which axes of operands and results are the same.

The slot `sharding` of a block names a function here.  Builds on `axes`; loaded when first needed.
Chapter 11, *Named axes and many devices*.  In JAX: XLA's partitioner, Shardy's sharding rules.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from minijax.core import Avals
from minijax.primitives.axes import Axes, Shape, axis_names, without

if TYPE_CHECKING:
    from minijax.primitives.windows import Numbers

Label = Hashable | None  # of an axis; None: it must be whole
Labels = Sequence[Label]


class Factor(NamedTuple):
    """A part of an axis that a reshape splits or joins: an axis is a tuple of them, major first."""

    label: Hashable
    size: int


class Alignment(NamedTuple):
    """Which axes of an operation are the same: those may be cut alike, into blocks.

    Args:
      operands, results: a label for each axis of each operand and result.
      reduced: of labels that results lack: the operation that joins the results of blocks.
      sizes: the parameters that are sizes of axes, and the labels of these axes.
      start: of an operand that the operation updates, and of which only one rank has the value:
        its number, and the scalar that the others have instead.
      counted: the label of an axis along which results are numbers in order.
      taken: of a gather by rows: the axis of the operand along which the indices select, and the
        axis of the result that they make; their constants may be a permutation.
      keeps: whether results of the whole program have the cuts that operands had along axes that
        the operation needs whole.
      typed: where labels do not tell the sharding of a result's type: the name of the rule in
        `placement.explicit_shardings`.
      words: of JAX's refusals: "whole" of operands that are sharded along an axis that must be
        whole, "differ" of operands that are sharded in different ways, "verb" of results whose
        size along a sharded axis is not divisible.
    """

    operands: Sequence[Labels]
    results: Sequence[Labels]
    reduced: Mapping[Hashable, str] = {}
    sizes: Mapping[str, Labels] = {}
    start: tuple[int, Any] | None = None
    counted: Label = None
    taken: tuple[int, int] | None = None
    keeps: bool = True
    typed: str = ""
    words: Mapping[str, str] = {}


class OnBlocks(NamedTuple):
    """The rule of an operation that says itself how it runs on blocks, as one with programs does.

    Args:
      rule: ``(partitioner, primitive, blocks, **params) -> blocks``; see `placement.partition`.
      program: of an operation that only runs this program.
    """

    rule: Callable[..., list] | None
    program: Any = None


def on_blocks(rule: Callable[..., list]) -> Callable[..., OnBlocks]:
    """The slot `sharding` of an operation with this rule, whatever its operands are."""
    return lambda ins, outs, **_: OnBlocks(rule)


# ── Elementwise, and along axes ──────────────────────────────────────────────────────────────

def elementwise(ins: Avals, outs: Avals, **_: Any) -> Alignment:
    """Operands broadcast: an axis of size one is whole."""
    operands, results = ([_paired(x.shape, outs[0].shape) for x in some] for some in (ins, outs))
    return Alignment(operands, results)


def _paired(shape: Shape, like: Shape) -> Labels:
    return [d if n == like[d] else None for d, n in enumerate(shape)]


@on_blocks
def each_alone(ranks: Any, p: Any, blocks: list, **params: Any) -> list:
    """Results are the operands."""
    return ranks.bound(p, blocks, [x.layout for x in blocks], **params)


def along(ins: Avals, outs: Avals, *, name: str, removed: bool = False, **params: Any) -> Alignment:
    """All axes but those in the parameter `name`, which results may lack."""
    axes = params[name]
    axes = tuple(d % ins[0].ndim for d in ((axes,) if isinstance(axes, int) else axes))
    labels = [None if d in axes else d for d in range(ins[0].ndim)]
    results = without(labels, axes) if removed else labels
    return Alignment([labels] * len(ins), [results] * len(outs))


def sorting(ins: Avals, outs: Avals, *, dimension: int, **_: Any) -> Alignment:
    """All axes but the one sorted along; as in XLA, a vector comes whole."""
    return along(ins, outs, name="dimension", dimension=dimension)._replace(keeps=ins[0].ndim > 1)


def reduction(ins: Avals, outs: Avals, *, op: str, axes: Axes) -> Alignment:
    labels = range(ins[0].ndim)
    return Alignment([labels], [without(labels, axes)], dict.fromkeys(axes, op))


def stacked(ins: Avals, outs: Avals, *, rank: int = 2, **_: Any) -> Alignment:
    """The leading axes of all; the last ones of the first operand, `rank` many, are whole."""
    labels = [[d if d < ins[0].ndim - rank else None for d in range(x.ndim)] for x in (*ins, *outs)]
    return Alignment(labels[:len(ins)], labels[len(ins):])


def transform(ins: Avals, outs: Avals, *, fft_lengths: Shape, **_: Any) -> Alignment:
    return stacked(ins, outs, rank=len(fft_lengths))


def iota(ins: Avals, outs: Avals, *, dtype: Any, shape: Shape, dimension: int) -> Alignment:
    """Numbers that its dtype holds exactly begin with those of the ranks before."""
    is_exact = dtype.kind in "iu" or (
        dtype.kind == "f" and shape[dimension] < 1 / np.finfo(dtype).eps)
    labels = [d if d != dimension or is_exact else None for d in range(len(shape))]
    return Alignment([], [labels], sizes={"shape": labels}, counted=dimension)


# ── Shapes ───────────────────────────────────────────────────────────────────────────────────

def transpose(ins: Avals, outs: Avals, *, permutation: Axes) -> Alignment:
    return Alignment([range(ins[0].ndim)], [permutation])


def broadcast_in_dim(ins: Avals, outs: Avals, *, shape: Shape, broadcast_dimensions: Axes
                     ) -> Alignment:
    """An axis of the same size is the same; a new one has a label of its own."""
    labels = [d if n == shape[d] else None
              for n, d in zip(ins[0].shape, broadcast_dimensions, strict=True)]
    results = [d if d in labels or d not in broadcast_dimensions else ("new", d)
               for d in range(len(shape))]
    return Alignment([labels], [results], sizes={"shape": results})


def reshape(ins: Avals, outs: Avals, *, new_sizes: Shape, dimensions: None) -> Alignment:
    """Axes are split into their common factors, as far as they have any."""
    labels, results = factors(ins[0].shape, new_sizes)
    return Alignment([labels], [results], sizes={"new_sizes": results}, typed="reshaped")


def factors(shape: Shape, new: Shape) -> tuple[list[tuple], list[tuple]]:
    """For each axis of two shapes of one size its factors, major first.

    >>> factors((4, 3), (2, 6))
    ([(Factor(label=0, size=2), Factor(label=1, size=2)), (Factor(label=2, size=3),)], \
[(Factor(label=0, size=2),), (Factor(label=1, size=2), Factor(label=2, size=3))])
    """
    sides: tuple[list[list], list[list]] = [[] for _ in shape], [[] for _ in new]
    if 0 in shape:
        return [()] * len(shape), [()] * len(new)
    rest, axis = [list(shape), list(new)], [0, 0]
    for number in itertools.count():
        for side in (0, 1):
            while axis[side] < len(rest[side]) and rest[side][axis[side]] == 1:
                axis[side] += 1
        if axis[0] == len(shape) or axis[1] == len(new):
            break
        left, right = (rest[side][axis[side]] for side in (0, 1))
        factor = Factor(number, math.gcd(left, right))
        for side in (0, 1):
            sides[side][axis[side]].append(factor)
            rest[side][axis[side]] //= factor.size
        if factor.size not in (left, right):  # what follows is split otherwise on both sides
            break
    return [*map(tuple, sides[0])], [*map(tuple, sides[1])]


def squeeze(ins: Avals, outs: Avals, *, dimensions: Axes) -> Alignment:
    labels = range(ins[0].ndim)
    return Alignment([labels], [without(labels, dimensions)])


def slice(ins: Avals, outs: Avals, *, start_indices: Shape, limit_indices: Shape,
          strides: Shape | None) -> Alignment:
    """An axis that is taken whole."""
    labels = [d if (start, limit, step) == (0, n, 1) else None for d, (start, limit, n, step) in
              enumerate(zip(start_indices, limit_indices, ins[0].shape,
                            strides or itertools.repeat(1), strict=False))]
    return Alignment([labels], [labels], sizes={"limit_indices": labels})


def pad(ins: Avals, outs: Avals, *, padding_config: tuple) -> Alignment:
    labels = [None if any(sizes) else d for d, sizes in enumerate(padding_config)]
    return Alignment([labels, []], [labels])


def stack(ins: Avals, outs: Avals, *, axis: int) -> Alignment:
    labels = range(ins[0].ndim)
    return Alignment([labels] * len(ins), [[*labels[:axis], None, *labels[axis:]]])


def tile(ins: Avals, outs: Avals, *, reps: Shape) -> Alignment:
    labels = [d if times == 1 else None for d, times in enumerate(reps)]
    return Alignment([labels], [labels])


def dynamic_slice(ins: Avals, outs: Avals, *, slice_sizes: Shape) -> Alignment:
    labels = _paired(slice_sizes, ins[0].shape)
    return Alignment([labels, *[[]] * (len(ins) - 1)], [labels], sizes={"slice_sizes": labels})


def dynamic_update_slice(ins: Avals, outs: Avals) -> Alignment:
    labels = _paired(ins[1].shape, ins[0].shape)
    return Alignment([labels, labels, *[[]] * (len(ins) - 2)], [labels], typed="updated")


def bitcast(ins: Avals, outs: Avals, **_: Any) -> Alignment:
    """An axis of the parts of an element comes last, or goes."""
    labels = [[d if d < min(ins[0].ndim, outs[0].ndim) else None for d in range(x.ndim)]
              for x in (ins[0], outs[0])]
    return Alignment(labels[:1], labels[1:])


# ── Products ─────────────────────────────────────────────────────────────────────────────────

def dot_general(ins: Avals, outs: Avals, *, dimension_numbers: Any, **_: Any) -> Alignment:
    """Contracted axes leave partial products."""
    left, right, result = axis_names(dimension_numbers, ins[0].ndim, ins[1].ndim)
    op = "or" if ins[0].dtype == bool else "add"
    return Alignment([left, right], [result], dict.fromkeys(dimension_numbers[0][0], op),
                     typed="contracted")


def convolution(ins: Avals, outs: Avals, *, dimension_numbers: Any, feature_group_count: int,
                batch_group_count: int, **_: Any) -> Alignment:
    """The batch; without groups also features, of which those of the input leave partial sums."""
    whole: list[Label] = [None] * (ins[0].ndim - 2)
    plain = feature_group_count * batch_group_count == 1
    batch = "batch" if batch_group_count == 1 else None
    inputs, outputs = ("in", "out") if plain else (None, None)
    orders = [batch, inputs, *whole], [outputs, inputs, *whole], [batch, outputs, *whole]
    labels = [[order[spec.index(d)] for d in range(len(spec))]
              for order, spec in zip(orders, dimension_numbers, strict=True)]
    return Alignment(labels[:2], labels[2:], {"in": "add"} if plain else {}, typed="convolved")


# ── Windows ──────────────────────────────────────────────────────────────────────────────────

def windowed(ins: Avals, outs: Avals, *, window_dimensions: Shape, window_strides: Shape,
             padding: Any = None, base_dilation: Any = None, window_dilation: Any = None, **_: Any
             ) -> Alignment:
    """An axis along which windows have one element."""
    rank = len(window_dimensions)
    ones = (1,) * rank
    labels = [d if around == (0, 0) and set(sizes) == {1} else None
              for d, (around, *sizes) in enumerate(zip(
                  padding or ((0, 0),) * rank, window_dimensions, window_strides,
                  base_dilation or ones, window_dilation or ones, strict=True))]
    return Alignment([labels[:x.ndim] + [None] * (x.ndim - rank) for x in ins],
                     [labels[:x.ndim] + [None] * (x.ndim - rank) for x in outs])


def overlapped(ins: Avals, outs: Avals, *, shape: Shape, **params: Any) -> Alignment:
    aligned = windowed(ins, outs, **params)
    return aligned._replace(sizes={"shape": aligned.results[0]})


# ── Gathers and scatters ─────────────────────────────────────────────────────────────────────

def _roles(numbers: Numbers, shape: Shape, sizes: Shape, indices: int, rank: int
           ) -> tuple[list[Label], list[Label], list[Label]]:
    """The labels of the operand, of the indices, and of the result or the updates."""
    window, hidden, _, batching, paired = map(tuple, numbers)
    rows: list[Label] = [("row", d) for d in range(indices - 1)]
    operand: list[Label] = [None if d in hidden or n != size else d
                            for d, (n, size) in enumerate(zip(shape, sizes, strict=True))]
    for d, k in zip(batching, paired, strict=True):
        operand[d] = rows[k]
    of_window = iter(without(operand, (*hidden, *batching)))
    of_rows = iter(rows)
    taken = [next(of_window) if d in window else next(of_rows) for d in range(rank)]
    return operand, [*rows, None], taken


def gather(ins: Avals, outs: Avals, *, dimension_numbers: Numbers, slice_sizes: Shape, **_: Any
           ) -> Alignment:
    """The axes of the indices, and those that each window has whole."""
    x, indices = ins
    operand, rows, result = _roles(dimension_numbers, x.shape, slice_sizes, indices.ndim,
                                   outs[0].ndim)
    whole = [label if n == size else None
             for label, n, size in zip(operand, x.shape, slice_sizes, strict=True)]
    parts = [d for d, (n, size) in enumerate(zip(x.shape, slice_sizes, strict=True)) if n != size]
    is_rows = len(parts) == 1 and slice_sizes[parts[0]] == 1 and indices.ndim == 2
    return Alignment([operand, rows], [result], sizes={"slice_sizes": whole},
                     taken=(parts[0], result.index(("row", 0))) if is_rows else None,
                     typed="gathered")


# What joins updates that were made apart, and what an operand is that only one rank updates.
_JOINS = {"add": ("add", 0), "sub": ("add", 0), "mul": ("mul", 1), "min": ("min", None),
          "max": ("max", None)}


def scatter(ins: Avals, outs: Avals, *, op: str, dimension_numbers: Numbers, **_: Any) -> Alignment:
    """The same; if the operation allows, each rank makes its own updates."""
    x, indices, updates = ins
    window = iter([updates.shape[d] for d in sorted(dimension_numbers[0])])
    apart = {*dimension_numbers[1], *dimension_numbers[3]}
    sizes = tuple(1 if d in apart else next(window) for d in range(x.ndim))
    operand, rows, taken = _roles(dimension_numbers, x.shape, sizes, indices.ndim, updates.ndim)
    free = [label for label in rows if label is not None and label not in operand]
    join, other = _JOINS.get(op, ("", None))
    if not join:
        rows, taken = ([None if x in free else x for x in labels] for labels in (rows, taken))
    return Alignment([operand, rows, taken], [operand], dict.fromkeys(free, join) if join else {},
                     start=None if other is None else (0, other), typed="scattered")
