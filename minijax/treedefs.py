"""Treedefs: the structures of trees, without their leaves.

Stands on `tree_kinds`.  Its chapter is "Trees".
In JAX: the class ``PyTreeDef`` of ``jaxlib/pytree.cc``, written in C++.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from minijax import caches
from minijax.tree_kinds import DICT, NAMEDTUPLE, IsLeaf, Kind, kind_of, kinds


class PyTreeDef:
    """The structure of a tree: what is left when the leaves are taken out.

    Treedefs compare by structure and are hashable (where the static data in them is).

    >>> from minijax.tree_util import tree_structure
    >>> tree_structure({"a": 1, "b": [2, 3]})
    PyTreeDef({'a': *, 'b': [*, *]})
    """

    __slots__ = ("_kind", "_data", "_children", "num_leaves", "num_nodes", "_shared", "_hash",
                 "__weakref__")

    num_leaves: int
    num_nodes: int

    def __init__(self, kind: Kind | None, data: Any, children: tuple[PyTreeDef, ...],
                 shared: bool) -> None:
        self._kind, self._data, self._children, self._shared = kind, data, children, shared
        self.num_leaves = sum(c.num_leaves for c in children) if kind is not None else 1
        self.num_nodes = 1 + sum(c.num_nodes for c in children)
        self._hash: int | None = None

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
        return make_treedef(self._kind, self._data, [c.compose(inner) for c in self._children])

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
        return (self._kind is other._kind and self.num_nodes == other.num_nodes
                and self.num_leaves == other.num_leaves
                and bool(self._data == other._data) and self._children == other._children)

    def __hash__(self) -> int:
        if self._hash is None:
            _refuse_unhashable(self)
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
        is_namedtuple = self._kind is NAMEDTUPLE
        return _restore, (self._kind.type, is_namedtuple, self._data, self._children)


LEAF = PyTreeDef(None, None, (), shared=True)


def _leaf_treedef() -> PyTreeDef:
    return LEAF


def _restore(cls: type, is_namedtuple: bool, data: Any, children: Sequence[PyTreeDef]
             ) -> PyTreeDef:
    return make_treedef(NAMEDTUPLE if is_namedtuple else kinds[cls], data, list(children))


# Equal structures are mostly one object, which makes comparing and hashing them cheap.  That is
# an advantage and no promise: the table is emptied when it has grown large.
_shared_treedefs: dict[Any, PyTreeDef] = {}
_MOST_SHARED = 10_000
_STRINGS = frozenset([str])
caches.cleared_by(_shared_treedefs.clear)


def make_treedef(kind: Kind, data: Any, children: list[PyTreeDef]) -> PyTreeDef:
    """Return the treedef of a node, shared where that cannot be seen."""
    # {1: x} and {True: x} have equal treedefs, and must not come back as each other
    if not kind.plain or kind is DICT and not _STRINGS.issuperset(map(type, data)):
        return PyTreeDef(kind, data, tuple(children), shared=False)
    # the ids are those of objects that the table's entry keeps alive
    key = (kind, data, *map(id, children))
    return _shared_treedefs.get(key) or _new_node(key, kind, data, children)


def _new_node(key: Any, kind: Kind, data: Any, children: list[PyTreeDef]) -> PyTreeDef:
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


def _refuse_unhashable(treedef: PyTreeDef) -> None:
    try:
        hash(treedef._data)
    except TypeError as problem:
        name = treedef._kind.type.__name__ if treedef._kind is not None else ""
        raise TypeError(
            f"{problem}. The static data (the metadata fields) of a {name} must be hashable, for "
            f"compiled programs are looked up by them, and they are {treedef._data!r}. Use what "
            "cannot change, such as a tuple or a string; an array, or what does change, belongs "
            f"among the children that the flatten function of {name} returns.") from None


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
    return make_treedef(kind, data, structures)


def _flatten_up_to(treedef: PyTreeDef, tree: Any, parts: list[Any]) -> None:
    kind = treedef._kind
    if kind is None:
        parts.append(tree)
        return
    wanted = treedef._data if kind is NAMEDTUPLE else kind.type
    if kind_of(tree) is not kind or type(tree) is not wanted:
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


def _refuse_data(kind: Kind, expected: Any, present: Any) -> None:
    if kind is DICT:
        raise ValueError(f"Dict key mismatch; expected keys: {list(expected)}; "
                         f"present keys: {list(present)}.")
    raise ValueError(f"Mismatch custom node data: {expected} != {present}; "
                     f"type: {kind.type.__name__}.")
