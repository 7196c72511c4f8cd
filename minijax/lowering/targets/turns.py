"""Turns of loops: nests as one loop, and how far apart what neighbouring turns touch lies.

Stands on loops.py. Threads beside each other are to touch places beside each other: a warp's load
is as many transactions as there are sectors of 32 bytes in it. Chapter 27. In XLA: its indexing
maps, from which GPU emitters choose their tiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..arithmetic import Arithmetic
from ..loops import (
    INT64, Buffer, Constant, Declare, For, If, Let, Load, Read, Scalar, Shuffle, Statement, Store,
    While, bodies, defined, renamed, touched, walk,
)
from ..probe import cost_of

CHEAP = 24  # simple operations that each turn of a nest may do again, so that it is one loop
# Operations in a turn that are so few, and turns that are so many, that threads take several.
THIN, PLENTY = 64, 1 << 18
TRIPS = 16  # of a loop of which it is not known


def as_one(loop: For) -> For:
    """A loop whose body is one other, as one loop; what stands between, each turn does again."""
    last = loop.body[-1] if loop.body else None
    if not (isinstance(last, For) and _has_turns_apart(loop)):
        return loop
    before, inner, b = loop.body[:-1], as_one(last), Arithmetic()
    if (not _has_turns_apart(inner) or cost_of(before) > CHEAP
            or not all(isinstance(each, Let | Load) for each in before)):
        return loop
    loads = {x for each in before if isinstance(each, Load) for x in touched(each)}
    stores = {x for each in walk(inner.body) if isinstance(each, Store) for x in touched(each)}
    if not loads.isdisjoint(stores):
        return loop
    turn, m, n = Scalar("i", INT64), loop.turns or 0, inner.turns or 0
    names = {loop.index: b.add(b.div(turn, n), loop.start),
             inner.index: b.add(b.rem(turn, n), inner.start)}
    body = renamed((*before, *inner.body), names)
    both = "apart" if "apart" in (loop.vectorize, inner.vectorize) else "parallel"
    note = "\n".join(filter(None, dict.fromkeys((loop.note, inner.note))))
    return replace(loop, index=turn, start=b.index(0), stop=b.index(m * n),
                   body=(*b.scopes[0].statements, *body), note=note, vectorize=both)


def _has_turns_apart(loop: For) -> bool:
    return bool(loop.turns) and loop.vectorize in ("parallel", "apart")


def is_thin(loop: For) -> bool:
    """Whether turns are many, and a few loads and stores with little between them."""
    return ((loop.turns or 0) >= PLENTY and cost_of(loop.body) <= THIN
            and all(isinstance(each, Let | Load | Store) for each in loop.body))


def side_by_side(body: tuple[Statement, ...], index: Scalar, places: Sequence[Any]
                 ) -> tuple[Statement, ...]:
    """Turns of a loop, statement by statement: what all load is under way before one stores."""
    copies = []
    for k, place in enumerate(places):
        new = {x: Scalar(x.name, x.dtype) for x in map(defined, body) if k and x is not None}
        copies.append(renamed(body, new | {index: place}))
    return tuple(each for some in zip(*copies, strict=True) for each in some)


def scattered(body: Sequence[Statement], index: Scalar, apart_from: Iterable[Buffer] = ()) -> float:
    """How often the loops of a body touch places that do not lie beside those that they touch at
    the next number of an index.
    """
    return _Distances(index, set(apart_from)).of(body, 1)


class _Distances:
    """How far apart what statements compute is, at one number of an index and at the next."""

    def __init__(self, index: Scalar, apart_from: set[Buffer]) -> None:
        self.known: dict[Any, int | None] = {index: 1}
        self.apart_from = apart_from

    def __getitem__(self, x: Any) -> int | None:
        return self.known.get(x, 0)

    def of(self, body: Sequence[Statement], times: float) -> float:
        """Touches of places that are not neighbours."""
        total = 0.0
        for each in body:
            match each:
                case Let(target, op, args):
                    self.known[target] = self.operation(op, args)
                case Load(target, buffer, at) | Store(buffer, at, target):
                    distance = self.places(buffer, at)
                    if buffer not in self.apart_from and distance not in (-1, 0, 1):
                        total += times
                    if isinstance(each, Load):
                        self.known[target] = None if distance else 0
                case Declare(variable):
                    self.known[variable] = None
                case Read(target, variable):
                    self.known[target] = self[variable]
                case Shuffle(target):
                    self.known[target] = None
                case For(turns=turns):
                    total += self.of(each.body, times * (TRIPS if turns is None else turns))
                case While() | If():
                    many = TRIPS if isinstance(each, While) else 1
                    total += sum(self.of(inner, times * many) for inner in bodies(each))
        return total

    def places(self, buffer: Buffer, at: Sequence[Any]) -> int | None:
        """Of what an index of a buffer leads to."""
        shape = buffer.shape if len(at) == len(buffer.shape) else (1,)
        terms = [self[i] for i in at]
        if None in terms:
            return None
        return sum(d * math.prod(shape[k + 1:]) for k, d in enumerate(terms) if d is not None)

    def operation(self, op: str, args: Sequence[Any]) -> int | None:
        """Of most neighbours: where a division has another quotient is left aside."""
        parts = [self[x] for x in args]
        if not any(d is None or d for d in parts):
            return 0
        match op, parts, args:
            case ("convert" | "bitcast"), [d], _:
                return d
            case ("add", [int(x), int(y)], _):
                return x + y
            case ("sub", [int(x), int(y)], _):
                return x - y
            case ("mul", [int(x), 0], [_, Constant(c)]) | ("mul", [0, int(x)], [Constant(c), _]):
                return x * int(c)
            case ("div", [int(x), 0], [_, Constant(c)]) if abs(x) < c or x % c == 0:
                return x // int(c) if x % c == 0 else 0
            case ("rem", [int(x), 0], [_, Constant(c)]) if abs(x) < c or x % c == 0:
                return x % int(c) if x >= 0 else x
            case (("min" | "max" | "select"), _, _):
                several = {d for d in parts if d != 0}
                return several.pop() if len(several) == 1 else None
        return None
