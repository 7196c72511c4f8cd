"""Treedefs and their strictness; containers of your own against JAX's; `Partial`."""

import dataclasses
import functools
import operator

import jax
import jax.tree_util as theirs
import numpy as np
import pytest

from minijax import jit, numpy as jnp, tree_util as ours


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


class JaxsBall(Ball):
    """The same for JAX."""


theirs.register_pytree_node(JaxsBall, lambda b: ((b.place,), b.colour),
                            lambda c, place: JaxsBall(*place, c))


@pytest.mark.parametrize("colour, other", [
    ("red", "blue"), (["red"], ["red"]), (["red"], ["blue"]), (np.arange(2), np.arange(2)),
    (jnp.ones(2), None)])
@pytest.mark.parametrize("wrap", [lambda b: b, lambda b: {"a": [b]}], ids=["alone", "inside"])
def test_static_data_needs_no_hash_and_equality_that_is_one_number(wrap, colour, other):
    def seen(lib, compiled, kind):
        one, two = (lib.tree_structure(wrap(kind(1.0, c))) for c in (colour, other))
        return [hash(one) == hash(two), outcome(lambda: one == two),
                outcome(lambda: one == one),
                type(colour) is list and outcome(lambda: compiled(
                    lambda t: lib.tree_leaves(t)[0])(wrap(kind(1.0, colour)))),
                outcome(lambda: bool(lib.tree_map(lambda x: x + 1, wrap(kind(1.0, colour)))))]
    assert seen(ours, jit, Ball) == seen(theirs, jax.jit, JaxsBall)


# -- containers of your own ----------------------------------------------------------------------


class Taken:
    pass


def outcome(f):
    try:
        return repr(f())
    except (ValueError, TypeError) as problem:
        return type(problem).__name__, str(problem).replace("minijax", "jax")


def test_a_type_is_registered_once():
    ours.register_pytree_node(Taken, lambda x: ((), None), lambda d, c: Taken())
    for taken in (list, Taken):
        with pytest.raises(ValueError, match="Duplicate custom PyTreeDef type registration for"):
            ours.register_pytree_node(taken, lambda x: ((), None), lambda d, c: None)
    with pytest.raises(TypeError, match="must be a class, not 3"):
        ours.register_pytree_node(3, lambda x: ((), None), lambda d, c: None)
    for functions in ((1, lambda d, c: None), (lambda x: ((), None), None)):
        with pytest.raises(TypeError, match="registered with two functions, not with"):
            ours.register_pytree_node(int, *functions)
    assert ours.tree_leaves([3]) == [3]


@pytest.mark.parametrize("returned", [3, ([1], 2, 3), (1, 2)])
def test_a_flatten_function_that_returns_nonsense_is_named(returned):
    class Odd:
        pass
    for library in (ours, theirs):
        library.register_pytree_node(Odd, lambda x: returned, lambda d, c: None)
    assert outcome(lambda: ours.tree_leaves(Odd())) == outcome(lambda: theirs.tree_leaves(Odd()))


def test_dataclass_fields_are_checked_in_jaxs_words():
    for fields in ((["a"], []), (["a"], ["b", "c"]), (["a"], None)):
        told = [outcome(lambda: library.register_dataclass(  # noqa: B023
            dataclasses.make_dataclass("Q", ["a", "b"]), *fields)) for library in (ours, theirs)]  # noqa: B023
        assert told[0] == told[1]
    with pytest.raises(TypeError, match="required when nodetype is not a dataclass"):
        ours.register_dataclass(type("Plain", (), {}))


def test_dropped_fields_of_a_dataclass_get_their_default():
    @functools.partial(ours.register_dataclass, data_fields=["a"], meta_fields=[],
                       drop_fields=["b"])
    @dataclasses.dataclass
    class Cached:
        a: int
        b: int = 0
    assert ours.tree_map(lambda x: x + 1, Cached(1, 5)) == Cached(2, 0)


def test_partial_is_a_tree_of_its_arguments():
    add = ours.Partial(operator.add, 1)
    assert ours.tree_leaves(add) == [1] and add(2) == 3
    assert ours.tree_map(lambda x: x * 10, add)(2) == 12
    assert isinstance(ours.tree_map(lambda x: x, add), ours.Partial)
    for make in (lambda t: t.tree_structure(t.Partial(max, 1, key=2)),
                 lambda t: t.Partial(t.Partial(operator.add, 1), 2),
                 lambda t: t.tree_structure(t.Partial(functools.partial(operator.add), 1))):
        said = outcome(lambda: make(ours))  # noqa: B023
        assert str(said).replace("minijax", "jax") == str(outcome(lambda: make(theirs)))  # noqa: B023


def test_partial_keeps_the_function_it_was_given():
    inner = ours.Partial(operator.add, 1)
    outer = ours.Partial(inner, 2)
    assert outer() == 3 and ours.tree_leaves(outer) == [2]
    assert ours.tree_structure(outer) == ours.tree_structure(ours.Partial(inner, 5))
