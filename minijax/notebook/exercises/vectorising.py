"""The exercises of chapter 04, *Vectorising*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import exercise, expect, instead_of, near

CHAPTER = "04_vectorising"


def _shown(x: Any) -> str:
    return np.array2string(np.asarray(x), precision=3, separator=", ").replace("\n", "")


def _agrees(found: Any, wanted: Any, given: str) -> None:
    expect(near(found, wanted),
           f"for {given} the answer is {_shown(wanted)}, and yours {_shown(found)}")


def _is_shape(answer: Any) -> None:
    expect(isinstance(answer, tuple), "a shape is a tuple of numbers, such as `(3, 4)`")


def grade_seen_shape(answer: Any) -> None:
    _is_shape(answer)
    expect(answer != (5, 7, 2), "that is the batch; the function sees one example of it")
    expect(answer != (7, 2), "this would be axis 0: which axis counts the examples?")
    expect(7 not in answer, "there are 7 examples, and an example does not know how many there are")
    expect(answer == (5, 2), "leave axis 1 out, and keep the others in their order")


exercise(
    "seen_shape", chapter=CHAPTER, grade=grade_seen_shape, solution="(5, 2)",
    wrong=[("(5, 7, 2)", "sees one example"), ("(7, 2)", "which axis counts"),
           ("(5, 7)", "does not know how many"), ("(2, 5)", "in their order"),
           ("[5, 2]", "a tuple")])


def grade_all_pairs(all_pairs: Callable) -> None:
    def power(x: Any, y: Any) -> Any:
        return x ** y

    xs, ys = jnp.array([1.0, 2.0, 3.0]), jnp.array([2.0, 3.0])
    table = all_pairs(power)(xs, ys)
    expect(np.shape(table) != (2, 3), "that is a column for each x: which `vmap` is the outer one?")
    expect(np.shape(table) == (3, 2), "for 3 and 2 numbers the table is of shape (3, 2), not "
           f"{np.shape(table)}; each of the two `vmap` maps over one argument, and None the other")
    _agrees(table, [[1, 1], [4, 8], [9, 27]], "x ** y of [1, 2, 3] and [2, 3]")


exercise(
    "all_pairs", chapter=CHAPTER, grade=grade_all_pairs,
    solution="""
def all_pairs(f):
    of_one_x = jax.vmap(f, in_axes=(None, 0))
    return jax.vmap(of_one_x, in_axes=(0, None))
""",
    wrong=[("def all_pairs(f):\n    return jax.vmap(jax.vmap(f, (0, None)), (None, 0))",
            "which `vmap` is the outer one"),
           ("def all_pairs(f):\n    return lambda xs, ys: jax.vmap(f, (0, None))(xs, ys[0])",
            "of shape (3, 2)"),
           ("def all_pairs(f):\n    return jax.vmap(jax.vmap(lambda x, y: f(y, x), (None, 0)), "
            "(0, None))", "the answer is")],
    hints=["`jax.vmap(f, in_axes=(None, 0))` is a row: one x, all y"])


def grade_max_p(max_p: Any) -> None:
    expect(callable(getattr(max_p, "impl", None)), "`mini.max_p` is a Primitive with a rule `impl`")
    x = np.array([[[1.0, 5.0], [7.0, 2.0]], [[4.0, 0.0], [3.0, 9.0]], [[2.0, 2.0], [8.0, 6.0]]])
    found = max_p.impl(x, axes=(1,))
    expect(isinstance(found, list), "a rule gives a list, here of one array")
    _agrees(found[0], x.max(1), "axes=(1,) of an array of shape (3, 2, 2)")
    expect(callable(getattr(max_p, "batch", None)),
           "now the rule `batch`, as `batched` in `linear` is one")
    from minijax.notebook.library import library
    mini = library.module
    for axis in (0, 1, 2):
        with instead_of(TypeError, "not iterable", "the rule `batch` gives two lists: the results, "
                        "and where the axis of the batch is in each"):
            got = mini.vmap(lambda row: max_p(row, axes=(0,)), in_axes=axis)(x)
        wanted = np.moveaxis(x, axis, 0).max(1)
        expect(np.shape(got) == wanted.shape, "with one axis more in front, an axis k of the "
               f"example is axis k + 1 of the batch; the shape is {np.shape(got)}, "
               f"not {wanted.shape}")
        _agrees(got, wanted, f"in_axes={axis}")


_GIVEN_MINI = """
from minijax.notebook.library import library
library.begin("04")
from mini import Primitive, in_front
"""
_MAX = """
def max_batch(axis, values, dims, axes):
    x = in_front(values[0], dims[0], axis.size)
    return [max_p(x, axes={axes})], {dims}

