"""The exercises of chapter 05, *Trees*."""

from __future__ import annotations

import copy
import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import (Hint, agree, exercise, expect, instead_of, near, trouble,
                                     wanting)

from .ways import of_dtype

CHAPTER = "05_trees"


@jax.tree_util.register_dataclass
@dataclass
class Ends:
    """A node that is no dict, list or tuple."""

    low: Any
    high: Any


def _nests(leaf: Callable[[random.Random], Any], count: int = 8) -> list[Any]:
    """Nested dicts, lists, tuples and nodes of a class, with these leaves."""
    chance = random.Random(0)

    def nest(depth: int) -> Any:
        if depth == 0 or chance.random() < 0.3:
            return leaf(chance)
        children = [nest(depth - 1) for _ in range(chance.randrange(1, 4))]
        kinds: list[Callable] = [list, tuple, lambda x: dict(zip("abc", x, strict=False)),
                                 lambda x: Ends(x[0], x[-1])]
        return chance.choice(kinds)(children)
    return [nest(3) for _ in range(count)]


def _shapes(tree: Any) -> str:
    """The tree of the shapes of a tree of arrays."""
    return str(jax.tree.map(jnp.shape, tree))


def _same(inputs: str, result: Any, expected: Any, *hints: tuple[Any, str], what: str) -> None:
    """Check that a result is as expected; otherwise say inputs, both results, and a hint."""
    why = next((f"\n{text}" for holds, text in hints if holds), "")
    expect(result == expected, f"for {inputs} {what} is {expected!r}, and yours is {result!r}{why}")


def grade_how_many(how_many: Callable) -> None:
    def leaf(chance: random.Random) -> Any:
        return chance.choice([2.5, jnp.ones(3), jnp.ones((2, 2)), jnp.zeros(()), None, ()])

    trees = [{"w": 2 * jnp.ones((2, 3)), "b": [jnp.zeros(3), jnp.zeros(())]},
             [None, jnp.ones(2)], (), (1.0, jnp.ones(2)), (2 + 1j, True, jnp.ones(2)),
             {"w": jnp.zeros((0, 3)), "b": jnp.ones(2)}, *_nests(leaf)]
    for tree in trees:
        leaves = jax.tree.leaves(tree)
        inputs = f"a tree of the shapes {_shapes(tree)}"
        expected = sum(jnp.size(x) for x in leaves)
        with (instead_of(AttributeError, "has no attribute", f"for {inputs} the answer is "
                         f"{expected}: a Python number is a leaf as well, without the attributes "
                         "of an array"),
              instead_of(TypeError, "unsized", f"for {inputs} the answer is {expected}: a single "
                         "number has no `len`, and that of an array is its first axis"),
              instead_of(TypeError, "has no len()", f"for {inputs} the answer is {expected}: a "
                         "single number has no `len`, and that of an array is its first axis"),
              instead_of(TypeError, "reduce() of empty", f"for {inputs} the answer is {expected}: "
                         "no leaves at all, so from what does your sum start?")):
            result = how_many(tree)
        expect(jnp.shape(result) == (), f"for {inputs} one number is expected, and yours is an "
               f"array of the shape {jnp.shape(result)}: does your sum begin with the first leaf "
               "itself, in place of 0?")
        agree(inputs, result, expected,
              (any(jnp.size(x) == 0 for x in leaves), "an array may be empty: no number is in it"),
              (near(result, len(leaves)) and near(how_many([jnp.ones(7)]), 1), "that is the number "
               "of leaves; how many numbers are in each?"),
              ("Ends(" in inputs, "a node of a class has leaves, too: `jax.tree.leaves` finds "
               "those of any tree"),
              (isinstance(tree, tuple), "a Python number is a leaf as well, and one number"),
              (near(result, sum(jnp.sum(jnp.asarray(x)) for x in leaves)), "that is the sum of the "
               "numbers themselves"))


