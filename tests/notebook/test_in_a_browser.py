"""The chapters that the live site offers run without Numba, SciPy, llvmlite and threads."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Without LARGE=1; those with cells that are said to raise errors in a browser, and one more.
SHARE = ("02", "06", "11", "20", "25", "27")


@pytest.fixture(scope="module")
def live():
    sys.path.insert(0, str(ROOT / "book"))
    spec = importlib.util.spec_from_file_location("live", ROOT / "book" / "live.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(ROOT / "book"))
    return module


def in_a_process(*arguments, cwd=ROOT, **environment):
    # The laws' plugin and minijax come from this checkout.
    return subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT), **environment})


def test_offered_chapters_run_as_in_a_browser(live, tmp_path):
    contents = live.contents()
    for place, content in contents.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(content.encode() if isinstance(content, str) else content)
    names = [name for name in contents if name.endswith(".ipynb")
             and (os.environ.get("LARGE") or name[:2] in SHARE)]
    assert len(names) >= len(SHARE)
    run = in_a_process("-m", "tests.as_in_a_browser", *(str(tmp_path / name) for name in names))
    assert not run.returncode, run.stderr


def test_the_first_cell_installs_the_wheel_and_limits_recursion(live):
    notebook = json.loads(live.contents()["03_forward_derivatives.ipynb"])
    first = "".join(notebook["cells"][0]["source"])
    assert 'piplite.install(["minijax"' in first and "setrecursionlimit(1000)" in first
    assert not any(cell.get("outputs") for cell in notebook["cells"])


def test_smaller_sizes_and_times_are_announced_before_their_cells(live):
    notebooks = [json.loads(text)["cells"] for name, text in live.contents().items()
                 if name.endswith(".ipynb")]
    sources = [["".join(cell["source"]) for cell in cells] for cells in notebooks]
    for fewer in live.FEWER.values():
        assert any(fewer in text for texts in sources for text in texts), fewer
    for text, before in ((text, set(texts[max(place - 2, 0):place])) for texts in sources
                         for place, text in enumerate(texts)):
        assert not any(fewer in text for fewer in live.FEWER.values()) or live.SMALLER in before
        assert "time.perf_counter()" not in text or live.SLOWER in before


def test_laws_hold_without_a_compiler():
    names = "" if os.environ.get("LARGE") else "and (gather or cumsum or sinh)"
    run = in_a_process(
        "-m", "pytest", "-q", "-p", "tests.as_in_a_browser", "tests/test_laws.py", "-k",
        f"(evaluation_is or vmap_is or jvp_is or vjp_agrees or linearize_is) {names}",
        JAX_PLATFORMS="numpy")
    assert not run.returncode, run.stdout


def test_a_browser_interprets_and_has_an_older_ml_dtypes():
    run = in_a_process("-c", "import numpy, sys; sys.platform = 'emscripten'\n"
                       "from tests import as_in_a_browser; as_in_a_browser.enter()\n"
                       "import minijax as jax\n"
                       "print(jax.devices()[0].interprets, jax.jit(lambda x: x + 1)(2))\n"
                       "from minijax.numpy import *\n"
                       "print(zeros(2, int4), hasattr(jax.numpy, 'int1'))")
    assert run.stdout.split() == ["True", "3", "[0", "0]", "False"], run.stderr


def test_buttons_lead_to_the_live_site_and_to_colab(live):
    chapter = ROOT / "notebooks" / "03_forward_derivatives.ipynb"
    build = sys.modules["build"]
    links = build.buttons(chapter, "https://github.com/someone/minijax", live=True)
    assert "live/lab/index.html?path=03_forward_derivatives.ipynb" in links and "CDN" in links
    assert "colab.research.google.com/github/someone/minijax/" in links
    assert not build.buttons(chapter, "", live=False)
    assert "Run in" not in build.buttons(ROOT / "notebooks/24_loops_and_numba.ipynb", "", live=True)


START = """
import { pathToFileURL } from "node:url";
const [pyodide, checkout, ...packages] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(pyodide + "/pyodide.mjs"));
const python = await loadPyodide();
await python.loadPackage(packages, { messageCallback: () => {} });
python.FS.mkdir("/checkout");
python.FS.mount(python.FS.filesystems.NODEFS, { root: checkout }, "/checkout");
python.runPython("import sys; sys.path.insert(0, '/checkout')");
"""
PROGRAM = START + """
python.runPython(`
import minijax as jax, minijax.numpy as jnp
f = jax.jit(jax.value_and_grad(lambda x: jnp.sum(jnp.take(x, jnp.array([2, 0])) ** 2)))
print(*f(jnp.arange(3.)), jnp.zeros(3).at[jnp.array([1])].set(7.))
`);
"""
CHAPTER = START + """
python.FS.mkdir("/chapters");
python.FS.mount(python.FS.filesystems.NODEFS, { root: process.cwd() }, "/chapters");
python.runPython(`
from tests import as_in_a_browser
print("failed:", as_in_a_browser.main(["/chapters/chapter.ipynb"]))
`);
"""


def in_pyodide(folder, script, *packages):
    """What a script of node's prints that starts Pyodide with these packages."""
    pyodide, node = os.environ.get("PYODIDE", ""), shutil.which("node")
    if not node or not pyodide or not list(Path(pyodide).glob("numpy-*.whl")):
        pytest.skip("needs node, and in $PYODIDE the folder of a full distribution of Pyodide")
    (folder / "script.mjs").write_text(script)
    run = subprocess.run([node, "script.mjs", pyodide, str(ROOT), *packages],
                         capture_output=True, text=True, cwd=folder)
    return run.stdout, run.stderr[-2000:]


def test_the_real_pyodide_runs_a_program(tmp_path):
    printed, errors = in_pyodide(tmp_path, PROGRAM, "numpy", "ml-dtypes")
    assert printed.split() == "4.0 [0. 0. 4.] [0. 7. 0.]".split(), errors


@pytest.mark.parametrize("number", ["02", "04", "12", "14"])
def test_the_real_pyodide_runs_a_chapter(live, tmp_path, number):
    for name, content in live.contents().items():
        path = tmp_path / ("chapter.ipynb" if name.startswith(f"{number}_") else name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    printed, errors = in_pyodide(tmp_path, CHAPTER, "numpy", "ml-dtypes", "ipython", "matplotlib")
    assert "failed: False" in printed, errors
