"""Where minijax and JAX 0.10.2 differ on purpose: `jax_differences.toml`, one row each.

A row has a behaviour, what each library does, and why. What it says of both is what really comes
out of its `program`, an expression in the names below; without one it says why: `no_program`.
Where generated programs meet it, `generated` has a pattern of such programs, and one of what is
then said to differ.
"""

import logging
import tomllib
import traceback
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.experimental.checkify
import numpy as np
import pytest

import minijax
import minijax.experimental.checkify
from tests.wording import wording

ROWS = tomllib.loads((Path(__file__).parent / "jax_differences.toml").read_text())["difference"]
FIELDS = {"behaviour", "ours", "jax", "why"}


def error(f: Any) -> str:
    """The class and the text of what f raises."""
    try:
        f()
    except Exception as found:
        return f"{type(found).__name__}: {found}"
    return "no error"


def warning(f: Any) -> str:
    """What f warns of first."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        f()
    return str(found[0].message) if found else "no warning"


def within(context: Any, f: Any) -> Any:
    """What f gives in a context."""
    with context:
        return f()


def frames(f: Any) -> int:
    """How many frames of a library the traceback of what f raises has."""
    try:
        f()
    except Exception as found:
        files = [frame.filename for frame in traceback.extract_tb(found.__traceback__)]
        return sum("/site-packages/jax/" in name or "/minijax/" in name for name in files)
    return 0


def logged(f: Any) -> str:
    """What f logs last."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    for name in ("jax", "minijax"):
        logging.getLogger(name).addHandler(handler)
    try:
        f()
    finally:
        for name in ("jax", "minijax"):
            logging.getLogger(name).removeHandler(handler)
    return lines[-1]


def tracer(transform: Any, x: Any) -> str:
    """How the tracer prints that a transformed function is given."""
    found = []

    def program(x):
        found.append(str(x))
        return x * 1.0

    transform(program)(x)
    return found[0]


def primitives(jaxpr: Any) -> str:
    """The names of the primitives in a jaxpr's equations."""
    return " ".join(eqn.primitive.name for eqn in jaxpr.eqns)


def params(jaxpr: Any) -> str:
    """The names of the parameters of a jaxpr's last equation."""
    return " ".join(sorted(jaxpr.eqns[-1].params))


def outcome(program: str, lib: Any) -> str:
    names = {"jax": lib, "jnp": lib.numpy, "lax": lib.lax, "nn": lib.nn, "random": lib.random,
             "checkify": lib.experimental.checkify, "np": np, "error": error, "warning": warning,
             "tracer": tracer, "params": params, "primitives": primitives, "within": within,
             "frames": frames, "logged": logged}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return str(eval(program, names))


def normalized(text: str) -> str:
    return wording(" ".join(text.split()))


def test_every_row_is_complete_and_there_once():
    for row in ROWS:
        assert FIELDS <= set(row) <= FIELDS | {"program", "no_program", "generated"}, row
        assert ("program" in row) != ("no_program" in row), row
        texts = [*row.get("generated", ()), *(row[field] for field in set(row) - {"generated"})]
        assert all(isinstance(text, str) and text.strip() for text in texts), row
        assert normalized(row["ours"]) != normalized(row["jax"]), row
    for field in ("behaviour", "program"):
        texts = [row[field] for row in ROWS if field in row]
        assert len(texts) == len(set(texts))


@pytest.mark.parametrize("row", [pytest.param(row, id=row["behaviour"])
                                 for row in ROWS if "program" in row])
def test_what_a_row_says_is_so(row, answers):
    program, this_file = row["program"], Path(__file__).read_text()
    assert normalized(outcome(program, minijax)) == normalized(row["ours"])
    theirs = answers.said(answers.key(program, this_file), lambda: outcome(program, jax))
    assert normalized(theirs) == normalized(row["jax"])
