"""Chapters hold the package's text, their halves agree, and nothing asked for is left out."""

import inspect
import itertools
import json
import re
import runpy
from pathlib import Path

import pytest

from minijax.core import Primitive
from minijax.notebook import slots_page, source, weave
from minijax.notebook.checks import exercises
from minijax.notebook.source import cell_text
from tests import size

ROOT = Path(__file__).parent.parent.parent
NOTEBOOKS = ROOT / "notebooks"
CHAPTERS = sorted(NOTEBOOKS.glob("[0-9]*.md"))
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=[c.stem for c in CHAPTERS])


def cells_of(chapter: Path) -> list[dict]:
    return json.loads(chapter.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]


# ---------------------------------------------------------------- the chapters


@each_chapter
def test_live_cells_and_solutions_are_those_of_the_package(chapter: Path) -> None:
    text = chapter.read_text(encoding="utf-8")
    assert weave.weave_markdown(text) == text, "run: make notebooks"
    notebook = {"cells": cells_of(chapter)}
    before = json.dumps(notebook)
    assert json.dumps(weave.weave_notebook(notebook)) == before, "run: make notebooks"


@each_chapter
def test_both_halves_of_a_chapter_say_the_same(chapter: Path) -> None:
    jupytext = pytest.importorskip("jupytext")
    written, read = jupytext.read(chapter).cells, cells_of(chapter)
    assert [cell.source for cell in written] == ["".join(cell["source"]) for cell in read]
    nbval = {"nbval-ignore-output"}
    for mine, theirs in zip(written, read, strict=True):
        tags, executed = set(weave.tags(mine)), set(weave.tags(theirs))
        assert tags - nbval == executed - nbval
        assert nbval <= executed or not tags & ({"machine-dependent"} | nbval)


@each_chapter
def test_what_is_to_be_predicted_is_folded(chapter: Path) -> None:
    for cell in cells_of(chapter):
        is_hidden = cell["metadata"].get("jupyter", {}).get("outputs_hidden", False)
        assert is_hidden == ("hide-output" in weave.tags(cell))


@each_chapter
def test_an_unchanged_live_cell_has_no_output(chapter: Path) -> None:
    for cell in cells_of(chapter):
        is_live = weave.live_names("".join(cell["source"])) != []
        if is_live and not set(weave.tags(cell)) & set(weave.EDITED):
            assert cell["outputs"] == []


@each_chapter
def test_every_exercise_that_a_chapter_checks_is_registered_for_it(chapter: Path) -> None:
    asked = re.findall(r'^check\("([^"]+)"', chapter.read_text(encoding="utf-8"), re.MULTILINE)
    assert {exercises()[name].chapter for name in asked} <= {chapter.stem}


def test_everything_asked_for_is_explained() -> None:
    missing = weave.report(CHAPTERS, NOTEBOOKS / "explained.toml")
    assert not missing, "\n".join(missing)


# ---------------------------------------------------------------- the weaver

BIND_LIST = "minijax.core.primitive.Primitive.bind_list"


def chapter_with(*cells: str) -> str:
    return "# Title\n" + "".join(f"\n{cell}\n" for cell in cells)


def code(body: str, tags: str = "") -> str:
    options = f":tags: [{tags}]\n\n" if tags else ""
    return f"```{{code-cell}} ipython3\n{options}{body}\n```"


def test_a_live_line_is_filled_in_and_woven_text_stays(tmp_path: Path) -> None:
    path = tmp_path / "09_x.md"
    path.write_text(chapter_with(code(f"%%live {BIND_LIST}"), code("print(1)")))
    assert weave.weave(path) == ["09_x.md"]
    full = code(f"%%live {BIND_LIST}\n{cell_text([BIND_LIST])}")
    assert path.read_text() == chapter_with(full, code("print(1)"))
    assert weave.weave(path) == []


def test_a_live_cell_with_tags_keeps_them() -> None:
    woven = weave.weave_markdown(chapter_with(code(f"%%live {BIND_LIST}\nold text", "hide-input")))
    assert f":tags: [hide-input]\n\n%%live {BIND_LIST}\ndef bind_list(" in woven
    assert "old text" not in woven


@pytest.mark.parametrize("tag", weave.EDITED)
def test_a_cell_edited_on_purpose_is_left_alone(tag: str) -> None:
    text = chapter_with(code(f"%%live {BIND_LIST}\ndef bind_list(self):\n    return 3", tag))
    assert weave.weave_markdown(text) == text
    notebook = {"cells": [{"cell_type": "code", "metadata": {"tags": [tag]},
                           "source": [f"%%live {BIND_LIST}\n", "def bind_list(self): 3"]}]}
    assert json.dumps(weave.weave_notebook(notebook)) == json.dumps(notebook)


