"""What JAX says is kept in `recorded/`, beside the tests that compare with it.

Programs, in `programs/` beside it: `python -m tests.recorded libraries optax` runs those of one
file on JAX and keeps what they give; without the second name, those of all files.

Answers to what tests ask, by a digest of JAX's version and the question: `Answers`.  JAX itself
is asked where none is kept, and where minijax does not agree with the one that is.  `ORACLE=live`
has it asked always; `ORACLE=record pytest tests/numpy/test_linalg.py` keeps what that file asks,
and no more than that.
"""

import base64
import contextlib
import functools
import hashlib
import importlib.metadata
import json
import math
import os
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

ORACLE = os.environ.get("ORACLE", "")
REPLAY = os.environ.get("REPLAY", "")
LIVE = {"ask": "JAX"}  # of what cannot be kept
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


def library_of(path):
    """The distribution of the library that a file's programs use."""
    return path.stem.partition("_")[0]


def origin(path):
    """What a record depends on: the programs, the library that they use, and JAX."""
    library = library_of(path) if "libraries" in path.parts else "jax"
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
    assert sorted(found["results"]) == sorted(names_of(path)) and len(found["results"]) >= 2
    assert not [leaf for leaves in found["results"].values() for leaf in leaves
                if isinstance(leaf, str) and leaf.startswith("stopped by ")]
    return True


def record(path):
    file_of(path).parent.mkdir(exist_ok=True)
    file_of(path).write_text(json.dumps({"origin": origin(path), "results": run(path)},
                                        indent=None, separators=(",", ":")) + "\n")


# ── Answers ──────────────────────────────────────────────────────────────────────────────────

class Refused(NamedTuple):
    """The class of an error, and what it also is."""

    kinds: tuple[str, ...]
    text: str = ""  # which is not recorded


def refusal(error: Exception) -> Refused:
    return Refused(tuple(kind.__name__ for kind in type(error).__mro__), str(error)[:300])


@dataclass(frozen=True, eq=False)
class Array:
    """An array of JAX's."""

    values: np.ndarray
    weak_type: bool

    dtype = property(lambda self: self.values.dtype)
    shape = property(lambda self: self.values.shape)
    ndim = property(lambda self: self.values.ndim)
    size = property(lambda self: self.values.size)

    def __float__(self) -> float:
        return float(self.values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values if dtype is None else self.values.astype(dtype)


@dataclass(frozen=True)
class Shown:
    """What is known by what it shows."""

    text: str

    def __repr__(self) -> str:
        return self.text


def written(x: Any) -> Any:
    """A value as JSON."""
    if type(x) in (bool, int, float, str, type(None)):
        return x
    if isinstance(x, Exception | Refused):
        return {"refused": (x if isinstance(x, Refused) else refusal(x)).kinds}
    if isinstance(x, list):
        return [written(y) for y in x]
    if isinstance(x, tuple):
        return {"tuple": [written(y) for y in x], "named": type(x).__name__}
    if isinstance(x, dict):
        return {"dict": [[written(y) for y in pair] for pair in x.items()]}
    if isinstance(x, FunctionType):
        return {"shown": f"{x.__qualname__}, line {x.__code__.co_firstlineno}"}
    if not isinstance(x, np.ndarray) and not hasattr(x, "weak_type"):
        return {"shown": repr(x)}
    values = np.asarray(x)
    weak = {} if isinstance(x, np.ndarray) else {"weak": bool(x.weak_type)}
    data, is_long = values.tobytes(), values.nbytes > 1000
    text = base64.b64encode(zlib.compress(data, 9) if is_long else data).decode()
    return {"dtype": str(values.dtype), "shape": values.shape, **weak,
            "packed" if is_long else "data": text}


def digest(*values: Any) -> str:
    return hashlib.sha256(json.dumps(list(map(written, values))).encode()).hexdigest()[:16]


def read(x: Any) -> Any:
    """The value that was written so."""
    match x:
        case {"refused": kinds}:
            return Refused(tuple(kinds))
        case {"tuple": values, "named": name}:
            kind = tuple if name == "tuple" else type(name, (tuple,), {})
            return kind(map(read, values))
        case {"dict": pairs}:
            return {read(key): read(value) for key, value in pairs}
        case {"shown": text}:
            return Shown(text)
        case {"dtype": dtype, "shape": shape}:
            data = base64.b64decode(x.get("data") or x.get("packed", ""))
            data = zlib.decompress(data) if "packed" in x else data
            kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
            values = np.frombuffer(data, kind).reshape(shape)
            return Array(values, x["weak"]) if "weak" in x else values
        case [*values]:
            return [read(value) for value in values]
    return x


def assert_whole(x: Any) -> None:
    """Nothing in a value that was read is known by what it shows alone."""
    assert not isinstance(x, Shown | Refused) and (type(x) is tuple or not isinstance(x, tuple))
    if isinstance(x, dict | list | tuple):
        for part in (x.items() if isinstance(x, dict) else x):
            assert_whole(part)


class Answers:
    """What JAX says to what the tests of a file ask."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.parent / "recorded" / f"{path.stem}.json"
        is_kept = ORACLE != "live" and self.file.exists()
        self.kept = json.loads(self.file.read_text()) if is_kept else {}
        self.new: dict[str, Any] = {}
        self.missing = 0

    def key(self, *question: Any) -> str:
        return digest(importlib.metadata.version("jax"), *question)

    def check(self, key: str, compare: Callable[[Any], Any], *ask: Callable[[], Any]) -> None:
        """Compares with what is kept; if they differ, with what JAX says, asked in these ways."""
        recorded = self.kept.get(key, LIVE)
        self.missing += key not in self.kept
        for way in (*[lambda: read(recorded)] * (recorded != LIVE), *ask):
            try:
                answer = way()
                compare(answer)
                break
            except (AssertionError, LookupError):
                if way is ask[-1]:
                    raise
        if ORACLE == "record":
            self.record(key, answer, compare)

    def record(self, key: str, answer: Any, compare: Callable[[Any], Any] = repr) -> None:
        """Keeps an answer, where as much is seen in what is written of it."""
        self.new[key] = LIVE
        with contextlib.suppress(Exception):
            text = json.loads(json.dumps(written(answer)))
            compare(read(text))
            self.new[key] = text

    def said(self, key: str, ask: Callable[[], Any], is_enough: Callable = repr) -> Any:
        """What is kept, or else what JAX says: that is kept if `is_enough` of it, read again."""
        recorded = self.kept.get(key, LIVE)
        self.missing += key not in self.kept
        answer = ask() if recorded == LIVE else read(recorded)
        if ORACLE == "record":
            self.record(key, answer, is_enough)
        return answer

    def once(self, check: Callable[[], None], *what: Any) -> None:
        """Runs a check, unless of just this it has passed: `REPLAY=off` runs it all the same."""
        key = self.key(*what)
        if key not in self.kept or REPLAY == "off":
            check()
            self.missing += key not in self.kept
        self.new[key] = True

    def close(self) -> None:
        if ORACLE == "record" and self.new:
            self.file.parent.mkdir(exist_ok=True)
            lines = (f'"{key}": {json.dumps(x, separators=(",", ":"))}'
                     for key, x in sorted(self.new.items()))
            self.file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        elif not ORACLE and self.missing:
            warnings.warn(f"{self.missing} answers are not recorded: ORACLE=record pytest "
                          f"{self.path.relative_to(ROOT)}", stacklevel=1)


if __name__ == "__main__":
    for each in files(sys.argv[1]):
        if not sys.argv[2:] or each.stem in sys.argv[2:]:
            record(each)
            print("recorded", each.stem)
