"""Maxima of floats, found as maxima of unsigned integers in the same order."""

import numpy as np
import pytest

from minijax import jit, lax, numpy as jnp
from minijax.compiler.arithmetic import Arithmetic
from minijax.compiler.integer_order import key_of, number_of, order_as_integers
from minijax.compiler.loops import Let, walk

NUMBERS = [-np.inf, -3e38, -1.5, -1e-40, -0., 0., 1e-40, 2.5, 3e38, np.inf, np.nan]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keys_are_in_the_order_of_the_numbers_with_nan_last(dtype):
    s, numbers = Arithmetic(), [dtype(x) for x in [*NUMBERS, -np.nan]]
    keys = [key_of(s, s.const(x, x.dtype), "max").value for x in numbers]
    assert keys == sorted({*keys})
    with_minus = [key_of(s, s.const(-x, x.dtype), "min").value for x in numbers]
    assert keys == with_minus


@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("x", [np.float32(x) for x in NUMBERS])
def test_a_key_gives_its_number_back(x, op):
    s = Arithmetic()
    back = number_of(s, key_of(s, s.const(x, x.dtype), op), op, x.dtype).value
    assert back.tobytes() == x.tobytes() or np.isnan(back) and np.isnan(x)


def loops_of(f, *args):
    return list(walk(order_as_integers(jit(f).lower(*args)._lowered.kernel.body)))


def test_extrema_of_a_loop_are_those_of_integers_but_not_where_the_value_so_far_is_used():
    def extrema(f):
        return [each.target.dtype.kind for each in loops_of(f, np.ones((50, 40), np.float32))
                if isinstance(each, Let) and each.op in ("min", "max")]

    assert extrema(lambda x: (x.max(1), x.min(1))) == ["u", "u"]
    assert {*extrema(lambda x: lax.cummax(x, 1))} == {"f"}


@pytest.mark.parametrize("n", [3, 4, 10, 15, 16, 17, 33, 47, 64, 100, 333])
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "ptp", "any", "all"])
def test_short_and_long_rows_have_the_results_of_numpy(name, n):
    rng = np.random.default_rng(n)
    x = rng.normal(size=(200, n)).astype(np.float32)
    x[rng.random(x.shape) < .3] = 0
    x[::3, rng.integers(n)] = -0.
    if name != "ptp":
        x[::7, rng.integers(n)], x[1::7, rng.integers(n)] = np.nan, -np.nan
    x[2::7], x[3::7] = -np.inf, np.inf
    with np.errstate(invalid="ignore"):
        expected = getattr(np, name)(x, axis=1)
    found = np.asarray(jit(lambda x: getattr(jnp, name)(x, axis=1))(x))
    np.testing.assert_array_equal(found, expected)
    if name in ("max", "min"):  # NumPy's zero may have either sign
        has_zero = (x == 0) & (np.signbit(x) == (name == "min"))
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(found[zeros]) == (name == "min"),
                                      has_zero.any(1)[zeros])


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int16, np.int32, np.float16])
@pytest.mark.parametrize("n", [5, 64, 77])
def test_truth_of_rows_of_every_width(dtype, n):
    x = np.zeros((100, n), dtype)
    x[np.arange(0, 100, 2), np.arange(50) % n] = 1
    some, none, beside_a_sum = jit(
        lambda x: (x.any(1), (x == 0).all(1), x.any(1) & (x.sum(1) > 0)))(jnp.asarray(x))
    np.testing.assert_array_equal(some, x.any(1))
    np.testing.assert_array_equal(none, ~x.any(1))
    np.testing.assert_array_equal(beside_a_sum, x.any(1))
