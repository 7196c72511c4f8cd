"""Pytrees against JAX's: structures, paths, and the words of every mismatch."""

import collections
import copy
import dataclasses
import functools
import inspect
import itertools
import operator
import pickle

import hypothesis.strategies as some
import jax.tree_util as theirs
import pytest
from hypothesis import given, settings

from minijax import tree, tree_util as ours

Point = collections.namedtuple("Point", "x y")
OtherPoint = collections.namedtuple("Point", "x y")


class SubPoint(Point):
    pass


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

    def tree_flatten(self):
        return (self.a, self.b), None

    @classmethod
    def tree_unflatten(cls, data, children):
        return cls(*children)


@dataclasses.dataclass
class Layer:
    w: object
    b: object
    name: str = dataclasses.field(default="first", metadata={"static": True})


class Mode(str):
    pass


for library in (ours, theirs):
    library.register_pytree_node(Pair, lambda p: (p.parts, len(p.parts)), lambda _, c: Pair(*c))
    library.register_pytree_with_keys(
        Named, lambda n: ([(library.GetAttrKey("a"), n.a), ("key of b", n.b)], None),  # noqa: B023
        lambda _, c: Named(*c))
    library.register_dataclass(Layer)
    library.register_static(Mode)

ORDERED = collections.OrderedDict([("b", 1), ("a", 2)])
DEFAULT = collections.defaultdict(list, {"b": 1, "a": [2]})
TREES = [
    1, None, (), (1,), (1, 2), [], [1], {}, {"b": 1, "a": [1, 2]}, {2: 1, 1: 2}, {(1, 2): 0},
    ORDERED, DEFAULT, collections.deque([1, 2]), Point(1, (2, 3)), SubPoint(1, 2), Pair(1, 2),
    Named(1, 2), Layer(1, 2), Layer(1, (2,), "second"), Mode("fast"),
    ((1, 2), [None, {"a": Pair(1)}]), type("SubDict", (dict,), {})(a=1),
    type("SubTuple", (tuple,), {})((1, 2)), functools.partial(max, 1)]
EACH_TREE = pytest.mark.parametrize("x", TREES, ids=repr)


def outcome(f):
    try:
        return repr(f())
    except (ValueError, TypeError) as problem:
        return type(problem).__name__, str(problem).replace("minijax", "jax")


# -- structures ----------------------------------------------------------------------------------


@EACH_TREE
def test_structure_and_leaves_agree_with_jax(x):
    leaves, treedef = ours.tree_flatten(x)
    their_leaves, their_treedef = theirs.tree_flatten(x)
    assert repr(treedef) == str(treedef) == repr(their_treedef)
    assert leaves == their_leaves
    assert treedef.num_leaves == their_treedef.num_leaves
    assert treedef.num_nodes == their_treedef.num_nodes
    assert treedef.node_data() == their_treedef.node_data()
    assert repr(treedef.children()) == repr(their_treedef.children())


@EACH_TREE
def test_paths_agree_with_jax(x):
    pairs, treedef = ours.tree_flatten_with_path(x)
    assert repr(pairs) == repr(theirs.tree_flatten_with_path(x)[0])
    assert [ours.keystr(path) for path, _ in pairs] == [
        theirs.keystr(path) for path, _ in theirs.tree_leaves_with_path(x)]
    assert treedef == ours.tree_structure(x)


@EACH_TREE
def test_unflatten_is_the_inverse_of_flatten(x):
    leaves, treedef = ours.tree_flatten(x)
    again = treedef.unflatten(iter(leaves))
    assert type(again) is type(x) and repr(again) == repr(ours.tree_map(lambda leaf: leaf, x))
    assert ours.tree_structure(again) == treedef


@EACH_TREE
def test_treedefs_survive_copying_and_pickling(x):
    treedef = ours.tree_structure((x, [x]))
    assert copy.deepcopy(treedef) == treedef
    if type(x) in (int, dict, list, tuple, Point, Pair, collections.OrderedDict):
        again = pickle.loads(pickle.dumps(treedef))
        assert again == treedef and hash(again) == hash(treedef)


def test_equal_structures_are_equal_and_no_others():
    for one, two in itertools.product(TREES, repeat=2):
        same = ours.tree_structure(one) == ours.tree_structure(two)
        assert same == (theirs.tree_structure(one) == theirs.tree_structure(two)), (one, two)
        if same:
            assert hash(ours.tree_structure(one)) == hash(ours.tree_structure(two))
    assert ours.tree_structure(1) != 1