exercise(
    "how_many", chapter=CHAPTER, grade=grade_how_many,
    solution="""
def how_many(tree):
    return sum(jnp.size(leaf) for leaf in jax.tree.leaves(tree))
""",
    wrong=[
        ("def how_many(tree):\n    return sum(1 if isinstance(x, (int, float)) else x.size\n"
         "               for x in jax.tree.leaves(tree))", "a Python number is a leaf"),
        ("def how_many(tree):\n    return len(jax.tree.leaves(tree))", "number of leaves"),
        ("def how_many(tree):\n    if isinstance(tree, dict):\n        tree = [*tree.values()]\n"
         "    if isinstance(tree, (list, tuple)):\n        return sum(map(how_many, tree))\n"
         "    return 0 if tree is None else jnp.size(tree)", "a node of a class"),
        ("def how_many(tree):\n    return sum(getattr(leaf, 'size', 0) for leaf in "
         "jax.tree.leaves(tree))", "a leaf as well, and one number"),
        ("def how_many(tree):\n    return sum(leaf.size for leaf in jax.tree.leaves(tree))",
         "the attributes of an array"),
        ("def how_many(tree):\n    return sum(len(leaf) for leaf in jax.tree.leaves(tree))",
         "its first axis"),
        ("def how_many(tree):\n    return sum(int(np.prod(np.shape(leaf))) or 1 "
         "for leaf in jax.tree.leaves(tree))", "may be empty"),
        ("def how_many(tree):\n    return jax.tree.reduce(lambda n, leaf: n + jnp.size(leaf), "
         "tree)", "begin with the first leaf"),
    ],
    hints=["jax.tree.leaves, and a sum"])


def grade_stacked(stacked: Callable) -> None:
    def leaf(chance: random.Random) -> Any:
        return jnp.ones(chance.choice([(), (2,), (2, 3)]))

    forms = [{"w": jnp.ones((2, 3)), "b": (jnp.ones(()),)}, *_nests(leaf, 4)]
    for form, count in zip(forms, (5, 2, 7, 1, 4), strict=True):
        trees = [jax.tree.map(lambda x, i=i: 3.0 * i % 7 * x, form) for i in range(count)]
        expected = jax.tree.map(
            lambda x, n=count: jnp.stack([3.0 * i % 7 * x for i in range(n)]), form)
        inputs = f"{count} trees of the shapes {_shapes(form)}"
        answer_text = f"for {inputs} the shapes of the answer are {_shapes(expected)}"
        try:
            out = stacked(trees)
        except (TypeError, ValueError) as error:
            expect("concatenat" not in str(error), f"{answer_text}; {trouble(error)}\n"
                   "`concatenate` joins arrays along an axis that they have; which function makes "
                   "a new one?")
            expect("unpack" not in str(error), f"{answer_text}; {trouble(error)}\nthere may be any "
                   "number of trees: a star takes all items of a list")
            expect(form is forms[0], f"{answer_text}; {trouble(error)}\nright for dicts and "
                   "tuples, but there are other nodes: `tree_map` goes through all of them")
            raise Hint(f"{answer_text}; {trouble(error)}\n`tree_map(f, trees)` takes the list for "
                       "one tree, and gives f one array at a time: how does f get the arrays that "
                       "belong together?") from error
        expect(len(trees) == count, f"for {inputs} the list has {len(trees)} after the call: its "
               " trees are still wanted, so take none out")
        result = f"{answer_text}, and yours are {_shapes(out)}"
        if jax.tree.structure(out) != jax.tree.structure(form):
            expect(jax.tree.structure(out) != jax.tree.structure(trees), f"{result}: still one "
                   "tree for each")
            expect(not isinstance(out, list), f"{result}: this is a list; its arrays belong in a "
                   "tree of the form of each")
            expect(False, result)
        for mine, theirs in zip(jax.tree.leaves(out), jax.tree.leaves(expected), strict=True):
            expect(mine.ndim == theirs.ndim, f"{result}: are the arrays glued along an axis that "
                   "they have, in place of a new one?")
            expect(mine.shape == theirs.shape, f"{result}: the new axis should be the first")
            expect(near(mine, theirs), f"for {inputs} a leaf is {theirs.tolist()}, and yours is "
                   f"{mine.tolist()}: are all trees in it, in their order?")
    counts = stacked([{"steps": jnp.array(k)} for k in (3, 5)])["steps"]
    of_dtype("two trees with a leaf of int32 each", counts, np.int32, "stack the leaves as they "
             "are")


