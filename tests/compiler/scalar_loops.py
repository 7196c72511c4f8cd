"""Machine code without vectors: what code in vectors is compared with, bit for bit."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from minijax.compiler import function_text, loop_unrolling
from minijax.compiler.builder import Builder, identity_element
from minijax.compiler.loops import (Assign, Buffer, For, Load, Operand, Read, Statement, Store,
                                    substituted)
from minijax.compiler.vectorization import reductions


@contextmanager
def scalar_loops() -> Iterator[None]:
    """Meanwhile no loop is printed in vectors, and lanes of sums are in memory."""
    with mock.patch.object(function_text, "lanes_in", lambda *_: 0), mock.patch.object(
            function_text.FunctionText, "sum_in_lanes", sum_in_memory), mock.patch.object(
            loop_unrolling, "lanes_in", lambda *_: 0):
        yield


def sum_in_memory(text: Any, loop: For, lanes: int) -> None:
    """A loop that reduces with its partial results in memory, one scalar after the other."""
    b, ops = Builder(), reductions(loop)
    partials = {x: Buffer("lanes", x.dtype, (lanes,), "local") for x in ops}

    def iteration(statement: Statement, k: Operand, j: Operand) -> Statement:
        match statement:
            case Read(target, variable) if variable in partials:
                return Load(target, partials[variable], (j,))
            case Assign(variable, value) if variable in partials:
                return Store(partials[variable], (j,), value)
        return substituted(statement, {loop.index: k})

    def row(first: Any, count: int) -> None:
        with b.loop(count) as j:
            for statement in loop.body:
                b.emit(iteration(statement, b.actual(b.add(first, j)), b.actual(j)))

    with b.loop(lanes) as j:
        for x, op in ops.items():
            b.store(partials[x], (j,), identity_element(op, x.dtype))
    rows, rest = divmod(loop.trip_count or 0, lanes)
    with b.loop(rows) as k:
        row(b.add(loop.start, b.mul(k, lanes)), lanes)
    row(b.add(loop.start, rows * lanes), rest)
    for x, op in ops.items():
        terms: list[Any] = [b.load(partials[x], (k,)) for k in range(lanes)]
        while len(terms) > 1:
            half = len(terms) // 2
            terms = [getattr(b, op)(*pair)
                     for pair in zip(terms[:half], terms[half:], strict=True)]
        b.emit(Assign(x, b.actual(getattr(b, op)(b.read(x), terms[0]))))
    text.body(b.scopes[0].statements)
