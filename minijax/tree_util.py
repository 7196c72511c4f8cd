"""Pytrees: nested containers taken apart into leaves and a treedef, and put together again.

Stands on the standard library alone.  Its chapter is "Trees".
In JAX: ``jax/_src/tree_util.py``, over a registry and treedefs written in C++.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
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
    return separator.join(map(_bare_key if simple else str, keys))


def _bare_key(key: KeyEntry) -> str:
    for attribute in ("idx", "key", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


# -- kinds of node: one per container type -------------------------------------------------------


class _Kind:
    """How one container type is taken apart, named and put together.

    ``flatten(tree)`` gives (children, data), ``unflatten(data, children)`` a tree, ``keys(tree,
    data, count)`` one key per child, ``show(data, children)`` what a treedef prints; ``plain``
    says that equal data (and types) are interchangeable, so that treedefs may be shared.
    """

    __slots__ = ("type", "flatten", "unflatten", "keys", "show", "plain")

    def __init__(self, type: Any, flatten: Callable[..., tuple[Iterable[Any], Any]],
                 unflatten: Callable[..., Any], keys: Callable[..., Iterable[KeyEntry]],
                 show: Callable[[Any, list[str]], str], plain: bool = False) -> None:
        self.type, self.flatten, self.unflatten = type, flatten, unflatten
        self.keys, self.show, self.plain = keys, show, plain


def _by_position(tree: Any, data: Any, count: int) -> list[KeyEntry]:
    return [SequenceKey(place) for place in range(count)]


def _by_flat_index(tree: Any, data: Any, count: int) -> list[KeyEntry]:
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


def _show_custom(name: str) -> Callable[[Any, list[str]], str]:
    return lambda data, children: f"CustomNode({name}[{data}], [{', '.join(children)}])"


_NONE = _Kind(type(None), lambda tree: ((), None), lambda data, children: None, _by_position,
              lambda data, children: "None", plain=True)
_TUPLE = _Kind(tuple, lambda tree: (tree, None), lambda data, children: tuple(children),
               _by_position, _show_tuple, plain=True)
_LIST = _Kind(list, lambda tree: (tree, None), lambda data, children: list(children),
              _by_position, lambda data, children: f"[{', '.join(children)}]", plain=True)
_DICT = _Kind(dict, _flatten_dict, lambda keys, children: dict(zip(keys, children, strict=True)),
              lambda tree, keys, count: map(DictKey, keys), _show_dict, plain=True)
# one kind for all of them: the class itself is the node's data
_NAMEDTUPLE = _Kind(tuple, lambda tree: (tree, type(tree)), lambda cls, children: cls(*children),
                    lambda tree, cls, count: map(GetAttrKey, cls._fields), _show_namedtuple,
                    plain=True)

_kinds: dict[Any, _Kind] = {type(None): _NONE, tuple: _TUPLE, list: _LIST, dict: _DICT}


def _kind_of(tree: Any) -> _Kind | None:
    """Return the kind of the node `tree`, or None for a leaf."""
    kind = _kinds.get(type(tree))
    if kind is None and isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return _NAMEDTUPLE
    return kind


# -- treedefs ------------------------------------------------------------------------------------


class PyTreeDef:
    """The structure of a tree: what is left when the leaves are taken out.

    Treedefs compare by structure and are hashable (where the static data in them is).

    >>> tree_structure({"a": 1, "b": [2, 3]})
    PyTreeDef({'a': *, 'b': [*, *]})
    """

    __slots__ = ("_kind", "_data", "_children", "num_leaves", "num_nodes", "_shared", "_hash",
                 "__weakref__")

    num_leaves: int
    num_nodes: int

    def __init__(self, kind: _Kind | None, data: Any, children: tuple[PyTreeDef, ...],
                 shared: bool) -> None:
        self._kind, self._data, self._children, self._shared = kind, data, children, shared
        self.num_leaves = sum(c.num_leaves for c in children) if kind is not None else 1
        self.num_nodes = 1 + sum(c.num_nodes for c in children)
        self._hash: int | None = None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the tree of this structure with these leaves; ValueError if they do not fit.

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

        >>> tree_structure((1, [2])).children()
        [PyTreeDef(*), PyTreeDef([*])]
        """
        return list(self._children)

    def node_data(self) -> tuple[type, Any] | None:
        """Return (type, static data) of the outermost node, or None for a leaf.

        >>> tree_structure({"a": 1}).node_data()
        (<class 'dict'>, ['a'])
        """
        if self._kind is None:
            return None
        if self._kind is _NAMEDTUPLE:
            return self._data, None
        return self._kind.type, list(self._data) if self._kind is _DICT else self._data

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """Return this structure with `inner` in the place of every leaf.

        >>> tree_structure((1, 2)).compose(tree_structure([3]))
        PyTreeDef(([*], [*]))
        """
        if self._kind is None:
            return inner
        return _node(self._kind, self._data, [c.compose(inner) for c in self._children])

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the parts of `tree` that stand where this structure has its leaves.

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
        return (self._kind is other._kind and self.num_nodes == other.num_nodes
                and self.num_leaves == other.num_leaves
                and bool(self._data == other._data) and self._children == other._children)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((id(self._kind), self._data, self._children))
        return self._hash

    def __repr__(self) -> str:
        return f"PyTreeDef({self._show()})"

    def _show(self) -> str:
        if self._kind is None:
            return "*"
        return self._kind.show(self._data, [c._show() for c in self._children])

    def __reduce__(self) -> tuple[Callable[..., PyTreeDef], tuple[Any, ...]]:
        if self._kind is None:
            return _leaf_treedef, ()
        is_namedtuple = self._kind is _NAMEDTUPLE
        return _restore, (self._kind.type, is_namedtuple, self._data, self._children)


