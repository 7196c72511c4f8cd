"""Products of integers: sums of blocks that wrap around as NumPy's do, of every width."""

import numpy as np
import pytest

import minijax
from minijax import lax

ALL = "int8", "uint8", "int16", "uint16", "int32", "uint32", "bool"
SHAPES = {  # whose axes are summed, and which are of a batch
    "square": ((33, 40), (40, 37), (((1,), (0,)), ((), ()))),
    "an odd number of terms": ((20, 31), (31, 16), (((1,), (0,)), ((), ()))),
    "rows by rows": ((19, 35), (23, 35), (((1,), (1,)), ((), ()))),
    "columns by columns": ((600, 9), (600, 8), (((0,), (0,)), ((), ()))),
    "two axes": ((9, 5, 7), (7, 5, 30), (((2, 1), (0, 1)), ((), ()))),
    "a batch": ((3, 17, 9), (9, 3, 20), (((2,), (0,)), ((0,), (1,)))),
    "more terms than a group": ((3, 9001), (9001, 2), (((1,), (0,)), ((), ()))),
    "a row": ((1, 300), (300, 40), (((1,), (0,)), ((), ()))),
}


def drawn(shape, dtype):
    if dtype == "bool":
        return np.random.default_rng(0).random(shape) < 0.1
    ends = np.iinfo(dtype)
    return np.random.default_rng(0).integers(ends.min, ends.max, shape, dtype, endpoint=True)


def summed(x, y, dimensions, dtype):
    (one, other), (batch, _) = dimensions
    if batch:
        return np.stack([x[k] @ y[:, k] for k in range(len(x))]).astype(dtype)
    return np.tensordot(x, y, (one, other)).astype(dtype)


@pytest.mark.parametrize(("given", "dtype"), [*((each, each) for each in ALL),
                                              *((each, "int32") for each in ALL)])
@pytest.mark.parametrize("shapes", SHAPES)
def test_a_product_of_integers_keeps_the_bits_that_it_has_room_for(given, dtype, shapes):
    left, right, dimensions = SHAPES[shapes]
    x, y = drawn(left, given), drawn(right, given)
    found = minijax.jit(lambda x, y: lax.dot_general(
        x, y, dimensions, preferred_element_type=dtype))(x, y)
    expected = summed(x.astype(np.int64), y.astype(np.int64), dimensions, dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("given", ["int64", "uint64", "int8", "int16"])
def test_a_product_wraps_around_at_64_bits_only_if_it_has_them(given):
    with minijax.enable_x64(True):
        x, y = drawn((20, 40), given), drawn((40, 17), given)
        wide = np.dtype("uint64" if given == "uint64" else "int64")
        found = minijax.jit(lambda x, y: minijax.numpy.matmul(
            x, y, preferred_element_type=wide))(x, y)
        np.testing.assert_array_equal(found, x.astype(wide) @ y.astype(wide))


def test_the_least_int16_squared_twice_wraps_around():
    x = np.full((16, 64), -1 << 15, np.int16)
    found = minijax.jit(lambda x: minijax.numpy.dot(x, x.T, preferred_element_type=np.int32))(x)
    wide = x.astype(np.int32)
    np.testing.assert_array_equal(found, wide @ wide.T)


@pytest.mark.parametrize("given", ["int8", "int16", "int32", "uint8"])
@pytest.mark.parametrize("layout", [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC")])
@pytest.mark.parametrize("preferred", [None, np.int32])
def test_a_convolution_of_integers_is_the_sum_of_shifted_products(given, layout, preferred):
    x, w = drawn((2, 9, 10, 8), given), drawn((8, 3, 3, 12), given)
    wide = sum(np.einsum("nhwc,co->nhwo", x[:, i:i + 7, j:j + 8].astype(np.int64),
                         w[:, i, j].astype(np.int64)) for i in range(3) for j in range(3))
    w = w.transpose(1, 2, 0, 3)
    if layout[0] == "NCHW":
        x, w, wide = x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), wide.transpose(0, 3, 1, 2)
    found = minijax.jit(lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), "VALID", dimension_numbers=layout, preferred_element_type=preferred))(x, w)
    np.testing.assert_array_equal(found, wide.astype(preferred or given))
