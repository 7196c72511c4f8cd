"""The scalar operations, the loop tree's checker, and the builder that writes trees."""

import ctypes
import itertools

import ml_dtypes
import numpy as np
import pytest

from minijax.compiler.builder import Builder
from minijax.compiler.loops import Buffer, Constant, For, Kernel, Let, Load, Scalar, Store
from minijax.compiler.scalars import OPS, NumpyScalars, kind_of, result_dtype
from tests.checker import check_kernel

s = NumpyScalars()
I32, F32 = np.dtype("int32"), np.dtype("float32")
SIGNED = [np.dtype(f"i{n}") for n in (1, 2, 4, 8)]


def corner_pairs(dtype):
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    corners = np.array([least, least + 1, -7, -1, 0, 1, 3, most], dtype)
    return [a.ravel() for a in np.meshgrid(corners, corners)]


@pytest.mark.parametrize("dtype", SIGNED, ids=str)
def test_integer_quotient_and_remainder_are_those_of_c_and_defined_everywhere(dtype):
    x, y = corner_pairs(dtype)
    quotient, remainder = s.div(x, y), s.rem(x, y)
    assert quotient.dtype == remainder.dtype == dtype
    least = np.iinfo(dtype).min
    for a, b, q, r in zip(x.tolist(), y.tolist(), quotient, remainder, strict=True):
        if b == 0:
            assert (q, r) == (-1, a)
        elif (a, b) == (least, -1):
            assert (q, r) == (least, 0)
        else:
            assert (q, r) == (int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1),
                              abs(a) % abs(b) * (-1 if a < 0 else 1))


def test_unsigned_division_by_zero_gives_all_ones_and_the_dividend():
    x, y = np.uint8([7, 200, 0]), np.uint8([2, 0, 3])
    np.testing.assert_array_equal(s.div(x, y), [3, 255, 0])
    np.testing.assert_array_equal(s.rem(x, y), [1, 200, 0])


def test_integers_wrap_around():
    most = np.int32([2**31 - 1])
    assert s.add(most, 1) == -(2**31)
    assert s.neg(np.int8([-128])) == s.abs(np.int8([-128])) == -128
    assert s.mul(np.uint32([2**31]), 2) == 0


def test_minimum_and_maximum_let_nan_win_and_order_the_zeros():
    x, y = np.float32([0.0, -0.0, 1.0, np.nan]), np.float32([-0.0, 0.0, np.nan, 1.0])
    assert np.signbit(s.min(x, y)[:2]).all() and not np.signbit(s.max(x, y)[:2]).any()
    assert np.isnan(s.min(x, y)[2:]).all() and np.isnan(s.max(x, y)[2:]).all()


def test_shifts_outside_the_width_give_zero_or_the_sign():
    x, y = np.int32([-1, -1, -8, 5]), np.int32([32, -1, 1, 40])
    np.testing.assert_array_equal(s.shl(x, y), [0, 0, -16, 0])
    np.testing.assert_array_equal(s.shr_logical(x, y), [0, 0, 2**31 - 4, 0])
    np.testing.assert_array_equal(s.shr_arithmetic(x, y), [-1, -1, -4, 0])


