"""Containers of your own: how a class becomes a node of trees.

Stands on `tree_kinds`.  Its chapter is "Trees".
In JAX: a part of ``jax/_src/tree_util.py``.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from minijax.tree_kinds import (
    FlattenWithKeys, GetAttrKey, KeyEntry, Kind, by_flat_index, kinds, show_custom,
)

T = TypeVar("T")


def _register(kind: Kind) -> None:
    if not isinstance(kind.type, type):
        raise TypeError(f"A pytree node type must be a class, not {kind.type!r}.")
    if kind.type in kinds:
        raise ValueError(f"Duplicate custom PyTreeDef type registration for {kind.type}.")
    kinds[kind.type] = kind


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

    >>> from minijax.tree_util import tree_leaves
    >>> class Pair:
    ...     def __init__(self, x, y): self.x, self.y = x, y
    >>> register_pytree_node(Pair, lambda p: ((p.x, p.y), None), lambda _, xy: Pair(*xy))
    >>> tree_leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    with_keys = flatten_with_keys_func
    _register(Kind(
        type=nodetype,
        flatten=_checked(flatten_func),
        unflatten=lambda data, children: unflatten_func(data, tuple(children)),
        keys=by_flat_index if with_keys is None else _keys_given_by(with_keys),
        show=show_custom(getattr(nodetype, "__name__", ""))))


def _keys_given_by(flatten_with_keys: FlattenWithKeys
                   ) -> Callable[[Any, Any, int], list[KeyEntry]]:
    """The keys alone, of a function that gives each child together with its key."""
    return lambda tree, data, count: [key for key, _ in flatten_with_keys(tree)[0]]


def register_pytree_node_class(cls: type[T]) -> type[T]:
    """Register a class that has the methods ``tree_flatten`` and (class) ``tree_unflatten``.

    >>> from minijax.tree_util import tree_map
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

    >>> from minijax.tree_util import keystr, tree_leaves_with_path
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

    >>> from minijax.tree_util import tree_leaves_with_path
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

    >>> from minijax.tree_util import tree_structure
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

    >>> from minijax.tree_util import tree_structure
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

    >>> from minijax.tree_util import tree_map
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
