"""The exercises of chapter 04, *Vectorising*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import (Hint, agree, exercise, expect, instead_of, near, shown,
                                     wanting)

from .ways import equations, of_dtype

CHAPTER = "04_vectorising"


def _library() -> Any:
    from minijax.notebook.library import library
    return library.module


# -- slowly ----------------------------------------------------------------------------------------

LOOPS: tuple[tuple[tuple, list[tuple], list[tuple]], ...] = (
    ((0,), [(3, 2)], [(2,)]),
    ((0, None), [(3, 2), (5,)], [(2,), (5,)]),
    ((1, 0), [(2, 3), (3, 4)], [(2,), (4,)]),
    ((None, 2), [(3,), (4, 2, 5)], [(3,), (4, 2)]),
    ((-1, 0), [(3, 2, 4), (4, 3)], [(3, 2), (3,)]),
    ((-1, None), [(3, 2), (4,)], [(3,), (4,)]))


def grade_slowly(slowly: Callable) -> None:
    random = np.random.default_rng(0)
    for in_axes, shapes, expected in LOOPS:
        args = [random.integers(-9, 10, shape).astype(np.float32) for shape in shapes]
        inputs = f"in_axes={in_axes} and arrays of the shapes {' and '.join(map(str, shapes))}"
        calls: list[list[tuple]] = []

        def f(x: Any, *others: Any, calls: Any = calls) -> Any:
            calls.append([np.shape(a) for a in (x, *others)])
            return sum((2.0 * jnp.ravel(a)[-1] for a in others), jnp.ravel(x)[0])

        with instead_of(IndexError, "out of bounds", f"for {inputs} yours takes an example that is "
                        "not there: the examples may lie along another axis than the first"):
            result = slowly(f, in_axes)(*args)
        [size, *_] = (s[axis] for s, axis in zip(shapes, in_axes, strict=True) if axis is not None)
        expect(len(calls) == size, f"for {inputs} there are {size} calls of f, and yours makes "
               f"{len(calls)}\none call for each example: a Python loop")
        why = ("an argument whose axis is None goes to each call as it is" if None in in_axes else
               "f is given one example, without the axis that counts them")
        expect(calls[0] == expected, f"for {inputs} f is given arrays of the shapes {expected}, "
               f"and yours gives it {calls[0]}\n{why}")
        expect(not isinstance(result, list | tuple), f"for {inputs} one array of {size} numbers is "
               f"expected, and yours is a {type(result).__name__}: stack the results")
        agree(inputs, result, jax.vmap(f, in_axes=in_axes)(*args), (
            any(in_axes), "the examples may lie along another axis than the first"))
    rows = random.integers(-9, 10, (3, 2)).astype(np.float32)
    agree(f"f(x) = 2 x, in_axes=(0,) and the rows {shown(rows)}",
          slowly(lambda x: 2.0 * x, (0,))(rows), 2.0 * rows,
          "the results of f may be arrays, too: stack them along a new axis")
    looped = slowly(lambda x: 2.0 * x, (0,))
    looped(rows)
    slowly(lambda x: 3.0 * x, (0,))
    agree(f"f(x) = 2 x and the rows {shown(-rows)}, after a call with others,", looped(-rows),
          -2.0 * rows, "each call calls f anew, and each f has a loop of its own")
    counted = slowly(lambda x: x[0] + 1, (0,))(
        np.arange(6, dtype=np.int32).reshape(3, 2))
    of_dtype("f(x) = x[0] + 1 and rows of int32", counted, np.int32, "stack what f gives")


_SLOWLY = """
def slowly(f, in_axes):
    def looped(*args):
        [size, *_] = [np.shape(x)[axis] for x, axis in zip(args, in_axes) if axis is not None]
        return {stack}
    return looped
"""
_CALL = "f(*({one} for x, axis in zip(args, in_axes)))"
_ONE = "x if axis is None else np.take(x, i, axis)"


def _slowly(one: str = _ONE, stack: str = "jnp.stack([{call} for i in range(size)])") -> str:
    return _SLOWLY.format(stack=stack.format(call=_CALL.format(one=one)))


exercise(
    "slowly", chapter=CHAPTER, grade=grade_slowly,
    solution="""
