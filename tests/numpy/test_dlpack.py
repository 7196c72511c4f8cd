"""DLPack: what is handed over has the same numbers and type, with NumPy and with JAX."""

import gc

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax.numpy as jnp

DTYPES = "bool int8 uint16 int32 float16 bfloat16 float32 complex64".split()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2), (400, 400)], ids=str)
def test_arrays_go_to_jax_and_come_back(dtype, shape):
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 100
    ours = jnp.asarray(numbers.astype(dtype))
    theirs = jax.numpy.from_dlpack(ours)
    assert theirs.dtype == ours.dtype
    np.testing.assert_array_equal(np.asarray(theirs), np.asarray(ours))
    back = jnp.from_dlpack(theirs)
    assert back.dtype == ours.dtype and back.shape == ours.shape
    np.testing.assert_array_equal(np.asarray(back), np.asarray(ours))
    del ours, theirs
    gc.collect()
    np.testing.assert_array_equal(np.asarray(back), numbers.astype(dtype))


def test_bfloat16_goes_to_itself_and_not_to_numpy():
    x = jnp.asarray([1.5, -2.0], "bfloat16")
    np.testing.assert_array_equal(np.asarray(jnp.from_dlpack(x)), np.asarray(x))
    for kind in (x, jax.numpy.asarray([1.5], "bfloat16")):
        with pytest.raises(RuntimeError, match="Unsupported dtype"):
            np.from_dlpack(kind)
    with pytest.raises(BufferError):
        jnp.from_dlpack(np.ones(3, ml_dtypes.bfloat16))


def test_who_asks_in_the_old_way_gets_memory_of_its_own():
    class Old:
        def __init__(self, x):
            self.x = x

        def __dlpack__(self):
            return self.x.__dlpack__()

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    x = jnp.asarray([1.0, 2.0], "bfloat16")
    assert jnp.from_dlpack(Old(x)).tolist() == [1.0, 2.0]
    assert np.from_dlpack(Old(jnp.ones(2))).tolist() == [1, 1]
