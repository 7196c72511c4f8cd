"""The public functions of trees: flatten, unflatten, map and compare.

Builds on `pytree`, which defines trees.  Chapter 05, *Trees*.
In JAX: ``jax/_src/tree_util.py``.
"""


import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from minijax.util import lazily
from minijax.util.pytree import (DictKey, FlattenedIndexKey, GetAttrKey, IsLeaf, KeyPath, Kind,
                                 PyTreeDef, SequenceKey, flatten, flatten_with_path, keystr, kinds,
                                 sorted_keys)

if TYPE_CHECKING:
    from minijax.util.tree_errors import (equality_errors, equality_errors_pytreedef, prefix_errors)
    from minijax.util.tree_nodes import (
        Partial, PyTreeRegistry, all_leaves, default_registry, flatten_one_level,
        flatten_one_level_with_keys, is_tree_node, register_dataclass, register_static,
        tree_reduce_associative, tree_transpose, treedef_children, treedef_is_leaf, treedef_tuple)

_first_error = lazily.later("minijax.util.tree_errors", "first_error")
_axes_error = lazily.later("minijax.util.tree_errors", "axes_error")
T = TypeVar("T")
KeyEntry = TypeVar("KeyEntry", bound=Any)
FlattenWithKeys = Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]]
WithPaths = list[tuple[KeyPath, Any]]  # the leaves, each after its path

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
    return flatten(tree, is_leaf)


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
                      is_leaf: Callable | None, is_leaf_takes_path: bool = False) -> list[Any]:
    try:
        return treedef.flatten_up_to(full)
    except ValueError as problem:
        raise _first_error(problem, name, prefix, full, is_leaf, is_leaf_takes_path) from None


_UNSPECIFIED: Any = object()


def tree_reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _UNSPECIFIED,
                is_leaf: IsLeaf | None = None) -> Any:
    """Combine all leaves with a function of two, from left to right.

    >>> tree_reduce(lambda x, y: x + y, [1, (2, [3])])
    6
    """
    start = () if initializer is _UNSPECIFIED else (initializer,)
    return functools.reduce(function, tree_leaves(tree, is_leaf), *start)


def tree_all(tree: Any, *, is_leaf: IsLeaf | None = None) -> bool:
    """Return whether all leaves are true.

    >>> tree_all({"a": True, "b": []})
    True
    """
    return all(tree_leaves(tree, is_leaf))


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Return a tree like `full_tree` whose leaves repeat those of its prefix.

    >>> tree_broadcast((1, 2), ([0, 0], 0))
    ([1, 1], 2)
    """
    return tree_structure(full_tree).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
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
    try:
        return broadcast_prefix(axes, full, _is_none)
    except ValueError:
        raise _axes_error(name, axes, full, _is_none) from None


def _is_none(x: Any) -> bool:
    return x is None


# -- with paths ----------------------------------------------------------------------------------


def tree_flatten_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None,
                           is_leaf_takes_path: bool = False) -> tuple[WithPaths, PyTreeDef]:
    """Return (path, leaf) for all leaves, and the structure.

    >>> tree_flatten_with_path({"a": [1]})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 1)]
    """
    _wants_callable(is_leaf)
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)


def tree_leaves_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None,
                          is_leaf_takes_path: bool = False) -> WithPaths:
    """Return (path, leaf) for all leaves.

    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [1]})]
    [("['a'][0]", 1)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any,
                       is_leaf: Callable | None = None, is_leaf_takes_path: bool = False) -> Any:
    """Return a tree of the same structure, with ``f(path, leaf, …)`` for each leaf.

    >>> tree_map_with_path(lambda path, x: keystr(path) + f" is {x}", {"a": [1, 2]})
    {'a': ["['a'][0] is 1", "['a'][1] is 2"]}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [_up_to_or_explain(treedef, tree, other, "tree_map_with_path tree", is_leaf,
                                is_leaf_takes_path) for other in rest]
    return treedef.unflatten([
        f(path, leaf, *parts) for (path, leaf), *parts in zip(pairs, *others, strict=True)])


# -- containers of your own ------------------------------------------------------------------------


def _checked(flatten: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, Any]]:
    """Return `flatten` with an error that says what it should have returned."""
    def flatten_checked(tree: Any) -> tuple[Any, Any]:
        pair = flatten(tree)
        is_pair = isinstance(pair, tuple) and len(pair) == 2
        if not is_pair or not isinstance(pair[0], Iterable):
            where = " where 'children' is iterable" if is_pair else ""
            raise ValueError("The to_iterable function for a custom PyTree node should return a "
                             f"(children, aux_data) tuple{where}, got {pair!r}")
        return pair[0] if type(pair[0]) is list else tuple(pair[0]), pair[1]

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
    if not isinstance(nodetype, type):
        raise TypeError(f"A pytree node type must be a class, not {nodetype!r}.")
    if not (callable(flatten_func) and callable(unflatten_func)):
        raise TypeError(f"A pytree node type is registered with two functions, not with "
                        f"{flatten_func!r} and {unflatten_func!r}.")
    if nodetype in kinds:
        raise ValueError(f"Duplicate custom PyTreeDef type registration for {nodetype}.")

    def keys(tree: Any, data: Any, count: int) -> list[Any]:
        if flatten_with_keys_func is None:
            return list(map(FlattenedIndexKey, range(count)))
        return [key for key, _ in flatten_with_keys_func(tree)[0]]

    kinds[nodetype] = Kind(
        nodetype, _checked(flatten_func),
        lambda data, children: unflatten_func(data, tuple(children)), keys,
        lambda data, children: f"CustomNode({nodetype.__name__}[{data}], [{', '.join(children)}])")


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
    nodetype: type, flatten_with_keys: FlattenWithKeys, unflatten_func: Callable[[Any, Any], Any],
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


register_pytree_with_keys(
    OrderedDict, lambda tree: ([(DictKey(key), x) for key, x in tree.items()], tuple(tree)),
    lambda keys, children: OrderedDict(zip(keys, children, strict=True)))
register_pytree_with_keys(
    defaultdict, lambda tree: ([(DictKey(key), tree[key]) for key in sorted_keys(tree)],
                               (tree.default_factory, sorted_keys(tree))),
    lambda data, children: defaultdict(data[0], zip(data[1], children, strict=True)))

lazily.attach(globals())
