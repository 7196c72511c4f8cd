"""From a jaxpr to loops: what is stored, what merges, and that the values stay right."""

import functools

import numpy as np
import pytest

from minijax import disable_jit, jit, lax, numpy as jnp, random
from minijax.core import Primitive, ShapedArray, as_value, tracing
from minijax.core.jaxpr import eval_jaxpr
from minijax.compiler.builder import block_size
from minijax.compiler.loops import Assign, Call, For, If, Kernel, Let, Load, Store, While
from minijax.compiler.lowered import Lowered
from minijax.compiler.operands import ProgramBuilder
from minijax.compiler.outlining import shared_loops
from tests.running_text import run_text

F32 = np.float32


@pytest.fixture(autouse=True)
def no_cache_on_disk(monkeypatch):
    monkeypatch.setenv("MINIJAX_CACHE_DIR", "")


def lowered(f, *arrays):
    avals = [ShapedArray(np.shape(x), np.asarray(x).dtype) for x in arrays]
    return Lowered(tracing.stage(lambda *xs: list(f(*xs)), avals), "f")


def check(f, *arrays, tolerance=1e-5):
    """The three agree: text as plain Python, NumPy's meaning, compiled code. Gives the kernel.

    Plain Python is slow: of many numbers the text is not run.
    """
    arrays = [np.asarray(x) for x in arrays]
    program = lowered(f, *arrays)
    with disable_jit():
        closed = program.jaxpr
        expected = eval_jaxpr(closed.jaxpr, closed.consts, *map(as_value, arrays))
    compiled = program.compile()(*arrays)
    few = sum(x.size for x in arrays) < 10_000
    text = run_text(program.kernel, arrays) if few else compiled
    for x, y, z in zip(map(np.asarray, expected), compiled, text, strict=True):
        assert x.dtype == y.dtype == z.dtype and x.shape == y.shape == z.shape
        np.testing.assert_allclose(y, x, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(z, x, rtol=tolerance, atol=tolerance)
    return program.kernel


def statements(body, kind):
    """All statements of a kind, at any depth."""
    for statement in body:
        if isinstance(statement, kind):
            yield statement
        for part in ("body", "condition", "then", "orelse"):
            yield from statements(getattr(statement, part, ()), kind)


def count(kernel, kind):
    return len(list(statements(kernel.body, kind)))


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


def rows(x, like):
    return lax.broadcast_in_dim(x, like.shape, (0,))


def softmax(x):
    e = lax.exp(lax.sub(x, rows(lax.reduce_max(x, (1,)), x)))
    return [lax.div(e, rows(lax.reduce_sum_p.bind(e, axes=(1,)), x))]


def layer_norm(x):
    n = F32(x.shape[1])
    mean = lax.div(lax.reduce_sum_p.bind(x, axes=(1,)), n)
    centred = lax.sub(x, rows(mean, x))
    spread = lax.div(lax.reduce_sum_p.bind(lax.mul(centred, centred), axes=(1,)), n)
    return [lax.mul(centred, rows(lax.rsqrt(lax.add(spread, F32(1e-5))), x))]


# -- what merges


def test_an_elementwise_chain_is_one_flat_loop_without_temps():
    kernel = check(lambda x, y: [lax.tanh(lax.add(lax.mul(x, y), 1.0))],
                   numbers(4, 6), numbers(4, 6))
    [loop] = kernel.body
    assert loop.stop.value == 24 and loop.vectorize == "parallel" and not kernel.temps


def test_outputs_that_read_the_same_share_a_loop_and_their_work():
    kernel = check(lambda x: [lax.add(lax.exp(x), 1.0), lax.mul(lax.exp(x), x)], numbers(4, 6))
    assert count(kernel, For) == 1
    assert count(kernel, Store) == 2 and count(kernel, Load) == 1


def test_unrelated_outputs_keep_their_own_loops():
    assert count(check(lambda x, y: [lax.neg(x), lax.exp(y)], numbers(5), numbers(5)), For) == 2


@pytest.mark.parametrize("f", [softmax, layer_norm])
def test_each_row_is_handled_while_it_is_in_cache(f):
    kernel = check(f, numbers(7, 599))
    [over_rows] = [s for s in kernel.body if isinstance(s, For)]
    assert over_rows.stop.value == 7
    assert all(temp.shape == (599,) for temp in kernel.temps)


@pytest.mark.parametrize("f", [softmax, layer_norm])
def test_a_row_is_reduced_by_the_loop_that_makes_it(f):
    [over_rows] = [s for s in check(f, numbers(7, 599)).body if isinstance(s, For)]
    assert [s.vectorize for s in over_rows.body if isinstance(s, For)] == [
        "reduce", "reduce", "parallel"]


@pytest.mark.parametrize("shape", [(31,), (5000,), (70, 90), (3, 40, 50)])
def test_reductions_of_the_same_numbers_read_them_once(shape):
    axes = tuple(range(len(shape)))
    kernel = check(lambda x: [lax.reduce_sum_p.bind(x, axes=axes), lax.reduce_max(x, axes)],
                   numbers(*shape))
    loops = [s for s in statements(kernel.body, For) if any(
        isinstance(each, Load) and each.buffer.role == "input" for each in s.body)]
    assert sum(loop.trip_count for loop in loops) <= np.prod(shape)
    assert all(sum(isinstance(each, Assign) for each in loop.body) == 2 for loop in loops)


def test_reductions_down_the_same_columns_read_them_once():
    kernel = check(lambda x: [lax.reduce_sum_p.bind(x, axes=(0,)), lax.reduce_max(x, (0,))],
                   numbers(130, 64))
    loads = [s for s in statements(kernel.body, Load) if s.buffer.role == "input"]
    stores = [s for s in statements(kernel.body, Store) if s.buffer.role == "output"]
    assert len(loads) < 2 * 8 and len(stores) == 2


@pytest.mark.parametrize("width", [3, 16, 2000])
def test_threads_share_sums_of_columns_of_any_width(width):
    aval = ShapedArray(((1 << 22) // width, width), np.dtype(F32))
    program = tracing.stage(lambda x: [lax.reduce_sum_p.bind(x, axes=(0,))], [aval])
    assert shared_loops(Lowered(program, "f").kernel)


@pytest.mark.parametrize("shape", [(3000, 8), (2048, 2, 4), (1024, 33), (999, 1, 5)])
def test_rows_that_lie_one_after_the_other_are_taken_as_one(shape):
    for op in (lax.reduce_max, lax.reduce_sum):
        kernel = check(lambda x, op=op: [op(x, (0,))], numbers(*shape))
        loads = {s.buffer: s for s in statements(kernel.body, Load)}
        [walk] = [s for s in statements(kernel.body, For) if any(
            isinstance(each, Load) and each.buffer.role == "input" for each in s.body)][:1]
        assert loads and walk.trip_count % (np.prod(shape[1:])) == 0
        assert not any(let.op in ("div", "rem") for let in statements(kernel.body, Let))


@pytest.mark.parametrize("shape", [(7, 5, 33), (3, 2, 9, 40), (20, 2, 300), (9, 0, 4), (0, 9, 4)])
def test_columns_that_lie_side_by_side_are_one_row(shape):
    kernel = check(lambda x: [lax.reduce_max(x, (0,)), lax.reduce_sum(lax.mul(x, x), (0,))],
                   numbers(*shape))
    innermost = [loop for loop in statements(kernel.body, For) if not any(
        isinstance(s, For) for s in loop.body)]
    if np.prod(shape) and shape[0] > 8:
        assert all(loop.trip_count in (256, np.prod(shape[1:]) % 256) for loop in innermost)


def test_rows_that_are_weighted_go_by_columns_whatever_axes_they_are_counted_by():
    for shape in ((300,), (3, 100), (5, 2, 30)):
        down = tuple(range(len(shape)))

        def f(x, w, shape=shape, down=down):
            return [lax.reduce_sum_p.bind(lax.mul(x, lax.broadcast_in_dim(w, x.shape, down)),
                                          axes=down)]
        kernel = check(f, numbers(*shape, 16), numbers(*shape))
        walks = [s for s in statements(kernel.body, For) if any(
            isinstance(each, Load) and each.buffer.role == "input" for each in s.body)]
        assert all(loop.trip_count == 16 for loop in walks if not any(
            isinstance(s, For) for s in loop.body))


def test_so_do_those_of_each_matrix_of_a_batch():
    kernel = check(lambda x, w: [lax.reduce_sum_p.bind(lax.mul(x, lax.broadcast_in_dim(
        w, x.shape, (0, 1))), axes=(1,))], numbers(4, 90, 16), numbers(4, 90))
    inner = [s for s in statements(kernel.body, For) if any(
        isinstance(each, Load) and len(each.buffer.shape) == 3 for each in s.body)]
    assert {loop.trip_count for loop in inner} == {16}


def test_axes_are_reduced_in_the_order_of_memory():
    texts = [jit(lambda x, axes=axes: x.sum(axes)).lower(numbers(3, 20, 40)).as_text("source")
             for axes in ((1, 2), (2, 1), (-1, -2))]
    assert len({text.split("\n", 4)[-1] for text in texts}) == 1


def test_few_rows_are_written_out_where_they_stand():
    kernel = check(lambda x: [lax.reduce_prod(x, (0,))], numbers(8, 5000))
    assert not kernel.temps and count(kernel, For) == 2
    assert any(t.name.startswith("sums") for t in check(
        lambda x: [lax.reduce_sum(lax.exp(x), (0,))], numbers(8, 5000)).temps)


def test_numbers_that_are_all_alike_are_stored_beside_others_of_their_shape():
    def f(x, y):
        fill = lax.broadcast(F32(2), x.shape)
        return [lax.exp(x), fill, lax.neg(fill), lax.cos(x), lax.broadcast(F32(3), y.shape)]
    assert count(check(f, numbers(30, 7), numbers(30, 5)), For) == 2
    by_index = lambda x: [lax.exp(x), lax.broadcasted_iota(np.int32, x.shape, 1)]  # noqa: E731
    assert count(check(by_index, numbers(30, 7)), For) == 3


@pytest.mark.parametrize("n", [1, 7, 100, 128, 1000, 1009, 5000, 99991])
def test_a_block_is_never_far_below_what_it_may_be(n):
    for most in (16, 128, 1024):
        size = block_size(n, most)
        assert size == n if n <= most // 2 else most // 2 < size <= most
        assert size == most or n % size == 0


def test_what_is_made_of_rows_is_added_up_while_they_are_handled():
    def loss(x):
        e = lax.sub(x, rows(lax.reduce_max(x, (1,)), x))
        return [lax.reduce_sum_p.bind(lax.log(lax.reduce_sum_p.bind(lax.exp(e), axes=(1,))),
                                      axes=(0,))]
    kernel = check(loss, numbers(50, 700))
    assert not any(temp.shape == (50, 700) for temp in kernel.temps)
    assert {s.buffer.role for s in kernel.body[0].body if isinstance(s, Store)} == {"temp"}


@pytest.mark.parametrize("kept", [(1, 512), (512,)])
def test_reductions_down_the_columns_and_what_stands_between_share_stretches(kept):
    def log_sum_exp(x):
        largest = lax.reshape(lax.reduce_max(x, (0,)), kept)
        wide = lax.broadcast_in_dim(largest, x.shape, tuple(range(2 - len(kept), 2)))
        total = lax.reduce_sum_p.bind(lax.exp(lax.sub(x, wide)), axes=(0,))
        return [lax.add(lax.log(total), lax.reshape(largest, (512,)))]
    [over_stretches] = check(log_sum_exp, numbers(21, 512)).body
    assert over_stretches.trip_count == 2


def test_a_reshape_costs_nothing():
    kernel = check(lambda x: [lax.exp(lax.reshape(lax.mul(x, 2.0), (3, 8)))], numbers(4, 6))
    assert count(kernel, For) == 1 and not kernel.temps
    assert not any(let.op in ("div", "rem") for let in statements(kernel.body, Let))


def test_a_scalar_is_computed_before_the_loop():
    kernel = check(lambda x, c: [lax.mul(x, lax.exp(lax.broadcast_in_dim(c, x.shape, ())))],
                   numbers(40), numbers())
    [loop] = [s for s in kernel.body if isinstance(s, For)]
    assert [type(s) for s in loop.body] == [Load, Let, Store]


def test_reducing_rows_downwards_reads_them_in_order():
    kernel = check(lambda x: [lax.reduce_sum_p.bind(lax.exp(x), axes=(0,))], numbers(21, 40))
    innermost = [loop for loop in statements(kernel.body, For) if not any(
        isinstance(s, For) for s in loop.body)]
    assert {loop.stop.value for loop in innermost} == {40}


# -- what is stored


def test_an_expensive_value_used_at_two_places_is_stored():
    kernel = check(lambda x: [lax.add(lax.exp(x), lax.rev(lax.exp(x), (0,)))], numbers(50))
    assert [temp.shape for temp in kernel.temps] == [(50,)]


def test_a_cheap_value_used_at_two_places_is_computed_again():
    kernel = check(lambda x: [lax.add(lax.neg(x), lax.rev(lax.neg(x), (0,)))], numbers(50))
    assert not kernel.temps


def test_shifts_of_shifts_do_not_explode():
    def f(x):
        for _ in range(30):
            x = lax.mul(lax.add(x, lax.rev(x, (0,))), 0.5)
        return [x]

    assert count(check(f, numbers(16)), Let) < 2000


def test_temps_share_memory_when_their_lives_do_not_meet():
    def f(x):
        for _ in range(6):
            x = lax.mul(lax.cumsum(lax.tanh(x)), F32(0.01))
        return [x]

    kernel = check(f, numbers(1000))
    assert len(kernel.temps) >= 6 and kernel.workspace_size < 3 * 4096


# -- outputs of every kind


def test_outputs_may_be_inputs_constants_repetitions_and_empty():
    table = np.arange(6, dtype=F32).reshape(2, 3)

    def f(x):
        y = lax.neg(x)
        return [x, y, y, as_value(table), as_value(F32(3)), lax.slice_in_dim(x, 0, 0)]

    check(f, numbers(4))


def test_a_row_of_one_element_needs_no_loop():
    assert count(check(lambda x: softmax(x), numbers(1, 1)), For) == 0


# -- control flow


def test_a_scalar_loop_lives_in_variables():
    kernel = check(lambda n: lax.while_loop(
        lambda c: lax.lt(c[0], 1000),
        lambda c: [lax.add(c[0], 1), lax.add(lax.mul(c[1], F32(0.5)), F32(1))], [n, F32(0)]),
        np.int32(0))
    [loop] = list(statements(kernel.body, While))
    assert not list(statements(loop.body, (Load, Store)))


def test_carries_that_change_places_do_not_overwrite_each_other():
    def f(x, y, n):
        return lax.while_loop(lambda c: lax.lt(c[3], 3),
                              lambda c: [c[1], c[2], lax.add(c[0], c[1]), lax.add(c[3], 1)],
                              [x, y, lax.neg(x), n])

    check(f, numbers(5), numbers(5, seed=1), np.int32(0))


def test_scalar_carries_that_change_places_do_not_overwrite_each_other():
    check(lambda n: lax.while_loop(lambda c: lax.lt(c[0], 10),
                                   lambda c: [lax.add(c[0], 1), c[2], lax.add(c[1], c[2])],
                                   [n, np.int32(0), np.int32(1)]), np.int32(0))


def test_an_elementwise_carry_is_updated_in_place():
    kernel = check(lambda x, xs: lax.scan(
        lambda c, a: (lax.tanh(lax.add(c, a)), c), x, xs), numbers(8), numbers(5, 8))
    assert not kernel.temps


def test_a_carry_that_is_read_elsewhere_is_not_updated_in_place():
    kernel = check(lambda x: [lax.fori_loop(0, 3, lambda i, c: lax.add(lax.rev(c, (0,)), c), x)],
                   numbers(8))
    assert any(temp.shape == (8,) for temp in kernel.temps)


def test_an_update_of_a_carry_copies_nothing_unless_the_old_value_is_needed():
    def double_each(x):
        return [lax.fori_loop(0, 6, lambda i, c: lax.dynamic_update_slice(
            c, lax.mul(lax.dynamic_slice(c, (i,), (1,)), F32(2)), (i,)), x)]

    def keep_the_old(x):
        return lax.fori_loop(0, 6, lambda i, c: [lax.dynamic_update_slice(
            c[0], lax.dynamic_slice(c[1], (i,), (1,)), (i,)), c[0]], [x, lax.neg(x)])

    kernel = check(double_each, numbers(6))
    assert not any(temp.shape == (6,) for temp in kernel.temps)
    check(keep_the_old, numbers(6))


def test_what_a_loop_asks_for_once_or_twice_is_stored_nowhere_unless_the_loop_changes_it():
    places = np.array([2, 0, -3, 2], np.int32)

    def add_twice(x, places, y):
        return [x.at[places * 2].add(y * F32(2))]

    def add_own(x, places):
        return [lax.fori_loop(0, 3, lambda i, c: c.at[places].add(c[:4] * F32(2)), x)]

    assert not check(add_twice, numbers(9), places, numbers(4)).temps
    kernel = check(lambda x: [lax.cumsum(lax.mul(x, x))], numbers(9))
    assert not any(temp.shape == (9,) for temp in kernel.temps)
    kernel = check(add_own, numbers(9), places)
    assert any(temp.shape == (4,) for temp in kernel.temps)
    assert not any(temp.shape == (9,) for temp in kernel.temps)


@pytest.mark.parametrize("reverse", [False, True])
def test_running_totals_end_anywhere_in_a_block(reverse):
    for n in (1, 5, 16, 17, 20, 21, 65, 257):
        for shape, axis in ((n,), 0), ((2, n), 1), ((n, 3), 0):
            check(lambda x, axis=axis: [lax.cumsum(x, axis, reverse), lax.cummax(x, axis, reverse)],
                  numbers(*shape))


def test_loops_and_branches_inside_of_a_loop_work_on_its_state():
    def sieve(marks):
        def strike(i, marks):
            def all_of(marks):
                return lax.while_loop(lambda s: s[0] < 50,
                                      lambda s: (s[0] + i, s[1].at[s[0]].set(0)), (i * i, marks))[1]
            return lax.cond(marks[i] > 0, all_of, lambda marks: marks, marks)
        return [lax.fori_loop(2, 8, strike, marks)]

    def twice(x):
        return [lax.fori_loop(0, 3, lambda i, x: lax.fori_loop(
            0, 4, lambda j, x: x.at[j].add(x[i]), x), x)]

    for f in (sieve, twice):
        kernel = check(f, np.ones(50, F32))
        assert not any(temp.shape == (50,) for temp in kernel.temps)
        assert sum(loop.stop.value == 50 for loop in statements(kernel.body, For)) == 1


@pytest.mark.parametrize("f", [
    lambda x, y: lax.cond(x[0] > 0, lambda x, y: [y, x], lambda x, y: [x, y], x, y),
    lambda x, y: lax.cond(x[0] > 0, lambda x, y: [x[::-1], x], lambda x, y: [y, y], x, y),
    lambda x, y: lax.scan(lambda c, _: (c.at[0].add(x[1]), c), x, None, length=3),
    lambda x, y: lax.fori_loop(0, 3, lambda i, c: (c[1], c[0] + x), (x, y)),
    lambda x, y: lax.fori_loop(0, 3, lambda i, c: (c[1], c[0] + c[1][::-1]), (x, x)),
    lambda x, y: [lax.fori_loop(0, 3, lambda i, c: c * y, x), x],
    lambda x, y: [lax.fori_loop(0, 3, lambda i, c: lax.rev(jnp.exp(jnp.sin(c)) + c, (0,)), x), y],
    lambda x, y: [lax.top_k(x, 5)[0], x],
    lambda x, y: lax.while_loop(lambda c: c[0].sum() < 50, lambda c: (c[0] * 2, c[0]), (x, x)),
])
def test_what_loops_and_branches_change_is_not_what_others_read(f):
    def inside_of_a_loop(x, y):
        def turn(i, state):
            x, y = state
            z, *rest = f(x * 2 + 1, y)
            return z, rest[0][..., :5].sum(tuple(range(rest[0].ndim - 1))) + y
        return lax.fori_loop(0, 3, turn, (x, y))
    check(f, numbers(5), numbers(5) + 1)
    check(inside_of_a_loop, numbers(5), numbers(5) + 1)


def test_updates_of_what_nobody_else_reads_are_made_in_place():
    def f(x):
        return [(2 * x).at[1].set(7.0).at[2].add(1.0).at[np.array([0, 0])].multiply(x[:2])]

    kernel = check(f, numbers(5))
    assert not [b for b in kernel.temps if b.shape == (5,)]
    assert sum(loop.stop.value == 5 for loop in statements(kernel.body, For)) == 1


@pytest.mark.parametrize("f", [
    lambda x: [(y := 2 * x).at[1].set(7.0) + y],
    lambda x: [(y := 2 * x).at[1].set(7.0), y],
    lambda x: [(y := 2 * x).at[::2].set(y[::-1][:3])],
    lambda x: [(y := 2 * x).at[1].set(y.sum()), y.at[2].set(y[4])],
    lambda x: [x.at[1].set(7.0), x],
    lambda x: [(y := 2 * x).at[0].set(1.0), lax.cond(x[0] > 0, lambda: y[0], lambda: y[1])],
    lambda x: lax.scan(lambda c, row: ((d := c * row).at[1].set(c[0]), d.at[0].add(c[1])), x,
                       rows(x, np.zeros((5, 5), F32))),
    lambda x: [lax.fori_loop(0, 3, lambda i, c: (-c).at[i].set(c[i - 1]).at[4].add(c[i]), x)],
], ids=["read later", "an output too", "its own elements", "two updates", "an argument",
        "read in a branch", "a carry and its rows", "a carry"])
def test_an_update_never_changes_what_is_still_read(f):
    check(f, numbers(5))


def test_column_sums_inside_other_work_read_rows_in_order():
    kernel = check(lambda x, y: [lax.sub(y, lax.reduce_sum_p.bind(x, axes=(0,)))],
                   numbers(30, 40), numbers(40))
    assert any(temp.name.startswith("sums") for temp in kernel.temps)


@pytest.mark.parametrize(("shape", "order"), [
    ((70, 90), (1, 0)), ((128, 64), (1, 0)), ((3, 70, 90), (0, 2, 1)), ((20, 3, 90), (2, 1, 0)),
    ((3, 20, 90), (2, 0, 1)), ((1, 70, 90, 1), (2, 0, 3, 1))])
@pytest.mark.parametrize("dtype", [F32, np.float16, np.int8])
def test_what_is_read_the_other_way_round_is_copied_by_its_own_lines_in_squares(
        shape, order, dtype):
    x = (numbers(*shape) * 9).astype(dtype)
    y = np.ascontiguousarray(x.transpose(order)) + dtype(1)
    kernel = check(lambda x, y: [lax.add(lax.transpose(x, order), y)], x, y)
    [tile] = kernel.temps
    assert tile.dtype == dtype and tile.shape[0] < tile.shape[1]
    [loop] = [s for s in kernel.body if isinstance(s, For)]
    assert loop.vectorize == "apart"


def test_a_walk_that_stays_in_the_cache_needs_no_squares():
    for shape in (40, 40), (9, 1000), (1000, 9):
        assert not check(lambda x: [lax.transpose(x, (1, 0))], numbers(*shape)).temps


def test_several_operands_may_be_read_the_other_way_round_and_one_both_ways():
    def f(x, y):
        return [lax.add(lax.mul(lax.transpose(x, (1, 0)), lax.transpose(lax.sin(y), (1, 0))), x)]
    assert len(check(f, numbers(100, 100), numbers(100, 100)).temps) == 2


def test_a_branch_runs_only_when_it_is_taken():
    kernel = check(lambda p, x: lax.cond(lax.gt(p, 0.0), lambda x: [lax.exp(x)],
                                         lambda x: [lax.neg(x)], x), F32(1), numbers(6))
    branches = list(statements(kernel.body, If))
    assert branches and not any(isinstance(s, For) for s in kernel.body)


def test_products_are_library_calls_and_their_surroundings_fuse():
    kernel = check(lambda x, w, c: [lax.tanh(lax.add(lax.dot(x, w), lax.broadcast_in_dim(
        c, (30, 20), (1,))))], numbers(30, 40), numbers(40, 20), numbers(20))
    values = [t.shape for t in kernel.temps if "near" not in t.name]  # some CPUs copy a block
    assert count(kernel, Call) == 1 and values == [(30, 20)]


# -- what cannot be lowered


def test_a_primitive_without_a_rule_is_named_with_the_users_line():
    odd_p = Primitive("odd", abstract_eval=lambda x: [x])
    with pytest.raises(NotImplementedError, match=r"primitive 'odd' not found.*test_schedule.py"):
        lowered(lambda x: [odd_p.bind(x)], np.ones(3, F32)).kernel  # noqa: B018


def test_a_rule_that_gives_another_dtype_is_refused():
    odd_p = Primitive("odd", abstract_eval=lambda x: [x],
                      element=lambda s, index, x: s.convert(x(index), np.int32))
    with pytest.raises(TypeError, match="'odd' gives int32 for f32"):
        lowered(lambda x: [odd_p.bind(x)], np.ones(3, F32)).kernel  # noqa: B018


def test_every_stage_has_a_text():
    program = lowered(lambda x: [lax.neg(x)], np.ones(3, F32))
    assert "neg a" in program.as_text("jaxpr") and "neg a" in program.as_text("simplified")
    assert isinstance(program.kernel, Kernel)
    assert program.as_text().startswith("def f(")
    with pytest.raises(ValueError, match="no stage 'stablehlo'"):
        program.as_text("stablehlo")


@pytest.mark.parametrize("axes", [(0,), (0, 1)])
def test_what_columns_give_may_be_reduced_beside_them(axes):
    def f(x):
        places = lax.argmax(x, 0, np.int32)
        told = lax.select(lax.reduce_and(lax.ne(x, x), (0,)), lax.neg(places), places)
        return [told, lax.reduce_sum(told, axes)]
    x = np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32)
    check(f, x)


def test_what_all_columns_of_a_matrix_give_may_be_reduced_beside_them():
    def f(x):
        down = lax.reduce_sum(x, (1,))
        return [down, lax.reduce_max(down, (1, 2))]
    check(f, numbers(3, 20, 2, 2))


def test_what_a_turn_has_made_is_there_for_those_beside_it_however_they_ask():
    def rows(y):
        short = y.astype(np.float16)
        return short - jnp.tile(short.ravel(), 1).reshape(3, 3)
    x = np.random.default_rng(0).normal(size=(3, 3, 1, 3)).astype(np.float32)
    check(lambda x: [lax.map(rows, x, batch_size=2)], x)


# -- equal kernels


def layers(f, n):
    return lambda x, y: [functools.reduce(f, [y] * n, x)]


@pytest.mark.parametrize("f,copies", [
    # the first reads an input, the last writes a result
    (layers(lambda x, y: lax.cumsum(x), 5), 2),
    (layers(lambda x, y: lax.cumsum(x, reverse=x is y), 3), 0),
    (lambda x, y: [jnp.matmul(x, y), jnp.matmul(y, x), jnp.matmul(x, x)], 1),  # of one operand
    (lambda x, y: [lax.cummax(x[i]) for i in range(3)], 0)])  # each reads another row
def test_equal_nests_are_lowered_once(f, copies, monkeypatch):
    honest, known = ProgramBuilder.once, []
    monkeypatch.setattr(ProgramBuilder, "once",
                        lambda *args: known.append(honest(*args)) or known[-1])
    check(f, numbers(40, 40) / 40, numbers(40, 40, seed=1) / 40, tolerance=1e-4)
    assert sum(known) == copies


@pytest.mark.parametrize("columns", [2, 3, 5, 8])
@pytest.mark.parametrize("f", [
    lambda x, w: [jnp.exp(x - w).sum(0)], lambda x, w: [abs(x - w).max(0), (x * w).sum(0)],
    lambda x, w: [((x - x.mean(0)) ** 2).sum(0)]])
def test_several_rows_of_few_columns_are_added_up_as_one(f, columns):
    rng = np.random.default_rng(0)
    kernel = check(f, rng.normal(size=(320, columns)).astype(F32), rng.normal(size=columns
                   ).astype(F32), tolerance=1e-4)
    widths = {loop.trip_count // columns for loop in statements(kernel.body, For)
              if loop.vectorize == "parallel" and loop.trip_count % columns == 0}
    assert max(widths) > 1


def test_the_index_of_a_raveled_index_is_told_once():
    check(lambda x: [lax.map(lambda key: random.bits(key.ravel()[:2], (2,)),
                             jnp.stack([x, x[::-1], x]), batch_size=2)],
          np.arange(4, dtype=np.uint32).reshape(2, 1, 2))
