"""The exercises of chapter 00, *A tour*."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import exercise, expect, near

from .ways import names_of

CHAPTER = "00_tour"

F = """
def f(x):
    return x**3 - 3*x
"""


def _shown(x: Any) -> str:
    try:
        array = np.asarray(x, float)
        return (f"{float(array):.4g}" if array.ndim == 0 else
                np.array2string(array, precision=3, separator=", ").replace("\n", ""))
    except (TypeError, ValueError):
        return repr(x)


def _agrees(result: Any, expected: Any, inputs: str) -> None:
    expect(near(result, expected),
           f"for {inputs} the answer is {_shown(expected)}, and yours {_shown(result)}")


def _follows_f(answer: Callable) -> bool:
    """Whether the answer is another function's second derivative if `f` becomes that function."""
    innermost = inspect.unwrap(answer)
    names = getattr(innermost, "__globals__", {})
    if "f" not in names or names["f"] is innermost:  # `grad(grad(f))` has the function itself
        return True
    own, names["f"] = names["f"], jnp.sin
    try:
        with jax.disable_jit():
            return near(answer(2.0), -np.sin(2.0))
    finally:
        names["f"] = own


def grade_bend(bend: Callable) -> None:
    result = bend(2.0)
    expect(result is not None, "nothing comes back: is there a `return`?")
    expect(not callable(result), "a function comes back; give it x")
    expect(not near(result, 9.0), "that is the slope; how does the slope change?")
    expect(near(result, 12.0), f"for x = 2 the answer is 12, and yours {_shown(result)}: "
           "differentiate f twice on paper")
    for x in (-1.0, 0.0, *np.random.default_rng(0).normal(size=5).round(2)):
        expect(near(bend(float(x)), 6 * x), "right at 2, but not everywhere: "
               f"for x = {x} the answer is {6 * x:.4g}, and yours {_shown(bend(float(x)))}")
    expect(_follows_f(bend), "right for this `f`; but if `f` is another function, yours stays "
           "as it is: let `grad` differentiate it")


exercise(
    "bend", chapter=CHAPTER, grade=grade_bend, given=F,
    solution="""
def bend(x):
    return jax.grad(jax.grad(f))(x)
""",
    wrong=[
        ("def bend(x):\n    return jax.grad(f)(x)", "slope"),
        ("def bend(x):\n    return 6 * x", "let `grad` differentiate"),
        ("def bend(x):\n    return 12.0", "for x = -1.0 the answer is -6"),
        ("def bend(x):\n    return jax.grad(f)(jax.grad(f)(x))", "on paper"),
        ("def bend(x):\n    return jax.grad(jax.grad(f(x)))", "raised TypeError"),
        ("def bend(x):\n    return jax.grad(jax.grad(f))", "give it x"),
        ("def bend(x):\n    jax.grad(jax.grad(f))(x)", "is there a `return`"),
    ],
    right=["bend = jax.jit(jax.grad(lambda x: jax.grad(f)(x)))", "bend = jax.grad(jax.grad(f))"],
    afterthought="`grad` returns a function, and functions are what `grad` takes",
    hints=["the derivative of a function is a function; how does that one change?",
           "give `grad` what `grad` gave you, and only then the number"],
)


class _Deep:
    """The depth of an expression, and the number of its operations."""

    def __init__(self, depth: int):
        self.depth = depth

    def __pow__(self, n: int) -> _Deep:
        return _Deep(self.depth + 1)

    def __rmul__(self, number: int) -> _Deep:
        return _Deep(self.depth + 1)

    def __sub__(self, other: _Deep) -> _Deep:
        return _Deep(max(self.depth, other.depth) + 1)


def _expression(random: np.random.Generator, size: int) -> str:
    """The text of a function of x with this many operations."""
    if size == 0:
        return "x"
    kind, left = random.integers(3), int(random.integers(size))
    if kind == 0:
        return f"({_expression(random, size - 1)})**{random.integers(2, 4)}".replace("(x)", "x")
    if kind == 1:
        return f"{random.integers(2, 9)}*({_expression(random, size - 1)})".replace("(x)", "x")
    return f"({_expression(random, left)} - {_expression(random, size - 1 - left)})"