exercise(
    "stacked", chapter=CHAPTER, grade=grade_stacked,
    solution="""
def stacked(trees):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)
""",
    wrong=[
        ("def stacked(trees):\n    size = lambda x: float(jnp.sum(x))\n"
         "    return jax.tree.map(lambda *xs: jnp.stack(sorted(xs, key=size)), *trees)",
         "in their order"),
        ("def stacked(trees):\n    one = trees[0]\n    if isinstance(one, dict):\n"
         "        return {k: stacked([t[k] for t in trees]) for k in one}\n"
         "    if isinstance(one, (list, tuple)):\n"
         "        return type(one)(map(stacked, map(list, zip(*trees))))\n"
         "    return jnp.stack(trees)", "there are other nodes"),
        ("def stacked(trees):\n    first = trees.pop(0)\n"
         "    return jax.tree.map(lambda *xs: jnp.stack(xs), first, *trees)", "so take none out"),
        ("def stacked(trees):\n    return jax.tree.map(lambda *x: jnp.concatenate("
         "[jnp.atleast_1d(y) for y in x]), *trees)", "glued"),
        ("def stacked(trees):\n    return jax.tree.map(jnp.stack, trees)", "one array at a time"),
        ("def stacked(trees):\n    return jax.tree.map(lambda *x: jnp.stack(x[:5]), *trees)",
         "for 7 trees"),
        ("def stacked(trees):\n    return jax.tree.map(lambda *x: jnp.array(x, jnp.float32), "
         "*trees)", "the leaves as they are"),
        ("def stacked(trees):\n    return jax.tree.map(lambda *x: jnp.stack(x[::-1]), *trees)",
         "in their order"),
        ("def stacked(trees):\n    return [jnp.stack(x) for x in zip(*map(jax.tree.leaves, "
         "trees))]", "this is a list"),
        ("def stacked(trees):\n    return jax.tree.map(lambda *x: jnp.stack(x, axis=-1), *trees)",
         "should be the first"),
        ("def stacked(trees):\n    a, b, c, d, e = trees\n"
         "    return jax.tree.map(lambda *x: jnp.stack(x), a, b, c, d, e)", "any number of trees"),
    ],
    afterthought="`jax.vmap(predict, in_axes=(0, None))` takes such a tree",
    hints=["a function may take any number of arguments: lambda *leaves: …"])


class Place(NamedTuple):
    """A container that is no plain tuple."""

    x: Any
    y: Any


def grade_inventory(inventory: Callable) -> None:
    def leaf(chance: random.Random) -> Any:
        return chance.choice([jnp.ones((2, 3)), jnp.zeros(4), jnp.zeros(()), 2.0])

    first = [{"w": jnp.ones((2, 3)), "b": jnp.zeros(3)}, {"w": jnp.ones((3, 1))}]
    named = {"at": Place(jnp.ones(2), [jnp.zeros(())]), "z": jnp.ones(3)}
    for tree in (first, named, *(nest for nest in _nests(leaf, 12)
                          if not hasattr(nest, "shape") and not isinstance(nest, float))):
        expected = {jax.tree_util.keystr(path, simple=True, separator="/"): jnp.shape(x)
                  for path, x in jax.tree.leaves_with_path(tree)}
        inputs = f"a tree of the shapes {_shapes(tree)}"
        answer_text = f"for {inputs} the answer is {expected}"
        try:
            out = inventory(tree)
        except AttributeError as error:
            why = ("a number is a leaf, too" if "object has no attribute 's" in str(error) else
                   "there are other containers than dicts, lists and tuples, and other kinds of "
                   "keys: look at `keystr`")
            raise Hint(f"{answer_text}; {trouble(error)}\n{why}") from error
        expect(isinstance(out, dict), f"{answer_text}, and yours is not a dict: {out!r}")
        expect(not any(hasattr(x, "dtype") for x in out.values()), f"{answer_text}; yours has the "
               "arrays themselves")
        names = list(map(str, out))
        expect(not any("[" in name for name in names), f"{answer_text}; your names are {names}: "
               "look at `keystr` for the bare names, and for what stands between them")
        expect(set(names) == set(expected) or {name.replace("/", "") for name in expected}
               != {name.replace("/", "") for name in names}, f"{answer_text}; your names are "
               f"{names}: give `keystr` a separator")
        expect(not set(names) < set(expected), f"{answer_text}; your names are {names}: one for "
               "each leaf, also for a single number, of the shape ()")
        expect(set(names) == set(expected) or tree is not named, f"{answer_text}; your names are "
               f"{names}: there are other containers than dicts, lists and tuples, and "
               "`leaves_with_path` knows them all")
        expect(set(names) == set(expected), f"{answer_text}; your names are {names}")
        _same(inputs, {k: tuple(v) if isinstance(v, list | tuple) else v for k, v in out.items()},
              expected, (all(isinstance(v, int) for v in out.values()), "those are sizes, not "
                         "shapes"),
              what="the answer")


