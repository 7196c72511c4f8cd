"""What NumPy writes in place comes back as a new array."""

import numpy as np
import pytest

import minijax.numpy as jnp


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_put_is_numpys(mode):
    x, places = np.arange(6.).reshape(2, 3), np.array([0, 8, 3])
    ours = jnp.put(x, places, np.array([7., 8.]), mode, inplace=False)
    np.put(x, places, [7., 8.], mode)
    np.testing.assert_array_equal(ours, x)


@pytest.mark.parametrize("name, args", [("put", ([0], 1)), ("place", ([True], 1)),
                                        ("put_along_axis", ([0], 1, 0))])
def test_nothing_is_written_in_place(name, args):
    with pytest.raises(ValueError, match="immutable. Pass inplace=False"):
        getattr(jnp, name)(jnp.zeros(3), *map(np.asarray, args[:-1]), args[-1])


@pytest.mark.parametrize("where", [1, -1, [0, 2], [3], slice(0, 3, 2)], ids=str)
def test_insert_is_numpys(where):
    x = np.arange(8.).reshape(4, 2)
    ours = jnp.insert(x, where if isinstance(where, slice) else np.array(where), 9., axis=0)
    np.testing.assert_array_equal(ours, np.insert(x, where, 9., axis=0))


def test_blocks_are_numpys():
    a, b = np.ones((2, 2)), np.zeros((2, 1))
    rows = [[a, b], [np.ones(3)]]
    np.testing.assert_array_equal(jnp.block(rows), np.block(rows))
    for wrong in ([], (a, b), [[a], b]):
        with pytest.raises(ValueError, match=r"jax.numpy.block"):
            jnp.block(wrong)
