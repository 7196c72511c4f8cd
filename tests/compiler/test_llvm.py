"""Every scalar operation and every statement, compiled, does what its NumPy meaning does."""

import itertools
import math
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax import dtypes, jit, lax
from minijax.compiler import cache, llvm
from minijax.compiler.interrupts import line_of, sites
from minijax.compiler.loops import (BOOL, INT64, OPS, Address, Assign, Buffer, Call, Check,
                                    Constant, Declare, Duplicate, For, If, Kernel, Let, Load, Read,
                                    Scalar, Store, Variable, While, walk)
from minijax.compiler.scalars import kind_of
from tests.checker import check_kernel

F32 = np.dtype(np.float32)
BF16 = np.dtype(ml_dtypes.bfloat16)
INTEGERS = [np.dtype(f"{sign}int{bits}") for bits in (8, 16, 32, 64) for sign in ("", "u")]
FLOATS = [np.dtype(np.float32), np.dtype(np.float64)]
SHORT = [np.dtype(np.float16), BF16, *dtypes.SMALL_FLOATS]
NARROW = [*SHORT, *dtypes.SMALL_INTEGERS]


@pytest.fixture(autouse=True)
def nothing_on_disk(monkeypatch):
    monkeypatch.setenv("MINIJAX_CACHE_DIR", "")


def number(value):
    return Constant(np.int64(value), INT64)


def loop(index, stop, *body, start=0, vectorize=""):
    return For(index, number(start), number(stop), tuple(body), vectorize=vectorize)


def kernel(inputs, outputs, *body, temps=(), offsets=None, size=0):
    made = Kernel("k", tuple(inputs), tuple(outputs), (), tuple(temps), size, offsets or {}, body)
    check_kernel(made)
    return made


def run(made, *arrays):
    """The outputs of a kernel, and its status."""
    outputs = [np.zeros(buffer.shape, buffer.dtype) for buffer in made.outputs]
    workspace = np.zeros(made.workspace_size + 64, np.uint8)
    status = cache.compile_or_load(made).run([*arrays, *outputs, workspace])
    return status, outputs


def elementwise(op, dtypes, result, size):
    """A kernel that applies one operation to every position."""
    inputs = [Buffer(f"x{n}", d, (size,), "input") for n, d in enumerate(dtypes)]
    output = Buffer("y", result, (size,), "output")
    i = Scalar("i", INT64)
    args = tuple(Scalar(f"a{n}", d) for n, d in enumerate(dtypes))
    value = Scalar("v", result)
    loads = [Load(a, x, (i,)) for a, x in zip(args, inputs, strict=True)]
    return kernel(inputs, [output],
                  loop(i, size, *loads, Let(value, op, args), Store(output, (i,), value)))


def edges(dtype):
    """Values where operations go wrong, and a few others."""
    if dtype in dtypes.SMALL_INTEGERS:
        return every(dtype)
    match kind_of(dtype):
        case "b":
            return np.array([False, True])
        case "i" | "u":
            limits = np.iinfo(dtype)
            near = [limits.min, limits.min + 1, limits.max, limits.max - 1, 0, 1, 2, 3, 7]
            more = [-1, -2, -7] if kind_of(dtype) == "i" else []
            return np.array(near + more + [dtype.itemsize * 8 - 1, dtype.itemsize * 8], dtype)
        case _:
            tiny = float(ml_dtypes.finfo(dtype).smallest_subnormal)
            huge = float(ml_dtypes.finfo(dtype).max)
            values = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 1e-3, tiny, huge, np.inf, np.nan, 7.3]
            return np.array(values + [-value for value in values]).astype(dtype)


def every(dtype):
    """All the numbers of a narrow dtype."""
    codes = np.arange(1 << dtypes.itemsize_bits(dtype)).astype(f"u{dtype.itemsize}")
    return codes.view(dtype)