exercise(
    "inventory", chapter=CHAPTER, grade=grade_inventory,
    solution="""
def inventory(tree):
    return {jax.tree_util.keystr(path, simple=True, separator="/"): jnp.shape(leaf)
            for path, leaf in jax.tree.leaves_with_path(tree)}
""",
    wrong=[
        ("def inventory(tree):\n    from minijax.tree_util import keystr\n"
         "    return {keystr(path, simple=True, separator=\"/\"): np.shape(leaf)\n"
         "            for path, leaf in jax.tree.leaves_with_path(tree) if np.ndim(leaf)}",
         "also for a single number"),
        ("def inventory(tree):\n    return {jax.tree_util.keystr(p): x.shape for p, x in "
         "jax.tree.leaves_with_path(tree)}", "bare"),
        ("def inventory(tree):\n    return {jax.tree_util.keystr(p, simple=True): x.shape for "
         "p, x in jax.tree.leaves_with_path(tree)}", "separator"),
        ("def inventory(tree):\n    return jax.tree.map(lambda x: x.shape, tree)",
         "and yours is not a dict"),
        ("def inventory(tree):\n    return {'/'.join(str(k.key if hasattr(k, 'key') else k.idx) "
         "for k in p): np.shape(x) for p, x in jax.tree.leaves_with_path(tree)}",
         "other kinds of keys"),
        ("def inventory(tree):\n    return {jax.tree_util.keystr(p, simple=True, separator='/'): "
         "x.shape for p, x in jax.tree.leaves_with_path(tree)}", "a number is a leaf, too"),
        ("def inventory(tree):\n    return {jax.tree_util.keystr(p, simple=True, separator='/'): "
         "x for p, x in jax.tree.leaves_with_path(tree)}", "the arrays themselves"),
        ("def inventory(tree):\n    return {jax.tree_util.keystr(p, simple=True, separator='/'): "
         "x.size for p, x in jax.tree.leaves_with_path(tree)}", "not shapes"),
        ("def inventory(tree, at=()):\n    if isinstance(tree, dict):\n"
         "        parts = tree.items()\n    elif isinstance(tree, (list, tuple)):\n"
         "        parts = enumerate(tree)\n    else:\n"
         "        return {'/'.join(map(str, at)): np.shape(tree)}\n    out = {}\n"
         "    for k, v in parts:\n        out |= inventory(v, (*at, k))\n    return out",
         "knows them all"),
    ],
    hints=["jax.tree.leaves_with_path gives pairs of a path and a leaf"])

LINE = """
@jax.tree_util.register_pytree_node_class
class Line:
    def __init__(self, slope, intercept, name):
        self.slope, self.intercept, self.name = slope, intercept, name

    def tree_flatten(self):
        return {}

    @classmethod
    def tree_unflatten(cls, static, children):
        return {}
"""


def grade_line(line_class: type) -> None:
    for slope, intercept, name in ((2.0, 1.0, "rise"), (-3.0, 4.0, "fall")):
        line = line_class(slope, intercept, name)
        inputs = f"Line({slope}, {intercept}, {name!r})"
        with instead_of(ValueError, "(children, aux_data)", f"for {inputs}, `tree_flatten` should "
                        "return a pair: (children, static data), of which the first is a list or "
                        "tuple"):
            leaves, treedef = jax.tree.flatten(line)
        turned = leaves == [intercept, slope]  # their order is yours to choose
        _same(inputs, leaves[::-1] if turned else leaves, [slope, intercept],
              (name in leaves, "a name cannot be differentiated: it belongs to the static data"),
              what="the list of leaves")
        expect([type(x) for x in jax.tree.leaves(line_class(3, 1, name))] == [int, int], "of "
               f"Line(3, 1, {name!r}) the leaves are the whole numbers 3 and 1: `tree_flatten` "
               "should pass on what is there, which may also be an array or a tracer")
        inputs += ", and then the leaves 5.0 and 7.0 in their place,"
        with instead_of(TypeError, "required positional argument", f"for {inputs} `tree_unflatten` "
                        "calls Line with too few arguments: where is the name?"):
            back = jax.tree.unflatten(treedef, [7.0, 5.0] if turned else [5.0, 7.0])
        expect(isinstance(back, line_class), f"for {inputs} a Line is expected, and "
               f"`tree_unflatten` returns {back!r}: call the class")
        _same(inputs, (back.slope, back.intercept), (5.0, 7.0), (True, "in which order does "
              "`tree_unflatten` pass them to Line?"), what="(slope, intercept)")
        _same(inputs, back.name, name, (True, "the name got lost on the way there and back"),
              what="the name")
    found = jax.grad(lambda line: line.slope * 3.0 + line.intercept)(line)
    agree("slope * 3 + intercept", [found.slope, found.intercept], [3.0, 1.0], what="the gradient")
    raised = jax.jit(lambda line: line_class(line.slope, line.intercept + 1.0, line.name))(line)
    agree("a compiled function that adds 1 to the intercept",
          [raised.slope, raised.intercept], [slope, intercept + 1.0], what="the new line")
    expect(jax.tree.structure(line_class(0.0, 0.0, "fall")) != jax.tree.structure(
        line_class(0.0, 0.0, "rise")), "lines of the names 'fall' and 'rise' should be different "
        "trees, and yours have one treedef")


