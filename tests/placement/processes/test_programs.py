"""Programs in several processes have the numbers, shardings, errors and texts of JAX's.

JAX's results of two and four processes are recorded beside this file: `ORACLE=record pytest` on
it runs JAX again, and so does a program that has changed; LARGE=1 runs all programs.
"""

import functools
import hashlib
import inspect
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.placement.processes import programs

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
RUN = str(HERE / "run.py")
RECORDED = HERE / "recorded" / "programs.json"
LARGE = bool(os.environ.get("LARGE"))
SECONDS = 240  # far more than is needed

# Where XLA's partitioner chooses another layout of a result, as often before it gathers nothing.
OTHER_LAYOUTS = {"orders_and_cumulations", "products_over_two_axes"}

needs_mpi = pytest.mark.skipif(not Path(sys.executable).with_name("mpiexec").exists(),
                               reason="no mpiexec: pip install 'minijax[mpi]'")


def names(count):
    """The programs of a run of the tests: of four processes those that send most ways."""
    if LARGE:
        chosen = programs.ALL
    elif count == 2:
        chosen = programs.QUICK
    else:
        chosen = ["reductions_across_devices", "exchanges_across_devices", "pmap_of_rows",
                  "arrays_from_parts"]
    return [*chosen, *["texts"] * (count == 2)]


def environment(**values):
    known = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")}
    return {**known, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", **values}


def run(command, path, which, **values):
    done = subprocess.run([*command, path, *which], text=True, capture_output=True,
                          timeout=SECONDS, env=environment(**values))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return json.loads(Path(path).read_text())


def in_processes(count, which, path):
    """The results of minijax in so many processes."""
    return run([sys.executable, "-m", "minijax.launch", "-n", str(count), RUN, "minijax"],
               path, which)


def in_one_process(count, which, path):
    """The results of minijax in one process, which pretends to have so many devices."""
    return run([sys.executable, RUN, "minijax"], path, which, JAX_NUM_CPU_DEVICES=str(count))


def of_jax(count, which, path):
    """The results of JAX in so many processes, whose collectives go over gloo."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    running = [subprocess.Popen(
        [sys.executable, RUN, "jax", path, *which], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env=environment(
            COORDINATOR=f"localhost:{port}", COUNT=str(count), RANK=str(rank),
            JAX_THREEFRY_PARTITIONABLE="0", JAX_CPU_COLLECTIVES_IMPLEMENTATION="gloo"))
        for rank in range(count)]
    for process in running:
        output, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, output
    return json.loads(Path(path).read_text())


def digest(name):
    text = (inspect.getsource(programs.texts) + programs.EXPRESSIONS if name == "texts" else
            inspect.getsource(programs.ALL[name]))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def recorded(count, which, path):
    """JAX's results, which are recorded with a digest of the program."""
    known = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    missing = [name for name in which if os.environ.get("ORACLE") == "live" or
               known.get(f"{name} {count}", [""])[0] != digest(name)]
    if missing:
        known |= {f"{name} {count}": [digest(name), shortened(result)]
                  for name, result in of_jax(count, missing, path).items()}
        if os.environ.get("ORACLE") == "record":
            lines = [f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known)]
            RECORDED.write_text("{" + ",\n".join(lines) + "}\n")
    return {name: known[f"{name} {count}"][1] for name in which}


def shortened(result):
    """Numbers of eight digits."""
    if isinstance(result, list):
        return [shortened(x) for x in result]
    return float(f"{result:.8g}") if isinstance(result, float) else result


def differences(name, ours, theirs, with_specs=True):
    """What differs between two results of a program."""
    if isinstance(ours, str) or isinstance(theirs, str):
        return [(name, str(ours)[:500], str(theirs)[:500])]
    if name == "texts":
        return [(line, ours.get(line), text) for line, text in theirs.items()
                if ours.get(line) != text]
    lines = [(name, "number of results", len(ours), len(theirs))] * (len(ours) != len(theirs))
    for i, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        if mine[:2] != other[:2]:
            lines.append((name, i, mine[:2], other[:2]))
        elif not np.allclose(mine[2], other[2], *(
                (1e-2, 1e-2) if mine[0] in ("bfloat16", "float16") else (2e-5, 2e-6))):
            lines.append((name, i, mine[2], other[2]))
        elif with_specs and spec(mine[3]) != spec(other[3]):
            lines.append((name, i, mine[3], other[3]))
    return lines


def spec(text):
    """The text of a spec without axes at its end that are not cut."""
    parts = text.removeprefix("P(").removesuffix(")").replace(" ", "").strip(",")
    while parts.endswith(",None") or parts == "None":
        parts = parts[:-len("None")].strip(",")
    return parts


@functools.cache
def results(count):
    """The results of minijax in so many processes."""
    which = [*names(count), *["refusals"] * (count == 2)]
    with tempfile.TemporaryDirectory() as folder:
        return in_processes(count, which, f"{folder}/ours")


@needs_mpi
@pytest.mark.parametrize("count", [2, 4])
def test_in_several_processes_a_program_does_what_jax_does(count, tmp_path):
    ours, theirs = results(count), recorded(count, names(count), str(tmp_path / "theirs"))
    found = [line for name in theirs for line in differences(
        name, ours[name], theirs[name], with_specs=name not in OTHER_LAYOUTS)]
    found += [(line, text) for line, text in ours.get("refusals", {}).items()
              if not text.startswith(programs.REFUSALS[line])]
    assert not found, "\n".join(map(str, found))


@needs_mpi
def test_the_program_of_the_readme_runs_in_two_processes(tmp_path):
    section = (ROOT / "README.md").read_text().partition("### In several processes")[2]
    program = section.partition("```python\n")[2].partition("```")[0]
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run([sys.executable, "-m", "minijax.launch", "-n", "2", "program.py"],
                          cwd=tmp_path, text=True, capture_output=True, timeout=SECONDS,
                          env=environment())
    promised = program.strip().rpartition("# in each of them: ")[2]
    # The launcher may mix the two lines.
    assert sorted(done.stdout.replace("\n", "")) == sorted(2 * promised), done.stderr


@needs_mpi
@pytest.mark.parametrize("count", [2, 4])
def test_the_devices_of_one_process_compute_the_same_bits(count, tmp_path):
    which = [name for name in names(count) if name in programs.ALL]
    one = in_one_process(count, which, str(tmp_path / "one"))
    for name in which:
        for mine, other in zip(results(count)[name], one[name], strict=True):
            assert mine[:2] == other[:2] and str(mine[2]) == str(other[2]), name
            assert mine[3] == other[3] or name.startswith("pmap"), name  # pmap has local arrays
