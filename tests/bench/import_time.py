"""How long `import minijax` takes beyond `import numpy, ml_dtypes`, in fresh processes."""

import os
import statistics
import subprocess
import sys
import tempfile

TIMED = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"
RUNS = 9


def seconds(modules: str, environment: dict[str, str]) -> float:
    """The time one fresh process takes to import some modules."""
    command = [sys.executable, "-c", TIMED.format(modules)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(run.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as bytecode:
        # Users import compiled bytecode, so this does too, wherever it runs.
        environment = os.environ | {"PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        before, after = "numpy, ml_dtypes", "numpy, ml_dtypes, minijax"
        seconds(after, environment)
        pairs = [(seconds(before, environment), seconds(after, environment)) for _ in range(RUNS)]
    base, whole = map(statistics.median, zip(*pairs, strict=True))
    beyond = statistics.median(b - a for a, b in pairs)
    print(f"import numpy, ml_dtypes   {base:6.3f} s")
    print(f"... and minijax           {whole:6.3f} s")
    print(f"beyond                    {beyond:6.3f} s   (goal: at most 0.100 s)")


if __name__ == "__main__":
    main()
