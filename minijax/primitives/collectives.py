"""Operations along a named axis: its index, sums and extremes over it, and moves along it.

Builds on `core`, `shape`, `index`, `index_take`.  Chapter 11, *Named axes*.
In JAX: `jax/_src/lax/parallel.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax import core, errors, tree_util
from minijax.core import Array, Axis, NamedAxisEffect, Primitive, ShapedArray, Undefined, cannot
from minijax.primitives import algebra, axes, comparison
from minijax.primitives.convert import convert_element_type_p
from minijax.primitives.ad_util import batch_to, linear, reduce_sum_p, transposed, zeros
from minijax.primitives.dynamic_slice import dynamic_index_in_dim
from minijax.primitives.reduce import reduce_max_p, reduce_min_p
from minijax.primitives.shape import broadcast_in_dim, iota_p, reshape, transpose
from minijax.primitives.slots import NUMBER, check_dtypes
from minijax.primitives.index_take import index_take


def _unbound(*_: Any, axis_name: Any, **__: Any) -> Any:
    raise unbound_axis(axis_name)


def unbound_axis(name: object, operation: str | None = None) -> NameError:
    """The error for an axis name that no enclosing transformation bears.

    >>> print(unbound_axis("i"))
    unbound axis name: i
    """
    message = f"unbound axis name: {name}" if operation is None else (
        f"Found an unbound axis name: {name}. To fix this, please call {operation} under "
        "`jax.shard_map`.")
    return errors.with_cure(NameError(message),
                            f"An axis bears that name inside of vmap(f, axis_name={name!r}).")


def find_axis(name: Any, operation: str | None = None) -> Axis:
    """The innermost mapped axis of that name.

    Raises:
      NameError: when no enclosing `vmap` bears the name.
    """
    for axis in reversed(core.current_trace.get().axes):
        if axis.name == name:
            return axis
    raise unbound_axis(name, operation)


def collective(name: str, *, type_of: Callable[..., ShapedArray], jvp: Any, transpose: Any,
               batch: Any) -> Primitive:
    """A primitive along a named axis: it has a meaning only under a `vmap` that names the axis."""
    return Primitive(
        name, impl=_unbound, abstract_eval=lambda *avals, axis_name, **params: [
            type_of(*avals, **params)], jvp=jvp, transpose=transpose, batch=batch, loop=_unbound,
        effects=lambda axis_name, **_: frozenset([NamedAxisEffect(axis_name)]), examples=list)


# ── The index along the axis ─────────────────────────────────────────────────────────────────

axis_index_p = collective(
    "axis_index",
    type_of=lambda: ShapedArray((), np.int32),
    jvp=cannot("it takes no arguments"),
    transpose=cannot("it takes no arguments"),
    batch=lambda axis, args, dims, *, axis_name: (
        [iota_p.bind(dtype=np.dtype(np.int32), shape=(axis.size,), dimension=0)], [0]))


def axis_index(axis_name: Any) -> Any:
    """The place of this example along a named axis, or in the grid of several.

    Raises:
      NameError: when no enclosing `vmap` bears the name.

    >>> import minijax as jax
    >>> jax.vmap(lambda x: x * axis_index('i'), axis_name='i')(np.arange(3, 6))
    Array([ 0,  4, 10], dtype=int32)
    """
    place: Any = None
    for name in _names(axis_name):
        size = find_axis(name, "axis_index").size
        index = axis_index_p.bind(axis_name=name)
        place = index if place is None else place * size + index
    return np.int32(0) if place is None else place


def axis_size(axis_name: Any) -> int:
    """The size of a named axis, or of the grid of several.

    Raises:
      NameError: when no enclosing `vmap` bears the name.
    """
    return math.prod(find_axis(name).size for name in _names(axis_name))


def _names(axis_name: Any) -> tuple:
    return tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)


# ── Groups of places along it ────────────────────────────────────────────────────────────────

@dataclass(frozen=True)
class Groups:
    """The places along a named axis, partition_list: those of a group act together, and alone.

    Args:
      name: of an axis whose examples stand for devices.
      lists: the places of each group.
    """

    name: Any
    lists: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(axis_name: Any, lists: Any, refused: str = "") -> Groups | None:
        """The groups that a user has listed, if so.

        Raises:
          ValueError: unless each place is in one group.
          NotImplementedError: under `vmap`, as in JAX, with words that go on so.
        """
        if lists is None:
            return None
        axis = find_axis(_one_name(axis_name))
        if not axis.on_devices:
            raise errors.with_cure(
                NotImplementedError(f"axis_index_groups not supported in vmap {refused}".strip()),
                "Split the axis in two, and name the inner one: vmap(vmap(f, axis_name='group')).")
        groups = tuple(tuple(map(int, group)) for group in lists)
        if sorted(place for group in groups for place in group) != list(range(axis.size)):
            raise ValueError("axis_index_groups must cover all indices exactly once")
        return Groups(axis.name, groups)

    @property
    def size(self) -> int:
        """How many places each group has.

        Raises:
          ValueError: when they differ.
        """
        if len(set(map(len, self.lists))) > 1:
            raise ValueError("axis_index_groups must all be the same size, but they are "
                             f"{self.lists}")
        return len(self.lists[0])

    def _mine(self, of_group: Callable[[int, tuple[int, ...], int], Any]) -> Array:
        """What a table says of this example, made of the group of each place, and where it is."""
        table = {place: of_group(number, group, k) for number, group in enumerate(self.lists)
                 for k, place in enumerate(group)}
        rows = np.array([table[place] for place in range(len(table))], np.int32)
        return dynamic_index_in_dim(rows, axis_index(self.name), 0, keepdims=False)

    def is_of_mine(self) -> Array:
        """For each place along the axis, whether it is of this example's group."""
        numbers = np.array([[place in group for place in range(sum(map(len, self.lists)))]
                            for group in self.lists])
        return dynamic_index_in_dim(numbers, self._mine(lambda number, *_: number), 0,
                                    keepdims=False)

    def place(self) -> Array:
        """Where this example is within its group."""
        return self._mine(lambda number, group, k: k)

    def gather(self, x: Array) -> Array:
        """The values of this example's group, along a new first axis."""
        self.size  # noqa: B018  or else ValueError
        return index_take(all_gather(x, self.name), (self._mine(lambda _, group, k: group),), (0,))