_LEAF = PyTreeDef(None, None, (), shared=True)


def _leaf_treedef() -> PyTreeDef:
    return _LEAF


def _restore(cls: type, is_namedtuple: bool, data: Any, children: Sequence[PyTreeDef]
             ) -> PyTreeDef:
    return _node(_NAMEDTUPLE if is_namedtuple else _kinds[cls], data, list(children))


# Equal structures are mostly one object, which makes comparing and hashing them cheap.  That is
# an advantage and no promise: the table is emptied when it has grown large.
_shared_treedefs: dict[Any, PyTreeDef] = {}
_MOST_SHARED = 10_000
_STRINGS = frozenset([str])


def _node(kind: _Kind, data: Any, children: list[PyTreeDef]) -> PyTreeDef:
    """Return the treedef of a node, shared where that cannot be seen."""
    # {1: x} and {True: x} have equal treedefs, and must not come back as each other
    if not kind.plain or kind is _DICT and not _STRINGS.issuperset(map(type, data)):
        return PyTreeDef(kind, data, tuple(children), shared=False)
    # the ids are those of objects that the table's entry keeps alive
    key = (kind, data, *map(id, children))
    return _shared_treedefs.get(key) or _new_node(key, kind, data, children)


def _new_node(key: Any, kind: _Kind, data: Any, children: list[PyTreeDef]) -> PyTreeDef:
    shared = all(child._shared for child in children)
    made = PyTreeDef(kind, data, tuple(children), shared)
    if not shared:
        return made
    if len(_shared_treedefs) >= _MOST_SHARED:
        _shared_treedefs.clear()
    return _shared_treedefs.setdefault(key, made)


def _refuse_count(expected: int, given: int) -> None:
    if given < expected:
        raise ValueError(f"Too few leaves for PyTreeDef; expected {expected}, got {given}")
    raise ValueError(f"Too many leaves for PyTreeDef; expected {expected}.")


def _build(treedef: PyTreeDef, leaves: Iterator[Any]) -> Any:
    kind = treedef._kind
    if kind is None:
        return next(leaves)
    return kind.unflatten(treedef._data, [
        next(leaves) if child is _LEAF else _build(child, leaves)
        for child in treedef._children])


def _flatten(tree: Any, leaves: list[Any], is_leaf: IsLeaf | None) -> PyTreeDef:
    """Append the leaves of `tree` to `leaves` and return its structure."""
    kind = None if is_leaf is not None and is_leaf(tree) else _kind_of(tree)
    if kind is None:
        leaves.append(tree)
        return _LEAF
    children, data = kind.flatten(tree)
    structures = []
    for child in children:
        # the first two tests of `_kind_of`, here to spare most leaves a call
        if is_leaf is None and type(child) not in _kinds and not isinstance(child, tuple):
            leaves.append(child)
            structures.append(_LEAF)
        else:
            structures.append(_flatten(child, leaves, is_leaf))
    return _node(kind, data, structures)


