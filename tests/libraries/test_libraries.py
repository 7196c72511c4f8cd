"""Libraries written for JAX run on minijax unchanged, and give its numbers.

`programs/` has a file for each library, of programs as its documentation writes them; `recorded/`
what they returned on JAX: `python tests/libraries/test_libraries.py` runs them all there again.
With `MINIJAX_LIBRARIES=jax` a test does so, too, and compares.
"""

import functools
import hashlib
import importlib.metadata
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
NAMES = [path.stem for path in PROGRAMS]
# A program in single precision is allowed this; an error of an iteration may grow.
TOLERANCE = 1e-5


def run(path, *how):
    """What the programs of a file return, as `run.py` writes it."""
    pytest.importorskip(path.stem.partition("_")[0])
    process = subprocess.run([sys.executable, *how, str(HERE / "run.py"), str(path)],
                             capture_output=True, text=True,
                             env=os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"})
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@functools.cache
def on_minijax(name):
    return run(HERE / "programs" / f"{name}.py", "-m", "minijax.as_jax")


def recorded(name):
    return json.loads((HERE / "recorded" / f"{name}.json").read_text())


def origin(path):
    """What the numbers of a record depend on: the programs, the library and JAX."""
    library = path.stem.partition("_")[0]
    return {"programs": hashlib.sha256(path.read_bytes()).hexdigest(),
            **{each: importlib.metadata.version(each) for each in (library, "jax")}}


def names_of(path):
    return [line[4:].partition("(")[0] for line in path.read_text().splitlines()
            if line.startswith("def ") and "():" in line]


def same(ours, theirs):
    """Whether a leaf is the same: numbers of one dtype and shape to the tolerance, texts."""
    if not isinstance(theirs, dict) or not isinstance(ours, dict):
        return ours == theirs
    close = all(x == y or (x != x and y != y) or not isinstance(x, str | bool) and
                math.isclose(x, y, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
                for x, y in zip(ours["values"], theirs["values"], strict=True))
    return (ours["dtype"], ours["shape"]) == (theirs["dtype"], theirs["shape"]) and close


@pytest.mark.parametrize("name, program", [
    (path.stem, program) for path in PROGRAMS for program in names_of(path)])
def test_a_program_gives_jaxs_numbers(name, program):
    ours, theirs = on_minijax(name)[program], recorded(name)["results"][program]
    assert len(ours) == len(theirs) > 0
    for one, other in zip(ours, theirs, strict=True):
        assert same(one, other), (one, other)


@pytest.mark.parametrize("path", PROGRAMS, ids=NAMES)
def test_what_is_recorded_was_recorded_of_these_programs(path):
    """Of this text, this version of the library and of JAX; five programs at least."""
    pytest.importorskip(path.stem.partition("_")[0])
    found = recorded(path.stem)
    assert found["origin"] == origin(path)
    assert sorted(found["results"]) == sorted(names_of(path)) and len(found["results"]) >= 5
    assert not [leaf for leaves in found["results"].values() for leaf in leaves
                if isinstance(leaf, str) and "Error: " in leaf]


@pytest.mark.skipif(os.environ.get("MINIJAX_LIBRARIES") != "jax", reason="runs on JAX: a minute")
@pytest.mark.parametrize("path", PROGRAMS, ids=NAMES)
def test_jax_still_gives_what_is_recorded(path):
    again, before = run(path), recorded(path.stem)["results"]
    assert all(same(x, y) for name in before
               for x, y in zip(again[name], before[name], strict=True))


if __name__ == "__main__":
    (HERE / "recorded").mkdir(exist_ok=True)
    for each in PROGRAMS:
        if not sys.argv[1:] or each.stem in sys.argv[1:]:
            record = {"origin": origin(each), "results": run(each)}
            (HERE / "recorded" / f"{each.stem}.json").write_text(
                json.dumps(record, indent=None, separators=(",", ":")) + "\n")
            print("recorded", each.stem)