def combinations(kinds):
    columns = zip(*itertools.product(*map(edges, kinds)), strict=True)
    return [np.array(column, d) for column, d in zip(columns, kinds, strict=True)]


def assert_same(got, expected):
    assert got.dtype == expected.dtype
    got, expected = np.atleast_1d(got, expected)
    if got.dtype.itemsize == 1:  # NumPy finds no sign in a float of fewer than eight bits
        numbers = expected == expected
        np.testing.assert_array_equal(got == got, numbers)
        got, expected = (x.view(np.uint8)[numbers] for x in (got, expected))
    if got.dtype.kind in "biu":
        return np.testing.assert_array_equal(got, expected)
    with np.errstate(invalid="ignore"):  # some 16-bit nans are signalling
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(expected)[numbers])


def dtypes_of(kinds):
    of_kind = {"b": [BOOL], "i": INTEGERS[::2], "u": INTEGERS[1::2], "f": FLOATS, "n": NARROW}
    return [dtype for kind in kinds for dtype in of_kind[kind]]


CASES = [(op, dtype) for op in OPS.values() if op.result != "target"
         for dtype in dtypes_of(op.instructions)]


@pytest.mark.parametrize(("op", "dtype"), CASES, ids=[f"{op.name}-{d}" for op, d in CASES])
def test_an_operation_compiled_gives_its_numpy_meaning_at_every_edge(op, dtype):
    kinds = ([BOOL] if op.name == "select" else []) + [dtype] * (op.arity - (op.name == "select"))
    arrays = combinations(kinds)
    result = BOOL if op.result == "bool" else dtype
    made = elementwise(op.name, kinds, result, len(arrays[0]))
    status, [got] = run(made, *arrays)
    assert status == 0
    assert_same(got, np.asarray(op.meaning(*arrays)))


CONVERSIONS = [(a, b) for a in dtypes_of("biuf") for b in dtypes_of("biuf")] + [
    pair for narrow in NARROW for wide in [dtypes.computed_in(narrow)]
    for pair in ((narrow, wide), (wide, narrow))]


@pytest.mark.parametrize(("given", "wanted"), CONVERSIONS,
                         ids=[f"{a}-{b}" for a, b in CONVERSIONS])
def test_a_conversion_compiled_gives_its_numpy_meaning_at_every_edge(given, wanted):
    x = edges(given)
    if given in FLOATS:
        limits = np.array([2.0**31, 2.0**32, 2.0**63, 2.0**64, 255, 256, 127.5, 128.7, 129, 65520])
        x = np.concatenate([x, limits, -limits, 2.0 ** np.arange(-30, 20)]).astype(given)
    _, [got] = run(elementwise("convert", [given], wanted, len(x)), x)
    assert_same(got, np.asarray(OPS["convert"].meaning(x, wanted)))


@pytest.mark.parametrize("narrow", NARROW, ids=str)
def test_every_narrow_number_survives_the_way_through_a_wide_one(narrow):
    x, dtype = every(narrow), dtypes.computed_in(narrow)
    _, [wide] = run(elementwise("convert", [narrow], dtype, x.size), x)
    assert_same(wide, x.astype(dtype))
    _, [back] = run(elementwise("convert", [dtype], narrow, x.size), wide)
    assert_same(back, x)


