"""Pictures and texts of programs for a cell, and their display with and without IPython.

Builds on `pictures`, `jit`.  Every object here prints as text, and as a picture in a notebook.
JAX prints jaxprs.
"""

import base64
import html
import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any, TypeVar

from minijax.util import jaxpr_text
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.notebook import pictures

T = TypeVar("T")

@dataclass(frozen=True)
class Shown:
    """Something to look at: as plain text, and as HTML where that can be shown."""

    text: str
    html: str = ""

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str | None:
        return self.html or None


def notebook_shell() -> Any:
    """IPython's shell if the program runs in one that shows HTML, else None."""
    if sys.modules.get("IPython") is None:
        return None
    from IPython import get_ipython
    shell = get_ipython()
    return shell if shell is not None and hasattr(shell, "kernel") else None


def show(thing: Shown) -> None:
    """Show a thing in the middle of a cell."""
    if notebook_shell() is None:
        print(thing)
    else:
        from IPython.display import display
        display(thing)


def pre(text: str) -> str:
    """Text as it is, in HTML."""
    return f'<pre style="{pictures.PRE}">{html.escape(text)}</pre>'


# ---------------------------------------------------------------- programs


def show_jaxpr(fun: Callable | Jaxpr | ClosedJaxpr, *args: Any, graph: bool = False,
               source_info: bool = False, width: int = 80) -> Shown:
    """A program in colour, or its graph.

    Args:
      fun: a function, followed by arguments for it; or a jaxpr.
      graph: a picture instead of the text.
      source_info: the user's line behind each equation.

    >>> show_jaxpr(lambda x: x * 2.0, 1.0)
    { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
    """
    from minijax.transforms.api import make_jaxpr
    program = fun if isinstance(fun, Jaxpr | ClosedJaxpr) else make_jaxpr(fun)(*args)
    text = (pictures.text_with_lines(program, width) if source_info
            else jaxpr_text.jaxpr_text(program, width=width))
    if graph:
        return Shown(text, picture(pictures.to_svg(program), text))
    return Shown(text, pictures.to_html(program, width=width, source_info=source_info))


def picture(svg: str, alt: str = "") -> str:
    """An SVG picture as HTML that a notebook shows even before it is trusted."""
    data = base64.b64encode(svg.encode()).decode()
    return (f'<img alt="{html.escape(alt, quote=True)}" style="max-width:100%;background:#fff" '
            f'src="data:image/svg+xml;base64,{data}">')


# ---------------------------------------------------------------- progress

BAR = 20  # letters wide


def progress(items: Iterable[T], label: str = "", total: int | None = None) -> Iterator[T]:
    """The items, with a bar that grows; when all are done it says the same on every machine.

    Args:
      items: what to go through.
      label: what the bar counts, such as ``"epochs"``.
      total: how many there are, if `items` does not know.

    >>> for epoch in progress(range(3), "epochs"):
    ...     pass
    epochs ████████████████████ 3 of 3
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    moving = notebook_shell() is not None or sys.stdout.isatty()
    done = 0
    try:
        for done, item in enumerate(items, 1):
            yield item
            if moving and _is_step(done, total):
                print("\r" + _bar(label, done, total), end="", flush=True)
    finally:
        print(("\r" if moving else "") + _bar(label, done, total))


def _is_step(done: int, total: int | None) -> bool:
    """Whether the bar has grown: a cell gets a few dozen messages, not one for each item."""
    return done % 50 == 1 if not total else done * 50 // total != (done - 1) * 50 // total


def _bar(label: str, done: int, total: int | None) -> str:
    if not total:
        return f"{label} {done}".lstrip()
    full = BAR * min(done, total) // total
    count = f"{done:{len(str(total))}} of {total}"
    return f"{label} {'█' * full}{'░' * (BAR - full)} {count}".lstrip()