def slowly(f, in_axes):
    def looped(*args):
        [size, *_] = [np.shape(x)[axis] for x, axis in zip(args, in_axes) if axis is not None]
        results = []
        for i in range(size):
            example = [x if axis is None else np.take(x, i, axis) for x, axis in zip(args, in_axes)]
            results.append(f(*example))
        return jnp.stack(results)
    return looped
""",
    wrong=[("def slowly(f, in_axes):\n    cache = {}\n    def loop(*args):\n"
            "        n = [np.shape(a)[ax] for a, ax in zip(args, in_axes) if ax is not "
            "None][0]\n        for k in range(n):\n            if k not in cache:\n"
            "                cache[k] = f(*[a if ax is None else jnp.take(a, k, ax)\n"
            "                               for a, ax in zip(args, in_axes)])\n"
            "        return jnp.stack([cache[k] for k in range(n)])\n    return loop",
            "each call calls f anew"),
           ("def slowly(f, in_axes):\n    return jax.vmap(f, in_axes)", "one call for each"),
           (_slowly(stack="[{call} for i in range(size)]"), "stack the results"),
           (_slowly(stack="jnp.hstack([{call} for i in range(size)])"), "along a new axis"),
           (_slowly(one="np.take(x, i, axis or 0)"), "goes to each call as it is"),
           (_slowly().replace("if axis is not None]", "if axis is not None and axis >= 0]"),
            "not enough values to unpack"),
           (_slowly(stack="jnp.stack([jnp.float32({call}) for i in range(size)])"),
            "stack what f gives"),
           (_slowly(one="x if axis is None else x[i]"), "another axis than the first"),
           (_slowly().replace("[size, *_] = [np.shape(x)[axis] for x, axis in zip(args, in_axes) "
                              "if axis is not None]", "size = args[0].shape[in_axes[0] or 0]"),
            "there are 5 calls of f, and yours makes 3"),
           (_slowly(one="x if axis is None else np.take(x, [i], axis)"), "without the axis"),
           (_slowly(one="x if axis is None else np.transpose(x, (axis % 3, *(k for k in "
                        "range(np.ndim(x)) if k != axis)))[i]" ), "raised")],
    afterthought="a loop calls f for each example; `vmap` calls it once",
    hints=["`np.take(x, i, axis)` is the i-th slice along an axis"])


# -- seen_shape ------------------------------------------------------------------------------------

def grade_seen_shape(seen_shape: Callable) -> None:
    for shape in ((5, 7, 2), (3,), (4, 6), (2, 3, 4, 5), (2, 3, 2)):
        for axis in (*range(len(shape)), *range(-len(shape), 0)):
            result, expected = seen_shape(shape, axis), tuple(np.delete(shape, axis).tolist())
            message = (f"for an array of shape {shape} and axis {axis} the function sees "
                    f"{expected}, and yours is {result!r}\n")
            expect(isinstance(result, tuple), message + "a shape is a tuple")
            expect(result != shape, message + "that is the shape of the whole batch")
            expect(result == expected, message + (
                "axes may be counted from the end: -1 is the last" if axis < 0 else
                "the axes before the batch's stay, too" if result == shape[axis + 1:] else
                "one axis goes, the others stay in their order"))


_SEEN = "def seen_shape(shape, axis):\n    return {}"

exercise(
    "seen_shape", chapter=CHAPTER, grade=grade_seen_shape,
    solution="""
def seen_shape(shape, axis):
    axis = axis % len(shape)
    return shape[:axis] + shape[axis + 1:]