def _flatten_up_to(treedef: PyTreeDef, tree: Any, parts: list[Any]) -> None:
    kind = treedef._kind
    if kind is None:
        parts.append(tree)
        return
    wanted = treedef._data if kind is _NAMEDTUPLE else kind.type
    if _kind_of(tree) is not kind or type(tree) is not wanted:
        raise ValueError(f"Expected {wanted.__name__}, got {tree!r}.")
    children, data = kind.flatten(tree)
    children = list(children)
    if data != treedef._data:
        _refuse_data(kind, treedef._data, data)
    if len(children) != len(treedef._children):
        name = kind.type.__name__
        raise ValueError(f"{name.capitalize()} arity mismatch: {len(children)} != "
                         f"{len(treedef._children)}; {name}: {tree!r}.")
    for child_def, child in zip(treedef._children, children, strict=True):
        _flatten_up_to(child_def, child, parts)


def _refuse_data(kind: _Kind, expected: Any, present: Any) -> None:
    if kind is _DICT:
        raise ValueError(f"Dict key mismatch; expected keys: {list(expected)}; "
                         f"present keys: {list(present)}.")
    raise ValueError(f"Mismatch custom node data: {expected} != {present}; "
                     f"type: {kind.type.__name__}.")


# -- taking apart and putting together -----------------------------------------------------------


def _wants_callable(is_leaf: Any) -> None:
    if is_leaf is not None and not callable(is_leaf):
        raise TypeError(f"is_leaf must be a function or None, not {is_leaf!r}.")


def tree_flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], PyTreeDef]:
    """Return the leaves of a tree, in order, and its structure.

    Tuples, lists, dicts (by sorted key), None (no leaf), named tuples, OrderedDicts, defaultdicts
    and registered types are nodes; everything else, and what `is_leaf` says, is a leaf.

    >>> tree_flatten({"b": 1, "a": (2, None)})
    ([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
    """
    _wants_callable(is_leaf)
    leaves: list[Any] = []
    treedef = _flatten(tree, leaves, is_leaf)
    return leaves, treedef


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Return the tree of the given structure and leaves: the inverse of `tree_flatten`.

    >>> leaves, treedef = tree_flatten([1, (2, 3)])
    >>> tree_unflatten(treedef, leaves)
    [1, (2, 3)]
    """
    return treedef.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """Return the leaves of a tree.

    >>> tree_leaves({"b": 1, "a": (2, None)})
    [2, 1]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf | None = None) -> PyTreeDef:
    """Return the structure of a tree.

    >>> tree_structure([1, (2, 3)])
    PyTreeDef([*, (*, *)])
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Return a tree of the same structure, with ``f(leaf, …)`` for each leaf.

    Each tree of `rest` has `tree` as a prefix: where `tree` has a leaf it may have a subtree.

    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 11, 'b': (22, 33)}
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(leaf) for leaf in leaves])
    others = [_up_to_or_explain(treedef, tree, other, "tree_map tree", is_leaf) for other in rest]
    return treedef.unflatten([f(*parts) for parts in zip(leaves, *others, strict=True)])


def _up_to_or_explain(treedef: PyTreeDef, prefix: Any, full: Any, name: str,
                      is_leaf: IsLeaf | None) -> list[Any]:
    try:
        return treedef.flatten_up_to(full)
    except ValueError as problem:
        for explain in prefix_errors(prefix, full, is_leaf):
            raise explain(name) from None
        raise problem from None


_UNSPECIFIED: Any = object()


def tree_reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _UNSPECIFIED,
                is_leaf: IsLeaf | None = None) -> Any:
    """Combine all leaves with a function of two, from left to right.

    >>> tree_reduce(lambda x, y: x + y, [1, (2, [3])])
    6
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is _UNSPECIFIED:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(operation: Callable[[Any, Any], Any], tree: Any, *,
                            identity: Any = _UNSPECIFIED, is_leaf: IsLeaf | None = None) -> Any:
    """Combine all leaves with an associative function, as a balanced tree of few levels.

    >>> tree_reduce_associative(lambda x, y: f"({x}{y})", ["a", ("b", "c"), "d"])
    '((ab)(cd))'
    """
    level = tree_leaves(tree, is_leaf)
    if not level:
        if identity is _UNSPECIFIED:
            raise ValueError("A tree without leaves has no sum: give `identity`.")
        return identity
    while len(level) > 1:
        odd = level[-1:] if len(level) % 2 else []
        level = [operation(x, y) for x, y in zip(level[::2], level[1::2], strict=False)] + odd
    return level[0]


