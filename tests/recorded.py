"""Programs whose results on JAX are kept beside them, to be compared with those on minijax.

A folder has `programs/` and `recorded/`: `python -m tests.recorded libraries optax` runs those of
one file on JAX and keeps what they give; without the second name, those of all files.
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

ROOT = Path(__file__).parent.parent
RUN = ROOT / "tests" / "libraries" / "run.py"


def files(folder):
    return sorted((ROOT / "tests" / folder / "programs").glob("*.py"))


def run(path, *how):
    """What the programs of a file return and print, as `run.py` writes it."""
    process = subprocess.run([sys.executable, *how, str(RUN), str(path)],
                             capture_output=True, text=True,
                             env=os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"})
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@functools.cache
def on_minijax(path):
    return run(path, "-m", "minijax.as_jax")


def file_of(path):
    return path.parent.parent / "recorded" / f"{path.stem}.json"


def recorded(path):
    return json.loads(file_of(path).read_text())


def origin(path):
    """What a record depends on: the programs, the library that they use, and JAX."""
    library = path.stem.partition("_")[0] if "libraries" in path.parts else "jax"
    return {"programs": hashlib.sha256(path.read_bytes()).hexdigest(),
            **{each: importlib.metadata.version(each) for each in (library, "jax")}}


def names_of(path):
    return [line[4:].partition("(")[0] for line in path.read_text().splitlines()
            if line.startswith("def ") and "():" in line]


def same(ours, theirs, tolerance):
    """Whether a leaf is the same: numbers of one dtype and shape to a tolerance, texts."""
    if not isinstance(theirs, dict) or not isinstance(ours, dict):
        return ours == theirs
    close = all(x == y or (x != x and y != y) or not isinstance(x, str | bool) and
                math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance)
                for x, y in zip(ours["values"], theirs["values"], strict=True))
    return (ours["dtype"], ours["shape"]) == (theirs["dtype"], theirs["shape"]) and close


def is_recorded(path):
    """Of this text, this version of the library and of JAX; and no program was stopped."""
    found = recorded(path)
    assert found["origin"] == origin(path)
    assert sorted(found["results"]) == sorted(names_of(path)) and len(found["results"]) >= 5
    assert not [leaf for leaves in found["results"].values() for leaf in leaves
                if isinstance(leaf, str) and leaf.startswith("stopped by ")]
    return True


def record(path):
    file_of(path).parent.mkdir(exist_ok=True)
    file_of(path).write_text(json.dumps({"origin": origin(path), "results": run(path)},
                                        indent=None, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    for each in files(sys.argv[1]):
        if not sys.argv[2:] or each.stem in sys.argv[2:]:
            record(each)
            print("recorded", each.stem)
