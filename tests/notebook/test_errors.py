"""Errors as a cell shows them."""

from typing import Any

import pytest

import minijax as jax
from minijax import errors
from minijax.notebook import live
from minijax.notebook.errors import cure_of, full_error, is_readers_file, short_error


def shown(f: Any) -> list[str]:
    try:
        f()
    except Exception as error:
        return short_error(error).splitlines()
    raise AssertionError("no error")


def test_the_readers_line_is_marked_and_no_line_of_the_package_is_there() -> None:
    @jax.jit
    def positive(x: Any) -> Any:
        if x > 0:  # here
            return x

    lines = shown(lambda: positive(1.0))
    marked = [line for line in lines if line.startswith("-->")]
    assert lines[0].startswith("TracerBoolConversionError: Attempted boolean conversion")
    assert marked[-1].endswith("if x > 0:  # here")
    assert "in test_errors.py, in positive:" in lines
    assert not any("core.py" in line for line in lines)
    assert any("`jnp.where(x < 3" in line for line in lines[lines.index("The fix:"):])


def test_a_line_of_an_edited_live_cell_is_the_readers() -> None:
    live("minijax.primitives.elementwise._share", "def _share(t, z, x, y):\n    return t + 1 / 0\n")
    lines = shown(lambda: jax.grad(lambda x: jax.lax.max(x, 0.0))(2.0))
    assert "in the live cell minijax.primitives.elementwise._share, in _share:" in lines
    assert "-->   2     return t + 1 / 0" in lines


def test_a_syntax_error_is_shown_with_its_place() -> None:
    def wrong() -> None:
        live("minijax.core.cannot", "def cannot(reason:\n    pass\n")
    lines = shown(wrong)
    assert lines[0].startswith("SyntaxError: ") and lines[1].startswith("--> 1 def cannot(")


@pytest.mark.parametrize("kind", [k for k in vars(errors).values() if isinstance(k, type)
                                  and "**The fix.**" in (k.__doc__ or "")])
def test_the_cure_is_the_one_of_the_errors_page(kind: type[BaseException]) -> None:
    cure = cure_of(kind)
    assert cure and "``" not in cure and len(cure.splitlines()) <= 13


def test_an_error_from_elsewhere_has_no_cure_of_ours() -> None:
    assert cure_of(KeyError) == ""


def test_library_files_are_not_the_readers() -> None:
    import numpy
    import subprocess
    assert not is_readers_file(numpy.__file__) and not is_readers_file(subprocess.__file__)


def test_without_an_error_there_is_nothing_to_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("sys.last_value", raising=False)
    assert full_error() == "no error yet"