""",
    wrong=[(_SEEN.format("shape[:axis] + shape[axis + 1:]"), "-1 is the last"),
           (_SEEN.format("shape[axis + 1:]"), "the axes before"),
           (_SEEN.format("shape[1:]"), "one axis goes"),
           (_SEEN.format("shape"), "the whole batch"),
           (_SEEN.format("[n for k, n in enumerate(shape) if k != axis % len(shape)]"),
            "a shape is a tuple"),
           ("def seen_shape(shape, axis):\n    rest = list(shape)\n    rest.remove(shape[axis])\n"
            "    return tuple(rest)", "in their order"),
           (_SEEN.format("tuple(n for n in shape if n != shape[axis])") + "[::-1]", "in their")])


# -- columns_in_axes -------------------------------------------------------------------------------

def grade_columns_in_axes(answer: Any) -> None:
    expect(isinstance(answer, tuple | list) and len(answer) == 2,
           f"for two arguments a tuple of two entries is expected, and yours is {answer!r}")
    table, row = np.arange(12.0).reshape(3, 4), np.array([5.0, 6.0, 7.0, 8.0])
    try:
        columns, rows = jax.vmap(lambda column, row: (column, row), tuple(answer))(table, row)
    except (TypeError, ValueError, IndexError):
        raise Hint(f"with in_axes={answer} `vmap` refuses, as the axes that you name do not have "
                   "one and the same size: which axis of the table counts its columns?") from None
    inputs = f"table = np.arange(12).reshape(3, 4) and in_axes={answer}"
    agree(inputs, columns[0], table[:, 0], "those are rows: along axis 0 lie the rows",
          what="the first column that f should be given")
    agree(inputs, rows[0], row, "an argument that is the same for all has None",
          what="the row that f should be given")


exercise(
    "columns_in_axes", chapter=CHAPTER, grade=grade_columns_in_axes, solution="(1, None)",
    wrong=[("1", "a tuple of two"), ("(0, None)", "lie the rows"), ("(1, 0)", "has None"),
           ("(0, 1)", "which axis of the table"), ("(None, None)", "counts its columns")])


# -- all_pairs -------------------------------------------------------------------------------------

def grade_all_pairs(all_pairs: Callable) -> None:
    random = np.random.default_rng(1)
    for n, m in ((3, 2), (2, 4), (1, 3), (3, 3)):
        xs, ys = (jnp.array(random.integers(-9, 10, size).astype(np.float32)) for size in (n, m))
        expected: np.ndarray = np.asarray(xs)[:, None] - 2 * np.asarray(ys)
        inputs = f"x - 2 y, xs = {shown(xs)} and ys = {shown(ys)}"
        with instead_of(ValueError, "inconsistent sizes", f"for {inputs} a table of {n} rows and "
                        f"{m} columns is expected, and yours is an error: one `vmap` goes through "
                        "both lists at once; let each of two go through one"):
            result = all_pairs(lambda x, y: x - 2 * y)(xs, ys)
        agree(inputs, result, expected,
              (near(result, expected.T), "a column for each x: which `vmap` is the outer one?"),
              (np.shape(result) != (n, m), f"{n} x and {m} y make a table of shape {(n, m)}; each "
               "of the two `vmap` maps over one argument, and leaves the other as it is"),
              "f takes x first, then y")
    points, centres = (jnp.array(random.normal(size=(n, 2)), jnp.float32) for n in (3, 4))
    expected = np.sum((np.asarray(points)[:, None] - np.asarray(centres)) ** 2, 2)
    agree("f(x, y) = sum((x - y)²) of 3 points and 4 centres in the plane",
          all_pairs(lambda x, y: jnp.sum((x - y) ** 2))(points, centres), expected,
          "f is called with one x and one y, and these may be vectors: `vmap` makes the pairs")
    agree("f(x, y) = x - y of 3 points and 4 centres in the plane",
          all_pairs(lambda x, y: x - y)(points, centres),
          np.asarray(points)[:, None] - np.asarray(centres), "f may give a vector, which lies "
          "along the last axis of the table: the rows and columns are the first two")
    program = jax.make_jaxpr(all_pairs(lambda x, y: x - 2 * y))(jnp.ones(12), jnp.ones(10))
    xs, ys = jnp.ones((2, 3)), jnp.arange(8.0).reshape(4, 2)
    with instead_of(Exception, "roadcast", "an x and a y may have different shapes, such as (3,) "
                    "and (2,): let each `vmap` map over one of the two"):
        table = all_pairs(lambda x, y: jnp.sum(x) * y)(xs, ys)
    agree("f(x, y) = sum(x) * y, for 2 x of 3 ones and 4 y of 2 numbers", table,
          np.broadcast_to(3 * np.asarray(ys), (2, 4, 2)))
    xs, ys = jnp.arange(3.0), jnp.arange(2.0)
    table = all_pairs(jnp.add)
    all_pairs(jnp.subtract)
    agree("x + y, if another function got its table in between,", table(xs, ys), xs[:, None] + ys,
          "each function has a table of its own")
    count = len([*equations(program)])
    expect(count < 40, "the tables are right; but for 12 x and 10 y your program has "
           f"{count} equations, since f is called for each pair. Use `vmap` twice")


exercise(
    "all_pairs", chapter=CHAPTER, grade=grade_all_pairs,
    solution="""
