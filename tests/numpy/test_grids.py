"""What is written in brackets gives what NumPy gives."""

import numpy as np
import pytest

import minijax.numpy as jnp


@pytest.mark.parametrize("key", [np.s_[0:3], np.s_[:3, 1:4], np.s_[0:1:3j, 0:4:2]], ids=str)
@pytest.mark.parametrize("name", ["mgrid", "ogrid"])
def test_grids_are_numpys(name, key):
    ours, theirs = getattr(jnp, name)[key], getattr(np, name)[key]
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
