"""Collectives: the index along a named axis, reductions over it, and exchanges along it.

Builds on `core`, `shape`, `dynamic_slice`, `gather`.  Chapter 11, *Named axes*.
In JAX: `jax/_src/lax/parallel.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax import core, errors, tree_util
from minijax.core import Array, Axis, Outs, Primitive, ShapedArray, cannot
from minijax.primitives import axes, comparison, slots
from minijax.primitives.convert import convert_element_type_p
from minijax.primitives.ad_util import batch_to, in_blocks, merged, reduce_sum_p, transposed, zeros
from minijax.primitives.dynamic_slice import dynamic_index_in_dim
from minijax.primitives.gather_scatter import index_take
from minijax.primitives.named_axes import (LINEAR, checks_vma, collective, find_axis, names_of,
                                           psum_invariant_p, pvary, sum_of_copies, varies_no_more)
from minijax.primitives.reduce import reduce_max_p, reduce_min_p
from minijax.primitives.shape import broadcast_in_dim, iota_p, reshape, transpose


# ── The index along the axis ─────────────────────────────────────────────────────────────────

axis_index_p = collective(
    "axis_index", type_of=lambda vma: ShapedArray((), np.int32, vma=vma),
    printed=lambda *, axis_name, vma: {"axis_name": axis_name},
    jvp=cannot("it takes no arguments"), transpose=cannot("it takes no arguments"),
    batch=lambda axis, args, dims, *, axis_name, vma: (
        [iota_p.bind(dtype=np.dtype(np.int32), shape=(axis.size,), dimension=0)], [0]))


def axis_index(axis_name: Any) -> Any:
    """The index of this example along a named axis, or in the grid of several.

    Raises:
      NameError: when no enclosing `vmap` binds the name.

    >>> import minijax as jax
    >>> jax.vmap(lambda x: x * axis_index('i'), axis_name='i')(np.arange(3, 6))
    Array([ 0,  4, 10], dtype=int32)
    """
    flat: Any = None
    for name in names_of(axis_name):
        axis = find_axis(name, "axis_index")
        index = axis_index_p.bind(axis_name=name, vma=frozenset([name] * checks_vma(axis)))
        flat = index if flat is None else flat * axis.size + index
    return np.int32(0) if flat is None else flat


def axis_size(axis_name: Any) -> int:
    """The size of a named axis, or of the grid of several.

    Raises:
      NameError: when no enclosing `vmap` binds the name.
    """
    return math.prod(find_axis(name).size for name in names_of(axis_name))


# ── Groups of examples ───────────────────────────────────────────────────────────────────────

@dataclass(frozen=True)
class Groups:
    """A partition of the indices along a named axis: a collective acts within each group.

    Args:
      name: of an axis of devices.
      lists: the indices of each group.
    """

    name: Any
    lists: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(axis_name: Any, lists: Any, refused: str = "") -> Groups | None:
        """The groups of `axis_index_groups`, if it is not None.

        Raises:
          ValueError: unless each index is in one group.
          NotImplementedError: under `vmap`, as in JAX, with a message that ends in `refused`.
        """
        if lists is None:
            return None
        axis = find_axis(_one_name(axis_name))
        if not axis.on_devices:
            raise errors.with_cure(
                NotImplementedError(f"axis_index_groups not supported in vmap {refused}".strip()),
                "Split the axis in two, and name the inner one: vmap(vmap(f, axis_name='group')).")
        groups = tuple(tuple(map(int, group)) for group in lists)
        if sorted(itertools.chain(*groups)) != list(range(axis.size)):
            raise ValueError("axis_index_groups must cover all indices exactly once")
        return Groups(axis.name, groups)

    @property
    def size(self) -> int:
        """The size of each group.

        Raises:
          ValueError: when they differ.
        """
        if len(set(map(len, self.lists))) > 1:
            raise ValueError("axis_index_groups must all be the same size, but they are "
                             f"{self.lists}")
        return len(self.lists[0])

    def _lookup(self, entry: Callable[[tuple[int, ...], int], Any]) -> Array:
        """This example's row of a table of ``entry(group, index in it)``."""
        entries = {index: entry(group, k) for group in self.lists for k, index in enumerate(group)}
        table = np.array([entries[index] for index in range(len(entries))], np.int32)
        return dynamic_index_in_dim(table, axis_index(self.name), 0, keepdims=False)

    def members(self) -> Array:
        """For each index along the axis, whether it is in this example's group."""
        indices = range(sum(map(len, self.lists)))
        return self._lookup(lambda group, _: [index in group for index in indices])

    def index(self) -> Array:
        """The index of this example within its group."""
        return self._lookup(lambda _, k: k)

    def gather(self, x: Array) -> Array:
        """The values of this example's group, along a new first axis."""
        self.size  # noqa: B018  or else ValueError
        return index_take(all_gather(x, self.name), (self._lookup(lambda group, _: group),), (0,))