def tree_all(tree: Any, *, is_leaf: IsLeaf | None = None) -> bool:
    """Return whether all leaves are true.

    >>> tree_all({"a": True, "b": []})
    True
    """
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None,
                   pytree_to_transpose: Any) -> Any:
    """Turn a tree of trees inside out; None stands for the structure that is found inside.

    >>> outer, inner = tree_structure([0, 0]), tree_structure({"a": 0, "b": 0})
    >>> tree_transpose(outer, inner, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    {'a': [1, 3], 'b': [2, 4]}
    """
    if inner_treedef is None:
        inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    leaves, found = tree_flatten(pytree_to_transpose)
    if found.num_leaves != outer_treedef.num_leaves * inner_treedef.num_leaves:
        expected = outer_treedef.compose(inner_treedef)
        raise TypeError(f"Mismatch\n{found}\n != \n{expected}")
    width = inner_treedef.num_leaves
    return inner_treedef.unflatten(
        [outer_treedef.unflatten(leaves[place::width]) for place in range(width)])


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Return a tree like `full_tree` whose leaves repeat those of its prefix.

    >>> tree_broadcast((1, 2), ([0, 0], 0))
    ([1, 1], 2)
    """
    return tree_structure(full_tree).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None
                     ) -> list[Any]:
    """Return, for each leaf of `full_tree`, the leaf of its prefix that stands over it.

    >>> broadcast_prefix((0, None), ([1, 2], 3), is_leaf=lambda x: x is None)
    [0, 0, None]
    """
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    parts = _up_to_or_explain(treedef, prefix_tree, full_tree, "broadcast_prefix prefix_tree",
                              is_leaf)
    return [leaf for leaf, part in zip(leaves, parts, strict=True) for _ in tree_leaves(part)]


def flatten_axes(name: str, treedef: PyTreeDef, axes: Any) -> list[Any]:
    """Return, for each leaf of a structure, what a prefix of it says (None is a leaf of `axes`).

    `name` is what the error calls the prefix, such as ``"vmap in_axes"``.

    >>> flatten_axes("vmap in_axes", tree_structure((1, [2, 3])), (0, None))
    [0, None, None]
    """
    full = treedef.unflatten([0] * treedef.num_leaves)
    leaves, prefix = tree_flatten(axes, _is_none)
    try:
        parts = prefix.flatten_up_to(full)
    except ValueError:
        found = [str(explain(name)) for explain in prefix_errors(axes, full, _is_none)]
        details = "\n".join(found)
        raise ValueError(
            f"{name} specification must be a tree prefix of the corresponding value; \n"
            f"  Mismatch details ({len(found)} found):\n  {details}") from None
    return [leaf for leaf, part in zip(leaves, parts, strict=True) for _ in tree_leaves(part)]


def _is_none(x: Any) -> bool:
    return x is None


# -- treedefs as values --------------------------------------------------------------------------


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple whose items have these structures.

    >>> treedef_tuple([tree_structure(0), tree_structure([0])])
    PyTreeDef((*, [*]))
    """
    return _node(_TUPLE, None, list(treedefs))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of the children.

    >>> treedef_children(tree_structure((0, [0])))
    [PyTreeDef(*), PyTreeDef([*])]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return whether the structure is a single node (so None counts, as in JAX).

    >>> treedef_is_leaf(tree_structure(0)), treedef_is_leaf(tree_structure([0]))
    (True, False)
    """
    return treedef.num_nodes == 1


def build_tree(treedef: PyTreeDef, parts: Iterable[Any]) -> Any:
    """Return the tree of the given structure, with whole trees in the places of its leaves.

    >>> build_tree(tree_structure((0, 0)), [[1, 2], {"a": 3}])
    ([1, 2], {'a': 3})
    """
    return treedef.unflatten(parts)


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf | None = None) -> bool:
    """Return whether every item is a leaf.

    >>> all_leaves([1, 2]), all_leaves([1, (2,)])
    (True, False)
    """
    return all(is_leaf is not None and is_leaf(x) or _kind_of(x) is None for x in iterable)


def is_tree_node(typ: type) -> bool:
    """Return whether trees of this type have children (or could have).

    >>> is_tree_node(list), is_tree_node(int)
    (True, False)
    """
    return isinstance(typ, type) and (
        typ in _kinds or issubclass(typ, tuple) and hasattr(typ, "_fields"))


def flatten_one_level(tree: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the children and the static data of a node; ValueError for a leaf.

    >>> flatten_one_level({"b": 1, "a": [2]})
    (([2], 1), ('a', 'b'))
    """
    children, data = _node_kind(tree).flatten(tree)
    return tuple(children), data


