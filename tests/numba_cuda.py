"""`python -m tests.numba_cuda [primitive …]`: NVIDIA's compiler on Numba's CUDA programs.

Each launch of each primitive's examples becomes PTX for two processors, which NVIDIA's assembler
takes; the table has the registers of a thread, of Numba's code and of ours. No GPU is needed, only
the wheel of the extra `assembler`. NUMBA_CUDA_PYTHON names another environment, with numba-cuda.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from minijax import config
from minijax.compiler.lowered import Lowered
from minijax.compiler.numba_text import NotInNumba, compute_type
from minijax.compiler.targets import ptx
from minijax.compiler.targets.numba_cuda import CudaProgram
from minijax.core import tracing
from tests.test_laws import PRIMITIVES, WITHOUT_EXAMPLES, cases

TARGETS = ("sm_80", "sm_90")

# Reads a line of JSON for each program: its text, and for each launch the types of its arguments.
COMPILING = """
import json, re, subprocess, sys, tempfile, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import numpy as np
from numba import cuda, from_dtype, types
from numba.cuda import compile_ptx
from types import SimpleNamespace
from numba.cuda import dispatcher
ptxas = next(p for p in Path(np.__file__).parents[1].glob("nvidia/cuda_nvcc/bin/ptxas*"))

def registers(ptx, target):
    with tempfile.NamedTemporaryFile(suffix=".ptx", mode="w") as file:
        file.write(ptx); file.flush()
        done = subprocess.run([ptxas, f"-arch={target}", "-v", file.name, "-o", "/dev/null"],
                              capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[:300])
    return max(map(int, re.findall(r"Used (\\d+) registers", done.stderr)))

for line in sys.stdin:
    text, launches, ours = json.loads(line)
    found = [{} for _ in launches]
    try:
        for target in ("sm_80", "sm_90"):
            cc = int(target[3]), 0
            # of which functions for the device ask, though there is none
            dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=cc)
            names = {"__name__": "program"}
            exec(text, names)
            for (name, kinds), theirs, counts in zip(launches, ours, found):
                args = tuple(types.Array(from_dtype(np.dtype(kind)), 1, "C") if is_array else
                             from_dtype(np.dtype(kind)) for kind, is_array in kinds)
                code, _ = compile_ptx(names[name].py_func, args, cc=cc)
                counts[target] = [(registers(x, target), x.count("fma.rn"))
                                  for x in (code, theirs[target])]
        print(json.dumps(found), flush=True)
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"[-600:]), flush=True)
"""


def programs(case: Any) -> CudaProgram:
    closed = tracing.stage(lambda *args: case.run(*args), [x.aval for x in case.args])
    return CudaProgram(Lowered(closed, "f").launches)


def ours(kernel: Any) -> list[dict[str, str]]:
    """Our PTX of each launch."""
    texts = {target: ptx.compile(ptx.assembly(kernel), target) for target in TARGETS}
    return [{target: alone(text, k) for target, text in texts.items()}
            for k in range(len(ptx.launches_of(kernel.body)))]


def alone(text: str, k: int) -> str:
    """PTX with one of its launches."""
    head, *entries = re.split(r"(?=^\s*(?:// \.globl|\.visible \.entry) )", text, flags=re.M)
    wanted = [x for x in entries if f"launch_{k}" in x.split("(")[0]]
    return head + "".join(wanted)


def toolkit(folder: Path) -> dict[str, str]:
    """The environment in which Numba takes NVIDIA's compiler from the assembler's wheel."""
    wheel = Path(next(iter(find_spec("nvidia").submodule_search_locations))) / "cuda_nvcc"
    for part, name in (("nvvm/lib64", "libnvvm.so"), ("nvvm/libdevice", "libdevice.10.bc")):
        (folder / part).mkdir(parents=True)
        numbered = name + ".4" * name.endswith(".so")  # Numba looks for one with a number
        (folder / part / numbered).symlink_to(wheel / part / name)
    return os.environ | {"CUDA_HOME": str(folder)}


@dataclass
class Outcome:
    """What Numba and the assembler made of the examples of some primitives."""

    launches: int = 0
    refused: list[str] = field(default_factory=list)  # by Numba or the assembler
    not_printed: Counter[str] = field(default_factory=Counter)
    registers: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    joined: Counter[str] = field(default_factory=Counter)  # more fmas in a launch than ours has


def assemble(names: Iterable[str], folder: Path) -> Outcome:
    """PTX of each launch of the examples of these primitives, by Numba, and its registers."""
    outcome, other = Outcome(), os.environ.get("NUMBA_CUDA_PYTHON")
    env = None if other else toolkit(folder)
    with subprocess.Popen([other or sys.executable, "-c", COMPILING], stdin=subprocess.PIPE,
                          text=True, stdout=subprocess.PIPE, env=env) as process:
        for name in names:
            for case in cases(PRIMITIVES[name]):
                with config.enable_x64(case.x64):
                    try:
                        program = programs(case)
                    except (NotInNumba, NotImplementedError) as error:
                        outcome.not_printed[f"{name}: {str(error)[:60]}"] += 1
                        continue
                    kinds = [(each, [(compute_type(x.dtype) if hasattr(x, "role") else str(x.dtype),
                                      hasattr(x, "role")) for x in arguments])
                             for each, arguments in program.launches.values()]
                    line = json.dumps([program.module(), kinds, ours(program.kernel)])
                process.stdin.write(line + "\n")
                process.stdin.flush()
                launches = json.loads(process.stdout.readline())
                if isinstance(launches, str):
                    outcome.refused.append(f"{name}: {launches}")
                    continue
                outcome.launches += len(launches)
                for counts in launches:
                    for target, ((theirs, joined), (own, written)) in counts.items():
                        outcome.registers[f"{name} {target}"].append((theirs, own))
                        outcome.joined[name] = max(outcome.joined[name], joined - written)
        process.stdin.close()
    return outcome


def main(names: list[str]) -> int:
    """Print the table; 0 if nothing was refused."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = assemble(names or [x for x in PRIMITIVES if x not in WITHOUT_EXAMPLES],
                           Path(folder))
    for key, pairs in outcome.registers.items():
        theirs, own = (max(x) for x in zip(*pairs, strict=True))
        print(f"{key:40}{len(pairs):5} launches {theirs:4} registers, ours {own:4}")
    print(*outcome.refused, sep="\n")
    print(f"{outcome.launches} launches, {len(outcome.refused)} programs refused by Numba or the "
          "assembler")
    for reason, count in outcome.not_printed.items():
        print(f"{count:4} examples are not printed: {reason}")
    return int(bool(outcome.refused))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