# ── Reductions over the axis ─────────────────────────────────────────────────────────────────

def _reduction(name: str, reduce: Primitive, is_sum: bool) -> tuple[Primitive, Callable]:
    """A reduction over a named axis, as that over the batch axis it stands for.

    And the function of a leaf and names that applies it: over axes of the array, counted by
    number, and then over named ones; or over the examples of a group.
    """
    def batch(axis: Axis, args: list, dims: list, *, axis_name: Any) -> tuple[list, list]:
        [x], [dim] = args, dims
        if axis.name != axis_name:  # another axis is mapped: the reduction waits for its own
            return [p.bind(x, axis_name=axis_name)], [dim]
        if dim is None:
            return [_of_copies(x, axis.size) if is_sum else x], [None]
        return [reduce.bind(x, axes=(dim,))], [None]

    not_linear = cannot("only sums along a named axis have a derivative here")
    p = collective(
        name, type_of=lambda x: x, batch=batch, jvp=linear(0) if is_sum else not_linear,
        transpose=transposed(lambda ct, x, axis_name: p.bind(ct, axis_name=axis_name))
        if is_sum else not_linear)

    def over(leaf: Any, names: tuple, groups: Groups | None = None) -> Array:
        x = core.as_value(leaf)
        if groups is not None:
            rows = all_gather(x, names)
            mine = broadcast_in_dim(groups.is_of_mine(), rows.shape, (0,))
            others = zeros(x.aval) if is_sum else x
            rows = comparison.select_n(mine, broadcast_in_dim(others, rows.shape,
                                                          range(1, rows.ndim)), rows)
            return reduce.bind(rows, axes=(0,))
        numbers = tuple(axes.canonical_axis(n, x.ndim) for n in names if isinstance(n, int))
        if numbers:
            x = reduce.bind(x, axes=tuple(sorted(numbers)))
        for name in names:
            if not isinstance(name, int):
                find_axis(name, "psum")  # JAX's words, for extremes as for sums
                x = p.bind(x, axis_name=name)
        return x
    return p, over


def _of_copies(x: Array, size: int) -> Array:
    """The sum of `size` copies of `x`; as in JAX, of what is weak only a scalar's is."""
    count = core.ArrayImpl(np.asarray(size, x.dtype), ShapedArray((), x.dtype, not x.ndim), True)
    return algebra.mul_p.bind(x, count)


