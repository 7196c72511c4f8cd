"""Nodes of trees: one level of a tree, structures as values, and user-defined containers.

Builds on `tree_util`, which exports these names.  Chapter 05, *Trees*.
In JAX: ``jax/_src/tree_util.py``.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from minijax.tree_util import (IsLeaf, PyTreeDef, register_pytree_node, tree_flatten, tree_leaves,
                               tree_structure)
from minijax.util.pytree import (DICT, NAMEDTUPLE, TUPLE, GetAttrKey, Kind, children_with_keys,
                                 kind_of, kinds)

T = TypeVar("T")
_UNSPECIFIED: Any = object()

# -- structures as values --------------------------------------------------------------------------

def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None,
                   pytree_to_transpose: Any) -> Any:
    """Turn a tree of trees inside out; None stands for the structure that is found inside.

    >>> outer, inner = tree_structure([0, 0]), tree_structure({"a": 0, "b": 0})
    >>> tree_transpose(outer, inner, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    {'a': [1, 3], 'b': [2, 4]}
    """
    if inner_treedef is None:
        inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    leaves, treedef = tree_flatten(pytree_to_transpose)
    if treedef.num_leaves != outer_treedef.num_leaves * inner_treedef.num_leaves:
        raise TypeError(f"Mismatch\n{treedef}\n != \n{outer_treedef.compose(inner_treedef)}")
    width = inner_treedef.num_leaves
    return inner_treedef.unflatten(
        [outer_treedef.unflatten(leaves[place::width]) for place in range(width)])


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple whose items have these structures.

    >>> treedef_tuple([tree_structure(0), tree_structure([0])])
    PyTreeDef((*, [*]))
    """
    parts = [treedef.nodes for treedef in treedefs]
    return PyTreeDef((*itertools.chain.from_iterable(parts), TUPLE.node(len(parts), None)))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of the children.

    >>> treedef_children(tree_structure((0, [0])))
    [PyTreeDef(*), PyTreeDef([*])]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return whether the structure is a single node; None counts, as in JAX.

    >>> treedef_is_leaf(tree_structure(0)), treedef_is_leaf(tree_structure([0]))
    (True, False)
    """
    return treedef.num_nodes == 1


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf | None = None) -> bool:
    """Return whether every item is a leaf.

    >>> all_leaves([1, 2]), all_leaves([1, (2,)])
    (True, False)
    """
    return all(is_leaf is not None and is_leaf(x) or kind_of(x) is None for x in iterable)


def is_tree_node(typ: type) -> bool:
    """Return whether trees of this type may have children.

    >>> is_tree_node(list), is_tree_node(int)
    (True, False)
    """
    return isinstance(typ, type) and (
        typ in kinds or issubclass(typ, tuple) and hasattr(typ, "_fields"))


def flatten_one_level(tree: Any) -> tuple[Sequence[Any], Any]:
    """Return the children and the static data of a node; ValueError for a leaf.

    >>> flatten_one_level({"b": 1, "a": [2]})
    (([2], 1), ('a', 'b'))
    """
    kind = _node_kind(tree)
    children, data = kind.flatten(tree)
    made = {DICT: tuple, NAMEDTUPLE: list}.get(kind)
    return made(children) if made else children, data


def flatten_one_level_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
    """Return the children of a node, each with its key, and the static data.

    >>> flatten_one_level_with_keys([5, 6])
    ([(SequenceKey(idx=0), 5), (SequenceKey(idx=1), 6)], None)
    """
    return children_with_keys(_node_kind(tree), tree)


def _node_kind(tree: Any) -> Kind:
    kind = kind_of(tree)
    if kind is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    return kind


# -- containers of your own ------------------------------------------------------------------------


def tree_reduce_associative(operation: Callable[[Any, Any], Any], tree: Any, *,
                            identity: Any = _UNSPECIFIED, is_leaf: IsLeaf | None = None) -> Any:
    """Combine all leaves with an associative function, as a balanced tree of few levels.

    >>> tree_reduce_associative(lambda x, y: f"({x}{y})", ["a", ("b", "c"), "d"])
    '((ab)(cd))'
    """
    level = tree_leaves(tree, is_leaf)
    if not level:
        if identity is _UNSPECIFIED:
            raise TypeError("Must specify identity for parallel reduction of empty sequence.")
        return identity
    while len(level) > 1:
        odd = level[-1:] if len(level) % 2 else []
        level = [operation(x, y) for x, y in zip(level[::2], level[1::2], strict=False)] + odd
    return level[0]


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

    def flatten(tree: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return [getattr(tree, n) for n in data], tuple([getattr(tree, n) for n in meta])

    def flatten_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
        children, static = flatten(tree)
        return [(GetAttrKey(n), child) for n, child in zip(data, children, strict=True)], static

    def unflatten(static: Sequence[Any], children: Iterable[Any]) -> Any:
        return nodetype(**dict(zip((*meta, *data), (*static, *children), strict=True)))

    register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


def _dataclass_fields(nodetype: Any, data: Sequence[str] | None, meta: Sequence[str] | None,
                      dropped: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the data fields and of the static ones, checked against the class."""
    if (data is None) != (meta is None):
        raise TypeError("register_dataclass: data_fields and meta_fields must both be specified "
                        f"when either is specified. Got data_fields={data} meta_fields={meta}.")
    is_dataclass = dataclasses.is_dataclass(nodetype)
    if not is_dataclass and data is None:
        raise TypeError("register_dataclass: data_fields and meta_fields are required when "
                        f"nodetype is not a dataclass. Got nodetype={nodetype}.")
    init = [f for f in dataclasses.fields(nodetype) if f.init] if is_dataclass else []
    if data is None or meta is None:
        static = {f.name: bool(f.metadata.get("static")) for f in init if f.name not in dropped}
        data, meta = ([n for n in static if static[n] is is_static] for is_static in (False, True))
    if both := {*data} & {*meta}:
        raise ValueError("data_fields and meta_fields must not overlap. Overlapping fields: "
                         f"{both}.")
    if is_dataclass:
        names, named = {f.name for f in init}, {*data, *meta}
        rule = ("data_fields and meta_fields must include all dataclass fields with ``init=True`` "
                "and only them. ")
        if missing := names - named - set(dropped):
            raise ValueError(f"{rule}Missing fields: {missing}. Add them to drop_fields to "
                             "suppress this error.")
        if unexpected := named - names:
            raise ValueError(f"{rule}Unexpected fields: {unexpected}.")
    return tuple(data), tuple(meta)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class _HashableCallableShim:
    """Keeps ``functools.partial`` from merging two partials: the function stays what it was."""

    fun: Callable[..., Any]

    def __eq__(self, other: object) -> bool:
        return bool(self.fun == getattr(other, "fun", other))

    def __hash__(self) -> int:
        return hash(self.fun)

    def __getattr__(self, name: str) -> Any:  # `args` of the partial inside
        return getattr(object.__getattribute__(self, "fun"), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

    def __repr__(self) -> str:
        return f"_HashableCallableShim({self.fun!r})"


class Partial(functools.partial):
    """A ``functools.partial`` that is a tree: the arguments are children, the function is static.

    >>> import operator
    >>> from minijax.tree_util import tree_map
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


class PyTreeRegistry:
    """The kinds of trees that there are, asked as JAX's registry is asked.

    >>> default_registry.flatten_one_level([1, (2, 3)])
    ([1, (2, 3)], None)
    """

    def flatten(self, tree: Any, leaf_predicate: IsLeaf | None = None
                ) -> tuple[list[Any], PyTreeDef]:
        """The leaves of a tree and its structure."""
        return tree_flatten(tree, leaf_predicate)

    def flatten_one_level(self, tree: Any) -> tuple[Sequence[Any], Any] | None:
        """The children of a node, and what it holds beside them; None of a leaf."""
        return None if kind_of(tree) is None else flatten_one_level(tree)

    register_node = staticmethod(register_pytree_node)
    register_dataclass_node = staticmethod(register_dataclass)


default_registry = PyTreeRegistry()
