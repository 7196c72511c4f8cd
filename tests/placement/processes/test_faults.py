"""When one of several processes fails, all end, soon, and a message says where: no hang, no orphan.

`STRIKES=20 LARGE=1 pytest` on this file strikes that often.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import minijax

from tests.placement.processes.test_programs import HERE, LARGE, environment, needs_mpi

PROGRAM = str(HERE / "faulty.py")
PATIENCE = 1  # second that a process waits for others
SECONDS = 60  # for the start of the processes, on a machine with much else to do
WAITING = r"process 0 has waited .* for other processes at reduce_sum at .*faulty.py:\d+"

# The fault, and what is printed.
QUICK = {"exception": ["ValueError: what went wrong", "process 1 of 2 has failed"],
         "kill": [WAITING, "Process 1 has died."],
         "sleep": [WAITING, "Process 1 does not answer"],
         "other program": ["The processes run different programs", "faulty.py:29", "faulty.py:33"]}
OTHERS = {"exit": [WAITING, "Process 1 waits at the end of its program"],
          "other shape": ["needs the same shapes", r"float64\[3\]", r"float64\[4\]"]}


def launched(count, program, *arguments):
    """The exit status of a program, and what it prints; in the end none of its processes lives."""
    mark = f"MINIJAX_TEST={os.getpid()}-{time.monotonic_ns()}"
    name, value = mark.split("=")
    done = subprocess.run(
        [sys.executable, "-m", "minijax.launch", "-n", str(count), program, *arguments], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS,
        env=environment(JAX_COLLECTIVE_TIMEOUT=str(PATIENCE), **{name: value}))
    deadline = time.monotonic() + 5
    while (alive := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive, f"{alive} live on\n{done.stdout}"
    return done.returncode, done.stdout


def marked(mark):
    """The processes with this variable in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@needs_mpi
@pytest.mark.parametrize("fault", [*QUICK, *(OTHERS if LARGE else ())])
def test_a_process_that_fails_ends_all_and_is_named(fault, strikes):
    for _ in range(strikes(1)):
        status, output = launched(2, PROGRAM, fault)
        assert status != 0 and "not stopped" not in output, output
        for words in (QUICK | OTHERS)[fault]:
            assert re.search(words, output), output


def test_without_a_launcher_a_sentence_says_how_to_start():
    with pytest.raises(RuntimeError, match="no launcher has started") as error:
        minijax.distributed.initialize("here:1", 2, 0)
    assert "python -m minijax.launch -n 4 program.py" in str(error.value.__notes__)
    with pytest.raises(ValueError, match="coordinator_address should be defined") as error:
        minijax.distributed.initialize()
    assert "python -m minijax.launch -n 4 program.py" in str(error.value.__notes__)


@pytest.mark.parametrize("launcher", minijax.distributed.LAUNCHERS)
def test_arguments_must_agree_with_the_launcher(launcher, monkeypatch):
    size, rank = minijax.distributed.LAUNCHERS[launcher]
    monkeypatch.setenv(size, "4")
    monkeypatch.setenv(rank, "2")
    with pytest.raises(ValueError, match=f"this is process 2 of 4, says {launcher}"):
        minijax.distributed.initialize("here:1", 4, 1)
