"""JAX's tutorials, page by page: what their steps print and return is the same on minijax.

`programs/` has a page in each file and its steps, in words and data of our own; `recorded/` what
they gave on JAX: `python -m tests.recorded tutorials` runs them there again, and so does a test
with `ORACLE=live`.  Steps that write HLO are left out: there is none here.
"""

import pytest

from tests.recorded import ORACLE, files, is_recorded, names_of, on_minijax, recorded, run, same

PAGES = files("tutorials")
NAMES = [path.stem for path in PAGES]


def agree(ours, theirs):
    assert len(ours) == len(theirs) > 0
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, str) and isinstance(other, str):
            assert one == other  # which shows where
        assert same(one, other, 1e-6), (one, other)


@pytest.mark.parametrize("path, step", [
    pytest.param(path, step, id=f"{path.stem}-{step}")
    for path in PAGES for step in names_of(path)])
def test_a_step_prints_and_returns_what_it_does_on_jax(path, step):
    agree(on_minijax(path)[step], recorded(path)["results"][step])


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_what_is_recorded_was_recorded_of_these_pages(path):
    assert is_recorded(path)


@pytest.mark.skipif(ORACLE != "live", reason="runs on JAX: a minute")
@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_jax_still_gives_what_is_recorded(path):
    again, before = run(path), recorded(path)["results"]
    for step in before:
        agree(again[step], before[step])
