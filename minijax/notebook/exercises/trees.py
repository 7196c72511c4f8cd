"""The exercises of chapter 05, *Trees*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import Hint, exercise, expect, near, trouble

CHAPTER = "05_trees"


def grade_how_many(how_many: Callable) -> None:
    tree = {"w": jnp.ones((2, 3)), "b": [jnp.zeros(3), jnp.zeros(())]}
    got = how_many(tree)
    expect(got != 3, "that is the number of leaves; how many numbers are in each?")
    expect(got == 10, f"a matrix of 2 by 3, a vector of 3 and a single number are not {got}")
    expect(how_many([None, jnp.ones(2)]) == 2, "None has no numbers in it")
    expect(how_many(()) == 0, "an empty tree has no numbers")
    expect(how_many((1.0, jnp.ones(2))) == 3, "a Python number is a leaf, too")


exercise(
    "how_many", chapter=CHAPTER, grade=grade_how_many,
    solution="""
def how_many(tree):
    return sum(jnp.size(leaf) for leaf in jax.tree.leaves(tree))
""",
    wrong=[
        ("def how_many(tree):\n    return len(jax.tree.leaves(tree))", "number of leaves"),
        ("def how_many(tree):\n    return sum(leaf.size for leaf in jax.tree.leaves(tree))",
         "'float' object has no attribute 'size'"),
        ("def how_many(tree):\n    return sum(len(leaf) for leaf in jax.tree.leaves(tree))",
         "unsized"),
        ("def how_many(tree):\n    return jax.tree.reduce(lambda n, leaf: n + jnp.size(leaf), "
         "tree)", "raised"),
    ],
    hints=["jax.tree.leaves, and a sum"])


def grade_stacked(stacked: Callable) -> None:
    trees = [{"w": jnp.full((2, 3), float(i)), "b": (jnp.array(float(i)),)} for i in range(5)]
    try:
        out = stacked(trees)
    except (TypeError, ValueError) as error:
        raise Hint(f"{trouble(error)}\nThe function that you give to tree_map is called once for "
                   "each leaf. `tree_map(f, trees)` takes the list for one tree, and gives f one "
                   "array at a time: how does it get the five that belong together?") from error
    expect(not isinstance(out, list), "one tree is wanted, and this is a list: give all trees to "
           "one tree_map")
    expect(jax.tree.structure(out) == jax.tree.structure(trees[0]),
           f"it should have the structure of one of them, and has {jax.tree.structure(out)}")
    expect(jnp.shape(out["w"]) != (10, 3), "the arrays are glued along the axis they have; a new "
           "one is wanted")
    expect(jnp.shape(out["w"]) == (5, 2, 3),
           f"five matrices of 2 by 3 became an array of shape {jnp.shape(out['w'])}")
    expect(near(out["b"][0], [0.0, 1.0, 2.0, 3.0, 4.0]), "the numbers are not in order")


exercise(
    "stacked", chapter=CHAPTER, grade=grade_stacked,
    solution="""
def stacked(trees):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)
""",
    wrong=[
        ("def stacked(trees):\n    return jax.tree.map(lambda *x: jnp.concatenate("
         "[jnp.atleast_1d(y) for y in x]), *trees)", "glued"),
        ("def stacked(trees):\n    return jax.tree.map(jnp.stack, trees)", "one array at a time"),
        ("def stacked(trees):\n    return [jnp.stack(x) for x in zip(*map(jax.tree.leaves, "
         "trees))]", "this is a list"),
        ("def stacked(trees):\n    return jax.tree.map(lambda *x: jnp.stack(x, axis=-1), *trees)",
         "of shape (2, 3, 5)"),
    ],
    afterthought="`jax.vmap(predict, in_axes=(0, None))` takes such a tree",
    hints=["a function may take any number of arguments: lambda *leaves: …"])


def grade_inventory(inventory: Callable) -> None:
    tree = [{"w": jnp.ones((2, 3)), "b": jnp.zeros(3)}, {"w": jnp.ones((3, 1))}]
    out = inventory(tree)
    expect(isinstance(out, dict), "a dict is wanted, from names to shapes")
    expect("[0]['w']" not in out, "names such as 0/w are wanted: look at `keystr` for the bare "
           "names, and for what stands between them")
    expect("0w" not in out, "the names run into each other: give `keystr` a separator")
    expect(set(out) == {"0/w", "0/b", "1/w"}, f"the names are {sorted(map(str, out))}")
    expect(not hasattr(out["0/w"], "dtype"), "these are the arrays; their shapes are wanted")
    expect(tuple(out["0/w"]) == (2, 3), "wrong shape")


exercise(
    "inventory", chapter=CHAPTER, grade=grade_inventory,
    solution="""
def inventory(tree):
    return {jax.tree_util.keystr(path, simple=True, separator="/"): jnp.shape(leaf)
            for path, leaf in jax.tree.leaves_with_path(tree)}