def grade_depth(Depth: Any) -> None:
    random = np.random.default_rng(1)
    texts = ["x", "x**3", "3*x", "x - x", "x**3 - 3*x", "x - x**2", "x**2 - x"]
    for text in [*texts, *(_expression(random, size) for size in range(3, 9) for _ in range(3))]:
        function = eval(f"lambda x: {text}")
        expected, result = function(_Deep(0)).depth, function(Depth(0))
        expect(result is not None, f"for {text} nothing comes back: is there a `return`?")
        expect(isinstance(result, Depth), "an operation on a Depth gives another Depth, for the "
               f"function to go on with; {text} gave {result!r}")
        mistake = (f"for {text} the depth is {expected}, and yours {result.depth}. ")
        expect(not (text == "x - x" and result.depth == 0), mistake + "A subtraction is an "
               "operation, too")
        expect(not (text == "x**3 - 3*x" and result.depth == 3), mistake + "There are three "
               "operations, but the power and the product need not wait for each other")
        expect(result.depth == expected, mistake + "Which operations must be done before the last?")


_DEPTH = """
class Depth:
    def __init__(self, depth):
        self.depth = depth

    def __pow__(self, n):
        {one}

    def __rmul__(self, number):
        {one}

    def __sub__(self, other):
        {two}
"""


def _depth(two: str, one: str = "return Depth(self.depth + 1)") -> str:
    return _DEPTH.format(one=one, two=two)


exercise(
    "Depth", chapter=CHAPTER, grade=grade_depth,
    solution=_depth("return Depth(max(self.depth, other.depth) + 1)"),
    wrong=[
        (_depth("return Depth(self.depth + other.depth + 1)"), "need not wait"),
        (_depth("return Depth(max(self.depth, other.depth))"), "an operation, too"),
        (_depth("return Depth(self.depth + 1)"), "for x - x**2 the depth is 2, and yours 1"),
        (_depth("return max(self.depth, other.depth) + 1"), "gives another Depth"),
        (_depth("self.depth = max(self.depth, other.depth) + 1"), "nothing comes back"),
    ],
    afterthought="with a processor for each operation, that is how long it would take",
    hints=["how deep is the result of an operation on something of depth 4?",
           "a subtraction must wait for both of its arguments: for which of them longer?"],
)


def grade_numbers_in(numbers_in: Callable) -> None:
    random = np.random.default_rng(2)

    def array() -> Any:
        return np.zeros(random.integers(1, 5, random.integers(0, 4)), np.float32)

    trees: list[Any] = [{"w": np.zeros((2, 3)), "b": np.zeros(3)}, [np.zeros((2, 2)), np.zeros(())]]
    trees += [[{"w": array(), "b": array()}, (array(), {"more": [array()]})] for _ in range(10)]
    for tree in trees:
        sizes = [leaf.size for leaf in _leaves(tree)]
        result = numbers_in(tree)
        shapes = ", ".join(str(leaf.shape) for leaf in _leaves(tree))
        expect(not isinstance(result, dict | list | tuple), "a tree of counts comes back; one "
               "number is expected")
        mistake = (f"for arrays of the shapes {shapes} the answer is {sum(sizes)}, "
                   f"and yours {_shown(result)}")
        expect(not near(result, len(sizes)) or len(sizes) == sum(sizes),
               mistake + ": that is how many arrays there are, but how many numbers are in each?")
        expect(near(result, sum(sizes)), mistake)


def _leaves(tree: Any) -> list[Any]:
    parts = tree.values() if isinstance(tree, dict) else tree
    return [tree] if hasattr(tree, "shape") else [leaf for part in parts for leaf in _leaves(part)]


