"""What launches take of a processor: NVIDIA's assembler on every primitive, every program.

    python -m tests.compiler.targets.usage [sm_80 sm_90]

Each example of each block is assembled with nearly every loop a launch, and as the scheduler would
have it; of the programs under tests/programs all kernels, as they are asked for.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import minijax as jax
from minijax.placement import devices
from minijax.compiler.loops import Kernel
from minijax.compiler.schedule import lower_to_kernel
from minijax.compiler.targets import launches, ptx
from tests.compiler.targets.test_ptx import assembler
from tests.programs.test_programs import PROGRAMS, results_of
from tests.test_laws import PRIMITIVES, cases
from tests.written_for_jax import with_minijax

PROCESSORS = ("sm_80", "sm_90")
FIELDS = ("registers", "bytes smem", "bytes spill stores")


class Use(NamedTuple):
    """What one launch takes."""

    registers: int
    shared: int
    spilled: int
    name: str
    processor: str


def of_primitives() -> Iterator[tuple[str, Kernel]]:
    """The examples of all blocks, with launches for nearly all loops, and with the usual ones."""
    usual = launches.WIDE
    for name, primitive in PRIMITIVES.items():
        for k, case in enumerate(cases(primitive)):
            with case.mode():
                closed = jax.make_jaxpr(case.run)(*case.args)
                source = lower_to_kernel(closed, name, on_gpu=True)
            for launches.WIDE in (64, usual):
                yield f"{name}[{k}]", launches.scheduled(source)


def of_programs() -> Iterator[tuple[str, Kernel]]:
    """What the programs compile."""
    made = []
    before = devices.CpuDevice.compiled

    def compiled(self, lowered):
        made.append(lowered.launches)
        return before(self, lowered)
    devices.CpuDevice.compiled = compiled
    for path in PROGRAMS:
        jax.clear_caches()
        results_of(path, with_minijax(path.read_text()))
        yield from ((f"{path.stem}: {kernel.name}", kernel) for kernel in made)
        made.clear()
    devices.CpuDevice.compiled = before


def usage(name: str, text: str, processor: str) -> list[Use]:
    """Of each launch what the assembler says; it raises where that refuses one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "k.ptx")
        path.write_text(text)
        done = subprocess.run([assembler(), "-v", f"-arch={processor}", path, "-o",
                               path.with_suffix(".cubin")],
                              capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} for {processor}: {done.stderr}")
    parts = done.stderr.split("Compiling entry function")[1:]
    return [Use(*(int((re.findall(rf"(\d+) {what}", part) or [0])[0]) for what in FIELDS),
                name, processor) for part in parts]


def main() -> None:
    """Print how many there are, and those that take most."""
    processors, seen, found = sys.argv[1:] or PROCESSORS, set(), []
    with ThreadPoolExecutor(2) as pool:
        for kind in (of_primitives, of_programs):
            texts = ((name, text) for name, kernel in kind() if ptx.launches_of(kernel.body)
                     for text in [ptx.assembly(kernel)]
                     if text not in seen and not seen.add(text))
            while some := list(islice(texts, 64)):
                asked = [pool.submit(usage, name, ptx.compile(text, each), each)
                         for name, text in some for each in processors]
                found += [use for each in asked for use in each.result()]
                print(f"\r{len(seen)} kernels, {len(found)} launches", end="", flush=True)
            print(f" of {kind.__name__[3:]} and before")
    print(f"registers at most {max(use.registers for use in found)}, "
          f"shared memory {max(use.shared for use in found)} bytes, "
          f"launches that spill: {sum(use.spilled > 0 for use in found)}")
    for use in sorted(found, key=lambda use: (-use.spilled, -use.registers))[:24]:
        print(f"{use.registers:4} registers {use.shared:6} shared {use.spilled:4} spilled  "
              f"{use.processor}  {use.name}")


if __name__ == "__main__":
    main()