max_p = Primitive("max", impl=lambda x, axes: {impl}, batch={batch})
"""


def _max_p(axes: str = "tuple(k + 1 for k in axes)", impl: str = "[np.max(x, axis=axes)]",
           batch: str = "max_batch", dims: str = "[0]") -> str:
    return _MAX.format(axes=axes, impl=impl, batch=batch, dims=dims)


exercise(
    "max_p", chapter=CHAPTER, grade=grade_max_p, given=_GIVEN_MINI, solution=_max_p(),
    wrong=[(_max_p(axes="axes"), "is axis k + 1"), (_max_p(impl="np.max(x, axis=axes)"), "a list"),
           (_max_p(impl="[np.min(x, axis=axes)]"), "the answer is"),
           (_max_p(dims="0"), "gives two lists"), (_max_p(batch="None"), "now the rule")],
    afterthought="its derivative is a question of where the largest is; the course comes to that")


def grade_columns_in_axes(answer: Any) -> None:
    expect(isinstance(answer, tuple) and len(answer) == 2,
           "one entry for each argument: a tuple of two")
    expect(answer[1] is None, "the second argument is the same for all, which is written None")
    expect(answer[0] != 0, "along axis 0 lie the rows; `f` would be given one row after the other")
    expect(answer[0] in (1, -1), "which axis counts the columns?")


exercise(
    "columns_in_axes", chapter=CHAPTER, grade=grade_columns_in_axes, solution="(1, None)",
    wrong=[("1", "a tuple of two"), ("(0, None)", "lie the rows"), ("(1, 0)", "written None"),
           ("(None, None)", "counts the columns")])


def grade_per_example(per_example: Callable) -> None:
    def loss(w: Any, x: Any) -> Any:
        return jnp.sum(w * x) ** 2

    w, xs = jnp.array([1.0, -1.0]), jnp.array([[1.0, 2.0], [3.0, 1.0], [0.0, 1.0]])
    with instead_of(TypeError, "scalar", "a gradient is of one number, and `vmap` of the loss "
                    "gives one for each example: which of the two comes first?"):
        found = per_example(loss)(w, xs)
    expect(np.shape(found) != (2,), "this is one gradient, of all examples together; "
           "take the gradient first, and vectorise that")
    expect(np.shape(found) == (3, 2), f"for 3 examples and 2 weights the shape is (3, 2), "
           f"not {np.shape(found)}; the weights are the same for all examples")
    wanted = np.stack([jax.grad(loss)(w, x) for x in xs])
    _agrees(found, wanted, "w = [1, -1] and three examples")


exercise(
    "per_example", chapter=CHAPTER, grade=grade_per_example,
    solution="""
def per_example(loss):
    return jax.vmap(jax.grad(loss), in_axes=(None, 0))
""",
    wrong=[("def per_example(loss):\n    return jax.grad(lambda w, xs: "
            "jnp.mean(jax.vmap(loss, (None, 0))(w, xs)))", "take the gradient first"),
           ("def per_example(loss):\n    return jax.grad(jax.vmap(loss, in_axes=(None, 0)))",
            "which of the two"),
           ("def per_example(loss):\n    return jax.vmap(loss, in_axes=(None, 0))",
            "the shape is (3, 2)"),
           ("def per_example(loss):\n    return jax.vmap(jax.grad(loss, argnums=1), (None, 0))",
            "the answer is")])


def grade_numpys_shape(answer: Any) -> None:
    _is_shape(answer)
    expect(answer != (2,), "that is what the innermost function sees")
    expect(answer != (3, 2), "that is what the inner trace hands to its parent, the outer trace")
    expect(answer == (4, 3, 2), "each trace adds its own axis again: how many are there?")


exercise(
    "numpys_shape", chapter=CHAPTER, grade=grade_numpys_shape, solution="(4, 3, 2)",
    wrong=[("(2,)", "innermost"), ("(3, 2)", "inner trace hands"), ("(12, 2)", "its own axis"),
           ("24", "a tuple")])


def grade_slowly(slowly: Callable) -> None:
    xs = jnp.array([[1.0, 2.0], [3.0, 5.0], [7.0, 1.0]])
    calls = []

    def f(x: Any) -> Any:
        calls.append(np.shape(x))
        return x[0] - x[1] ** 2

    found = slowly(f)(xs)
    expect(len(calls) == 3, f"three rows are three calls of f; there were {len(calls)}")
    expect(set(calls) == {(2,)}, f"f is to be given one row, of shape (2,), and not {calls[0]}")
    expect(not isinstance(found, list), "stack the results: one array, not a list of them")
    _agrees(found, jax.vmap(f)(xs), "x[0] - x[1]**2 of three rows")


exercise(
    "slowly", chapter=CHAPTER, grade=grade_slowly,
    solution="""
def slowly(f):
    return lambda xs: jnp.stack([f(x) for x in xs])
""",
    wrong=[("def slowly(f):\n    return jax.vmap(f)", "three calls of f"),
           ("def slowly(f):\n    return lambda xs: [f(x) for x in xs]", "one array"),
           ("def slowly(f):\n    return lambda xs: jnp.stack([f(x[None]) for x in xs])",
            "of shape (2,)"),
           ("def slowly(f):\n    return lambda xs: jnp.stack([f(x) for x in xs[::-1]])",
            "the answer is")])


def grade_diagonal_sums(diagonal_sums: Callable) -> None:
    xs = jnp.arange(18.0).reshape(2, 3, 3)
    found = diagonal_sums(xs)
    expect(np.shape(found) == (2,), f"one number for each of the 2 matrices, not a result of shape "
           f"{np.shape(found)}")
    _agrees(found, [12, 39], "the matrices of 0 to 8 and of 9 to 17")
    _agrees(diagonal_sums(jnp.ones((4, 2, 2))), [2, 2, 2, 2], "four matrices of ones")


exercise(
    "diagonal_sums", chapter=CHAPTER, grade=grade_diagonal_sums,
    solution="""
def diagonal_sums(xs):
    return jax.vmap(lambda x: jnp.sum(x * jnp.eye(len(x))))(xs)
""",
    wrong=[("def diagonal_sums(xs):\n    return jnp.sum(xs * jnp.eye(3))", "one number for each"),
           ("def diagonal_sums(xs):\n    return jax.vmap(jnp.sum)(xs)", "the answer is"),
           ("def diagonal_sums(xs):\n    return jax.vmap(lambda x: jnp.sum(x * jnp.eye(3)))(xs)",
            "your answer raised")])
