"""The public modules of JAX: each is here, or its import says what to do instead."""

import json
import os
import re
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
for name in {list(public_modules())}:
    try:
        importlib.import_module("{root}." + name)
    except ImportError as error:
        said[name] = [type(error).__name__, str(error)]
print(json.dumps(said))"""))


def test_every_public_module_of_jax_is_here_or_says_what_to_do_instead():
    under_jax = refused("jax")
    for name, (kind, text) in under_jax.items():
        assert kind == "ImportError" and text == absent.sentence(f"jax.{name}"), name
    rows = (Path(absent.__file__).parent.parent / "as_jax" / "names.py").read_text()
    for_libraries = {name for name in absent.INSTEAD if re.search(rf"^jax\.{name}[ .]", rows, re.M)}
    assert set(absent.INSTEAD) - for_libraries <= set(under_jax)
    mine = refused("minijax")
    assert {name: mine[name] for name in under_jax} == under_jax


@pytest.mark.parametrize("name", ["jax.export", "jax.experimental.pallas", "jax.extend.mlir"])
def test_an_absent_module_is_no_attribute_and_says_the_same(name):
    parent, _, last = name.rpartition(".")
    said = run(f"""
import minijax.as_jax, {parent}
print(hasattr({parent}, "{last}"))
for statement in ("{name}", "import {name}", "from {parent} import {last}",
                  "from {name} import something"):
    try:
        exec(statement)
    except (AttributeError, ImportError) as error:
        print(type(error).__name__, error)
""").splitlines()
    text = absent.sentence(name)
    assert said == ["False", f"AttributeError {text}", *[f"ImportError {text}"] * 3]
