"""Errors as a cell shows them."""

import builtins
import html.parser
from collections.abc import Callable
from typing import Any

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import errors
from minijax.notebook import live
from minijax.notebook.errors import (cure_of, full_error, is_readers_file, short_error,
                                     short_error_html)


def raised(f: Any) -> Exception:
    try:
        f()
    except Exception as error:
        return error
    raise AssertionError("no error")


def shown(f: Any) -> list[str]:
    return short_error(raised(f)).splitlines()


@jax.jit
def positive(x: Any) -> Any:
    if x > 0:  # here
        return x
    return -x


def test_the_readers_line_is_marked_and_no_line_of_the_package_is_there() -> None:
    lines = shown(lambda: positive(1.0))
    marked = [line for line in lines if line.startswith("-->")]
    assert lines[0].startswith("TracerBoolConversionError: Attempted boolean conversion")
    assert marked[-1].endswith("if x > 0:  # here")
    assert "in test_errors.py, in positive:" in lines
    assert not any("core.py" in line for line in lines)
    assert lines[-1].startswith("The fix: Choose with `jnp.where`")


def test_it_is_short() -> None:
    assert len(shown(lambda: positive(1.0))) <= 20
    deep = lambda n: positive(1.0) if n == 0 else deep(n - 1)  # noqa: E731
    assert len([line for line in shown(lambda: deep(20)) if line.startswith("-->")]) == 3


def test_a_line_of_an_edited_live_cell_is_the_readers() -> None:
    live("minijax.primitives.algebra._share", "def _share(t, z, x, y):\n    return t + 1 / 0\n")
    lines = shown(lambda: jax.grad(lambda x: jax.lax.max(x, 0.0))(2.0))
    assert "in the live cell minijax.primitives.algebra._share, in _share:" in lines
    assert "-->   2     return t + 1 / 0" in lines


def test_a_syntax_error_is_shown_with_its_place() -> None:
    def wrong() -> None:
        live("minijax.core.primitive.cannot", "def cannot(reason:\n    pass\n")
    lines = shown(wrong)
    assert lines[0].startswith("SyntaxError: ") and lines[1].startswith("--> 1 def cannot(")


# ---- the cure


@pytest.mark.parametrize("kind", [k for k in vars(errors).values() if isinstance(k, type)
                                  and "**The fix.**" in (k.__doc__ or "")
                                  and k is not errors.NonFiniteError])  # its message has it
def test_a_class_of_ours_has_a_cure_of_one_sentence(kind: type[BaseException]) -> None:
    cure = cure_of(kind.__new__(kind))
    assert cure.endswith(".") and "``" not in cure and "\n" not in cure
    assert len(cure) < 150


def test_an_error_from_elsewhere_has_no_cure_of_ours() -> None:
    assert cure_of(KeyError("x")) == ""


def test_the_cure_is_that_of_what_happened() -> None:
    static = raised(lambda: jax.jit(lambda x, axis: x.min(axis))(jnp.arange(4), 0))
    sized = raised(lambda: jax.jit(lambda x: jnp.where(x < 0))(jnp.arange(4)))
    assert "static" in cure_of(static)
    assert "how large the result is" in cure_of(sized)


NUMBERS = {"an axis": lambda i: jnp.arange(3.0).sum(i), "an element of a list": lambda i: "abc"[i],
           "a number of Python": float}
TRACED: dict[str, Callable[[Callable], Any]] = {
    "jit": lambda f: jax.jit(f)(0),
    "eval_shape": lambda f: jax.eval_shape(f, 0),
    "make_jaxpr": lambda f: jax.make_jaxpr(f)(0),
    "checkpoint": lambda f: jax.checkpoint(f)(0),
    "pmap": lambda f: jax.pmap(f)(jnp.arange(1)),
    "vmap": lambda f: jax.vmap(f)(jnp.arange(2)),
    "jit of vmap": lambda f: jax.jit(jax.vmap(f))(jnp.arange(2)),
    "scan": lambda f: jax.lax.scan(lambda carry, x: (carry, f(x)), 0, jnp.arange(2)),
    "while_loop": lambda f: jax.lax.while_loop(lambda i: f(i) < 3, lambda i: i + 1, 0),
    "cond": lambda f: jax.lax.cond(True, f, f, 0)}


