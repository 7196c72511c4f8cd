"""A primitive on its way down the traces: the trace, the unpacked tracers, the results.

Builds on the record of `watch`.  Chapters 02 and 04.  JAX has no counterpart.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from minijax import core
from minijax.core.jvp import JVPTracer
from minijax.core.vmap import BatchTracer
from minijax.notebook.drawing import (BLUE, GREEN, LETTER, ORANGE, VIOLET, arrow, box, words,
                                      line as drawn)
from minijax.notebook.film import Film, Frame
from minijax.notebook.watch import NOTHING, Line, Watcher, Names as ShortNames

COLOURS = (VIOLET, GREEN, BLUE, ORANGE)  # by level; evaluation first
SIZE, TOP, HEIGHT, ROW, GAP = 13, 34, 64, 78, 26
DOES = {"jvp": "runs its derivative rule", "vmap": "runs its batching rule",
        "stage": "writes it down", "record": "writes it down, to be run later"}


class Names(ShortNames):
    """As `watch` names values; short vectors by their numbers, tracers also by what they hold."""

    def of(self, x: Any) -> str:
        if isinstance(x, core.ArrayImpl) and x.ndim == 1 and x.size <= 4:
            return f"[{' '.join(f'{number:.3g}' for number in x._buffer.ravel().tolist())}]"
        return super().of(x)

    def inside(self, x: Any) -> str:
        """What a tracer holds; its type where it holds nothing."""
        if isinstance(x, JVPTracer):
            return f"({self.of(x.primal)}; {self.of(x.tangent)})"
        if isinstance(x, BatchTracer):
            return self.of(x.value) + f" along {x.batch_dim}" * bool(x.batch_dim)
        return x.aval.str_short(True)

    def opened(self, xs: Sequence[Any], level: int) -> list[str]:
        """What each tracer of a level holds, once."""
        own = {id(x): x for x in xs if isinstance(x, core.Tracer) and x.level.depth == level}
        return [f"{self.of(x)} = {self.inside(x)}" for x in own.values()]


@dataclass
class Scene:
    """One primitive from the top: where each line of the record stands, and what is seen of it."""

    top: Line
    names: Names
    first: int  # the number of its first frame
    moments: list[tuple[Line, str]] = field(default_factory=list)  # who is lit, what is said
    texts: dict[int, list[tuple[int, str]]] = field(default_factory=dict)  # from which frame on

    def __post_init__(self) -> None:
        self.lines = list(_down(self.top))
        self.rows: dict[int, int] = {}
        self._place(self.top, 0)
        self._tell(self.top)
        self.levels = sorted({line.level for line in self.lines}, reverse=True)
        self.titles = [self._title(level) for level in self.levels]
        self.widths = [max([len(title), *(len(text) for line in self.lines if line.level == level
                                          for _, text in self.texts[id(line)])])
                       * LETTER * SIZE + 16 for title, level in zip(self.titles, self.levels,
                                                                    strict=True)]

    def _title(self, level: int) -> str:
        columns = dict.fromkeys(line.column for line in self.lines if line.level == level)
        return f"level {level} · {', '.join(columns)}" if level else "evaluation"

    def _place(self, line: Line, row: int) -> int:
        """Stand beside the first that the rule asked for, if that is below; the next free row."""
        self.rows[id(line)] = row
        below = row + any(inner.level >= line.level for inner in line.inner[:1])
        for inner in line.inner:
            below = self._place(inner, below)
        return max(below, row + 1)

    def _tell(self, line: Line) -> None:
        """The moments of a line: it is met, then what its rule asks for, then it comes back."""
        call = " ".join([line.primitive, *map(self.names.of, line.operands)])
        own = ", ".join(self.names.opened(line.operands, line.level))
        texts = self.texts[id(line)] = [(len(self.moments), text) for text in (call, own) if text]
        who = f"Level {line.level}, {line.column}," if line.level else "Evaluation"
        if line.inner:
            self.moments.append((line, f"{who} meets `{call}`, opens `{own}`, and "
                                       f"{DOES.get(line.column, 'runs its rule')}, one level "
                                       "below."))
            for inner in line.inner:
                self._tell(inner)
        back = "…" if line.results is None else ", ".join(map(self.names.of, line.results))
        held = self.names.opened(line.results or (), line.level)
        result = f"→ {', '.join(held) or back}"
        texts.append((len(self.moments), result))
        if line.inner:
            said = f"Back on level {line.level}: the result of `{call}` is `{result[2:]}`."
        elif line.level:
            said = f"{who} meets `{call}` and {DOES.get(line.column, 'is done')}: `{result[2:]}`."
        else:
            said = f"Evaluation computes `{call}`: `{result[2:]}`."
        self.moments.append((line, said))

    # ---- drawn

    @property
    def size(self) -> tuple[float, float]:
        rows = 1 + max(self.rows.values())
        return sum(self.widths) + GAP * len(self.widths), TOP + rows * ROW

    def x(self, line: Line) -> float:
        """The left edge of a line's box."""
        column = self.levels.index(line.level)
        return GAP / 2 + sum(self.widths[:column]) + GAP * column

    def frames(self) -> Iterator[Frame]:
        seen: list[Line] = []
        for moment, (lit, said) in enumerate(self.moments):
            seen += [lit] * (lit not in seen)
            boxes = [part for line in seen for part in self._box(line, line is lit, moment)]
            yield Frame(said, [self._floors(), *map(self._fall, seen[1:]), *boxes])

    def _floors(self) -> str:
        parts, x = [], 0.0
        for level, title, width in zip(self.levels, self.titles, self.widths, strict=True):
            parts.append(box(x + 4, 4, width + GAP - 8, self.size[1] - 8,
                             COLOURS[level % len(COLOURS)], stroke_width=0, fill_opacity=0.08))
            parts.append(words(x + (width + GAP) / 2, 23, title, font_weight="bold", size=14))
            x += width + GAP
        return "".join(parts)

    def _box(self, line: Line, lit: bool, moment: int) -> Iterator[str]:
        x, y = self.x(line), TOP + self.rows[id(line)] * ROW
        colour = COLOURS[line.level % len(COLOURS)]
        width = self.widths[self.levels.index(line.level)]
        texts = self.texts[id(line)]
        met = self.first + texts[0][0]
        yield box(x, y, width, HEIGHT, colour, lit=lit, data_place=met)
        for k, (since, text) in enumerate(texts):
            if since <= moment:
                weight = "bold" if k == 0 else "normal"
                yield words(x + 8, y + 18 + 18 * k, text, size=SIZE, anchor="start",
                            code=True, font_weight=weight, pointer_events="none")

    def _fall(self, line: Line) -> str:
        """The arrow from a line to what its rule asked for."""
        parent = next(p for p in self.lines if any(line is inner for inner in p.inner))
        left, right = (self.x(one) + self.widths[self.levels.index(one.level)] * (one is parent)
                       for one in (line, parent))
        top, low = (TOP + HEIGHT / 2 + ROW * self.rows[id(one)] for one in (parent, line))
        if line.level < parent.level:
            bend = right + GAP / 2 - 4
            return drawn([(right, top), (bend, top), (bend, low)]) + arrow((bend, low),
                                                                           (left - 2, low))
        bend = self.x(parent) + 12  # up again: a program that is traced anew
        end = left + self.widths[self.levels.index(line.level)]
        if line.level == parent.level:
            return arrow((bend, top + HEIGHT / 2), (bend, low - HEIGHT / 2))
        return drawn([(bend, top + HEIGHT / 2), (bend, low)]) + arrow((bend, low), (end + 2, low))


