"""Columns, cut from the blocks."""

import html
import re

import pytest

from minijax.notebook import show_column
from minijax.notebook.columns import KEYWORDS, column
from minijax.core import Primitive
from minijax.primitives import algebra, analytic, ad_util, reduce


@pytest.mark.parametrize("slot", KEYWORDS)
@pytest.mark.parametrize("module", [analytic, algebra, reduce, ad_util])
def test_a_column_has_a_cell_for_each_primitive(slot: str, module: object) -> None:
    cells = list(column(slot, module))  # type: ignore[arg-type]
    blocks = {p.name for p in vars(module).values() if isinstance(p, Primitive)}
    assert {cell.primitive for cell in cells} <= blocks
    assert len(cells) >= 5 and all(cell.rule for cell in cells)


def test_rules_stand_as_they_are_written() -> None:
    text = repr(show_column("jvp", algebra, only="mul"))
    assert text == "mul  (lambda t, z, x, y: mul(t, y), lambda t, z, x, y: mul(x, t))"


def test_a_rule_is_shown_with_the_functions_it_names() -> None:
    text = repr(show_column("jvp", algebra, only="integer_pow"))
    assert "[_integer_pow_tangent]" in text and "def _integer_pow_tangent(t: Array" in text


def test_a_rule_of_several_lines_is_moved_left_as_a_whole() -> None:
    text = repr(show_column("jvp", algebra, only="div"))
    assert text.splitlines() == [
        "div  (lambda t, z, x, y: div(t, y),",
        "      lambda t, z, x, y: mul(mul(neg(t), x), integer_pow(y, -2)))"]


def test_what_the_family_fills_is_said_to_be_filled() -> None:
    assert repr(show_column("batch", algebra, only="mul")) == "mul  (filled by `binary`)"


def test_an_unknown_slot_is_refused_with_the_list() -> None:
    with pytest.raises(ValueError, match="jvp, transpose"):
        show_column("vjp", algebra)


def test_a_column_stands_in_a_notebook_letter_for_letter_as_in_plain_text() -> None:
    shown = show_column("jvp", algebra)
    box = shown._repr_html_() or ""
    assert box.startswith("<pre ") and "font-family:monospace" in box
    assert html.unescape(re.sub("<[^>]*>", "", box)) == shown.text
    assert box.count("<b>") == len(list(column("jvp", algebra)))