def flatten_one_level_with_keys(tree: Any) -> tuple[list[tuple[KeyEntry, Any]], Any]:
    """Return the children of a node, each with its key, and the static data.

    >>> flatten_one_level_with_keys([5, 6])
    ([(SequenceKey(idx=0), 5), (SequenceKey(idx=1), 6)], None)
    """
    return _children_with_keys(_node_kind(tree), tree)


def _node_kind(tree: Any) -> _Kind:
    kind = _kind_of(tree)
    if kind is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    return kind


def _children_with_keys(kind: _Kind, tree: Any) -> tuple[list[tuple[KeyEntry, Any]], Any]:
    children, data = kind.flatten(tree)
    children = tuple(children)
    return list(zip(kind.keys(tree, data, len(children)), children, strict=True)), data


# -- with paths ----------------------------------------------------------------------------------


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Return (path, leaf) for all leaves, and the structure.

    >>> tree_flatten_with_path({"a": [1]})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 1)]
    """
    _wants_callable(is_leaf)
    stop = is_leaf or (lambda *_: False)
    stops = stop if is_leaf_takes_path else lambda path, x: stop(x)
    found: list[tuple[KeyPath, Any]] = []

    def visit(path: KeyPath, x: Any) -> PyTreeDef:
        kind = None if stops(path, x) else _kind_of(x)
        if kind is None:
            found.append((path, x))
            return _LEAF
        pairs, data = _children_with_keys(kind, x)
        return _node(kind, data, [visit((*path, key), child) for key, child in pairs])

    treedef = visit((), tree)
    return found, treedef


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Return (path, leaf) for all leaves.

    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [1]})]
    [("['a'][0]", 1)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def generate_key_paths(tree: Any, is_leaf: IsLeaf | None = None) -> list[tuple[KeyPath, Any]]:
    """Return (path, leaf) for all leaves: `tree_leaves_with_path` by its older name.

    >>> generate_key_paths([7])
    [((SequenceKey(idx=0),), 7)]
    """
    return tree_leaves_with_path(tree, is_leaf)


def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any,
                       is_leaf: Callable[..., bool] | None = None,
                       is_leaf_takes_path: bool = False) -> Any:
    """Return a tree of the same structure, with ``f(path, leaf, …)`` for each leaf.

    >>> tree_map_with_path(lambda path, x: keystr(path) + f" is {x}", {"a": [1, 2]})
    {'a': ["['a'][0] is 1", "['a'][1] is 2"]}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [treedef.flatten_up_to(other) for other in rest]
    return treedef.unflatten([
        f(path, leaf, *parts) for (path, leaf), *parts in zip(pairs, *others, strict=True)])


# -- registering types ---------------------------------------------------------------------------


def _register(kind: _Kind) -> None:
    if not isinstance(kind.type, type):
        raise TypeError(f"A pytree node type must be a class, not {kind.type!r}.")
    if kind.type in _kinds:
        raise ValueError(f"Duplicate custom PyTreeDef type registration for {kind.type}.")
    _kinds[kind.type] = kind


def _checked(flatten: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, Any]]:
    """Return `flatten` with an error that says what it should have returned."""
    wanted = ("The to_iterable function for a custom PyTree node should return a "
              "(children, aux_data) tuple")

    def flatten_checked(tree: Any) -> tuple[Any, Any]:
        pair = flatten(tree)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ValueError(f"{wanted}, got {pair}")
        if not isinstance(pair[0], Iterable):
            raise ValueError(f"{wanted} where 'children' is iterable, got {pair}")
        return pair

    return flatten_checked


