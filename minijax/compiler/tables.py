"""Call tables: long runs of calls become data, since LLVM's time grows with instructions only.

Builds on outlining.py; llvm.py prints them. Chapter 24. In XLA: the thunks of its CPU backend.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

from .loops import Buffer, Kernel, Statement
from .memory import ALIGNMENT, HEADER, WORD
from .restricted_python import translated

MIN_CALLS = 8  # from here on a table is shorter than the instructions


class Entry(NamedTuple):
    """A call of an outlined loop: the function's name and its buffers."""

    loop: Statement
    name: str
    captures: tuple[Buffer, ...]


class Table(Statement):
    """Calls, one after the other."""

    calls: tuple[Entry, ...]


def with_tables(body: Sequence[Statement], entry: Callable[[Statement], Entry | None]
                ) -> list[Statement]:
    """A body with each long run of calls replaced by a table; `entry` gives the call for a
    statement.
    """
    rewritten: list[Statement] = []
    for is_call, run in groupby([(x, entry(x)) for x in body], lambda pair: pair[1] is not None):
        statements, entries = zip(*run, strict=True)
        rewritten += [Table(entries)] if is_call and len(entries) >= MIN_CALLS else statements
    return rewritten


def table_of(table: Table, kernel: Kernel) -> str:
    """The words of a table. Each call has its function, its number of arguments and their places: a
    position among the kernel's arguments, or, below zero, an offset in the workspace.
    """
    arguments = kernel.inputs + kernel.outputs + kernel.constants
    positions = {x: k for k, x in enumerate(arguments)} | {
        temp: -1 - offset for temp, offset in kernel.offsets.items()}
    words = [word for _, name, captures in table.calls for word in (
        f"ptrtoint (ptr {name} to i64)", len(captures), *map(positions.__getitem__, captures))]
    return f"[{len(words) + 1} x i64] [{', '.join(f'i64 {x}' for x in (*words, 0))}]"


def calls_of(kernel: Kernel, max_arguments: int) -> str:
    """The function that interprets a table, whose calls have at most `max_arguments`."""
    workspace = len(kernel.inputs + kernel.outputs + kernel.constants)
    aligned = f"array_at(list, {workspace}) + {ALIGNMENT - 1} & {(1 << 64) - ALIGNMENT}"
    return translated(f"""
def calls(list, table):
    frame = words({max_arguments})
    workspace = {aligned if kernel.temps else 0}
    while memory[table]:
        function = memory[table]
        count = memory[table + 8]
        table = table + 16
        k = 0
        while k < count:
            argument = memory[table]
            if argument < 0:
                memory[frame + 8 * k] = workspace - 1 - argument
            else:
                memory[frame + 8 * k] = array_at(list, argument)
            table += 8
            k += 1
        function(frame, 0)

def array_at(list, k):
    return memory[memory[memory[list + {HEADER + WORD}] + 8 * k] + {HEADER}]
""", "noinline nounwind")
