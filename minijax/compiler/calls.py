"""A run of many calls of outlined loops as one loop over a table, which LLVM compiles at once.

Builds on outlining.py; llvm.py prints it. Chapter 24. In XLA: the thunks of its CPU runtime, a list
of calls with their buffers that is run one after the other."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from .loops import Buffer, Kernel, Statement
from .memory import ALIGNMENT, HEADER, WORD
from .outlining import Outlined

MANY = 16  # calls


class Calls(Statement):
    """Outlined loops, which are called in a row."""

    loops: tuple[Statement, ...]


def with_runs(body: Sequence[Statement], is_plain: Callable[[Statement], bool]
              ) -> Iterator[Statement]:
    """The statements of a body, and its runs of many plain calls."""
    run: list[Statement] = []
    for each in body:
        if is_plain(each):
            run.append(each)
            continue
        yield from _joined(run)
        yield each
        run = []
    yield from _joined(run)


def _joined(run: list[Statement]) -> list[Statement]:
    return [Calls(tuple(run))] if len(run) >= MANY else run


def table_of_calls(symbol: str, kernel: Kernel, functions: Sequence[str],
                   outlined: Sequence[Outlined]) -> str:
    """A function that calls others, each with a frame of addresses.

    A row of its table has the number of the function, and a word for each buffer: an argument of
    the kernel has the even number of its place, a temp the odd one of its offset.
    """
    arguments = [*kernel.inputs, *kernel.outputs, *kernel.constants]
    words: Mapping[Buffer, int] = {
        **{x: 2 * k for k, x in enumerate(arguments)},
        **{x: 2 * offset + 1 for x, offset in kernel.offsets.items()}}
    numbers = {name: k for k, name in enumerate(dict.fromkeys(functions))}
    width = 1 + max(len(x.captures) for x in outlined)
    rows = [[numbers[name], *(words[x] for x in each.captures)]  # type: ignore[index]
            for name, each in zip(functions, outlined, strict=True)]
    table = ", ".join(f"[{width} x i64] [{', '.join(f'i64 {x}' for x in row)}]" for row in (
        [*row, *[0] * (width - len(row))] for row in rows))
    return _TEXT.format(
        symbol=symbol, rows=len(rows), width=width, table=table, items=HEADER + WORD, header=HEADER,
        memory="%memory" if kernel.temps else "null",
        workspace=_WORKSPACE.format(
            place=WORD * len(arguments), header=HEADER, rest=ALIGNMENT - 1, mask=-ALIGNMENT)
        * bool(kernel.temps),
        cases=" ".join(f"i64 {k}, label %call.{k}" for k in numbers.values()),
        calls="\n".join(f"call.{k}:\n  call void {name}(ptr %captures, i64 0)\n"
                        "  br label %following" for name, k in numbers.items()))


_WORKSPACE = """\
  %last = getelementptr i8, ptr %items, i64 {place}
  %array = load ptr, ptr %last
  %array.place = getelementptr i8, ptr %array, i64 {header}
  %workspace = load ptr, ptr %array.place
  %line = getelementptr i8, ptr %workspace, i64 {rest}
  %memory = call ptr @llvm.ptrmask.p0.i64(ptr %line, i64 {mask})
"""

_TEXT = """\
{symbol}.table = internal constant [{rows} x [{width} x i64]] [{table}]
define internal void {symbol}(ptr %list) noinline nounwind {{
entry:
  %frame = alloca [{width} x ptr]
  %captures = getelementptr ptr, ptr %frame, i64 1
  %items.place = getelementptr i8, ptr %list, i64 {items}
  %items = load ptr, ptr %items.place
{workspace}  br label %row
row:
  %k = phi i64 [0, %entry], [%k.next, %following]
  %words = getelementptr [{width} x i64], ptr {symbol}.table, i64 %k
  br label %capture
capture:
  %j = phi i64 [1, %row], [%j.next, %captured]
  %word.place = getelementptr i64, ptr %words, i64 %j
  %word = load i64, ptr %word.place
  %number = lshr i64 %word, 1
  %is.temp = trunc i64 %word to i1
  br i1 %is.temp, label %temp, label %argument
temp:
  %in.memory = getelementptr i8, ptr {memory}, i64 %number
  br label %captured
argument:
  %item = getelementptr ptr, ptr %items, i64 %number
  %object = load ptr, ptr %item
  %data.place = getelementptr i8, ptr %object, i64 {header}
  %data = load ptr, ptr %data.place
  br label %captured
captured:
  %address = phi ptr [%in.memory, %temp], [%data, %argument]
  %slot = getelementptr ptr, ptr %frame, i64 %j
  store ptr %address, ptr %slot
  %j.next = add i64 %j, 1
  %is.more = icmp ult i64 %j.next, {width}
  br i1 %is.more, label %capture, label %choose
choose:
  %function = load i64, ptr %words
  switch i64 %function, label %following [{cases}]
{calls}
following:
  %k.next = add i64 %k, 1
  %is.next = icmp ult i64 %k.next, {rows}
  br i1 %is.next, label %row, label %end
end:
  ret void
}}"""
