"""The cache of `jit`: a table of programs by the types of arguments, filled by calls.

Builds on `transforms.jit`, whose table it reads.  Chapter 08.  JAX has no counterpart.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from minijax import core
from minijax.transforms.jit import CallArguments, Key, jit
from minijax.notebook.drawing import GREEN, INK, ORANGE, box, line, words
from minijax.notebook.film import Film, Frame
from minijax.notebook.widgets.step import Names

WIDTH, TOP, ROW = 420, 72, 34


def kept(fun: Callable, *calls: Any, **options: Any) -> Film:
    """Call `jit(fun, **options)`, and look each time at what it keeps.

    Args:
      fun: a function.
      calls: the arguments of each call: a tuple, or the only one.
      options: what `jit` is told, such as ``static_argnums``.

    >>> kept(lambda x: x * 2.0, 1.0, 2.0, 3)
    1  f(1.0): nothing is kept for f32[] weak. The body runs, and its program is written.
    2  f(2.0): for f32[] weak a program is kept. It runs; the body does not.
    3  f(3): nothing is kept for i32[] weak. The body runs, and its program is written.
    """
    jitted = jit(lambda *args: fun(*args), **options)  # whose table is empty
    names = list(inspect.signature(fun).parameters)
    tally: dict[Key, list[int]] = {}
    frames = []
    for number, call in enumerate(calls, 1):
        args = call if isinstance(call, tuple) else (call,)
        key = CallArguments(jitted, args, {}).key
        is_new = key not in jitted._table()
        jitted(*args)
        tally.setdefault(key, []).append(number)
        text, types = f"f({', '.join(map(_argument, args))})", decides(key, names)
        said = (f"`{text}`: nothing is kept for `{types}`. The body runs, and its program is "
                "written." if is_new else
                f"`{text}`: for `{types}` a program is kept. It runs; the body does not.")
        lit = ORANGE if is_new else GREEN
        rows = [_row(place, (decides(one, names), program(jitted, one), tally[one]),
                     lit if one == key else "") for place, one in enumerate(jitted._table())]
        frames.append(Frame(said, [_head(text), *rows]))
    return Film((WIDTH, TOP + ROW * len(tally) + 10), {(): frames})


def decides(key: Key, names: Sequence[str]) -> str:
    """What of a call decides: the types of its arrays, and the values of what is static."""
    types = [aval.str_short(True) + " weak" * aval.weak_type for aval in key.avals]
    static = [f"{names[where] if isinstance(where, int) else where}={value!r}"
              for where, (_, value) in key.static]
    return ", ".join(types + static)


def program(jitted: Any, key: Key) -> str:
    """The operations of the program that is kept under a key."""
    return " ".join(eqn.primitive.name for eqn in jitted._table()[key].jaxpr.eqns)


def _argument(x: Any) -> str:
    return f"array {Names().of(x)}" if isinstance(x, core.Array) else repr(x)


def _head(call: str) -> str:
    titles = (("types of the arguments", 12), ("program", 190), ("calls", 350))
    return (words(12, 24, call, size=17, code=True, anchor="start", font_weight="bold")
            + "".join(words(x, TOP - 12, title, size=13, anchor="start") for title, x in titles)
            + line([(6, TOP - 4), (WIDTH - 6, TOP - 4)], width=1))


def _row(place: int, cells: tuple[str, str, list[int]], colour: str) -> str:
    y = TOP + ROW * place
    texts = [(cells[0], 12), (cells[1], 190), (" ".join(map(str, cells[2])), 350)]
    return (box(6, y, WIDTH - 12, ROW - 6, colour or INK, lit=bool(colour), stroke_width=1,
                fill_opacity=0.35 if colour else 0.05)
            + "".join(words(x, y + 19, text if len(text) < 22 else text[:18] + " …", size=13,
                            code=True, anchor="start") for text, x in texts))
