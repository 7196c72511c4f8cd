"""Index-set splitting: a loop with conditions on its index becomes one loop for each range in which
they are constant.

Stands on arithmetic.py. For concatenated and padded arrays; llvm.py prints the result. Chapter 24.
In LLVM: index set splitting, which its default passes lack.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from .arithmetic import Arithmetic
from .loops import (
    BOOL, INT64, OPS, Constant, For, If, Let, Scalar, Statement, defined, renamed, walk,
    with_bodies,
)

LEAST, WORTH = 8, 512  # iterations of a loop that is split: its own, and with those of inner loops
MOST = 8  # loops that one is split into
LONG = 99  # statements: a longer body is not copied
TESTS = ("lt", "le", "gt", "ge", "eq", "ne")


def split_loops(body: Iterable[Statement]) -> tuple[Statement, ...]:
    """The same statements, with parallel loops split at the points where their conditions change.
    """
    return tuple(each for statement in body for each in _split(
        with_bodies(statement, split_loops)))


def _split(loop: Statement) -> list[Statement]:
    """A loop split into several, or the loop itself."""
    if not isinstance(loop, For) or loop.vectorize != "parallel" or (loop.turns or 0) < LEAST:
        return [loop]
    inside = list(walk(loop.body))
    inner = max((each.turns or 1 for each in inside if isinstance(each, For)), default=1)
    if len(inside) > LONG or (loop.turns or 0) * inner < WORTH:
        return [loop]
    places = _places(loop)
    start, stop = (_place(x, {})[1] for x in (loop.start, loop.stop))
    tests = [let for let in walk(loop.body) if isinstance(let, Let) and let.op in TESTS
             and all(x in places or _is_whole(x) for x in let.args)]
    cuts = {cut for test in tests for cut in _cuts(test, places) if start < cut < stop}
    if not cuts or len(cuts) > 2 * MOST:
        return [loop]

    def outcomes(i: int) -> dict[Any, Constant]:
        """The results of the tests in an iteration."""
        return {test.target: Constant(OPS[test.op].meaning(*(
            np.int64(slope * i + first) for slope, first in (_place(x, places)
                                                             for x in test.args))), BOOL)
            for test in tests}

    firsts = [start]
    for cut in sorted(cuts):
        old, new = ([x.value for x in outcomes(i).values()] for i in (firsts[-1], cut))
        if new != old:
            firsts.append(cut)
    if not 1 < len(firsts) <= MOST:
        return [loop]
    return [_part(loop, first, last, outcomes(first)) for first, last in pairwise([*firsts, stop])]


Places = Mapping[Any, tuple[int, int]]  # affine functions of an index: slope and intercept


def _is_whole(x: Any) -> bool:
    return isinstance(x, Constant) and x.dtype == INT64


def _place(x: Any, places: Places) -> tuple[int, int]:
    return (0, int(x.value)) if isinstance(x, Constant) else places[x]


def _places(loop: For) -> Places:
    """The affine functions of the loop's index among its scalars."""
    places = {loop.index: (1, 0)}
    for let in walk(loop.body):
        if (isinstance(let, Let) and let.op in ("add", "sub")
                and all(x in places or _is_whole(x) for x in let.args)):
            (slope, first), (other, second) = (_place(x, places) for x in let.args)
            sign = 1 if let.op == "add" else -1
            places[let.target] = slope + sign * other, first + sign * second
    return places


def _cuts(test: Let, places: Places) -> list[int]:
    """The iterations from which on a test may change."""
    (slope, first), (other, second) = (_place(x, places) for x in test.args)
    slope, first = slope - other, first - second
    return [-(first // slope), -first // slope + 1] if slope else []


def _part(loop: For, first: int, last: int, outcomes: Mapping[Any, Constant]) -> Statement:
    """A loop over a part of its range, with some tests constant. All that it defines is renamed."""
    names: dict[Any, Any] = {loop.index: Scalar(loop.index.name, INT64)}
    body = _copied(loop.body, {**names, **outcomes}, Arithmetic())
    start, stop = (Constant(np.int64(i), INT64) for i in (first, last))
    return replace(loop, index=names[loop.index], start=start, stop=stop, body=body)


def _copied(body: Iterable[Statement], names: dict[Any, Any], b: Arithmetic
            ) -> tuple[Statement, ...]:
    """Statements with operands renamed, constants folded and constant branches resolved."""
    made: list[Statement] = []
    for statement in body:
        if isinstance(statement, Let):
            args = tuple(names.get(x, x) for x in statement.args)
            args = tuple(b.const(x.value, x.dtype) if isinstance(x, Constant) else x for x in args)
            folded = names.get(statement.target) or b.fold(
                statement.op, args, statement.target.dtype)
            if folded is not None:
                names[statement.target] = folded
                continue
        if isinstance(statement, If) and isinstance(test := names.get(
                statement.test, statement.test), Constant):
            made += _copied(statement.then if test.value else statement.orelse, names, b)
            continue
        new = defined(statement)
        if new is not None:
            names[new] = type(new)(new.name, new.dtype)
        inside = with_bodies(statement, lambda inner: _copied(inner, names, b))
        made.append(renamed(inside, names))
    return tuple(made)
