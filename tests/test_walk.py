"""The walk of one call, as CONTRIBUTING.md tells it, is the way that the call takes."""

import re
import sys
from pathlib import Path


import minijax
from minijax import numpy as jnp

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "minijax"
STEP = re.compile(r"^\d+\. `([\w.]+)`")
MODULES = {str(path): path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
           for path in PACKAGE.rglob("*.py")}
# The walk comes by each of these modules, if the call does.
TOLD = ("transforms.", "core.jvp", "core.partial_eval", "core.linearize", "core.transpose",
        "control_flow.", "custom.", "placement.")


def steps():
    """The functions of the list, in its order."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text.partition("## The walk of one call\n")[2].partition("\n## ")[0]
    return [match[1] for line in section.splitlines() if (match := STEP.match(line))]


def calls():
    """The functions of the package that `grad(jit(f))(x)` calls, in the order of the calls."""
    found = []

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename in MODULES:
            module = MODULES[code.co_filename].removesuffix(".__init__")
            found.append(f"{module}.{code.co_qualname.replace('.<locals>', '')}")

    gradient, before = minijax.grad(minijax.jit(lambda x: jnp.sin(x) * x)), sys.getprofile()
    sys.setprofile(note)
    try:
        gradient(3.0)
    finally:
        sys.setprofile(before)
    return found


def test_the_steps_of_the_walk_are_called_in_their_order():
    called = iter(calls())
    missing = [step for step in steps() if step not in called]  # `in` goes on from where it was
    assert steps() and not missing


def test_the_walk_leaves_out_no_module_that_transforms_and_no_trace():
    told, seen = steps(), set(calls())
    modules = {module for module in MODULES.values() if module.startswith(TOLD)}
    passed, named = ({module for module in modules for name in names
                      if name.startswith(f"{module}.")} for names in (seen, told))
    assert passed == named
    assert not {name for name in seen if name.endswith(".process_primitive")} - {*told}