psum_p, _sum_over = _reduction("psum", reduce_sum_p, is_sum=True)
pmax_p, _max_over = _reduction("pmax", reduce_max_p, is_sum=False)
pmin_p, _min_over = _reduction("pmin", reduce_min_p, is_sum=False)


def _leaf_by_leaf(one: Callable[..., Any], x: Any, axis_name: Any, axis_index_groups: Any) -> Any:
    """What `one` makes of each leaf of a tree, the names of different axes, and groups.

    Raises:
      TypeError: for a leaf that is no array.
      ValueError: when an axis is named twice, or groups are none.
      NotImplementedError: for groups under `vmap`.
    """
    names = _names(axis_name)
    if axis_index_groups is not None and (len(names) != 1 or isinstance(names[0], int)):
        raise ValueError("axis_index_groups only supported for sums over just named axes")
    groups = Groups.of(axis_name, axis_index_groups,
                       "collectives. Please open a feature request!")
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
      axis_name: the name given to `vmap`, or a tuple of names; an integer is an axis of `x`.
      axis_index_groups: lists of places along the axis of `pmap` or `shard_map`, each place in
        one of them: sums are those of a group.

    Returns:
      The same tree; the value no longer depends on the place along the axis.  The sum of a plain
      number is a plain number: `psum(1, 'i')` is the size of the axis.

    Raises:
      NameError: when no enclosing `vmap` bears the name.

    >>> import minijax as jax
    >>> jax.vmap(lambda x: x / psum(x, 'i'), axis_name='i')(np.array([1., 3.], np.float32))
    Array([0.25, 0.75], dtype=float32)
    """
    return _leaf_by_leaf(_sum, x, axis_name, axis_index_groups)


def _sum(leaf: Any, names: tuple, groups: Groups | None) -> Any:
    if isinstance(leaf, (bool, np.bool_)) or getattr(leaf, "dtype", None) == np.bool_:
        leaf = convert_element_type_p.bind(leaf, new_dtype=np.dtype(np.int32), weak_type=False)
    if isinstance(leaf, Array) or any(isinstance(name, int) for name in names):
        return _sum_over(leaf, names, groups)
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

def _gather_batch(axis: Axis, args: list, dims: list, *, axis_name: Any,
                  all_gather_dimension: int, axis_size: int) -> tuple[list, list]:
    [x], [dim], place = args, dims, all_gather_dimension
    if axis.name == axis_name:
        return [batch_to(x, dim, place, axis.size)], [None]
    if dim is not None:  # another axis is mapped: it steps aside
        place, dim = (place + 1, dim) if dim <= place else (place, dim + 1)
    return [all_gather_p.bind(x, axis_name=axis_name, all_gather_dimension=place,
                              axis_size=axis_size)], [dim]


def _transpose_gather(ct: Array, x: Undefined, *, axis_name: Any, all_gather_dimension: int,
                      axis_size: int) -> Array:
    """Each example gets what all of them say of its row."""
    total = psum_p.bind(ct, axis_name=axis_name)
    row = axis_index_p.bind(axis_name=axis_name)
    return dynamic_index_in_dim(total, row, all_gather_dimension, keepdims=False)


all_gather_p = collective(
    "all_gather",
    type_of=lambda x, all_gather_dimension, axis_size: x.update(
        shape=axes.with_item(x.shape, all_gather_dimension, axis_size)),
    jvp=linear(0),
    transpose=transposed(_transpose_gather),
    batch=_gather_batch)


def all_gather(x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0,
               tiled: bool = False, to: str = "varying") -> Any:
    """The values of all examples along a named axis, each example getting all of them.

    Args:
      x: an array or a tree of arrays.
      axis_name: the name given to `vmap` or `pmap`.
      axis_index_groups: as of `psum`; each example gets the values of its group.
      axis: the axis of each result along which the examples go.
      tiled: whether they are joined along an axis they have, and not stacked along a new one.
      to: ``"varying"`` or ``"invarying"``, which are the same here.

    Returns:
      The same tree; the value no longer depends on the place along the axis.

    Raises:
      NameError: when no enclosing `vmap` bears the name.

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
        place = axes.canonical_axis(axis, leaf.ndim + (not tiled))
        out, names = leaf, _names(axis_name)
        if groups is not None:
            out = transpose(groups.gather(leaf), axes.with_item(range(1, leaf.ndim + 1), place, 0))
        for name in reversed(names) if groups is None else ():
            out = all_gather_p.bind(out, axis_name=name, all_gather_dimension=place,
                                    axis_size=axis_size(name))
        if len(names) != 1:
            out = reshape(out, (*leaf.shape[:place], size, *leaf.shape[place:]))
        if not tiled:
            return out
        shape = leaf.shape
        return reshape(out, (*shape[:place], size * shape[place], *shape[place + 1:]))
    return tree_util.tree_map(gathered, x)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """The values of the examples sent along a named axis: each pair says from where, to where.

    Args:
      x: an array or a tree of arrays.
      axis_name: the name given to `vmap` or `pmap`.
      perm: pairs (source, destination), no place twice on either side.

    Returns:
      The same tree; zeros where nothing was sent.

    Raises:
      NameError: when no enclosing `vmap` bears the name.
      ValueError: when two examples send to one place, or one to two, or there is no such place.

    >>> import minijax as jax
    >>> around = [(0, 1), (1, 2), (2, 0)]
    >>> jax.vmap(lambda x: ppermute(x, 'i', around), axis_name='i')(np.arange(3))
    Array([2, 0, 1], dtype=int32)
    """
    _sources(perm, axis_size(axis_name))  # or else ValueError
    pairs = tuple((int(a), int(b)) for a, b in perm)
    return tree_util.tree_map(lambda leaf: ppermute_p.bind(
        core.as_value(leaf), axis_name=_one_name(axis_name), perm=pairs), x)


