"""The externals: where their machine code is, and what is said where there is none."""

import pytest

from minijax.lowering import library, routines

@pytest.fixture(autouse=True)
def nothing_on_disk(monkeypatch):
    monkeypatch.setenv("MINIJAX_CACHE_DIR", "")


def test_what_no_library_has_is_missing():
    with pytest.raises(library.MissingLibrary, match="no machine code for 'dnothing'"):
        routines.symbols("blas_dnothing")


def test_a_missing_library_says_what_to_do():
    assert "install one of them from a wheel" in str(library.MissingLibrary("strsm"))
