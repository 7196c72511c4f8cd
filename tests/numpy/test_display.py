"""Arrays show themselves as JAX's do, character for character."""
import gc
import sys

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp


ARRAYS = ["jnp.arange(3)", "jnp.asarray(2.5)", "jnp.float32(1)", "jnp.zeros((0, 3))",
          "jnp.arange(2000)", "jnp.ones((3, 4, 50))", "jnp.array([1, 2], 'bfloat16')",
          "jnp.array(True)", "jnp.array(1 + 2j)", "jnp.arange(30.)", "jnp.arange(100.) / 8",
          "jnp.array([1e-10, 1e10])", "jnp.array([jnp.nan, jnp.inf])", "jnp.eye(3)",
          "jnp.array([[True, False]])", "jnp.full((2, 2), 1e-3)", "jnp.array([], int)",
          "jnp.arange(12, dtype='uint8').reshape(3, 4)", "jnp.zeros(13) + 1234.5678",
          "jnp.array([0.1, 0.25], 'float16')", "jnp.asarray([1, 2]) * 1.5"]


@pytest.mark.parametrize("expression", ARRAYS)
def test_repr_and_str_are_those_of_jax(expression):
    ours, theirs = (eval(expression, {"jnp": top.numpy}) for top in (minijax, jax))
    assert repr(ours) == repr(theirs)
    assert str(ours) == str(theirs)
    assert f"{ours}" == f"{theirs}"


def test_others_read_the_memory_of_an_array_as_they_read_jaxs():
    for dtype in ("float32", "int32", "bool", "complex64", "uint8", "float16"):
        ours, theirs = (top.numpy.ones((2, 3), dtype) for top in (minijax, jax))
        assert bytes(ours.__buffer__(0)) == bytes(theirs) and ours.__buffer__(0).readonly
        if sys.version_info >= (3, 12):  # where Python asks classes written in it
            assert bytes(memoryview(ours)) == bytes(theirs)
    deleted = jnp.ones(2)
    deleted.delete()
    for x, kind in ((minijax.random.key(0), TypeError), (deleted, BufferError),
                    (jnp.ones(2, "bfloat16"), BufferError), (jnp.ones(2, "int4"), BufferError)):
        with pytest.raises(kind):
            x.__buffer__(0)
    with pytest.raises(TypeError, match="a bytes-like object is required"):
        minijax.jit(lambda x: x.__buffer__(0))(1.0)


def test_repr_follows_the_print_options_of_numpy():
    for options in ({"precision": 3}, {"linewidth": 40}, {"threshold": 5}, {"suppress": True}):
        with np.printoptions(**options):
            ours, theirs = (top.numpy.arange(20) / 8 for top in (minijax, jax))
            assert repr(ours) == repr(theirs)


def test_keys_show_as_on_the_page_of_sharp_bits():
    assert repr(minijax.random.key(0)) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert str(minijax.random.key(0)) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"


def test_keys_are_no_numbers():
    with pytest.raises(TypeError, match="key_data"):
        np.asarray(minijax.random.key(0))


def test_tracers_show_as_on_the_page_of_sharp_bits():
    seen = []
    minijax.jit(lambda x: seen.append((str(x), f"{x}")))(2)
    text = "Traced<ShapedArray(int32[], weak_type=True)>with<DynamicJaxprTrace(level=1/0)>"
    assert seen == [(text, text)]


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
    gc.collect(0)  # a full one would search all that the tests hold
    np.testing.assert_array_equal(np.asarray(back), numbers.astype(dtype))


def test_bfloat16_goes_to_itself_and_not_to_numpy():
    x = jnp.asarray([1.5, -2.0], "bfloat16")
    np.testing.assert_array_equal(np.asarray(jnp.from_dlpack(x)), np.asarray(x))
    for kind in (x, jax.numpy.asarray([1.5], "bfloat16")):
        with pytest.raises((RuntimeError, BufferError), match="Unsupported dtype"):  # NumPy 2.5
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
