"""The tests that there are, run on a device: `DEVICE=cuda python -m tests.on_device [part …]`.

Arrays lie there, programs run there, and all results are compared as ever: with NumPy's and JAX's
on the CPU. Each part runs in processes of its own. One table says what came of it; it is kept in
build/device, beside what each part printed. There are the devices `emulator`, too, and `ptx`, which
runs what LLVM makes for a GPU.
"""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

import minijax
from minijax.placement import devices
from minijax.compiler.targets import driver

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "device"
LONGEST = 3600  # seconds for one part
WORKERS = 8  # processes, at most, unless WORKERS says how many: time on a GPU is dear

PARTS = {
    "arrays": ["tests/placement/test_devices.py", "tests/numpy/test_interchange.py"],
    "laws": ["tests/test_laws.py::test_law"],
    "programs": ["tests/programs"],
    "errors": ["tests/test_errors.py"],
    "sharp_bits": ["tests/sharp_bits"],
    "calls": ["tests/transforms", "tests/control_flow", "tests/custom", "tests/placement",
              "--ignore=tests/placement/test_devices.py"],
    "derivatives": ["tests/transforms/test_derivatives.py", "tests/test_derivative_stacks.py"],
    "interface": ["tests/transforms/test_api.py"],
    "random": ["tests/random"],
    "numba": ["tests/compiler/targets/test_numba_cuda.py",
              "tests/compiler/targets/test_numba_nvvm.py"],
}
NAMES_ITS_DEVICE = {"arrays"}  # in the others new arrays lie there by default
# Where numbers are compared with those of the CPU, products keep the digits of float32.
IN_FULL_PRECISION = {"laws", "programs", "derivatives", "numba"}

# What asks for something that only the CPU has, and why.
OF_THE_CPU = {
    "tests/transforms/test_dispatch.py::test_it_takes_the_tree_it_was_written_for":
        "it calls what was written for arrays on the host",
    "tests/transforms/test_api.py::test_there_is_one_device_and_everything_is_on_it":
        "that one is the CPU"}


@dataclass
class Outcome:
    """What came of one part."""

    part: str
    passed: int = 0
    skipped: int = 0
    failed: list[str] = field(default_factory=list)  # each with the first line of its error
    seconds: float = 0.0

    def __str__(self) -> str:
        return (f"{self.part:14}{self.passed:8}{len(self.failed):8}{self.skipped:8}"
                f"{self.seconds:10.1f}")


def facts(device: devices.Device) -> dict[str, str]:
    """What the table is about: the device, its driver, and what ran on it."""
    found = {"device": f"{device} ({device.device_kind})", "minijax": minijax.__version__,
             "commit": said("git", "rev-parse", "--short", "HEAD"),
             "python": platform.python_version(), "numpy": np.__version__,
             "machine": platform.platform(), "time": time.strftime("%Y-%m-%d %H:%M:%S")}
    if isinstance(device, devices.CudaDevice):
        gpu = device.processor
        version = driver.done(gpu.cuda.cuDriverGetVersion())
        _, total = driver.done(gpu.cuda.cuMemGetInfo())
        found |= {"capability": "{}.{}".format(*gpu.capability),
                  "CUDA": f"{version // 1000}.{version % 1000 // 10}",
                  "memory": f"{total / (1 << 30):.1f} GiB",
                  "driver": said("nvidia-smi", "--query-gpu=driver_version",
                                 "--format=csv,noheader")}
    return found


