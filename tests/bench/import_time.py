"""How long `import minijax` takes beyond `import numpy, ml_dtypes`, in fresh processes."""

import statistics
import subprocess
import sys

TIMED = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"
RUNS = 9


def seconds(modules: str) -> float:
    """The time one fresh process takes to import some modules."""
    command = [sys.executable, "-c", TIMED.format(modules)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    before = "numpy, ml_dtypes"
    pairs = [(seconds(before), seconds(f"{before}, minijax")) for _ in range(RUNS)]
    base, whole = map(statistics.median, zip(*pairs, strict=True))
    beyond = statistics.median(b - a for a, b in pairs)
    print(f"import numpy, ml_dtypes   {base:6.3f} s")
    print(f"... and minijax           {whole:6.3f} s")
    print(f"beyond                    {beyond:6.3f} s   (goal: at most 0.100 s)")


if __name__ == "__main__":
    main()
