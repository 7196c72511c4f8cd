"""Where two trees differ: every mismatch told in JAX's words."""

import collections
import dataclasses

import hypothesis.strategies as some
import jax.tree_util as theirs
import pytest
from hypothesis import given, settings

from minijax import tree_util as ours

Point = collections.namedtuple("Point", "x y")
OtherPoint = collections.namedtuple("Point", "x y")


class Pair:
    def __init__(self, *parts):
        self.parts = parts

    def __eq__(self, other):
        return isinstance(other, Pair) and self.parts == other.parts

    def __repr__(self):
        return f"Pair{self.parts}"


class Named:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __repr__(self):
        return f"Named({self.a}, {self.b})"


@dataclasses.dataclass
class Layer:
    w: object
    b: object
    name: str = dataclasses.field(default="first", metadata={"static": True})


for library in (ours, theirs):
    library.register_pytree_node(Pair, lambda p: (p.parts, len(p.parts)), lambda _, c: Pair(*c))
    library.register_pytree_with_keys(
        Named, lambda n: ([(library.GetAttrKey("a"), n.a), ("key of b", n.b)], None),  # noqa: B023
        lambda _, c: Named(*c))
    library.register_dataclass(Layer)

ORDERED = collections.OrderedDict([("b", 1), ("a", 2)])
DEFAULT = collections.defaultdict(list, {"b": 1, "a": [2]})


def outcome(f):
    try:
        return repr(f())
    except (ValueError, TypeError) as problem:
        return type(problem).__name__, in_order(str(problem).replace("minijax", "jax"))


def in_order(message):
    """JAX prints the keys that only one tree has in the order of a set: sort them."""
    head, found, keys = message.partition("so the symmetric difference on key sets is\n    ")
    return head + found + " ".join(sorted(keys.split(" ")))


MISMATCHES = [
    ((0,), (1, 2)), ((0, (1,)), (1, 2)), ({"a": 0}, {"b": 1}), ([0, 0], (1, 2)),
    ((0, None), (1, 2)), ({"a": {"b": 0}}, {"a": 1}), (Layer(0, 0), Layer(1, 2, "other")),
    (Pair(0, 0), Pair(1)), (ORDERED, collections.OrderedDict(a=1)), (Pair(0, 0), 5),
    (ORDERED, collections.OrderedDict(a=1, b=2)), ({"a": 0, "b": 1, "c": 2}, {"a": 1}),
    ((0, 0), Point(1, 2)), (Point(1, 2), (1, 2)), (Point(1, 2), OtherPoint(1, 2)), (None, 1),
    ({"a": 0}, {"a": 1, "b": 2}), (Named(0, (0,)), Named(1, (2, 3))), (DEFAULT, {"a": 1}),
    ({"a": 1, "b": (2, 3)}, {"a": 1, "b": 3}), ((), 1), ([(0,), (0,)], [(1, 2), 3])]


@pytest.mark.parametrize("prefix, full", MISMATCHES, ids=repr)
def test_mismatches_are_told_in_jaxs_words(prefix, full):
    from jax._src import tree_util as internal
    assert outcome(lambda: ours.tree_map(lambda a, b: 0, prefix, full)) == outcome(
        lambda: theirs.tree_map(lambda a, b: 0, prefix, full))
    assert outcome(lambda: ours.broadcast_prefix(prefix, full)) == outcome(
        lambda: internal.broadcast_prefix(prefix, full))
    told = [[in_order(str(explain("vmap in_axes")))
             for explain in library.prefix_errors(prefix, full)] for library in (ours, internal)]
    assert told[0] == told[1] and told[0]


@pytest.mark.parametrize("one, two", [
    ((1, 2), (1, [2])), ((1, (2,)), (1, [2], {})), ({"a": 1}, {"b": (1,)}),
    ([1, None, Pair(1)], [1, 2, Pair((1,))]), ((1, 2), (3, 4)), (Layer(1, 2), Layer(1, 2, "x"))])
def test_differences_of_structure_are_told_in_jaxs_words(one, two):
    from jax._src import tree_util as internal
    assert repr(list(ours.equality_errors(one, two))) == repr(
        list(internal.equality_errors(one, two)))


trees = some.recursive(
    some.integers() | some.none() | some.text(max_size=2),
    lambda x: (some.lists(x, max_size=3) | some.lists(x, max_size=3).map(tuple)
               | some.dictionaries(some.text(max_size=2), x, max_size=3)
               | some.tuples(x, x).map(lambda xy: Point(*xy))
               | some.tuples(x, x).map(lambda xy: Pair(*xy))), max_leaves=12)


@given(trees, trees)
@settings(max_examples=200, deadline=None)
def test_mismatches_of_generated_trees_agree_with_jax(one, two):
    def pairs(library):
        got = outcome(lambda: library.tree_map(lambda a, b: (a, b), one, two))
        # the first line says what is wrong; JAX's second may name the wrong field of a namedtuple
        return got if isinstance(got, str) else (got[0], got[1].split("\n")[0])
    assert pairs(ours) == pairs(theirs)