exercise(
    "Line", chapter=CHAPTER, grade=grade_line,
    solution=LINE.format(
        "(self.slope, self.intercept), self.name", "cls(*children, static)"),
    wrong=[
        (LINE.format("(self.slope, self.intercept, self.name), None", "cls(*children)"),
         "static data"),
        (LINE.format("(self.slope, self.intercept), None", "cls(*children, static)"),
         "the name got lost"),
        (LINE.format("[float(self.slope), float(self.intercept)], self.name",
                     "cls(*children, static)"), "pass on what is there"),
        (LINE.format("(self.intercept, self.slope), self.name", "cls(*children, static)"),
         "in which order"),
        (LINE.format("(self.slope, self.intercept), self.name", "cls(static, *children)"),
         "in which order"),
        (LINE.format("(self.slope, self.intercept), self.name", "(*children, static)"),
         "call the class"),
        (LINE.format("self.slope, self.intercept, self.name", "cls(*children, static)"),
         "should return a pair"),
        (LINE.format("(self.slope, self.intercept), self.name", "cls(*children)"),
         "where is the name"),
    ],
    right=[LINE.format("[self.intercept, self.slope], (self.name,)",
                       "cls(children[1], children[0], *static)")],
    afterthought="with `register_dataclass` the two methods are written for you",
    hints=["tree_flatten returns a pair: (children, static data)"])


def grade_in_axes(in_axes: Any) -> None:
    expect(isinstance(in_axes, list | tuple) and len(in_axes) == 2, "`error` has two arguments, so "
           f"two parts are expected, one for params and one for data; yours is {in_axes!r}")
    inputs = f"in_axes = {in_axes!r}:"
    expect(not jax.tree.leaves(in_axes[0]), f"{inputs} the network is the same for all five "
           "pictures, and yours cuts its arrays into rows; what is written for that?")
    data = in_axes[1]
    expect(isinstance(data, dict), f"{inputs} the entries of data are treated differently, so "
           "the dict must be written out")
    missing = sorted({"x", "y", "scale"} - set(data))
    expect(not missing, f"{inputs} {missing} is not there; a prefix that goes into a dict has all "
           "its keys, also those that are not mapped")
    expect(data["scale"] is None, f"{inputs} scale has the shape (2,), one number for each pixel, "
           "not for each of five pictures")
    expect(data["x"] == 0 and data["y"] == 0, f"{inputs} x has the shape (5, 2) and y the shape "
           "(5,), so the pictures and labels lie along axis 0 of both")


exercise(
    "in_axes", chapter=CHAPTER, grade=grade_in_axes,
    solution='(None, {"x": 0, "y": 0, "scale": None})',
    wrong=[
        ("(None, 0)", "written out"),
        ('(None, {"x": 0, "y": 0})', "all its keys"),
        ('(0, {"x": 0, "y": 0, "scale": None})', "same for all"),
        ('{"x": 0, "y": 0, "scale": None}', "two parts"),
        ('(None, {"x": 0, "y": 0, "scale": 0})', "each pixel"),
        ('(None, {"x": 1, "y": 0, "scale": None})', "along axis 0"),
    ],
    right=['([{"w": None, "b": None}] * 2, {"x": 0, "y": 0, "scale": None})'],
    hints=["try it: jax.vmap(error, in_axes=in_axes)(params, data).shape should be (5,)"])