exercise(
    "numbers_in", chapter=CHAPTER, grade=grade_numbers_in,
    solution="""
def numbers_in(tree):
    return sum(leaf.size for leaf in jax.tree.leaves(tree))
""",
    wrong=[
        ("def numbers_in(tree):\n    return len(jax.tree.leaves(tree))", "how many arrays"),
        ("def numbers_in(tree):\n    return jax.tree.map(lambda leaf: leaf.size, tree)",
         "a tree of counts"),
        ("def numbers_in(tree):\n    return sum(leaf.ndim for leaf in jax.tree.leaves(tree))",
         "the answer is"),
        ("def numbers_in(tree):\n    return sum(part['w'].size + part['b'].size for part in tree)",
         "your answer raised"),
        ("def numbers_in(tree):\n    return sum(leaf.sum() for leaf in jax.tree.leaves(tree))",
         "the answer is 9, and yours 0"),
    ],
    afterthought="ask it of `params`",
    hints=["an array has a `size`; the arrays of a tree are `jax.tree.leaves(tree)`"],
)


def grade_downhill(downhill: Callable) -> None:
    def bowl(p: Any) -> Any:
        return p["a"] ** 2 + 3 * p["b"]

    def slopes(p: Any) -> Any:
        return {"a": 2 * p["a"], "b": 3.0}

    random = np.random.default_rng(3)
    cases = [(2.0, 1.0, 0.1), *random.uniform(0.5, 3, (5, 3)).round(2).tolist()]
    for a, b, rate in cases:
        at = {"a": a, "b": b}
        slope = slopes(at)
        result = downhill(bowl, dict(at), rate)
        expect(isinstance(result, dict) and result.keys() == at.keys(), "parameters come back, in "
               f"a tree of the same form, here of the form {at}; yours is {result!r}")
        if all(near(result[key], at[key] - rate * slope[key]) for key in at):
            continue
        mine = {key: round(float(value), 4) for key, value in result.items()}
        mistake = (f"for a**2 + 3*b at {at} and the rate {rate} the answer is "
                   f"{ {key: round(at[key] - rate * slope[key], 4) for key in at} }, "
                   f"and yours {mine}. ")
        expect(not all(near(result[key], slope[key]) for key in at), mistake + "That is the "
               "gradient; take a step with it")
        expect(not all(near(result[key], at[key] + rate * slope[key]) for key in at),
               mistake + "The gradient points uphill, and so did you")
        expect(not all(near(result[key], at[key] - slope[key]) for key in at),
               mistake + "How long should the step be?")
        expect(False, mistake)
    from minijax import numpy as jnp
    tree = [{"w": jnp.ones((2, 2))}, {"w": jnp.ones(3)}]
    result = downhill(lambda t: t[0]["w"].sum() - t[1]["w"].sum(), tree, 0.5)
    expect(near(result[0]["w"], np.full((2, 2), 0.5)) and near(result[1]["w"], np.full(3, 1.5)),
           f"right for two numbers, but not for a list of dicts of arrays: yours is {result}")


exercise(
    "downhill", chapter=CHAPTER, grade=grade_downhill,
    solution="""
def downhill(loss, params, rate):
    gradient = jax.grad(loss)(params)
    return jax.tree.map(lambda p, g: p - rate * g, params, gradient)
""",
    wrong=[
        ("def downhill(loss, params, rate):\n    g = jax.grad(loss)(params)\n"
         "    return jax.tree.map(lambda p, g: p + rate * g, params, g)", "points uphill"),
        ("def downhill(loss, params, rate):\n    return jax.grad(loss)(params)",
         "That is the gradient"),
        ("def downhill(loss, params, rate):\n    g = jax.grad(loss)(params)\n"
         "    return jax.tree.map(lambda p, g: p - g, params, g)", "How long"),
        ("def downhill(loss, params, rate):\n    return params - rate * jax.grad(loss)(params)",
         "raised TypeError"),
        ("def downhill(loss, params, rate):\n    g = jax.grad(loss)(params)\n"
         "    return loss(jax.tree.map(lambda p, g: p - rate * g, params, g))",
         "parameters come back"),
    ],
    afterthought="a hundred such steps are a way to train a network; the next section has a better",
    hints=["`jax.tree.map(function, one, other)` gives the function a leaf of each tree"],
)


