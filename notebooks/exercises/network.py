"""The exercises of chapter 29, *A network on your own JAX*."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import (Hint, agree, exercise, expect, near, shown, trouble,
                                     wanting)

CHAPTER = "29_a_network_on_your_own_jax"
DIGITS = Path(__file__).parent.parent / "data" / "digits.npz"


def _mini() -> Any:
    """The reader's library; ours, where it has not what this chapter adds."""
    from minijax.notebook.library import library
    if not {"amax", "maximum", "mean", "tree"} <= {*vars(library.module)}:
        chapter = library.chapter
        library.begin("29")
        library.chapter = chapter  # where the reader's `%mini save` writes
    return library.module


# -- missing ---------------------------------------------------------------------------------------

_ABSENT = {"maximum", "amax", "mean", "tree"}
_PRESENT = {"dot", "reshape", "log", "exp", "sum", "value_and_grad", "jit", "grad"}


def grade_missing(answer: Any) -> None:
    expect(isinstance(answer, list | tuple | set | frozenset), "a list of names is wanted")
    names = {str(name).rpartition(".")[2] if str(name) not in ("tree.map", "jax.tree.map")
             else "tree" for name in answer}
    for name in sorted(names & _PRESENT):
        expect(False, f"`mini` has `{name}`: `mini.{name}` is there")
    for name in sorted(names - _ABSENT):
        expect(False, f"the program calls no `{name}` of the library")
    lines = {"maximum": "scores", "amax": "loss", "mean": "loss", "tree": "step"}
    for name in sorted(_ABSENT - names):
        expect(False, f"there is one more in `{lines[name]}`, and you name {len(names)}")


exercise("missing", chapter=CHAPTER, grade=grade_missing,
         solution='["maximum", "amax", "mean", "tree"]',
         wrong=[('["maximum", "amax", "tree"]', "one more in `loss`"),
                ('["maximum", "amax", "mean"]', "one more in `step`"),
                ('["maximum", "amax", "mean", "tree", "log"]', "`mini` has `log`"),
                ('["maximum", "amax", "mean", "tree", "softmax"]', "calls no `softmax`"),
                ('"maximum"', "a list of names")],
         right=['("tree.map", "jnp.mean", "jnp.maximum", "jnp.amax")'])


# -- minimum ---------------------------------------------------------------------------------------

def grade_minimum(minimum: Callable) -> None:
    mini = _mini()
    random = np.random.default_rng(5)
    for _ in range(4):
        x, y, t = random.uniform(-3, 3, (3, 4)).round(1)
        y += 0.05  # no element is that of x: at a tie both tangents would do
        inputs = f"x = {shown(x)} and y = {shown(y)}"
        with wanting(inputs, np.minimum(x, y)):
            result = minimum(x, y)
        agree(inputs, result, np.minimum(x, y),
              (near(result, np.maximum(x, y)), "that is the larger one"),
              "choose for each element", what="the smaller one")
        agree(f"{inputs[:-len(shown(y))]}2.0", minimum(x, 2.0), np.minimum(x, 2.0),
              what="the smaller one")
        _check_company(mini, minimum, x, y, t)
    agree("x = 1e20 and y = 1.0", minimum(1e20, 1.0), 1.0, "a sum of such numbers loses the small "
          "one: choose", what="the smaller one")


def _check_company(mini: Any, minimum: Callable, *values: np.ndarray) -> None:
    """Look at `minimum` under each transformation."""
    x, y, t = values
    runs: dict[str, tuple[Callable, Any]] = {
        "`jvp`": (lambda: mini.jvp(lambda x: minimum(x, y), (x,), (t,))[1], np.where(x < y, t, 0)),
        "`vmap`": (lambda: mini.vmap(minimum)(x, y), np.minimum(x, y)),
        "`make_jaxpr`, run,": (lambda: mini.eval_jaxpr(mini.make_jaxpr(minimum)(x, y), x, y)[0],
                               np.minimum(x, y))}
    inputs = f"x = {shown(x)} and y = {shown(y)}"
    for name, (run, expected) in runs.items():
        with wanting(inputs, expected, (TypeError, "NumPy knows no tracers: use operations of "
                     "`mini`, which choose without asking"), what=f"what {name} gives"):
            result = run()
        agree(inputs, result, expected, "the tangent is that of the element which is chosen",
              what=f"what {name} gives")


_MINIMUM = "def minimum(x, y):\n    return {}"

