"""Index-set splitting: a loop with conditions on its index becomes one loop for each range in which
they are constant.

Builds on arithmetic.py. For concatenated and padded arrays; llvm.py prints the result. Chapter 24.
In LLVM: index set splitting, which its default passes lack.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from .arithmetic import Arithmetic
from .loops import (BOOL, INT64, OPS, Constant, For, If, Let, Scalar, Statement, bodies, changed,
                    defined, integer, substituted, walk, with_bodies, with_origin)

# Iterations of a loop that is split: its own, and with those of the loops inside and around.
MIN_ITERATIONS, MIN_TOTAL = 4, 512
MAX_LOOPS = 8  # loops that one is split into
MAX_STATEMENTS = 99  # statements: a longer body is not copied
TESTS = ("lt", "le", "gt", "ge", "eq", "ne")


def split_loops(body: Iterable[Statement], times: int = 1) -> tuple[Statement, ...]:
    """The same statements, which run so many times, with parallel loops split at the points where
    their conditions change.
    """
    def parts(statement: Statement) -> list[Statement]:
        inner = times * max(getattr(statement, "trip_count", None) or 1, 1)
        return _split(with_bodies(statement, partial(split_loops, times=inner)), times)
    return tuple(each for statement in body for each in (
        parts(statement) if bodies(statement) else [statement]))


def _split(loop: Statement, times: int) -> list[Statement]:
    """A loop split into several, or the loop itself."""
    if not isinstance(loop, For) or loop.vectorize != "parallel":
        return [loop]
    statements, count = list(walk(loop.body)), loop.trip_count or 0
    inner = max((each.trip_count or 1 for each in statements if isinstance(each, For)), default=1)
    if (len(statements) > MAX_STATEMENTS or count < MIN_ITERATIONS
            or times * count * inner < MIN_TOTAL):
        return [loop]
    functions = affine_functions(loop.body, loop.index)
    start, stop = (int(x.value) for x in (loop.start, loop.stop))  # type: ignore[union-attr]
    tests = [let for let in statements if isinstance(let, Let) and let.op in TESTS
             and all(_affine(x, functions) for x in let.args)]
    cuts = {cut for test in tests for cut in _cuts(test, functions) if start < cut < stop}
    if not cuts or len(cuts) > 2 * MAX_LOOPS:
        return [loop]

    def outcomes(i: int) -> dict[Any, Constant]:
        """The results of the tests in an iteration."""
        def value(x: Any) -> np.int64:
            slope, intercept = _affine(x, functions)
            return np.int64(slope * i + intercept)
        return {x.target: Constant(OPS[x.op].meaning(*map(value, x.args)), BOOL) for x in tests}

    results = lambda i: [x.value for x in outcomes(i).values()]
    starts = [start, *(cut for last, cut in pairwise([start, *sorted(cuts)])
                       if results(cut) != results(last))]
    if not 1 < len(starts) <= MAX_LOOPS:
        return [loop]
    return [specialized_loop(loop, outcomes(first), start=integer(first), stop=integer(end))
            for first, end in pairwise([*starts, stop])]


# Affine functions of some indices: the slope along each, and last the intercept; 1 is one, too.
AffineFunctions = Mapping[Any, tuple[int, ...]]


def _affine(x: Any, functions: AffineFunctions) -> tuple[int, ...]:
    """The coefficients of an operand; none if it is not affine."""
    if not isinstance(x, Constant):
        return functions.get(x, ())
    return tuple(k * int(x.value) for k in functions[1]) if x.dtype == INT64 else ()


def affine_functions(body: Iterable[Statement], *indices: Scalar) -> AffineFunctions:
    """The affine functions of some indices among the scalars of a body."""
    basis = *indices, 1
    functions: dict[Any, tuple[int, ...]] = {x: tuple(int(x is y) for y in basis) for x in basis}
    for let in walk(body):
        if isinstance(let, Let) and let.op in ("add", "sub", "mul"):
            x, y = (_affine(x, functions) for x in let.args)
            sign = -1 if let.op == "sub" else 1
            if x and y and let.op != "mul":
                functions[let.target] = tuple(a + sign * b for a, b in zip(x, y, strict=True))
            elif x and y and not any(y[:-1]):
                functions[let.target] = tuple(a * y[-1] for a in x)
    return functions


def _cuts(test: Let, functions: AffineFunctions) -> list[int]:
    """The iterations from which on a test may change."""
    x, y = (_affine(x, functions) for x in test.args)
    slope, intercept = x[0] - y[0], x[1] - y[1]
    return [-(intercept // slope), -intercept // slope + 1] if slope else []


def specialized_loop(loop: For, names: Mapping[Any, Any], **parts: Any) -> For:
    """A loop with some operands renamed, as those that are constant in a part of its range."""
    index = Scalar(loop.index.name, INT64)
    body = specialized(loop.body, {loop.index: index, **names})
    return changed(loop, index=index, body=body, **parts)


def specialized(body: Iterable[Statement], names: dict) -> tuple[Statement, ...]:
    """Statements with operands renamed, constants folded and constant branches resolved. What they
    define has new names.
    """
    b, result = Arithmetic(), list[Statement]()
    for each in body:
        if isinstance(each, Let):
            args = tuple(names.get(x, x) for x in each.args)
            args = tuple(b.const(x.value, x.dtype) if isinstance(x, Constant) else x for x in args)
            folded = names.get(each.target) or b.fold(each.op, args, each.target.dtype)
            if folded is not None:
                names[each.target] = folded
                continue
        if isinstance(each, If) and isinstance(test := names.get(each.test, each.test), Constant):
            result += specialized(each.then if test.value else each.orelse, names)
            continue
        new = defined(each)
        if new is not None:
            names[new] = type(new)(new.name, new.dtype)
        inside = with_bodies(each, lambda inner: specialized(inner, names))
        result.append(with_origin(substituted(inside, names), each))
    return tuple(result)
