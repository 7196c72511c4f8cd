"""Trees: the kinds of nodes, one for each container type, and treedefs.

Builds on `errors`.  Chapter 05, *Trees*.
In JAX: ``jaxlib/pytree.cc``, written in C++.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
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

    def __hash__(self) -> int:
        return hash((FlattenedIndexKey, self.key))

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
    """The flattening, unflattening, names and text of one container type."""

    type: Any
    flatten: Callable[[Any], tuple[Sequence[Any], Any]]  # tree -> children, static data
    unflatten: Callable[[Any, list[Any]], Any]  # static data, children -> tree
    keys: Callable[[Any, Any, int], Iterable[KeyEntry]]  # tree, data, count -> a key per child
    show: Callable[[Any, list[str]], str]  # data, children as text -> text
    bare: dict[int, Node] = dataclasses.field(default_factory=dict, repr=False)  # without data

    # as the entries of JAX's registry call them
    to_iter = property(operator.attrgetter("flatten"))
    from_iter = property(operator.attrgetter("unflatten"))

    def node(self, count: int, data: Any) -> Node:
        """A node of so many children; one object for all that are alike and hold no data."""
        if data is not None:
            return self, count, data
        return self.bare.get(count) or self.bare.setdefault(count, (self, count, None))

    def __reduce__(self) -> tuple[Callable[..., Kind], tuple[Any]]:
        return _kind_of_type, (self.type,)


_FIRST = tuple(map(SequenceKey, range(256)))  # the same few keys, for every sequence


def _by_position(tree: Any, data: Any, count: int) -> Iterable[KeyEntry]:
    return _FIRST[:count] if count <= len(_FIRST) else map(SequenceKey, range(count))


# One node of a structure: its kind, how many children it has, its static data.
Node = tuple[Kind, int, Any]


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
LIST = Kind(list, lambda tree: (tree, None), lambda data, children: children,
            _by_position, lambda data, children: f"[{', '.join(children)}]")
DICT = Kind(dict, _flatten_dict, lambda keys, children: dict(zip(keys, children, strict=True)),
            lambda tree, keys, count: map(DictKey, keys), _show_dict)
# One kind for all named tuples: the class itself is the node's data.
# One may have a `len` of its own, so that its fields are counted in a tuple of them.
NAMEDTUPLE = Kind(NamedTuple, lambda x: (tuple(iter(x)), type(x)), lambda cls, xs: cls(*xs),
                  lambda tree, cls, count: map(GetAttrKey, cls._fields), _show_namedtuple)


class Substitute(NamedTuple):
    """Stands for a container of the user's whose class refuses what stands for its leaves."""

    kind: Kind
    data: Any
    children: Sequence[Any]


SUBSTITUTE = Kind(Substitute, lambda tree: (tree.children, tree.data),
                  lambda data, children: Substitute(data[0], data[1], children),
                  lambda tree, data, count: map(FlattenedIndexKey, range(count)), _show_tuple)


def _or_substitute(kind: Kind) -> Callable[[Any, list[Any]], Any]:
    """A node of this kind, or a substitute if the user's class raises."""
    def made(data: Any, children: list[Any]) -> Any:
        try:
            return kind.unflatten(data, children)
        except Exception:
            return Substitute(kind, data, children)
    return made


# Registering a class adds it here.
kinds: dict[Any, Kind] = {kind.type: kind for kind in (
    _NONE, TUPLE, LIST, DICT, NAMEDTUPLE, SUBSTITUTE)}


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
    return list(zip(kind.keys(tree, data, len(children)), children, strict=True)), data


# -- treedefs: the structures of trees, without their leaves ---------------------------------------


