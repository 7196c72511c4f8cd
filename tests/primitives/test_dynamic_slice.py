"""Windows at traced places agree with JAX, inside and outside the operand."""

import numpy as np
import pytest

import minijax
from minijax import lax

X = np.arange(12, dtype=np.float32).reshape(3, 4)
V = np.arange(5, dtype=np.int32)
I32 = np.int32


@pytest.mark.parametrize("f", [
    lambda lax: lax.dynamic_slice(X, (1, 1), (2, 2)),
    lambda lax: lax.dynamic_slice(X, (-1, 9), (1, 3)),
    lambda lax: lax.dynamic_slice(V, np.array([2]), (2,)),
    lambda lax: lax.dynamic_slice(V, (np.uint8(255),), (2,)),
    lambda lax: lax.dynamic_slice(V, (np.int8(-128),), (2,)),
    lambda lax: lax.dynamic_slice(V, (-3,), (1,)),
    lambda lax: lax.dynamic_slice_in_dim(X, 2, 2, axis=1),
    lambda lax: lax.dynamic_index_in_dim(V, -1, keepdims=False),
    lambda lax: lax.dynamic_update_slice(X, X[:1, :2] + 50, (9, 1)),
    lambda lax: lax.dynamic_update_slice(V, V[:0], (0,)),
    lambda lax: lax.dynamic_update_slice_in_dim(V, V[:2] + 50, -2, 0),
    lambda lax: lax.dynamic_update_index_in_dim(V, I32(50), 2, 0),
    lambda lax: lax.dynamic_update_index_in_dim(X, X[0] + 50, 7, 0),
])
def test_results_are_those_of_jax(agrees, f):
    agrees(f)


@pytest.mark.parametrize("f", [
    lambda lax: lax.dynamic_slice(V, (1, 2), (1,)),
    lambda lax: lax.dynamic_slice(V, (1.0,), (1,)),
    lambda lax: lax.dynamic_slice(X, (1, np.int16(0)), (1, 1)),
    lambda lax: lax.dynamic_slice(V, (-1,), (1,), allow_negative_indices=False),
    lambda lax: lax.dynamic_update_slice(X, X.astype(I32), (0, 0)),
    lambda lax: lax.dynamic_update_slice(V, X, (0,)),
])
def test_errors_are_those_of_jax(agrees, f):
    agrees(f)


def test_a_window_larger_than_the_operand_is_refused():
    with pytest.raises(TypeError, match="slice_sizes must be less than or equal to operand"):
        lax.dynamic_slice(V, (0,), (9,))


@pytest.mark.parametrize("start", [-(2**31), -6, -1, 0, 3, 5, 2**31 - 1])
def test_compiled_windows_never_leave_the_operand(start):
    read = minijax.jit(lambda v, i: lax.dynamic_slice(v, (i,), (2,)))
    write = minijax.jit(lambda v, i: lax.dynamic_update_slice(v, v[:2] * 0 - 1, (i,)))
    for f in (read, write):
        with minijax.disable_jit():
            wanted = np.asarray(f(V, I32(start)))
        np.testing.assert_array_equal(np.asarray(f(V, I32(start))), wanted)


def test_unsigned_starts_too_large_for_any_signed_type_stop_at_the_end():
    with minijax.enable_x64(True):
        found = lax.dynamic_slice(V, (np.uint64(2**64 - 1),), (1,))
    assert np.asarray(found) == [4]


def test_each_example_of_a_batch_reads_at_its_own_place():
    starts = np.array([0, 3, 9], I32)
    got = minijax.vmap(lambda i: lax.dynamic_slice(V, (i,), (2,)))(starts)
    np.testing.assert_array_equal(np.asarray(got), [[0, 1], [3, 4], [3, 4]])
