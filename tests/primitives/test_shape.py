"""Rearranging primitives agree with JAX, and refuse what it refuses, in its words."""

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax.core import as_value
from minijax.primitives.axes import canonical_axis, canonical_shape

X = np.arange(6, dtype=np.float32).reshape(2, 3)
V = np.arange(4, dtype=np.int32)


@pytest.mark.parametrize("f", [
    lambda lax: lax.transpose(X, (1, 0)),
    lambda lax: lax.transpose(X, np.array([1, 0])),
    lambda lax: lax.broadcast(X, (2, 1)),
    lambda lax: lax.broadcast(X, ()),
    lambda lax: lax.broadcast_in_dim(X, (2, 4, 3), (0, 2)),
    lambda lax: lax.broadcast_in_dim(X, (3, 2), (1, 0)),
    lambda lax: lax.broadcast_in_dim(X[:1], (5, 3), (0, 1)),
    lambda lax: lax.broadcast_in_dim(2.5, (2,), ()),
    lambda lax: lax.broadcast_to_rank(V, 3),
    lambda lax: lax.reshape(X, (3, 2)),
    lambda lax: lax.reshape(X, (3, 2), (1, 0)),
    lambda lax: lax.reshape(np.zeros((0, 3)), (5, 0)),
    lambda lax: lax.expand_dims(X, (0, -1)),
    lambda lax: lax.squeeze(X[:1], (0,)),
    lambda lax: lax.squeeze(X[:1, :1], (-1, 0)),
    lambda lax: lax.rev(X, (0, 1)),
    lambda lax: lax.rev(X, ()),
    lambda lax: lax.iota(np.float32, 5),
    lambda lax: lax.iota("uint8", 300),
    lambda lax: lax.broadcasted_iota(np.int32, (2, 3), 1),
])
def test_results_are_those_of_jax(agrees, f):
    agrees(f)


@pytest.mark.parametrize("f", [
    lambda lax: lax.transpose(X, (0, 0)),
    lambda lax: lax.transpose(X, (0,)),
    lambda lax: lax.broadcast_in_dim(V, (4, 3), (1,)),
    lambda lax: lax.broadcast_in_dim(V, (4, 3), ()),
    lambda lax: lax.broadcast_in_dim(V, (4, 3), (2,)),
    lambda lax: lax.broadcast_in_dim(X, (3,), (0, 1)),
    lambda lax: lax.broadcast_shapes((2,), (3,)),
    lambda lax: lax.reshape(V, (-1,)),
    lambda lax: lax.reshape(X, (6,), (0, 0)),
    lambda lax: lax.expand_dims(X, (0, 0)),
    lambda lax: lax.expand_dims(X, (9,)),
    lambda lax: lax.squeeze(X, (0,)),
    lambda lax: lax.squeeze(X, (5,)),
    lambda lax: lax.rev(X, (3,)),
    lambda lax: lax.rev(X, (0, 0)),
    lambda lax: lax.broadcasted_iota(np.int32, (2,), 1),
])
def test_errors_are_those_of_jax(agrees, f):
    agrees(f)


def test_shapes_broadcast_by_the_rules_of_numpy():
    assert lax.broadcast_shapes((3, 1), (2,), ()) == (3, 2)
    assert lax.broadcast_shapes((0,), (1,)) == (0,)
    assert lax.broadcast_shapes((4, 1, 3), (5, 1)) == np.broadcast_shapes((4, 1, 3), (5, 1))


def test_a_reshape_that_changes_the_number_of_elements_is_refused():
    with pytest.raises(TypeError, match="total size must be unchanged"):
        lax.reshape(V, (3,))


def test_iota_of_bool_is_refused():
    with pytest.raises(TypeError, match="iota does not accept dtype bool"):
        lax.iota(bool, 3)


def test_what_changes_nothing_gives_the_array_itself():
    x = as_value(X)
    assert lax.transpose(x, (0, 1)) is x
    assert lax.reshape(x, (2, 3)) is x
    assert lax.squeeze(x, ()) is x


def test_a_traced_shape_is_refused_with_advice():
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values"):
        minijax.jit(lambda n: lax.broadcast(1.0, (n,)))(3)


def test_axes_and_shapes_are_made_canonical():
    assert canonical_axis(-1, 3) == 2
    assert canonical_shape(4) == (4,)
    assert canonical_shape(np.array([2, 3])) == (2, 3)
    with pytest.raises(ValueError, match="axis 3 is out of bounds for array of dimension 3"):
        canonical_axis(3, 3)


def test_a_weak_type_stays_weak():
    assert lax.broadcast(1.0, (2,)).weak_type
    assert not lax.broadcast(np.float32(1.0), (2,)).weak_type
