"""`python -m tests.bench [benchmark …] [part of a row's name …] [--quick]`.

Each benchmark runs in a process of its own, all of them if none is named.
"""

import subprocess
import sys

# Those that know rows, and `--quick`.
CHOOSING = ("ratios", "eager", "first_calls", "growth", "compilers", "tiers", "host_cost",
            "processes", "scaling")
WHOLE = ("import_time", "tour")


def main(words: list[str]) -> int:
    """0 if every one ran."""
    named = [word for word in words if word in CHOOSING + WHOLE]
    choice = [word for word in words if word not in named]
    status = 0
    for name in named or CHOOSING + WHOLE:
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", f"tests.bench.{name}"]
        status |= subprocess.run(command + choice * (name in CHOOSING)).returncode
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
