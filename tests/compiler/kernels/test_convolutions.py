"""Convolutions as matrix products, beside the sums of shifted products that define them."""

import itertools
import math

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax.compiler.kernels import convolutions

# Images, features, size, outputs, window: windows are smaller than images, or nearly as large, as
# in derivatives by weights.
SIZES = {
    "an image": (1, 5, (9, 8), 6, (3, 3)),
    "images of one place": (33, 6, (4, 5), 7, (4, 5)),
    "large windows": (5, 20, (19, 13), 6, (17, 12)),
    "large windows of many features": (3, 70, (7, 9), 9, (5, 7)),
    "long lines": (4, 2, (3, 1100), 5, (2, 1098)),
    "many sums": (3, 5, (52, 50), 4, (50, 50)),
    "one axis": (6, 12, (300,), 8, (290,)),
    "an image without axes": (1, 30, (), 40, ()),
}
LAYOUTS = {0: [("NC", "IO", "NC"), ("NC", "OI", "NC"), ("CN", "IO", "CN")],
           1: [("NWC", "WIO", "NWC"), ("NCW", "OIW", "NCW"), ("CWN", "IWO", "WNC")],
           2: [("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW"), ("CHWN", "IHWO", "HWNC")]}


def sum_of_products(x, w, strides, dilation, groups):
    """By definition, of (images, features, *places) and (outputs, features, *window)."""
    places = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(
        x.shape[2:], w.shape[2:], strides, dilation, strict=True)]
    shape = groups, len(w) // groups, *w.shape[1:]
    total = np.zeros((len(x), len(w), *places))
    for offset in itertools.product(*map(range, w.shape[2:])):
        at = tuple(slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, n, s in zip(
            offset, dilation, places, strides, strict=True))
        part = x[(slice(None), slice(None), *at)].reshape(len(x), groups, shape[2], -1)
        weights = w.reshape(shape)[(..., *offset)]
        total += np.einsum("ngfp,gof->ngop", part, weights).reshape(total.shape)
    return total


def transposed(x, given, wanted):
    return x.transpose([given.index(axis) for axis in wanted])


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("layout", range(3))
@pytest.mark.parametrize("groups, strides", [(1, 1), (2, 1), (1, 2)])
def test_values_are_the_sums_that_define_them(sizes, layout, groups, strides):
    images, features, size, outputs, window = SIZES[sizes]
    names, spatial = LAYOUTS[len(size)][layout], "HW"[2 - len(size):]
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (images, features * groups, *size)).astype(np.float32)
    w = rng.integers(-3, 4, (outputs * groups, features, *window)).astype(np.float32)
    options = {"window_strides": (strides,) * len(size), "rhs_dilation": (1,) * len(size)}
    if sizes == "an image":
        options["rhs_dilation"] = (1, 2)
    wanted = sum_of_products(x.astype(float), w.astype(float), *options.values(), groups)
    found = minijax.jit(lambda x, w: lax.conv_general_dilated(
        x, w, padding="VALID", dimension_numbers=names, feature_group_count=groups, **options))(
            transposed(x, "NC" + spatial, names[0]), transposed(w, "OI" + spatial, names[1]))
    np.testing.assert_array_equal(transposed(np.asarray(found), names[2], "NC" + spatial), wanted)


@pytest.mark.parametrize("layout", range(3))
@pytest.mark.parametrize("options", [
    {}, {"window_strides": (2, 1)}, {"rhs_dilation": (1, 2)}, {"feature_group_count": 2},
    {"batch_group_count": 3}])
def test_derivatives_by_weights_are_sums_of_shifted_products(layout, options, monkeypatch):
    names = LAYOUTS[2][layout]
    x, w = np.random.default_rng(0).integers(-3, 4, (12, 4, 11, 13)).astype(np.float32), np.zeros(
        (6, 4 // options.get("feature_group_count", 1), 3, 3), np.float32)
    x, w = transposed(x, "NCHW", names[0]), transposed(w, "OIHW", names[1])
    plans, products = [], convolutions._Convolution.products
    monkeypatch.setattr(convolutions._Convolution, "products", lambda self: (
        plans.append(self), products(self)))

    def derivative(x, w):
        f = lambda w: lax.conv_general_dilated(x, w, dimension_numbers=names, **{
            "window_strides": (1, 1), "padding": "SAME", **options})
        out, pull = minijax.vjp(f, w)
        return pull(out + minijax.numpy.arange(math.prod(out.shape), dtype=np.float32).reshape(
            out.shape) % 5 - 2)[0]
    with minijax.disable_jit():
        wanted = derivative(x, w)
    np.testing.assert_array_equal(minijax.jit(derivative)(x, w), wanted)
    assert any(plan.by_parts for plan in plans)
