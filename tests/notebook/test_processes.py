"""Cells that run in several processes."""

import importlib.util
from typing import Any

import pytest

from minijax import launch
from minijax.notebook import processes

IPython = pytest.importorskip("IPython")
needs_mpi = pytest.mark.skipif(bool(processes.missing()), reason=processes.missing())


@needs_mpi
def test_a_cell_is_a_program_of_several_processes_that_may_import_the_readers_modules(
        monkeypatch: Any, capsys: Any) -> None:
    from IPython.core.interactiveshell import InteractiveShell
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "minijax.notebook")
    try:
        shell.run_cell("%%processes as some_numbers\nimport numpy as np\na = np.arange(3)\n")
        assert shell.user_ns["a"].tolist() == [0, 1, 2]
        cell = ("%%processes 2 total\nfrom mpi4py import MPI\nimport mini\n"
                "from some_numbers import a\nworld = MPI.COMM_WORLD\nmine = a + world.rank\n"
                "total = mine + world.sendrecv(mine, dest=1 - world.rank)\nprint(total)\n")
        shell.run_cell(cell)
        assert shell.user_ns["total"].tolist() == [1, 3, 5]
        assert capsys.readouterr().out == "process 0: [1 3 5]\nprocess 1: [1 3 5]\n"
        monkeypatch.setattr(launch, "mpiexec", lambda: None)
        shell.run_cell(cell)
        assert shell.user_ns["total"] is None and "needs MPI" in capsys.readouterr().out
    finally:
        shell.run_line_magic("unload_ext", "minijax.notebook")
        InteractiveShell.clear_instance()


@needs_mpi
def test_a_process_that_fails_ends_all_and_is_quoted() -> None:
    with pytest.raises(RuntimeError, match=r"has failed:\n(.|\n)*ZeroDivisionError: [^\n]*$"):
        processes.run("from mpi4py import MPI\nworld = MPI.COMM_WORLD\n"
                      "1 / world.rank\nworld.recv(source=0)\n", 2)


@needs_mpi
def test_processes_that_wait_for_each_other_are_ended(monkeypatch: Any) -> None:
    monkeypatch.setattr(processes, "SECONDS", 1.5)
    with pytest.raises(RuntimeError, match="wait for a message that no other sends"):
        processes.run("from mpi4py import MPI\nMPI.COMM_WORLD.recv()\n", 2)


def test_what_is_missing_is_said_in_a_sentence(monkeypatch: Any) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert processes.missing().endswith("pip install 'minijax[mpi]' brings it.")
    monkeypatch.setattr(processes.sys, "platform", "emscripten")
    assert processes.missing().startswith("A browser starts no processes")


def test_what_is_printed_has_the_number_of_its_process() -> None:
    assert str(processes.Ran(["a\nb\n", "", "c"], {})) == (
        "process 0: a\nprocess 0: b\nprocess 2: c")
