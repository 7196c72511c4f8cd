"""The externals: where their machine code is, and what is said where there is none."""

import pytest

from minijax.lowering import library, routines

@pytest.fixture(autouse=True)
def nothing_on_disk(monkeypatch):
    monkeypatch.setenv("MINIJAX_CACHE_DIR", "")


def test_an_unknown_external_is_refused_with_the_names_there_are():
    with pytest.raises(KeyError, match="no external 'zgemm'; there are strsm, dtrsm"):
        routines.definition("zgemm")


def test_a_missing_library_says_what_to_do():
    assert "install one of them from a wheel" in str(library.MissingLibrary("strsm"))