exercise("minimum", chapter=CHAPTER, grade=grade_minimum, given="%mini begin 29",
         solution=_MINIMUM.format("where(greater(x, y), y, x)"),
         wrong=[(_MINIMUM.format("where(greater(x, y), x, y)"), "the larger one"),
                (_MINIMUM.format("np.minimum(x, y)"), "NumPy knows no tracers"),
                (_MINIMUM.format("np.where(x < y, x, y)"), "no tracers"),
                (_MINIMUM.format("x + y - maximum(x, y)"), "loses the small one"),
                (_MINIMUM.format("where(greater(x, y), y, x) + 0.0 * x * x - x + x + 1e-1"),
                 "for each element")],
         right=[_MINIMUM.format("-maximum(-x, -y)"), _MINIMUM.format("where(greater(y, x), x, y)")])


# -- slope_at_tie ----------------------------------------------------------------------------------

def grade_slope_at_tie(answer: Any) -> None:
    expect(np.ndim(answer) == 0 and isinstance(answer, int | float | np.number),
           "one number is wanted")
    expect(not near(answer, 9.0), "9 is their sum; how is the sum divided?")
    expect(not near(answer, 6.0), "there are three largest elements, and each has a part")
    expect(not near(answer, 4.5), "three elements are the largest: the one that does not move "
           "counts as well")
    expect(not near(answer, 18.0) and not near(answer, 6.0),
           "the element 1.0 is not the largest, however fast it moves")
    agree("[2.0, 2.0, 1.0, 2.0]", answer, 3.0, "which elements are the largest, and what is the "
          "mean of their tangents?", what="the tangent")


exercise("slope_at_tie", chapter=CHAPTER, grade=grade_slope_at_tie, solution="3.0",
         wrong=[("9.0", "how is the sum divided"), ("4.5", "does not move"),
                ("6.0", "each has a part"), ("2.0", "which elements"), ("[3.0]", "one number")])


# -- with_momentum ---------------------------------------------------------------------------------

def grade_with_momentum(with_momentum: Callable) -> None:
    random = np.random.default_rng(8)
    nests = [lambda: random.integers(-5, 6, 2) * 1.0,
             lambda: {"w": random.integers(-5, 6, (2, 1)) * 1.0, "b": [1.0, 4.0]},
             lambda: [{"w": random.integers(-5, 6, 3) * 1.0}, (2.0, random.uniform(size=1))]]
    for make in nests:
        params, speed, gradient = make(), make(), make()
        before = copy.deepcopy((params, speed, gradient))
        faster = jax.tree.map(lambda v, g: 0.9 * v - 0.1 * g, speed, gradient)
        old, moved = (jax.tree.map(lambda p, v: p + v, params, by) for by in (speed, faster))
        inputs = f"params = {params}, speed = {speed} and gradient = {gradient}"
        with wanting(inputs, "a pair of such nests", (
                TypeError, "the three are nests: how is a function called on each of their leaves?"
                ), (AttributeError, "the three are nests of any form")):
            result = with_momentum(params, speed, gradient)
        expect(isinstance(result, tuple | list) and len(result) == 2,
               f"a pair is wanted, of new parameters and new speed, and yours is {result}")
        parts = {"the new speed": (result[1], faster), "the new parameters": (result[0], moved)}
        for what, (mine, expected) in parts.items():
            expect(jax.tree.structure(mine) == jax.tree.structure(expected),
                   f"for {inputs} {what} should be a nest of the same form, and yours is {mine}")
            for k, (x, y) in enumerate(zip(*map(jax.tree.leaves, (mine, expected)), strict=True)):
                agree(f"{inputs}, leaf {k},", x, y,
                      (what.endswith("parameters") and near(x, jax.tree.leaves(old)[k]),
                       "the parameters move by the new speed"),
                      "first the speed changes, and then the parameters by it", what=what)
        expect(str(before) == str((params, speed, gradient)), "the parameters, or the other nests "
               "that were handed in, have changed")


_MOMENTUM = """
def with_momentum(params, speed, gradient):
    speed{} = jax.tree.map(lambda v, g: {}, speed, gradient)
    return jax.tree.map(lambda p, v: p + v, params, speed), {}
"""