def _one_name(axis_name: Any) -> Any:
    """The name of one axis, from it or a tuple of it.

    Raises:
      NotImplementedError: for several.
    """
    names = _names(axis_name)
    if len(names) != 1:
        raise NotImplementedError(f"moves along several named axes at once, {names}: make them one "
                                  "axis, or move along one after the other")
    return names[0]


def _permute_batch(axis: Axis, args: list, dims: list, *, axis_name: Any, perm: tuple
                   ) -> tuple[list, list]:
    [x], [dim] = args, dims
    if axis.name != axis_name:
        return [ppermute_p.bind(x, axis_name=axis_name, perm=perm)], [dim]
    sources = _sources(perm, axis.size)
    found = index_take(batch_to(x, dim, 0, axis.size), (np.maximum(sources, 0),), (0,))
    if (sources < 0).any():
        sent = broadcast_in_dim(sources >= 0, found.shape, (0,))
        found = comparison.select_n(sent, zeros(core.typeof(found)), found)
    return [found], [0]


ppermute_p = collective(
    "ppermute",
    type_of=lambda x, perm: x,
    jvp=linear(0),
    transpose=transposed(lambda ct, x, *, axis_name, perm: ppermute_p.bind(
        ct, axis_name=axis_name, perm=tuple((b, a) for a, b in perm))),
    batch=_permute_batch)


def _sources(perm: Sequence[tuple[int, int]], size: int) -> np.ndarray:
    """From where each place along the axis gets its value; -1 where from nowhere."""
    senders, receivers = [a for a, _ in perm], [b for _, b in perm]
    if any(len(set(places)) < len(places) for places in (senders, receivers)):
        raise ValueError(f"ppermute sources and destinations must be unique, got {tuple(perm)}.")
    if not all(0 <= place < size for place in senders + receivers):
        raise ValueError(f"ppermute sources and destinations must lie between 0 and {size - 1}, "
                         f"for the axis has size {size}; got {tuple(perm)}.")
    sources = np.full(size, -1, np.int32)
    sources[receivers] = senders
    return sources


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """The values of the examples in another order along a named axis: each place says from where.

    Args:
      x: an array or a tree of arrays.
      axis_name: the name given to `vmap` or `pmap`.
      perm: a permutation of the places.

    Raises:
      ValueError: when it is none.
    """
    if set(perm) != set(range(len(perm))) or len(perm) != axis_size(axis_name):
        raise ValueError(f"`perm` does not represent a permutation: {perm}")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)), strict=True)))


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """The value of one example along a named axis, for all.

    Args:
      x: an array or a tree of arrays.
      axis_name: the name given to `vmap` or `pmap`.
      source: the place of the example.

    Raises:
      ValueError: when there is no such place.
    """
    size = axis_size(axis_name)
    if not 0 <= source < size:
        raise ValueError(f"collective broadcast doesn't fit in the axis size! There is no place "
                         f"{source} along an axis of size {size}.")
    return tree_util.tree_map(lambda leaf: dynamic_index_in_dim(
        all_gather(leaf, axis_name), source, 0, keepdims=False), x)


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """The value itself, which is taken to differ along an axis, where it does not.

    Args:
      x: an array or a tree of arrays.
      axis_name: the names of axes.
      to: ``"varying"``.

    Raises:
      ValueError, NotImplementedError: for something else.
    """
    axis_size(axis_name)  # or else NameError
    check_kind(to, "", "varying", "reduced", "unreduced")
    return x


