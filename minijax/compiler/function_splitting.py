"""Function splitting: LLVM's compile time is superlinear in the length of a function.

Builds on loops.py. A kernel is split where no scalar or variable is live. Chapter 24.
In XLA: the limits of fusion.
"""

from collections.abc import Sequence
from typing import Any

from .loops import Scalar, Statement, Variable, defined, used, walk

# Statements of a function. Equal functions, as of the layers of a network, are compiled once, and a
# call costs a nanosecond.
MAX_FUNCTION = 200


def split_body(body: Sequence[Statement], longest: int) -> list[list[Statement]]:
    """Split a body into parts of about `longest` statements, at points where no scalar or variable
    is live.
    """
    walks = [[*walk((statement,))] for statement in body]
    if sum(map(len, walks)) <= longest:
        return [[*body]]
    last: dict[Any, int] = {}
    definitions = {defined(each) for statements in walks for each in statements}
    for k, statements in enumerate(walks):
        last |= {x: k for each in statements for x in used(each)
                 if isinstance(x, Variable) or isinstance(x, Scalar) and x in definitions}
    parts: list[list[Statement]] = [[]]
    length = last_live = 0
    for k, statements in enumerate(walks):
        if length > longest and last_live < k:
            parts.append([])
            length = 0
        length += len(statements)
        last_live = max(last_live, *(last.get(x, 0) for each in statements
                                     for x in (defined(each), *used(each))))
        parts[-1].append(body[k])
    return parts
