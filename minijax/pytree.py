"""What a tree is: kinds of node, one per container type, and treedefs.

Stands on `errors`.  Chapter 05, *Trees*.
In JAX: ``jaxlib/pytree.cc``, written in C++.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from minijax import errors

IsLeaf = Callable[[Any], bool]
KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]


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


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """How one container type is taken apart, put together, named and printed."""

    type: Any
    flatten: Callable[[Any], tuple[Iterable[Any], Any]]  # tree -> children, static data
    unflatten: Callable[[Any, list[Any]], Any]  # static data, children -> tree
    keys: Callable[[Any, Any, int], Iterable[KeyEntry]]  # tree, data, count -> a key per child
    show: Callable[[Any, list[str]], str]  # data, children as text -> text

    def __reduce__(self) -> tuple[Callable[..., Kind], tuple[Any]]:
        return _kind_of_type, (self.type,)


def _by_position(tree: Any, data: Any, count: int) -> list[KeyEntry]:
    return [SequenceKey(place) for place in range(count)]


def _show_tuple(data: Any, children: list[str]) -> str:
    return f"({children[0]},)" if len(children) == 1 else f"({', '.join(children)})"


def sorted_keys(tree: dict[Any, Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(tree))
    except TypeError as problem:
        raise errors.with_cure(
            ValueError("Comparator raised exception while sorting pytree dictionary keys."),
            f"The keys of a dict must be comparable ({problem}); an OrderedDict keeps its own "
            "order.") from None


def _flatten_dict(tree: dict[Any, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    keys = sorted_keys(tree)
    return [tree[key] for key in keys], keys


def _show_dict(keys: Sequence[Any], children: list[str]) -> str:
    entries = [f"{key!r}: {child}" for key, child in zip(keys, children, strict=True)]
    return "{" + ", ".join(entries) + "}"


def _show_namedtuple(cls: type, children: list[str]) -> str:
    return f"CustomNode(namedtuple[{cls.__name__}], [{', '.join(children)}])"


_NONE = Kind(type(None), lambda tree: ((), None), lambda data, children: None,
             _by_position, lambda data, children: "None")
TUPLE = Kind(tuple, lambda tree: (tree, None), lambda data, children: tuple(children),
             _by_position, _show_tuple)
LIST = Kind(list, lambda tree: (tree, None), lambda data, children: list(children),
            _by_position, lambda data, children: f"[{', '.join(children)}]")
DICT = Kind(dict, _flatten_dict, lambda keys, children: dict(zip(keys, children, strict=True)),
            lambda tree, keys, count: map(DictKey, keys), _show_dict)
# One kind for all named tuples: the class itself is the node's data.
NAMEDTUPLE = Kind(NamedTuple, lambda tree: (tree, type(tree)), lambda cls, children: cls(*children),
                  lambda tree, cls, count: map(GetAttrKey, cls._fields), _show_namedtuple)

# Registering a class adds it here.
kinds: dict[Any, Kind] = {kind.type: kind for kind in (_NONE, TUPLE, LIST, DICT, NAMEDTUPLE)}


def _kind_of_type(cls: Any) -> Kind:
    return kinds[cls]


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


# -- treedefs: the structures of trees, without their leaves ---------------------------------------


class PyTreeDef:
    """The structure of a tree: what is left when the leaves are taken out.

    Treedefs compare by structure and are hashable.

    >>> from minijax.tree_util import tree_structure
    >>> tree_structure({"a": 1, "b": [2, 3]})
    PyTreeDef({'a': *, 'b': [*, *]})
    """

    __slots__ = ("_kind", "_data", "_children", "num_leaves", "_hash", "__weakref__")

    num_leaves: int

    def __init__(self, kind: Kind | None, data: Any, children: Iterable[PyTreeDef]) -> None:
        self._kind, self._data, self._children = kind, data, tuple(children)
        self.num_leaves = sum([c.num_leaves for c in self._children]) if kind is not None else 1
        self._hash: int | None = None

    @property
    def num_nodes(self) -> int:
        return 1 + sum(c.num_nodes for c in self._children)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the tree of this structure with these leaves; ValueError if they do not fit.

        >>> from minijax.tree_util import tree_structure
        >>> tree_structure((1, [2])).unflatten("ab")
        ('a', ['b'])
        """
        leaves = leaves if type(leaves) in (list, tuple) else list(leaves)
        given = len(leaves)  # type: ignore[arg-type]
        if given != self.num_leaves:
            _refuse_count(self.num_leaves, given)
        return _build(self, iter(leaves))

    def children(self) -> list[PyTreeDef]:
        """Return the treedefs of the children.

        >>> from minijax.tree_util import tree_structure
        >>> tree_structure((1, [2])).children()
        [PyTreeDef(*), PyTreeDef([*])]
        """
        return list(self._children)

    def node_data(self) -> tuple[type, Any] | None:
        """Return (type, static data) of the outermost node, or None for a leaf.

        >>> from minijax.tree_util import tree_structure
        >>> tree_structure({"a": 1}).node_data()
        (<class 'dict'>, ['a'])
        """
        if self._kind is None:
            return None
        if self._kind is NAMEDTUPLE:
            return self._data, None
        return self._kind.type, list(self._data) if self._kind is DICT else self._data

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """Return this structure with `inner` in the place of every leaf.

        >>> from minijax.tree_util import tree_structure
        >>> tree_structure((1, 2)).compose(tree_structure([3]))
        PyTreeDef(([*], [*]))
        """
        if self._kind is None:
            return inner
        return PyTreeDef(self._kind, self._data, [c.compose(inner) for c in self._children])

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the parts of `tree` that stand where this structure has its leaves.

        >>> from minijax.tree_util import tree_structure
        >>> tree_structure((1, 2)).flatten_up_to(([3, 4], {"a": 5}))
        [[3, 4], {'a': 5}]
        """
        parts: list[Any] = []
        _flatten_up_to(self, tree, parts)
        return parts

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, PyTreeDef):
            return NotImplemented
        return (self._kind is other._kind and self.num_leaves == other.num_leaves
                and _same_data(self._data, other._data) and self._children == other._children)

    def __hash__(self) -> int:
        if self._hash is None:
            try:
                data = hash(self._data)
            except TypeError:  # such trees are told apart by `==` alone
                data = 0
            self._hash = hash((id(self._kind), data, self._children))
        return self._hash

    def __repr__(self) -> str:
        return f"PyTreeDef({self.written(itertools.repeat('*'))})"

    def written(self, leaves: Iterator[str]) -> str:
        """The tree as Python would write it, with these texts for its leaves."""
        if self._kind is None:
            return next(leaves)
        return self._kind.show(self._data, [c.written(leaves) for c in self._children])

    def __reduce__(self) -> tuple[type[PyTreeDef], tuple[Any, ...]]:
        return PyTreeDef, (self._kind, self._data, self._children)


LEAF = PyTreeDef(None, None, ())


def _refuse_count(expected: int, given: int) -> None:
    if given < expected:
        raise ValueError(f"Too few leaves for PyTreeDef; expected {expected}, got {given}")
    raise ValueError(f"Too many leaves for PyTreeDef; expected {expected}.")


def _same_data(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(one == other)
    except ValueError as problem:  # an array, say
        raise ValueError(
            "Exception raised while checking equality of metadata fields of pytree. Make sure that "
            "metadata fields are hashable and have simple equality semantics. (Note: arrays cannot "
            "be passed as metadata fields!)") from problem


def _build(treedef: PyTreeDef, leaves: Iterator[Any]) -> Any:
    kind = treedef._kind
    if kind is None:
        return next(leaves)
    return kind.unflatten(treedef._data, [
        next(leaves) if child is LEAF else _build(child, leaves)
        for child in treedef._children])


def flatten_into(tree: Any, leaves: list[Any], is_leaf: IsLeaf | None) -> PyTreeDef:
    """Append the leaves of `tree` to `leaves` and return its structure."""
    kind = None if is_leaf is not None and is_leaf(tree) else kind_of(tree)
    if kind is None:
        leaves.append(tree)
        return LEAF
    children, data = kind.flatten(tree)
    structures = []
    for child in children:
        # the first two tests of `kind_of`, here to spare most leaves a call
        if is_leaf is None and type(child) not in kinds and not isinstance(child, tuple):
            leaves.append(child)
            structures.append(LEAF)
        else:
            structures.append(flatten_into(child, leaves, is_leaf))
    return PyTreeDef(kind, data, structures)


def _flatten_up_to(treedef: PyTreeDef, tree: Any, parts: list[Any]) -> None:
    kind = treedef._kind
    if kind is None:
        parts.append(tree)
        return
    wanted = treedef._data if kind is NAMEDTUPLE else kind.type
    if kind_of(tree) is not kind or type(tree) is not wanted:
        raise ValueError(_other_kind(kind, wanted, tree))
    children, data = kind.flatten(tree)
    children = list(children)
    if not _same_data(data, treedef._data):
        _refuse_data(kind, treedef._data, data, tree)
    if len(children) != len(treedef._children):
        name = kind.type.__name__
        raise ValueError(f"{name.capitalize()} arity mismatch: {len(children)} != "
                         f"{len(treedef._children)}; {name}: {tree!r}.")
    for child_def, child in zip(treedef._children, children, strict=True):
        _flatten_up_to(child_def, child, parts)


def _other_kind(kind: Kind, wanted: type, tree: Any) -> str:
    if kind is NAMEDTUPLE:
        return (f"Named tuple type mismatch: expected type: {wanted}, tuple: {tree!r}."
                if kind_of(tree) is kind else f"Expected named tuple, got {tree!r}.")
    if wanted in (tuple, list, dict):
        return f"Expected {wanted.__name__}, got {tree!r}."
    if wanted is type(None):
        return f"Expected None, got {tree!r}."
    return f"Custom node type mismatch: expected type: {wanted}, value: {tree!r}."


def _refuse_data(kind: Kind, expected: Any, present: Any, tree: Any) -> None:
    if kind is DICT:
        raise ValueError(f"Dict key mismatch; expected keys: {list(expected)}; "
                         f"present keys: {list(present)}.")
    raise ValueError(f"Mismatch custom node data: {expected} != {present}; value: {tree!r}.")