def check_kind(to: str, of: str, *allowed: str) -> None:
    """Refuse what a value cannot be along an axis; here it varies, or is the same."""
    if to not in allowed:
        raise ValueError(f"Got unexpected `to` value{of}. Allowed `to` values are: "
                         "{" + ", ".join(map(repr, sorted(allowed))) + "}")
    if to in ("reduced", "unreduced"):
        raise NotImplementedError(f"to={to!r}: sums along an axis are computed at once, so that "
                                  "nothing is left to be reduced. Use to='varying'.")


# ── Parts exchanged along the axis ───────────────────────────────────────────────────────────

def _exchange_type(x: ShapedArray, *, split_axis: int, concat_axis: int) -> ShapedArray:
    shape = list(x.shape)
    shape.insert(concat_axis, shape.pop(split_axis))
    return x.update(shape=tuple(shape))


def _exchange_batch(axis: Axis, args: list, dims: list, *, axis_name: Any, split_axis: int,
                    concat_axis: int) -> tuple[list, list]:
    x = batch_to(args[0], dims[0], 0, axis.size)
    if axis.name != axis_name:
        return [all_to_all_p.bind(x, axis_name=axis_name, split_axis=split_axis + 1,
                                  concat_axis=concat_axis + 1)], [0]
    order = [i for i in range(1, x.ndim) if i != split_axis + 1]
    order.insert(concat_axis, 0)  # from whom a part comes; in front: to whom it goes
    return [transpose(x, [split_axis + 1, *order])], [0]


all_to_all_p = collective(
    "all_to_all",
    type_of=_exchange_type,
    jvp=linear(0),
    transpose=transposed(lambda ct, x, *, axis_name, split_axis, concat_axis: all_to_all_p.bind(
        ct, axis_name=axis_name, split_axis=concat_axis, concat_axis=split_axis)),
    batch=_exchange_batch)


