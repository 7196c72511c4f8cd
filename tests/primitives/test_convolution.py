"""Convolutions of every kind, beside JAX's: values, derivatives, batches, errors."""

import jax
import numpy as np
import pytest

import minijax
from minijax import lax
from minijax.primitives.convolution import conv_general_dilated_p

def same(f):
    close(*(f(module) for module in (lax, jax.lax)))


EXAMPLES = conv_general_dilated_p.examples()
X, W = (np.random.default_rng(i).normal(size=shape).astype(np.float32)
        for i, shape in enumerate([(2, 3, 5, 5), (4, 3, 2, 2)]))


def of(library, params):
    names = library.lax.ConvDimensionNumbers(*params["dimension_numbers"])
    return lambda x, w: library.lax.conv_general_dilated(
        x, w, **{**params, "dimension_numbers": names})


def close(found, wanted):
    found, wanted = (np.asarray(x, float) for x in (found, wanted))
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=2e-4 * (1 + abs(wanted).max(
        initial=0)))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: "x".join(map(str, e.args[0].shape)))
def test_values_and_derivatives_are_those_of_jax(example, beside_jax):
    x, w = example.args
    programs = [lambda library, f: library.jit(f)(x, w)]
    if x.dtype.kind == "f":
        programs += [lambda library, f: library.jit(library.grad(
            lambda x, w: (f(x, w) ** 2).sum(), (0, 1)))(x, w)]
    for program in programs:
        found, wanted = beside_jax(
            lambda library: jax.tree.leaves(program(library, of(library, example.params))))
        for one, other in zip(found, wanted, strict=True):
            close(one, other)


@pytest.mark.parametrize("axes", [(1, None), (None, 2), (1, 2)], ids=str)
@pytest.mark.parametrize("example", [EXAMPLES[i] for i in (3, 5, 6)], ids=["plain", "features",
                                                                          "batches"])
def test_batches_are_those_of_jax(example, axes, beside_jax):
    x, w = (x if d is None else np.stack([x, 2 * x - 1], d)
            for x, d in zip(example.args, axes, strict=True))
    close(*beside_jax(lambda library: library.vmap(of(library, example.params), axes)(x, w)))


@pytest.mark.parametrize("strides", [1, 2, 3, 5])
@pytest.mark.parametrize("padding", ["SAME", "VALID", [(0, 2)]], ids=str)
def test_transposed_ones_are_those_of_jax(padding, strides):
    x, w = X[0].reshape(1, 25, 3), W[:, :, 0].reshape(2, 3, 4)
    for options in ({}, {"use_consistent_padding": True}, {"rhs_dilation": (2,)}):
        same(lambda lax, options=options: lax.conv_transpose(
            x, w, (strides,), padding, **options))
    same(lambda lax: lax.conv_transpose(
        x, w.reshape(2, 4, 3), (strides,), padding, transpose_kernel=True))


LAST = ("NHWC", "HWIO", "NHWC")


def test_patches_and_weights_of_each_place_are_those_of_jax():
    for numbers in (None, LAST):
        for options in ({}, {"rhs_dilation": (2, 1)}):
            same(lambda lax, n=numbers, o=options: lax.conv_general_dilated_patches(
                X, (2, 2), (1, 2), "SAME", dimension_numbers=n, **o))
    w = np.sin(np.arange(4 * 12 * 16, dtype=np.float32)).reshape(4, 12, 4, 4)
    same(lambda lax: lax.conv_general_dilated_local(X, w, (1, 1), "VALID", (2, 2)))
    same(lambda lax: lax.conv_general_dilated_local(
        X.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), (1, 1), "VALID", (2, 2),
        dimension_numbers=LAST))


@pytest.mark.parametrize("call", [
    lambda lax: lax.conv(X, W[:, :2], (1, 1), "SAME"),
    lambda lax: lax.conv(X, W, (1,), "SAME"), lambda lax: lax.conv(X, W, (1, 1), "FOO"),
    lambda lax: lax.conv(X, W.astype(np.float16), (1, 1), "SAME"),
    lambda lax: lax.conv_general_dilated(X, W, (1, 1), [(0, 0)]),
    lambda lax: lax.conv_general_dilated(X, W, (1, 1), "SAME", feature_group_count=3),
    lambda lax: lax.conv_general_dilated(X, W[:3, :1], (1, 1), "SAME", feature_group_count=2),
    lambda lax: lax.conv_general_dilated(X, W, (1, 1), "SAME", feature_group_count=0),
    lambda lax: lax.conv_general_dilated(X, W, (1, 1), "SAME", batch_group_count=3),
    lambda lax: lax.conv_general_dilated(X, W[:3], (1, 1), "SAME", batch_group_count=2),
    lambda lax: lax.conv_general_dilated(X, W, (1, 1), "SAME", dimension_numbers=LAST),
    lambda lax: lax.conv_general_dilated(X, W, (1, 1), "SAME", dimension_numbers=(
        "NCHH", "OIHW", "NCHW")),
    lambda lax: lax.conv_general_dilated(X, W, (1, 1), "SAME", dimension_numbers=(
        "NCH", "OIHW", "NCHW")),
    lambda lax: lax.conv_general_dilated(X, W, (1, 1), "SAME", lhs_dilation=(2, 1)),
    lambda lax: lax.conv_general_dilated(X, W[0], (1, 1), "SAME"),
    lambda lax: lax.conv_dimension_numbers(X.shape, W.shape, 3),
    lambda lax: lax.padtype_to_pads((5, 5), (3, 3), (2, 1), "x"),
    lambda lax: lax.padtype_to_pads((5, 5), (3, 3), (2, 1), 3)])
