"""The public modules of JAX: each is here, or its import says what to do instead."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from minijax.util import absent

HOME = Path(jax.__file__).parent


def run(program):
    """What a program prints in a process of its own."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          check=True, env=os.environ | {
                              "PYTHONPATH": str(Path(__file__).parent.parent)}).stdout


def public_modules():
    """The names after `jax.`, of files that are neither private nor tools for JAX's own build."""
    for path in sorted(HOME.rglob("*.py")):
        parts = path.relative_to(HOME).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts and parts[0] != "tools" and not any(part.startswith("_") for part in parts):
            yield ".".join(parts)


def refused(root):
    """What the imports of all of them say that fail, under one of the two names."""
    start = "import minijax.as_jax" if root == "jax" else "import minijax"
    return json.loads(run(f"""
{start}
import importlib, json, warnings
warnings.simplefilter("ignore")
said = {{}}
for name in {sorted({*public_modules(), *absent.INSTEAD})}:
    try:
        importlib.import_module("{root}." + name)
    except ImportError as error:
        said[name] = [type(error).__name__, str(error)]
print(json.dumps(said))"""))


def test_every_absent_module_of_jax_says_what_to_do_instead():
    mine = refused("minijax")
    for name in absent.INSTEAD:
        assert mine[name] == ["ImportError", absent.sentence(f"jax.{name}")]


def test_libraries_import_every_public_module_of_jax():
    assert refused("jax") == {}


@pytest.mark.parametrize("name", ["jax.export", "jax.experimental.pallas", "jax.extend.mlir",
                                  "jax.experimental.sparse.BCSR"])
def test_an_absent_module_is_no_attribute_and_refuses_use(name):
    parent, _, last = name.rpartition(".")
    said = run(f"""
import minijax.as_jax, {parent}
print(hasattr({parent}, "{last}"))
for statement in ("{name}", "import {name}; {name}.something", "from {name} import other; other()"):
    try:
        exec(statement)
    except (AttributeError, NotImplementedError) as error:
        print(type(error).__name__, error)
""").splitlines()
    text = absent.sentence(name)
    assert said == ["False", *[f"AttributeError {text}"] * 2, f"NotImplementedError {text}"]


@pytest.mark.parametrize("name", absent.FORMER)
def test_what_jax_had_until_this_version_is_refused_with_its_successor(name):
    parent, _, last = f"minijax.{name}".rpartition(".")
    said = run(f"""
import importlib
module = importlib.import_module("{parent}")
print(hasattr(module, "{last}"))
for ask in (lambda: module.{last}, lambda: exec("from {parent} import {last}")):
    try:
        ask()
    except (AttributeError, ImportError) as error:
        print(error)
""").splitlines()
    assert said == ["False", *[
        f"jax.{name} was deprecated, and is removed: use {absent.FORMER[name]} instead."] * 2]
    with pytest.raises(AttributeError, match="deprecated"):
        functools.reduce(getattr, name.split("."), jax)