def all_pairs(f):
    of_one_x = jax.vmap(f, in_axes=(None, 0))
    return jax.vmap(of_one_x, in_axes=(0, None))
""",
    wrong=[("def all_pairs(f):\n    def table(xs, ys):\n"
            "        ys = jnp.broadcast_to(ys, (len(xs), *ys.shape))\n"
            "        xs = jnp.broadcast_to(xs[:, None], ys.shape)\n"
            "        return jax.vmap(jax.vmap(f))(xs, ys)\n    return table",
            "may have different shapes"),
           ("def all_pairs(f):\n    return jax.vmap(jax.vmap(f, (0, None)), (None, 0))",
            "which `vmap` is the outer one"),
           ("def all_pairs(f):\n    return jax.vmap(f)", "both lists at once"),
           ("def all_pairs(f):\n    return lambda xs, ys: jnp.stack("
            "[jnp.stack([f(x, y) for y in ys]) for x in xs])", "Use `vmap` twice"),
           ("def all_pairs(f):\n    return jax.jit(lambda xs, ys: jnp.stack("
            "[jnp.stack([f(x, y) for y in ys]) for x in xs]))", "Use `vmap` twice"),
           ("def all_pairs(f):\n    return lambda xs, ys: f(xs[:, None], ys)", "may be vectors"),
           ("def all_pairs(f):\n    return lambda xs, ys: jax.vmap(jax.vmap(f, (0, None)), "
            "(None, 0))(xs, ys).T", "f may give a vector"),
           ("def all_pairs(f):\n    return lambda xs, ys: jax.vmap(f, (0, None))(xs, ys[0])",
            "make a table of shape (3, 2)"),
           ("def all_pairs(f):\n    return jax.vmap(jax.vmap(lambda x, y: f(y, x), (None, 0)), "
            "(0, None))", "x first, then y")],
    hints=["`jax.vmap(f, in_axes=(None, 0))` is a row: one x, all y"])


# -- diagonal_sums ---------------------------------------------------------------------------------

def grade_diagonal_sums(diagonal_sums: Callable) -> None:
    random = np.random.default_rng(2)
    for batch, n in ((2, 2), (3, 2), (2, 3), (1, 4), (4, 1)):
        xs = random.integers(-9, 10, (batch, n, n)).astype(np.float32)
        inputs = f"{batch} matrices, {shown(xs)},"
        with instead_of(TypeError, "shapes", f"for {inputs} yours multiplies shapes that do not "
                        "fit: the matrices may be of any size; how large is this one?"):
            result = diagonal_sums(jnp.array(xs))
        every = xs.sum((1, 2))
        agree(inputs, result, xs.trace(axis1=1, axis2=2),
              (near(result, every), "that is the sum of all elements"),
              (np.shape(result) == (), "one number for each matrix: write the function of one "
               "matrix, and vectorise that"),
              "the diagonal of a matrix has the same index twice")


exercise(
    "diagonal_sums", chapter=CHAPTER, grade=grade_diagonal_sums,
    solution="""
def diagonal_sums(xs):
    return jax.vmap(lambda x: jnp.sum(x * jnp.eye(len(x))))(xs)