""",
    wrong=[
        ("def inventory(tree):\n    return {jax.tree_util.keystr(p): x.shape for p, x in "
         "jax.tree.leaves_with_path(tree)}", "bare"),
        ("def inventory(tree):\n    return {jax.tree_util.keystr(p, simple=True): x.shape for "
         "p, x in jax.tree.leaves_with_path(tree)}", "separator"),
        ("def inventory(tree):\n    return jax.tree.map(lambda x: x.shape, tree)",
         "a dict is wanted"),
        ("def inventory(tree):\n    return {jax.tree_util.keystr(p, simple=True, separator='/'): "
         "x for p, x in jax.tree.leaves_with_path(tree)}", "shapes are wanted"),
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
    line = line_class(2.0, 1.0, "rise")
    leaves, treedef = jax.tree.flatten(line)
    expect("rise" not in leaves, "the name is among the leaves, and `grad` cannot take it: it "
           "belongs to the static data")
    expect(leaves == [2.0, 1.0], f"the leaves should be slope and intercept, and are {leaves}")
    back = jax.tree.unflatten(treedef, [5.0, 7.0])
    expect(isinstance(back, line_class), "tree_unflatten should return a Line, and returns a "
           f"{type(back).__name__}")
    expect((back.slope, back.intercept) == (5.0, 7.0),
           f"unflattened from 5 and 7, it has slope {back.slope} and intercept {back.intercept}")
    expect(back.name == "rise", f"on the way there and back the name became {back.name!r}")
    slope = jax.grad(lambda line: line.slope * 3.0 + line.intercept)(line)
    expect(near(slope.slope, 3.0) and near(slope.intercept, 1.0), "its gradient is not right")
    expect(jax.tree.structure(line_class(0.0, 0.0, "fall")) != treedef,
           "lines of different names should be different trees")


exercise(
    "Line", chapter=CHAPTER, grade=grade_line,
    solution=LINE.format(
        "(self.slope, self.intercept), self.name", "cls(*children, static)"),
    wrong=[
        (LINE.format("(self.slope, self.intercept, self.name), None", "cls(*children)"),
         "static data"),
        (LINE.format("(self.slope, self.intercept), None", "cls(*children, static)"),
         "the name became None"),
        (LINE.format("(self.slope, self.intercept), self.name", "cls(static, *children)"),
         "has slope rise"),
        (LINE.format("(self.slope, self.intercept), self.name", "(*children, static)"),
         "return a Line"),
        (LINE.format("self.slope, self.intercept, self.name", "cls(*children, static)"),
         "(children, aux_data)"),
    ],
    afterthought="with `register_dataclass` the two methods write themselves",
    hints=["tree_flatten returns a pair: (children, static data)"])


def grade_in_axes(in_axes: Any) -> None:
    expect(isinstance(in_axes, list | tuple) and len(in_axes) == 2,
           "two arguments, so it has two parts: one for params, one for data")
    expect(in_axes[0] is None, "the network is the same for all; what is written for that?")
    data = in_axes[1]
    expect(isinstance(data, dict), "the entries of data are treated differently, so the dict must "
           "be written out")
    expect(set(data) == {"x", "y", "scale"}, "a prefix that goes into a dict has all its keys, "
           "also those that are not mapped")
    expect(data["scale"] is None, "scale has one number for each pixel, not for each picture")
    expect(data["x"] == 0 and data["y"] == 0, "pictures and labels are mapped over axis 0")


exercise(
    "in_axes", chapter=CHAPTER, grade=grade_in_axes,
    solution='(None, {"x": 0, "y": 0, "scale": None})',
    wrong=[
        ("(None, 0)", "written out"),
        ('(None, {"x": 0, "y": 0})', "all its keys"),
        ('(0, {"x": 0, "y": 0, "scale": None})', "same for all"),
        ('{"x": 0, "y": 0, "scale": None}', "two parts"),
        ('(None, {"x": 0, "y": 0, "scale": 0})', "each pixel"),
    ],
    hints=["try it: jax.vmap(error, in_axes=in_axes)(params, data).shape should be (5,)"])


def grade_velocity(velocity: Any) -> None:
    from minijax.notebook.library import library
    mini = library.module
    expect(hasattr(velocity, "_fields"), "`mini.Velocity` is a class, made with NamedTuple")
    v = velocity(1.0, (2.0, 3.0))
    leaves, tree = mini.flatten([v, 4.0])
    expect(leaves != [v, 4.0], "it is still a leaf: `registry` has no entry for it")
    expect(leaves == [1.0, 2.0, 3.0, 4.0],
           f"flatten([{v}, 4.0]) should find 1.0, 2.0, 3.0 and 4.0, and finds {leaves}")
    back = mini.unflatten(tree, [5.0, 6.0, 7.0, 8.0])
    expect(isinstance(back[0], velocity), "what is put together is a "
           f"{type(back[0]).__name__}, no Velocity")
    expect(back == [velocity(5.0, (6.0, 7.0)), 8.0],
           f"from 5.0 to 8.0 it became {back}")


_VELOCITY = """
class Velocity(NamedTuple):
    x: object
    y: object

