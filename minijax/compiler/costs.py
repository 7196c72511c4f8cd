"""Cost analysis of a kernel's loops: operations, elementary functions, bytes, memory.

Builds on routines.py. Chapter 28. In JAX: `HloCostAnalysis`, and the statistics of its buffers.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .elementary import FORMULAS
from .loops import (INT64, OPS, Call, Constant, For, Kernel, Let, Load, Operand, Statement, Store,
                    bodies, walk)
from .routines import BLOCK

FLOPS = {"fma": 2, **dict.fromkeys(("add", "sub", "mul", "div", "rem", "neg", "abs", "min", "max",
                                    "floor", "ceil", "trunc", "round_even"), 1)}
TRANSCENDENTAL = {"sqrt", *FORMULAS}


class CompiledMemoryStats(NamedTuple):
    """The bytes of a program's arguments, results and temporaries."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    alias_size_in_bytes: int = 0
    generated_code_size_in_bytes: int = 0


def memory_of(kernel: Kernel) -> CompiledMemoryStats:
    """The memory that a call of a kernel takes."""
    argument_bytes, output_bytes = (sum(x.nbytes for x in buffers)
                                    for buffers in (kernel.inputs, kernel.outputs))
    return CompiledMemoryStats(argument_bytes, output_bytes, kernel.workspace_size)


def costs_of(body: Iterable[Statement], integers: Mapping[Operand, int] = {}) -> Counter[str]:
    """The cost of a body. Both sides of a branch count; a loop of unknown length counts once.

    Arithmetic of 64-bit integers is that of indices, and does not count.

    Of the library routines only products count: their cost follows from their sizes.

    >>> import minijax
    >>> minijax.jit(lambda x: minijax.numpy.sin(x) + 1).lower(2.).compile().cost_analysis()
    {'bytes accessed': 8.0, 'transcendentals': 1.0, 'flops': 1.0}
    """
    total: Counter[str] = Counter()
    values = dict(integers)  # of integer scalars, such as the sizes of blocks

    def value(x: Any) -> Any:
        return x.value if isinstance(x, Constant) else values.get(x)

    for statement in body:
        inside: list[tuple[dict, int]] = [({}, 1)]  # values in some iterations, how many
        match statement:
            case Load(_, buffer) | Store(buffer):
                total["bytes accessed"] += buffer.dtype.itemsize
            case Let(_, op, _) if op in TRANSCENDENTAL:
                total["transcendentals"] += 1
            case Let(_, op, args) if args[-1].dtype.kind in "fiu" and args[-1].dtype != INT64:
                total["flops"] += FLOPS.get(op, 0)
            case Let(target, op, args) if target.dtype == INT64 and args[0].dtype == INT64:
                if all(value(x) is not None for x in args):
                    values[target] = OPS[op].meaning(*map(np.int64, map(value, args)))
            case Call(name, args) if match := re.fullmatch(BLOCK, name):
                k, row, column, stop = (value(args[place]) for place in (5, 8, 9, 10))
                if None not in (k, row, column):
                    m, n, dtype = int(match[3]) - row, stop - column, np.dtype(match[2])
                    total["flops"] += 2 * m * n * k
                    total["bytes accessed"] += (m * n + m * k + k * n) * dtype.itemsize
            case For(index, start, stop) if None not in (value(start), value(stop)):
                first, last = value(start), value(stop) - 1
                inside = [({}, last + 1 - first)]
                if any(isinstance(x, Call) for x in walk(statement.body)):  # a smaller last block
                    inside = [({index: first}, last - first), ({index: last}, 1)]
        for more, times in inside:
            for inner in bodies(statement):
                for name, count in costs_of(inner, values | more).items():
                    total[name] += times * count
    return total
