"""The externals: where their machine code is, and what is said where there is none."""

import pytest

from minijax.compiler import library


@pytest.fixture(autouse=True)
def nothing_on_disk(monkeypatch):
    monkeypatch.setenv("MINIJAX_CACHE_DIR", "")


def test_what_no_library_has_is_missing():
    with pytest.raises(library.MissingLibrary, match="no machine code for 'dnothing'"):
        library.blas("dnothing")


def test_where_numpy_has_no_routines_those_of_scipy_are_found(monkeypatch):
    monkeypatch.setattr(library, "NUMPYS", "no_such_module")
    assert library.blas.__wrapped__("dsyevd")
    monkeypatch.setattr(library, "SCIPYS", "no_such_module")
    with pytest.raises(library.MissingLibrary):
        library.blas.__wrapped__("dsyevd")


def test_a_missing_library_says_what_to_do():
    assert "install one of them from a wheel" in str(library.MissingLibrary("strsm"))
