"""`python -m tests.generated`: run generated programs in several ways, and show what differs.

    --programs N --seed S     the programs of seeds S to S + N - 1
    --seconds T               stop after so long; the same command then goes on where it stopped
    --against eager           jit and eager against disable_jit (the default)
    --against jax             eager and jit against JAX
    --against sanitiser       kernels against the sanitiser
    --against gpu             launches on the emulated GPU against jit on the CPU
    --against ptx             the PTX of its launches against jit on the CPU
    --against numba           the Numba program of a kernel against its machine code
    --against scalars         loops in vectors against the same loops of scalars, bit for bit
    --against ranks           blocks on four pretended ranks against disable_jit
    --jobs 2                  processes
    --state FOLDER            where it is kept what has been run
    --show SEED               print the program of one seed
    --planted [NAME]          how many programs find each of the planted mistakes
"""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_THREEFRY_PARTITIONABLE"] = "0"
os.environ["XLA_FLAGS"] = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")
os.environ.setdefault("MINIJAX_CACHE_DIR", "")

import argparse  # noqa: E402  JAX and minijax read the environment when they are imported
import gc  # noqa: E402
import json  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections import Counter  # noqa: E402
from concurrent.futures import ThreadPoolExecutor  # noqa: E402
from contextlib import ExitStack, redirect_stdout  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

CHUNK = 250  # programs of one process: machine code fills its memory


# ── One process ──────────────────────────────────────────────────────────────────────────────

def work(seeds: range, options: argparse.Namespace) -> None:
    """Run the programs of these seeds; a line of JSON before and after each."""
    from minijax.compiler import fusion, nests, outer_loop_vectorization
    from . import planted
    from .programs import generate
    from .running import against, check, minimise, poisoned_memory, quick_compiler, row_of

    if options.alone:
        with poisoned_memory():
            for seed in seeds:
                against(options.against)[0](generate(seed, options.against))
        return
    gc.disable()
    for module in (fusion, nests, outer_loop_vectorization):
        module.MIN_ROWS = 4  # type: ignore[attr-defined]  # generated arrays are small
    with ExitStack() as stack:
        # What programs print while they are written must not stand among the lines of JSON.
        stack.enter_context(redirect_stdout(stack.enter_context(open(os.devnull, "w"))))
        stack.enter_context(poisoned_memory())
        if options.plant:
            stack.enter_context(planted.of(options.against)[options.plant]())
        for seed in seeds:
            if seed % 50 == 0:
                gc.collect()
            say(seed=seed, state="begins")
            with ExitStack() as inner:
                if seed % 10:
                    inner.enter_context(quick_compiler())
                program = generate(seed, options.against)
                difference = check(program, options.against)
                if difference is None:
                    say(seed=seed, state="agrees")
                    continue
                if not options.plant and "TimeoutError" not in difference.text:
                    program = minimise(program, options.against, difference)
                    difference = check(program, options.against, [difference.way]) or difference
            row = row_of(program, difference) if options.against == "jax" else None
            if row is not None:
                say(seed=seed, state="agrees", way="row", text=row)
                continue
            say(seed=seed, state=difference.kind, way=difference.way, text=difference.text,
                program=program.print())


def say(**facts: object) -> None:
    print(json.dumps(facts), file=sys.__stdout__, flush=True)


# ── All of them ──────────────────────────────────────────────────────────────────────────────

