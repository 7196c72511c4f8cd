"""Call tables: long runs of calls become data, since LLVM's time grows with instructions only.

Builds on outlining.py; llvm.py prints them. Chapter 24. In XLA: the thunks of its CPU backend.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

from .loops import Buffer, Kernel, Statement
from .memory import ALIGNMENT

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
    memory = f"""\
  %workspace = call ptr @array(ptr %list, i64 {workspace})
  %last = getelementptr inbounds i8, ptr %workspace, i64 {ALIGNMENT - 1}
  %memory = call ptr @llvm.ptrmask.p0.i64(ptr %last, i64 {-ALIGNMENT})"""
    return f"""\
define internal void @calls(ptr %list, ptr %table) noinline nounwind {{
entry:
  %frame = alloca [{max_arguments} x ptr]
{memory if kernel.temps else "  %memory = getelementptr i8, ptr null, i64 0"}
  br label %next
next:
  %at = phi ptr [ %table, %entry ], [ %word.after, %call ]
  %word = load i64, ptr %at
  %is.over = icmp eq i64 %word, 0
  br i1 %is.over, label %end, label %begin
begin:
  %count.at = getelementptr inbounds i64, ptr %at, i64 1
  %count = load i64, ptr %count.at
  br label %take
take:
  %k = phi i64 [ 0, %begin ], [ %k.after, %taken ]
  %word.at = phi ptr [ %count.at, %begin ], [ %thing.at, %taken ]
  %thing.at = getelementptr inbounds i64, ptr %word.at, i64 1
  %thing = load i64, ptr %thing.at
  %is.passed = icmp sge i64 %thing, 0
  br i1 %is.passed, label %passed, label %temp
passed:
  %array = call ptr @array(ptr %list, i64 %thing)
  br label %taken
temp:
  %offset = sub i64 -1, %thing
  %place = getelementptr inbounds i8, ptr %memory, i64 %offset
  br label %taken
taken:
  %address = phi ptr [ %array, %passed ], [ %place, %temp ]
  %slot = getelementptr inbounds ptr, ptr %frame, i64 %k
  store ptr %address, ptr %slot
  %k.after = add nuw nsw i64 %k, 1
  %more = icmp slt i64 %k.after, %count
  br i1 %more, label %take, label %call
call:
  %function = inttoptr i64 %word to ptr
  call void %function(ptr %frame, i64 0)
  %word.after = getelementptr inbounds i64, ptr %thing.at, i64 1
  br label %next
end:
  ret void
}}"""
