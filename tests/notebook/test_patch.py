"""Changing objects in place, and back."""

import functools
from typing import Any

from minijax.notebook import patch
from minijax.notebook.patch import Journal


def test_a_function_takes_over_the_code_of_one_that_closes_over_other_names() -> None:
    def maker(n: int) -> Any:
        return lambda x: x + n

    def other(m: int, k: int) -> Any:
        return lambda x, y=2: x * m * k * y

    old, journal = maker(1), Journal()
    assert patch.in_place(old, other(3, 5), journal)
    assert old(1) == 30
    journal.undo()
    assert old(1) == 2 and old.__defaults__ is None


def test_a_closure_with_the_same_names_gets_the_new_values() -> None:
    def maker(n: int) -> Any:
        return lambda x: x + n

    old, journal = maker(1), Journal()
    patch.in_place(old, maker(10), journal)
    assert old(1) == 11
    journal.undo()
    assert old(1) == 2


def test_a_cached_function_is_changed_under_its_cache() -> None:
    @functools.lru_cache
    def old(x: int) -> int:
        return x

    @functools.lru_cache
    def new(x: int) -> int:
        return -x

    journal = Journal()
    assert patch.in_place(old, new, journal)
    assert old(1) == -1
    journal.undo()
    old.cache_clear()
    assert old(1) == 1


def test_tables_keep_their_identity() -> None:
    journal = Journal()
    for old, new in (({1: 2}, {3: 4}), ([1], [2, 3]), ({1}, {2})):
        before = old.copy()  # type: ignore[attr-defined]
        assert patch.in_place(old, new, journal) and old == new
        journal.undo()
        assert old == before


def test_objects_of_different_kinds_cannot_be_one_another() -> None:
    assert not patch.in_place(3, "three", Journal())
    assert not patch.in_place(3, 4, Journal())