class PyTreeDef:
    """The structure of a tree without its leaves.

    Treedefs compare by structure and are hashable.  A structure is one flat tuple: its nodes, each
    after its children, with None for a leaf; so a deep tree asks for no deep recursion.

    >>> from minijax.tree_util import tree_structure
    >>> tree_structure({"a": 1, "b": [2, 3]})
    PyTreeDef({'a': *, 'b': [*, *]})
    """

    __slots__ = ("nodes", "num_leaves", "_hash", "__weakref__")

    def __init__(self, nodes: tuple[Node | None, ...], num_leaves: int | None = None) -> None:
        self.nodes = nodes
        self.num_leaves = nodes.count(None) if num_leaves is None else num_leaves
        self._hash: int | None = None

    @property
    def num_nodes(self) -> int:
        return len(self.nodes)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the tree of this structure with these leaves; ValueError if they do not fit.

        >>> from minijax.tree_util import tree_structure
        >>> tree_structure((1, [2])).unflatten("ab")
        ('a', ['b'])
        """
        leaves = leaves if type(leaves) in (list, tuple) else list(leaves)
        count = len(leaves)  # type: ignore[arg-type]
        if count != self.num_leaves:
            few, expected = count < self.num_leaves, f"expected {self.num_leaves}"
            raise ValueError(f"Too few leaves for PyTreeDef; {expected}, got {count}" if few else
                             f"Too many leaves for PyTreeDef; {expected}.")
        return self.folded(leaves, operator.attrgetter("unflatten"))

    def unflatten_types(self, types: Iterable[Any]) -> Any:
        """Return the tree of this structure with what stands for leaves: types, or placeholders.

        A container of the user's that computes with its leaves, and so cannot be made of these, is
        replaced by one that flattens as it would.
        """
        return self.folded(types, _or_substitute)

    def folded(self, leaves: Iterable[Any],
               join: Callable[[Kind], Callable[[Any, list[Any]], Any]]) -> Any:
        """Fold the tree by a function of each node's kind, data, and results of its children."""
        rest = iter(leaves)
        made: list[Any] = []
        for node in self.nodes:
            if node is None:
                made.append(next(rest))
                continue
            kind, count, data = node
            children = made[-count:] if count else []
            del made[len(made) - count:]
            made.append(join(kind)(data, children))
        return made[0]

    def children(self) -> list[PyTreeDef]:
        """Return the treedefs of the children.

        >>> from minijax.tree_util import tree_structure
        >>> tree_structure((1, [2])).children()
        [PyTreeDef(*), PyTreeDef([*])]
        """
        starts: list[int] = []  # where each subtree begins that has no parent yet
        for place, node in enumerate(self.nodes[:-1]):
            if node is None or not node[1]:
                starts.append(place)
            else:
                del starts[len(starts) - node[1] + 1:]
        return [PyTreeDef(self.nodes[start:stop])
                for start, stop in itertools.pairwise([*starts, len(self.nodes) - 1])]

    def node_data(self) -> tuple[type, Any] | None:
        """Return (type, static data) of the outermost node, or None for a leaf.

        >>> from minijax.tree_util import tree_structure
        >>> tree_structure({"a": 1}).node_data()
        (<class 'dict'>, ['a'])
        """
        root = self.nodes[-1]
        if root is None:
            return None
        kind, _, data = root
        if kind is NAMEDTUPLE:
            return data, None
        return kind.type, list(data) if kind is DICT else data

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """Return this structure with `inner` in the place of every leaf.

        >>> from minijax.tree_util import tree_structure
        >>> tree_structure((1, 2)).compose(tree_structure([3]))
        PyTreeDef(([*], [*]))
        """
        parts = (inner.nodes if node is None else (node,) for node in self.nodes)
        return PyTreeDef(tuple(itertools.chain.from_iterable(parts)),
                         self.num_leaves * inner.num_leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the parts of `tree` that stand where this structure has its leaves.

        >>> from minijax.tree_util import tree_structure
        >>> tree_structure((1, 2)).flatten_up_to(([3, 4], {"a": 5}))
        [[3, 4], {'a': 5}]
        """
        parts: list[Any] = []
        ahead = [tree]
        for node in reversed(self.nodes):  # each before its children, the last child first
            part = ahead.pop()
            if node is None:
                parts.append(part)
                continue
            kind, count, _ = node
            is_alike = (kind is LIST or kind is TUPLE) and (  # nothing else to compare
                type(part) is kind.type and len(part) == count)
            ahead += part if is_alike else _children_like(*node, part)
        return parts[::-1]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, PyTreeDef):
            return NotImplemented
        return len(self.nodes) == len(other.nodes) and _same_data(self.nodes, other.nodes)

    def __hash__(self) -> int:
        if self._hash is None:  # static data need not be hashable, and is told apart by `==` alone
            self._hash = hash(tuple(node and node[:2] for node in self.nodes))
        return self._hash

    def __repr__(self) -> str:
        return f"PyTreeDef({self.folded(itertools.repeat('*'), operator.attrgetter('show'))})"

    def __reduce__(self) -> tuple[type[PyTreeDef], tuple[Any, ...]]:
        return PyTreeDef, (self.nodes, self.num_leaves)


def _same_data(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(one == other)
    except ValueError as problem:  # an array, say
        raise ValueError(
            "Exception raised while checking equality of metadata fields of pytree. Make sure that "
            "metadata fields are hashable and have simple equality semantics. (Note: arrays cannot "
            "be passed as metadata fields!)") from problem


def flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], PyTreeDef]:
    """Return the leaves of a tree, and its structure."""
    leaves: list[Any] = []
    nodes: list[Node | None] = []
    above: list[tuple[Any, Iterator[Any], Any]] = []  # the nodes around, and what waits there
    rest, node, limit = iter((tree,)), None, _DEEP
    known_kind = kinds.get
    while True:
        for x in rest:
            kind = known_kind(type(x))
            if kind is None and isinstance(x, tuple):  # spares most leaves a call
                kind = kind_of(x)
            if is_leaf is not None and is_leaf(x) or kind is None:
                leaves.append(x)
                nodes.append(None)
                continue
            children, data = (x, None) if kind is LIST or kind is TUPLE else kind.flatten(x)
            count = len(children)
            if kind is SUBSTITUTE:
                kind = x.kind
            inner = (kind, count, data) if data is not None else (
                kind.bare.get(count) or kind.node(count, data))
            if count:
                above.append((x, rest, node))
                rest, node = iter(children), inner
                if len(above) == limit:
                    limit = deeper(above)
                break
            nodes.append(inner)
        else:
            if not above:
                return leaves, PyTreeDef(tuple(nodes), len(leaves))
            nodes.append(node)
            _, rest, node = above.pop()


_DEEP, _DEEPEST = 1000, 1_000_000


def deeper(above: Sequence[tuple[Any, ...]]) -> int:
    """The depth at which to look again whether a tree ends; `above` begins with each its node.

    Raises:
      RecursionError: for a container inside of itself, and where flattening makes ever new ones.
    """
    root = type(above[0][0]).__name__
    if len({id(node) for node, *_ in above}) < len(above):
        raise RecursionError(f"A pytree must be finite, but this {root} contains itself.")
    if len(above) >= _DEEPEST:
        raise RecursionError(f"This {root} is a pytree of more than {_DEEPEST} levels: does a "
                             "registered flatten function return a node of its own type?")
    return min(2 * len(above), _DEEPEST)


def flatten_with_path(tree: Any, is_leaf: Callable[..., bool] | None, takes_path: bool
                      ) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """The same, with the path of each leaf."""
    paths: list[KeyPath] = []
    path: list[KeyEntry] = []  # of the node that `flatten` looks at
    ahead: list[tuple[int, KeyEntry]] = [(0, None)]  # the depth and the key of those that follow
    stops = stopping(is_leaf, takes_path)

    def is_leaf_there(x: Any) -> bool:
        depth, key = ahead.pop()
        path[depth - 1:] = [key] if depth else []
        kind = kind_of(x)
        if kind is None or is_leaf is not None:
            here = tuple(path)
            if stops(here, x) or kind is None:
                paths.append(here)
                return True
        pairs, _ = children_with_keys(kind, x)
        ahead.extend((depth + 1, key) for key, _ in reversed(pairs))
        return False

    leaves, treedef = flatten(tree, is_leaf_there)
    return list(zip(paths, leaves, strict=True)), treedef


def _children_like(kind: Kind, count: int, expected: Any, tree: Any) -> Sequence[Any]:
    """The children of `tree`, refused where it is no node of this kind, count and data."""
    wanted = expected if kind is NAMEDTUPLE else kind.type
    if kind_of(tree) is not kind or type(tree) is not wanted:
        raise ValueError(_other_kind(kind, wanted, tree))
    children, data = kind.flatten(tree)
    if data is not expected and not _same_data(data, expected):
        _refuse_data(kind, expected, data, tree)
    if len(children) != count:
        name = kind.type.__name__
        raise ValueError(f"{name.capitalize()} arity mismatch: {len(children)} != "
                         f"{count}; {name}: {_shown(tree)}.")
    return children


def _shown(tree: Any) -> str:
    try:
        return repr(tree)
    except RecursionError:
        return f"<a {type(tree).__name__} too deep to be printed>"


def _other_kind(kind: Kind, wanted: type, tree: Any) -> str:
    shown = _shown(tree)
    if kind is NAMEDTUPLE:
        return (f"Named tuple type mismatch: expected type: {wanted}, tuple: {shown}."
                if hasattr(tree, "_fields") else f"Expected named tuple, got {shown}.")
    if wanted in (tuple, list, dict):
        return f"Expected {wanted.__name__}, got {shown}."
    if wanted is type(None):
        return f"Expected None, got {shown}."
    return f"Custom node type mismatch: expected type: {wanted}, value: {shown}."


def _refuse_data(kind: Kind, expected: Any, present: Any, tree: Any) -> None:
    if kind is DICT:
        raise ValueError(f"Dict key mismatch; expected keys: {list(expected)}; "
                         f"present keys: {list(present)}.")
    raise ValueError(f"Mismatch custom node data: {expected} != {present}; value: {_shown(tree)}.")
