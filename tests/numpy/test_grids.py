"""What is written in brackets gives what NumPy gives."""

import numpy as np
import pytest

import minijax.numpy as jnp


@pytest.mark.parametrize("key", [np.s_[()], np.s_[:4,], np.s_[0:3], np.s_[:3, 1:4],
                                 np.s_[0:1:3j, 0:4:2]], ids=str)
@pytest.mark.parametrize("name", ["mgrid", "ogrid"])
def test_grids_are_numpys(name, key):
    ours, theirs = getattr(jnp, name)[key], getattr(np, name)[key]
    assert name == "ogrid" or ours.shape == theirs.shape
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x, y)


@pytest.mark.parametrize("key", [
    np.s_[1:4, 7], np.s_[[1, 2], [3]], np.s_["1", np.ones((2, 1)), np.zeros((2, 2))],
    np.s_["0,2", [1, 2], [3, 4]], np.s_["0,2,0", [1, 2], [3, 4]], np.s_["r", [1, 2], [3]],
    np.s_["c", [1, 2], [3]], np.s_[0:1:3j]], ids=str)
@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("name", ["r_", "c_"])
def test_rows_and_columns_are_numpys(name, key):
    try:
        theirs = np.asarray(getattr(np, name)[key])
    except ValueError:
        with pytest.raises((ValueError, TypeError)):
            getattr(jnp, name)[key]
        return
    np.testing.assert_allclose(getattr(jnp, name)[key], theirs)


def test_a_text_after_the_first_is_refused():
    with pytest.raises(ValueError, match="placed at the beginning"):
        jnp.r_[1, "0"]
    with pytest.raises(ValueError, match="could not understand directive 'x'"):
        jnp.r_["x", 1]


def test_a_place_as_one_number_and_back():
    flat = jnp.arange(24)
    places = jnp.unravel_index(flat, (2, 3, 4))
    np.testing.assert_array_equal(jnp.ravel_multi_index(places, (2, 3, 4)), flat)


PLACES = ("7", "p", "w", "u", "b", "v", "jnp.int32([7, -7, -1, 0, 5])", "jnp.uint8([7, 255])")
SHAPES = ("(2, 3)", "(2, 0)", "(0, 2)", "()", "5", "(-2, 2)", "(2, 2.5)", "(np.int16(2), 3)",
          "jnp.int16([2, 3])", "np.float32([2, 3])", "(100, 100)", "f")


@pytest.mark.parametrize("expression", [
    "jax.jit(lambda n: jnp.unravel_index(p, (n, 3)))(2)",
    *(f"jnp.unravel_index({x}, {shape})" for x in PLACES for shape in SHAPES),
    *(f"jnp.ravel_multi_index({x}, {shape}, mode='{mode}')"
      for x in ("(p, p)", "(p, w)", "(u[0], p)", "(2, p)", "(1, 2)", "(lax.full((2,), 1), 2)")
      for shape in ("(4, 4)", "(4, 0)", "(np.int64(3), np.int8(4))", "(9, 20)", "(4., 4)")
      for mode in ("wrap", "clip", "ignore")),
    "jnp.ravel_multi_index((), ())", "jnp.ravel_multi_index((k, k), (4, 4), dtype='int8')",
    "jnp.ravel_multi_index((k, k), (4, 4), dtype='float32')",
    "jnp.ravel_multi_index((k, k), (4, 4))",
    "jnp.ravel_multi_index((k, k), (4, 5), order='F')", "jnp.ravel_multi_index((v, k), (4, 4))",
])
def test_places_as_one_number_or_several_are_jaxs(agrees_with_jax, agrees_with_64_bits, expression):
    agrees_with_jax(expression)
    agrees_with_64_bits(expression)