def all_to_all(x: Any, axis_name: Any, split_axis: int, concat_axis: int, *,
               axis_index_groups: Any = None, tiled: bool = False) -> Any:
    """Each example cuts its value, sends a part to each, and joins what it is sent.

    Args:
      x: an array or a tree of arrays.
      axis_name: the name given to `vmap` or `pmap`.
      split_axis: the axis that is cut; it has a place for each example.
      concat_axis: where the axis of the senders comes to lie.
      axis_index_groups: as of `psum`; only those of a group send to each other.
      tiled: whether the parts are blocks, joined along `concat_axis`, instead of single places.

    Raises:
      ValueError: when the axis cannot be cut so.

    >>> import minijax as jax
    >>> jax.vmap(lambda x: all_to_all(x, 'i', 0, 0), axis_name='i')(np.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    groups = Groups.of(axis_name, axis_index_groups)
    name, size = _one_name(axis_name), axis_size(axis_name) if groups is None else groups.size

    def exchanged(leaf: Any) -> Array:
        leaf = core.as_value(leaf)
        split, to = (axes.canonical_axis(a, leaf.ndim) for a in (split_axis, concat_axis))
        if leaf.shape[split] % size if tiled else leaf.shape[split] != size:
            raise ValueError(f"all_to_all requires the size of the mapped axis axis_name to "
                             f"{'divide' if tiled else 'equal'} x.shape[split_axis], but they are "
                             f"{size} and {leaf.shape[split]} respectively.")
        if tiled:
            leaf = _in_blocks(leaf, split, size)
        if groups is None:
            out = all_to_all_p.bind(leaf, axis_name=name, split_axis=split, concat_axis=to)
        else:
            sent = dynamic_index_in_dim(groups.gather(leaf), groups.place(), split + 1,
                                        keepdims=False)
            out = transpose(sent, axes.with_item(range(1, sent.ndim), to, 0))
        return reshape(out, (*out.shape[:to], size * out.shape[to + 1], *out.shape[to + 2:])
                       ) if tiled else out
    return tree_util.tree_map(exchanged, x)


def _in_blocks(x: Array, axis: int, count: int) -> Array:
    """An axis cut in so many blocks: two axes."""
    return reshape(x, (*x.shape[:axis], count, x.shape[axis] // count, *x.shape[axis + 1:]))


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """A named axis and an axis of the values exchanged, which have the same size.

    >>> import minijax as jax
    >>> jax.vmap(lambda x: pswapaxes(x, 'i', 0), axis_name='i')(np.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def psum_scatter(x: Any, axis_name: Any, *, scatter_dimension: int = 0,
                 axis_index_groups: Any = None, tiled: bool = False) -> Any:
    """Of the sum over the examples along a named axis, each example its own part.

    Args:
      x: an array or a tree of arrays.
      axis_name: the name given to `vmap` or `pmap`.
      scatter_dimension: the axis of the sum that is cut, with a place for each example.
      axis_index_groups: as of `psum`; sums and parts are those of a group.
      tiled: whether the parts are blocks, instead of single places.

    Raises:
      TypeError: for truths.
      ValueError: when the axis cannot be cut so.

    >>> import minijax as jax
    >>> jax.vmap(lambda x: psum_scatter(x, 'i'), axis_name='i')(np.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    groups = Groups.of(axis_name, axis_index_groups)
    size = axis_size(axis_name) if groups is None else groups.size
    place = axis_index(axis_name) if groups is None else groups.place()

    def part(leaf: Any) -> Array:
        leaf = core.as_value(leaf)
        check_dtypes("reduce_scatter", [leaf.aval], [NUMBER])
        total = psum(leaf, axis_name, axis_index_groups=axis_index_groups)
        axis = axes.canonical_axis(scatter_dimension, total.ndim)
        if total.shape[axis] % size if tiled else total.shape[axis] != size:
            what = "must be divisible by shard_count" if tiled else "must match shard count"
            raise ValueError(f"{'tiled ' * tiled}reduce_scatter operand scatter dimension size "
                             f"{total.shape[axis]} {what} {size}")
        if not size:  # there is no part, as there is nobody to have it
            return zeros(total.aval.update(shape=axes.without(total.shape, [axis])))
        if tiled:
            total = _in_blocks(total, axis, size)
        return dynamic_index_in_dim(total, place, axis, keepdims=False)
    return tree_util.tree_map(part, x)


def ragged_all_to_all(operand: Any, output: Any, input_offsets: Any, send_sizes: Any,
                      output_offsets: Any, recv_sizes: Any, *, axis_name: Any,
                      axis_index_groups: Any = None) -> Array:
    """Each example sends so many rows to each, which writes them where the sender says.

    Args:
      operand: the rows to send.
      output: what the rows are written into.
      input_offsets, send_sizes: for each receiver, where its rows begin, and how many they are.
      output_offsets: for each receiver, where they begin in its output.
      recv_sizes: for each sender, how many rows come; what the senders say decides.
      axis_name: the name given to `vmap` or `pmap`.
      axis_index_groups: only None.

    Raises:
      NotImplementedError: for groups.
    """
    if axis_index_groups is not None:
        raise NotImplementedError("ragged_all_to_all of groups: all_to_all with axis_index_groups "
                                  "sends parts of one size")
    me, output = axis_index(axis_name), core.as_value(output)
    rows = all_gather(operand, axis_name)
    start, count, to = (dynamic_index_in_dim(all_gather(x, axis_name), me, 1, keepdims=False)
                        for x in (input_offsets, send_sizes, output_offsets))
    shape = (*start.shape, output.shape[0])
    place = iota_p.bind(dtype=np.dtype(start.dtype), shape=shape, dimension=1)
    start, count, to = (broadcast_in_dim(x, shape, (0,)) for x in (start, count, to))
    behind = algebra.sub_p.bind(place, to)
    comes = comparison.bitwise_and(comparison.ge(behind, zeros(behind.aval)),
                                   comparison.lt(behind, count))
    for sender in range(shape[0]):
        source = algebra.add_p.bind(behind[sender], start[sender])
        inside = comparison.clamp(np.zeros((), source.dtype), source,
                              np.asarray(rows.shape[1] - 1, source.dtype))
        found = index_take(rows[sender], (inside,), (0,))
        output = comparison.select_n(broadcast_in_dim(comes[sender], output.shape, (0,)), output,
                                 found)
    return output