@pytest.mark.parametrize("short", SHORT, ids=str)
def test_floats_are_rounded_as_ml_dtypes_rounds_them(short):
    x = np.random.default_rng(0).integers(0, 2**32, 200_000, np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        exact = np.sort(every(short).astype(np.float64))
        ties = ((exact[:-1] + exact[1:]) / 2).astype(np.float32)
        x = np.concatenate([x, ties, np.nextafter(ties, np.float32(0)), np.nextafter(ties, np.inf),
                            np.ravel(2.**np.arange(-130, 128)[:, None] * [.7, 1.4, -1.4, -2.4])])
        x = x.astype(np.float32)
        if short == ml_dtypes.float8_e8m0fnu:  # ml_dtypes 0.7 rounds these down; before it, up
            x = x[(x <= 2.**-127) | (x >= 1.5 * 2.**-127)]
        rounded = x.astype(short)
    _, [got] = run(elementwise("convert", [F32], short, x.size), x)
    assert_same(got, rounded)


@pytest.mark.parametrize(("given", "wanted"), [("float32", "int32"), ("uint64", "float64"),
                                               ("float16", "uint16"), ("int8", "uint8")])
def test_a_bitcast_keeps_the_bits(given, wanted):
    x = edges(np.dtype(given))
    _, [got] = run(elementwise("bitcast", [np.dtype(given)], np.dtype(wanted), x.size), x)
    assert got.tobytes() == x.tobytes()


@pytest.mark.parametrize("value", [1.1, -0.0, np.inf, np.nan, 1e-45], ids=str)
@pytest.mark.parametrize("dtype", [*FLOATS, *SHORT], ids=str)
def test_a_float_literal_arrives_bit_for_bit(dtype, value):
    output = Buffer("y", dtype, (), "output")
    with np.errstate(all="ignore"):
        literal = np.asarray(value).astype(dtype)[()]
    _, [got] = run(kernel([], [output], Store(output, (), Constant(literal, dtype))))
    assert_same(got, np.asarray(literal))


@pytest.mark.parametrize("dtype", [*INTEGERS, *dtypes.SMALL_INTEGERS, BOOL], ids=str)
def test_an_integer_literal_arrives(dtype):
    for value in edges(dtype):
        output = Buffer("y", dtype, (), "output")
        _, [got] = run(kernel([], [output], Store(output, (), Constant(value, dtype))))
        assert got == value


def test_a_bool_is_any_byte_but_zero():
    x = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    _, [got] = run(elementwise("not", [BOOL], BOOL, 4), x)
    assert got.view(np.uint8).tolist() == [1, 0, 0, 0]


def test_an_index_has_one_position_per_axis():
    x, y = Buffer("x", F32, (3, 4, 5), "input"), Buffer("y", F32, (5, 3, 4), "output")
    i, j, k, v = (Scalar(n, INT64) for n in "ijkv")
    v = Scalar("v", F32)
    made = kernel([x], [y], loop(i, 3, loop(j, 4, loop(k, 5, Load(v, x, (i, j, k)),
                                                      Store(y, (k, i, j), v)))))
    data = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    _, [got] = run(made, data)
    np.testing.assert_array_equal(got, data.transpose(2, 0, 1))


def test_a_flat_index_is_row_major():
    x, y = Buffer("x", F32, (3, 4), "input"), Buffer("y", F32, (4, 3), "output")
    i, v = Scalar("i", INT64), Scalar("v", F32)
    made = kernel([x], [y], loop(i, 12, Load(v, x, (i,)), Store(y, (i,), v)))
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    _, [got] = run(made, data)
    np.testing.assert_array_equal(got, data.reshape(4, 3))


def test_a_loop_may_start_late_and_be_empty():
    y = Buffer("y", np.dtype(np.int64), (6,), "output")
    i, j = Scalar("i", INT64), Scalar("j", INT64)
    made = kernel([], [y], loop(i, 5, Store(y, (i,), i), start=2),
                  loop(j, -3, Store(y, (number(0),), number(9))))
    _, [got] = run(made)
    assert got.tolist() == [0, 0, 2, 3, 4, 0]


def accumulation(op, dtype, size, vectorize):
    x, y = Buffer("x", dtype, (size,), "input"), Buffer("y", dtype, (), "output")
    i, v, old, new, end = (Scalar(n, dtype) for n in ("i", "v", "old", "new", "end"))
    i, total = Scalar("i", INT64), Variable("total", dtype)
    return kernel([x], [y], Declare(total, Constant(dtype.type(0), dtype)),
                  loop(i, size, Load(v, x, (i,)), Read(old, total), Let(new, op, (old, v)),
                       Assign(total, new), vectorize=vectorize),
                  Read(end, total), Store(y, (), end))


def test_a_variable_carries_a_value_through_a_loop():
    x = np.arange(1, 101, dtype=np.int32)
    _, [got] = run(accumulation("add", np.dtype(np.int32), 100, ""), x)
    assert got == 5050


def test_a_sum_keeps_its_order_unless_the_loop_says_otherwise():
    x = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    in_order = np.float32(0)
    for value in x:
        in_order += value
    _, [got] = run(accumulation("add", F32, 1000, ""), x)
    assert got == in_order
    _, [got] = run(accumulation("add", F32, 1000, "reduce"), x)
    np.testing.assert_allclose(got, x.astype(np.float64).sum(), rtol=1e-5)


def test_a_while_loop_runs_until_its_condition_fails():
    y = Buffer("y", INT64, (), "output")
    n, now, again, step, end = (Scalar(x, INT64) for x in ("n", "now", "again", "step", "end"))
    test, count = Scalar("test", BOOL), Variable("count", INT64)
    made = kernel([], [y], Declare(count, number(1)),
                  While((Read(now, count), Let(test, "lt", (now, number(100)))), test,
                        (Let(step, "mul", (now, number(3))), Assign(count, step))),
                  Read(end, count), Store(y, (), end))
    _, [got] = run(made)
    assert got == 243


@pytest.mark.parametrize("condition", [True, False])
def test_an_if_runs_one_of_its_bodies(condition):
    c, y = Buffer("c", BOOL, (), "input"), Buffer("y", INT64, (2,), "output")
    test = Scalar("test", BOOL)
    made = kernel([c], [y], Load(test, c, ()),
                  If(test, (Store(y, (number(0),), number(1)),),
                     (Store(y, (number(1),), number(2)),)))
    _, [got] = run(made, np.array(condition))
    assert got.tolist() == ([1, 0] if condition else [0, 2])


def test_a_failed_check_returns_its_code_at_once():
    c, y = Buffer("c", BOOL, (), "input"), Buffer("y", INT64, (), "output")
    test = Scalar("test", BOOL)
    made = kernel([c], [y], Load(test, c, ()), Check(test, 7), Store(y, (), number(1)))
    status, [got] = run(made, np.array(True))
    assert (status, got) == (0, 1)
    status, [got] = run(made, np.array(False))
    assert (status, got) == (7, 0)


def test_a_loop_with_a_branch_inside_closes_on_the_right_block():
    y = Buffer("y", INT64, (4,), "output")
    i, odd, test = Scalar("i", INT64), Scalar("odd", INT64), Scalar("test", BOOL)
    made = kernel([], [y], loop(i, 4, Let(odd, "and", (i, number(1))),
                                Let(test, "eq", (odd, number(1))),
                                If(test, (Store(y, (i,), number(1)),))))
    _, [got] = run(made)
    assert got.tolist() == [0, 1, 0, 1]


def shifted_through_shared_memory(apart):
    """b[i] = a[i] in a loop, where b starts 64 bytes behind a in the workspace, or elsewhere."""
    x, y = Buffer("x", F32, (64,), "input"), Buffer("y", F32, (64,), "output")
    a, b = Buffer("a", F32, (80,), "temp"), Buffer("b", F32, (64,), "temp")
    i, j, k = (Scalar(n, INT64) for n in "ijk")
    u, v, w = (Scalar(n, F32) for n in "uvw")
    return kernel([x], [y], loop(i, 64, Load(u, x, (i,)), Store(a, (i,), u)),
                  loop(j, 64, Load(v, a, (j,)), Store(b, (j,), v)),
                  loop(k, 64, Load(w, b, (k,)), Store(y, (k,), w)),
                  temps=[a, b], offsets={a: 0, b: 320 if apart else 64}, size=1024)


def test_temporaries_that_share_memory_see_each_others_stores():
    x = np.arange(64, dtype=np.float32)
    _, [got] = run(shifted_through_shared_memory(apart=True), x)
    np.testing.assert_array_equal(got, x)
    _, [got] = run(shifted_through_shared_memory(apart=False), x)
    np.testing.assert_array_equal(got, np.tile(x[:16], 4))


def test_a_call_passes_addresses():
    a, b = Buffer("a", F32, (2, 3, 4), "input"), Buffer("b", F32, (2, 4, 5), "input")
    c, i = Buffer("c", F32, (2, 3, 5), "output"), Scalar("i", INT64)
    at = [Scalar(f"at{n}", INT64) for n in (20, 12, 15)]
    places = [Let(x, "mul", (i, number(int(x.name[2:])))) for x in at]
    made = kernel([a, b], [c], loop(i, 2, *places, Call("block_float32_3x8", (
        Address(a, (at[1],)), number(4), number(1), Address(b, (at[0],)), number(5),
        number(4), Address(c, (at[2],)), number(5), number(0), number(0), number(5)))))
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    y = np.random.default_rng(1).normal(size=(2, 4, 5)).astype(np.float32)
    _, [got] = run(made, x, y)
    np.testing.assert_allclose(got, x @ y, rtol=1e-5)


def test_names_may_be_anything():
    x, y = Buffer("1 weird\tname", F32, (2,), "input"), Buffer("für", F32, (2,), "output")
    i, v = Scalar('a:b" \\n', INT64), Scalar("0", F32)
    made = kernel([x], [y], loop(i, 2, Load(v, x, (i,)), Store(y, (i,), v)))
    _, [got] = run(made, np.float32([1, 2]))
    assert got.tolist() == [1, 2]


def test_the_text_does_not_depend_on_where_the_loops_came_from():
    def text(note):
        y, i = Buffer("y", INT64, (3,), "output"), Scalar("i", INT64)
        body = For(i, number(0), number(3), (Store(y, (i,), i),), note=note)
        return llvm.assembly(Kernel(note, (), (y,), (), (), 0, {}, (body,)))

    assert text("model.py:3") == text("model.py:4")


def test_a_parallel_loop_over_separate_buffers_becomes_vector_instructions():
    from minijax.compiler import cpu

    made = elementwise("add", [F32, F32], F32, 1000)
    made = replace(made, body=tuple(replace(each, vectorize="parallel") for each in made.body))
    text = cpu.undisturbed(lambda: cpu.compile(llvm.assembly(made), "llvm"))
    assert " x float>" in text


@pytest.mark.parametrize("constant", [0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, math.nan, 1e-45])
@pytest.mark.parametrize("op", ["min", "max"])
def test_an_extremum_with_a_constant_knows_nans_and_the_signs_of_zeros(op, constant):
    values = np.array([0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.0, 1e-45, 2.5] * 3, F32)
    i, v, left, right = Scalar("i", INT64), Scalar("v", F32), Scalar("l", F32), Scalar("r", F32)
    x, y, z = (Buffer(name, F32, values.shape, role) for name, role in
               (("x", "input"), ("y", "output"), ("z", "output")))
    number = Constant(F32.type(constant), F32)
    status, got = run(kernel([x], [y, z], loop(i, len(values), Load(v, x, (i,)),
                                       Let(left, op, (number, v)), Let(right, op, (v, number)),
                                       Store(y, (i,), left), Store(z, (i,), right))), values)
    wanted = OPS[op].meaning(values, F32.type(constant))
    assert status == 0
    for found in got:
        np.testing.assert_array_equal(found, wanted)
        real = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[real]), np.signbit(wanted[real]))