def test_floats_convert_to_integers_by_saturation():
    x = np.float32([1e20, -1e20, np.nan, 1.9, -1.9, 2.0**31, np.inf])
    np.testing.assert_array_equal(
        s.convert(x, np.int32),
        np.int32([2**31 - 1, -(2**31), 0, 1, -1, 2**31 - 1, 2**31 - 1]))
    np.testing.assert_array_equal(s.convert(np.float32([-3.0, 300.0]), np.uint8), [0, 255])
    big = np.float64([2.0**63, 2.0**63 - 1024])
    np.testing.assert_array_equal(s.convert(big, np.int64), [2**63 - 1, 2**63 - 1024])
    np.testing.assert_array_equal(s.convert(np.float32([0.0, -0.0, np.nan]), bool),
                                  [False, False, True])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fma_rounds_once_as_the_c_library_does(dtype):
    function = getattr(ctypes.CDLL(None), "fmaf" if dtype is np.float32 else "fma")
    number = ctypes.c_float if dtype is np.float32 else ctypes.c_double
    function.argtypes, function.restype = [number] * 3, number
    draw = np.random.default_rng(0)
    x, y = (draw.standard_normal((2, 3000)) * 2.0 ** draw.integers(-30, 30, 3000)).astype(dtype)
    z = (-x * y * (1 + 1e-8 * draw.standard_normal(3000))).astype(dtype)
    rim = np.array([(1e300, 1e300, -1e300), (5e-324, 0.5, 5e-324), (1e-200, 1e-200, 1e-310),
                    (np.inf, 0, 1), (1, 2, np.inf), (-0.0, 1, -0.0), (1e308, 10, -np.inf),
                    (1e-38, 1e-7, 1e-45), (1e38, 10, -1e38)])
    with np.errstate(over="ignore"):
        x, y, z = (np.concatenate(p) for p in zip((x, y, z), rim.T.astype(dtype), strict=True))
    expected = [function(*map(float, row)) for row in zip(x, y, z, strict=True)]
    np.testing.assert_array_equal(s.fma(x, y, z), np.array(expected, dtype))


def test_sixteen_bit_arithmetic_is_float32_rounded_once():
    x, y = np.array([1.0078125, 3.0], ml_dtypes.bfloat16), np.array([0.0039, 1e-3], "bfloat16")
    expected = (x.astype(F32) + y.astype(F32)).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(s.add(x, y), expected)


@pytest.mark.parametrize(("op", "dtypes", "target"), [
    ("add", [F32, I32], None), ("sub", [np.dtype(bool)] * 2, None), ("sqrt", [I32], None),
    ("and", [F32, F32], None), ("bitcast", [F32], np.dtype("int64")),
    ("select", [I32, F32, F32], None), ("add", [np.dtype("float16")] * 2, None),
    ("bitcast", [np.dtype("int8")], np.dtype(bool)), ("add", [F32], None)])
def test_operations_refuse_operands_they_are_not_defined_for(op, dtypes, target):
    with pytest.raises(TypeError, match=f"scalar operation {op}"):
        result_dtype(op, tuple(dtypes), target)


def test_complex_scalars_are_refused():
    with pytest.raises(NotImplementedError, match="complex64"):
        kind_of(np.dtype("complex64"))


# -- the checker


def small_kernel(body, outputs=None, **changes):
    x = Buffer("x", F32, (3,), "input")
    y = Buffer("y", F32, (3,), "output")
    statements = body(x, y)
    return Kernel(**{"name": "k", "inputs": (x,), "outputs": (y,), "constants": (), "temps": (),
                     "workspace_size": 0, "offsets": {}, "body": tuple(statements), **changes})


def index(n):
    return Constant(np.int64(n), np.dtype("int64"))


def test_a_well_formed_kernel_passes():
    i, t, u = Scalar("i", np.dtype("int64")), Scalar("t", F32), Scalar("u", F32)
    check_kernel(small_kernel(lambda x, y: [For(i, index(0), index(3), (
        Load(t, x, (i,)), Let(u, "mul", (t, t)), Store(y, (i,), u)))]))


i, t, u = Scalar("i", np.dtype("int64")), Scalar("t", F32), Scalar("u", F32)
wide, half = Scalar("wide", np.dtype("float64")), Scalar("half", np.dtype("float16"))
BROKEN = {
    "used outside its scope": lambda x, y: [Store(y, (index(0),), t)],
    "defined twice": lambda x, y: [Load(t, x, (index(0),))] * 2,
    "store to x": lambda x, y: [Load(t, x, (index(0),)), Store(x, (index(0),), t)],
    "has an index of 2 axes": lambda x, y: [Load(t, x, (index(0), index(0)))],
    "rounded twice": lambda x, y: [Load(t, x, (index(0),)), Let(wide, "convert", (t,)),
                                   Let(half, "convert", (wide,))],
    "not defined for": lambda x, y: [Load(t, x, (index(0),)), Let(u, "and", (t, t))],
    "store at one place of y": lambda x, y: [For(i, index(0), index(3), (
        Load(t, x, (i,)), Store(y, (index(0),), t)), vectorize="parallel")],
    "not of this kernel": lambda x, y: [Load(t, Buffer("z", F32, (), "input"), ())],
}


