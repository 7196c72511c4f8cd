"""The stages of a function up to machine code, side by side; corresponding lines are highlighted.

Builds on `provenance`.  Chapters 00 and 24.  JAX has no counterpart.
"""

import html
import itertools
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from minijax.transforms.jit import jit
from minijax.notebook import pictures, provenance
from minijax.notebook.provenance import NONE, Numbers, Piece
from minijax.notebook.show import Shown

STAGES = {"lines": "your lines", "jaxpr": "the program", "simplified": "simplified",
          "source": "loops", "llvm": "LLVM", "asm": "machine code"}


def explain(fun: Callable, *args: Any, stages: str = " ".join(STAGES), **kwargs: Any) -> Shown:
    """The stages of a function on its way to machine code, side by side.

    The equations of the program are numbered.  As text, each line of a stage has the numbers of
    those that it comes from before it; in a notebook, what you point at lights up in all stages.

    Args:
      fun: the function, followed by arguments for it.
      stages: which of ``"lines jaxpr simplified source llvm asm"``.

    >>> explain(lambda x: x * 2.0 + 1.0, 1.0, stages="jaxpr source")
    ── jaxpr: the program ──
       { lambda ; a:f32[]. let
    1      b:f32[] = mul a 2.0:f32[]
    2      c:f32[] = add b 1.0:f32[]
         in (c,) }
    <BLANKLINE>
    ── source: loops ──
        def _lambda_(a, c):
            # a: float32[]
            # c: float32[], the result
    1–2     # ...
    1–2     c[()] = a[()] * 2.0 + 1.0
    <BLANKLINE>
    ── a call ──
    bytes accessed                8
    flops                         2
    bytes of arguments            4
    bytes of results              4
    bytes in between              0
    """
    traced = (fun if hasattr(fun, "trace") else jit(fun)).trace(*args, **kwargs)
    of = provenance.Provenance(traced.program, traced.fun_name)
    shown = of.stages(stages.split())
    return Shown(_plain(shown, of.counts), _html(shown, of.counts))


# ---- as text


def _plain(stages: dict[str, list[Piece]], counts: dict[str, int]) -> str:
    texts = [f"── {stage}: {STAGES[stage]} ──\n{_numbered_lines(pieces)}"
             for stage, pieces in stages.items()]
    table = "\n".join(f"{name:20} {count:>10,}" for name, count in counts.items())
    return "\n\n".join([*texts, f"── a call ──\n{table}"])


def _numbered_lines(pieces: Sequence[Piece]) -> str:
    """The lines of a stage behind the numbers of the equations that they come from."""
    lines: list[tuple[str, Numbers]] = [("", NONE)]
    for piece in pieces:
        for k, text in enumerate(piece.text.split("\n")):
            if k:
                lines.append(("", NONE))
            lines[-1] = lines[-1][0] + text, lines[-1][1] | (piece.equations if text else NONE)
    marks = [_ranges(numbers) for _, numbers in lines]
    width = max(map(len, marks))
    return "\n".join(f"{mark:{width}} {text}".rstrip() for mark, (text, _)
                     in zip(marks, lines, strict=True)).rstrip()


def _ranges(numbers: Numbers) -> str:
    """Numbers in few letters.

    >>> _ranges(frozenset([1, 2, 3, 4, 7]))
    '1–4,7'
    """
    runs = itertools.groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0])
    ends = [[number for _, number in run] for _, run in runs]
    text = ",".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in ends)
    return text if len(text) < 12 else text[:10] + "…"


# ---- in a notebook


def _html(stages: dict[str, list[Piece]], counts: dict[str, int]) -> str:
    """Panes, a table, and what the script has to know: of each mark the equations and statements
    that it stands for.  A part of a pane that comes from any has the number of its mark.
    """
    marks: dict[tuple[Numbers, Numbers], int] = {}
    later = stages.get("simplified", stages.get("jaxpr", ()))
    kept = NONE.union(*(piece.equations for piece in later))
    panes = []
    for stage, pieces in stages.items():
        lines = itertools.accumulate(("\n" in piece.text for piece in pieces), initial=0)
        parts = []
        for (mark, _), group in itertools.groupby(
                zip(pieces, lines, strict=False), lambda pair: (pair[0][1:3], pair[1])):
            text = "".join(_coloured(piece) for piece, _ in group)
            if any(mark):
                number = marks.setdefault(mark, len(marks))
                gone = " class=gone" * (stage == "jaxpr" and not mark[0] & kept)
                around = f'<span data-mark="{number}"{gone}>\\g<0></span>'
                text = re.sub(r"\S(.*\S)?", around, text)
            parts.append(text)
        panes.append(f'<div><b>{STAGES[stage]}</b><div class="pane" role="group" tabindex="0" '
                     f'aria-label="{STAGES[stage]}" data-lm-suppress-shortcuts="true">'
                     f'<pre>{"".join(parts)}</pre></div></div>')
    rows = "".join(f"<tr><th>{name}</th><td>{count:,}</td></tr>" for name, count in counts.items())
    facts = json.dumps([[sorted(x) for x in mark] for mark in marks], separators=(",", ":"))
    return (f'<figure class="explain" style="margin:1em 0"><div>{"".join(panes)}</div>'
            f"<figcaption>{HINT}</figcaption><table>{rows}</table>"
            f'<script type="application/json">{facts}</script>'
            f"<style>{STYLE}</style><script>{SCRIPT}</script></figure>")