trees = some.recursive(
    some.integers() | some.none() | some.text(max_size=2),
    lambda x: (some.lists(x, max_size=3) | some.lists(x, max_size=3).map(tuple)
               | some.dictionaries(some.text(max_size=2), x, max_size=3)
               | some.tuples(x, x).map(lambda xy: Point(*xy))
               | some.tuples(x, x).map(lambda xy: Pair(*xy))), max_leaves=12)


@given(trees)
@settings(max_examples=200, deadline=None)
def test_generated_trees_agree_with_jax(x):
    leaves, treedef = ours.tree_flatten(x)
    assert leaves == theirs.tree_leaves(x)
    assert repr(treedef) == repr(theirs.tree_structure(x))
    assert treedef.unflatten(leaves) == x
    assert [p for p, _ in ours.tree_leaves_with_path(x)] == [
        tuple(getattr(ours, type(k).__name__)(*vars_of(k)) for k in p)
        for p, _ in theirs.tree_leaves_with_path(x)]


def vars_of(key):
    for attribute in ("idx", "key", "name"):
        if hasattr(key, attribute):
            return (getattr(key, attribute),)
    raise AssertionError(key)


# -- deep trees ----------------------------------------------------------------------------------


def path_down(depth, wrap, leaf=1.0):
    for _ in range(depth):
        leaf = wrap(leaf)
    return leaf


WRAPS = {"list": lambda x: [x], "tuple": lambda x: (x,), "dict": lambda x: {"a": x},
         "named tuple": lambda x: Point(x, None), "registered": Pair,
         "between others": lambda x: [0, x, {"b": None, "c": (2,)}]}
EACH_WRAP = pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)


def seen(lib, x, other):
    leaves, treedef = lib.tree_flatten(x)
    return [leaves, str(treedef), treedef.num_nodes, treedef == lib.tree_structure(other),
            hash(treedef) == hash(lib.tree_structure(x)), lib.tree_leaves(x, lambda y: y is None),
            [lib.keystr(path) for path, _ in lib.tree_leaves_with_path(x)],
            str(treedef.compose(lib.tree_structure({"d": 1}))),
            mismatch(lambda: lib.tree_map(lambda y, z: (y, z), x, x)),
            mismatch(lambda: lib.tree_map(lambda y, z: (y, z), x, other)),
            mismatch(lambda: treedef.flatten_up_to(other))]


@EACH_WRAP
@pytest.mark.parametrize("depth", [1, 20, 150])
def test_deep_trees_agree_with_jax(wrap, depth):
    x = path_down(depth, wrap)
    for other in (x, path_down(depth + 1, wrap), path_down(depth - 1, wrap, {"z": 1.0})):
        assert seen(ours, x, other) == seen(theirs, x, other)


@given(some.lists(some.sampled_from(sorted(WRAPS)), min_size=30, max_size=120),
       some.lists(some.sampled_from(sorted(WRAPS)), min_size=30, max_size=120))
@settings(max_examples=30, deadline=None)
def test_generated_deep_trees_agree_with_jax(one, two):
    x, other = (functools.reduce(lambda leaf, name: WRAPS[name](leaf), names, 1.0)
                for names in (one, two))
    assert seen(ours, x, other) == seen(theirs, x, other)


@EACH_WRAP
def test_a_tree_is_as_deep_as_memory_allows(wrap):
    x, again, deeper = (path_down(depth, wrap) for depth in (5000, 5000, 5001))
    leaves, treedef = ours.tree_flatten(x)
    assert ours.tree_leaves(ours.tree_map(lambda y: y + 1, x)) == [y + 1 for y in leaves]
    assert treedef == ours.tree_structure(again) != ours.tree_structure(deeper)
    assert hash(treedef) == hash(ours.tree_structure(again)) and len(str(treedef)) > 5000
    assert max(len(path) for path, _ in ours.tree_leaves_with_path(x)) >= 5000
    assert treedef.unflatten(treedef.flatten_up_to(deeper)) is not None
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    with pytest.raises(ValueError, match="pytree structure error: different types at key path"):
        ours.tree_map(lambda y, z: y, deeper, x)


@pytest.mark.parametrize("flatten", [ours.tree_flatten, ours.tree_flatten_with_path])
def test_a_container_inside_itself_is_refused_and_the_next_tree_is_not(flatten):
    endless = {"a": [1.0, ()]}
    endless["a"].append(endless)
    with pytest.raises(RecursionError, match="this dict contains itself"):
        flatten(endless)
    assert len(flatten(path_down(3000, WRAPS["list"]))[0]) == 1


# -- functions of trees --------------------------------------------------------------------------