def grade_velocity(velocity: Any) -> None:
    from minijax.notebook.library import library
    mini = library.module
    expect(hasattr(velocity, "_fields"), "`mini.Velocity` should be a class made with NamedTuple, "
           f"and yours is {velocity!r}")
    v = velocity(1.0, (2.0, 3.0))
    leaves, tree = mini.tree_flatten([v, 4.0])
    _same(f"tree_flatten([{v}, 4.0])", leaves, [1.0, 2.0, 3.0, 4.0],
          (leaves == [v, 4.0], "it is still a leaf: `registry` has no entry for it"),
          (len(leaves) < 4, "some part of it is not among the children"),
          (sorted(map(str, leaves)) == ["1.0", "2.0", "3.0", "4.0"], "the leaves of x come before "
           "those of y, as in every tuple"),
          what="the list of leaves")
    expected = [velocity(5.0, (6.0, 7.0)), 8.0]
    back = mini.tree_unflatten(tree, [5.0, 6.0, 7.0, 8.0])
    inputs = "the leaves 5.0 to 8.0 in their place"
    _same(inputs, back, expected, (
        getattr(back[0], "x", 0) is None, "the second function is given two things, the data and "
        "then the children: pass on the children, one by one"),
        (True, "in which order do the children come?"), what="the nest")
    expect(isinstance(back[0], velocity), f"for {inputs} a Velocity is expected, and yours is a "
           f"{type(back[0]).__name__}: what makes it?")
    expect(mini.tree_flatten(velocity(1.0, 2.0))[1] == mini.tree_flatten(velocity(3.0, 4.0))[1],
           "the trees of Velocity(1.0, 2.0) and Velocity(3.0, 4.0) differ in their numbers only, "
           "so they should be equal, and yours are not: the data is what remains without leaves")


_VELOCITY = """
class Velocity(NamedTuple):
    x: object
    y: object

{entry}
"""


exercise(
    "Velocity", chapter=CHAPTER, grade=grade_velocity, given="%mini begin 05",
    solution=_VELOCITY.format(
        entry="registry[Velocity] = lambda v: (v, None), lambda _, children: Velocity(*children)"),
    wrong=[
        (_VELOCITY.format(entry=""), "still a leaf"),
        (_VELOCITY.format(entry="registry[Velocity] = registry[tuple]"), "what makes it"),
        (_VELOCITY.format(entry="registry[Velocity] = lambda v: (v, v), "
                          "lambda _, children: Velocity(*children)"), "remains without leaves"),
        (_VELOCITY.format(entry="registry[Velocity] = (lambda v: (v, None), Velocity)"),
         "pass on the children"),
        (_VELOCITY.format(entry="registry[Velocity] = lambda v: ((v.x,), v.y), "
                          "lambda y, children: Velocity(*children, y)"), "not among the children"),
        (_VELOCITY.format(entry="registry[Velocity] = lambda v: ((v.y, v.x), None), "
                          "lambda _, children: Velocity(*children[::-1])"), "before those of y"),
        (_VELOCITY.format(entry="registry[Velocity] = lambda v: (v, None), "
                          "lambda _, children: Velocity(*children[::-1])"), "in which order"),
    ],
    hints=["registry[tuple] shows what the two functions take and give",
           "`Velocity(*children)` makes one of its parts"])


