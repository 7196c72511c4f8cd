"""Which primitives gather an operand that is cut, and what they need whole: a table.

`python -m tests.gathers --write` writes gathers.md beside this file. Of each example of a primitive
each axis of each operand is cut in two, one at a time, and the program is partitioned.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from minijax.placement.communication_costs import transfers
from minijax.placement.partition import partition
from tests import ranks
from tests.bench import scaling
from tests.test_laws import EXEMPT, PRIMITIVES, WITHOUT_EXAMPLES, cases

FILE = Path(__file__).with_suffix(".md")
HEAD = """\
Which primitives gather an operand that is cut, by `python -m tests.gathers --write`. All others, of
which {others} have examples, run on blocks, whichever axis is cut.

| primitive | of so many cuts of an operand | gather | since these must be whole |
|---|---:|---:|---|
"""
STEPS = """
No step of the benchmark gathers anything but the weights that are cut in a fully sharded one
(`make bench BENCH=scaling`). Of 64 ranks each sends:

| step | reductions | gathers | exchanges |
|---|---:|---:|---:|
"""


def reasons(p) -> Iterator[set[str]]:
    """For each cut of each example of a primitive what is gathered, and why."""
    for case in cases(p):
        with case.mode(), np.errstate(all="ignore"):
            program = ranks.staged(case.run, case.args)
            for count, layouts in ranks.cuts(case.args, 2):
                gathers = partition(program, ranks.mesh_of(count), layouts).gathers
                yield {x.why if p.name == x.operation else f"{x.operation}: {x.why}"
                       for x in gathers}


def whole(name: str, why: set[str]) -> str:
    """What must be whole: axes by operand, then other reasons."""
    axes: dict[str, set[str]] = {}
    others = set()
    for reason in why:
        if match := re.fullmatch(rf"{re.escape(name)} needs axis (\d+) of operand (\d+) whole",
                                 reason):
            axes.setdefault(match[2], set()).add(match[1])
        else:
            others.add(reason)
    parts = [f"operand {k}: axis {' or '.join(sorted(axes[k]))}" for k in sorted(axes)]
    return "; ".join([*parts, *sorted(others)])


def table() -> str:
    """The whole text."""
    rows, others = [], 0
    for name, p in sorted(PRIMITIVES.items()):
        if name not in WITHOUT_EXAMPLES and (name, "blocks_are_the_meaning") not in EXEMPT:
            found = list(reasons(p))
            some = [why for why in found if why]
            others += not some
            if some:
                rows.append(f"| `{name}` | {len(found)} | {len(some)} | "
                            f"{whole(name, set().union(*some))} |\n")
    return HEAD.format(others=others) + "".join(rows) + STEPS + "".join(map(row, scaling.PLANS))


def row(plan: scaling.Plan) -> str:
    kinds = [sent.kind for sent in transfers(plan.on(64).jaxpr)]
    counts = " | ".join(str(kinds.count(kind)) for kind in ("reduce", "gather", "exchange"))
    return f"| {plan.name} | {counts} |\n"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        FILE.write_text(table(), encoding="utf-8")
    else:
        print(table(), end="")