def register_pytree_node(
    nodetype: type, flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: FlattenWithKeys | None = None,
) -> None:
    """Make a class a container: how it is taken apart, and how it is put together.

    `flatten_func` gives (children, static data); `unflatten_func` takes (static data, children).

    >>> class Pair:
    ...     def __init__(self, x, y): self.x, self.y = x, y
    >>> register_pytree_node(Pair, lambda p: ((p.x, p.y), None), lambda _, xy: Pair(*xy))
    >>> tree_leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    keys: Callable[..., Iterable[KeyEntry]] = _by_flat_index
    if flatten_with_keys_func is not None:
        def keys(tree: Any, data: Any, count: int) -> Iterable[KeyEntry]:
            return [key for key, _ in flatten_with_keys_func(tree)[0]]
    _register(_Kind(nodetype, _checked(flatten_func),
                    lambda data, children: unflatten_func(data, tuple(children)), keys,
                    _show_custom(getattr(nodetype, "__name__", ""))))


def register_pytree_node_class(cls: type[T]) -> type[T]:
    """Register a class that has the methods ``tree_flatten`` and (class) ``tree_unflatten``.

    >>> @register_pytree_node_class
    ... class Box:
    ...     def __init__(self, x): self.x = x
    ...     def tree_flatten(self): return (self.x,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, data, children): return cls(*children)
    >>> tree_map(lambda x: x + 1, Box(1)).x
    2
    """
    node: Any = cls
    register_pytree_node(cls, lambda tree: tree.tree_flatten(), node.tree_unflatten)
    return cls


def register_pytree_with_keys(
    nodetype: type, flatten_with_keys: FlattenWithKeys,
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Make a class a container whose children have keys: `flatten_with_keys` gives them as pairs.

    >>> class Named:
    ...     def __init__(self, x): self.x = x
    >>> register_pytree_with_keys(
    ...     Named, lambda n: ([(GetAttrKey("x"), n.x)], None), lambda _, c: Named(*c))
    >>> [keystr(path) for path, _ in tree_leaves_with_path(Named(1))]
    ['.x']
    """
    def flatten_without_keys(tree: Any) -> tuple[Iterable[Any], Any]:
        pairs, data = flatten_with_keys(tree)
        return [child for _, child in pairs], data

    register_pytree_node(nodetype, flatten_func or flatten_without_keys, unflatten_func,
                         flatten_with_keys)


