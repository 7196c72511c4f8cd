"""A film: its frames as the script gets them, its still picture, its captions as text."""

import base64
import json
import re
from xml.etree import ElementTree

import pytest

from minijax.notebook import drawing
from minijax.notebook.film import Film, Frame


def three() -> Film:
    ground = drawing.box(0, 0, 50, 20)
    frames = [Frame(f"now at `{k}`", [ground, drawing.dot(10 * k, 10, 4)]) for k in (1, 2, 3)]
    return Film((50, 20), {(): frames})


def facts(film: Film) -> dict:
    """What the script gets, each frame's numbers replaced by what they stand for."""
    found = re.search(r'<script type="application/json">(.*?)</script>', film._repr_html_())
    assert found
    data = json.loads(found[1])
    shown = [[[data["pieces"][k] for k in frame] for frame in row] for row in data["rows"]]
    return {**data, "rows": shown}


def test_as_text_a_film_is_its_captions() -> None:
    assert repr(three()) == "1  now at 1\n2  now at 2\n3  now at 3"


def test_a_part_of_several_frames_is_stored_once() -> None:
    data = facts(three())
    assert len(data["pieces"]) == len(set(data["pieces"])) == 3 + 4
    ground, place = three().frames[1].parts
    assert data["rows"][0][1] == ["now at <code>2</code>", ground, place]


def test_without_a_script_one_frame_is_a_still_picture_with_its_caption() -> None:
    page = three()._repr_html_()
    found = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert found
    still = base64.b64decode(found[1]).decode()
    assert still == three().drawing(three().frames[-1])
    assert ElementTree.fromstring(still).tag.endswith("svg")
    assert "<figcaption>now at <code>3</code></figcaption>" in page


def test_each_combination_of_options_has_a_row_and_the_rows_come_in_their_order() -> None:
    rows = {(a, b): [Frame(a + b, [])] for b in "xyz" for a in "pq"}  # in another order
    film = Film((9, 9), rows, {"first": "pq", "second": "xyz"}, ("q", "y"))
    data = facts(film)
    said = [row[0][0] for row in data["rows"]]
    assert said == ["px", "py", "pz", "qx", "qy", "qz"]
    first, second = data["chosen"]
    assert said[first * 3 + second] == "qy"
    assert repr(film) == "first: q\nsecond: y\n1  qy"


def test_no_text_of_a_film_ends_its_script() -> None:
    page = Film((9, 9), {(): [Frame("a </script> b", ["<g></g>"])]})._repr_html_()
    assert page.count("</script>") == 2


@pytest.mark.parametrize("part", [
    drawing.box(1, 2, 3, 4, lit=True, data_place=3), drawing.words(1, 2, "a < b & c", code=True),
    drawing.arrow((0, 0), (3, 4)), drawing.line([(0, 0), (1, 1)]), drawing.dot(1, 2, 3)])
def test_pieces_are_well_formed(part: str) -> None:
    ElementTree.fromstring(f"<svg>{part}</svg>")