# ── Reductions over the axis ─────────────────────────────────────────────────────────────────

def _reduction(name: str, reduce: Primitive, is_sum: bool) -> tuple[Primitive, Callable]:
    """A reduction over a named axis; `vmap` makes it `reduce` over the batch axis.

    Returns:
      The primitive, and a function of a leaf and axes that applies it: over numbered axes of the
      array, then over named ones; or over the examples of a group.
    """
    def batch(axis: Axis, args: list, dims: list, *, axis_name: Any) -> tuple[list, list]:
        [x], [dim] = args, dims
        if axis.name != axis_name:  # the vmap of another axis leaves the reduction as it is
            return [p.bind(x, axis_name=axis_name)], [dim]
        if dim is None:
            return [sum_of_copies(x, axis.size) if is_sum else x], [None]
        return [reduce.bind(x, axes=(dim,))], [None]

    not_linear = cannot("only sums along a named axis have a derivative here")
    p = collective(
        name, type_of=lambda x: x, vma=varies_no_more, batch=batch,
        jvp=LINEAR if is_sum else not_linear,
        transpose=transposed(lambda ct, x, axis_name: p.bind(ct, axis_name=axis_name))
        if is_sum else not_linear, may_produce_nan=is_sum)

    def over(leaf: Any, names: Sequence, groups: Groups | None = None) -> Array:
        x = core.as_value(leaf)
        if groups is not None:
            rows = all_gather(x, names)
            members = broadcast_in_dim(groups.members(), rows.shape, (0,))
            others = broadcast_in_dim(zeros(x.aval) if is_sum else x, rows.shape,
                                      range(1, rows.ndim))
            return reduce.bind(comparison.select_n(members, others, rows), axes=(0,))
        numbers = tuple(axes.canonical_axis(n, x.ndim) for n in names if isinstance(n, int))
        if numbers:
            x = reduce.bind(x, axes=tuple(sorted(numbers)))
        for name in names:
            if not isinstance(name, int):
                find_axis(name, "psum")  # JAX's message, for extrema as for sums
                x = p.bind(pvary(x, [name]), axis_name=name)
        return x
    return p, over


psum_p, _sum_over = _reduction("psum", reduce_sum_p, is_sum=True)
pmax_p, _max_over = _reduction("pmax", reduce_max_p, is_sum=False)
pmin_p, _min_over = _reduction("pmin", reduce_min_p, is_sum=False)


