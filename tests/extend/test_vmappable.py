"""Values that say themselves how `vmap` maps them; `as_jax/test_internals.py` compares with JAX."""

import numpy as np
import pytest

import minijax
from minijax.transforms import api
from minijax.extend import vmappable


class Pair:
    def __init__(self, one, two):
        self.one, self.two = one, two


@pytest.fixture
def pairs(monkeypatch):
    monkeypatch.setattr(vmappable, "_vmappables", {})
    monkeypatch.setattr(api, "registered", {})
    vmappable.register_vmappable(
        Pair, int, int, lambda cont, index, pair, spec: Pair(cont(pair.one, spec), index()),
        lambda cont, size, pair, spec: Pair(cont(size, pair.one, spec), cont(size, pair.two, 0)),
        None)


def test_a_value_is_mapped_that_is_no_tree(pairs):
    found = minijax.vmap(lambda pair, y: Pair(pair.one * pair.two, y), in_axes=(1, None),
                         out_axes=1)(Pair(np.ones((2, 3)), None), 5.)
    assert found.one.tolist() == [[0, 1, 2]] * 2 and found.two.tolist() == [5] * 3
    assert minijax.vmap(lambda x: x + 1)(np.arange(2)).tolist() == [1, 2]


def test_what_the_user_forbids_is_forbidden_in_mapped_functions(pairs):
    with minijax.numpy_dtype_promotion("strict"), pytest.raises(
            minijax.errors.TypePromotionError):
        minijax.vmap(minijax.numpy.dot)(np.ones((2, 3), np.float32), np.ones((2, 3), np.int32))


def test_the_names_of_axes_go_through(pairs):
    found = minijax.vmap(lambda pair: minijax.lax.psum(pair.one, "i"), axis_name="i")(
        Pair(np.arange(3), None))
    assert found.tolist() == [3] * 3


class Named:
    def __init__(self, name, axis):
        self.name, self.axis = name, axis


def test_axes_may_be_of_any_class_and_examples_computed_with(pairs):
    vmappable.register_vmappable(
        Pair, Named, int,
        lambda cont, index, pair, spec: Pair(cont(pair.one, spec.axis), spec.name),
        lambda cont, size, pair, spec: Pair(cont(size, pair.one + 1, spec.axis), pair.two), None)
    found = minijax.jit(lambda x: minijax.vmap(
        lambda pair: pair, in_axes=Named("i", 0), out_axes=Named("i", 1), axis_size=3)(
            Pair(x, None)).one)(np.zeros((3, 2)))
    assert found.tolist() == [[1.0] * 3] * 2


def test_sizes_that_are_no_integers_are_refused():
    with pytest.raises(NotImplementedError, match="pad it to arrays of one size"):
        vmappable.register_vmappable(Pair, int, tuple, min, max, len)
