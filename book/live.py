"""Make a JupyterLite of the chapters that run in a browser, beside the site of the book.

    python book/live.py         in book/_build/html/live

Nothing is installed by the reader. There is no LLVM in a browser, so NumPy runs programs; Python
and NumPy come from Pyodide's CDN. The chapters on machine code are left out.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from build import IN_A_BROWSER, NOTEBOOKS, ROOT, SITE, chapters, write

LIVE = SITE / "live"
SOURCE = SITE.parent / "live"
INSTALL = """\
# In a browser: the wheel of minijax from this site, NumPy from a CDN.
import sys

import piplite
await piplite.install(["minijax", "matplotlib"])
# Python's own limit: with that of IPython's completion an endless recursion ends Python here.
sys.setrecursionlimit(1000)"""
# What a browser has not: the cell says so, and "Run All" goes on.
ABSENT = re.compile(
    r"threading\.Thread|^(import|from) (numba|llvmlite|scipy)|as_text\(\"(numba|ptx|llvm|asm)|"
    r"launch1|exec\(program|%tid\.x|machine\.cost|seconds\.get|widgets\.scaling", re.MULTILINE)
WITHOUT = "*In a browser there are no threads and no compiler: the next cell raises an error.*"
SILENT = re.compile(r"^    np\.log\(np\.array\(\[-1\.0\]\)\)$", re.MULTILINE)
UNFLAGGED = ("*WebAssembly has no floating-point flags, so that NumPy does not warn: the next cell "
             "raises an error.*")
# A loop of Python in place of machine code; with so many rounds it takes minutes.
FEWER = {"long = np.linspace(0.1, 1.0, 20_000)": "long = np.linspace(0.1, 1.0, 200)",
         "size=(2, 500_000)": "size=(2, 5_000)", "size=400_000": "size=4_000"}
SMALLER = "*In a browser no loop is compiled: the next cell computes with fewer numbers.*"
TIMED = re.compile(r"perf_counter|milliseconds\(")
SLOWER = "*In a browser an interpreter runs programs: these times are not those of the text.*"


def offered() -> list[Path]:
    """The chapters that run in a browser, in reading order."""
    return [chapter for chapter in chapters() if chapter.stem[:2] in IN_A_BROWSER]


def for_a_browser(text: str) -> str:
    """A chapter with a first cell that installs the wheel, notes on what differs, no outputs."""
    notebook = json.loads(text)
    cells = [_cell("code", INSTALL)]
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            usual = source = "".join(cell["source"])
            for many, fewer in FEWER.items():
                source = source.replace(many, fewer)
            cell |= {"source": source.splitlines(True), "outputs": [], "execution_count": None}
            if ABSENT.search(source) or SILENT.search(source):
                tags = cell["metadata"].setdefault("tags", [])
                tags += [tag for tag in ("raises-exception", "absent") if tag not in tags]
            notes = {WITHOUT: ABSENT.search(source), UNFLAGGED: SILENT.search(source),
                     SMALLER: source != usual, SLOWER: TIMED.search(source)}
            cells += [_cell("markdown", note) for note, applies in notes.items() if applies]
        cells.append(cell)
    for place, cell in enumerate(cells):
        cell["id"] = f"cell-{place}"
    notebook["cells"] = cells
    notebook["metadata"]["kernelspec"] = {
        "name": "python", "display_name": "Python (Pyodide)", "language": "python"}
    return json.dumps(notebook, indent=1, ensure_ascii=False)


def _cell(kind: str, source: str) -> dict[str, Any]:
    code = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source.splitlines(True), **code}


def contents() -> dict[str, str | bytes]:
    """Every file that the chapters read there, by its place beside them."""
    files: dict[str, str | bytes] = {c.name: for_a_browser(c.read_text()) for c in offered()}
    for folder, pattern in (("exercises", "*.py"), ("mini", "*.py"), ("data", "*"),
                            ("pictures", "*.svg")):
        files |= {f"{folder}/{path.name}": path.read_bytes()
                  for path in sorted((NOTEBOOKS / folder).glob(pattern))}
    return files


def main() -> int:
    """Build; 0 if it is there."""
    try:
        import jupyterlite_core  # noqa: F401
        from jupyterlite_pyodide_kernel.constants import PYODIDE_VERSION
    except ModuleNotFoundError:
        print("The live chapters need JupyterLite: pip install -e '.[live]', or make book LIVE=1")
        return 2
    write(contents(), SOURCE / "files")
    wheels = SOURCE / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", str(ROOT),
                    "--wheel-dir", str(wheels)], check=True)
    [wheel] = wheels.glob("minijax-*.whl")
    subprocess.run([sys.executable, "-m", "jupyterlite_core", "build",
                    "--lite-dir", str(SOURCE), "--contents", str(SOURCE / "files"),
                    "--piplite-wheels", str(wheel), "--output-dir", str(LIVE)],
                   check=True, cwd=SOURCE, stdout=subprocess.DEVNULL)
    print(f"{len(offered())} chapters run in a browser, by Pyodide {PYODIDE_VERSION}, online: "
          f"{(LIVE / 'index.html').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