@pytest.mark.parametrize("problem", BROKEN)
def test_a_malformed_kernel_is_refused(problem):
    with pytest.raises(TypeError, match=problem):
        check_kernel(small_kernel(BROKEN[problem]))


def test_a_temp_must_lie_inside_the_workspace_and_be_aligned():
    temp = Buffer("t", F32, (20,), "temp")
    for size, offset in ((64, 0), (256, 4)):
        with pytest.raises(TypeError):
            check_kernel(small_kernel(lambda x, y: [], temps=(temp,), workspace_size=size,
                                            offsets={temp: offset}))


# -- the builder


@pytest.fixture
def b():
    return Builder()


def statements(b):
    return b.scopes[0].statements


def test_equal_pure_expressions_are_emitted_once(b):
    x = b.load(Buffer("x", F32, (3,), "input"), (0,))
    assert b.mul(x, x) is b.mul(x, x)
    assert len(statements(b)) == 2


def test_what_does_not_depend_on_a_loop_stands_before_it(b):
    x, y = Buffer("x", F32, (), "input"), b.temp((4,), F32)
    with b.loop(4) as i:
        b.store(y, (i,), b.mul(b.load(x, ()), 2.0))
    assert [type(st).__name__ for st in statements(b)] == ["Load", "Let", "For"]


def test_a_loop_whose_end_is_no_int64_is_refused_with_the_cure(b):
    n = b.load(Buffer("n", I32, (), "input"), ())
    with pytest.raises(TypeError, match=r"int32: convert it, b.convert\(n, np.int64\)"), b.loop(n):
        pass


def test_an_expression_of_a_closed_body_is_not_reused(b):
    y = b.temp((4,), F32)
    for _ in range(2):
        with b.loop(4) as i:
            b.store(y, (i,), b.convert(i, F32))
    assert all(len(loop.body) == 2 for loop in statements(b))


def test_nothing_moves_out_of_a_branch(b):
    x = b.load(Buffer("x", F32, (3,), "input"), (0,))
    with b.when(b.gt(x, 0.0)):
        b.sqrt(x)
    assert [type(st).__name__ for st in statements(b)] == ["Load", "Let", "If"]


def test_a_load_is_not_reused_across_a_store_nor_into_a_loop_that_stores(b):
    y = b.temp((4,), F32)
    first = b.load(y, (0,))
    assert b.load(y, (0,)) is first
    with b.loop(3):
        inside = b.load(y, (0,))
        assert inside is not first
        b.store(y, (0,), b.add(inside, 1.0))
        assert b.load(y, (0,)) is not inside


def test_a_guarded_load_stays_behind_its_guard(b):
    x, y = Buffer("x", F32, (3,), "input"), b.temp((9,), F32)
    n = b.load(Buffer("n", np.dtype("int64"), (), "input"), ())
    with b.loop(9) as i, b.when(b.lt(n, 3)):
        b.store(y, (i,), b.load(x, (n,)))
    loop = statements(b)[-1]
    assert isinstance(loop.body[-1].then[0], Load)
    with b.loop(n) as i:  # may not turn at all
        b.store(y, (i,), b.load(x, (1,)))
    assert isinstance(statements(b)[-1].body[0], Load)


def test_constants_and_index_arithmetic_fold(b):
    i = b.load(Buffer("n", np.dtype("int64"), (), "input"), ())
    assert b.add(b.mul(i, 1), 0) is i
    assert b.add(b.add(i, 2), -2) is i
    assert b.mul(i, 0).value == 0 and b.rem(i, 1).value == 0
    assert b.add(b.const(2, I32), 3).value == 5
    assert b.select(b.const(True, bool), i, 7) is i