@pytest.mark.parametrize("how", TRACED)
def test_an_argument_is_said_to_be_static_only_where_one_can_be(how: str) -> None:
    for name, f in NUMBERS.items():
        cure = cure_of(raised(lambda f=f: TRACED[how](f)))
        static = how in ("jit", "eval_shape", "make_jaxpr", "checkpoint", "pmap")
        assert ("Declare the argument static" in cure, "close over" in cure) == (
            static, not static), name
    assert "close over" in cure_of(raised(lambda: jax.grad(float)(1.0)))


def test_a_primitive_that_says_why_is_given_no_other_advice() -> None:
    with_reason = errors.RuleNotImplementedError("argmax", "transpose", "it is not linear.")
    assert cure_of(with_reason) == ""
    assert "slot" in cure_of(errors.RuleNotImplementedError("double", "jvp"))


def test_a_finding_brings_its_own_cure() -> None:
    with jax.debug_nans(True):
        error = raised(lambda: jnp.log(jnp.float32(-1.0)))
    fix = error.finding.fix  # type: ignore[attr-defined]
    assert fix and (fix in str(error)) != (fix in cure_of(error))


def test_what_it_was_raised_from_is_shown_where_the_reader_has_a_line_in_it() -> None:
    def refuse(x: Any) -> None:
        raise ValueError("no such file")

    def told(x: Any) -> Any:
        jax.debug.callback(refuse, x)
        return x

    lines = shown(lambda: jax.jit(told)(1.0))
    assert "It was raised from ValueError: no such file" in lines
    assert any(line.startswith("-->") and "no such file" in line for line in lines)


def test_a_note_is_shown_unless_it_says_what_is_shown_anyway() -> None:
    lines = shown(lambda: jax.lax.psum(1.0, "i"))
    assert lines[0] == "NameError: unbound axis name: i"
    assert lines[1] == "An axis bears that name inside of vmap(f, axis_name='i')."
    lines = shown(lambda: jnp.ones(2) + jnp.ones(3))
    assert not any("minijax: in" in line or "internal frames" in line for line in lines)


# ---- as HTML


class Balanced(html.parser.HTMLParser):
    """Notes the tags that are open, and all text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_html_says_the_same_and_closes_what_it_opens() -> None:
    error = raised(lambda: positive(1.0))
    read = Balanced(short_error_html(error))
    assert read.open == []
    said = "".join(read.text.split())
    for line in short_error(error).replace("-->", "").replace("`", "").splitlines():
        assert "".join(line.split()).rstrip(":") in said


def test_what_a_program_says_is_not_taken_for_html() -> None:
    read = Balanced(short_error_html(ValueError("<script>alert(1)</script>")))
    assert "<script>" in read.text


def test_the_html_wraps_on_a_phone_and_names_no_colour_of_text() -> None:
    source = short_error_html(raised(lambda: positive(1.0)))
    assert "overflow-wrap:anywhere" in source and "overflow-x:auto" in source
    assert ";color:" not in source and '"color:' not in source


# ---- everything else


def test_library_files_are_not_the_readers() -> None:
    import subprocess

    import numpy
    assert not is_readers_file(numpy.__file__) and not is_readers_file(subprocess.__file__)


def test_without_an_error_there_is_nothing_to_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("sys.last_value", raising=False)
    assert full_error() == "no error yet"


def test_the_full_error_has_the_packages_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(builtins, "get_ipython", raising=False)
    monkeypatch.setattr("sys.last_value", raised(lambda: positive(1.0)), raising=False)
    assert "operators.py" in full_error() and "in positive" in full_error()