def grade_filled(filled: Callable) -> None:
    def gappy(chance: random.Random) -> Any:
        return chance.choice([None, 0.0, 1.5])

    def zeros(tree: Any) -> int:
        return jax.tree.leaves(tree).count(0.0)

    first = ({"bias": None, "weight": [1.0, None], "deep": {"x": 0.0}},
             {"bias": 7.0, "weight": [8.0, 9.0], "deep": {"x": 5.0}})
    pairs = [(tree, jax.tree.map(lambda _: 7.0, tree, is_leaf=lambda x: x is None))
             for tree in _nests(gappy)]
    parts = ({"gain": None, "layer": None, "on": True, "name": "relu"},
             {"gain": 2.0, "layer": [1.0, {"w": 2.0}], "on": False, "name": None})
    for tree, defaults in (first, *pairs, (None, 3), parts):
        expected = jax.tree.map(lambda x, d: d if x is None else x, tree, defaults,
                              is_leaf=lambda x: x is None)
        before = copy.deepcopy(tree)
        inputs = f"{tree} and the defaults {defaults}"
        answer_text = f"for {inputs} the answer is {expected}"
        try:
            got = filled(tree, defaults)
        except (TypeError, ValueError) as error:
            expect(tree is not parts[0], f"{answer_text}; {trouble(error)}\nwhere `tree` has a "
                   "None, `defaults` may have a tree, and where it has none, anything: the form "
                   "is that of `tree`, and a leaf stays as it is")
            if isinstance(error, TypeError):
                raise
            raise Hint(f"{answer_text}; {trouble(error)}\nTo `tree_map`, a None is a node without "
                       "children, where the other tree has a leaf. Say that it is a leaf"
                       ) from error
        taken = got == defaults != expected
        _same(inputs, got, expected, (got == before, "that is `tree` as it was: a None is not a "
                                                     "leaf"),
              (taken, "those are the defaults alone"),
              (type(got) is not type(expected), f"a {type(expected).__name__} is wanted: a tree of "
               "the form of `tree`"),
              (zeros(got) < zeros(expected), "the 0.0 was replaced, and is not a None"),
              (True, "and a None deeper inside?"), what="the answer")
        expect(tree == before, f"for {before} the answer is right; but the tree itself is now "
               f"{tree}: make a copy")
        kinds = [[type(x) for x in jax.tree.leaves(t)] for t in (expected, got)]
        expect(kinds[0] == kinds[1], f"for {inputs} the types of the leaves are {kinds[0]}, and "
               f"yours are {kinds[1]}: what is no None stays as it is")
    with wanting("a tree with an array of 3 and a None", "the tree without the None", "an array of "
                 "three is neither true nor false: ask `is None`"):
        full = filled([jnp.ones(3), None], [jnp.zeros(3), jnp.zeros(2)])
    shapes = [jnp.shape(x) for x in jax.tree.leaves(full)]
    expect(shapes == [(3,), (2,)], "for a tree with an array of 3 and a None, and an array of 2 "
           f"in its place, the shapes are [(3,), (2,)], and yours {shapes}")


_FILLED = "def filled(tree, defaults):\n    return jax.tree.map({f}, tree, defaults{leaf})\n"
_NONE_IS_LEAF = ", is_leaf=lambda x: x is None"

exercise(
    "filled", chapter=CHAPTER, grade=grade_filled,
    solution="""
def filled(tree, defaults):
    return jax.tree.map(lambda x, default: default if x is None else x, tree, defaults,
                        is_leaf=lambda x: x is None)
""",
    wrong=[
        ("def filled(tree, defaults):\n"
         "    return jax.tree.map(lambda x, d: d if x is None else x, tree, defaults,\n"
         "                        is_leaf=lambda x: not x)", "neither true nor false"),
        (_FILLED.format(f="lambda x, d: d if x is None else x", leaf=""), "node without children"),
        ("def filled(tree, defaults):\n    return jax.tree.map(lambda x: x, tree)",
         "a None is not a leaf"),
        (_FILLED.format(f="lambda x, d: x or d", leaf=_NONE_IS_LEAF), "the 0.0 was replaced"),
        ("def filled(tree, defaults):\n    return jax.tree.map(lambda d, x: d if x is None else x, "
         "defaults, tree)", "the form is that of `tree`"),
        (_FILLED.format(f="lambda x, d: d if x is None else x + 0", leaf=_NONE_IS_LEAF),
         "a leaf stays as it is"),
        (_FILLED.format(f="lambda x, d: d if x is None else x if isinstance(x, str) else +x",
                        leaf=_NONE_IS_LEAF), "what is no None stays"),
        ("def filled(tree, defaults):\n    none = lambda x: x is None\n    return [d if x is None "
         "else x for x, d in zip(jax.tree.leaves(tree, is_leaf=none), jax.tree.leaves(defaults))]",
         "of the form of `tree`"),
        (_FILLED.format(f="lambda x, d: d", leaf=_NONE_IS_LEAF), "the defaults alone"),
        ("def filled(tree, defaults):\n    return {k: defaults[k] if v is None else v "
         "for k, v in tree.items()}", "deeper inside"),
        ("def filled(tree, defaults):\n    if tree is None:\n        return defaults\n"
         "    if isinstance(tree, tuple):\n"
         "        return tuple(map(filled, tree, defaults))\n"
         "    if isinstance(tree, (dict, list)):\n"
         "        for k in tree if isinstance(tree, dict) else range(len(tree)):\n"
         "            tree[k] = filled(tree[k], defaults[k])\n    return tree", "make a copy"),
    ],
    hints=["tree_map takes is_leaf"])