class Campaign:
    """Chunks of seeds, each in a process of its own; what is done is kept in a file."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.end = time.monotonic() + options.seconds
        usual = Path(tempfile.gettempdir()) / f"minijax-generated-{os.getuid()}"
        folder = Path(options.state or usual)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.file = folder / f"{options.against}{options.plant}.jsonl"
        self.done = [json.loads(line) for line in self.file.read_text().splitlines()] if (
            self.file.exists() and not options.plant) else []

    def run(self) -> list[dict]:
        """The facts of every seed that was asked for and is done."""
        first, last = self.options.seed, self.options.seed + self.options.programs
        known = {facts["seed"] for facts in self.done}
        chunks = [range(k, min(k + CHUNK, last)) for k in range(first, last, CHUNK)]
        with ThreadPoolExecutor(self.options.jobs) as pool:
            list(pool.map(lambda chunk: self.chunk([s for s in chunk if s not in known]), chunks))
        return [facts for facts in self.done if first <= facts["seed"] < last]

    def chunk(self, seeds: list[int]) -> None:
        """Run these seeds; a process that dies is a finding, and another one goes on after it."""
        while seeds and time.monotonic() < self.end and not self.found():
            begun = self.process(seeds)
            late = time.monotonic() > self.end or self.found()
            if begun is not None and not late:
                its_own = self.options.against == "jax" and self.dies_alone(begun)
                self.keep({"seed": begun, "state": "agrees", "way": "died"} if its_own else
                          {"seed": begun, "state": "crash", "way": "process", "text": "it died",
                           "program": ""})
            finished = {facts["seed"] for facts in self.done}
            left = [s for s in seeds if s not in finished]
            if left == seeds and not late:
                raise RuntimeError(f"the process for seeds {seeds[0]} to {seeds[-1]} did not begin")
            seeds = left

    def process(self, seeds: list[int]) -> int | None:
        """Run them in one process; the seed at which it died, if it did."""
        begun = None
        with self.started(seeds) as process:
            assert process.stdout is not None
            for line in process.stdout:
                facts = json.loads(line)
                begun = facts["seed"]
                if facts["state"] != "begins":
                    self.keep(facts)
                    begun = None
                if time.monotonic() > self.end or self.found():
                    process.kill()
        return begun

    def dies_alone(self, seed: int) -> bool:
        """Whether JAX dies of the program where nothing else runs."""
        with self.started([seed], "--alone", stderr=subprocess.DEVNULL) as process:
            return process.wait() < 0

    def started(self, seeds: list[int], *flags: str, **streams: Any) -> subprocess.Popen:
        command = [sys.executable, "-m", "tests.generated", "--work", f"{seeds[0]}:{seeds[-1] + 1}",
                   "--against", self.options.against, "--plant", self.options.plant, *flags]
        return subprocess.Popen(command, env=os.environ | {"PYTHONHASHSEED": "0"},
                                stdout=subprocess.PIPE, text=True, **streams)

    def found(self) -> bool:
        """Whether a planted mistake has been found, which is all that is asked for."""
        return bool(self.options.plant) and any(f["state"] != "agrees" for f in self.done)

    def keep(self, facts: dict) -> None:
        self.done.append(facts)
        if self.options.plant:
            return
        with self.file.open("a") as file:
            file.write(json.dumps(facts) + "\n")
        if facts["state"] != "agrees":
            print(f"\n── seed {facts['seed']}, {facts['way']}: {facts['state']}\n{facts['text']}\n"
                  f"{facts['program']}", flush=True)


def find_planted(options: argparse.Namespace) -> int:
    """Plant each mistake in turn; how many programs it took to find it."""
    from . import planted

    missed = 0
    for name in (name for name in planted.of(options.against) if options.planted in name):
        options.plant = name
        campaign = Campaign(options)
        done = campaign.run()
        found = campaign.found() or any(facts["state"] == "crash" for facts in done)
        missed += not found
        print(f"{name}: {'found by program' if found else 'not found in'} {len(done)}", flush=True)
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.generated", usage=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--against", choices=["eager", "jax", "sanitiser", "gpu", "ptx", "numba",
                                              "scalars", "ranks"],
                        default="eager")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--state", default="")
    parser.add_argument("--show", type=int)
    parser.add_argument("--planted", nargs="?", const="", metavar="NAME")
    parser.add_argument("--plant", default="", help=argparse.SUPPRESS)
    parser.add_argument("--work", default="", help=argparse.SUPPRESS)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(range(*map(int, options.work.split(":"))), options)
        return 0
    if options.show is not None:
        from .programs import generate

        print(generate(options.show, options.against).print())
        return 0
    if options.planted is not None:
        return find_planted(options)
    begun = time.monotonic()
    done = Campaign(options).run()
    counts = Counter(f"{facts['way']} {facts['state']}" if facts["state"] != "agrees" else "agree"
                     for facts in done)
    rows = Counter(facts["text"] for facts in done if facts.get("way") == "row")
    for row, n in rows.most_common():
        print(f"{n} as tests/jax_differences.toml has it: {row}")
    if died := sum(facts.get("way") == "died" for facts in done):
        print(f"{died} of which JAX alone dies, in a process of its own")
    print(f"{len(done)} programs from seed {options.seed} against {options.against} in "
          f"{time.monotonic() - begun:.0f} s: " + ", ".join(
              f"{n} {name}" for name, n in counts.most_common()))
    return sum(counts.values()) - counts["agree"]


if __name__ == "__main__":
    sys.exit(min(main(), 1))
