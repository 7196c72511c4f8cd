"""Taking trees apart and putting them together, as users do, and what is said where two differ.

Stands on `pytree`, which says what a tree is.  Chapter 05, *Trees*.
In JAX: ``jax/_src/tree_util.py``.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import itertools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

from minijax.util.pytree import (LIST, TUPLE, IsLeaf, KeyPath, Kind, bare_key, children_with_keys,
                                 flatten, flatten_with_path, kind_of, kinds, sorted_keys, stopping,
                                 DictKey as DictKey, FlattenedIndexKey as FlattenedIndexKey,
                                 GetAttrKey as GetAttrKey, PyTreeDef as PyTreeDef,
                                 SequenceKey as SequenceKey, keystr as keystr)

T = TypeVar("T")
KeyEntry = TypeVar("KeyEntry", bound=Any)
FlattenWithKeys = Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]]

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
                      is_leaf: Callable[..., bool] | None, is_leaf_takes_path: bool = False
                      ) -> list[Any]:
    try:
        return treedef.flatten_up_to(full)
    except ValueError as problem:
        for explain in prefix_errors(prefix, full, is_leaf, is_leaf_takes_path):
            raise explain(name) from None
        raise problem from None


_UNSPECIFIED: Any = object()


def tree_reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _UNSPECIFIED,
                is_leaf: IsLeaf | None = None) -> Any:
    """Combine all leaves with a function of two, from left to right.

    >>> tree_reduce(lambda x, y: x + y, [1, (2, [3])])
    6
    """
    start = () if initializer is _UNSPECIFIED else (initializer,)
    return functools.reduce(function, tree_leaves(tree, is_leaf), *start)


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
    try:
        return broadcast_prefix(axes, full, _is_none)
    except ValueError:
        found = [str(explain(name)) for explain in prefix_errors(axes, full, _is_none)]
        details = "\n".join(found)
        raise ValueError(
            f"{name} specification must be a tree prefix of the corresponding value; \n"
            f"  Mismatch details ({len(found)} found):\n  {details}") from None


def _is_none(x: Any) -> bool:
    return x is None


# -- treedefs as values --------------------------------------------------------------------------


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


def flatten_one_level(tree: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the children and the static data of a node; ValueError for a leaf.

    >>> flatten_one_level({"b": 1, "a": [2]})
    (([2], 1), ('a', 'b'))
    """
    children, data = _node_kind(tree).flatten(tree)
    return tuple(children), data


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


