"""A film: drawings in a row, each with a caption, that a reader steps through in a cell.

Python computes every drawing; a small script shows one at a time.  Without the script the page
shows one of them as a still picture; as plain text a film is its captions.
Builds on `show`.  The widgets of the course are films.  JAX has no counterpart.
"""

import base64
import html
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from minijax.notebook.errors import with_code


class Frame(NamedTuple):
    """One drawing: what stands below it, and its parts, from the back to the front.

    A part is a piece of SVG; frames that share one store it once.  With `data-place="3"` it leads
    to frame 3 where it is pressed; with `data-choice="3"`, to option 3 of a choice, each in turn.
    """

    caption: str  # `words` in backticks are code
    parts: Sequence[str]


def plain(caption: str) -> str:
    return caption.replace("`", "")


@dataclass(frozen=True, repr=False)
class Film:
    """Frames in a row; or a row for each combination of the options of some choices."""

    size: tuple[float, float]
    rows: Mapping[tuple[str, ...], Sequence[Frame]]
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    chosen: tuple[str, ...] = ()
    opens: int = 0  # the frame that is shown first
    still: int = -1  # the one that stands where no script runs

    @property
    def frames(self) -> Sequence[Frame]:
        """The row that is shown first."""
        return self.rows[self.chosen]

    def __repr__(self) -> str:
        said = [f"{name}: {option}" for name, option in zip(self.choices, self.chosen, strict=True)]
        width = len(str(len(self.frames)))
        return "\n".join(said + [f"{k:{width}}  {plain(frame.caption)}"
                                 for k, frame in enumerate(self.frames, 1)])

    def _repr_html_(self) -> str:
        still = self.frames[self.still]
        data = base64.b64encode(self.drawing(still).encode()).decode()
        facts = json.dumps(self._facts(), ensure_ascii=False, separators=(",", ":"))
        facts = facts.replace("</", r"<\/")  # nothing in it ends the script that it stands in
        return (
            '<figure class="film" style="margin:1em 0">'
            f'<div><img alt="{html.escape(plain(still.caption), quote=True)}" '
            f'style="max-width:100%;background:#fff" src="data:image/svg+xml;base64,{data}"></div>'
            f"<figcaption>{with_code(still.caption)}</figcaption>"
            f'<script type="application/json">{facts}</script>'
            f"<style>{STYLE}</style><script>{SCRIPT}</script></figure>"
        )

    def drawing(self, frame: Frame) -> str:
        """A frame as a picture of its own."""
        return self._head + "".join(frame.parts) + "</svg>"

    @property
    def _head(self) -> str:
        width, height = self.size
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
                f'width="{width:g}" height="{height:g}" '
                f'style="max-width:max(100%,{width * 0.8:g}px);height:auto" '
                'font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="15">')

    def _facts(self) -> dict[str, Any]:
        """What the script has to know.  A frame is the numbers of its caption and its parts."""
        numbers: dict[str, int] = {}
        rows = [[[numbers.setdefault(piece, len(numbers)) for piece in (with_code(words), *parts)]
                 for words, parts in self.rows[options]]
                for options in itertools.product(*self.choices.values())]
        return {"head": self._head, "pieces": list(numbers), "rows": rows, "opens": self.opens,
                "choices": list(self.choices.items()),
                "chosen": [list(options).index(option) for options, option
                           in zip(self.choices.values(), self.chosen, strict=True)]}


# Letters and lines have the colour of the page's own letters, the rest middle tones that can be
# seen through: so a film fits a light and a dark page, and need not know which it stands on.
STYLE = """
.film > :first-child { overflow-x: auto; user-select: none; -webkit-user-select: none }
.film [data-place], .film [data-choice] { cursor: pointer }
.film [role=group] { display: flex; flex-wrap: wrap; gap: .5em; align-items: center;
  margin: .4em 0 }
.film :is(button, select) { font: inherit; color: inherit; background: none; padding: .1em .7em;
  border: 1px solid currentColor; border-radius: .3em; cursor: pointer }
.film option { color: #000; background: #fff }
.film [aria-disabled=true] { opacity: .35 }
.film input { flex: 1 1 6em; max-width: 14em; accent-color: #3c7fc4 }
figure.film > figcaption { min-height: 3.2em; max-width: 40em; margin: 0; padding: 0;
  text-align: left; color: inherit; font: inherit }
"""

