"""A prefix laid over a full tree: the subtree of each of its leaves.

Builds on `pytree` and `tree_util`.  Chapter 05.  JAX has no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minijax import core, tree_util
from minijax.notebook.drawing import (BLUE, GREEN, INK, LETTER, ORANGE, VIOLET, box, line, words)
from minijax.notebook.film import Film, Frame
from minijax.util.pytree import bare_key, children_with_keys, kind_of

COLOURS = (ORANGE, BLUE, GREEN, VIOLET)
ROW, HEIGHT, GAP, SIZE = 72, 28, 14, 14


@dataclass(eq=False)
class Spot:
    """A node or a leaf of the full tree, where it is drawn."""

    label: str
    key: str
    depth: int
    below: list[Spot] = field(default_factory=list)
    x: float = 0.0  # of its middle
    width: float = 0.0  # with all that is below it

    def all(self) -> Iterator[Spot]:
        yield self
        for spot in self.below:
            yield from spot.all()

    @property
    def y(self) -> float:
        return 30 + ROW * self.depth

    @property
    def own_width(self) -> float:
        return LETTER * SIZE * max(len(self.label), len(self.key)) + 16

    def place(self, left: float) -> None:
        """Give places to everything below, from left to right, and the middle of them to itself."""
        x = left
        for spot in self.below:
            spot.place(x)
            x += spot.width + GAP
        self.width = max(self.own_width, x - GAP - left)
        self.x = left + self.width / 2
        for spot in (self.below if x - GAP - left < self.own_width else ()):
            spot.place(self.x - (x - GAP - left) / 2)  # of one child, narrower than this is


def spots(tree: Any, key: str = "", depth: int = 0) -> Spot:
    kind = kind_of(tree)
    if kind is None:
        is_array = isinstance(tree, core.Array | np.ndarray)
        return Spot(core.get_aval(tree).str_short(True) if is_array else repr(tree), key, depth)
    children, _ = children_with_keys(kind, tree)
    below = [spots(child, bare_key(k), depth + 1) for k, child in children]
    return Spot(kind.type.__name__ if tree is not None else "None", key, depth, below)


def is_none(x: Any) -> bool:
    return x is None


def prefix(prefix_tree: Any, full_tree: Any) -> Film:
    """Lay a prefix over a full tree; in the prefix, `None` is a leaf.

    >>> prefix((None, 0), ({"b": 1.0, "w": 2.0}, 3.0))
    1  The full tree: 3 leaves.
    2  The prefix (None, 0) lies over it. It has 2 leaves, where it stops.
    3  Its leaf None speaks for 2 leaves of the full tree.
    4  Its leaf 0 speaks for 1 leaf of the full tree.
    5  So each leaf of the full tree is told what holds for it: None, None, 0.
    """
    told = tree_util.broadcast_prefix(prefix_tree, full_tree, is_none)  # raises if it is no prefix
    root = spots(full_tree)
    root.place(8)
    leaves = tree_util.tree_leaves(prefix_tree, is_none)
    covered = list(_covered(prefix_tree, root))
    shared = [spot for spot in root.all() if not any(spot in top.all() for top in covered)]
    tree = [*map(_edge, root.all()), *map(_box, root.all())]
    over = [*tree, *(_outline(spot) for spot in shared), *map(_stop, covered)]

    number = len(tree_util.tree_leaves(full_tree))
    frames = [Frame(f"The full tree: {_leaves(number)}.", tree),
              Frame(f"The prefix `{prefix_tree}` lies over it. It has "
                    f"{_leaves(len(leaves))}, where it stops.", over)]
    regions: list[str] = []
    for k, (leaf, spot) in enumerate(zip(leaves, covered, strict=True)):
        count = sum(not s.below and s.label != "None" for s in spot.all())
        regions.append(_region(spot, repr(leaf), COLOURS[k % len(COLOURS)], root.x))
        frames.append(Frame(f"Its leaf `{leaf!r}` speaks for {_leaves(count)} of the full tree.",
                            [*regions, *over]))
    frames.append(Frame("So each leaf of the full tree is told what holds for it: "
                        f"`{', '.join(map(repr, told))}`.", [*regions, *over]))
    height = max(spot.y for spot in root.all()) + HEIGHT + 14
    return Film((root.width + 16, height), {(): frames})


def _covered(prefix_tree: Any, spot: Spot) -> Iterator[Spot]:
    """Where the leaves of the prefix come to lie."""
    kind = kind_of(prefix_tree)
    if kind is None or prefix_tree is None:
        yield spot
        return
    for (_, child), below in zip(children_with_keys(kind, prefix_tree)[0], spot.below,
                                 strict=True):
        yield from _covered(child, below)


def _leaves(number: int) -> str:
    return f"{number} leaf" if number == 1 else f"{number} leaves"


def _edge(spot: Spot) -> str:
    return "".join(line([(spot.x, spot.y + HEIGHT), (child.x, child.y)], width=1, opacity=0.6)
                   + words((spot.x + 2 * child.x) / 3 + 5, (spot.y + HEIGHT + 2 * child.y) / 3,
                           child.key, size=12, anchor="start", opacity=0.8)
                   for child in spot.below)


def _box(spot: Spot) -> str:
    return (box(spot.x - spot.own_width / 2, spot.y, spot.own_width, HEIGHT, INK,
                fill_opacity=0.05, round=6 if spot.below else HEIGHT / 2)
            + words(spot.x, spot.y + 19, spot.label, size=SIZE, code=True))


def _outline(spot: Spot) -> str:
    """A node that the prefix has, too."""
    return box(spot.x - spot.own_width / 2, spot.y, spot.own_width, HEIGHT, INK, fill_opacity=0.15,
               stroke_width=3)


def _stop(spot: Spot) -> str:
    """The end of the prefix, above what it does not look into."""
    half = spot.own_width / 2 + 6
    return line([(spot.x - half, spot.y - 7), (spot.x + half, spot.y - 7)], INK, 3)


def _region(top: Spot, leaf: str, colour: str, middle: float) -> str:
    """All that a leaf of the prefix speaks for; what it says stands beside the line from above."""
    side = -1 if top.x < middle else 1
    left = min(spot.x - spot.own_width / 2 for spot in top.all()) - 6
    right = max(spot.x + spot.own_width / 2 for spot in top.all()) + 6
    bottom = max(spot.y for spot in top.all()) + HEIGHT + 6
    return (box(left, top.y - 7, right - left, bottom - top.y + 7, colour, fill_opacity=0.25)
            + words(top.x + side * (top.own_width / 2 + 4), top.y - 12, leaf, colour, size=SIZE,
                    code=True, anchor="start" if side < 0 else "end", font_weight="bold"))