exercise("with_momentum", chapter=CHAPTER, grade=grade_with_momentum,
         given="from minijax.notebook.library import library\nlibrary.begin('29')\nimport mini",
         solution=_MOMENTUM.format("", "0.9 * v - 0.1 * g", "speed"),
         wrong=[(_MOMENTUM.format("_after", "0.9 * v - 0.1 * g", "speed_after"), "the new speed"),
                (_MOMENTUM.format("", "0.9 * v + 0.1 * g", "speed"), "the new speed"),
                ("def with_momentum(params, speed, gradient):\n"
                 "    speed = 0.9 * speed - 0.1 * gradient\n"
                 "    return params + speed, speed", "each of their leaves"),
                (_MOMENTUM.format("", "0.9 * v - 0.1 * g", "speed").replace(", speed\n", "\n"),
                 "a pair is wanted"),
                ("def with_momentum(params, speed, gradient):\n    def change(p, v, g):\n"
                 "        v *= 0.9\n        v -= 0.1 * g\n        p += v\n        return p\n"
                 "    return jax.tree.map(change, params, speed, gradient), speed",
                 "have changed")],
         right=[_MOMENTUM.format("", "0.9 * v - 0.1 * g", "speed").replace("jax.", "mini.")])


# -- my_network ------------------------------------------------------------------------------------

def _digits(seed: int) -> tuple[np.ndarray, ...]:
    """1,000 digits to learn from, with their answers, and the others to examine."""
    with np.load(DIGITS) as file:
        pixels, labels = file["pixels"].reshape(-1, 64) / 16, file["labels"]
    order = np.random.default_rng(seed).permutation(len(pixels))
    pixels, answers = pixels[order], np.eye(10)[labels[order]]
    return pixels[:1000], answers[:1000], pixels[1000:], answers[1000:]


def _built(my_network: Callable, *library: Any) -> tuple[Callable, ...]:
    parts = my_network(*library)
    expect(isinstance(parts, tuple | list) and len(parts) == 3 and all(map(callable, parts)),
           f"three functions are wanted, `init`, `scores` and `step`, and yours is {parts}")
    return tuple(parts)


def _flat(params: Any) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)])


def grade_my_network(my_network: Callable) -> None:
    x, y, x_hidden, y_hidden = _digits(61)
    mini = _mini()
    start = _check_parts(_built(my_network, mini, mini), x[:7])
    with jax.enable_x64(True):
        runs = [_three_steps(_built(my_network, *library), x, y)
                for library in ((mini, mini), (jax, jnp))]
    expect(near(runs[0], runs[1], 1e-6), "three steps give the losses "
           f"{shown(runs[0])} on `mini` and {shown(runs[1])} on minijax: is everything random in "
           "`init`, by NumPy, and is everything else of the library that is handed in?")
    with wanting("a step on 20 pictures", "a loss, and parameters", "the number of pictures is "
                 "that of the rows of x"):
        init, _, step = _built(my_network, jax, jnp)
        step(init(3), x[:20], y[:20])
    _check_learning(_built(my_network, jax, jnp), start, (x, y), (x_hidden, y_hidden))


def _check_parts(parts: tuple[Callable, ...], x: np.ndarray) -> Any:
    """Look at `init` and `scores`; returns how many parameters there are."""
    init, scores, _ = parts
    params = init(3)
    expect(jax.tree.leaves(params), f"`init(3)` gives no arrays: {params}")
    expect(np.array_equal(_flat(params), _flat(init(3))), "`init(3)` twice gives two different "
           "results: make a generator from the seed")
    expect(not np.array_equal(_flat(params), _flat(init(4))), "`init(3)` and `init(4)` give the "
           "same parameters")
    shape = np.shape(scores(params, x))
    expect(shape == (7, 10), f"the scores of 7 pictures have the shape (7, 10), and yours {shape}")
    return _flat(params).size


def _three_steps(parts: tuple[Callable, ...], x: np.ndarray, y: np.ndarray) -> list[float]:
    """The losses of three steps; a hint where a step is not pure."""
    init, _, step = parts
    params, losses, pictures = init(3), [], x.copy()
    for k in range(0, 150, 50):
        before = _flat(params).copy()
        try:
            result = step(params, x[k:k + 50], y[k:k + 50])
        except TypeError as error:
            is_nest = any(f"'{kind}'" in str(error) for kind in ("dict", "list", "tuple"))
            raise Hint(trouble(error) + (
                "\n`value_and_grad` gives a nest of gradients: a step for each of its leaves is "
                "wanted" * is_nest) + "\ntracers of `mini` have no such operator: which function "
                "of `mini` does it?" * ("'Tracer'" in str(error))) from error
        expect(isinstance(result, tuple | list) and len(result) == 2 and np.ndim(result[0]) == 0,
               "`step` gives a pair, the loss and the new parameters")
        expect(np.array_equal(before, _flat(params)), "after a step the parameters that were "
               "handed in have changed: make new arrays")
        expect(np.array_equal(pictures, x), "after a step the pictures that were handed in have "
               "changed: make new arrays")
        again = step(params, x[k:k + 50], y[k:k + 50])
        expect(float(again[0]) == float(result[0]), "one step made twice gives two losses: it "
               "remembers something")
        expect(np.array_equal(_flat(again[1]), _flat(result[1])), "one step made twice leads to "
               "other parameters: it remembers something")
        losses.append(float(result[0]))
        expect(jax.tree.structure(result[1]) == jax.tree.structure(params),
               "the new parameters are not of the form of the old ones")
        params = result[1]
    return losses


