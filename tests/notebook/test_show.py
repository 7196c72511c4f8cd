"""Programs and progress as a cell shows them, and as plain text."""

import base64
import re
import subprocess
import sys

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook import progress, show_jaxpr


def test_a_jaxpr_is_shown_as_text_in_colour_and_as_a_picture() -> None:
    closed = jax.make_jaxpr(lambda x: jnp.sin(x) * x)(1.0)
    shown = show_jaxpr(closed)
    assert repr(shown) == str(closed)
    assert "<span" in (shown._repr_html_() or "")
    graph = show_jaxpr(lambda x: jnp.sin(x) * x, 1.0, graph=True)
    assert repr(graph) == str(closed)
    data = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', graph.html)
    assert data and base64.b64decode(data[1]).startswith(b"<svg")
    assert "<svg" not in graph.html


def test_progress_gives_the_items_and_ends_in_the_same_words(
        capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress("abc", "letters")) == ["a", "b", "c"]
    assert list(progress(iter("ab"))) == ["a", "b"]
    assert list(progress(iter("ab"), "items", total=4)) == ["a", "b"]
    assert capsys.readouterr().out == (
        f"letters {'█' * 20} 3 of 3\n2\nitems {'█' * 10}{'░' * 10} 2 of 4\n")


def test_a_moving_bar_writes_over_itself_and_speaks_seldom(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minijax.notebook.show.notebook_shell", lambda: object())
    for _ in progress(range(10_000), "steps"):
        pass
    *moving, last = capsys.readouterr().out.split("\r")
    assert 45 <= len(moving) <= 52 and last == f"steps {'█' * 20} 10000 of 10000\n"
    assert len({len(text) for text in moving[1:]}) == 1


def test_the_course_can_be_imported_without_ipython() -> None:
    code = ("import sys; sys.modules['IPython'] = None\n"
            "import minijax.notebook as n, minijax.notebook.magics\n"
            "n.check('bend', lambda x: 12.0)\n"
            "print(n.show_jaxpr(lambda x: x, 1.0))\n"
            "list(n.progress(range(2), 'steps'))")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    assert lines == ["bend: not yet: right at 2, but not everywhere: "
                     "for x = -1.0 the answer is -6, and yours 12",
                     "{ lambda ; a:f32[]. let  in (a,) }", f"steps {'█' * 20} 2 of 2"]