def grade_printed(answer: Any) -> None:
    expect(isinstance(answer, int) and not isinstance(answer, bool), "the answer is a number")
    expect(answer != 6, "Python does not run at each call: what may it leave out?")
    expect(answer != 5, "ones and zeros of one shape and dtype are the same to a tracer")
    expect(answer != 1, "once for each type of argument, and there are several")
    expect(answer != 3, "shape and dtype make a type: is 1 like 1.0, and are 3 numbers like 4?")
    expect(answer == 4, f"not {answer}: go through the calls, and ask of each whether its type is "
           "new")


exercise(
    "printed", chapter=CHAPTER, grade=grade_printed, solution="4",
    wrong=[("6", "at each call"), ("5", "the same to a tracer"), ("3", "is 1 like 1.0"),
           ("1", "there are several"), ("2", "whether its type is new")],
    afterthought="paste the lines into a cell, and see",
    hints=["1.0 and 2.0 are one type"],
)


def grade_soft(soft: Callable) -> None:
    import minijax as jax
    from minijax import errors
    xs = np.array([0.5, 2.0, -2.0, 1.0, -1.0, 0.0, *np.linspace(-3, 3, 14)], np.float32)
    for x in xs:
        expected = x * x / 2 if abs(x) <= 1 else abs(x) - 0.5
        _agrees(soft(float(x)), expected, f"x = {x:.4g}")
    try:
        jax.jit(soft)(1.0)
        result = jax.vmap(soft)(xs)
    except errors.TracerBoolConversionError:
        expect(False, "right for a number, but under `jit` a tracer is asked whether it is small: "
               "it stands for all numbers. Choose for each of them instead")
    expect(np.shape(result) == xs.shape, "right for a number, but not under `vmap`")
    for x in xs:
        slope = jax.grad(soft)(float(x))
        expect(near(slope, np.clip(x, -1, 1)), f"the value is right, but the slope at {x:.4g} is "
               f"{np.clip(x, -1, 1):.4g}, and yours {_shown(slope)}")


exercise(
    "soft", chapter=CHAPTER, grade=grade_soft,
    solution="""
def soft(x):
    size = jnp.abs(x)
    return jnp.where(size <= 1, x**2 / 2, size - 0.5)
""",
    wrong=[
        ("def soft(x):\n    if abs(x) <= 1:\n        return x**2 / 2\n    return abs(x) - 0.5",
         "asked whether it is small"),
        ("def soft(x):\n    return jnp.where(x <= 1, x**2 / 2, x - 0.5)",
         "for x = -2 the answer is 1.5, and yours 2"),
        ("def soft(x):\n    return jnp.where(abs(x) <= 1, x**2 / 2, abs(x))",
         "for x = 2 the answer is 1.5, and yours 2"),
        ("def soft(x):\n    return jnp.where(abs(x) <= 1, abs(x) - 0.5, x**2 / 2)",
         "for x = 0.5 the answer is 0.125, and yours 0"),
    ],
    afterthought="it is called Huber's loss: a mistake of 10 counts as ten, and not as a hundred",
    hints=["`jnp.where(condition, a, b)` takes a where the condition holds, and b elsewhere"],
)


def grade_counted(counted: Callable) -> None:
    import minijax as jax
    first = jax.jit(counted)(0, 1.0)
    expect(isinstance(first, tuple | list) and len(first) == 2,
           "it must return two things: the new count, and the result")
    run, count, results = jax.jit(counted), 0, []
    for _ in range(3):
        count, result = run(count, 1.0)
        results.append(float(result))
    expect(not (results == [1.0] * 3 and near(count, 3.0)),
           "the count is right, but the result takes no notice of it")
    expect(results != [0.0, 1.0, 2.0], "the result takes the count before the visit; count first")
    expect(len(set(results)) == 3,
           f"three visits gave {results}: what was counted must come out, to go in next time")
    expect(results == [1.0, 2.0, 3.0], f"three visits gave {results}; they should count")
    expect(not near(counted(4, 2.0)[0], 10.0), "the new count comes first, and then the result")
    for before, x in ((4, 2.0), (0, -1.0), (7, 0.3), (2, 3.0)):
        count, result = counted(before, x)
        expect(near(count, before + 1) and near(result, x * (before + 1)),
               f"for the count {before} and x = {x} the answer is {(before + 1, x * (before + 1))},"
               f" and yours {(_shown(count), _shown(result))}; the result also depends on x")