SUMS = [lambda s, x, c: s.add(x, c), lambda s, x, c: s.sub(x, c), lambda s, x, c: s.sub(c, x)]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("outer", range(3))
@pytest.mark.parametrize("inner", range(3))
def test_a_constant_beside_a_sum_with_a_constant_is_one_sum(outer, inner, dtype, b):
    limits, numpy = np.iinfo(dtype), NumpyScalars()
    every = np.arange(limits.min, limits.max + 1).astype(dtype)
    x = b.load(Buffer("x", np.dtype(dtype), (), "input"), ())
    for c, d in itertools.product((limits.min, limits.max, 1, 100), repeat=2):
        total = SUMS[outer](b, SUMS[inner](b, x, b.const(c, dtype)), b.const(d, dtype))
        expected = SUMS[outer](numpy, SUMS[inner](numpy, every, every.dtype.type(c)),
                               every.dtype.type(d))
        if total is x:
            assert (expected == every).all()
            continue
        let = b.lets[total]
        first, second = (every if each is x else each.value for each in let.args)
        assert (getattr(numpy, let.op)(first, second) == expected).all()


def test_adding_a_zero_keeps_the_sign_of_a_float_zero(b):
    x = b.load(Buffer("x", F32, (), "input"), ())
    assert b.sub(x, 0.0) is x
    assert b.add(x, 0.0) is not x and b.sub(x, -0.0) is not x


def test_unravelling_what_was_ravelled_costs_nothing(b):
    with b.loop(6) as i, b.loop(8) as j:
        position = b.ravel((i, j), (6, 8))
        assert b.unravel(position, (6, 8)) == (i, j)
        assert b.unravel(position, (6, 1, 8))[::2] == (i, j)
        deeper = b.unravel(position, (2, 3, 8))
        assert b.ravel(deeper, (2, 3, 8)) is position and deeper[2] is j


def test_a_flat_loop_never_divides(b):
    x, y = Buffer("x", F32, (6, 8), "input"), Buffer("y", F32, (6, 8), "output")
    with b.loop(48) as k:
        at = b.unravel(k, (6, 8))
        b.store(y, at, b.load(x, at))
    assert [type(st).__name__ for st in statements(b)[0].body] == ["Load", "Store"]


def test_sixteen_bit_floats_are_computed_wide(b):
    x = b.load(Buffer("x", np.dtype("float16"), (), "input"), ())
    b.mul(x, x)
    assert [st.op for st in statements(b)[1:]] == ["convert", "mul", "convert"]


def test_float64_becomes_float16_with_one_rounding():
    from tests.running_text import run_text

    b = Builder()
    values = np.array([1 + 2.0**-11 + 2.0**-30, 1 + 2.0**-11 - 2.0**-40, 65519.999, 1e300, np.nan,
                       -1.0, 5.9e-8, 0.0])
    x = Buffer("x", np.dtype("float64"), values.shape, "input")
    y = Buffer("y", np.dtype("float16"), values.shape, "output")
    with b.loop(values.size) as i:
        b.store(y, (i,), b.convert(b.load(x, (i,)), np.float16))
    kernel = Kernel("k", (x,), (y,), (), (), 0, {}, tuple(statements(b)))
    check_kernel(kernel)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run_text(kernel, [values])[0], values.astype(np.float16))


def test_turns_that_share_scratch_space_are_not_called_parallel(b):
    x = Buffer("x", F32, (3, 9000), "input")
    y = Buffer("y", F32, (3,), "output")
    with b.loop(3, vectorize="parallel") as i:
        b.store(y, (i,), b.accumulate("add", (9000,), lambda k: b.load(x, (i, k))))
    assert b.scopes[0].statements[0].vectorize == "apart"


@pytest.mark.parametrize("op", sorted({"add", "mul", "min", "max", "and", "or", "xor"}))
def test_every_accumulation_has_an_identity(op, b):
    for dtype in (np.dtype(d) for d in ("bool", "int8", "uint32", "float32")):
        if (dtype.kind == "f") and op in ("and", "or", "xor"):
            continue
        start = b.starting_value(op, dtype)
        meaning = OPS[op].meaning
        for x in np.array([0, 1, 1], dtype):
            assert meaning(start.value, x) == x
