"""Programs derived from nested programs: the innermost first, on an explicit stack.

So programs may nest deeper than Python's stack allows.  Builds on nothing.  Chapter 06, *Programs
as data*.  JAX has no counterpart.
"""

import contextvars
import functools
from collections.abc import Callable
from typing import Any

NESTED = 6  # so many derivations run inside each other on Python's stack
PER_PROGRAM = 16  # how often one begins again for each program inside: rules derive several things


class Derivation(BaseException):
    """Something that is computed from a program; raised by one that is to be made first."""

    begun = 0

    def __init__(self, make: Callable[[], Any], count_inner: Callable[[], int]):
        self.make, self.count_inner = make, count_inner

    def may_begin_again(self) -> bool:
        """Whether its program can be derived earlier; a cached one is not derived again."""
        self.begun += 1
        return self.begun <= PER_PROGRAM * self.count_inner()


# How many derivations run inside each other, and the innermost one's stack of those that wait: each
# needs the one pushed after it.
_waiting: contextvars.ContextVar[tuple[int, list[Derivation]]] = contextvars.ContextVar(
    "minijax_waiting", default=(0, []))


def inner_first(make: Callable[[], Any], count_inner: Callable[[], int]) -> Any:
    """The program that `make` derives from another, cached.

    It derives the same of the programs inside. Where they nest deeply, the innermost is done
    first: a derivation is raised, made in the loop below, and the outer one begins again.

    Args:
      make: computes and keeps the result.
      count_inner: how many programs are inside.
    """
    depth, before = outer = _waiting.get()
    if depth and depth >= NESTED and before[-1].may_begin_again():
        # under the trace and the flags of the outer one
        raise Derivation(functools.partial(contextvars.copy_context().run, make), count_inner)
    waiting = [Derivation(make, count_inner)]
    try:
        _waiting.set((depth + 1, waiting))
        while True:
            try:
                result = waiting[-1].make()
            except Derivation as inner:
                waiting.append(inner.with_traceback(None))
                continue
            waiting.pop()
            if not waiting:
                return result
    finally:
        _waiting.set(outer)