""",
    wrong=[("def diagonal_sums(xs):\n    return jnp.sum(xs * jnp.eye(xs.shape[-1]))",
            "one number for each"),
           ("def diagonal_sums(xs):\n    return jax.vmap(jnp.sum)(xs)", "all elements"),
           ("def diagonal_sums(xs):\n    return jax.vmap(lambda x: jnp.sum(x[::-1] * "
            "jnp.eye(len(x))))(xs)", "index twice"),
           ("def diagonal_sums(xs):\n    return jax.vmap(lambda x: jnp.sum(jnp.max(x * "
            "jnp.eye(len(x)), axis=0)))(xs)", "index twice"),
           ("def diagonal_sums(xs):\n    return jax.vmap(lambda x: jnp.sum(x * jnp.eye(2)))(xs)",
            "of any size")])


# -- max_p -----------------------------------------------------------------------------------------

def grade_max_p(max_p: Any) -> None:
    expect(callable(getattr(max_p, "impl", None)), "`mini.max_p` is a Primitive with a rule `impl`")
    x = np.random.default_rng(3).permutation(12).reshape(2, 3, 2).astype(float) - 20
    for axes in ((1,), (0, 2), (0, 1, 2)):
        inputs, result = f"impl(x, axes={axes}) and x = {shown(x)}", max_p.impl(x, axes=axes)
        expect(isinstance(result, list | tuple), f"for {inputs} [{shown(x.max(axes))}] is "
               f"expected, and yours is {shown(result)}: a rule gives a list, here of one array")
        agree(inputs, result[0], x.max(axes), "the largest along those axes")
    expect(callable(getattr(max_p, "batch", None)),
           "now the rule `batch`, as `batched` in `linear` is one")
    mini = _library()
    for axis in (0, 1, 2):
        inputs = f"mini.vmap(lambda row: max_p(row, axes=(0,)), in_axes={axis}) of x = {shown(x)}"
        with instead_of(TypeError, "not iterable", f"for {inputs}, `batch` does not give two "
                        "lists: the results, and where the axis of the batch is in each"):
            result = mini.vmap(lambda row: max_p(row, axes=(0,)), in_axes=axis)(x)
        agree(inputs, result, np.moveaxis(x, axis, 0).max(1), (
            axis > 0, "where is the axis of the batch when the maximum is taken?"),
            "with one more axis in front, axis k of the example is axis k + 1 of the batch")
    inputs = f"mini.vmap(lambda table: max_p(table, axes=(1, 0))) of x = {shown(x)}"
    agree(inputs, mini.vmap(lambda table: max_p(table, axes=(1, 0)))(x), x.max((1, 2)),
          "each of the axes is one further back")
    with instead_of(TypeError, "ufunc", "right for one `vmap`. In a second one, the values are "
                    "tracers of the outer one, which NumPy does not take: bind `max_p`"), \
            instead_of(TypeError, "Tracer", "right for one `vmap`. In a second one, the values are "
                       "tracers of the outer one, which NumPy does not take: bind `max_p`"):
        result = mini.vmap(mini.vmap(lambda row: max_p(row, axes=(0,))))(x)
    agree(f"vmap of vmap of x = {shown(x)}", result, x.max(2))
    expect(getattr(max_p, "jvp", None) is None, "a maximum is not linear, and so `linear` gives it "
           "a wrong rule `jvp`: make a `Primitive` with the rules `impl` and `batch` alone")


_GIVEN_MINI = """
from minijax.notebook.library import library
library.begin("04")
from mini import *
"""
_MAX = """
def max_batch(axis, values, dims, axes):
    x = {x}
    return [max_p(x, axes={axes})], {dims}