def _leaf_by_leaf(one: Callable[..., Any], x: Any, axis_name: Any, axis_index_groups: Any) -> Any:
    """Apply `one` to each leaf of a tree, the names of axes, and groups.

    Raises:
      TypeError: for a leaf that is no array.
      ValueError: when an axis is named twice, or groups are no partition.
      NotImplementedError: for groups under `vmap`.
    """
    names = names_of(axis_name)
    if axis_index_groups is not None and (len(names) != 1 or isinstance(names[0], int)):
        raise ValueError("axis_index_groups only supported for sums over just named axes")
    groups = Groups.of(axis_name, axis_index_groups, "collectives. Please open a feature request!")
    if len(set(names)) < len(names):
        raise ValueError(f"duplicate value in 'axes' of reduction: {names}")
    for leaf in tree_util.tree_leaves(x):
        if not core.is_array_like(leaf):
            raise TypeError(f"Argument '{leaf}' of type {type(leaf)} is not a valid JAX type")
    return tree_util.tree_map(lambda leaf: one(leaf, names, groups), x) if names else x


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum over the examples along a named axis.

    Args:
      x: an array or a tree of arrays; truth values are counted.
      axis_name: the axis name of `vmap`, or a tuple of names; an integer is an axis of `x`.
      axis_index_groups: lists that partition the indices along the axis of `pmap` or `shard_map`:
        sums are those of a group.

    Returns:
      The same tree; the value no longer varies along the axis.  The sum of a plain number is a
      plain number: `psum(1, 'i')` is the size of the axis.

    Raises:
      NameError: when no enclosing `vmap` binds the name.

    >>> import minijax as jax
    >>> jax.vmap(lambda x: x / psum(x, 'i'), axis_name='i')(np.array([1., 3.], np.float32))
    Array([0.25, 0.75], dtype=float32)
    """
    return _leaf_by_leaf(_sum, x, axis_name, axis_index_groups)


def _sum(leaf: Any, names: tuple, groups: Groups | None) -> Any:
    if isinstance(leaf, (bool, np.bool_)) or getattr(leaf, "dtype", None) == np.bool_:
        leaf = convert_element_type_p.bind(leaf, new_dtype=np.dtype(np.int32), weak_type=False)
    if isinstance(leaf, Array) or any(isinstance(name, int) for name in names):
        typed = tuple(name for name in names
                      if not isinstance(name, int) and checks_vma(find_axis(name, "psum")))
        if typed and groups is not None:
            raise NotImplementedError("psum of groups inside of shard_map: its result varies from "
                                      "group to group. Pass check_vma=False to shard_map.")
        x = _sum_over(leaf, [name for name in names if name not in typed], groups)
        varies_along(x.aval, typed, "psum")  # or else ValueError
        return psum_invariant_p.bind(pvary(x, typed), axis_name=typed) if typed else x
    size = axis_size(names) if groups is None else len(groups.lists[0])
    with np.errstate(over="ignore"):
        return leaf * type(leaf)(size) if np.ndim(leaf) == 0 else (
            leaf * np.asarray(size, leaf.dtype))


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The maximum over the examples along a named axis; takes and raises what `psum` does."""
    return _leaf_by_leaf(_max_over, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The minimum over the examples along a named axis; takes and raises what `psum` does."""
    return _leaf_by_leaf(_min_over, x, axis_name, axis_index_groups)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean over the examples along a named axis; of integers it is a float.

    >>> import minijax as jax
    >>> jax.vmap(lambda x: x - pmean(x, 'i'), axis_name='i')(np.array([1., 3.], np.float32))
    Array([-1.,  1.], dtype=float32)
    """
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    size = psum(1, axis_name, axis_index_groups=axis_index_groups)
    return tree_util.tree_map(lambda leaf: leaf / size, total)


# ── Moves along the axis ─────────────────────────────────────────────────────────────────────

@core.ForPrimitive
def _gather_batch(p: Primitive, axis: Axis, args: list, dims: list, *, axis_name: Any,
                  all_gather_dimension: int, axis_size: int) -> Outs:
    [x], [dim], new = args, dims, all_gather_dimension
    if axis.name == axis_name:
        return [batch_to(x, dim, new, axis.size)], [None]
    if dim is not None:  # another axis is mapped: make room for the new one
        new, dim = (new + 1, dim) if dim <= new else (new, dim + 1)
    return [p.bind(x, axis_name=axis_name, all_gather_dimension=new, axis_size=axis_size)], [dim]


def _gather_type(x: ShapedArray, all_gather_dimension: int, axis_size: int) -> ShapedArray:
    return x.update(shape=axes.with_item(x.shape, all_gather_dimension, axis_size))


def _own_row(ct: Array, axis_name: Any, axis: int) -> Array:
    return dynamic_index_in_dim(ct, axis_index(axis_name), axis, keepdims=False)


all_gather_p = collective(
    "all_gather", type_of=_gather_type,
    transpose=transposed(lambda ct, x, *, axis_name, all_gather_dimension, axis_size:
                         _own_row(psum(ct, axis_name), axis_name, all_gather_dimension)),
    batch=_gather_batch)

# Its result is the same along the axis by its type, too, and so is its cotangent.
all_gather_invariant_p = collective(
    "all_gather_invariant", type_of=_gather_type,
    vma=varies_no_more,
    transpose=transposed(lambda ct, x, *, axis_name, all_gather_dimension, axis_size:
                         _own_row(ct, axis_name, all_gather_dimension)),
    batch=_gather_batch)


def all_gather(x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0,
               tiled: bool = False, to: str = "varying") -> Any:
    """The values of all examples along a named axis, for every example.

    Args:
      x: an array or a tree of arrays.
      axis_name: the axis name of `vmap` or `pmap`.
      axis_index_groups: as of `psum`; each example gets the values of its group.
      axis: the axis of each result along which the examples go.
      tiled: whether they are joined along an axis they have, and not stacked along a new one.
      to: ``"varying"`` or ``"invarying"``: whether the type of the result says that it varies,
        inside of `shard_map`; if not, its cotangent is the same for all, and is not added up.

    Returns:
      The same tree; the value no longer varies along the axis.

    Raises:
      NameError: when no enclosing `vmap` binds the name.

    >>> import minijax as jax
    >>> jax.vmap(lambda x: all_gather(x, 'i'), axis_name='i')(np.arange(3))
    Array([[0, 1, 2],
           [0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    groups = Groups.of(axis_name, axis_index_groups)
    check_kind(to, " for `jax.lax.all_gather`", "varying", "invarying", "reduced")
    size = axis_size(axis_name) if groups is None else groups.size

    def gathered(leaf: Any) -> Array:
        leaf = core.as_value(leaf)
        new = axes.canonical_axis(axis, leaf.ndim + (not tiled))
        out, names, shape = leaf, names_of(axis_name), leaf.shape
        if groups is not None:
            out = transpose(groups.gather(leaf), axes.with_item(range(1, leaf.ndim + 1), new, 0))
        for name in reversed(names) if groups is None else ():
            out = (all_gather_invariant_p if to == "invarying" else all_gather_p).bind(
                pvary(out, [name]), axis_name=name, all_gather_dimension=new,
                axis_size=axis_size(name))
        if len(names) != 1:
            out = reshape(out, (*shape[:new], size, *shape[new:]))
        return merged(out, new) if tiled else out
    return tree_util.tree_map(gathered, x)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """The values of the examples sent along a named axis, from sources to destinations.

    Args:
      x: an array or a tree of arrays.
      axis_name: the axis name of `vmap` or `pmap`.
      perm: pairs (source, destination); sources are unique, and so are destinations.

    Returns:
      The same tree; zeros where nothing was sent.

    Raises:
      NameError: when no enclosing `vmap` binds the name.
      ValueError: when sources or destinations repeat, or are out of bounds.

    >>> import minijax as jax
    >>> around = [(0, 1), (1, 2), (2, 0)]
    >>> jax.vmap(lambda x: ppermute(x, 'i', around), axis_name='i')(np.arange(3))
    Array([2, 0, 1], dtype=int32)
    """
    pairs = tuple((int(a), int(b)) for a, b in perm)
    _sources(pairs, axis_size(axis_name))  # or else ValueError
    name = _one_name(axis_name)
    return tree_util.tree_map(lambda leaf: ppermute_p.bind(
        pvary(core.as_value(leaf), [name]), axis_name=name, perm=pairs), x)


def _one_name(axis_name: Any) -> Any:
    """The name of one axis, bare or in a tuple.

    Raises:
      NotImplementedError: for several.
    """
    names = names_of(axis_name)
    if len(names) != 1:
        raise NotImplementedError(f"an exchange along several named axes, {names}, is not "
                                  "supported: make them one axis, or exchange along each in turn")
    return names[0]


def _permute_batch(axis: Axis, args: list, dims: list, *, axis_name: Any, perm: tuple) -> Outs:
    [x], [dim] = args, dims
    if axis.name != axis_name:
        return [ppermute_p.bind(x, axis_name=axis_name, perm=perm)], [dim]
    sources = _sources(perm, axis.size)
    senders = np.where(sources < 0, np.arange(axis.size), sources)  # or else its own
    rows = index_take(batch_to(x, dim, 0, axis.size), (senders,), (0,))
    if (sources < 0).any():
        received = broadcast_in_dim(sources >= 0, rows.shape, (0,))
        rows = comparison.select_n(received, zeros(core.typeof(rows)), rows)
    return [rows], [0]


ppermute_p = collective(
    "ppermute", type_of=lambda x, perm: x,
    transpose=transposed(lambda ct, x, *, axis_name, perm: ppermute_p.bind(
        ct, axis_name=axis_name, perm=tuple((b, a) for a, b in perm))),
    batch=_permute_batch)


def _sources(perm: Sequence[tuple[int, int]], size: int) -> np.ndarray:
    """The source of each index along the axis; -1 where there is none."""
    senders, receivers = [a for a, _ in perm], [b for _, b in perm]
    if any(len(set(ends)) < len(ends) for ends in (senders, receivers)):
        raise ValueError(f"ppermute sources and destinations must be unique, got {tuple(perm)}.")
    if not all(0 <= end < size for end in senders + receivers):
        raise ValueError(f"ppermute sources and destinations must lie between 0 and {size - 1}, "
                         f"for the axis has size {size}; got {tuple(perm)}.")
    sources = np.full(size, -1, np.int32)
    sources[receivers] = senders
    return sources


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """The values of the examples in another order along a named axis.

    Args:
      x: an array or a tree of arrays.
      axis_name: the axis name of `vmap` or `pmap`.
      perm: a permutation of the indices: for each example the one whose value it gets.

    Raises:
      ValueError: for what is no permutation.
    """
    if set(perm) != set(range(len(perm))) or len(perm) != axis_size(axis_name):
        raise ValueError(f"`perm` does not represent a permutation: {perm}")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)), strict=True)))


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """The value of one example along a named axis, for all.

    Args:
      x: an array or a tree of arrays.
      axis_name: the axis name of `vmap` or `pmap`.
      source: the index of the example.

    Raises:
      ValueError: when there is no such index.
    """
    size = axis_size(axis_name)
    if not 0 <= source < size:
        raise ValueError(f"collective broadcast doesn't fit in the axis size! There is no place "
                         f"{source} along an axis of size {size}.")
    return tree_util.tree_map(lambda leaf: dynamic_index_in_dim(
        all_gather(leaf, axis_name), source, 0, keepdims=False), x)


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """The value itself, whose type says, inside of `shard_map`, that it varies along an axis.

    The cotangent of `x` is the sum of those of the result along the axis.

    Args:
      x: an array or a tree of arrays.
      axis_name: the names of axes.
      to: ``"varying"``.

    Raises:
      ValueError, NotImplementedError: for something else, or where it varies already.
    """
    if isinstance(axis_name, set | frozenset):
        raise TypeError(f"axis_name={axis_name!r} must be a tuple or a str. Got {axis_name}")
    names = names_of(axis_name)
    axis_size(names)  # or else NameError
    check_kind(to, "", "varying", "reduced", "unreduced")

    def cast(leaf: Any) -> Any:
        leaf = core.as_value(leaf)
        if varies_along(leaf.aval, names, "pcast"):
            raise ValueError(f"Unsupported pcast from=varying, {to=}")
        return pvary(leaf, names)
    return tree_util.tree_map(cast, x) if names else x


def varies_along(aval: ShapedArray, names: Sequence, operation: str) -> bool:
    """Whether values of a type vary along all of these axes.

    Raises:
      ValueError: when they vary along some, and not along others.
    """
    varying = aval.vma.intersection(names)
    if 0 < len(varying) < len(names):
        raise ValueError(
            f"jax.lax.{operation} can only accept axis_name which corresponds to one of varying, "
            "unreduced, reduced or invarying state of the input. Got input type: "
            f"{aval.str_long()}, axes: {tuple(names)} and input state: {{'varying', 'invarying'}}")
    return bool(varying)


def check_kind(to: str, of: str, *allowed: str) -> None:
    """Refuse kinds of values along an axis other than those that vary, or do not."""
    if to not in allowed:
        raise ValueError(f"Got unexpected `to` value{of}. Allowed `to` values are: "
                         "{" + ", ".join(map(repr, sorted(allowed))) + "}")
    if to in ("reduced", "unreduced"):
        raise NotImplementedError(f"to={to!r}: sums along an axis are computed at once, and no "
                                  "value is ever unreduced. Use to='varying'.")


# ── Exchanges of parts ───────────────────────────────────────────────────────────────────────

def _exchange_type(x: ShapedArray, *, split_axis: int, concat_axis: int) -> ShapedArray:
    rest = axes.without(x.shape, (split_axis,))
    return x.update(shape=axes.with_item(rest, concat_axis, x.shape[split_axis]))


def _exchange_batch(axis: Axis, args: list, dims: list, *, axis_name: Any, split_axis: int,
                    concat_axis: int) -> Outs:
    x = batch_to(args[0], dims[0], 0, axis.size)
    if axis.name != axis_name:
        return [all_to_all_p.bind(x, axis_name=axis_name, split_axis=split_axis + 1,
                                  concat_axis=concat_axis + 1)], [0]
    # The axis of receivers goes to the front; that of senders is in the front.
    order = axes.with_item(axes.without(range(x.ndim), (0, split_axis + 1)), concat_axis, 0)
    return [transpose(x, (split_axis + 1, *order))], [0]


all_to_all_p = collective(
    "all_to_all", type_of=_exchange_type,
    transpose=transposed(lambda ct, x, *, axis_name, split_axis, concat_axis: all_to_all_p.bind(
        ct, axis_name=axis_name, split_axis=concat_axis, concat_axis=split_axis)),
    batch=_exchange_batch)


def all_to_all(x: Any, axis_name: Any, split_axis: int, concat_axis: int, *,
               axis_index_groups: Any = None, tiled: bool = False) -> Any:
    """Each example splits its value, sends one part to each, and joins the parts it receives.

    Args:
      x: an array or a tree of arrays.
      axis_name: the axis name of `vmap` or `pmap`.
      split_axis: the axis that is split; its size is the number of examples.
      concat_axis: the position of the axis of senders in the result.
      axis_index_groups: as of `psum`; only those of a group send to each other.
      tiled: whether the parts are blocks, joined along `concat_axis`, instead of single elements.

    Raises:
      ValueError: when the axis cannot be split so.

    >>> import minijax as jax
    >>> jax.vmap(lambda x: all_to_all(x, 'i', 0, 0), axis_name='i')(np.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    groups = Groups.of(axis_name, axis_index_groups)
    size = axis_size(axis_name) if groups is None else groups.size

    def exchanged(leaf: Any) -> Array:
        leaf = core.as_value(leaf)
        split, to = (axes.canonical_axis(a, leaf.ndim) for a in (split_axis, concat_axis))
        if leaf.shape[split] % size if tiled else leaf.shape[split] != size:
            raise ValueError(f"all_to_all requires the size of the mapped axis axis_name to "
                             f"{'divide' if tiled else 'equal'} x.shape[split_axis], but they are "
                             f"{size} and {leaf.shape[split]} respectively.")
        leaf = in_blocks(leaf, split, size) if tiled else leaf
        if groups is None:
            out = _exchanged(leaf, names_of(axis_name), split, to)
        else:
            sent = dynamic_index_in_dim(groups.gather(leaf), groups.index(), split + 1,
                                        keepdims=False)
            out = transpose(sent, axes.with_item(range(1, sent.ndim), to, 0))
        return merged(out, to) if tiled else out
    return tree_util.tree_map(exchanged, x)


def _exchanged(x: Array, names: Sequence, split: int, to: int) -> Array:
    """An exchange along the grid of named axes, one after the other."""
    if len(names) == 1:
        return all_to_all_p.bind(pvary(x, names), axis_name=names[0], split_axis=split,
                                 concat_axis=to)
    first = transpose(x, (split, *axes.without(range(x.ndim), (split,))))
    sizes, rest = [axis_size(name) for name in names], first.shape[1:]
    grid = reshape(first, (*sizes, *rest))
    for k, name in enumerate(names):
        grid = all_to_all_p.bind(pvary(grid, [name]), axis_name=name, split_axis=k, concat_axis=k)
    return transpose(reshape(grid, first.shape), axes.with_item(range(1, x.ndim), to, 0))


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """A named axis exchanged with an axis of the values, which has the same size.

    >>> import minijax as jax
    >>> jax.vmap(lambda x: pswapaxes(x, 'i', 0), axis_name='i')(np.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def psum_scatter(x: Any, axis_name: Any, *, scatter_dimension: int = 0,
                 axis_index_groups: Any = None, tiled: bool = False) -> Any:
    """The sum over the examples along a named axis, of which each example gets one part.

    Args:
      x: an array or a tree of arrays.
      axis_name: the axis name of `vmap` or `pmap`.
      scatter_dimension: the axis of the sum that is split; its size is the number of examples.
      axis_index_groups: as of `psum`; sums and parts are those of a group.
      tiled: whether the parts are blocks, instead of single elements.

    Raises:
      TypeError: for bools.
      ValueError: when the axis cannot be split so.

    >>> import minijax as jax
    >>> jax.vmap(lambda x: psum_scatter(x, 'i'), axis_name='i')(np.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    groups = Groups.of(axis_name, axis_index_groups)
    size = axis_size(axis_name) if groups is None else groups.size
    index = axis_index(axis_name) if groups is None else groups.index()

    def part(leaf: Any) -> Array:
        leaf = core.as_value(leaf)
        slots.check_dtypes("reduce_scatter", [leaf.aval], [slots.NUMBER])
        total = (psum(leaf, axis_name) if groups is None else
                 _sum_over(leaf, names_of(axis_name), groups))
        axis = axes.canonical_axis(scatter_dimension, total.ndim)
        if total.shape[axis] % size if tiled else total.shape[axis] != size:
            what = "must be divisible by shard_count" if tiled else "must match shard count"
            raise ValueError(f"{'tiled ' * tiled}reduce_scatter operand scatter dimension size "
                             f"{total.shape[axis]} {what} {size}")
        if not size:  # there is no part, as there is nobody to have it
            return zeros(total.aval.update(shape=axes.without(total.shape, [axis])))
        total = in_blocks(total, axis, size) if tiled else total
        return dynamic_index_in_dim(total, index, axis, keepdims=False)
    return tree_util.tree_map(part, x)


def psend(x: Any, axis_name: Any, perm: Any) -> Any:
    """A message without an answer, for GPUs in JAX.

    Raises:
      NotImplementedError: always: `ppermute` sends and receives.
    """
    axis_index(axis_name)
    raise NotImplementedError("psend is currently only implemented on GPU: ppermute sends and "
                              "receives on all devices")


def precv(token: Any, out_shape: Any, axis_name: Any, perm: Any) -> Any:
    """The message of `psend`.

    Raises:
      NotImplementedError: always: `ppermute` sends and receives.
    """
    axis_index(axis_name)
    raise NotImplementedError("precv is currently only implemented on GPU: ppermute sends and "
                              "receives on all devices")
