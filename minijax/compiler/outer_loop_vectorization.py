"""Outer-loop vectorisation: of a loop over many short rows, the lanes of a vector are rows.

If that is little code, loops along a row are unrolled, and the elements of rows side by side are
interleaved accesses; otherwise they are copied into tiles.  Builds on row_tiles.py; llvm.py prints
the result.  Chapter 26.  In LLVM: the outer loops of `VPlan`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from .builder import MIDDLING_ROW, SHORT_ROW
from .cpu import vector_registers
from .elementary import FORMULAS
from .fusion import MIN_ROWS
from .integer_order import order_as_integers
from .loop_unrolling import copies
from .loops import (Buffer, For, Let, Load, Statement, Store, accesses, bodies, changed,
                    innermost_first, private_temps, walk, with_bodies)
from .row_tiles import in_tiles, stores_apart
from .scalar_replacement import replace_by_scalars
from .steps import Steps
from .vectorization import (ORDERLESS, is_straight, lanes_in, lanes_of_sum, pays, reductions,
                            shuffles)

FILLING = 12  # elements: longer rows fill vectors, and one extremum of them is found faster so
MIN_CODE = 15  # statements: less is not worth the copies into tiles
MAX_CODE = 200  # statements of all copies: LLVM takes long to compile more
OF_FUNCTION = 15  # how many an elementary function counts for


def put_rows_in_lanes(body: Iterable[Statement], shared: Collection[Buffer] = ()
                      ) -> tuple[Statement, ...]:
    """The same statements, with loops over short rows as loops whose lanes are rows.

    `shared` are buffers that other statements access, too.
    """
    body = tuple(body)
    uses = Counter([*accesses(walk(body)), *shared])
    register = vector_registers()[1]

    def transformed(body: Iterable[Statement]) -> tuple[Statement, ...]:
        return tuple(new for each in body for new in (
            isinstance(each, For) and _in_lanes(each, uses, register)
            or [with_bodies(each, transformed) if bodies(each) else each]))
    return transformed(body)


def _in_lanes(loop: For, uses: Mapping[Buffer, int], register: int) -> list[Statement] | None:
    """A loop over short rows with rows in lanes: in registers, if that is little code, or in tiles.
    """
    inside = [each for each in walk(loop.body) if isinstance(each, For)]
    longest = MIDDLING_ROW if code_of(loop.body) > OF_FUNCTION else SHORT_ROW
    if (loop.vectorize not in ("parallel", "apart", "reduce") or (loop.trip_count or 0) < MIN_ROWS
            or not inside or not all(0 < (each.trip_count or 0) <= longest for each in inside)):
        return None
    if len(inside) == 1 and (inside[0].trip_count or 0) > FILLING and ORDERLESS.issuperset(
            reductions(inside[0]).values()) and lanes_of_sum(inside[0]):
        return None
    private = private_temps(loop, uses) if loop.vectorize != "reduce" else [
        x for x in private_temps(replace(loop, vectorize="apart"), uses) if _is_scratch(x, loop)]
    if straight := _straight(loop, private, register):
        return [straight]
    if code_of(loop.body) < MIN_CODE:
        return None
    loop = replace(loop, body=order_as_integers(loop.body))
    lanes = register // max((x.dtype.itemsize for x in accesses(walk(loop.body))), default=8)
    return in_tiles(loop, lanes, private) if (loop.trip_count or 0) >= lanes else None


def _is_scratch(temp: Buffer, loop: For) -> bool:
    """Whether each iteration stores a temp anew, at the same places."""
    steps, uses = Steps({loop.index: 1}), []
    for each in walk(loop.body):
        steps.enter(each)
        if isinstance(each, Load | Store) and each.buffer is temp:
            uses.append((type(each), steps.at(temp, each.index)))
    return uses[0][0] is Store and not any(step for _, step in uses)


def _straight(loop: For, private: Collection[Buffer], register: int) -> For | None:
    """A loop over short rows without loops inside, if it is printed in vectors then."""
    if _count_unrolled(loop.body) > 3 * MAX_CODE:
        return None
    unrolled = innermost_first(copies)(loop.body)
    if not is_straight(unrolled):
        return None
    body = replace_by_scalars(unrolled, private)
    if body is None:
        return None
    reduces = loop.vectorize == "reduce"
    straight = changed(loop, body=body, vectorize="reduce" if reduces else "parallel")
    is_vectorized = pays(straight) and lanes_of_sum(straight) if reduces else lanes_in(
        straight, register)
    is_fit = is_vectorized and stores_apart(straight)
    return straight if is_fit and code_of(body) + shuffles(straight) <= MAX_CODE else None


def _count_unrolled(body: Iterable[Statement]) -> int:
    """The number of statements without loops."""
    return sum((each.trip_count or 0) * _count_unrolled(each.body) if isinstance(each, For)
               else 1 + sum(map(_count_unrolled, bodies(each))) for each in body)


def code_of(body: Iterable[Statement]) -> int:
    """How much code LLVM gets."""
    return sum(OF_FUNCTION if isinstance(each, Let) and each.op in FORMULAS else 1
               for each in walk(body))