max_p = Primitive("max", impl=lambda x, axes: {impl}, batch={batch})
"""


def _max_p(axes: str = "tuple(k + 1 for k in axes)", impl: str = "[np.max(x, axis=axes)]",
           batch: str = "max_batch", dims: str = "[0]",
           x: str = "bdim_at_front(values[0], dims[0], axis.size)") -> str:
    return _MAX.format(axes=axes, impl=impl, batch=batch, dims=dims, x=x)


exercise(
    "max_p", chapter=CHAPTER, grade=grade_max_p, given=_GIVEN_MINI, solution=_max_p(),
    wrong=[(_max_p(axes="(axes[0] + 1, *axes[1:])"), "each of the axes"),
           (_max_p().replace("max_p(x, axes=tuple(k + 1 for k in axes))",
                             "np.max(x, axis=tuple(k + 1 for k in axes))"), "tracers of the outer"),
           (_max_p(axes="axes"), "is axis k + 1"), (_max_p(impl="np.max(x, axis=axes)"), "a list"),
           (_max_p(impl="[np.min(x, axis=axes)]"), "the largest along"),
           (_max_p(impl="[np.max(x, axis=axes, initial=0)]"), "the largest along"),
           (_max_p(x="values[0]"), "where is the axis"),
           (_max_p(dims="0"), "does not give two lists"), (_max_p(batch="None"), "now the rule"),
           ('max_p = linear("max", lambda x, axes: np.max(x, axis=axes), '
            'lambda n, axes: {"axes": shifted(axes)[1:]})', "is not linear")],
    afterthought="its derivative is a question of where the largest is; the course comes to that")


# -- per_example -----------------------------------------------------------------------------------

def grade_per_example(per_example: Callable) -> None:
    random = np.random.default_rng(4)
    for n, features in ((3, 2), (1, 3), (2, 2)):
        w = jnp.array(random.integers(-2, 3, features).astype(np.float32))
        xs = jnp.array(random.integers(-2, 3, (n, features)).astype(np.float32))
        inputs = f"loss(w, x) = sum(w * x)**2, w = {shown(w)} and xs = {shown(xs)}"
        expected = 2 * np.sum(np.asarray(w * xs), 1, keepdims=True) * np.asarray(xs)

        def loss(w: Any, x: Any) -> Any:
            return jnp.sum(w * x) ** 2

        with instead_of(TypeError, "scalar", f"for {inputs} the answer is {shown(expected)}, and "
                        "yours is an error: a gradient is of one number, and `vmap` of the loss "
                        "gives one for each example; which of the two comes first?"):
            result = per_example(loss)(w, xs)
        expect(not isinstance(result, list | tuple), f"for {inputs} one array is expected, and "
               f"yours is a {type(result).__name__}: stack the gradients")
        agree(inputs, result, expected,
              (np.shape(result) == (features,), "one gradient, of all examples together: take the "
               "gradient first, and vectorise that"),
              (n > 1 and near(result, np.broadcast_to(expected.mean(0), expected.shape))
               or near(result, np.broadcast_to(expected.sum(0), expected.shape)), "each row is the "
               "gradient of all examples together: take the gradient first, and vectorise that"),
              (np.shape(result) == (n,), "those are the losses: where is the gradient?"),
              (near(result, expected.T), "a row for each example: the gradients are stacked along "
               "another axis than the first"),
              (near(result, 2 * np.sum(np.asarray(w * xs), 1, keepdims=True) * np.asarray(w)),
               "the gradient with respect to w, the first argument"))
    result = per_example(lambda w, x: jnp.sum(w * x))(jnp.ones(2), -jnp.ones((1, 2)))
    agree("loss(w, x) = sum(w * x), w = [1, 1] and xs = [[-1, -1]]", result, [[-1.0, -1.0]])
    w, xs = (jnp.array(random.integers(-2, 3, s).astype(np.float32)) for s in ((2, 3), (4, 3)))
    gradients = per_example(lambda w, x: jnp.sum(w @ x))
    per_example(lambda w, x: jnp.sum(w))
    agree(f"loss(w, x) = sum(w @ x), a matrix w and xs = {shown(xs)}", gradients(w, xs),
          np.repeat(np.asarray(xs)[:, None], 2, 1), "w and x may have different shapes, and each "
          "loss has gradients of its own")


exercise(
    "per_example", chapter=CHAPTER, grade=grade_per_example,
    solution="""
def per_example(loss):
    return jax.vmap(jax.grad(loss), in_axes=(None, 0))