def both(f):
    """Return what `f` gives or raises, with minijax's functions and with JAX's."""
    return outcome(lambda: f(ours)), outcome(lambda: f(theirs))


@pytest.mark.parametrize("f", [
    lambda t: t.tree_map(lambda a, b: (a, b), {"a": 1, "b": (2, 3)}, {"b": [4, 5], "a": 6}),
    lambda t: t.tree_map(lambda *a: a, {"a": 1, "b": 2}, {"b": 3, "a": 4}),
    lambda t: t.tree_map(lambda a: a, None),
    lambda t: t.tree_map(lambda a, b: (a, b), 1, (1, 2)),
    lambda t: t.tree_map(str, [1, None], is_leaf=lambda x: x is None),
    lambda t: t.tree_leaves([1, None, (2,)], is_leaf=lambda x: isinstance(x, tuple)),
    lambda t: t.tree_map_with_path(lambda p, *x: (t.keystr(p), *x), {"a": [1, 2]}, {"a": [3, 4]}),
    lambda t: t.tree_flatten_with_path([1, (2,)], lambda p, x: len(p) == 1, True),
    lambda t: t.tree_reduce(operator.add, [1, (2, [3])]),
    lambda t: t.tree_reduce(operator.add, [], 5),
    lambda t: t.tree_reduce(operator.add, []),
    lambda t: t.tree_reduce_associative(operator.add, ["a", "b", ("c", "d"), "e"]),
    lambda t: t.tree_reduce_associative(operator.add, [], identity=7),
    lambda t: t.tree_reduce_associative(operator.add, []),
    lambda t: t.tree_all({"a": True, "b": []}),
    lambda t: t.tree_all([1, 0]),
    lambda t: t.tree_broadcast((1, 2), ([1, 2], 3)),
    lambda t: t.tree_broadcast((1, 2), [1, 2]),
    lambda t: t.tree_transpose(t.tree_structure([0, 0]), t.tree_structure({"a": 0, "b": 0}),
                               [{"a": 1, "b": 2}, {"a": 3, "b": 4}]),
    lambda t: t.tree_transpose(t.tree_structure([0, 0]), None, [{"a": 1}, {"a": 2}]),
    lambda t: t.tree_transpose(t.tree_structure([0, 0]), t.tree_structure((0, 0)), [1, 2]),
    lambda t: t.treedef_tuple([t.tree_structure(1), t.tree_structure((1, 2))]),
    lambda t: t.treedef_children(t.tree_structure({"a": 1})),
    lambda t: [t.treedef_is_leaf(t.tree_structure(x)) for x in (1, None, (), (1,))],
    lambda t: [t.all_leaves(x) for x in ([1, 2], [1, (2,)], [None], [])],
    lambda t: [t.is_tree_node(x) for x in (list, int, Point, Pair, [1], 1)],
    lambda t: t.flatten_one_level({"b": 1, "a": [2]}),
    lambda t: t.flatten_one_level(1),
    lambda t: [t.flatten_one_level(x)[0] for x in (
        [1, 2], (1, 2), Point(1, 2), collections.OrderedDict(b=1, a=2), Layer(1, 2))],
    lambda t: t.tree_structure([Point(1, 2)]).flatten_up_to([SubPoint(1, 2)]),
    lambda t: t.register_dataclass(type("New", (Layer,), {}), ["w", "b"], ["w", "name"]),
    lambda t: len({hash(key(1)) for key in (t.SequenceKey, t.FlattenedIndexKey)}),
    lambda t: [t.Partial(f, 2).func == f for f in [functools.partial(print, 1)]],
    lambda t: t.flatten_one_level_with_keys(Named(1, 2)),
    lambda t: t.tree_structure((1, [2])).compose(t.tree_structure({"a": 1})),
    lambda t: t.tree_structure({"a": 1, "b": (2, 3)}).flatten_up_to({"a": [1], "b": (2, {})}),
    lambda t: t.keystr((t.DictKey("a"), t.SequenceKey(1), t.GetAttrKey("q")), simple=True,
                       separator="/")])
def test_functions_agree_with_jax(f):
    mine, jaxs = both(f)
    assert mine == jaxs


def test_a_function_that_is_none_is_refused():
    with pytest.raises(TypeError, match="is_leaf must be a function"):
        ours.tree_leaves([1], is_leaf=3)


def test_axes_are_spread_over_the_leaves_and_none_is_an_axis():
    structure = ours.tree_structure((1, [2, 3]))
    assert ours.flatten_axes("in_axes", structure, (0, None)) == [0, None, None]
    assert ours.flatten_axes("in_axes", structure, (0, [None, 1])) == [0, None, 1]
    with pytest.raises(ValueError, match=r"(?s)vmap in_axes specification must be a tree prefix"
                                         r".*1 found.*vmap in_axes\[1\]"):
        ours.flatten_axes("vmap in_axes", structure, (0, (1, 2)))


