"""64 threads of a block that exchange numbers through shared memory, with and without a barrier.

Builds on `film`; a test runs the same threads on the emulated GPU of chapter 27.
JAX has no counterpart.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from minijax.notebook.drawing import BLUE, GREEN, INK, ORANGE, box, words
from minijax.notebook.film import Film, Frame

THREADS, COLUMNS, TOGETHER = 64, 16, 8  # those that run from one frame to the next
SIDE, LEFT, TOP, GAP = 24, 6, 30, 40
OPTIONS = ("in its place", "left out")
WAITS, RIGHT, EARLY = "waits at the barrier", "has read", "has read too early"
COLOURS = {"": INK, WAITS: BLUE, RIGHT: GREEN, EARLY: ORANGE}

Shared = dict[int, int]


def thread(k: int, shared: Shared, has_barrier: bool) -> Iterator[str]:
    """Store the number k, and read the number of the thread at the other end."""
    shared[k] = k
    if has_barrier:
        yield WAITS
    yield RIGHT if THREADS - 1 - k in shared else EARLY


def barrier(seed: int = 0) -> Film:
    """Threads that run in any order; each reads what another one stores.

    Args:
      seed: of the order.

    >>> for frame in barrier().rows["left out",][-2:]:
    ...     print(frame.caption)
    56 of 64 threads have stored and read, 32 of them too early.
    All have read, 32 too early, the first of each pair: a race. Another order has other results.
    """
    rows: dict[tuple[str, ...], list[Frame]] = {
        (option,): [*_frames(option == OPTIONS[0], seed)] for option in OPTIONS}
    height = TOP + 2 * (SIDE * THREADS // COLUMNS) + GAP + 4
    return Film((2 * LEFT + SIDE * COLUMNS, height), rows, {"the barrier is": OPTIONS},
                (OPTIONS[0],), still=-1)


def _frames(has_barrier: bool, seed: int) -> Iterator[Frame]:
    shared, states = Shared(), [""] * THREADS
    random = np.random.default_rng(seed)
    threads = [thread(k, shared, has_barrier) for k in range(THREADS)]
    said: list[Callable[[int], str]] = [
        lambda n: f"{n} of {THREADS} threads have stored, and wait at the barrier.",
        lambda n: f"{n} of {THREADS} threads have read what others had stored."]
    if not has_barrier:
        said = [lambda n: f"{n} of {THREADS} threads have stored and read, {states.count(EARLY)} "
                          "of them too early."]
    yield Frame(f"Thread k stores k in place k, and reads place {THREADS - 1} - k.",
                _drawn(states, shared, ()))
    for phase in said:
        order = random.permutation(THREADS).tolist()
        for start in range(0, THREADS, TOGETHER):
            now = order[start:start + TOGETHER]
            for k in now:
                states[k] = next(threads[k])
            ended = start + TOGETHER == THREADS
            yield Frame(_ended(states) if ended else phase(start + TOGETHER),
                        _drawn(states, shared, now))


def _ended(states: Sequence[str]) -> str:
    early = states.count(EARLY)
    if WAITS in states:
        return "All threads are at the barrier, so all may go on. Everything has been stored."
    return "All have read, " + (
        f"{early} too early, the first of each pair: a race. Another order has other results."
        if early else "and each what it should: the order made no difference.")


def _drawn(states: Sequence[str], shared: Shared, now: Sequence[int]) -> list[str]:
    """The threads above, the places of shared memory below."""
    below = TOP + SIDE * THREADS // COLUMNS + GAP
    parts = [words(LEFT, TOP - 10, "threads", size=13, anchor="start", opacity=0.7),
             words(LEFT, below - 10, "shared memory", size=13, anchor="start", opacity=0.7)]
    touched = {k if states[k] == WAITS else THREADS - 1 - k for k in now}
    for k, state in enumerate(states):
        parts += _cell(k, TOP, COLOURS[state], k in now, str(k))
        parts += _cell(k, below, BLUE if k in shared else INK, k in touched, str(shared.get(k, "")))
    return parts


def _cell(k: int, top: float, colour: str, lit: bool, text: str) -> list[str]:
    x, y = LEFT + SIDE * (k % COLUMNS), top + SIDE * (k // COLUMNS)
    faint = {"fill_opacity": 0.03} if colour == INK else {}
    return [box(x + 1, y + 1, SIDE - 2, SIDE - 2, colour, lit=lit, round=3, **faint),
            words(x + SIDE / 2, y + 16, text, size=11, code=True,
                  opacity=0.4 if colour == INK else 1)]