""",
    wrong=[("def per_example(loss):\n"
            "    return jax.vmap(jax.grad(lambda w, x: jnp.abs(loss(w, x))), in_axes=(None, 0))",
            "the answer is [[-1, -1]]"),
           ("def per_example(loss):\n    return jax.grad(lambda w, xs: "
            "jnp.mean(jax.vmap(loss, (None, 0))(w, xs)))", "take the gradient first"),
           ("def per_example(loss):\n    return jax.grad(jax.vmap(loss, in_axes=(None, 0)))",
            "which of the two"),
           ("def per_example(loss):\n    return jax.vmap(loss, in_axes=(None, 0))",
            "where is the gradient"),
           ("def per_example(loss):\n    return jax.vmap(jax.grad(loss), (None, 0), out_axes=-1)",
            "another axis than the first"),
           ("def per_example(loss):\n    return jax.vmap(jax.grad(loss, argnums=1), (None, 0))",
            "with respect to w"),
           ("def per_example(loss):\n    return lambda w, xs: [jax.grad(loss)(w, x) for x in xs]",
            "stack the gradients"),
           ("def per_example(loss):\n    return lambda w, xs: jnp.broadcast_to(jax.grad(lambda w: "
            "jnp.mean(jax.vmap(loss, (None, 0))(w, xs)))(w), (len(xs), *w.shape))",
            "each row is the gradient of all")],
    right=["def per_example(loss):\n    return lambda w, xs: jax.jacrev(lambda w: jax.vmap(loss, "
           "(None, 0))(w, xs))(w)"])


# -- three_shapes ----------------------------------------------------------------------------------

def grade_three_shapes(answer: Any) -> None:
    inputs = "x of shape (2, 3, 4), in_axes=2 outside and in_axes=0 inside,"
    expect(isinstance(answer, list | tuple) and len(answer) == 3
           and all(isinstance(shape, tuple) for shape in answer),
           f"three shapes are expected, each a tuple, and yours is {answer!r}")
    inside, between, numpys = answer
    message = f"for {inputs} yours is {list(answer)}\n"
    expect(inside != (2, 3, 4) or numpys == (2, 3, 4), message + "begin with what f sees: "
           "two transformations have each taken one axis away")
    expect(between not in ((3, 4), (2, 4)), message + "the outer `vmap` takes its axis first, the "
           "last of three; what is left is the batch of the inner one")
    expect(between == (2, 3), message + "the second: which axis did the outer `vmap` take?")
    expect(inside == (3,), message + "the first: the inner `vmap` has taken axis 0 of (2, 3)")
    expect(sorted(numpys) == [2, 3, 4], message + "the third: NumPy is given every number of x")
    expect(numpys == (2, 3, 4), message + "the third: the rule of `sin` need not move any axis")


exercise(
    "three_shapes", chapter=CHAPTER, grade=grade_three_shapes,
    solution="[(3,), (2, 3), (2, 3, 4)]",
    wrong=[("[(4,), (3, 4), (2, 3, 4)]", "takes its axis first"),
           ("[(2,), (2, 3), (2, 3, 4)]", "has taken axis 0"),
           ("[(3,), (2, 3), (4, 2, 3)]", "need not move"),
           ("[(2, 3, 4), (2, 3), (3,)]", "what f sees"),
           ("[(3,), (2, 3), (2, 3)]", "every number of x"), ("(3,)", "three shapes")],
    afterthought="with `mini` the third is (4, 2, 3): it moves each axis to the front")


# -- hypot_p ---------------------------------------------------------------------------------------

def grade_hypot_p(hypot_p: Any) -> None:
    expect(callable(getattr(hypot_p, "impl", None)),
           "`mini.hypot_p` is a Primitive with a rule `impl`")
    expect(callable(getattr(hypot_p, "batch", None)),
           "now the rule `batch`, as in `with_slopes`, but without moving what lies well")
    mini = _library()
    random, listened = np.random.default_rng(5), mini.transpose_p.impl
    x, y = random.integers(1, 9, (2, 2, 2)).astype(float)
    for dims in ((1, 1), (0, 0), (0, 1), (None, 0), (1, None)):
        moved: list[Any] = []

        def listening(*args: Any, moved: Any = moved, **params: Any) -> Any:
            moved.append(params)
            return listened(*args, **params)

        inputs = f"batch(Axis(2), (x, y), {dims}) of two arrays of shape (2, 2)"
        one, two = (y[0] if d is None else y if k else x for k, d in enumerate(dims))
        mini.transpose_p.impl = listening
        try:
            result = hypot_p.batch(mini.Axis(2), (one, two), dims)
        finally:
            mini.transpose_p.impl = listened
        expect(isinstance(result, tuple | list) and len(result) == 2
               and all(isinstance(part, list | tuple) and len(part) == 1 for part in result),
               f"for {inputs} two lists of one entry are expected, the result and where its axis "
               f"is; yours is {' '.join(repr(result).split())}")
        [out], [dim] = result
        expect(not (moved and dims[0] == dims[1]), f"for {inputs} no axis moves, and yours calls "
               f"`transpose` {len(moved)} times: both have their axis at the same place")
        expect(isinstance(dim, int), f"for {inputs} the result is a batch, and yours says that its "
               f"axis is at {dim!r}: one of the two has no axis, and is the same for all")
        every = [np.hypot(*(z if d is None else np.take(z, i, d)
                            for z, d in zip((one, two), dims, strict=True))) for i in range(2)]
        agree(inputs, np.moveaxis(out, dim, 0), np.stack(every), (
            dims[0] != dims[1] and None not in dims,
            "the axes are at different places: they must be brought to the same one first"),
            (None in dims, "what is the same for all must be repeated for each example"),
            "say of the result where its axis is", what="the result, its axis brought to the "
                                                        "front,")
    with instead_of(TypeError, "ufunc", "right for one `vmap`. In a second one, the values are "
                    "tracers of the outer one, which NumPy does not take: bind `hypot_p`"):
        result = mini.vmap(mini.vmap(lambda x, y: hypot_p(x, y)))(x, y)
    agree("vmap of vmap", result, np.hypot(x, y))
    rows, row = np.array([[3.0, 5.0], [6.0, 8.0], [9.0, 7.0]]), np.array([4.0, 12.0])
    inputs = f"the rows {shown(rows)}, and {shown(row)} for all of them,"
    with wanting(inputs, np.hypot(rows, row), "there are 3 examples: `axis.size` says how many"):
        result = mini.vmap(lambda x, y: hypot_p(x, y), in_axes=(0, None))(rows, row)
    agree(inputs, result, np.hypot(rows, row))
    agree("two numbers of 3e200", hypot_p(3e200, 3e200) / 1e200, np.hypot(3.0, 3.0), "the squares "
          "of large numbers have no room: let `np.hypot` compute it", what="the answer, in 1e200,")


_HYPOT = """
def hypot_batch(axis, values, dims):
    if {condition}:
        return [hypot_p(*values)], {stays}
    fronts = [bdim_at_front(x, d, axis.size) for x, d in zip(values, dims)]
    return [hypot_p(*fronts)], [0]

