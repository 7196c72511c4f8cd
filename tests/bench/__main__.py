"""`python -m tests.bench [benchmark …] [--quick]`: each benchmark in a process of its own."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(words: list[str]) -> int:
    """Run the benchmarks named, or all of them; 0 if every one ran."""
    options = [word for word in words if word.startswith("--")]
    names = [word for word in words if word not in options]
    status = 0
    for name in names or ["ratios", "first_calls", "growth", "import_time", "tour"]:
        print(f"== {name}", flush=True)
        status |= subprocess.run([sys.executable, "-m", f"tests.bench.{name}", *options]).returncode
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
