"""Exercises: solutions are right, usual mistakes get a hint that helps, nothing is given away."""

import functools
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from minijax.notebook import check, checks
from minijax.notebook.checks import (NOT_YET, RIGHT, UNANSWERED, Exercise, Hint, agree, evaluate,
                                     exercise, exercises, expect, is_unanswered, near, score,
                                     verdict, wanting)
from minijax.notebook.errors import is_readers_file
from tests.recorded import Answers, digest

EVERY = sorted(exercises().values(), key=lambda e: (e.chapter, e.name))
every_exercise = pytest.mark.parametrize("one", EVERY, ids=[f"{e.chapter}-{e.name}" for e in EVERY])
WRONG = [pytest.param(e, text, words, id=f"{e.name}-{place}")
         for e in EVERY for place, (text, words) in enumerate(e.wrong)]
NOTEBOOKS = Path(__file__).parent.parent.parent / "notebooks"


@pytest.fixture(autouse=True)
def nothing_checked_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_verdicts", {})
    monkeypatch.setattr(checks, "_tries", {})
    monkeypatch.setattr(checks, "_exercises", dict(checks._exercises))


# ---------------------------------------------------------------- the course's exercises


@every_exercise
def test_the_solution_is_right(one: Exercise) -> None:
    assert verdict(one, evaluate(one, one.solution)) == (RIGHT, one.afterthought)


@pytest.mark.parametrize("one, text", [pytest.param(e, text, id=f"{e.name}-{place}")
                                       for e in EVERY for place, text in enumerate(e.right)])
def test_another_right_answer_is_right(one: Exercise, text: str) -> None:
    assert verdict(one, evaluate(one, text)) == (RIGHT, one.afterthought)


@every_exercise
def test_three_usual_mistakes_are_known(one: Exercise) -> None:
    assert len({text for text, _ in one.wrong}) >= 3


@functools.cache
def sources_of(one: Exercise) -> str:
    """A digest of the files that decide what is said of an answer."""
    files = (inspect.getsourcefile(one.grade), checks.__file__)
    return digest(*(Path(file).read_text(encoding="utf-8") for file in files))


@pytest.mark.parametrize("one, text, words", WRONG)
def test_a_usual_mistake_gets_a_hint_that_helps_and_does_not_give_the_answer_away(
        one: Exercise, text: str, words: str, answers: Answers) -> None:
    answers.once(lambda: check_hint(one, text, words),
                 sources_of(one), one.name, one.solution, one.hints, text, words)


def check_hint(one: Exercise, text: str, words: str) -> None:
    state, hint = verdict(one, evaluate(one, text))
    assert state == NOT_YET
    assert words in hint and len(words) >= 4
    told = "\n".join([hint.partition("\n  in line ")[0], *one.hints])
    lines = [line.strip() for line in one.solution.splitlines()]
    head = re.compile(r"def |class |@|import|from")
    body = [line for line in lines if len(line) > 12 and not head.match(line)]
    assert not [line for line in body if line.removeprefix("return ") in told]


@every_exercise
def test_its_chapter_asks_it_and_holds_the_folded_solution(one: Exercise) -> None:
    text = (NOTEBOOKS / f"{one.chapter}.md").read_text(encoding="utf-8")
    assert re.search(rf'^check\("{re.escape(one.name)}", ', text, re.MULTILINE)
    assert f"<summary>Solution: {one.name}</summary>" in text


# ---------------------------------------------------------------- where the exercises stand

ASKING = ("from minijax.notebook import check, checks\n{before}\n"
          "check('bend', lambda x: 6 * x)\nimport exercises\nprint(exercises.__file__)")


def asked_in(folder: Path, before: str = "") -> list[str]:
    """What a fresh process prints that runs in a folder, as a notebook does, and asks `check`."""
    run = subprocess.run([sys.executable, "-c", ASKING.format(before=before)], cwd=folder,
                         env=os.environ | {"PYTHONPATH": str(NOTEBOOKS.parent)},
                         capture_output=True, text=True)
    return (run.stdout or run.stderr).splitlines()


WITHOUT_A_CHECKOUT = "checks.CHAPTERS = checks.CHAPTERS[:1]"


def test_exercises_are_those_beside_the_notebook_or_else_those_of_the_checkout(
        tmp_path: Path) -> None:
    right = "bend: right: `grad` returns a function, and functions are what `grad` takes"
    theirs = str(NOTEBOOKS / "exercises" / "__init__.py")
    assert asked_in(tmp_path) == asked_in(NOTEBOOKS.parent) == [right, theirs]
    assert asked_in(NOTEBOOKS, WITHOUT_A_CHECKOUT) == [right, theirs]
    shutil.copytree(NOTEBOOKS / "exercises", tmp_path / "exercises")
    assert asked_in(tmp_path) == asked_in(tmp_path, WITHOUT_A_CHECKOUT) == [
        right, str(tmp_path / "exercises" / "__init__.py")]


def test_where_there_are_no_exercises_check_says_in_one_sentence_where_they_are(
        tmp_path: Path) -> None:
    assert asked_in(tmp_path, WITHOUT_A_CHECKOUT)[-1] == (
        "LookupError: the exercises stand beside the chapters, in the folder `notebooks/exercises` "
        "of a checkout of minijax, and this program runs elsewhere: run it in that `notebooks`")