def _check_learning(parts: tuple[Callable, ...], size: int, seen: tuple, hidden: tuple) -> None:
    """Train for ten epochs, and examine."""
    init, scores, step = parts
    fast, params, losses = jax.jit(step), init(11), []
    for _ in range(10):
        for k in range(0, 1000, 50):
            value, params = fast(params, seen[0][k:k + 50], seen[1][k:k + 50])
            losses.append(float(value))
    first, last = np.mean(losses[:5]), np.mean(losses[-20:])
    expect(np.isfinite(last), f"after ten epochs the loss is {last}: are the steps too large?")
    expect(last < first / 2, f"the loss is {first:.2f} at the beginning and {last:.2f} after ten "
           "epochs: does a step go downhill, and far enough?")
    guess = np.argmax(np.asarray(scores(params, hidden[0])), axis=1)
    share = np.mean(guess == np.argmax(hidden[1], axis=1))
    expect(share >= 0.9, f"the loss falls from {first:.2f} to {last:.2f}, and {share:.0%} of the "
           "hidden digits are read rightly, by the highest score: 90 % are asked for")


_NETWORK = """
def my_network(jax, jnp):
    def init(seed):
        random = np.random.default_rng({seed})
        return {{"in": random.normal(size=(64, 40)) * 0.15, "at": np.zeros(40),
                "out": random.normal(size=(40, 10)) * 0.15}}

    def scores(params, x):
        hidden = {hidden}
        return jnp.dot(hidden, params["out"]){more}

    def loss(params, x, y):
        s = scores(params, x)
        s = s - jnp.reshape(jnp.amax(s, axis=1), (s.shape[0], 1))
        return jnp.mean(jnp.log(jnp.sum(jnp.exp(s), axis=1)) - jnp.sum(s * y, axis=1))

    def step(params, x, y):
        value, gradient = jax.value_and_grad(loss)(params, x, y)
        {update}
        return value, params

    return {parts}
"""


def _network_text(seed: str = "seed", more: str = "", parts: str = "init, scores, step",
                  hidden: str = 'jnp.tanh(jnp.dot(x, params["in"]) + params["at"])',
                  update: str = "params = jax.tree.map(lambda p, g: p - 0.4 * g, params, gradient)"
                  ) -> str:
    return _NETWORK.format(seed=seed, more=more, parts=parts, hidden=hidden, update=update)


exercise(
    "my_network", chapter=CHAPTER, grade=grade_my_network, solution=_network_text(),
    given="import numpy as np",
    wrong=[(_network_text(parts="scores"), "three functions"),
           (_network_text(seed=""), "make a generator"),
           (_network_text(seed="0"), "the same parameters"),
           (_network_text().replace("(s.shape[0], 1)", "(50, 1)"), "rows of x"),
           (_network_text(more=' + params["at"]', hidden=(
               'jnp.tanh(jnp.dot(x, params["in"]) + params["at"])')), "raised"),
           (_network_text(hidden='np.tanh(jnp.dot(x, params["in"]) + params["at"])'), "raised"),
           (_network_text(update="params = params - 0.4 * gradient"), "each of its leaves"),
           (_network_text(hidden='jnp.tanh(x @ params["in"] + params["at"])'), "no such operator"),
           (_network_text(update='params["at"] = params["at"] - 0.4 * gradient["at"]'),
            "make new arrays"),
           (_network_text(update="params = jax.tree.map(lambda p, g: p + 0.4 * g, params, "
                                 "gradient)"), "downhill"),
           (_network_text(update="params = jax.tree.map(lambda p, g: p - 1e-4 * g, params, "
                                 "gradient)"), "far enough"),
           (_network_text().replace("        hidden =", "        x -= x.mean()\n        hidden ="),
            "the pictures that were handed in"),
           (_network_text(more=" * np.random.normal()", update=(
               "params = jax.tree.map(lambda p, g: p - 0.4 * g, params, gradient)")),
            "it remembers something")],
    right=[_network_text(hidden='jnp.maximum(jnp.dot(x, params["in"]) + params["at"], 0.0)')],
    afterthought="it runs on both libraries, with the same numbers; it is pure; it learns; it "
                 "reads",
    hints=["begin with the four functions of this chapter, inside of `my_network`"])