def _coloured(piece: Piece) -> str:
    text, colour = html.escape(piece.text, quote=False), pictures.COLOURS.get(piece.style)
    return f'<span style="color:{colour}">{text}</span>' if colour else text


HINT = ("Point at a line, or step with the arrow keys: what comes from the same equations lights. "
        "What is struck out is gone in the simplified program.")

STYLE = """
.explain > div { display: flex; flex-wrap: wrap; gap: .6em 1.2em }
.explain > div > div { flex: 1 1 20em; min-width: min(20em, 100%) }
.explain .pane { max-height: 17em; overflow: auto; padding: .3em; font-size: .8em;
  border: 1px solid #8888; border-radius: .3em }
.explain pre { width: max-content; min-width: 100%; overflow: visible; margin: 0; padding: 0;
  border: 0; font-size: inherit; line-height: 1.4; text-align: left; white-space: pre;
  color: inherit; background: none }
.explain [data-mark] { cursor: pointer }
.explain .lit { background: #ffb30059 }
.explain .at { outline: 1px solid currentColor }
.explain .lit * { color: inherit !important }
.explain .gone, .explain .gone * { text-decoration: line-through }
figure.explain > figcaption { min-height: 3.2em; margin: .4em 0; padding: 0; text-align: left;
  color: inherit; font: inherit }
.explain table { font-size: .9em; margin: 0 }
.explain :is(th, td) { padding: .1em .8em .1em 0; text-align: left; font-weight: normal }
.explain td { text-align: right }
"""

SCRIPT = """
(() => {
  const figure = document.currentScript.parentElement;
  const marks = JSON.parse(figure.querySelector("script").textContent)
    .map(numbers => numbers.map(all => new Set(all)));
  const said = figure.querySelector("figcaption"), hint = said.textContent;
  const panes = [...figure.querySelectorAll(".pane")];
  const parts = panes.map(pane => [...pane.querySelectorAll("[data-mark]")]);
  const meet = (some, others) => [...some].some(one => others.has(one));

  function point(at) {  // light what comes from the same statements, or else the same equations
    const mark = at && marks[at.dataset.mark];
    const lit = marks.map(other => mark && (mark[1].size && other[1].size
      ? meet(mark[1], other[1]) : meet(mark[0], other[0])));
    const counts = panes.map((pane, k) => {
      parts[k].forEach(part => {
        part.classList.toggle("lit", lit[part.dataset.mark]);
        part.classList.toggle("at", part === at);
      });
      const all = pane.querySelectorAll(".lit");
      if (all.length) reveal(pane, pane.contains(at) ? at : all[0]);
      return `${all.length} in ${pane.ariaLabel}`;
    });
    said.textContent = at ? `${at.textContent.trim()} — ${counts.join(", ")}` : hint;
  }
  function reveal(pane, part) {  // move the pane, not the page
    const inside = pane.getBoundingClientRect(), box = part.getBoundingClientRect();
    if (box.top < inside.top || box.bottom > inside.bottom)
      pane.scrollTop += box.top - inside.top - pane.clientHeight / 3;
  }
  figure.onpointerover = event => {
    const part = event.target.closest("[data-mark]");
    if (part) point(part);
  };
  panes.forEach((pane, k) => pane.onkeydown = event => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const aside = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const list = parts[k], at = list.findIndex(part => part.classList.contains("at"));
    if (step) point(list[at < 0 ? Math.max(0, list.findIndex(part =>
      part.classList.contains("lit"))) : Math.max(0, Math.min(at + step, list.length - 1))]);
    else if (aside) panes[k + aside]?.focus();
    else if (event.key === "Escape") point(null);
    else return;
    event.preventDefault();
  });
  said.ariaLive = "polite";
})();
"""