def said(*command: str) -> str:
    """The first line that a command prints; "?" where there is none."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return "?"
    return (run.stdout.splitlines() or ["?"])[0]


def chosen() -> devices.Device:
    """The device that DEVICE names, after it has added two numbers.

    Raises:
      SystemExit: with one sentence, where there is none that works.
    """
    name = os.environ.get("DEVICE", "cuda")
    if name == "ptx":
        from tests.compiler.targets.ptx_machine import PtxDevice
        PtxDevice.register()
    try:
        device = minijax.devices(name)[0]
        one = minijax.device_put(np.float32(1), device)
        if (one + one).tolist() != 2:
            raise RuntimeError("it says that 1 + 1 is not 2")
        return device
    except (RuntimeError, IndexError) as error:
        why = error.__cause__ or error  # what the driver says, where `devices` speaks for it
        raise SystemExit(f"Nothing was run on the device {name!r}: {why}") from None


def run(part: str, arguments: Sequence[str], device: str) -> Outcome:
    """One part, in a process of its own."""
    report, log = FOLDER / f"{part}.xml", FOLDER / f"{part}.log"
    report.unlink(missing_ok=True)
    skipping = [word for test in OF_THE_CPU for word in ("--deselect", test)]
    workers = int(os.environ.get("WORKERS", min(os.cpu_count() or 1, WORKERS)))
    default = {} if part in NAMES_ITS_DEVICE else {"MINIJAX_PLATFORMS": device}
    if part in IN_FULL_PRECISION:
        default["JAX_DEFAULT_MATMUL_PRECISION"] = "highest"
    start = time.perf_counter()
    with log.open("w", encoding="utf-8") as file:
        try:
            status = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider",
                 *(["-n", str(workers)] if workers > 1 else []), f"--junitxml={report}",
                 *arguments, *skipping],
                cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, timeout=LONGEST,
                env=os.environ | default | {"DEVICE": device}).returncode
            ended = f"the process ended with {status}"
        except subprocess.TimeoutExpired:
            ended = f"it was stopped after {LONGEST} seconds"
    found = outcome(part, report, ended)
    found.seconds = time.perf_counter() - start
    return found


def outcome(part: str, report: Path, ended: str) -> Outcome:
    """What a report of pytest says; where there is none, how the process ended."""
    if not report.exists():
        return Outcome(part, failed=[f"{ended}, without a report"])
    found = Outcome(part)
    for case in ElementTree.parse(report).iter("testcase"):
        wrong = next((x for x in case if x.tag in ("failure", "error")), None)
        if wrong is not None:
            message = (wrong.get("message") or "").splitlines() or [""]
            found.failed.append(f"{case.get('classname')}::{case.get('name')}: {message[0][:160]}")
        elif case.find("skipped") is not None:
            found.skipped += 1
        else:
            found.passed += 1
    return found


def table(about: dict[str, str], outcomes: Sequence[Outcome]) -> str:
    """All of it as text, to send to whoever has no such device."""
    lines = [f"{key:14}{value}" for key, value in about.items()]
    lines += ["", f"{'':14}{'passed':>8}{'failed':>8}{'skipped':>8}{'seconds':>10}"]
    lines += [str(each) for each in outcomes]
    whole = Outcome("all", sum(x.passed for x in outcomes), sum(x.skipped for x in outcomes),
                    [each for x in outcomes for each in x.failed],
                    sum(x.seconds for x in outcomes))
    lines += [str(whole), "", *(f"failed: {each}" for each in whole.failed)]
    return "\n".join(lines).rstrip() + "\n"


def main(words: Sequence[str]) -> int:
    """0 if all that ran passed."""
    unknown = [word for word in words if word not in PARTS]
    if unknown:
        print(f"there is no part {unknown[0]!r}; the parts are {', '.join(PARTS)}")
        return 2
    device = chosen()
    FOLDER.mkdir(parents=True, exist_ok=True)
    about, outcomes = facts(device), []
    for part in words or PARTS:
        outcomes.append(run(part, PARTS[part], os.environ.get("DEVICE", "cuda")))
        print(outcomes[-1], flush=True)
    text = table(about, outcomes)
    (FOLDER / "report.txt").write_text(text, encoding="utf-8")
    (FOLDER / "report.json").write_text(json.dumps(
        {"about": about, "outcomes": [asdict(each) for each in outcomes]}, indent=1))
    print(f"\n{text}\nkept in {os.path.relpath(FOLDER / 'report.txt')}: please send it back")
    return int(any(each.failed for each in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