{entry}
"""


exercise(
    "Velocity", chapter=CHAPTER, grade=grade_velocity, given="""
from typing import NamedTuple
from minijax.notebook.library import library
library.begin("05")
from mini import registry
""",
    solution=_VELOCITY.format(
        entry="registry[Velocity] = lambda v: (v, None), lambda _, children: Velocity(*children)"),
    wrong=[
        (_VELOCITY.format(entry=""), "still a leaf"),
        (_VELOCITY.format(entry="registry[Velocity] = registry[tuple]"), "no Velocity"),
        (_VELOCITY.format(entry="registry[Velocity] = lambda v: ((v.x,), v.y), "
                          "lambda y, children: Velocity(*children, y)"), "should find"),
        (_VELOCITY.format(entry="registry[Velocity] = lambda v: (v, None), "
                          "lambda _, children: Velocity(*children[::-1])"), "it became"),
    ],
    hints=["registry[tuple] shows what the two functions take and give",
           "`Velocity(*children)` makes one of its parts"])


def grade_filled(filled: Callable) -> None:
    tree = {"bias": None, "weight": [1.0, None], "deep": {"x": 0.0}}
    defaults = {"bias": 7.0, "weight": [8.0, 9.0], "deep": {"x": 5.0}}
    wanted = {"bias": 7.0, "weight": [1.0, 9.0], "deep": {"x": 0.0}}
    asked = f"for {tree} and the defaults {defaults} the answer is {wanted}"
    try:
        got = filled(tree, defaults)
    except ValueError as error:
        raise Hint(f"{trouble(error)}\nTo `tree_map`, the None of one tree is a node without "
                   "children, where the other has a leaf. Say that it is a leaf.") from error
    expect(got != tree, f"{asked}; yours is `tree` as it was: a None is no leaf")
    expect(got["deep"]["x"] == 0.0, f"{asked}; in yours the 0.0 was replaced, too, and is no None")
    expect(got == wanted, f"{asked}, and yours {got}")
    expect(filled(None, 3) == 3, "`None` alone is a tree as well: filled(None, 3) is 3")


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
        (_FILLED.format(f="lambda x, d: d if x is None else x", leaf=""), "node without children"),
        ("def filled(tree, defaults):\n    return jax.tree.map(lambda x: x, tree)",
         "a None is no leaf"),
        (_FILLED.format(f="lambda x, d: x or d", leaf=_NONE_IS_LEAF), "the 0.0 was replaced"),
        (_FILLED.format(f="lambda x, d: d", leaf=_NONE_IS_LEAF), "the 0.0 was replaced"),
        ("def filled(tree, defaults):\n    return {k: defaults[k] if v is None else v "
         "for k, v in tree.items()}", "the answer is"),
    ],
    hints=["tree_map takes is_leaf"])


def grade_nesting(nesting: Callable) -> None:
    cases = [(1.0, 0), ([1, (2, 3)], 2), ({"a": {"b": {"c": 1}}, "d": 2}, 3), ([1, 2], 1),
             ([[], 1], 1), (((1,), (((2,),),)), 4)]
    for tree, wanted in cases:
        got = nesting(tree)
        expect(got == wanted, f"nesting({tree}) is {wanted}, and yours {got}"
               + (": an empty list has no leaf in it" if tree == [[], 1] else ""))
    from collections import OrderedDict
    tree = OrderedDict(a=OrderedDict(b=1))
    expect(nesting(tree) == 2, f"nesting({tree}) is 2, and yours {nesting(tree)}: ask the "
           "treedef, which knows all containers")


exercise(
    "nesting", chapter=CHAPTER, grade=grade_nesting,
    solution="""
def nesting(tree):
    def below(treedef):
        return 1 + max(map(below, treedef.children()), default=-1)

    return below(jax.tree.structure(tree))
""",
    wrong=[
        ("def nesting(tree):\n    return jax.tree.structure(tree).num_nodes", "is 0"),
        ("def nesting(tree):\n    return max(len(path) for path, _ in "
         "jax.tree.leaves_with_path(tree)) + 1", "is 0"),
        ("def nesting(tree):\n    if isinstance(tree, dict):\n        tree = list(tree.values())\n"
         "    if not isinstance(tree, (list, tuple)):\n        return 0\n"
         "    return 1 + max(map(nesting, tree), default=0)", "an empty list"),
        ("def nesting(tree):\n    def below(t):\n        return 1 + max(map(below, t.children()), "
         "default=0)\n    return below(jax.tree.structure(tree))", "is 0"),
    ],
    hints=["`jax.tree.structure(tree).children()` are the treedefs of the children",
           "`max(numbers, default=…)` has an answer for no numbers"])