def grade_nesting(nesting: Callable) -> None:
    def depth(treedef: Any) -> int:
        return 1 + max((depth(t) for t in treedef.children() if t.num_leaves), default=-1)

    cases = [[1, (2, 3)], 1.0, {"a": {"b": {"c": 1}}, "d": 2}, [1, 2], [[], 1],
             ((1,), (((2,),),)), OrderedDict(a=OrderedDict(b=1)), [1, [[]]], [2, {"a": [None]}],
             [], None, ([], {}),
             *_nests(lambda chance: chance.choice([1, 2.5]))]
    for tree in cases:
        treedef = jax.tree.structure(tree)
        expected = depth(treedef)
        with instead_of(ValueError, "empty", f"for {tree!r} the depth is {expected}, and your "
                        "`max` has no number to choose from: "
                        + ("a leaf has no children" if treedef.num_leaves else
                           "there is no leaf in it")):
            got = nesting(tree)
        _same(repr(tree), got, expected,
              (isinstance(tree, OrderedDict), "ask the treedef, which knows all containers"),
              (tree == [[], 1], "an empty list has no leaf in it"),
              (treedef.num_nodes > treedef.num_leaves and str(tree) in ("[1, [[]]]", "[2, {'a': "
               "[None]}]"), "in the part that is nested deepest there is no leaf"),
              (treedef.num_leaves == 0, "there is no leaf in it"),
              (tree == 1.0 and got == 1, "a leaf alone has no container around it"),
              (got == treedef.num_nodes, "that is the number of nodes and leaves"),
              (got == expected + 1, "one too many: a leaf has no container around it"),
              ("Ends(" in repr(tree) and got < expected, "a node of a class is a container, too: "
               "ask the treedef, which knows all of them"),
              (got == expected - 1, "one too few: each container counts, tuples and the "
               "outermost as well; and which leaf is the deepest?"),
              what="the depth")


exercise(
    "nesting", chapter=CHAPTER, grade=grade_nesting,
    solution="""
def nesting(tree):
    def below(treedef):
        return 1 + max((below(t) for t in treedef.children() if t.num_leaves), default=-1)

    return below(jax.tree.structure(tree))
""",
    wrong=[
        ("def nesting(tree):\n    return jax.tree.structure(tree).num_nodes", "nodes and leaves"),
        ("def nesting(tree):\n    def below(t):\n        return 0 if t.num_leaves == 0 else "
         "1 + max(map(below, t.children()))\n    return below(jax.tree.structure(tree))",
         "a leaf has no children"),
        ("def nesting(tree):\n    return max(len(path) for path, _ in "
         "jax.tree.leaves_with_path(tree)) + 1", "one too many"),
        ("def nesting(tree):\n    if isinstance(tree, dict):\n        tree = list(tree.values())\n"
         "    if not isinstance(tree, (list, tuple)):\n        return 0\n"
         "    return 1 + max(map(nesting, tree), default=0)", "an empty list"),
        ("def nesting(tree):\n    def below(tree):\n        if isinstance(tree, dict):\n"
         "            tree = [*tree.values()]\n        if not isinstance(tree, (list, tuple)):\n"
         "            return -9 if tree is None else 0\n"
         "        return 1 + max(map(below, tree), default=-9)\n    return max(below(tree), 0)",
         "a node of a class"),
        ("def nesting(tree):\n    if type(tree) is dict:\n        tree = list(tree.values())\n"
         "    if not isinstance(tree, (list, tuple)):\n        return 0\n"
         "    return 1 + max(map(nesting, tree), default=-1)", "knows all containers"),
        ("def nesting(tree):\n    def below(t):\n        return 1 + max(map(below, t.children()), "
         "default=0)\n    return below(jax.tree.structure(tree))", "one too many"),
        ("def nesting(tree):\n    def below(t):\n        return 1 + max(map(below, t.children()), "
         "default=-1)\n    return below(jax.tree.structure(tree))", "there is no leaf"),
        ("def nesting(tree):\n    return max(len(path) for path, _ in "
         "jax.tree.leaves_with_path(tree))", "there is no leaf"),
    ],
    right=["def nesting(tree):\n    return max((len(path) for path, _ in "
           "jax.tree.leaves_with_path(tree)), default=0)"],
    hints=["`jax.tree.structure(tree).children()` are the treedefs of the children",
           "`max(numbers, default=…)` has an answer for no numbers"])