SCRIPT = """
(() => {
  const figure = document.currentScript.parentElement;
  const film = JSON.parse(figure.querySelector("script").textContent);
  const picture = figure.firstElementChild, caption = figure.querySelector("figcaption");
  const controls = figure.insertBefore(document.createElement("div"), caption);
  const add = (tag, facts, where = controls) => {
    const element = Object.assign(document.createElement(tag), facts);
    element.dataset.lmSuppressShortcuts = "true";  // its keys are its own in JupyterLab, too
    return where.appendChild(element);
  };
  const chosen = film.chosen;
  let place = film.opens, timer = 0, turn = 0, pressed = false;

  function show(to) {  // the frame with this number, or the nearest there is
    const row = film.rows[chosen.reduce((sum, c, k) => sum * film.choices[k][1].length + c, 0)];
    const last = row.length - 1;
    place = Math.max(0, Math.min(to, last));
    const [words, ...parts] = row[place].map(k => film.pieces[k]);
    picture.innerHTML = film.head + parts.join("") + "</svg>";
    caption.innerHTML = words;
    picture.firstChild.setAttribute("role", "img");
    picture.firstChild.setAttribute("aria-label", caption.textContent);
    slider.max = last;
    slider.value = place;
    slider.ariaValueText = count.textContent = `${place + 1} / ${last + 1}`;
    back.ariaDisabled = place === 0;
    forth.ariaDisabled = place === last;
    selects.forEach((select, k) => { select.selectedIndex = chosen[k]; });
    if (place === last) stop();
    return row.length;
  }
  function stop() {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play";
  }
  function run() {  // from the beginning to the end
    stop();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return show(Infinity);
    const length = show(0);
    if (length === 1) return;
    play.textContent = "Stop";
    timer = setInterval(() => show(place + 1), Math.min(900, 9000 / length));
  }
  function choose(k, option) {
    if (chosen[k] === option) return;
    chosen[k] = option;
    run();
  }
  function reach(event) {  // the pointer, pressed, leads where the part below it says
    const part = document.elementFromPoint(event.clientX, event.clientY)
      ?.closest("[data-place], [data-choice]");
    if (!part || !picture.contains(part)) return;
    pressed = true;
    if (part.dataset.place) { stop(); show(+part.dataset.place); }
    if (part.dataset.choice) choose(turn % chosen.length, +part.dataset.choice);
  }

  const selects = film.choices.map(([name, options], k) => {
    const label = add("label", { textContent: name + " " });
    const select = add("select", { onchange: () => choose(k, select.selectedIndex) }, label);
    options.forEach(option => add("option", { textContent: option }, select));
    return select;
  });
  const back = add("button", { type: "button", textContent: "←", ariaLabel: "back",
                               onclick: () => { stop(); show(place - 1); } });
  const forth = add("button", { type: "button", textContent: "→", ariaLabel: "forward",
                                onclick: () => { stop(); show(place + 1); } });
  const play = add("button", { type: "button", onclick: () => timer ? stop() : run() });
  const slider = add("input", { type: "range", min: 0, ariaLabel: "step",
                                oninput: () => { stop(); show(+slider.value); } });
  const count = add("span", {});
  picture.onpointerdown = event => { picture.setPointerCapture(event.pointerId); reach(event); };
  picture.onpointermove = event => { if (event.buttons) reach(event); };
  picture.onpointerup = picture.onpointercancel = () => { turn += pressed; pressed = false; };
  controls.role = "group";
  caption.ariaLive = "polite";
  stop();
  show(place);
})();
"""
