"""Index-set splitting: the same numbers, without conditions that are constant in a part of a loop.
"""

from dataclasses import replace

import numpy as np
import pytest

import minijax
from minijax.core import tracing, ShapedArray
from minijax.compiler.lowered import Lowered
from minijax import numpy as jnp
from minijax.compiler.loops import INT64, Buffer, Constant, For, If, Kernel, Scalar, walk
from minijax.compiler.builder import Builder
from minijax.compiler.index_set_splitting import split_loops
from tests.running_text import run_text

X, Y = np.arange(1200, dtype=np.float32), np.arange(6600, dtype=np.float32).reshape(11, 600)
PROGRAMS = {
    "joined": (lambda x: jnp.concatenate([x, x[::-1], x[::3]]), X),
    "joined columns": (lambda y: jnp.concatenate([y, y[:, ::-1]], 1), Y),
    "joined rows": (lambda y: jnp.concatenate([y[1:], y, y[:3]]) * 2, Y),
    "rolled": (lambda x: jnp.roll(x, 7), X),
    "short rows joined": (lambda y: jnp.concatenate([y[:, :9], y[:, :1]], 1), Y.reshape(-1, 11)),
    "short rows padded": (lambda y: jnp.pad(y, ((1, 1), (1, 1))), Y.reshape(-1, 3)),
    "padded": (lambda y: jnp.pad(y, ((3, 4), (20, 10))), Y),
    "added to a part": (lambda x: x + jnp.pad(x[:600], (200, 400)), X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_segments_compute_what_the_loop_did(name):
    f, x = PROGRAMS[name]
    program = tracing.stage(lambda x: [f(x)], [ShapedArray(x.shape, x.dtype)])
    kernel = Lowered(program, "f").kernel
    cut = replace(kernel, body=split_loops(kernel.body))
    [expected], [found] = run_text(kernel, [x]), run_text(cut, [x])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(minijax.jit(f)(x), expected)
    assert len([*walk(cut.body)]) > len([*walk(kernel.body)])
    assert not any(isinstance(each, If) for each in walk(cut.body))


@pytest.mark.parametrize("op", ["lt", "le", "gt", "ge", "eq", "ne"])
@pytest.mark.parametrize("place", [
    lambda b, i: i, lambda b, i: b.sub(i, 300), lambda b, i: b.sub(b.index(800), i),
    lambda b, i: b.add(b.sub(i, b.index(3)), i)], ids=["itself", "later", "backwards", "twice"])
@pytest.mark.parametrize("limit", [-900, 0, 1, 255, 256, 700, 5000])
def test_a_test_of_a_place_is_cut_where_it_changes(op, place, limit):
    b, out = Builder(), Buffer("out", np.dtype(np.int32), (999,), "output")
    with b.loop(999, vectorize="parallel") as i:
        test = getattr(b, op)(place(b, b.index(i)), limit)
        one, zero = (b.const(n, np.int32) for n in (1, 0))
        b.store(out, (i,), b.choose(test, lambda: one, lambda: zero))
    body = tuple(b.scopes[0].statements)
    whole, cut = (Kernel("k", (), (out,), (), (), 0, {}, each)
                  for each in (body, split_loops(body)))
    np.testing.assert_array_equal(run_text(cut, []), run_text(whole, []))
    loops = [each for each in walk(cut.body) if isinstance(each, For)]
    if len(loops) > 1:
        assert not any(isinstance(each, If) for each in walk(cut.body))
        assert [int(each.stop.value) for each in loops[:-1]] == [
            int(each.start.value) for each in loops[1:]]


def test_a_loop_that_reduces_or_asks_for_what_only_runs_know_stays_whole():
    i, n = Scalar("i", INT64), Scalar("n", INT64)
    ends = [Constant(np.int64(k), INT64) for k in (0, 999)]
    for loop in (For(i, *ends, (), "", "reduce"), For(i, ends[0], n, (), "", "parallel")):
        assert [vars(each) for each in split_loops([loop])] == [vars(loop)]
