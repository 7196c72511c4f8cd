"""`python -m tests.bench [name …]`: run the benchmarks, each in a process of its own."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(names: list[str]) -> int:
    """Run the benchmarks named, or all of them; 0 if every one ran."""
    found = sorted(path.stem for path in HERE.glob("[a-z]*.py"))
    status = 0
    for name in names or found:
        print(f"== {name}", flush=True)
        status |= subprocess.run([sys.executable, "-m", f"tests.bench.{name}"]).returncode
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