def test_what_does_not_fit_is_refused_in_jaxs_words(call, agrees):
    agrees(call)


def test_shapes_are_those_of_jax():
    shapes = (1, 5, 5, 2), (3, 3, 2, 4)
    for kind in ("general", "transpose"):
        for padding in ("VALID", "SAME", [(1, 0), (0, 2)]):
            found, wanted = (getattr(module, f"conv_{kind}_shape_tuple")(
                *shapes, (1, 2), padding, LAST) for module in (lax, jax.lax))
            assert found == wanted


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_no_convolutions_at_all_have_the_shape_of_jaxs(axes, beside_jax):
    x, w = (np.ones((0, n) if axis == 0 else n, np.float32)
            for n, axis in zip((5, 3), axes, strict=True))
    for map_of in (lambda lib: lambda f: lib.vmap(f, axes),
                   lambda lib: lambda f: lib.jit(lib.vmap(f, axes)),
                   lambda lib: lambda f: lib.vmap(lib.grad(lambda x, w: f(x, w).sum()), axes)):
        ours, theirs = beside_jax(lambda lib: map_of(lib)(lib.numpy.convolve)(x, w))
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float16", "float32"])
@pytest.mark.parametrize("wanted", ["int8", "int32", "float16", "float32"])
def test_a_preferred_type_is_taken_or_refused_as_in_jax(dtype, wanted, jax_says):
    def types(lib):
        x = lib.numpy.ones((1, 1, 3), dtype)
        for f in (lambda: lib.numpy.convolve(x[0, 0], x[0, 0], preferred_element_type=wanted),
                  lambda: lib.lax.conv(x, x, (1,), "VALID", preferred_element_type=wanted),
                  lambda: lib.lax.dot(x[0, 0], x[0, 0], preferred_element_type=wanted)):
            try:
                yield str(f().dtype)
            except TypeError as error:
                yield str(error)

    assert list(types(minijax)) == jax_says(lambda: list(types(jax)))


LONG = {  # image and kernel as in NHWC, HWIO, groups
    "filter": ((1, 9, 9, 1), (5, 5, 1, 1), 1), "to one": ((2, 7, 7, 8), (3, 3, 8, 1), 1),
    "to three": ((2, 6, 6, 5), (3, 3, 5, 3), 1), "points": ((4, 6, 6, 16), (1, 1, 16, 1), 1),
    "of few": ((2, 7, 7, 3), (3, 3, 3, 2), 1), "depthwise": ((2, 6, 6, 8), (3, 3, 1, 8), 8),
    "groups": ((2, 6, 6, 8), (3, 3, 2, 12), 4)}
WAYS = [{}, {"padding": "SAME"}, {"padding": [(2, 0), (-1, 3)]}, {"window_strides": (2, 1)},
        {"lhs_dilation": (2, 1), "padding": [(1, 2), (0, 0)]},
        {"rhs_dilation": (1, 2), "padding": "SAME"}]


@pytest.mark.parametrize("is_last", [True, False])
@pytest.mark.parametrize("name", LONG)
def test_long_ones_are_those_of_jax_however_few_features_they_have(name, is_last, beside_jax):
    shape, kernel, groups = LONG[name]
    rng = np.random.default_rng(0)
    for way in WAYS:
        for dtype in ("float32", "float16", "int32")[:3 if "padding" in way else 1]:
            x, w = (rng.integers(-3, 4, size).astype(dtype) for size in (shape, kernel))
            if not is_last:
                x, w = x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)
            options = {"window_strides": (1, 1), "padding": "VALID", "feature_group_count": groups,
                       "dimension_numbers": LAST if is_last else None, **way}

            def program(library, x=x, w=w, options=options, is_float=dtype == "float32"):
                def f(x, w):
                    return library.lax.conv_general_dilated(x, w, **options)
                return library.jit(f)(x, w), *(library.jit(library.grad(
                    lambda x, w: (f(x, w) ** 2).sum(), (0, 1)))(x, w) if is_float else ())
            for found, wanted in zip(*beside_jax(program), strict=True):
                close(found, wanted)
