"""The difference of two trees, in the words of JAX's errors.

Builds on `pytree`.  Chapter 05, *Trees*.  In JAX: ``jax/_src/tree_util.py``.
"""

import difflib
import functools
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from minijax.util.pytree import (LIST, TUPLE, IsLeaf, KeyPath, bare_key, children_with_keys, keystr,
                                 kind_of, stopping)

_Difference = tuple[KeyPath, str, SimpleNamespace, SimpleNamespace]


def _facts(tree: Any, keys: Sequence[Any] = (), data: Any = None) -> SimpleNamespace:
    """The description in messages of one of two nodes that are compared."""
    names = list(map(bare_key, keys))
    own = [getattr(key, "key", name) for key, name in zip(keys, names, strict=True)]
    return SimpleNamespace(type=type(tree), name=type(tree).__name__, count=len(names),
                           names=" ".join(names), keys=own, data=data)


def _differences(path: KeyPath, one: Any, two: Any, stops: Callable[[KeyPath, Any], bool],
                 is_prefix: bool = False) -> Iterator[_Difference]:
    """Yield (path, difference, the two nodes) at the outermost differences of two trees.

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
    differences = _differences((), prefix_tree, full_tree, stops, is_prefix=True)
    return [functools.partial(_prefix_error, difference) for difference in differences]


def first_error(problem: ValueError, name: str, *trees: Any) -> ValueError:
    """The first reason why a tree, which the message calls `name`, is no prefix of another."""
    return next((explain(name) for explain in prefix_errors(*trees)), problem)


def axes_error(name: str, axes: Any, full: Any, is_leaf: IsLeaf) -> ValueError:
    """Why `axes`, which the message calls `name`, are no prefix of a tree: all reasons."""
    found = [str(explain(name)) for explain in prefix_errors(axes, full, is_leaf)]
    details = "\n".join(found)
    return ValueError(f"{name} specification must be a tree prefix of the corresponding value; "
                      f"\n  Mismatch details ({len(found)} found):\n  {details}")


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


def _only_one_has(text: Callable[[Any], str], one: SimpleNamespace, other: SimpleNamespace) -> str:
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
    """Yield (path, one node, the other, explanation) at each difference in structure of two trees.

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


def incomparable(types: Sequence[type], error: Exception) -> ValueError:
    """Static arguments of these types cannot be compared with those of an earlier call.

    Raises:
      Exception: the error itself, where there are none: trees of arguments raised it.
    """
    if not types:
        raise error
    return ValueError("static arguments should be comparable using __eq__. Comparing objects of "
                      f"types {[*types]} raised:\n{error!r}")


def compiled_for_another(tree: Any, compiled_for: Any) -> TypeError:
    """The error of a compiled function for arguments in a tree that it was not compiled for."""
    differences = list(equality_errors_pytreedef(tree, compiled_for))
    return TypeError(
        "Function compiled with input pytree does not match the input pytree it was called "
        f"with. There are {len(differences)} mismatches, including:" + "".join(
            f"\n    * at {('args', 'kwargs')[path[0].idx]}{keystr(path[1:])}, "
            f"seen {then} but now given {now}, so {why}" for path, now, then, why in differences))
