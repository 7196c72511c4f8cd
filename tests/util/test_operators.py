"""The first operator of a process loads the operators, and is already the right one."""

import subprocess
import sys

import pytest

from minijax.core import Array
from minijax.numpy import operators as loaded
from minijax.util import operators


def test_every_special_method_of_arrays_is_looked_for_before_it_is_loaded():
    installed = {name for name, value in loaded._attributes().items()
                 if name.startswith("__") and not isinstance(value, property)}
    special = {f"__{name}__" for name in operators.SPECIAL}
    assert special - {"__repr__", "__str__"} == installed
    assert all(vars(Array)[name] is not vars(operators.Operators)[name] for name in installed)


@pytest.mark.parametrize(("expression", "result"), [
    ("x + 1", "[2 3]"), ("1 - x", "[ 0 -1]"), ("-x", "[-1 -2]"), ("x[1]", "2"),
    ("x == 1", "[ True False]"),
    ("repr(x)", "Array([1, 2], dtype=int32)"), ("list(map(int, x))", "[1, 2]"), ("x.T", "[1 2]"),
    ("x.at[0].set(5)", "[5 2]"), ("bool(x[:1])", "True"), ("float(x[0])", "1.0"),
    ("np.asarray(x)", "[1 2]"), ("copy.deepcopy(x)", "[1 2]"),
    ("pickle.loads(pickle.dumps(x))", "[1 2]"),
    ("f'{x[0]:03}'", "001"), ("hasattr(x, 'nothing')", "False"), ("x.sum()", "3"),
    ("divmod(x, 2)[1]", "[1 0]"), ("1 in x", "True"), ("jax.grad(lambda y: y * y)(3.0)", "6.0")])
def test_the_first_use_in_a_process_is_as_any_other(expression, result):
    program = ("import copy, pickle\nimport numpy as np\nimport minijax as jax\n"
               "from minijax import core\nx = core.as_value(np.array([1, 2], np.int32))\n"
               f"assert '__add__' not in vars(core.Array)\nprint({expression})")
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.stdout.strip(), run.returncode) == (result, 0), run.stderr
