"""Keys from a key: the tree that `split` or `fold_in` makes, and what each key is spent on.

Builds on `film`; `random` computes every word and number shown.  Chapter 16.
JAX has no counterpart.
"""

from typing import Any

import numpy as np

from minijax.notebook.drawing import BLUE, INK, ORANGE, box, line, words
from minijax.notebook.film import Film, Frame

WIDTH, KEY, HIGH, TOP = 500.0, 148.0, 34.0, 10.0
WAYS = ("split into 2", "split into 3", "fold_in, for 2", "fold_in, for 3")


def keys(seed: int = 0) -> Film:
    """A key, its children, and a number from each of them, by two ways to make children.

    >>> print(keys().rows["fold_in, for 3",][1].caption)
    `fold_in(key, 0)` has the words 6b200159 99ba4efe. It is spent on the number 0.970.
    """
    from minijax import random
    key = random.key(seed)
    rows: dict[tuple[str, ...], list[Frame]] = {(way,): _row(key, way) for way in WAYS}
    return Film((WIDTH, 190), rows, {"children by": WAYS}, (WAYS[0],), still=-1)


def children(key: Any, way: str) -> list[tuple[str, Any]]:
    """The names of the children, and their keys."""
    from minijax import random
    count = int(way[-1])
    if way.startswith("split"):
        return [(f"split(key, {count})[{k}]", child)
                for k, child in enumerate(random.split(key, count))]
    return [(f"fold_in(key, {k})", random.fold_in(key, k)) for k in range(count)]


def written(key: Any) -> str:
    """The words of a key, in hexadecimal digits."""
    from minijax import random
    return " ".join(f"{word:08x}" for word in np.asarray(random.key_data(key)).tolist())


def _row(key: Any, way: str) -> list[Frame]:
    from minijax import random
    made = children(key, way)
    frames = [Frame(f"The key has the words {written(key)}. Once it has children, nothing is drawn "
                    "from itself.", [_key(WIDTH / 2, 0, "key", written(key), 0, lit=True)])]
    parts = [_key(WIDTH / 2, 0, "key", written(key), 0)]
    for k, (name, child) in enumerate(made):
        x, number = WIDTH * (k + 0.5) / len(made), float(random.uniform(child))
        edge = line([(WIDTH / 2, TOP + HIGH + 6), (x, TOP + 76)], INK, 1)
        leaf = line([(x, TOP + 76 + HIGH + 6), (x, TOP + 140)], INK, 1) + words(
            x, TOP + 158, f"{number:.3f}", code=True)
        lit = [*parts, edge, _key(x, 76, name, written(child), k + 1, lit=True), leaf]
        parts += [edge, _key(x, 76, name, written(child), k + 1), leaf]
        frames.append(Frame(f"`{name}` has the words {written(child)}. It is spent on the number "
                            f"{number:.3f}.", lit))
    other = way[:-1] + ("3" if way[-1] == "2" else "2")
    same = {written(child) for _, child in made} & {written(x) for _, x in children(key, other)}
    frames.append(Frame(f"{len(same)} of these keys {'is' if len(same) == 1 else 'are'} among "
                        f"those of “{other}”.", parts))
    return frames


def _key(x: float, y: float, name: str, text: str, place: int, lit: bool = False) -> str:
    return (box(x - KEY / 2, TOP + y, KEY, HIGH + 6, ORANGE if lit else BLUE, lit=lit,
                data_place=place)
            + words(x, TOP + y + 16, name, size=12, code=True, pointer_events="none")
            + words(x, TOP + y + 33, text, size=12, code=True, pointer_events="none"))
