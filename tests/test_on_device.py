"""What is run on a GPU and sent back, the tests and the benchmark; here, a little of both on the
emulator. And what is said where there is no GPU that will do.
"""

import json
import sys
import types

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import config
from minijax.placement import devices
from minijax.compiler.targets import driver
from tests import on_device, xla_flags
from tests.bench import device as bench
from tests.compiler.targets.played import Played

PART = """
import pytest
import minijax.numpy as jnp

def test_new_arrays_lie_there():
    assert str(jnp.ones(2).device) == "emulator:0" and (jnp.ones(2) + 1).tolist() == [2, 2]

def test_that_fails():
    assert jnp.ones(2).sum() == 3, "one and one"

@pytest.mark.skip(reason="not there")
def test_that_is_skipped():
    pass
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where reports are kept meanwhile."""
    monkeypatch.setattr(on_device, "FOLDER", tmp_path)
    monkeypatch.setattr(bench, "FOLDER", tmp_path)
    monkeypatch.setenv("DEVICE", "emulator")
    monkeypatch.setenv("WORKERS", "1")
    return tmp_path


def test_a_part_runs_on_the_device_and_the_table_says_what_came_of_it(folder, monkeypatch, capsys):
    tests = folder / "test_part.py"
    tests.write_text(PART)
    monkeypatch.setitem(on_device.PARTS, "a part", [str(tests)])
    assert on_device.main(["a part"]) == 1
    text = capsys.readouterr().out
    assert "emulator:0" in text and "test_part::test_that_fails: AssertionError: one and" in text
    [found] = json.loads((folder / "report.json").read_text())["outcomes"]
    assert (found["passed"], len(found["failed"]), found["skipped"]) == (1, 1, 1)
    assert (folder / "report.txt").read_text() in text


def test_a_part_has_several_workers(folder, monkeypatch):
    calls = []
    monkeypatch.setattr(on_device.subprocess, "run", lambda command, **_: calls.append(
        command) or types.SimpleNamespace(returncode=0))
    monkeypatch.setenv("WORKERS", "3")
    on_device.run("laws", [], "emulator")
    assert calls[0][calls[0].index("-n") + 1] == "3"


def test_another_xla_is_asked_for_what_it_knows(tmp_path):
    library = tmp_path / "xla.so"
    library.write_bytes(b"\0xla_backend_optimization_level\0xla_cpu_other\0")
    assert xla_flags.known(xla_flags.QUICK, library) == ["--xla_backend_optimization_level=0"]
    assert f'"jaxlib=={xla_flags.PINNED}"' in (on_device.ROOT / "pyproject.toml").read_text()


def test_what_the_parts_name_exists():
    for arguments in on_device.PARTS.values():
        for words in [*arguments, *on_device.OF_THE_CPU]:
            path, _, test = words.removeprefix("--ignore=").partition("::")
            assert (on_device.ROOT / path).exists(), path
            assert not test or f"def {test}(" in (on_device.ROOT / path).read_text(), words


def test_a_process_that_ends_without_a_report_has_failed(folder):
    found = on_device.outcome("laws", folder / "none.xml", "the process ended with -11")
    assert found.failed == ["the process ended with -11, without a report"]


def test_a_part_that_does_not_exist_is_refused_with_those_that_do(capsys):
    assert on_device.main(["law"]) == 2
    assert "there is no part 'law'; the parts are arrays, laws" in capsys.readouterr().out


def test_the_benchmark_runs_small_on_the_emulator_and_says_so(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bench", "3 operations", "products of", "eager"])
    bench.main()
    text = capsys.readouterr().out
    assert "they say nothing of a GPU's" in text and "please send them back" in text
    rows = json.loads((folder / "device.json").read_text())["rows"]
    assert [row["name"] for row in rows] == ["eager x + y", "3 operations", "products of 64²"]
    assert all(row["minijax"] > 0 and not row["refused"] for row in rows)


def test_a_row_whose_numbers_are_wrong_is_not_timed(folder, monkeypatch):
    row = bench.large("minijax", 64, 4)[0]
    beside = bench.Measured(jax.devices("emulator")[0], 1.0, None, None, True)
    wrong = np.full(64, 7.0, np.float32)
    monkeypatch.setattr(bench, "expected", lambda *_: (wrong, 1e-3, None))
    found = bench.measure(row, None, beside)
    assert "differ" in found.refused and "differ" in str(found) and not found.minijax


def test_what_is_slower_than_jax_is_named_below_its_table():
    said = []
    bench.summary([bench.Result("one", minijax=2.0, jax=1.0), bench.Result("two", minijax=1.0),
                   bench.Result("three", minijax=1.0, jax=2.0)], said.append)
    assert said == ["geometric mean 1.00", "under 1: one 0.50"]


def test_rows_for_which_there_is_no_time_are_named(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bench", "dispatch", "gather"])
    monkeypatch.setattr(bench, "MINUTES", 0)
    bench.main()
    assert "no time was left, of 0 minutes, for dispatch (small), gather (tiny)" in (
        capsys.readouterr().out)


def test_both_libraries_run_the_same_rows():
    ours, theirs = ([(row.name, row.flops) for row in (*bench.small(name),
                                                       *bench.large(name, 64, 4))]
                    for name in ("minijax", "jax"))
    assert ours == theirs and len(dict(ours)) == len(ours)


# ── Where there is no GPU that will do ───────────────────────────────────────────────────────

def missing():
    """The bindings, where they are not installed."""
    raise driver.NoGpu("A GPU needs NVIDIA's bindings (none): pip install 'minijax[cuda]'")


BAD = {"no bindings": (missing, "pip install 'minijax\\[cuda\\]'"),
       "no driver": (lambda: Played(starts=False), "no CUDA-capable device.*nvidia-smi"),
       "no GPU": (lambda: Played(count=0), "driver sees no GPU.*nvidia-smi"),
       "too old": (lambda: Played(capability=(6, 1)), "too old.*6.1.*CPU")}


@pytest.fixture(params=BAD)
def bad(request, monkeypatch):
    """A machine that will not do, and what is said of it."""
    bindings, said = BAD[request.param]
    monkeypatch.setattr(driver, "bindings", bindings)
    monkeypatch.delitem(devices.processors, devices.CudaDevice.numbered(0), raising=False)
    return types.SimpleNamespace(said=said)


@pytest.mark.parametrize("use", [
    lambda: jnp.ones(3), lambda: jax.jit(lambda x: x + 1)(2.0), lambda: jax.device_put(1.0),
    lambda: jax.grad(jnp.sin)(1.0)], ids=["an array", "jit", "device_put", "grad"])
def test_the_sentence_is_the_same_whatever_is_asked_and_the_cpu_goes_on(bad, use):
    with config.platforms("cuda"), pytest.raises(driver.NoGpu, match=bad.said):
        use()
    assert jax.jit(lambda x: x + 1)(jnp.ones(2)).tolist() == [2, 2]


def test_nothing_is_run_where_there_is_no_gpu(bad, monkeypatch):
    monkeypatch.setenv("DEVICE", "cuda")
    with pytest.raises(SystemExit, match=f"Nothing was run on the device 'cuda'.*{bad.said}"):
        on_device.chosen()
