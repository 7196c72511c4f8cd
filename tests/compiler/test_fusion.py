"""Random programs, of products, reductions, shapes and control flow, keep their values."""

import random
import re

import numpy as np
import pytest


import minijax
from minijax import disable_jit, lax
from minijax.core import tracing, ShapedArray, as_value
from minijax.core.jaxpr import eval_jaxpr
from minijax.compiler.probe import Pattern, compose
from minijax.compiler.lowered import Lowered
from minijax.compiler.memory import layout
from tests.running_text import run_text

SHAPES = [(), (1,), (5,), (4, 5), (5, 4), (1, 5), (4, 1), (3, 4, 5), (20,), (2, 2, 5), (4, 4),
          (1, 1), (0, 5)]
UNARY = [lax.tanh, lax.exp, lax.sin, lax.neg, lax.abs, lambda x: lax.mul(x, x),
         lambda x: lax.add(x, 1.5), lambda x: lax.mul(lax.tanh(x), 2.0)]


class Skip(Exception):
    """The draw does not fit the values at hand."""


def one(draw, items):
    items = list(items)
    if not items:
        raise Skip
    return draw.choice(items)


def grow(draw, values, steps, depth=0):
    """The values and what `steps` random operations make of them."""
    values = list(values)
    for _ in range(steps):
        try:
            made = one(draw, OPERATIONS)(draw, values, depth)
        except Skip:
            continue
        values += made if isinstance(made, list) else [made]
    return values


def unary(draw, values, depth):
    return draw.choice(UNARY)(draw.choice(values))


def binary(draw, values, depth):
    x = draw.choice(values)
    y = one(draw, (y for y in values if y.shape == x.shape))
    return draw.choice([lax.add, lax.mul, lax.sub, lax.max])(x, y)


def reduction(draw, values, depth):
    x = one(draw, (x for x in values if x.ndim))
    axes = tuple(a for a in range(x.ndim) if draw.random() < 0.5) or (x.ndim - 1,)
    y = draw.choice([lax.reduce_sum_p, lax.reduce_max_p]).bind(x, axes=axes)
    kept = tuple(a for a in range(x.ndim) if a not in axes)
    return [y, lax.sub(lax.tanh(x), lax.broadcast_in_dim(y, x.shape, kept))]


def rearranged(draw, values, depth):
    x = draw.choice(values)
    order = draw.sample(range(x.ndim), x.ndim)
    same_size = [s for s in SHAPES if np.prod(s) == x.size]
    larger = [s for s in SHAPES if s[len(s) - x.ndim:] == x.shape and len(s) >= x.ndim]
    kind = draw.randrange(4)
    if kind == 0:
        return lax.transpose(x, order)
    if kind == 1:
        return lax.reshape(x, one(draw, same_size))
    if kind == 2 or not x.ndim:
        shape = one(draw, larger)
        return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))
    return lax.rev(x, (draw.randrange(x.ndim),))


def shifted(draw, values, depth):
    x = one(draw, (x for x in values if x.size and x.ndim))
    axis = draw.randrange(x.ndim)
    twice = lax.concatenate([x, x], axis)
    return lax.slice_in_dim(twice, 1, 1 + x.shape[axis], 1, axis)


def opaque(draw, values, depth):
    if draw.random() < 0.5:
        x = one(draw, (x for x in values if x.ndim))
        return lax.cumsum(x, axis=draw.randrange(x.ndim))
    x = one(draw, (x for x in values if x.ndim == 2))
    return lax.dot(x, one(draw, (y for y in values if y.ndim == 2 and y.shape[0] == x.shape[1])))


def inner(seed, carry, others, depth):
    """A loop's body: new values for `carry`, and all that was made on the way."""
    draw = random.Random(seed)
    values = grow(draw, [*carry, *others], draw.randint(1, 6), depth + 1)
    new = [lax.tanh(draw.choice([v for v in values if v.shape == c.shape])) for c in carry]
    if draw.random() < 0.4:  # let values change places
        new = [next(c for c in reversed(carry) if c.shape == v.shape) if draw.random() < 0.6 else v
               for v in new]
    return new, [draw.choice(values) for _ in range(draw.randint(0, 2))]


def control(draw, values, depth):
    if depth >= 2:
        raise Skip
    carry = draw.sample(values, min(len(values), draw.randint(1, 3)))
    seed, turns, outside = draw.random(), draw.randint(0, 4), values[:2]
    kind = draw.randrange(3)
    if kind == 0:
        last, rows = lax.scan(lambda c, x: inner(seed, c, [*outside, *([] if x is None else [x])],
                                                 depth),
                              carry,
                              None if turns < 2 else one(draw, (v for v in values if v.ndim)),
                              length=None if turns >= 2 else turns, reverse=draw.random() < 0.3)
        return [*last, *rows]
    if kind == 1:
        positive = lax.gt(one(draw, (v for v in values if not v.ndim)), 0.0)
        return list(lax.cond(positive, lambda *c: inner(seed, c, [], depth)[0],
                             lambda *c: inner(seed + 1, c, [], depth)[0], *carry))
    return list(lax.while_loop(
        lambda c: lax.lt(c[0], turns),
        lambda c: [lax.add(c[0], 1), *inner(seed, c[1:], outside, depth)[0]],
        [np.int32(0), *carry]))[1:]