def test_temps_begin_with_a_cache_line_wherever_the_workspace_lies():
    dtype = np.dtype(np.float32)
    x, y, temp = (Buffer(role, dtype, (4,), role) for role in ("input", "output", "temp"))
    i, a, b = Scalar("i", INT64), Scalar("a", dtype), Scalar("b", dtype)
    made = kernel([x], [y], loop(i, 4, Load(a, x, (i,)), Store(temp, (i,), a), Load(b, temp, (i,)),
                                 Store(y, (i,), b)), temps=[temp], offsets={temp: 0}, size=64)
    code = cache.compile_or_load(made).run
    for start in range(0, 64, 4):
        workspace, out = np.zeros(256, np.uint8)[start:], np.zeros(4, dtype)
        assert code([np.full(4, -np.inf, dtype), out, workspace]) == 0
        assert (workspace.ctypes.data + np.flatnonzero(workspace)[0] - 2) % 64 == 0


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_vectors_of_integers_are_divided_without_an_error(dtype):
    limits, rng = np.iinfo(dtype), np.random.default_rng(0)
    ends = np.array([limits.min, limits.min + 1, limits.max // 2, limits.max - 1, limits.max,
                     *range(-3 if limits.min else 0, 4)], dtype)
    some, others = (rng.integers(limits.min, limits.max, 3000, dtype, True) for _ in range(2))
    x, y = np.tile(ends, ends.size), np.repeat(ends, ends.size)
    small = others % 100 + 1
    multiples = some // 100 * small
    x = np.concatenate([x, some, multiples, multiples - 1, multiples + 1]).astype(dtype)
    y = np.concatenate([y, others, small, small, small]).astype(dtype)
    for divide in (lax.div, lax.rem):
        np.testing.assert_array_equal(jit(divide)(x, y), divide(x, y))


