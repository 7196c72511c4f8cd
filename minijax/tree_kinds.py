"""What trees are made of: kinds of node, one per container type, and the keys of their children.

Stands on the standard library alone.  Its chapter is "Trees".
In JAX: the registry of ``jaxlib/pytree.cc``, written in C++.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

IsLeaf = Callable[[Any], bool]
KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]
FlattenWithKeys = Callable[[Any], tuple[Iterable[tuple[KeyEntry, Any]], Any]]


# -- keys: one step from a node to a child -------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The step to item `idx` of a tuple or list.

    >>> str(SequenceKey(1))
    '[1]'
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclasses.dataclass(frozen=True)
class DictKey:
    """The step to the entry `key` of a dict.

    >>> str(DictKey("a"))
    "['a']"
    """

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The step to the attribute `name`.

    >>> str(GetAttrKey("weight"))
    '.weight'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclasses.dataclass(frozen=True)
class FlattenedIndexKey:
    """The step to child number `key` of a node whose type names no keys.

    >>> str(FlattenedIndexKey(0))
    '[<flat index 0>]'
    """

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key!r}>]"


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Return a path as Python would write it, or with bare names and a separator.

    >>> path = (DictKey("layers"), SequenceKey(0), GetAttrKey("w"))
    >>> keystr(path)
    "['layers'][0].w"
    >>> keystr(path, simple=True, separator="/")
    'layers/0/w'
    """
    return separator.join(map(bare_key if simple else str, keys))


def bare_key(key: KeyEntry) -> str:
    for attribute in ("idx", "key", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


# -- kinds of node: one per container type -------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Kind:
    """How one container type is taken apart, put together, named and printed."""

    type: Any
    flatten: Callable[[Any], tuple[Iterable[Any], Any]]  # tree -> children, static data
    unflatten: Callable[[Any, list[Any]], Any]  # static data, children -> tree
    keys: Callable[[Any, Any, int], Iterable[KeyEntry]]  # tree, data, count -> a key per child
    show: Callable[[Any, list[str]], str]  # data, children as text -> text
    plain: bool = False  # equal data are interchangeable, so that treedefs may be shared


def _by_position(tree: Any, data: Any, count: int) -> list[KeyEntry]:
    return [SequenceKey(place) for place in range(count)]


def by_flat_index(tree: Any, data: Any, count: int) -> list[KeyEntry]:
    return [FlattenedIndexKey(place) for place in range(count)]


def _show_tuple(data: Any, children: list[str]) -> str:
    return f"({children[0]},)" if len(children) == 1 else f"({', '.join(children)})"


def _sorted_keys(tree: dict[Any, Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(tree))
    except TypeError as problem:
        raise ValueError("Comparator raised exception while sorting pytree dictionary keys. "
                         f"The keys of a dict must be comparable ({problem}); an OrderedDict "
                         "keeps its own order.") from None


def _flatten_dict(tree: dict[Any, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    keys = _sorted_keys(tree)
    return [tree[key] for key in keys], keys


def _show_dict(keys: Sequence[Any], children: list[str]) -> str:
    entries = [f"{key!r}: {child}" for key, child in zip(keys, children, strict=True)]
    return "{" + ", ".join(entries) + "}"


def _show_namedtuple(cls: type, children: list[str]) -> str:
    return f"CustomNode(namedtuple[{cls.__name__}], [{', '.join(children)}])"


def show_custom(name: str) -> Callable[[Any, list[str]], str]:
    return lambda data, children: f"CustomNode({name}[{data}], [{', '.join(children)}])"


_NONE = Kind(
    type=type(None),
    flatten=lambda tree: ((), None),
    unflatten=lambda data, children: None,
    keys=_by_position,
    show=lambda data, children: "None",
    plain=True)
TUPLE = Kind(
    type=tuple,
    flatten=lambda tree: (tree, None),
    unflatten=lambda data, children: tuple(children),
    keys=_by_position,
    show=_show_tuple,
    plain=True)
LIST = Kind(
    type=list,
    flatten=lambda tree: (tree, None),
    unflatten=lambda data, children: list(children),
    keys=_by_position,
    show=lambda data, children: f"[{', '.join(children)}]",
    plain=True)
DICT = Kind(
    type=dict,
    flatten=_flatten_dict,
    unflatten=lambda keys, children: dict(zip(keys, children, strict=True)),
    keys=lambda tree, keys, count: map(DictKey, keys),
    show=_show_dict,
    plain=True)
NAMEDTUPLE = Kind(  # one kind for all of them: the class itself is the node's data
    type=tuple,
    flatten=lambda tree: (tree, type(tree)),
    unflatten=lambda cls, children: cls(*children),
    keys=lambda tree, cls, count: map(GetAttrKey, cls._fields),
    show=_show_namedtuple,
    plain=True)


def _flatten_ordered_dict(tree: OrderedDict[Any, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    return list(tree.values()), tuple(tree)


def _flatten_defaultdict(tree: defaultdict[Any, Any]) -> tuple[list[Any], tuple[Any, Any]]:
    children, keys = _flatten_dict(tree)
    return children, (tree.default_factory, keys)


_ORDERED_DICT = Kind(
    type=OrderedDict,
    flatten=_flatten_ordered_dict,
    unflatten=lambda keys, children: OrderedDict(zip(keys, children, strict=True)),
    keys=lambda tree, keys, count: map(DictKey, keys),
    show=show_custom("OrderedDict"))
_DEFAULTDICT = Kind(
    type=defaultdict,
    flatten=_flatten_defaultdict,
    unflatten=lambda data, children: defaultdict(data[0], zip(data[1], children, strict=True)),
    keys=lambda tree, data, count: map(DictKey, data[1]),
    show=show_custom("defaultdict"))

# Registering a class adds it here.
kinds: dict[Any, Kind] = {kind.type: kind for kind in (
    _NONE, TUPLE, LIST, DICT, _ORDERED_DICT, _DEFAULTDICT)}


def kind_of(tree: Any) -> Kind | None:
    """Return the kind of the node `tree`, or None for a leaf."""
    kind = kinds.get(type(tree))
    if kind is None and isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return NAMEDTUPLE
    return kind


def stopping(is_leaf: Callable[..., bool] | None, takes_path: bool = False
             ) -> Callable[[KeyPath, Any], bool]:
    """`is_leaf` as a function of a path and what is there; without it, nothing stops a descent."""
    if is_leaf is None:
        return lambda path, x: False
    return is_leaf if takes_path else lambda path, x: is_leaf(x)


def children_with_keys(kind: Kind, tree: Any) -> tuple[list[tuple[KeyEntry, Any]], Any]:
    """Return the children of a node of this kind, each with its key, and the static data."""
    children, data = kind.flatten(tree)
    children = tuple(children)
    return list(zip(kind.keys(tree, data, len(children)), children, strict=True)), data
