"""A convolution of a dilated image is one of the image itself for each phase of its results."""

import itertools

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax.compiler import dilated_convolutions
from minijax.core.jaxpr import eval_jaxpr

LAST = ("NHWC", "HWIO", "NHWC")


def program_of(f, *args):
    """The program that replaces a convolution, as a function; None if none does."""
    [eqn] = minijax.make_jaxpr(f)(*args).eqns
    closed = dilated_convolutions.by_phases(eqn)
    return closed and (lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)[0])


def whole_numbers(*shapes):
    rng = np.random.default_rng(0)
    return [rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("apart", [2, 3])
def test_values_are_those_of_the_dilated_image(monkeypatch, size, apart):
    monkeypatch.setattr(dilated_convolutions, "MIN_PRODUCTS", 0)
    x, w = whole_numbers((2, 7, 3), (size, 3, 4))
    replaced = 0
    for padding in itertools.product(range(-2, 5), range(-2, 5)):
        def f(x, w, padding=padding):
            return lax.conv_general_dilated(
                x, w, (1,), [padding], lhs_dilation=(apart,),
                dimension_numbers=("NWC", "WIO", "NWC"))
        with minijax.disable_jit():
            wanted = f(x, w)
        if program := program_of(f, x, w):
            replaced += 1
            np.testing.assert_array_equal(program(x, w), wanted)
    np.testing.assert_array_equal(minijax.jit(f)(x, w), wanted)
    assert replaced > 40


@pytest.mark.parametrize("options", [
    {}, {"feature_group_count": 2}, {"batch_group_count": 2}, {"dimension_numbers": None}])
def test_several_axes_groups_and_layouts(monkeypatch, options):
    monkeypatch.setattr(dilated_convolutions, "MIN_PRODUCTS", 0)
    x, w = whole_numbers((2, 5, 6, 4), (3, 4, 4 // options.get("feature_group_count", 1), 6))
    if "dimension_numbers" in options:
        x, w = x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)

    def f(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), [(1, 2), (3, 0)], **{
            "lhs_dilation": (2, 3), "dimension_numbers": LAST, **options})
    with minijax.disable_jit():
        wanted = f(x, w)
    np.testing.assert_array_equal(program_of(f, x, w)(x, w), wanted)
    np.testing.assert_array_equal(minijax.jit(f)(x, w), wanted)


@pytest.mark.parametrize("dtype", ["int32", "float16", "complex64"])
def test_dtypes_and_that_of_the_result(monkeypatch, dtype):
    monkeypatch.setattr(dilated_convolutions, "MIN_PRODUCTS", 0)
    x, w = (x.astype(dtype) for x in whole_numbers((2, 7, 3), (4, 3, 4)))

    def f(x, w):
        return lax.conv_transpose(x, w, (2,), "SAME", preferred_element_type=dtype)
    with minijax.disable_jit():
        wanted = f(x, w)
    found = minijax.jit(f)(x, w)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_small_ones_and_those_with_strides_stay():
    x, w = whole_numbers((2, 7, 3), (4, 3, 4))
    assert program_of(lambda x, w: lax.conv_transpose(x, w, (2,), "SAME"), x, w) is None
    x, w = whole_numbers((64, 99, 32), (4, 32, 64))
    numbers = ("NWC", "WIO", "NWC")
    for options in ({"lhs_dilation": (2,), "window_strides": (3,)}, {"window_strides": (1,)},
                    {"lhs_dilation": (2,), "window_strides": (1,), "rhs_dilation": (2,)}):
        assert program_of(lambda x, w, options=options: lax.conv_general_dilated(
            x, w, padding=[(0, 0)], dimension_numbers=numbers, **options), x, w) is None