OPERATIONS = [unary] * 6 + [binary] * 5 + [reduction] * 3 + [rearranged] * 4 + [
    shifted, opaque, opaque, control, control]


def random_program(seed, steps):
    """A function of a few arrays, and the arrays."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    shapes = [*draw.sample(SHAPES, 3), (4, 5), ()]
    arrays = [numbers.standard_normal(shape).astype(np.float32) for shape in shapes]
    state = draw.getstate()

    def program(*values):
        draw.setstate(state)
        made = grow(draw, values, steps)
        return [lax.tanh(draw.choice(made)) for _ in range(draw.randint(1, 5))]

    return program, arrays


def lowered(seed, steps):
    program, arrays = random_program(seed, steps)
    avals = [ShapedArray(x.shape, x.dtype) for x in arrays]
    return Lowered(tracing.stage(program, avals), "program"), arrays


@pytest.mark.parametrize("seed", range(15))
def test_text_meaning_and_compiled_code_agree(seed, monkeypatch):
    monkeypatch.setenv("MINIJAX_CACHE_DIR", "")
    program, arrays = lowered(seed, 18)
    closed = program.jaxpr
    with disable_jit():
        expected = eval_jaxpr(closed.jaxpr, closed.consts, *map(as_value, arrays))
    for outs in (program.compile()(*arrays), run_text(program.kernel, arrays)):
        for x, y in zip(map(np.asarray, expected), outs, strict=True):
            assert x.dtype == y.dtype and x.shape == y.shape
            np.testing.assert_allclose(y, x, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("seed", range(100, 110))
def test_the_workspace_is_laid_out_the_same_each_time_and_holds_every_temp(seed):
    kernel = lowered(seed, 20)[0].kernel
    offsets, size = layout(kernel.temps, kernel.body)
    assert offsets == dict(kernel.offsets) and size == kernel.workspace_size
    assert all(offset % 64 == 0 and offset + temp.nbytes <= size
               for temp, offset in offsets.items())


ROWS = {
    "those after the first": lambda x: x[1:],
    "of another shape": lambda x: x.reshape(12, 2),
    "both": lambda x: x[2:].reshape(8, 2),
    "backwards": lambda x: x[::-1],
}


@pytest.mark.parametrize("name", ROWS)
def test_a_scan_reads_rows_where_they_lie(name):
    def f(x):
        return lax.scan(lambda c, row: (c * 2 + row, row), 0 * ROWS[name](x)[0], ROWS[name](x))[0]

    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    rows, want = np.asarray(ROWS[name](x)), 0
    for row in rows:
        want = want * 2 + row
    text = minijax.jit(f).lower(x).as_text("source")
    assert f"empty({rows.shape}" not in text
    np.testing.assert_array_equal(minijax.jit(f)(x), want)


def test_a_scan_copies_columns_and_what_is_computed():
    def f(x, w):
        return lax.scan(lambda c, row: (c + row.sum(), None), 0., (x.T, w * 3 + 1)[0])[0], (
            lax.scan(lambda c, row: (c + row.sum(), None), 0., w * 3 + 1)[0])

    x = np.ones((6, 4), np.float32)
    text = minijax.jit(f).lower(x, x[:5]).as_text("source")
    assert "empty((4, 6)" in text and "empty((5, 4)" in text


def test_a_state_may_begin_with_what_the_rows_are_made_of():
    """It takes over that memory, which the rows are therefore copied from."""
    def f(x):
        x = x + 1
        return lax.scan(lambda c, row: (c[::-1] * 2 + row.sum(), row), x, x[1:].reshape(3, 1))

    x = np.arange(4, dtype=np.float32)
    with minijax.disable_jit():
        want = f(x)
    for ours, theirs in zip(minijax.jit(f)(x), want, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("f", [
    lambda x: x.sum((0, 1)), lambda x: x.max(0), lambda x: minijax.nn.softmax(x, 0),
    lambda x: x.transpose(1, 0, 2).sum(0), lambda x: (2 * x).mean((0, 1))],
    ids=["sum", "max", "softmax", "transposed", "mean"])
def test_an_array_that_was_reshaped_is_walked_like_one_that_was_not(f):
    def loops(f, shape):
        text = minijax.jit(f).lower(np.ones(shape, np.float32)).as_text("source")
        return re.findall(r"( *)for .* in range\((\w+)\)", text)

    assert loops(lambda x: f(x.reshape(40, 30, 50)), (200, 300)) == loops(
        lambda x: f(x), (40, 30, 50))


def test_an_index_that_is_computed_from_another_number_is_another_index():
    computed = Pattern((("other", "i"),), (5,))
    before, last = (compose(Pattern((("at", k),), (9,)), computed, (4,), (5,), "reader")
                    for k in (-2, -1))
    assert before != last and hash(-2) == hash(-1)
