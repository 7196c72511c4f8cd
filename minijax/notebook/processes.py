"""Cells that run as a program in several processes, beside modules that other cells have written.

Builds on `minijax.launch`.  Chapter 11.  JAX has no counterpart.
"""

import importlib.util
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import minijax
from minijax import launch

SECONDS = 60  # after which processes that wait for each other are ended
WHOLE_PACKAGE = Path(minijax.__file__).parents[1]

# What each process runs: the cell, with its prints in a file; the first keeps some values.
RUNNER = """\
import contextlib, pickle, sys, traceback
from pathlib import Path
from mpi4py import MPI

folder, rank = Path(__file__).parent, MPI.COMM_WORLD.Get_rank()
names = {"__name__": "__main__"}
try:
    code = compile((folder / "cell.py").read_text("utf-8"), str(folder / "cell.py"), "exec")
    with (open(folder / f"printed_{rank}", "w", encoding="utf-8") as file,
          contextlib.redirect_stdout(file)):
        exec(code, names)
    if rank == 0:
        (folder / "kept").write_bytes(pickle.dumps({name: names[name] for name in sys.argv[1:]}))
except BaseException:  # MPI may lose the end of what is printed
    (folder / f"failed_{rank}").write_text(traceback.format_exc(), "utf-8")
    MPI.COMM_WORLD.Abort(1)
"""


class Ran(NamedTuple):
    """What a program has printed in each process, and values of the first process."""

    printed: list[str]
    values: dict[str, Any]

    def __str__(self) -> str:
        return "\n".join(f"process {rank}: {line}" for rank, text in enumerate(self.printed)
                         for line in text.splitlines())


def missing() -> str:
    """A sentence on what processes would need and is not here; empty, if all is."""
    if sys.platform == "emscripten":
        return "A browser starts no processes: this cell runs where Python is installed."
    if launch.mpiexec() is None or importlib.util.find_spec("mpi4py") is None:
        return "This cell needs MPI, which is not here: pip install 'minijax[mpi]' brings it."
    return ""


def run(cell: str, count: int, keep: Sequence[str] = (), modules: Mapping[str, str] | None = None
        ) -> Ran:
    """Run a cell as a program in several processes.

    Args:
      cell: the text of the program.
      count: the number of processes.
      keep: the names of values of the first process that are returned.
      modules: the texts of modules that the program may import, by their names.

    Raises:
      RuntimeError: with the end of what a process says that fails; for processes that do not end.
    """
    with tempfile.TemporaryDirectory() as folder:
        texts = {**(modules or {}), "cell": cell, "run_cell": RUNNER}
        for name, text in texts.items():
            Path(folder, f"{name}.py").write_text(text, encoding="utf-8")
        path = os.pathsep.join([folder, str(WHOLE_PACKAGE), os.environ.get("PYTHONPATH", "")])
        _wait_for(subprocess.Popen(
            [sys.executable, "-m", "minijax.launch", "-n", str(count),
             str(Path(folder, "run_cell.py")), *keep], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={**os.environ, "PYTHONPATH": path},
            start_new_session=True), Path(folder))
        return Ran([Path(folder, f"printed_{rank}").read_text("utf-8") for rank in range(count)],
                   pickle.loads(Path(folder, "kept").read_bytes()))


def _wait_for(program: subprocess.Popen, folder: Path) -> None:
    """Wait for the processes, or end all of them; each that fails leaves its traceback."""
    try:
        said, _ = program.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"The processes did not end within {SECONDS} seconds. Does one wait for "
                           "a message that no other sends?") from None
    finally:
        if program.poll() is None:
            program.terminate()  # of which mpiexec tells the processes
            try:
                program.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(program.pid, signal.SIGKILL)
                program.wait()
    if program.returncode:
        tracebacks = [path.read_text("utf-8") for path in sorted(folder.glob("failed_*"))]
        raise RuntimeError(f"A process has failed:\n{_end_of(next(iter(tracebacks), said))}")


def _end_of(said: str) -> str:
    """The last lines of the first traceback."""
    first = said.partition("\nAbort(")[0].partition("\n===")[0]
    return "\n".join(first.splitlines()[-4:])
