"""Chapter 00, the tour: what its cells define does what the chapter says."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minijax.notebook import check
from minijax.notebook.checks import exercises

ROOT = Path(__file__).parent.parent
CHAPTER = ROOT / "notebooks" / "00_tour.ipynb"
program = runpy.run_path(str(ROOT / "tests" / "bench" / "tour.py"))["program"]
CELLS = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]

EXERCISES = sorted(name for name, one in exercises().items() if one.chapter == "00_tour")


@pytest.fixture(scope="module")
def tour() -> dict[str, Any]:
    """What the chapter's program defines, a trained network among it."""
    names = program("minijax")
    names["params"], names["losses"] = names["train"](names["jax"].random.key(0))
    names["f"] = lambda x: x**3 - 3 * x
    return names


def test_the_digits_are_those_of_the_source() -> None:
    path = CHAPTER.parent / "data" / "digits.npz"
    with np.load(path) as file:
        pixels, labels = file["pixels"], file["labels"]
    assert (pixels.shape, pixels.dtype, pixels.max()) == ((1797, 8, 8), np.uint8, 16)
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert path.stat().st_size < 100 * 1024


def test_no_picture_is_both_learned_from_and_examined(tour: dict[str, Any]) -> None:
    assert tour["x_train"].shape == (1437, 64) and tour["x_test"].shape == (360, 64)
    assert np.array_equal(np.sort(tour["order"]), np.arange(1797))


def test_ten_epochs_reach_96_percent_in_the_median_of_five_seeds(tour: dict[str, Any]) -> None:
    train, accuracy, key = tour["train"], tour["accuracy"], tour["jax"].random.key
    shares = [accuracy(train(key(seed))[0], tour["x_test"], tour["y_test"]) for seed in range(5)]
    assert np.median(shares) >= 0.96


def test_the_training_as_one_program_is_the_training_step_by_step(tour: dict[str, Any]) -> None:
    share = tour["train_and_examine"](tour["jax"].random.key(0))
    alone = tour["accuracy"](tour["params"], tour["x_test"], tour["y_test"])
    assert abs(share - alone) < 0.01


def test_with_only_its_imports_changed_the_program_trains_the_same_on_jax(
        tour: dict[str, Any]) -> None:
    theirs = program("jax")
    _, losses = theirs["train"](theirs["jax"].random.key(0))
    np.testing.assert_allclose(tour["losses"][:44], np.array(losses[:44]), rtol=1e-3)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_solution_is_right_in_the_chapters_own_world(
        exercise: str, tour: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    names = dict(tour)
    solution = exercises()[exercise].solution
    exec(solution, names)
    check(exercise, names[exercise] if exercise in names else eval(solution, names))
    assert capsys.readouterr().out.startswith(f"{exercise}: right")


def test_no_change_fools_the_trained_network_but_one_that_goes_uphill(
        tour: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    for text, words in exercises()["fooling"].wrong:
        names = dict(tour)
        exec(text, names)
        check("fooling", names["fooling"])
        said = capsys.readouterr().out
        assert said.startswith("fooling: not yet") and words in said


def test_its_live_source_is_short_and_its_experiment_is_undone() -> None:
    sources = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]
    live = [s for s in sources if s.startswith("%%live ")]
    assert len(live) >= 3 and max(s.count("\n") for s in live) <= 12
    assert "%live_reset" in sources


def test_the_files_that_the_chapter_names_exist() -> None:
    table = next(s for s in ("".join(cell["source"]) for cell in CELLS) if "| in JAX |" in s)
    theirs = re.findall(r"`jax/([\w/.]+)`", table)
    ours = [path for path in re.findall(r"`([\w/]+(?:\.py|/))`", table)
            if not path.startswith("jax/")]
    assert len(ours) >= 9 and len(theirs) >= 7
    home = Path(pytest.importorskip("jax").__file__).parent
    assert not [path for path in ours if not (ROOT / "minijax" / path).exists()]
    assert not [path for path in theirs if not (home / path).exists()]


def test_both_halves_of_the_chapter_say_the_same() -> None:
    jupytext = pytest.importorskip("jupytext")
    written = jupytext.read(CHAPTER.with_suffix(".md")).cells
    assert [cell.source for cell in written] == ["".join(cell["source"]) for cell in CELLS]
