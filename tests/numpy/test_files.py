"""Arrays go into files and come back."""

import io

import numpy as np
import pytest

import minijax.numpy as jnp


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool"])
def test_what_was_saved_is_loaded(dtype):
    x = jnp.arange(3).astype(dtype)
    file = io.BytesIO()
    jnp.save(file, x)
    file.seek(0)
    found = jnp.load(file)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, x)


def test_several_arrays_of_a_file_have_names():
    file = io.BytesIO()
    jnp.savez(file, a=jnp.ones(2))
    file.seek(0)
    np.testing.assert_array_equal(jnp.load(file)["a"], np.ones(2))
