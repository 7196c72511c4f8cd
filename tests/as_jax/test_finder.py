"""`import jax` is minijax, in processes of their own: this one has JAX."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def run(*command, succeeds=True):
    """What Python prints for these arguments, its errors included."""
    process = subprocess.run([sys.executable, *command], capture_output=True, text=True,
                             env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert (process.returncode == 0) is succeeds, process.stderr
    return process.stdout + process.stderr


def test_modules_are_the_same_under_both_names():
    assert run("-c", """
import minijax.as_jax, minijax, sys
import jax, jax.numpy as jnp, jax.scipy.linalg
from jax import lax, random
from jax._src import core
import jax.interpreters.ad as ad
assert jnp is minijax.numpy is jax.numpy and lax is minijax.lax and random is minijax.random
assert jax.scipy.linalg is minijax.scipy.linalg and jax.grad is minijax.grad
assert core.Tracer is jax.core.Tracer is minijax.core.Tracer and ad.Zero is minijax.core.Zero
assert jax.__version__ == "0.10.2" and not [m for m in sys.modules if m.startswith("jaxlib")]
assert minijax.numpy.__spec__.name == "minijax.numpy" and "numpy" in dir(jax)
print(jax.jit(jax.grad(lambda x: jnp.sin(x) * 2))(0.0))
""") == "2.0\n"


def test_a_function_stays_one_where_a_module_has_its_name():
    """As `shard_map` does, which stands in a module of that name."""
    run("-c", """
import types, minijax.as_jax, minijax, jax
for name, value in vars(minijax).items():
    if not name.startswith("_") and not isinstance(value, types.ModuleType):
        assert getattr(jax, name) is value, name
from jax import shard_map
assert callable(shard_map)""")


def test_a_name_that_is_missing_is_told_with_the_nearest():
    said = run("-c", """
import minijax.as_jax, jax
def told(statement):
    try:
        exec(statement)
    except (AttributeError, ImportError) as error:
        print(type(error).__name__, error)
told("jax.vmapp")
told("jax.numpy.sinn")
told("jax._src.core.ShapedArrai")
told("from jax.numpy import sinn")
told("from jax import nothing_like_it")
told("from jax.experimental.hijax import HiPrimitiv")
told("import jax.numpy.linallg")
print(hasattr(jax.numpy, "sinn"), getattr(jax, "sinn", None))
""").splitlines()
    tells = "minijax, which is `jax` in this process, has no jax."
    assert said == [
        f"AttributeError {tells}vmapp; the closest name is jax.vmap.",
        f"AttributeError {tells}numpy.sinn; the closest name is jax.numpy.sin.",
        f"AttributeError {tells}_src.core.ShapedArrai; the closest name is "
        "jax._src.core.ShapedArray.",
        f"ModuleNotFoundError {tells}numpy.sinn; the closest name is jax.numpy.sin.",
        f"ModuleNotFoundError {tells}nothing_like_it.",
        f"ModuleNotFoundError {tells}experimental.hijax.HiPrimitiv; the closest name is "
        "jax.experimental.hijax.HiPrimitive.",
        f"ModuleNotFoundError {tells}numpy.linallg; the closest name is jax.numpy.linalg.",
        "False None"]


def test_what_is_absent_is_imported_and_refuses_use():
    """Qwix and JAX MD import Pallas, Jaxley a solver: none needs them on a CPU."""
    said = run("-c", """
import minijax.as_jax, jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
import jax.experimental.pallas.tpu
import jax.experimental.sparse.linalg as linalg
from jax.experimental.sparse.linalg import spsolve
for use in (lambda: pl.BlockSpec, lambda: triton.load, lambda: linalg.lobpcg_standard,
            lambda: spsolve(1)):
    try:
        use()
    except (AttributeError, NotImplementedError) as error:
        print(type(error).__name__, error)
try:
    from jax.lib import xla_bridge
except ImportError as error:
    print(error)
""").splitlines()
    pallas, linalg = (f"minijax has no jax.experimental.{name}, which "
                      for name in ("pallas", "sparse.linalg"))
    starts = [f"AttributeError {pallas}"] * 2 + [f"AttributeError {linalg}",
              f"NotImplementedError {linalg}", "minijax has no jax.lib"]
    assert len(said) == len(starts) and all(map(str.startswith, said, starts)), said


def test_jax_that_is_there_already_is_not_replaced():
    said = run("-c", """
import sys, types
sys.modules["jax"] = types.ModuleType("jax")
import minijax.as_jax""", succeeds=False)
    assert "ImportError: JAX itself is loaded already" in said


def test_a_script_and_a_module_run_as_they_are(tmp_path):
    script = tmp_path / "script.py"
    (tmp_path / "beside.py").write_text("here = 1\n")
    script.write_text("import jax, sys, beside\n"
                      "print(__name__, jax.Array.__module__, sys.argv[1:])\n"
                      "print((lambda: 0).__code__.co_filename)\n")
    said = f"__main__ minijax.core.array ['a', '-b']\n{script}\n"
    for path in (str(script), os.path.relpath(script)):  # which Python makes absolute
        assert run("-m", "minijax.as_jax", path, "a", "-b") == said
    assert "usage" in run("-m", "minijax.as_jax", succeeds=False)
    statement = "import jax; print(jax.Array.__module__)"
    assert "minijax.core.array\n" in run(
        "-m", "minijax.as_jax", "-m", "timeit", "-n1", "-r1", statement)


def test_tests_run_as_they_are(tmp_path):
    test = tmp_path / "test_it.py"
    test.write_text("import jax\n\ndef test_whose_arrays():\n"
                    "    assert jax.numpy.ones(3).__class__.__module__ == 'minijax.core.array'\n")
    said = run("-m", "pytest", "-q", "-p", "minijax.as_jax", "-c", os.devnull, str(test))
    assert "1 passed" in said


def test_every_row_leads_somewhere_and_none_is_needless():
    """What a row names is there; what `minijax` has where JAX has it needs none."""
    assert run("-c", """
import importlib, minijax.as_jax
from minijax.as_jax import finder, names
rows = names.TABLE.strip().splitlines()
for row in rows:
    assert row.split("|")[2].split(), f"who asks for these? {row}"
listed = [name for row in rows for name, _ in names.places(row)]
assert len(listed) == len(set(listed)) == len(names.OURS)
for name, ours in names.OURS.items():
    module, _, last = name.rpartition(".")
    found = getattr(importlib.import_module(module), last)
    assert found is finder.ours_at(ours), name
    beside = getattr(finder.module_for(module), "_ours", None)
    assert getattr(beside, last, None) is not found, f"needless: {name}"
""") == ""


def test_what_is_known_is_computed_at_once_while_tracing():
    assert run("-c", """
import minijax.as_jax, jax, jax.numpy as jnp
@jax.jit
def f(x):
    with jax.ensure_compile_time_eval():
        known, unknown = jnp.ones(2).sum(), x + 1
        assert not isinstance(known, jax.core.Tracer) and isinstance(unknown, jax.core.Tracer)
        return x * float(known) + unknown
print(f(3.0))
""") == "10.0\n"
