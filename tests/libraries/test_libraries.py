"""Libraries written for JAX run on minijax unchanged, and give its numbers.

`programs/` has a file for each library, of programs as its documentation writes them; `recorded/`
what they returned on JAX: `python -m tests.recorded libraries` runs them all there again.
With `ORACLE=live` a test does so, too, and compares.  Those of `ALWAYS` run in every `make test`,
the others in turn.
"""

import pytest

from tests.recorded import ORACLE, files, is_recorded, names_of, on_minijax, recorded, run, same

PROGRAMS = files("libraries")
NAMES = [path.stem for path in PROGRAMS]
# A program in single precision is allowed this; an error of an iteration may grow.
TOLERANCE = 1e-5
ALWAYS = {"blackjax", "chex", "diffrax", "equinox", "flax_linen", "flax_nnx", "jaxopt", "jaxtyping",
          "lineax", "optax", "optimistix"}


def in_turn(path):
    return [] if path.stem in ALWAYS else [pytest.mark.in_turn(path.stem)]


@pytest.mark.parametrize("path, program", [
    pytest.param(path, program, id=f"{path.stem}-{program}", marks=in_turn(path))
    for path in PROGRAMS for program in names_of(path)])
def test_a_program_gives_jaxs_numbers(path, program):
    ours, theirs = on_minijax(path)[program], recorded(path)["results"][program]
    assert len(ours) == len(theirs) > 0
    for one, other in zip(ours, theirs, strict=True):
        assert same(one, other, TOLERANCE), (one, other)


@pytest.mark.parametrize("path", PROGRAMS, ids=NAMES)
def test_what_is_recorded_was_recorded_of_these_programs(path):
    assert is_recorded(path)


@pytest.mark.skipif(ORACLE != "live", reason="runs on JAX: a minute")
@pytest.mark.parametrize("path", PROGRAMS, ids=NAMES)
def test_jax_still_gives_what_is_recorded(path):
    again, before = run(path), recorded(path)["results"]
    assert all(same(x, y, TOLERANCE) for name in before
               for x, y in zip(again[name], before[name], strict=True))