def test_a_line_with_live_in_the_middle_of_a_cell_or_of_prose_is_no_live_cell() -> None:
    text = chapter_with(code(f"x = '''\n%%live {BIND_LIST}\n'''"), f"Write `%%live {BIND_LIST}`.")
    assert weave.weave_markdown(text) == text


def test_both_halves_are_woven(tmp_path: Path) -> None:
    path = tmp_path / "09_x.ipynb"
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 1, "id": "a",
            "source": f"%%live {BIND_LIST}"}
    path.write_text(json.dumps({"cells": [cell], "metadata": {}}))
    assert weave.weave(path) == ["09_x.ipynb"]
    source = json.loads(path.read_text())["cells"][0]["source"]
    assert "".join(source) == f"%%live {BIND_LIST}\n{cell_text([BIND_LIST])}"
    assert weave.weave(path) == []


def test_a_folded_solution_is_the_registered_one() -> None:
    details = ("<details><summary>Solution: bend</summary>\n\n```python\n{}```\n\n"
               "Why.\n</details>\n")
    assert weave.weave_solutions(details.format("old\n")) == details.format(
        exercises()["bend"].solution)
    with pytest.raises(LookupError, match="'brend'"):
        weave.weave_solutions(details.format("").replace("bend", "brend"))


# ---------------------------------------------------------------- the report

EXPLAINED = '[chapters]\n"03" = ["core.jvp"]\n'


def report_on(tmp_path: Path, text: str, explained: str = EXPLAINED) -> list[str]:
    chapter, toml = tmp_path / "03_forward.md", tmp_path / "explained.toml"
    chapter.write_text(text)
    toml.write_text(explained)
    return weave.report([chapter], toml)


def test_the_report_names_what_no_chapter_shows(tmp_path: Path) -> None:
    lines = report_on(tmp_path, "# Forward\n")
    assert ("minijax.core.jvp.JVPTrace: no live cell shows it, and no link leads to its "
            "module") in lines
    assert len(lines) == len(list(source.definitions("minijax.core.jvp"))) > 3


def test_a_definition_is_explained_when_the_prose_beside_its_cell_names_it(tmp_path: Path) -> None:
    cell = code("%%live minijax.core.jvp.JVPTrace")
    lines = report_on(tmp_path, chapter_with("A trace.", cell, code("1 + 1"), "Then."))
    assert ("minijax.core.jvp.JVPTrace: 03_forward shows it, but the prose beside does "
            "not name it") in lines
    for prose in (["A `JVPTrace` runs rules.", cell], [cell, "That was `JVPTrace`."]):
        lines = report_on(tmp_path, chapter_with(*prose))
        assert not [line for line in lines if ".JVPTrace:" in line]


def test_a_module_is_asked_for_when_its_chapter_exists(tmp_path: Path) -> None:
    assert report_on(tmp_path, "", EXPLAINED.replace("03", "04")) == []


def test_a_link_leads_to_what_a_chapter_does_not_show(tmp_path: Path) -> None:
    assert report_on(tmp_path, "See [`jvp.py`](../minijax/core/jvp.py).") == []
    assert report_on(tmp_path, "See [`jvp.py`](../minijax/core/vmap.py).") != []


# Façades of what is explained, and what changes nothing that is.
UNEXPLAINED = {f"minijax.{name}" for name in (
    "placement.device_put", "placement.formats", "placement.gathering",
    "placement.memory_profile", "placement.memory_spaces", "placement.mpi",
    "placement.out_sharding", "placement.pmap",
    "placement.processes", "placement.shard_map", "transforms.derived", "transforms.scopes",
    "transforms.tangent_errors", "util.absent", "util.callback_errors", "util.command_line",
    "util.jax_flags", "util.overflow_errors", "util.users_calls")}


def test_the_course_explains_the_whole_core() -> None:
    asked = weave.explained_modules(NOTEBOOKS / "explained.toml").values()
    files = [path for path in size.PACKAGE.rglob("*.py") if path.name != "__init__.py"
             and (size.part_of(path) == size.CORE or path.parent.name in (
                 "transforms", "control_flow", "custom", "placement"))]
    core = {f"minijax.{'.'.join(path.relative_to(size.PACKAGE).with_suffix('').parts)}"
            for path in files}
    assert len(core) > 30 and core - set(itertools.chain(*asked)) == UNEXPLAINED