# -- with paths ----------------------------------------------------------------------------------


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Return (path, leaf) for all leaves, and the structure.

    >>> tree_flatten_with_path({"a": [1]})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 1)]
    """
    _wants_callable(is_leaf)
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Return (path, leaf) for all leaves.

    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [1]})]
    [("['a'][0]", 1)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any,
                       is_leaf: Callable[..., bool] | None = None,
                       is_leaf_takes_path: bool = False) -> Any:
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
                             f"(children, aux_data) tuple{where}, got {pair}")
        return tuple(pair[0]), pair[1]

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

    def flatten_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
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
    if not is_dataclass and data is None:
        raise TypeError("register_dataclass: data_fields and meta_fields are required when "
                        f"nodetype is not a dataclass. Got nodetype={nodetype}.")
    init = [f for f in dataclasses.fields(nodetype) if f.init] if is_dataclass else []
    if data is None or meta is None:
        static = {f.name: bool(f.metadata.get("static")) for f in init if f.name not in dropped}
        data, meta = ([n for n in static if static[n] is wanted] for wanted in (False, True))
    elif is_dataclass:
        _check_all_named({f.name for f in init}, {*data, *meta}, set(dropped))
    return tuple(data), tuple(meta)


def _check_all_named(init: set[str], named: set[str], dropped: set[str]) -> None:
    wanted = ("data_fields and meta_fields must include all dataclass fields with ``init=True`` "
              "and only them. ")
    if missing := init - named - dropped:
        raise ValueError(f"{wanted}Missing fields: {missing}. Add them to drop_fields to suppress "
                         "this error.")
    if unexpected := named - init:
        raise ValueError(f"{wanted}Unexpected fields: {unexpected}.")


@dataclasses.dataclass(frozen=True, repr=False)
class _HashableCallableShim:
    """Keeps ``functools.partial`` from merging two partials: the function stays what it was."""

    fun: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

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
register_pytree_with_keys(
    OrderedDict, lambda tree: ([(DictKey(key), x) for key, x in tree.items()], tuple(tree)),
    lambda keys, children: OrderedDict(zip(keys, children, strict=True)))
register_pytree_with_keys(
    defaultdict, lambda tree: ([(DictKey(key), tree[key]) for key in sorted_keys(tree)],
                               (tree.default_factory, sorted_keys(tree))),
    lambda data, children: defaultdict(data[0], zip(data[1], children, strict=True)))


# -- where two trees differ, in the words of JAX's errors ----------------------------------------


_Difference = tuple[KeyPath, str, SimpleNamespace, SimpleNamespace]


def _facts(tree: Any, keys: Sequence[Any] = (), data: Any = None) -> SimpleNamespace:
    """What messages say of one of two nodes that are compared."""
    names = list(map(bare_key, keys))
    own = [getattr(key, "key", name) for key, name in zip(keys, names, strict=True)]
    return SimpleNamespace(type=type(tree), name=type(tree).__name__, count=len(names),
                           names=" ".join(names), keys=own, data=data)


def _differences(path: KeyPath, one: Any, two: Any, stops: Callable[[KeyPath, Any], bool],
                 is_prefix: bool = False) -> Iterator[_Difference]:
    """Give (path, what differs, the two nodes) at the outermost places where two trees differ.

    A leaf of a tree that only `is_prefix` is like every tree.
    """
    ahead = [(path, one, two)]
    while ahead:
        path, one, two = ahead.pop()
        kind = None if stops(path, one) else kind_of(one)
        if kind is None and (is_prefix or stops(path, two) or kind_of(two) is None):
            continue
        if type(one) is not type(two) or kind is None or not is_prefix and stops(path, two):
            yield path, "types", _facts(one), _facts(two)
            continue
        pairs, data = children_with_keys(kind, one)
        other_pairs, other_data = children_with_keys(kind, two)
        nodes = (_facts(one, [key for key, _ in pairs], data),
                 _facts(two, [key for key, _ in other_pairs], other_data))
        if len(pairs) != len(other_pairs):
            yield path, "lengths" if kind in (TUPLE, LIST) else "children", *nodes
        elif data != other_data:
            yield path, "metadata", *nodes
        else:
            ahead += [((*path, key), child, other) for (key, child), (_, other)
                      in zip(reversed(pairs), reversed(other_pairs), strict=True)]


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: Callable[..., bool] | None = None,
                  is_leaf_takes_path: bool = False) -> list[Callable[[str], ValueError]]:
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
    stops = stopping(is_leaf, is_leaf_takes_path)
    found = _differences((), prefix_tree, full_tree, stops, is_prefix=True)
    return [functools.partial(_prefix_error, difference) for difference in found]


def _prefix_error(difference: _Difference, name: str) -> ValueError:
    path, what, prefix, full = difference
    differ, rest = _PREFIX_MESSAGES[what]
    lines = difflib.ndiff(str(prefix.data).splitlines(), str(full.data).splitlines())
    diff = "\n".join(line and f"    {line}" for line in "\n".join(lines).split("\n"))
    return ValueError((
        f"pytree structure error: different {differ} at key path\n    {{name}}{{path}}\n"
        f"At that key path, the prefix pytree {{name}} has a subtree of type{rest}").format(
            prefix, full, name=name, path=keystr(path), diff=diff,
            only=_only_one_has(str, prefix, full)))


def _only_one_has(text: Callable[[Any], str], one: SimpleNamespace, other: SimpleNamespace
                  ) -> str:
    """The keys of one of two nodes that the other has not."""
    return " ".join(text(key) for key in dict.fromkeys(one.keys + other.keys)
                    if (key in one.keys) != (key in other.keys))


# What differs, and what is said of it: {0} is the prefix, {1} the full tree.
_PREFIX_MESSAGES = {
    "types": ("types", "\n    {0.type}\nbut at the same key path the full pytree has a subtree of "
                       "different type\n    {1.type}."),
    "lengths": ("lengths of {0.name}",
                " {0.name} of length {0.count}, but the full pytree has a subtree of the same type "
                "but of length {1.count}."),
    "children": ("numbers of pytree children",
                 "\n    {0.type}\nwith {0.count} child keys\n    {0.names}\nbut at the same key "
                 "path the full pytree has a subtree of the same type but with {1.count} child "
                 "keys\n    {1.names}\nso the symmetric difference on key sets is\n    {only}"),
    "metadata": ("pytree metadata",
                 "\n    {0.type}\nwith metadata\n    {0.data}\nbut at the same key path the full "
                 "pytree has a subtree of the same type but with metadata\n    {1.data}\nso the "
                 "diff in the metadata at these pytree nodes is\n{diff}"),
}


def equality_errors(tree1: Any, tree2: Any, is_leaf: IsLeaf | None = None
                    ) -> Iterator[tuple[KeyPath, str, str, str]]:
    """Give (path, one thing, the other, explanation) wherever two trees differ in structure.

    >>> list(equality_errors((1, [2]), (1, [2, 3])))
    [((SequenceKey(idx=1),), 'list of length 1', 'list of length 2', 'the lengths do not match')]
    """
    for path, what, *nodes in _differences((), tree1, tree2, stopping(is_leaf)):
        text, why = _EQUALITY_MESSAGES[what]
        one, two = (text.format(node, ren="ren" * (node.count > 1)) for node in nodes)
        only = _only_one_has(repr, *nodes) if what == "children" else ""
        yield path, one, two, why + (
            only and f", with the symmetric difference of key sets: {{{only}}}")


_EQUALITY_MESSAGES = {
    "types": ("{0.type}", "their Python types differ"),
    "lengths": ("{0.name} of length {0.count}", "the lengths do not match"),
    "children": ("{0.type} with {0.count} child{ren}", "the numbers of children do not match"),
    "metadata": ("{0.type} with pytree metadata {0.data}",
                 "the pytree node metadata does not match"),
}


class _Leaf:
    """Stands for a leaf that is not there."""


def equality_errors_pytreedef(tree1: Any, tree2: Any) -> Iterator[tuple[KeyPath, str, str, str]]:
    """The same of two tree structures, which have no leaves.

    >>> from minijax.tree_util import tree_structure
    >>> next(equality_errors_pytreedef(tree_structure(1), tree_structure((1, 2))))[1:]
    ('pytree leaf', "<class 'tuple'>", 'their Python types differ')
    """
    filled = [tree.unflatten([_Leaf()] * tree.num_leaves) for tree in (tree1, tree2)]
    for path, *texts in equality_errors(*filled):
        one, two, why = (text.replace(str(_Leaf), "pytree leaf") for text in texts)
        yield path, one, two, why


class PyTreeRegistry:
    """The kinds of trees that there are, asked as JAX's registry is asked.

    >>> default_registry.flatten_one_level([1, (2, 3)])
    ((1, (2, 3)), None)
    """

    def flatten(self, tree: Any, leaf_predicate: IsLeaf | None = None
                ) -> tuple[list[Any], PyTreeDef]:
        """The leaves of a tree and its structure."""
        return tree_flatten(tree, leaf_predicate)

    def flatten_one_level(self, tree: Any) -> tuple[tuple[Any, ...], Any] | None:
        """The children of a node, and what it holds beside them; None of a leaf."""
        return None if kind_of(tree) is None else flatten_one_level(tree)

    register_node = staticmethod(register_pytree_node)
    register_dataclass_node = staticmethod(register_dataclass)


default_registry = PyTreeRegistry()