hypot_p = Primitive("hypot", impl=lambda x, y: [np.hypot(x, y)], batch=hypot_batch)
"""


def _hypot(condition: str = "dims[0] == dims[1]", stays: str = "[dims[0]]") -> str:
    return _HYPOT.format(condition=condition, stays=stays)


exercise(
    "hypot_p", chapter=CHAPTER, grade=grade_hypot_p, given=_GIVEN_MINI, solution=_hypot(),
    wrong=[("def hypot_batch(axis, values, dims):\n    if dims[0] == dims[1]:\n"
            "        return [hypot_p(*values)], [dims[0]]\n"
            "    return [hypot_p(*[bdim_at_front(x, d, axis.size) for x, d in "
            "zip(values, dims)])], [0]\n"
            "hypot_p = Primitive(\"hypot\", impl=lambda x, y: [np.sqrt(x * x + y * y)], "
            "batch=hypot_batch)", "let `np.hypot` compute it"),
           (_hypot(condition="False"), "no axis moves"),
           (_hypot().replace("axis.size", "2"), "says how many"),
           (_hypot().replace("hypot_p(*", "np.hypot(*"), "tracers of the outer one"),
           (_hypot(condition="True"), "at different places"),
           (_hypot(condition="dims[0] == dims[1] or None in dims"), "has no axis"),
           (_hypot(condition="dims[0] == dims[1] or None in dims",
                   stays="[dims[0] if dims[0] is not None else dims[1]]"), "must be repeated"),
           (_hypot(stays="[0]"), "where its axis is"), (_hypot(stays="dims[0]"), "two lists")],
    afterthought="with jvp, too, it would be one of `mini`'s elementwise operations")