exercise(
    "counted", chapter=CHAPTER, grade=grade_counted,
    solution="""
def counted(count, x):
    count = count + 1
    return count, x * count
""",
    wrong=[
        ("def counted(count, x):\n    return count, x * count", "must come out"),
        ("def counted(count, x):\n    return x * (count + 1)", "two things"),
        ("def counted(count, x):\n    return count + 1, x * count", "count first"),
        ("def counted(count, x):\n    return count + 1, x", "takes no notice"),
        ("def counted(count, x):\n    return count + 1, count + 1.0", "depends on x"),
        ("def counted(count, x):\n    return x * (count + 1), count + 1", "count comes first"),
    ],
    afterthought="what a function should remember goes in as an argument and out as a result",
    hints=["no global is needed: the count is an argument now",
           "make the new count first; return it, a comma, and the result"],
)

# The network that the chapter has trained is not at hand here; a small one stands for it.
NETWORK = """
y_test = np.arange(40) % 10
light = np.where(np.arange(40) % 4, 0.1, 0.9)[:, None]  # near the darkest, and the lightest
x_test = jnp.clip(jnp.array(np.eye(10, 64)[y_test] * 0.8 + light, np.float32), 0, 1)
params = {"w": jnp.eye(64, 10) - jnp.eye(64, 10, -10), "b": jnp.zeros(10)}

def scores(params, x):
    return x @ params["w"] + params["b"]

def loss(params, x, y):
    log_p = jax.nn.log_softmax(scores(params, x))
    return -jnp.mean(log_p[jnp.arange(len(y)), y])
"""


def grade_vote(vote: Callable) -> None:
    import minijax as jax
    from minijax import numpy as jnp
    world: dict[str, Any] = names_of(vote)
    random = np.random.default_rng(4)
    pictures = world["x_test"][:6]
    for _ in range(3):
        members = [jax.tree.map(lambda p: p + jnp.array(random.normal(size=p.shape), jnp.float32),
                                world["params"]) for _ in range(5)]
        each = np.stack([world["scores"](member, pictures) for member in members])
        expected = each.mean(axis=0).argmax(axis=1)
        result = vote(jax.tree.map(lambda *leaves: jnp.stack(leaves), *members), pictures)
        inputs = f"5 networks and 6 pictures the answer is {_shown(expected)}, and yours"
        expect(np.shape(result) != (6, 10), "those are ten scores for each picture; which digit is "
               "the answer?")
        expect(np.shape(result) != (5, 6), "that is an answer of each network; take the mean of "
               "their scores first")
        expect(np.shape(result) == (6,), f"for {inputs} of shape {np.shape(result)}: an answer for "
               "each picture is expected")
        expect(not near(result, each.argmax(axis=2).mean(axis=0)), f"for {inputs} "
               f"{_shown(result)}: the mean of a 3 and a 5 is a 4, which neither has seen. Take "
               "that of the scores")
        expect(near(result, expected), f"for {inputs} {_shown(result)}")


_VOTE = """
def vote(networks, x):
    each = jax.vmap(lambda params: scores(params, x))(networks)
    return {}
"""

