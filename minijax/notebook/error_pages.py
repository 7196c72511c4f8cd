"""The page of an error class, read from its docstring: what happened, an example, the fix.

Builds on `errors`.  Short errors use its cures, the gallery its programs.
JAX has no counterpart.
"""

import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """A part of a page: prose, and the program that follows it, in turns."""

    pieces: tuple[tuple[str, str], ...]

    def sentence(self, piece: int = 0) -> str:
        """The first sentence of a piece's prose.

        >>> Part((("Split the key.  Then draw::", "split()"),)).sentence()
        'Split the key.'
        """
        prose = " ".join(plain(self.pieces[piece][0]).split())
        return re.split(r"(?<=[.:])\s", prose)[0].rstrip(" :.") + "." if prose else ""

    @property
    def programs(self) -> tuple[str, ...]:
        """Its programs, in their order."""
        return tuple(program for _, program in self.pieces if program)


def plain(text: str) -> str:
    """Prose of a docstring without the marks of reStructuredText.

    >>> plain("as for :class:`KeyReuseError`, *use* ``jnp.where``::")
    'as for `KeyReuseError`, use `jnp.where`:'
    """
    text = re.sub(r":\w+:`(\w+)`", r"`\1`", text).replace("``", "`").replace("::", ":")
    return re.sub(r"(?<![\w*`])\*(\w[^*]*)\*", r"\1", text)


def parts_of(kind: Any) -> dict[str, Part]:
    """The parts of a class's page, by their titles; none where the docstring is no page.

    >>> from minijax.errors import KeyReuseError
    >>> list(parts_of(KeyReuseError))
    ['What happened', 'The smallest example', 'The fix']
    """
    text = inspect.cleandoc(vars(kind).get("__doc__") or "")
    titled = re.split(r"^\*\*([^*\n]+)\.\*\*", text, flags=re.MULTILINE)[1:]
    return {title: Part(tuple(_pieces(body.strip(" "))))
            for title, body in zip(titled[::2], titled[1::2], strict=True)}


def _pieces(body: str) -> Iterator[tuple[str, str]]:
    prose: list[str] = []
    program: list[str] = []
    for line in body.strip("\n").splitlines():
        if line.startswith("    ") or (program and not line):
            program.append(line)
            continue
        if program:
            yield "\n".join(prose).strip(), _code(program)
            prose, program = [], []
        prose.append(line)
    yield "\n".join(prose).strip(), _code(program)


def _code(lines: list[str]) -> str:
    return textwrap.dedent("\n".join(lines)).strip() + "\n" if lines else ""