def register_pytree_with_keys_class(cls: type[T]) -> type[T]:
    """Register a class that has ``tree_flatten_with_keys`` and (class) ``tree_unflatten``.

    >>> @register_pytree_with_keys_class
    ... class Keyed:
    ...     def __init__(self, x): self.x = x
    ...     def tree_flatten_with_keys(self): return [(GetAttrKey("x"), self.x)], None
    ...     @classmethod
    ...     def tree_unflatten(cls, data, children): return cls(*children)
    >>> tree_leaves_with_path(Keyed(1))
    [((GetAttrKey(name='x'),), 1)]
    """
    node: Any = cls
    flatten = (lambda tree: tree.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(cls, lambda tree: tree.tree_flatten_with_keys(),
                              node.tree_unflatten, flatten)
    return cls


def register_static(cls: type[T]) -> type[T]:
    """Register a class as a node without leaves: the object itself is static data.

    >>> @register_static
    ... class Mode(str): pass
    >>> tree_structure((Mode("fast"), 1))
    PyTreeDef((CustomNode(Mode[fast], []), *))
    """
    register_pytree_node(cls, lambda tree: ((), tree), lambda tree, _: tree)
    return cls


def register_dataclass(nodetype: Any, data_fields: Sequence[str] | None = None,
                       meta_fields: Sequence[str] | None = None,
                       drop_fields: Sequence[str] = ()) -> Any:
    """Register a dataclass: `data_fields` hold subtrees, `meta_fields` static data.

    Without these, fields made with ``metadata=dict(static=True)`` (or ``tree.static()``) are
    static and the others are data.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = dataclasses.field(metadata=dict(static=True))
    >>> tree_structure(Layer(1., "first"))
    PyTreeDef(CustomNode(Layer[('first',)], [*]))
    """
    data, meta = _dataclass_fields(nodetype, data_fields, meta_fields, drop_fields)

    def flatten(tree: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple([getattr(tree, n) for n in data]), tuple([getattr(tree, n) for n in meta])

    def flatten_with_keys(tree: Any) -> tuple[list[tuple[KeyEntry, Any]], tuple[Any, ...]]:
        children, static = flatten(tree)
        return [(GetAttrKey(n), child) for n, child in zip(data, children, strict=True)], static

    def unflatten(static: Sequence[Any], children: Iterable[Any]) -> Any:
        fields = zip((*meta, *data), (*static, *children), strict=True)
        return nodetype(**dict(fields))

    register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


def _dataclass_fields(nodetype: Any, data: Sequence[str] | None, meta: Sequence[str] | None,
                      dropped: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the data fields and of the static ones, checked against the class."""
    if (data is None) != (meta is None):
        raise TypeError("register_dataclass: data_fields and meta_fields must both be specified "
                        f"when either is specified. Got data_fields={data} meta_fields={meta}.")
    is_dataclass = dataclasses.is_dataclass(nodetype)
    if data is None or meta is None:
        if not is_dataclass:
            raise TypeError("register_dataclass: data_fields and meta_fields are required when "
                            f"nodetype is not a dataclass. Got nodetype={nodetype}.")
        fields = [f for f in dataclasses.fields(nodetype) if f.init and f.name not in dropped]
        return (tuple(f.name for f in fields if not f.metadata.get("static", False)),
                tuple(f.name for f in fields if f.metadata.get("static", False)))
    if is_dataclass:
        _check_all_named({f.name for f in dataclasses.fields(nodetype) if f.init},
                         {*data, *meta}, set(dropped))
    return tuple(data), tuple(meta)


def _check_all_named(init: set[str], named: set[str], dropped: set[str]) -> None:
    wanted = ("data_fields and meta_fields must include all dataclass fields with ``init=True`` "
              "and only them. ")
    if missing := init - named - dropped:
        raise ValueError(f"{wanted}Missing fields: {missing}. Add them to drop_fields to suppress "
                         "this error.")
    if unexpected := named - init:
        raise ValueError(f"{wanted}Unexpected fields: {unexpected}.")


def _flatten_ordered_dict(tree: OrderedDict[Any, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    return list(tree.values()), tuple(tree)


def _flatten_defaultdict(tree: defaultdict[Any, Any]) -> tuple[list[Any], tuple[Any, Any]]:
    children, keys = _flatten_dict(tree)
    return children, (tree.default_factory, keys)


_register(_Kind(OrderedDict, _flatten_ordered_dict,
                lambda keys, children: OrderedDict(zip(keys, children, strict=True)),
                lambda tree, keys, count: map(DictKey, keys), _show_custom("OrderedDict")))
_register(_Kind(defaultdict, _flatten_defaultdict,
                lambda data, children: defaultdict(data[0], zip(data[1], children, strict=True)),
                lambda tree, data, count: map(DictKey, data[1]), _show_custom("defaultdict")))


class _HashableCallableShim:
    """Keeps ``functools.partial`` from merging two partials: the function stays what it was."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.fun == (other.fun if isinstance(other, _HashableCallableShim) else other)

    def __hash__(self) -> int:
        return hash(self.fun)

    def __repr__(self) -> str:
        return f"_HashableCallableShim({self.fun!r})"


class Partial(functools.partial):
    """A ``functools.partial`` that is a tree: the arguments are children, the function is static.

    >>> import operator
    >>> tree_map(lambda x: x * 10, Partial(operator.add, 1))(2)
    12
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Partial:
        if isinstance(func, functools.partial):
            func = _HashableCallableShim(func)
        return super().__new__(cls, func, *args, **kwargs)


register_pytree_node(
    Partial, lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda func, children: Partial(func, *children[0], **children[1]))


# -- where two trees differ ----------------------------------------------------------------------


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None
                  ) -> list[Callable[[str], ValueError]]:
    """Return the reasons why `prefix_tree` is no prefix of `full_tree`.

    Each is a function from what the message calls the prefix to the error.

    >>> for explain in prefix_errors(((0, 1),), ([2, 3],)):
    ...     print(explain("in_axes"))
    pytree structure error: different types at key path
        in_axes[0]
    At that key path, the prefix pytree in_axes has a subtree of type
        <class 'tuple'>
    but at the same key path the full pytree has a subtree of different type
        <class 'list'>.
    """
    return list(_prefix_errors((), prefix_tree, full_tree, is_leaf))


def _prefix_errors(path: KeyPath, prefix: Any, full: Any, is_leaf: IsLeaf | None
                   ) -> Iterator[Callable[[str], ValueError]]:
    kind = None if is_leaf is not None and is_leaf(prefix) else _kind_of(prefix)
    if kind is None:
        return
    if type(prefix) is not type(full):
        yield functools.partial(_different_types, path, prefix, full)
        return
    pairs, data = _children_with_keys(kind, prefix)
    full_pairs, full_data = _children_with_keys(kind, full)
    if len(pairs) != len(full_pairs):
        differ = _different_lengths if kind in (_TUPLE, _LIST) else _different_keys
        yield functools.partial(differ, path, prefix, pairs, full_pairs)
    elif data != full_data:
        yield functools.partial(_different_metadata, path, prefix, data, full_data)
    else:
        for (key, child), (_, full_child) in zip(pairs, full_pairs, strict=True):
            yield from _prefix_errors((*path, key), child, full_child, is_leaf)


def _structure_error(what: str, path: KeyPath, name: str, rest: str) -> ValueError:
    return ValueError(
        f"pytree structure error: different {what} at key path\n    {name}{keystr(path)}\n"
        f"At that key path, the prefix pytree {name} has a subtree of type{rest}")


def _different_types(path: KeyPath, prefix: Any, full: Any, name: str) -> ValueError:
    return _structure_error(
        "types", path, name,
        f"\n    {type(prefix)}\nbut at the same key path the full pytree has a subtree of "
        f"different type\n    {type(full)}.")


def _different_lengths(path: KeyPath, prefix: Any, pairs: list[Any], full_pairs: list[Any],
                       name: str) -> ValueError:
    word = type(prefix).__name__
    return _structure_error(
        f"lengths of {word}", path, name,
        f" {word} of length {len(pairs)}, but the full pytree has a subtree of the same type but "
        f"of length {len(full_pairs)}.")


def _different_keys(path: KeyPath, prefix: Any, pairs: list[Any], full_pairs: list[Any],
                    name: str) -> ValueError:
    ours = [_bare_key(key) for key, _ in pairs]
    theirs = [_bare_key(key) for key, _ in full_pairs]
    only_one_has = [k for k in dict.fromkeys(ours + theirs) if (k in ours) != (k in theirs)]
    return _structure_error(
        "numbers of pytree children", path, name,
        f"\n    {type(prefix)}\nwith {len(ours)} child keys\n    {' '.join(ours)}\n"
        "but at the same key path the full pytree has a subtree of the same type but with "
        f"{len(theirs)} child keys\n    {' '.join(theirs)}\n"
        f"so the symmetric difference on key sets is\n    {' '.join(only_one_has)}")


def _different_metadata(path: KeyPath, prefix: Any, data: Any, full_data: Any, name: str
                        ) -> ValueError:
    lines = difflib.ndiff(str(data).splitlines(), str(full_data).splitlines())
    diff = "\n".join(line and f"    {line}" for line in "\n".join(lines).split("\n"))
    return _structure_error(
        "pytree metadata", path, name,
        f"\n    {type(prefix)}\nwith metadata\n    {data}\n"
        "but at the same key path the full pytree has a subtree of the same type but with "
        f"metadata\n    {full_data}\nso the diff in the metadata at these pytree nodes is\n{diff}")


def equality_errors(tree1: Any, tree2: Any, is_leaf: IsLeaf | None = None
                    ) -> Iterator[tuple[KeyPath, str, str, str]]:
    """Give (path, one thing, the other, explanation) wherever two trees differ in structure.

    >>> list(equality_errors((1, [2]), (1, [2, 3])))
    [((SequenceKey(idx=1),), 'list of length 1', 'list of length 2', 'the lengths do not match')]
    """
    yield from _equality_errors((), tree1, tree2, is_leaf)


def _equality_errors(path: KeyPath, one: Any, two: Any, is_leaf: IsLeaf | None
                     ) -> Iterator[tuple[KeyPath, str, str, str]]:
    stop = is_leaf or (lambda _: False)
    kinds = [None if stop(x) else _kind_of(x) for x in (one, two)]
    if kinds == [None, None]:
        return
    if type(one) is not type(two) or kinds[0] is None or kinds[1] is None:
        yield path, str(type(one)), str(type(two)), "their Python types differ"
        return
    pairs, data = _children_with_keys(kinds[0], one)
    other_pairs, other_data = _children_with_keys(kinds[0], two)
    difference = _difference_of_nodes(kinds[0], one, (len(pairs), data),
                                      (len(other_pairs), other_data))
    if difference is not None:
        yield (path, *difference)
        return
    for (key, child), (_, other) in zip(pairs, other_pairs, strict=True):
        yield from _equality_errors((*path, key), child, other, is_leaf)


def _difference_of_nodes(kind: _Kind, node: Any, one: tuple[int, Any], two: tuple[int, Any]
                         ) -> tuple[str, str, str] | None:
    """Return how two nodes of one type differ: in their number of children, in static data."""
    (count, data), (other_count, other_data) = one, two
    name = type(node).__name__ if kind in (_TUPLE, _LIST) else str(type(node))
    if count != other_count and kind in (_TUPLE, _LIST):
        return (f"{name} of length {count}", f"{name} of length {other_count}",
                "the lengths do not match")
    if count != other_count:
        return (f"{name} with {count} children", f"{name} with {other_count} children",
                "the numbers of children do not match")
    if data != other_data:
        return (f"{name} with pytree metadata {data}",
                f"{name} with pytree metadata {other_data}",
                "the pytree node metadata does not match")
    return None
