"""The exercises of chapter 00, *A tour*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.notebook.checks import exercise, expect, near

F = """
def f(x):
    return x**3 - 3*x
"""


def grade_bend(bend: Callable) -> None:
    found = bend(2.0)
    expect(found is not None, "nothing comes back: is there a `return`?")
    expect(not callable(found), "a function comes back; give it x")
    expect(not near(found, 9.0), "that is the slope; how does the slope change?")
    expect(near(found, 12.0), "differentiate f twice on paper, and compare at x = 2")
    expect(near(bend(-1.0), -6.0), "right at 2, but not at -1")


exercise(
    "bend", chapter="00_tour", grade=grade_bend, given=F,
    solution="""
def bend(x):
    return jax.grad(jax.grad(f))(x)
""",
    wrong=[
        ("def bend(x):\n    return jax.grad(f)(x)", "slope"),
        ("def bend(x):\n    return 12.0", "not at -1"),
        ("def bend(x):\n    return jax.grad(f)(jax.grad(f)(x))", "on paper"),
        ("def bend(x):\n    return jax.grad(jax.grad(f(x)))", "raised TypeError"),
        ("def bend(x):\n    return jax.grad(jax.grad(f))", "give it x"),
        ("def bend(x):\n    jax.grad(jax.grad(f))(x)", "is there a `return`"),
    ],
    afterthought="`grad` returns a function, and functions are what `grad` takes",
    hints=["the derivative of a function is a function; how does that one change?",
           "give `grad` what `grad` gave you, and only then the number"],
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
    count, result = counted(4, 2.0)
    expect(not near(count, 10.0), "the new count comes first, and then the result")
    expect(near(result, 10.0), "the result also depends on x")


exercise(
    "counted", chapter="00_tour", grade=grade_counted,
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
x_test = jnp.clip(jnp.array(np.eye(10, 64, dtype=np.float32)[y_test]) * 0.5 + 0.2, 0, 1)
params = jnp.eye(64, 10)

def scores(params, x):
    return x @ params

def loss(params, x, y):
    log_p = jax.nn.log_softmax(scores(params, x))
    return -jnp.mean(log_p[jnp.arange(len(y)), y])
"""


def grade_fooling(fooling: Callable) -> None:
    import numpy as np
    world: dict[str, Any] = fooling.__globals__
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
    "fooling", chapter="00_tour", grade=grade_fooling, given=NETWORK,
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
    hints=["the gradient of the loss by the picture has a number for each pixel: is the loss to "
           "grow with it or against it?",
           "`jnp.sign` makes +1 or -1 of it; a step of 0.3 that way, and `jnp.clip` keeps the "
           "pixels between 0 and 1"],
)
