"""`python -m tests.numba_cuda PYTHON [primitive …]`: NVIDIA's compiler on Numba's CUDA programs.

PYTHON has numba-cuda with NVVM, as in `pip install "numba-cuda[cu12]"`; no GPU is needed. Each
launch of each primitive's examples becomes PTX for two processors, which NVIDIA's assembler takes;
the table has the registers of a thread, of Numba's code and of ours.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from typing import Any

from minijax import config
from minijax.compiler.lowered import Lowered
from minijax.compiler.numba_text import NotInNumba, stored_type
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
                counts[target] = registers(code, target), registers(theirs[target], target)
        print(json.dumps(found), flush=True)
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"[-600:]), flush=True)
"""


def programs(case: Any) -> CudaProgram:
    closed = tracing.stage(lambda *args: case.run(*args), [x.aval for x in case.args])
    return CudaProgram(Lowered(closed, "f").launches)


def ours(kernel: Any) -> list[dict[str, str]]:
    """Our PTX of each launch."""
    found = []
    for k in range(len(ptx.launches_of(kernel.body))):
        found.append({target: alone(ptx.compile(ptx.assembly(kernel), target), k)
                      for target in TARGETS})
    return found


def alone(text: str, k: int) -> str:
    """PTX with one of its launches."""
    head, *entries = re.split(r"(?=^\s*(?:// \.globl|\.visible \.entry) )", text, flags=re.M)
    wanted = [x for x in entries if f"launch_{k}" in x.split("(")[0]]
    return head + "".join(wanted)


def main(python: str, names: list[str]) -> int:
    with subprocess.Popen([python, "-c", COMPILING], stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE) as process:
        wrong, launches, refused = 0, 0, defaultdict(int)
        registers: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for name in names or [x for x in PRIMITIVES if x not in WITHOUT_EXAMPLES]:
            for case in cases(PRIMITIVES[name]):
                with config.enable_x64(case.x64):
                    try:
                        program = programs(case)
                    except (NotInNumba, NotImplementedError) as error:
                        refused[f"{name}: {str(error)[:60]}"] += 1
                        continue
                    kinds = [(each, [(stored_type(x) if hasattr(x, "role") else str(x.dtype),
                                      hasattr(x, "role")) for x in arguments])
                             for each, arguments in program.launches.values()]
                    text = program.module()
                    line = json.dumps([text, kinds, ours(program.kernel)])
                process.stdin.write(line + "\n")
                process.stdin.flush()
                found = json.loads(process.stdout.readline())
                if isinstance(found, str):
                    wrong += 1
                    print(f"{name}: {found}", flush=True)
                    continue
                launches += len(found)
                for counts in found:
                    for target, pair in counts.items():
                        registers[f"{name} {target}"].append(pair)
    for key, pairs in registers.items():
        theirs, own = (max(x) for x in zip(*pairs, strict=True))
        print(f"{key:40}{len(pairs):5} launches {theirs:4} registers, ours {own:4}")
    print(f"{launches} launches, {wrong} programs refused by Numba or the assembler")
    for reason, count in refused.items():
        print(f"{count:4} examples are not printed: {reason}")
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1], sys.argv[2:])))