def test_the_short_names_are_those_of_jax_and_static_marks_a_field():
    import jax
    assert set(tree.__all__) == {n for n in vars(jax.tree) if not n.startswith("_")}
    assert inspect.unwrap(tree.map) is ours.tree_map
    assert inspect.unwrap(tree.leaves) is ours.tree_leaves

    @ours.register_dataclass
    @dataclasses.dataclass
    class Op:
        x: int
        op: str = tree.static(default="add")
    assert repr(tree.structure(Op(1))) == "PyTreeDef(CustomNode(Op[('add',)], [*]))"


def test_a_tree_that_does_not_fit_is_named_by_its_path_where_paths_are_mapped_too():
    def fit(library, **options):
        return library.tree_map_with_path(lambda path, x, y: x, {"a": [(1, 2)]}, {"a": [[1, 2]]},
                                          **options)
    assert outcome(lambda: fit(ours)) == outcome(lambda: fit(theirs))
    assert "tree_map_with_path tree['a'][0]\n" in outcome(lambda: fit(ours))[1]
    with_path = outcome(lambda: fit(ours, is_leaf=lambda path, x: len(path) > 9,
                                    is_leaf_takes_path=True))
    assert with_path == outcome(lambda: fit(ours))


# -- where two trees differ ----------------------------------------------------------------------


def in_order(message):
    """JAX prints the keys that only one tree has in the order of a set: sort them."""
    head, found, keys = message.partition("so the symmetric difference on key sets is\n    ")
    return head + found + " ".join(sorted(keys.split(" ")))


def mismatch(f):
    found = outcome(f)
    return found if isinstance(found, str) else (found[0], in_order(found[1]))


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
    assert mismatch(lambda: ours.tree_map(lambda a, b: 0, prefix, full)) == mismatch(
        lambda: theirs.tree_map(lambda a, b: 0, prefix, full))
    assert mismatch(lambda: ours.broadcast_prefix(prefix, full)) == mismatch(
        lambda: internal.broadcast_prefix(prefix, full))
    told = [[in_order(str(explain("vmap in_axes")))
             for explain in library.prefix_errors(prefix, full)] for library in (ours, internal)]
    assert told[0] == told[1] and told[0]


@pytest.mark.parametrize("one, two", [
    ((1, 2), (1, [2])), ((1, (2,)), (1, [2], {})), ({"a": 1}, {"b": (1,)}),
    ([1, None, Pair(1)], [1, 2, Pair((1,))]), ((1, 2), (3, 4)), ({"a": 1}, {"a": 1, "b": 2}),
    ({}, {7: 0}), (Layer(1, 2), Layer(1, 2, "x"))])
def test_differences_of_structure_are_told_in_jaxs_words(one, two):
    from jax._src import tree_util as internal
    assert repr(list(ours.equality_errors(one, two))) == repr(
        list(internal.equality_errors(one, two)))


@given(trees, trees)
@settings(max_examples=200, deadline=None)
def test_mismatches_of_generated_trees_agree_with_jax(one, two):
    def pairs(library):
        got = mismatch(lambda: library.tree_map(lambda a, b: (a, b), one, two))
        # the first line says what is wrong; JAX's second may name the wrong field of a namedtuple
        return got if isinstance(got, str) else (got[0], got[1].split("\n")[0])
    assert pairs(ours) == pairs(theirs)


@pytest.mark.parametrize("node", [(1, 2), [1, (2, 3)], {"b": 1, "a": 2}, None, Layer(1, 2),
                                  collections.OrderedDict(b=1, a=2)])
def test_the_registrys_entries_are_called_as_jaxs(node):
    from jax._src import tree_util as internal
    parts = []
    for entry in (ours.kinds[type(node)], internal._registry[type(node)]):
        children, data = entry.to_iter(node)
        children = list(children)
        parts.append((children, data, entry.from_iter(data, children)))
    assert parts[0] == parts[1] and parts[0][2] == node


@pytest.mark.parametrize("node", [[1, (2, 3)], (1, None), {"b": 1, "a": 2}, 3, None])
def test_the_registry_takes_a_node_apart_as_jaxs(node):
    found, wanted = (lib.default_registry.flatten_one_level(node) for lib in (ours, theirs))
    assert (found is None) == (wanted is None)
    assert found is None or list(found[0]) == list(wanted[0])