def test_loops_that_may_be_long_ask_for_signals_and_others_do_not():
    def asks(f, *args):
        return "@minijax_poll" in assembly_of(f, *args)
    few, many = np.ones(1000, np.float32), np.ones(1 << 22, np.float32)

    def turns(n):
        return lambda x: minijax.lax.fori_loop(0, n, lambda i, y: y * 0.5 + i, x)
    assert asks(lambda x: minijax.lax.while_loop(lambda y: y < 9, lambda y: y * 2, x), 1.0)
    assert asks(turns(10_000_000), 1.0) and not asks(turns(1000), 1.0)
    assert asks(minijax.numpy.sort, many) and not asks(minijax.numpy.sort, few)
    assert not asks(minijax.numpy.tanh, few)


def assembly_of(f, *args):
    return llvm.assembly(minijax.jit(f).lower(*args)._lowered.kernel)


def test_equal_loops_are_transformed_once_and_each_keeps_its_names_and_lines():
    def layers(x, scales):
        for scale in scales:
            x = lax.pad(x[:, 1:-1], np.float32(0), [(0, 0, 0), (1, 1, 0)])
            x = x / (1 + abs(x)).max(axis=1, keepdims=True) + scale
            x = minijax.numpy.tanh(x)
        return x
    x = np.ones((1000, 7), "float32")
    made = jit(layers).trace(x, [*np.ones((5, 7), "float32")]).lower()._lowered.kernel
    shared, apart = llvm.transformed(made), llvm.transformed(made, False)
    modules = [llvm.ModuleText(kernel) for kernel in (shared, apart)]
    [functions, others] = ({name: text for name, text in module.functions.items() if "calls" not in
                            name} for module in modules if module.text())
    assert functions == others
    duplicates = [(x, y) for x, y in zip(shared.body, apart.body, strict=True)
                  if isinstance(x, Duplicate)]
    assert len(duplicates) == 4 and all(
        line_of(shared, sites(shared)[x]) == line_of(apart, sites(apart)[y])
        for x, y in duplicates)
    assert len({id(x.target) for x in walk(shared.body) if isinstance(x, Let)}) == sum(
        isinstance(x, Let) for x in walk(shared.body))
