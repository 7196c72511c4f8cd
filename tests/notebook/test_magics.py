"""The magics in IPython itself."""

from collections.abc import Iterator
from typing import Any

import pytest

import minijax
from minijax import core
from minijax.notebook import pictures
from minijax.notebook.source import cell_text

IPython = pytest.importorskip("IPython")


@pytest.fixture
def shell() -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "minijax.notebook")
    yield shell
    shell.run_line_magic("unload_ext", "minijax.notebook")
    InteractiveShell.clear_instance()


def test_a_live_cell_changes_the_package_and_says_so(shell: Any, capsys: Any) -> None:
    shell.run_cell("%%live minijax.core.primitive.cannot\ndef cannot(reason):\n    return 3\n")
    assert core.cannot("x") == 3
    assert capsys.readouterr().out == (
        "live: minijax.core.primitive.cannot changed; %live_reset undoes it\n")
    shell.run_cell("%live_reset")
    assert capsys.readouterr().out == "live: minijax.core.primitive.cannot restored\n"
    assert core.cannot("x") == core.Cannot("x")


def test_an_unchanged_live_cell_says_nothing(shell: Any, capsys: Any) -> None:
    names = "minijax.core.primitive.Primitive.bind .rule"
    shell.run_cell(f"%%live {names}\n{cell_text(names.split())}")
    assert capsys.readouterr().out == ""


def test_an_error_in_a_live_cell_is_short_and_shows_the_cell(shell: Any, capsys: Any) -> None:
    shell.run_cell("%%live minijax.core.primitive.cannot\ndef cannot(reason=1/0):\n    return 3\n")
    text = capsys.readouterr().out
    assert "ZeroDivisionError: division by zero" in text
    assert "in the live cell minijax.core.primitive.cannot" in text
    assert "-->   1 def cannot(reason=1/0):" in text and "magics.py" not in text
    shell.run_cell("%full_error")
    assert "Traceback (most recent call last)" in capsys.readouterr().out


def test_an_unknown_name_is_said_in_one_line(shell: Any, capsys: Any) -> None:
    shell.run_cell("%%live minijax.core.nothing\nnothing = 1\n")
    assert "LookupError: minijax.core does not define nothing" in capsys.readouterr().out


def test_a_program_is_shown_in_colour_in_the_course_and_as_text_elsewhere(shell: Any) -> None:
    closed = minijax.make_jaxpr(lambda x: x * 2.0)(1.0)

    def shown(program: Any) -> dict[str, str]:
        return shell.display_formatter.format(program, include={"text/html", "text/plain"})[0]

    for program in (closed, closed.jaxpr):
        assert shown(program) == {"text/plain": str(closed), "text/html": pictures.to_html(closed)}
    shell.run_line_magic("unload_ext", "minijax.notebook")
    assert shown(closed) == {"text/plain": str(closed)}
    shell.run_line_magic("load_ext", "minijax.notebook")
    assert "text/html" in shown(closed)


def test_unloading_undoes_the_edits() -> None:
    from IPython.core.interactiveshell import InteractiveShell
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "minijax.notebook")
    shell.run_cell("%%live minijax.core.primitive.cannot\ndef cannot(reason):\n    return 3\n")
    shell.run_line_magic("unload_ext", "minijax.notebook")
    assert core.cannot("x") == core.Cannot("x")
    InteractiveShell.clear_instance()
