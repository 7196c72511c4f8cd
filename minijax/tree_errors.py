"""Where two trees differ, in the words of JAX's errors.

Stands on `tree_kinds`.  Its chapter is "Trees".
In JAX: ``prefix_errors`` and ``equality_errors`` of ``jax/_src/tree_util.py``.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from minijax.tree_kinds import (
    LIST, TUPLE, IsLeaf, KeyPath, Kind, bare_key, children_with_keys, keystr, kind_of, stopping,
)

Stops = Callable[[KeyPath, Any], bool]


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
    return list(_prefix_errors((), prefix_tree, full_tree, stops))


def _prefix_errors(path: KeyPath, prefix: Any, full: Any, stops: Stops
                   ) -> Iterator[Callable[[str], ValueError]]:
    kind = None if stops(path, prefix) else kind_of(prefix)
    if kind is None:
        return
    if type(prefix) is not type(full):
        yield functools.partial(_different_types, path, prefix, full)
        return
    pairs, data = children_with_keys(kind, prefix)
    full_pairs, full_data = children_with_keys(kind, full)
    if len(pairs) != len(full_pairs):
        differ = _different_lengths if kind in (TUPLE, LIST) else _different_keys
        yield functools.partial(differ, path, prefix, pairs, full_pairs)
    elif data != full_data:
        yield functools.partial(_different_metadata, path, prefix, data, full_data)
    else:
        for (key, child), (_, full_child) in zip(pairs, full_pairs, strict=True):
            yield from _prefix_errors((*path, key), child, full_child, stops)


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
    ours = [bare_key(key) for key, _ in pairs]
    theirs = [bare_key(key) for key, _ in full_pairs]
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
    yield from _equality_errors((), tree1, tree2, stopping(is_leaf))


class _Leaf:
    """Stands for a leaf that is not there."""


_LEAF = _Leaf()


def equality_errors_pytreedef(tree1: Any, tree2: Any) -> Iterator[tuple[KeyPath, str, str, str]]:
    """The same of two tree structures, which have no leaves.

    >>> from minijax.tree_util import tree_structure
    >>> next(equality_errors_pytreedef(tree_structure(1), tree_structure((1, 2))))[1:]
    ('pytree leaf', "<class 'tuple'>", 'their Python types differ')
    """
    filled = [tree.unflatten([_LEAF] * tree.num_leaves) for tree in (tree1, tree2)]
    for path, *texts in equality_errors(*filled):
        one, two, why = (text.replace(str(_Leaf), "pytree leaf") for text in texts)
        yield path, one, two, why


def _equality_errors(path: KeyPath, one: Any, two: Any, stops: Stops
                     ) -> Iterator[tuple[KeyPath, str, str, str]]:
    kinds = [None if stops(path, x) else kind_of(x) for x in (one, two)]
    if kinds == [None, None]:
        return
    if type(one) is not type(two) or kinds[0] is None or kinds[1] is None:
        yield path, str(type(one)), str(type(two)), "their Python types differ"
        return
    pairs, data = children_with_keys(kinds[0], one)
    other_pairs, other_data = children_with_keys(kinds[0], two)
    difference = _difference_of_nodes(kinds[0], one, (len(pairs), data),
                                      (len(other_pairs), other_data))
    if difference is not None:
        yield (path, *difference)
        return
    for (key, child), (_, other) in zip(pairs, other_pairs, strict=True):
        yield from _equality_errors((*path, key), child, other, stops)


def _difference_of_nodes(kind: Kind, node: Any, one: tuple[int, Any], two: tuple[int, Any]
                         ) -> tuple[str, str, str] | None:
    """Return how two nodes of one type differ: in their number of children, in static data."""
    (count, data), (other_count, other_data) = one, two
    name = type(node).__name__ if kind in (TUPLE, LIST) else str(type(node))
    if count != other_count and kind in (TUPLE, LIST):
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
