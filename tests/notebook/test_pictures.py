"""HTML and pictures hold the same program as its text."""

import html
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import minijax
from minijax.util import jaxpr_text
from minijax.notebook import pictures
from tests.util.test_jaxpr_text import PROGRAMS, rebuilt


@pytest.mark.parametrize("name", PROGRAMS)
def test_html_without_its_tags_is_the_text(name):
    program = rebuilt(name)
    text = re.sub(r"<[^>]*>", "", pictures.to_html(program))
    assert html.unescape(text) == jaxpr_text.jaxpr_text(program)


def test_a_name_from_the_user_cannot_inject_html():
    program = rebuilt("a call with a literal")  # its function is called <lambda>
    assert "<lambda>" not in pictures.to_html(program)
    assert "<lambda>" not in pictures.to_svg(program)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_picture_is_well_formed_and_has_a_box_for_every_part(name):
    program = rebuilt(name)
    root = ElementTree.fromstring(pictures.to_svg(program))
    boxes = root.findall(".//{*}rect")
    parts = (program.constvars, program.invars, program.eqns, program.outvars)
    assert len(boxes) == sum(map(len, parts))
    width, height = float(root.get("width")), float(root.get("height"))
    for box in boxes:
        x, y, w, h = (float(box.get(side)) for side in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0 and x + w <= width and y + h <= height


@pytest.mark.parametrize("name", PROGRAMS)
def test_boxes_do_not_overlap_and_edges_lead_down_between_them(name):
    root = ElementTree.fromstring(pictures.to_svg(rebuilt(name)))
    rows = {}
    for box in root.findall(".//{*}rect"):
        rows.setdefault(box.get("y"), []).append((float(box.get("x")), float(box.get("width"))))
    for boxes in rows.values():
        boxes.sort()
        assert all(x + w < after for (x, w), (after, _) in zip(boxes, boxes[1:], strict=False))
    for edge in root.findall(".//{*}path"):
        numbers = [float(n) for n in re.findall(r"[-0-9.]+", edge.get("d"))]
        assert numbers[1] < numbers[-1]
        for y, boxes in rows.items():
            for x, w in boxes:
                for end_x, end_y in zip(numbers[::2], numbers[1::2], strict=True):
                    inside_y = float(y) < end_y < float(y) + pictures.LINE
                    assert not (inside_y and x < end_x < x + w), "an edge crosses a box"


def test_a_picture_is_the_same_every_time():
    assert pictures.to_svg(rebuilt("cond")) == pictures.to_svg(rebuilt("cond"))


def test_the_users_line_stands_behind_an_equation():
    program = minijax.make_jaxpr(lambda x: np.float32(2) * x + 1.0)(np.float32(1))
    text = pictures.text_with_lines(program)
    assert text.count("# test_pictures.py:") == len(program.eqns) == 2
    assert re.sub(" *#.*", "", text) == jaxpr_text.jaxpr_text(program)
