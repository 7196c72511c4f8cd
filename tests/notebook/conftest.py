"""Every test of live cells leaves the package as its files have it."""

from collections.abc import Iterator

import pytest

from minijax.notebook import live_reset


@pytest.fixture(autouse=True)
def package_as_in_its_files() -> Iterator[None]:
    yield
    live_reset()
