"""The loop tree as text that people read, and that runs as plain Python."""

import ast

import numpy as np
import pytest

from minijax import lax
from minijax.core import tracing, ShapedArray
from minijax.compiler.builder import Builder
from minijax.compiler.loops import Buffer, Kernel
from minijax.compiler.lowered import Lowered
from minijax.compiler.text import kernel_text
from tests.running_text import run_text

F32, I32, I64 = (np.dtype(d) for d in ("float32", "int32", "int64"))


def kernel_of(f, *arrays, name="f"):
    avals = [ShapedArray(x.shape, x.dtype) for x in arrays]
    return Lowered(tracing.stage(lambda *xs: list(f(*xs)), avals), name).kernel


def code_lines(kernel):
    return [line.strip() for line in kernel_text(kernel).splitlines()
            if not line.strip().startswith("#")]


def test_values_have_the_names_of_the_jaxpr_and_loops_their_sizes():
    x = np.ones((4, 3), np.float32)
    assert code_lines(kernel_of(lambda x, y: [lax.mul(lax.add(x, y), 2.0)], x, x)) == [
        "def f(a, b, d):", "for i in range(12):", "d.flat[i] = (a.flat[i] + b.flat[i]) * 2.0"]


def test_the_users_line_stands_over_the_loop():
    x = np.ones(5, np.float32)
    kernel = kernel_of(lambda x: [lax.mul(x, x)], x)  # the line that is looked for
    lines = [line.strip() for line in kernel_text(kernel).splitlines()]
    [note] = [n for n, line in enumerate(lines) if "the line that is looked for" in line]
    assert lines[note].startswith("# ") and "test_text.py:" in lines[note]
    assert lines[note + 1] == "for i in range(5):"


def test_an_accumulation_reads_as_one_would_write_it():
    x = np.ones((4, 3), np.float32)
    assert code_lines(kernel_of(lambda x: [lax.reduce_max(x, (1,))], x)) == [
        "def f(a, b):", "for i in range(4):", "b2 = float32(-inf)", "for j in range(3):",
        "b2 = maximum(b2, a[i, j])", "b[i] = b2"]


def test_a_while_loop_is_a_while_loop():
    text = kernel_text(kernel_of(lambda n: [lax.while_loop(
        lambda i: lax.lt(i, 1000), lambda i: lax.mul(i, 3), n)], np.array(1, np.int32)))
    assert "while acc < 1000:" in text and "acc *= 3" in text


@pytest.mark.parametrize("name", ["<lambda>", "abs", "for", "range", "3d", "float32", "a"])
def test_any_function_name_gives_a_function_that_runs(name):
    x = np.float32([-1, 2])
    kernel = kernel_of(lambda x: [lax.abs(x), lax.convert_element_type(x, np.int32)], x, name=name)
    ast.parse(kernel_text(kernel))
    np.testing.assert_array_equal(run_text(kernel, [x])[0], [1, 2])


def test_many_values_do_not_run_into_keywords():
    def f(x):
        outs = [x]
        for _ in range(500):
            outs.append(lax.add(outs[-1], 1.0))
        return outs[::20]

    x = np.float32([0.5])
    np.testing.assert_allclose([y[0] for y in run_text(kernel_of(f, x), [x])],
                               0.5 + np.arange(0, 501, 20))


# -- kernels written by hand: order, dtypes, control


def run(inputs, output, write):
    """Run the text of what `write(b, inputs, output)` emits."""
    b = Builder()
    ins = [Buffer(f"x{k}", x.dtype, x.shape, "input") for k, x in enumerate(inputs)]
    out = Buffer("y", np.dtype(output[1]), output[0], "output")
    write(b, ins, out)
    kernel = Kernel("k", tuple(ins), (out,), (), (), 0, {}, tuple(b.scopes[0].statements))
    return run_text(kernel, inputs)[0]


def test_a_read_is_not_moved_past_an_assignment():
    def swap(b, ins, out):
        x, y = b.variable(1, I32), b.variable(2, I32)
        old = b.read(x)
        b.assign(x, b.read(y))
        b.assign(y, old)
        b.store(out, (0,), b.read(x))
        b.store(out, (1,), b.read(y))

    np.testing.assert_array_equal(run([], ((2,), I32), swap), [2, 1])


def test_a_load_is_not_moved_past_a_store():
    def swap(b, ins, out):
        for k in range(2):
            b.store(out, (k,), b.load(ins[0], (k,)))
        first = b.load(out, (0,))
        b.store(out, (0,), b.load(out, (1,)))
        b.store(out, (1,), first)

    np.testing.assert_array_equal(run([np.int32([5, 6])], ((2,), I32), swap), [6, 5])


def test_integers_wrap_in_the_text_too():
    def grow(b, ins, out):
        x = b.variable(2**31 - 1, I32)
        with b.loop(3):
            b.assign(x, b.add(b.read(x), 1))
        b.store(out, (), b.read(x))

    assert run([], ((), I32), grow) == -(2**31) + 2

    def index_product(b, ins, out):
        with b.loop(4, start=1) as i:
            b.store(out, (b.sub(i, 1),), b.mul(i, 2**62))

    np.testing.assert_array_equal(run([], ((3,), I64), index_product),
                                  [2**62, -(2**63), -(2**62)])


def test_literals_take_the_dtype_of_the_operation():
    def narrow(b, ins, out):
        x = b.load(ins[0], ())
        b.store(out, (), b.mul(b.select(b.gt(x, 0.0), 0.1, x), 3.0))

    expected = np.float32(0.1) * np.float32(3.0)
    assert run([np.array(1, np.float32)], ((), F32), narrow) == expected


def test_comparisons_do_not_chain_and_parentheses_stay_where_they_matter():
    def compare(b, ins, out):
        x, y = (b.load(ins[0], (k,)) for k in range(2))
        b.store(out, (0,), b.eq(b.lt(x, y), b.gt(x, y)))
        b.store(out, (1,), b.eq(b.sub(x, b.sub(y, x)), b.sub(b.mul(x, 2), y)))
        b.store(out, (2,), b.lt(b.neg(b.add(x, y)), b.shl(b.add(x, 1), 2)))

    np.testing.assert_array_equal(run([np.int32([3, 8])], ((3,), np.bool_), compare),
                                  [False, True, True])


def test_a_branch_that_chooses_reads_as_an_expression():
    b = Builder()
    x = Buffer("x", F32, (6,), "input")
    y = Buffer("y", F32, (9,), "output")
    with b.loop(9) as i:
        b.store(y, (i,), b.choose(b.lt(i, 6), lambda: b.load(x, (i,)), lambda: b.const(7, F32)))
    kernel = Kernel("k", (x,), (y,), (), (), 0, {}, tuple(b.scopes[0].statements))
    assert "x[i] if i < 6 else float32(7.0)" in kernel_text(kernel)
    data = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(run_text(kernel, [data])[0], [0, 1, 2, 3, 4, 5, 7, 7, 7])


def test_a_failed_check_is_an_error():
    def check(b, ins, out):
        b.check(b.gt(b.load(ins[0], ()), 0), 3)
        b.store(out, (), b.load(ins[0], ()))

    assert run([np.array(4, np.int32)], ((), I32), check) == 4
    with pytest.raises(RuntimeError, match="check 3"):
        run([np.array(-4, np.int32)], ((), I32), check)


def test_externals_are_called_by_name_also_on_rows():
    x = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    kernel = kernel_of(lambda x: [lax.dot_general(x, x, (((2,), (1,)), ((0,), (0,))))], x)
    np.testing.assert_allclose(run_text(kernel, [x])[0], x @ x, rtol=1e-6)
