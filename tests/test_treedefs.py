"""Treedefs: shared, forgotten, and strict about keys and the number of leaves."""

import jax.tree_util as theirs
import pytest

from minijax import jit, treedefs
from minijax import numpy as jnp
from minijax import tree_util as ours


class Word(str):
    pass


def refusal(f):
    with pytest.raises(ValueError) as caught:
        f()
    return str(caught.value)


def test_keys_that_are_equal_but_not_the_same_come_back_as_they_went_in():
    for key in (1, True, 1.0, "a", Word("a")):
        leaves, treedef = ours.tree_flatten({key: 0})
        assert type(next(iter(treedef.unflatten(leaves)))) is type(key)


def test_shared_treedefs_are_forgotten_when_they_grow_many(monkeypatch):
    monkeypatch.setattr(treedefs, "_MOST_SHARED", 3)
    before = [ours.tree_structure({f"key {n}": (0,)}) for n in range(10)]
    assert len(treedefs._shared_treedefs) <= 3
    assert before == [ours.tree_structure({f"key {n}": (0,)}) for n in range(10)]


def test_dicts_whose_keys_cannot_be_sorted_are_refused():
    with pytest.raises(ValueError, match="Comparator raised exception while sorting pytree"):
        ours.tree_leaves({1: 0, "a": 0})


@pytest.mark.parametrize("leaves", [[1, 2], [1, 2, 3, 4], []])
def test_a_wrong_number_of_leaves_is_refused_in_jaxs_words(leaves):
    structure = {"a": 1, "b": (2, 3)}
    assert refusal(lambda: ours.tree_structure(structure).unflatten(leaves)) == refusal(
        lambda: theirs.tree_structure(structure).unflatten(leaves))


class Ball:
    def __init__(self, place, colour):
        self.place, self.colour = place, colour


ours.register_pytree_node(Ball, lambda b: ((b.place,), b.colour), lambda c, place: Ball(*place, c))


@pytest.mark.parametrize("colour, kind", [
    (["red"], "list"), (jnp.ones(2), "minijax.core.ArrayImpl")], ids=["list", "array"])
@pytest.mark.parametrize("wrap", [lambda b: b, lambda b: {"a": [b]}], ids=["alone", "inside"])
def test_static_data_without_a_hash_is_refused_with_the_class_and_the_cure(wrap, colour, kind):
    for ask in (lambda t: hash(ours.tree_structure(t)),
                lambda t: jit(lambda t: ours.tree_leaves(t)[0])(t)):
        with pytest.raises(TypeError, match=f"^unhashable type: '{kind}'.*of a Ball.*a tuple"):
            ask(wrap(Ball(1.0, colour)))
    assert ours.tree_map(lambda x: x + 1, Ball(1.0, colour)).place == 2.0  # needs no hash
