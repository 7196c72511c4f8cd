"""What a browser is to minijax: no Numba, llvmlite or SciPy, no threads, `sys.platform` emscripten.

    python -m tests.as_in_a_browser CHAPTER.ipynb…     run their cells; 1 if one fails
    pytest -p tests.as_in_a_browser …                  tests, without those packages
"""

import contextlib
import importlib.abc
import io
import json
import os
import sys
import threading
from pathlib import Path

ABSENT = {"numba", "llvmlite", "scipy"}


class Absent(importlib.abc.MetaPathFinder):
    """Refuses to import what a browser has not."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def no_thread(self):
    """What `Thread.start` does there."""
    raise RuntimeError("can't start new thread")


def failures(shell, cells):
    """What cells raised that are not there to raise, or did not that are said to; with sources."""
    for cell in cells:
        if cell["cell_type"] == "code":
            with contextlib.redirect_stdout(io.StringIO()):
                result = shell.run_cell("".join(cell["source"]))
            error = result.error_in_exec or result.error_before_exec
            tags = cell["metadata"].get("tags", ())
            if error and "raises-exception" not in tags:
                yield "".join(cell["source"]), error
            if not error and "absent" in tags:
                yield "".join(cell["source"]), LookupError("said to raise an error in a browser")


def main(chapters):
    """Run each chapter, of the files that book/live.py writes, without its first cell."""
    from IPython.core.interactiveshell import InteractiveShell
    import matplotlib
    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    import numpy as np
    plt.subplots()  # matplotlib asks for the platform's build, once
    shell, failed = InteractiveShell.instance(), False
    shell.history_manager.enabled = False
    sys.platform, threading.Thread.start = "emscripten", no_thread
    sys.setrecursionlimit(1000)  # as the first cell does there
    np.seterr(all="ignore")  # WebAssembly has no floating-point flags
    for chapter in map(Path, chapters):
        os.chdir(chapter.parent)
        for source, error in failures(shell, json.loads(chapter.read_text())["cells"][1:]):
            print(f"{chapter.name}: {type(error).__name__}: {error}\n{source}", file=sys.stderr)
            failed = True
        shell.reset(new_session=False)
    return failed


def enter():
    """From now on this process is like a browser, whose ml_dtypes is of version 0.5."""
    sys.meta_path.insert(0, Absent())
    import ml_dtypes
    for name in {"int1", "uint1"} & vars(ml_dtypes).keys():
        delattr(ml_dtypes, name)


def pytest_load_initial_conftests():
    enter()


if __name__ == "__main__":
    enter()
    sys.exit(main(sys.argv[1:]))