def test_an_error_in_a_grader_shows_no_line_of_it() -> None:
    graders = NOTEBOOKS / "exercises" / "tour.py"
    assert not is_readers_file(str(graders)) and is_readers_file(str(NOTEBOOKS / "own.py"))


# ---------------------------------------------------------------- what check says


def grade(answer: Any) -> None:
    expect(answer != 3, "too few")
    expect(near(answer, 4), "count the legs")


@pytest.fixture
def legs() -> Exercise:
    return exercise("legs", chapter="test", grade=grade, solution="4", wrong=[("3", "too few")],
                    afterthought="as a chair has", hints=["think of a chair", "and of a horse"])


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.rstrip()


def test_each_state_has_its_sentence(legs: Exercise, capsys: Any) -> None:
    check("legs", ...)
    assert said(capsys) == "legs: not yet: fill in the cell above, run it, then run this one"
    check("legs", 3)
    assert said(capsys) == "legs: not yet: too few"
    check("legs", 4)
    assert said(capsys) == "legs: right: as a chair has"


def test_each_further_try_shows_one_more_hint(legs: Exercise, capsys: Any) -> None:
    for _ in range(4):
        check("legs", 5)
    texts = capsys.readouterr().out.split("legs: ")[1:]
    assert [text.count("\n") for text in texts] == [1, 2, 3, 3]
    assert "horse" not in texts[1] and "horse" in texts[2]


def test_an_exception_in_an_answer_is_shown_with_its_line(capsys: Any) -> None:
    def bend(x: Any) -> Any:
        return x.no_such_thing

    check("bend", bend)
    text = said(capsys)
    assert text.startswith("bend: not yet: your answer raised AttributeError: ")
    assert text.endswith("return x.no_such_thing")


def test_the_score_counts_every_exercise_of_the_chapter(legs: Exercise) -> None:
    exercise("arms", chapter="test", grade=grade, solution="4", wrong=[])
    check("legs", 4)
    check("legs", 3)  # what was right once stays right
    assert score().splitlines() == [
        "        right  legs", " not answered  arms", "1 of 2 exercises are right"]
    tour = sum(one.chapter == "00_tour" for one in EVERY)
    assert score(["bend"]).splitlines()[-1] == f"1 of {tour + 2} exercises are right"


def test_two_exercises_cannot_have_one_name(legs: Exercise) -> None:
    with pytest.raises(ValueError, match="two exercises"):
        exercise("legs", chapter="another", grade=grade, solution="4", wrong=[])


def test_an_untouched_function_or_class_is_no_answer() -> None:
    def dots(x: Any) -> None:
        """What it should do."""
        ...

    def constant(x: Any) -> int:
        return 0

    class Half:
        def __init__(self) -> None:
            self.x = 1

        def todo(self) -> None:
            ...

    assert is_unanswered(dots) and is_unanswered(Half) and is_unanswered(None)
    assert not is_unanswered(constant) and not is_unanswered(len) and not is_unanswered(0)


def test_near_compares_shape_and_value() -> None:
    assert near([1, 2], [1.0, 2.0]) and not near([1, 2], [[1, 2]]) and not near("a", 1)


def test_unanswered_and_wrong_are_told_apart() -> None:
    bend = exercises()["bend"]
    assert verdict(bend, ...)[0] == UNANSWERED
    assert verdict(bend, 3)[0] == NOT_YET


def test_what_was_given_wanted_and_found_stands_before_the_hint() -> None:
    agree("x = 2", [4.00001, 1.0], [4.0, 1.0], "never said")
    with pytest.raises(Hint, match=r"^for x = 2 the slope is \[4, 1\], and yours is None\nnone$"):
        agree("x = 2", None, [4.0, 1.0], (False, "one"), (True, "none"), "else", what="the slope")
    with pytest.raises(Hint, match="and yours is 5$"):
        agree("x = 2", 5, 4, (False, "one"))


def test_what_was_given_and_wanted_stands_beside_an_error():
    with pytest.raises(Hint, match=r"^for x = 2 the answer is 4, and yours raised TypeError: no\b"
                       r"(?s:.*)\nmeant$"), wanting("x = 2", 4, (ValueError, "no"), "meant"):
        raise TypeError("no")
    with pytest.raises(Hint, match="^told$"), wanting("x = 2", 4, "never said"):
        raise Hint("told")


def test_an_answer_that_is_not_in_the_readers_library_is_missed_by_name():
    assert "mini` has no `exp` yet" in verdict(exercises()["exp"], ...)[1]
    assert "mini`" not in verdict(exercises()["depths"], ...)[1]


def test_mutants_of_a_solution_have_one_edit_each_and_a_good_check_accepts_none() -> None:
    from tests.notebook.mutants import accepted, mutants
    text = "def f(x, y):\n    if x < 0:\n        return y\n    return jnp.sum(x, axis=1)"
    found = [*mutants(text)]
    assert len(found) == len({*found}) > 12
    for mutant in (text.replace("<", "<="), text.replace("sum", "mean"),
                   text.replace(", axis=1", ""), text.replace("return y", "return x")):
        assert mutant in found
    count, kept = accepted("seen_shape")
    assert count > 20 and not kept
