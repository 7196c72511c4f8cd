"""What is left out on purpose: `jax_exclusions.toml`, a reason each."""

import fnmatch
import importlib
import tomllib
from pathlib import Path

ROWS = tomllib.loads((Path(__file__).parent / "jax_exclusions.toml").read_text())["excluded"]


def names_of(row, library):
    """The names that a row means, in a library."""
    module, _, pattern = row.rpartition(".")
    if module == "Array (methods)":
        array = importlib.import_module(f"{library}.numpy").ones(1)
        return [name for name in dir(array) if name == pattern]
    try:
        found = importlib.import_module(module.replace("jax", library, 1))
    except ModuleNotFoundError:
        return []
    return [name for name in dir(found) if fnmatch.fnmatchcase(name, pattern)]


def test_what_is_left_out_is_in_jax_and_not_here_and_has_a_reason():
    for row, reason in ROWS.items():
        assert names_of(row, "jax") and not names_of(row, "minijax"), row
        assert len(reason) > 8, row
