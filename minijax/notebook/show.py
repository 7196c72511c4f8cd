"""Pictures and texts of programs for a cell, and how anything is shown with and without IPython.

Stands on `printing`, `jit`.  Every object here prints as plain text, and is richer in a notebook.
In JAX: nothing; there one prints jaxprs.
"""

from __future__ import annotations

import base64
import html
import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any, TypeVar

from minijax import printing
from minijax.jaxpr import ClosedJaxpr, Jaxpr

T = TypeVar("T")

PRE = "margin:0;padding:.4em 0;line-height:1.4;overflow-x:auto;text-align:left"


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
    if "IPython" not in sys.modules:
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
    return f'<pre style="{PRE}">{html.escape(text)}</pre>'


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
    from minijax.api import make_jaxpr
    program = fun if isinstance(fun, Jaxpr | ClosedJaxpr) else make_jaxpr(fun)(*args)
    text = printing.jaxpr_text(program, width=width, source_info=source_info)
    if graph:
        return Shown(text, picture(printing.to_svg(program), text))
    return Shown(text, printing.to_html(program, width=width, source_info=source_info))


def picture(svg: str, alt: str = "") -> str:
    """An SVG picture as HTML that a notebook shows even before it is trusted."""
    data = base64.b64encode(svg.encode()).decode()
    return (f'<img alt="{html.escape(alt, quote=True)}" style="max-width:100%;background:#fff" '
            f'src="data:image/svg+xml;base64,{data}">')


STAGES = {
    "jaxpr": "the program", "simplified": "simplified", "loops": "loops",
    "source": "the loops as Python",
}  # fmt: skip


def explain(fun: Callable, *args: Any, stages: str = " ".join(STAGES), **kwargs: Any) -> Shown:
    """The stages of a function on its way to machine code, side by side.

    Args:
      fun: the function, followed by arguments for it.
      stages: which of ``"jaxpr simplified loops source"``.

    >>> explain(lambda x: x * 2.0, 1.0, stages="jaxpr")
    ── jaxpr: the program ──
    { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
    """
    from minijax.higher_order.jit import jit
    jitted = fun if hasattr(fun, "trace") else jit(fun)
    traced = jitted.trace(*args, **kwargs)
    lowered = traced.lower()
    texts = {stage: lowered.as_text(stage).rstrip() for stage in stages.split()}
    bodies = {stage: printing.to_html(traced.jaxpr) if stage == "jaxpr" else pre(text)
              for stage, text in texts.items()}
    plain = [f"── {stage}: {STAGES[stage]} ──\n{text}" for stage, text in texts.items()]
    boxes = [f'<div style="flex:1 1 20em;min-width:16em;overflow-x:auto"><b>{STAGES[stage]}</b>'
             f"{body}</div>" for stage, body in bodies.items()]
    row = f'<div style="display:flex;flex-wrap:wrap;gap:1.5em">{"".join(boxes)}</div>'
    return Shown("\n\n".join(plain), row)


# ---------------------------------------------------------------- progress


def progress(items: Iterable[T], label: str = "", total: int | None = None) -> Iterator[T]:
    """The items, with a bar that grows; when all are done it says the same on every machine.

    >>> for epoch in progress(range(3), "epochs"):
    ...     pass
    epochs: 3 of 3
    """
    if total is None:
        total = len(items) if isinstance(items, Sized) else None
    bar = _Bar(label, total)
    try:
        for item in items:
            yield item
            bar.advance()
    finally:
        bar.close()


class _Bar:
    def __init__(self, label: str, total: int | None):
        self.label, self.total, self.done = label, total, 0
        self.handle: Any = None
        if notebook_shell() is not None:
            from IPython.display import display
            self.handle = display(self.now(), display_id=True)

    def now(self) -> Shown:
        of = f" of {self.total}" if self.total is not None else ""
        text = f"{self.label}: {self.done}{of}" if self.label else f"{self.done}{of}"
        most = f' max="{self.total}"' if self.total is not None else ""
        value = f' value="{self.done}"' if self.total is not None else ""
        return Shown(text, f"<progress{value}{most}></progress> {html.escape(text)}")

    def advance(self) -> None:
        self.done += 1
        few = self.total is None or self.total <= 100 or self.done * 100 // self.total != (
            self.done - 1) * 100 // self.total
        if self.handle is not None and few:
            self.handle.update(self.now())

    def close(self) -> None:
        if self.handle is None:
            print(self.now())
        else:
            self.handle.update(self.now())
