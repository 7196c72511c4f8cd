"""`python -m minijax.launch -n 4 program.py`: start the processes of a program on this machine.

It is `mpiexec` with the right flags.  In JAX: a launcher of the cluster, or one's own.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from minijax.placement.mpi import cores_of_process

MISSING = ("minijax.launch needs mpiexec, which is not on the path: pip install 'minijax[mpi]' "
           "brings one, as does every installation of MPI.")


# MPI ends all processes when one has died; before, the others say where they wait for it.
SHELL = '"$@"; status=$?; [ $status -lt 128 ] || sleep 2; exit $status'


def command(count: int, program: Sequence[str], mpiexec: str, version: str = "") -> list[str]:
    """The command that starts a program; `version` is what `mpiexec --version` prints.

    >>> command(2, ["program.py"], "mpiexec")[:3]
    ['mpiexec', '-n', '2']
    """
    # Open MPI refuses the root user, and more processes than processors, unless it is told not to.
    flags = ["--oversubscribe", *["--allow-run-as-root"] * (os.geteuid() == 0)] if (
        "Open MPI" in version or "OpenRTE" in version) else []
    return [mpiexec, "-n", str(count), *flags, "sh", "-c", SHELL, "sh", sys.executable, *program]


def environment(count: int) -> dict[str, str]:
    """The environment of the processes, which share the processors of this machine."""
    threads = str(max(1, len(cores_of_process()) // count))
    return {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, **os.environ}


def mpiexec() -> str | None:
    """The launcher: that of this environment, or the first on the path."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def main(arguments: Sequence[str] | None = None) -> None:
    """Start a program, in place of this one."""
    parser = argparse.ArgumentParser(
        prog="python -m minijax.launch",
        description="Start the processes of a program, which call jax.distributed.initialize().")
    parser.add_argument("-n", type=int, default=2, dest="count", help="the number of processes")
    parser.add_argument("program", nargs=argparse.REMAINDER,
                        help="the program and its arguments, or -m and a module")
    options = parser.parse_args(arguments)
    if not options.program or options.count < 1:
        parser.error("it needs a program, and at least one process")
    if (launcher := mpiexec()) is None:
        sys.exit(MISSING)
    sys.stdout.flush()
    version = subprocess.run([launcher, "--version"], capture_output=True, text=True).stdout
    os.execve(launcher, command(options.count, options.program, launcher, version),
              environment(options.count))


if __name__ == "__main__":
    main()
