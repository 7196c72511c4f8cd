"""Which iteration of a loop, which example of a batch: where a finding says that it was made.

Stands on `context`.  Chapter 19, *NaNs*.  JAX has no counterpart.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from minijax import context

T = TypeVar("T")


class Step(NamedTuple):
    """One round of what is done many times: an iteration of a loop, an example of a batch.

    >>> print(Step("scan", 3, 10), "and", Step("vmap", 0, 4, (2,)))
    iteration 3 of a scan of 10 and example 0 of a vmap over 4 (and 2)
    """

    kind: str  # "scan", "while_loop", "vmap"
    number: int  # from 0
    of: int | None = None  # how many there are, where that is known
    others: tuple[int, ...] = ()  # which of them are like it

    def __str__(self) -> str:
        if self.kind == "vmap":
            shown = ", ".join(map(str, self.others[:5])) + (", …" if self.others[5:] else "")
            also = f" (and {shown})" if shown else ""
            return f"example {self.number} of a vmap over {self.of}{also}"
        of = "" if self.of is None else f" of {self.of}"
        return f"iteration {self.number} of a {self.kind}{of}"


# The steps we are in while loops and batches run piece by piece, the outermost first.
current_steps: contextvars.ContextVar[tuple[Step, ...]] = contextvars.ContextVar(
    "minijax_current_steps", default=())


def in_step(step: Step, f: Callable[..., T], *args: Any, outside: int | None = None,
            **kwargs: Any) -> T:
    """`f(*args, **kwargs)`, with the step known to whoever asks where we are.

    Args:
      outside: how many of the steps we are in are around this one; None: all of them.

    >>> in_step(Step("scan", 3, 10), lambda: list(map(str, current_steps.get())))
    ['iteration 3 of a scan of 10']
    """
    steps = current_steps.get()
    outer = len(steps) if outside is None else outside
    return context.with_values({current_steps: (*steps[:outer], step, *steps[outer:])},
                               f, *args, **kwargs)
