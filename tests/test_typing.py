"""Types for annotations."""

import jax.typing
import pytest

import minijax.typing


@pytest.mark.parametrize("name", ["ArrayLike", "DTypeLike"])
def test_a_type_is_a_union_that_the_name_of_a_class_can_join(name):
    ours, theirs = getattr(minijax.typing, name), getattr(jax.typing, name)
    assert type(ours) is type(theirs)
    for joined in (lambda x: "Module" | x, lambda x: x | "Module", lambda x: x | None):
        assert len(joined(ours).__args__) == len(joined(theirs).__args__)


def test_an_array_and_a_number_are_like_arrays():
    assert [isinstance(x, minijax.typing.ArrayLike) for x in (
        minijax.numpy.ones(2), 3, 2j, "text", [1])] == [True, True, True, False, False]
