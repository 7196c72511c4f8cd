"""Updates by functions against `x.at`, and segments against JAX."""

import itertools

import jax
import jax.numpy as their_np
import jax.ops as theirs
import numpy as np
import pytest

import minijax
from minijax import errors, ops, numpy as jnp

UPDATES = {"index_update": "set", "index_add": "add", "index_mul": "multiply",
           "index_min": "min", "index_max": "max"}
SEGMENTS = ["segment_sum", "segment_prod", "segment_max", "segment_min"]
each_update = pytest.mark.parametrize("name", UPDATES)
each_segment = pytest.mark.parametrize("name", SEGMENTS)


def same(ours, jaxs):
    assert ours.dtype == jaxs.dtype and ours.shape == jaxs.shape
    assert ours.weak_type == jaxs.weak_type
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(jaxs))


INDICES = [1, -1, slice(1, None), (0, slice(None, None, 2)), np.array([0, 0, 9]),
           np.array([True, False, True]), ..., (None, 2)]


@each_update
@pytest.mark.parametrize("idx", INDICES, ids=repr)
def test_updates_are_those_of_at(name, idx):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    theirs_at = their_np.asarray(x).at[idx]
    same(getattr(ops, name)(jnp.asarray(x), idx, 3.5), getattr(theirs_at, UPDATES[name])(3.5))
    f = minijax.jit(lambda v: getattr(ops, name)(v, idx, 3.5))
    same(f(x), getattr(theirs_at, UPDATES[name])(3.5))


def test_index_is_what_stands_between_its_brackets():
    assert ops.index[1:, ..., None] == (slice(1, None), ..., None)
    assert ops.index[3] == 3


@each_update
def test_a_traced_mask_is_refused(name):
    with pytest.raises(errors.NonConcreteBooleanIndexError, match="must be concrete"):
        minijax.jit(lambda v: getattr(ops, name)(v, v < 0, 2))(jnp.arange(-2, 2))


@pytest.mark.parametrize("name, dtype", [
    *itertools.product(SEGMENTS, ["int32", "uint8", "float32", "bfloat16"]),
    ("segment_sum", "complex64"), ("segment_prod", "complex64")])
@pytest.mark.parametrize("options", [{}, {"num_segments": 3}, {"num_segments": 7},
                                     {"bucket_size": 2}, {"num_segments": 3, "mode": "clip"},
                                     {"out_sharding": None}],
                         ids=repr)
def test_segments_agree_with_jax(name, dtype, options):
    data = np.arange(1, 11).reshape(5, 2)
    ids = np.array([0, 4, 1, 1, 0])
    jaxs = getattr(theirs, name)(their_np.asarray(data, dtype), ids, **options)
    same(getattr(ops, name)(jnp.asarray(data, dtype), ids, **options), jaxs)


@pytest.mark.parametrize("name", ["segment_max", "segment_min"])
def test_segments_of_truth_values_agree_with_jax(name):
    data, ids = np.array([True, False, False]), np.array([0, 0, 2])
    same(getattr(ops, name)(data, ids, 4), getattr(theirs, name)(data, ids, 4))


@pytest.mark.parametrize("name", ["segment_sum", "segment_max", "segment_min"])
def test_the_derivative_of_a_segment_agrees_with_jax(name):
    data, ids = np.array([3., 1., 2., 5.], np.float32), np.array([0, 2, 0, 2])

    def gradient(library, name):
        return library.grad(lambda d: (getattr(library.ops, name)(d, ids, 3)[::2] ** 2).sum())

    np.testing.assert_allclose(gradient(minijax, name)(data), gradient(jax, name)(data))


def test_rows_of_no_segment_are_left_out():
    out = ops.segment_sum(jnp.arange(4), jnp.array([-1, 0, 5, 1]), 3)
    np.testing.assert_array_equal(out, [1, 3, 0])


def test_traced_ids_need_the_number_of_segments():
    data, ids = jnp.arange(3), jnp.array([0, 1, 0])
    same(minijax.jit(lambda d, i: ops.segment_sum(d, i, 2))(data, ids),
         theirs.segment_sum(np.arange(3), np.array([0, 1, 0])))
    with pytest.raises(errors.ConcretizationTypeError, match="num_segments"):
        minijax.jit(ops.segment_sum)(data, ids)


@pytest.mark.parametrize("args, problem", [
    (([1, 2], np.array([0, 1])), TypeError),
    ((np.arange(2), np.array([0, 1]), -1), ValueError),
    ((np.arange(3), np.array([0, 1]), 2), ValueError),
    ((np.arange(2), np.array([0., 1.]), 2), TypeError),
])
def test_what_is_no_segmentation_is_refused_as_jax_does(args, problem):
    for segment_sum in (ops.segment_sum, theirs.segment_sum):
        with pytest.raises(problem):
            segment_sum(*args)
