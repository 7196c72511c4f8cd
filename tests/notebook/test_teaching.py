"""The plan is balanced, assignments tell no solution, and hidden inputs find memorised answers."""

import importlib.util
import json
import os
from pathlib import Path

import numpy as np
import pytest

from minijax.notebook import checks

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
_spec = importlib.util.spec_from_file_location("teaching", NOTEBOOKS / "teaching.py")
teaching = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(teaching)


def test_the_plan_has_every_chapter_once_and_weeks_of_like_length():
    weeks, minutes = teaching.weeks(), teaching.minutes()
    assert list(weeks) == [*range(1, 15)]
    assert [n for numbers in weeks.values() for n in numbers] == sorted(minutes)
    assert [week for week, numbers in weeks.items() if not numbers] == [7]  # the midterm
    hours = {week: sum(minutes[n] for n in numbers) / 60
             for week, numbers in weeks.items() if week not in (7, 14)}
    assert max(hours.values()) <= 5.5 and min(hours.values()) >= 3.4
    plan = (NOTEBOOKS / "README.md").read_text().partition("## One semester")[2]
    for week, each in hours.items():
        row = next(line for line in plan.splitlines() if line.startswith(f"| {week} |"))
        assert abs(float(row.split("|")[3]) - each) < 0.06, row


def test_assignments_are_all_exercises_and_tell_no_solution():
    files = teaching.bank()
    for chapter in teaching.chapters():
        for row in teaching.assignments(chapter):
            assert row.asked.strip() and "Solution" not in row.asked
            assert checks.exercises()[row.name].solution in files[f"solutions/{chapter.stem}.md"]
        text = teaching.without_solutions(chapter.read_text())
        assert "Solution: " not in text and json.loads(text)["cells"]
    names = {row.name for c in teaching.chapters() for row in teaching.assignments(c)}
    assert names == {one.name for one in checks.exercises().values() if one.chapter != "test"}


def test_a_midterm_is_drawn_from_the_chapters_before_it():
    assert teaching.midterm(1) != teaching.midterm(2)
    assert teaching.midterm(1).count("The check is called") >= 13


def test_slides_show_the_question_the_pictures_and_code():
    [chapter] = [c for c in teaching.chapters() if c.stem.startswith("07")]
    shown = "".join(teaching.slides(chapter))
    assert "class=question" in shown and "<svg" in shown and shown.count("<pre>") > 3
    assert "your code" not in shown


def grade_doubled(doubled):
    for x in np.random.default_rng(0).integers(1, 1000, 3).tolist():
        checks.agree(f"x = {x}", doubled(x), 2 * x)


def test_hidden_inputs_refuse_an_answer_that_knows_the_shown_ones(monkeypatch, capsys):
    monkeypatch.setattr(checks, "_exercises", dict(checks.exercises()))
    checks.exercise("doubled", chapter="test", grade=grade_doubled, wrong=[],
                    solution="def doubled(x):\n    return 2 * x")
    shown = np.random.default_rng(0).integers(1, 1000, 3).tolist()
    known = {x: 2 * x for x in shown}
    checks.check("doubled", lambda x: known.get(x, 0))
    monkeypatch.setattr(checks, "_variants", [7])
    checks.check("doubled", lambda x: known.get(x, 0))
    checks.check("doubled", lambda x: x + x)
    states = [line for line in capsys.readouterr().out.splitlines() if line.startswith("doubled")]
    assert [line.split(":")[1].strip() for line in states] == ["right", "not yet", "right"]


SOLVED = [one for one in checks.exercises().values()
          if os.environ.get("LARGE") or one.chapter[:2] in ("03", "13", "31")]


@pytest.mark.parametrize("one", SOLVED, ids=[one.name for one in SOLVED])
def test_solutions_are_right_on_hidden_inputs(one):
    for seed in (7, 8):
        answer = checks.evaluate(one, one.solution)
        with checks.variant(seed):
            state, _ = checks.verdict(one, answer)
        # Otherwise `_on_variants` sees that the solution fails, and leaves these inputs out.
        assert state == checks.RIGHT or not one.given.startswith("%mini begin ")


def test_progress_is_kept_where_the_reader_wants_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checks._record("column", checks.NOT_YET)
    assert not list(tmp_path.iterdir())
    (tmp_path / checks.PROGRESS).write_text("{}")
    for state in (checks.NOT_YET, checks.RIGHT, checks.NOT_YET):
        checks._record("column", state)
    kept = json.loads((tmp_path / checks.PROGRESS).read_text())
    assert kept == {"column": {"state": "right", "tries": 3}}
    page = teaching.progress_page(kept)
    assert "<td>column<td>right<td>3" in page and "Next: " in page