def test_a_cell_longer_than_a_screen_is_reported(tmp_path: Path) -> None:
    lines = report_on(tmp_path, chapter_with(code("%%live minijax.core.primitive.Primitive")))
    assert [line for line in lines if "more than 40" in line]


def test_the_share_of_a_chapter_that_is_live_is_counted_in_lines_of_source(tmp_path: Path) -> None:
    path = tmp_path / "03_forward.md"
    live = code("%%live minijax.core.conversion.as_value")
    path.write_text(chapter_with("Prose, which does not count.", live, live))
    assert weave.live_share(path) == 1.0
    shown = len(list(filter(None, cell_text(["minijax.core.conversion.as_value"]).splitlines())))
    path.write_text(chapter_with(live, *[code("1 + 1", "check")] * shown))
    assert weave.live_share(path) == 0.5


# ---------------------------------------------------------------- the command line


def test_the_command_line_weaves_executes_and_grades(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("nbclient")
    path = tmp_path / "09_x.md"
    head = ("---\njupytext:\n  text_representation:\n    extension: .md\n    format_name: myst\n"
            "kernelspec:\n  display_name: Python 3\n  language: python\n  name: python3\n---\n\n")
    answer = "import minijax as jax\nf = lambda x: x**3 - 3*x\nbend = jax.grad(jax.grad(f))"
    path.write_text(head + chapter_with(
        code("%load_ext minijax.notebook\nfrom minijax.notebook import check"),
        code(f"%%live {BIND_LIST}"),
        code("import time\nprint(time.time())", "machine-dependent"),
        code(f"raise_here\n{answer}", "raises-exception"),
        code(answer), code('check("bend", bend)')))

    main = runpy.run_path(str(NOTEBOOKS / "run_chapter.py"))["main"]

    def command(*arguments: object) -> str:
        assert main(list(map(str, arguments))) == 0
        return capsys.readouterr().out

    assert "woven anew" in command("refresh", path)
    first = path.with_suffix(".ipynb").read_text()
    # the old half may show what the package no longer has
    path.with_suffix(".ipynb").write_text(first.replace(BIND_LIST, "minijax.core.gone"))
    command("refresh", path)
    assert path.with_suffix(".ipynb").read_text() == first
    cells = json.loads(first)["cells"]
    assert "nbval-ignore-output" in cells[3]["metadata"]["tags"]
    assert cells[2]["outputs"] == [] and "NameError" in json.dumps(cells[4]["outputs"])
    tour = sum(one.chapter == "00_tour" for one in exercises().values())
    assert f"1 of {tour} exercises are right" in command("grade", path)


def test_where_a_stream_is_cut_and_which_is_first_does_not_show() -> None:
    nbformat = pytest.importorskip("nbformat")
    joined = runpy.run_path(str(NOTEBOOKS / "run_chapter.py"))["_joined"]

    def stream(name: str, text: str) -> object:
        return nbformat.v4.new_output("stream", name=name, text=text)

    picture = nbformat.v4.new_output("display_data", {"text/plain": "a picture"})
    printed, warned = stream("stdout", "one\ntwo\n"), stream("stderr", "careful\n")
    pieces = [stream("stderr", "care"), stream("stdout", "one\nt"), stream("stderr", "ful\n"),
              stream("stdout", "wo\n")]
    assert joined([*pieces, picture, printed]) == [printed, warned, picture, printed]
    assert joined([stream("stdout", "half\rall\n")]) == [stream("stdout", "all\n")]


# ---------------------------------------------------------------- the page "Write your own"

PAGE = (NOTEBOOKS / "write_your_own.md").read_text(encoding="utf-8")


def test_the_slots_of_the_page_are_those_of_the_package() -> None:
    assert slots_page.woven(PAGE) == PAGE, "run: make notebooks"
    rows = re.findall(r"^\| (`.*?`) \|", PAGE, re.M)
    slots = [name.strip("`") for row in rows for name in row.split(", ")]
    told = set(inspect.signature(Primitive).parameters) - {"multiple_results"}
    assert set(slots) == told and len(slots) == len(told)
    by = dict(re.findall(r"^\| `(\w+)`.* \| (\S.*?) \| [^|]*\|$", PAGE, re.M))
    assert "`core.jvp.JVPTrace`" in by["jvp"] and "transpose_eqn" in by["transpose"]
    assert all(by[slot] != "—" for slot in slots if slot in by and slot != "name")


def test_the_programs_of_the_page_run() -> None:
    names: dict = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
        exec(compile(block, "<write_your_own.md>", "exec"), names)
    assert len(names["report"].laws) > 10