exercise(
    "vote", chapter=CHAPTER, grade=grade_vote, given=NETWORK,
    solution=_VOTE.format("each.mean(axis=0).argmax(axis=1)"),
    wrong=[
        (_VOTE.format("each.argmax(axis=2).mean(axis=0)"), "which neither has seen"),
        (_VOTE.format("each.mean(axis=0)"), "which digit is the answer"),
        (_VOTE.format("each.argmax(axis=2)"), "that is an answer of each network"),
        (_VOTE.format("each.mean(axis=1).argmax(axis=1)"), "an answer for each picture"),
        (_VOTE.format("(-each).mean(axis=0).argmax(axis=1)"), "the answer is"),
        ("def vote(networks, x):\n    return scores(networks, x).argmax(axis=1)",
         "your answer raised ValueError"),
    ],
    right=["@jax.jit" + _VOTE.format("each.sum(axis=0).argmax(axis=1)")],
    afterthought="try it: `jnp.mean(vote(networks_together, x_test) == y_test)`",
    hints=["`scores` takes one network; what makes a function of one a function of many?",
           "the result has an axis for the networks, one for the pictures and one for the digits"],
)


def grade_fooling(fooling: Callable) -> None:
    world: dict[str, Any] = names_of(fooling)
    scores, params = world["scores"], world["params"]
    x_test, y_test = world["x_test"], world["y_test"]
    right = np.flatnonzero(np.argmax(scores(params, x_test), axis=1) == y_test)[:8]
    pictures = [np.asarray(fooling(params, x_test[i], y_test[i])) for i in right]
    expect(pictures[0].shape == (64,), "one picture goes in, and one must come out: what is the "
                                       "gradient by a batch of one?")
    changed = np.stack(pictures)
    moved = np.abs(changed - np.asarray(x_test[right])).max()
    expect(moved > 1e-3, "the pictures are as they were")
    expect(moved <= 0.301, f"a pixel changed by {moved:.2f}, which is too much")
    expect(changed.min() >= 0 and changed.max() <= 1, "a pixel is below 0 or above 1")
    fooled = int(np.sum(np.argmax(scores(params, changed), axis=1) != y_test[right]))
    expect(fooled >= 5, f"{fooled} of 8 are read wrongly, which is not enough; does each pixel go "
                        "as far as it may, and in the direction in which the loss grows?")


exercise(
    "fooling", chapter=CHAPTER, grade=grade_fooling, given=NETWORK,
    solution="""
def fooling(params, x, y):
    slope = jax.grad(loss, argnums=1)(params, x[None], y[None])[0]
    return jnp.clip(x + 0.3 * jnp.sign(slope), 0, 1)
""",
    wrong=[
        ("def fooling(params, x, y):\n    return x", "as they were"),
        ("def fooling(params, x, y):\n    return 1 - x", "too much"),
        ("def fooling(params, x, y):\n    return x - 0.3", "below 0"),
        ("def fooling(params, x, y):\n"
         "    slope = jax.grad(loss, argnums=1)(params, x[None], y[None])[0]\n"
         "    return jnp.maximum(x + 0.3 * jnp.sign(slope), 0)", "above 1"),
        ("def fooling(params, x, y):\n"
         "    slope = jax.grad(loss, argnums=1)(params, x[None], y[None])[0]\n"
         "    return jnp.minimum(x + 0.3 * jnp.sign(slope), 1)", "below 0"),
        ("def fooling(params, x, y):\n"
         "    slope = jax.grad(loss, argnums=1)(params, x[None], y[None])\n"
         "    return jnp.clip(x + 0.3 * jnp.sign(slope), 0, 1)", "a batch of one"),
        ("def fooling(params, x, y):\n"
         "    slope = jax.grad(loss, argnums=1)(params, x[None], y[None])[0]\n"
         "    return jnp.clip(x + 0.3 * slope, 0, 1)", "as far as it may"),
        ("def fooling(params, x, y):\n"
         "    slope = jax.grad(loss, argnums=1)(params, x[None], y[None])[0]\n"
         "    return jnp.clip(x - 0.3 * jnp.sign(slope), 0, 1)", "direction"),
    ],
    afterthought="a small step for each pixel, and all of them in the worst direction",
    hints=["the gradient of the loss with respect to the picture has a number for each pixel: "
           "should the loss grow along it or against it?",
           "`jnp.sign` makes +1 or -1 of it; a step of 0.3 that way, and `jnp.clip` keeps the "
           "pixels between 0 and 1"],
)
