"""Lines that drop into the loops where they belong: as far out as their operands are known.

Builds on `compiler.builder`, whose decisions it records.  Chapter 23.  JAX has no counterpart.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.compiler.builder import Builder
from minijax.compiler.loops import Buffer, Constant
from minijax.notebook.drawing import BLUE, INK, LETTER, box, words
from minijax.notebook.film import Film, Frame
from minijax.util.jaxpr_text import variable_name

SIZE, ROW, INDENT = 14, 26, 20  # of letters; from line to line; from loop to loop
ARRAYS, INDICES = "xyz", "ijk"
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


class Request(NamedTuple):
    """An operation that was asked for.

    Args:
      line: what is written for it, with its name.
      depth: the number of loops around that line.
      is_new: whether it was written for this request.
    """

    line: str
    depth: int
    is_new: bool


class Recorder(Builder):
    """The builder of loop trees, which also notes what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self.names: dict[Any, str] = {}
        self.fresh = (name for name in map(variable_name, itertools.count())
                      if name not in ARRAYS + INDICES)

    def let(self, op: str, args: tuple, target: np.dtype | None = None) -> Any:
        operands = [*map(self.name, args)]
        text = f" {SIGNS[op]} ".join(operands) if op in SIGNS else f"{op}({', '.join(operands)})"
        return self._noted(text, lambda: super(Recorder, self).let(op, args, target))

    def load(self, buffer: Buffer, index: Any) -> Any:
        text = f"{buffer.name}[{', '.join(map(self.name, index))}]"
        return self._noted(text, lambda: super(Recorder, self).load(buffer, index))

    def name(self, x: Any) -> str:
        return f"{x.value:g}" if isinstance(x, Constant) else self.names.get(x, str(x))

    def _noted(self, text: str, make: Callable[[], Any]) -> Any:
        count = len(self._depth)
        result = make()
        if result in self._depth:
            name = self.names.get(result) or self.names.setdefault(result, next(self.fresh))
            self.requests.append(Request(f"{name} = {text}", self._depth[result],
                                         len(self._depth) > count))
        return result


def scopes(element: Callable, *shape: int) -> Film:
    """The operations that an element asks for, one by one, and the loop that each is written in.

    Args:
      element: a function of a builder, of the vectors `x`, `y`, …, one for each axis, and of an
        index for each; it returns the element there.
      shape: of the result.

    >>> scopes(lambda b, x, y, i, j: b.mul(b.exp(b.load(x, [i])), b.load(y, [j])), 10, 20)
    1  a = x[i] is written in the loop over i, as far out as its operands allow.
    2  b = exp(a) is written in the loop over i, as far out as its operands allow.
    3  c = y[j] is written in the loop over j, as far out as its operands allow.
    4  d = b * c is written in the loop over j, as far out as its operands allow.
    5  The element is stored in the innermost loop.
    """
    b, indices = Recorder(), list[Any]()
    arrays = [Buffer(name, np.dtype(np.float32), (n,), "input")
              for name, n in zip(ARRAYS, shape, strict=False)]
    result = Buffer("out", np.dtype(np.float32), shape, "output")
    _in_loops(b, shape, indices, lambda: b.store(result, indices, element(b, *arrays, *indices)))
    lines = [[], *([f"for {i} in range({n}):"] for i, n in zip(INDICES, shape, strict=False))]
    for request in b.requests:
        if request.is_new:
            lines[request.depth].append(request.line)
    element_name = b.requests[-1].line.partition(" = ")[0]
    lines[-1].append(f"out[{', '.join(INDICES[:len(shape)])}] = {element_name}")
    return _film(b.requests, lines)


def _in_loops(b: Recorder, shape: Sequence[int], indices: list[Any], body: Callable[[], None]
              ) -> None:
    """Run `body` in a loop for each axis; their indices are appended to `indices`."""
    if not shape:
        return body()
    with b.loop(shape[0]) as i:
        indices.append(i)
        b.names[i] = INDICES[len(indices) - 1]
        _in_loops(b, shape[1:], indices, body)


def _film(requests: Sequence[Request], lines: Sequence[Sequence[str]]) -> Film:
    """A frame for each request; the last line of the innermost loop is there in the last frame."""
    loops = len(lines) - 1
    width = 24 + 2 * INDENT * loops + LETTER * SIZE * max(len(x) for some in lines for x in some)
    height = ROW * sum(map(len, lines)) + 12 * loops + 12

    def drawn(written: set[str], lit: str) -> list[str]:
        parts, y = [], 6.0
        for depth, some in enumerate(lines):
            left = 4 + INDENT * depth
            if depth:
                parts.append(box(left, y, width - 2 * left, height - 2 - 6 * depth - y, INK,
                                 fill_opacity=0.04))
            for line in some:
                if line.startswith("for "):
                    parts.append(words(left + 10, y + 18, line, size=SIZE, code=True,
                                       anchor="start"))
                elif line in written:
                    parts += [box(left + 8, y, LETTER * SIZE * len(line) + 16, ROW - 5, BLUE,
                                  lit=line == lit, round=3),
                              words(left + 16, y + 16, line, size=SIZE, code=True, anchor="start")]
                y += ROW
            y += 6
        return parts

    frames, written = [], set[str]()
    for request in requests:
        written.add(request.line)
        frames.append(Frame(_said(request), drawn(written, request.line)))
    store = lines[-1][-1]
    last = Frame("The element is stored in the innermost loop.", drawn({*written, store}, store))
    return Film((width, height), {(): [*frames, last]})


def _said(request: Request) -> str:
    name, _, text = request.line.partition(" = ")
    if not request.is_new:
        return f"`{text}` has been written: it is `{name}`."
    where = (f"in the loop over `{INDICES[request.depth - 1]}`" if request.depth
             else "before all loops")
    return f"`{request.line}` is written {where}, as far out as its operands allow."