def _down(line: Line) -> Iterator[Line]:
    yield line
    for inner in line.inner:
        yield from _down(inner)


def step(fun: Callable, *args: Any, **kwargs: Any) -> Film:
    """Call a function, and show each of its primitives going down the traces, step by step.

    A column is a trace, the current one on the left and evaluation on the right.  A box is a
    primitive that a trace met: what it was given, what the tracers of its level hold, and, as
    soon as it is known, the result.  `(b; t)` is a value with its tangent.

    >>> import minijax
    >>> step(lambda x: minijax.jvp(minijax.lax.sin, (x,), (1.0,)), 0.0)
    1  Level 1, jvp, meets sin a, opens a = (0; 1), and runs its derivative rule, one level below.
    2  Evaluation computes sin 0: 0.
    3  Evaluation computes cos 0: 1.
    4  Evaluation computes mul 1 1: 1.
    5  Back on level 1: the result of sin a is b = (0; 1).
    """
    watcher = Watcher()
    watcher.run(fun, *args, **kwargs)
    names, scenes = Names(), list[Scene]()
    for top in watcher.lines:
        scenes.append(Scene(top, names, sum(len(scene.moments) for scene in scenes)))
    frames = [frame for scene in scenes for frame in scene.frames()]
    sizes = [scene.size for scene in scenes] or [(300, 20)]
    size = functools.reduce(lambda a, b: (max(a[0], b[0]), max(a[1], b[1])), sizes)
    return Film(size, {(): frames or [Frame(NOTHING, [])]})
