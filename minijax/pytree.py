"""What a tree is: kinds of node, one per container type; treedefs; and classes as nodes.

Stands on nothing.  Its chapter is "Trees".
In JAX: ``jaxlib/pytree.cc``, written in C++, and the registration of ``jax/_src/tree_util.py``.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

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

    Treedefs compare by structure and are hashable (where the static data in them is).

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

    def __reduce__(self) -> tuple[type[PyTreeDef], tuple[Any, ...]]:
        return PyTreeDef, (self._kind, self._data, self._children)


LEAF = PyTreeDef(None, None, ())


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
    return PyTreeDef(kind, data, structures)


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
    if not isinstance(nodetype, type):
        raise TypeError(f"A pytree node type must be a class, not {nodetype!r}.")
    if nodetype in kinds:
        raise ValueError(f"Duplicate custom PyTreeDef type registration for {nodetype}.")
    with_keys = flatten_with_keys_func
    kinds[nodetype] = Kind(
        nodetype, _checked(flatten_func),
        lambda data, children: unflatten_func(data, tuple(children)),
        by_flat_index if with_keys is None else
        lambda tree, data, count: [key for key, _ in with_keys(tree)[0]],
        lambda data, children: f"CustomNode({nodetype.__name__}[{data}], [{', '.join(children)}])")


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
register_pytree_with_keys(
    OrderedDict, lambda tree: ([(DictKey(key), x) for key, x in tree.items()], tuple(tree)),
    lambda keys, children: OrderedDict(zip(keys, children, strict=True)))
register_pytree_with_keys(
    defaultdict, lambda tree: ([(DictKey(key), tree[key]) for key in _sorted_keys(tree)],
                               (tree.default_factory, _sorted_keys(tree))),
    lambda data, children: defaultdict(data[0], zip(data[1], children, strict=True)))
