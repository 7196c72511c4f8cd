"""Work the films and stages of a page by keys alone, as a reader without a mouse does.

Tab reaches each control, which shows that it has the focus, and leads out of the figure; keys lead
from step to step to the last and back; where motion is not wanted, nothing plays.  `check` does
this with each figure of the book, `tests/notebook/test_keyboard.py` with some of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from check import Browser

CODES = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37,
         "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
CONTROLS, PANES = "select, button, input", ".pane"

# Which of some elements has the focus, -1 if none; whether a figure has it; whether that is seen.
FOCUS = """((figure, elements) => {
  const at = document.activeElement, style = getComputedStyle(at);
  return [[...figure.querySelectorAll(elements)].indexOf(at), figure.contains(at),
          at.matches(':focus-visible')
          && (style.outlineStyle !== 'none' || style.boxShadow !== 'none')];
})"""
SHOWN = """(film => [film.querySelector('[role=group] span').textContent,
  film.querySelector('figcaption').textContent, film.querySelector('svg').innerHTML,
  film.querySelector('svg').ariaLabel])"""
SETTLED = "new Promise(then => requestAnimationFrame(() => setTimeout(then)))"
LIT = """(figure => [[...document.activeElement.querySelectorAll('[data-mark]')]
  .findIndex(part => part.classList.contains('at')), figure.querySelectorAll('.lit').length,
  figure.querySelector('figcaption').textContent])"""


def press_key(tab: Browser, key: str, times: int = 1, shift: bool = False) -> None:
    """Press and release a key, wherever the focus is."""
    text = {"Enter": "\r", " ": " "}.get(key)
    for kind in ("keyDown", "keyUp") * times:
        typed = {"text": text} if text and kind == "keyDown" else {}
        tab.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key.strip() or "Space",
                windowsVirtualKeyCode=CODES[key], modifiers=8 * shift, **typed)


def walk(tab: Browser, figure: str, elements: str) -> Iterator[str]:
    """Tab through a figure and out of it, and back to its last element."""
    tab.run(f"{figure}.tabIndex = -1, {figure}.focus()")
    stops, inside = [], True
    count = tab.run(f"{figure}.querySelectorAll('{elements}').length")
    while inside and len(stops) < count + 3:
        press_key(tab, "Tab")
        place, inside, seen = tab.run(f"{FOCUS}({figure}, '{elements}')")
        stops += [place] * (place >= 0)
        if inside and not seen:
            yield f"the focus is not seen on its control {place + 1}"
    if inside:
        yield "Tab does not lead out of it"
    if stops != [*range(count)]:
        yield f"Tab reaches its controls {[stop + 1 for stop in stops]} of {count}"
    press_key(tab, "Tab", shift=True)
    if tab.run(f"{FOCUS}({figure}, '{elements}')")[0] != count - 1:
        yield "Shift and Tab do not lead back into it"
    tab.run(f"{figure}.removeAttribute('tabindex')")


def film(tab: Browser, figure: str) -> Iterator[str]:
    """What in a film keys alone do not do."""
    def shown() -> Any:
        return tab.run(f"{SHOWN}({figure})")

    yield from walk(tab, figure, CONTROLS)
    tab.run(f"{figure}.querySelector('input').focus()")
    press_key(tab, "Home")
    frames = [shown()]
    count = int(frames[0][0].split(" / ")[1])
    for _ in range(1, count):
        press_key(tab, "ArrowRight")
        frames.append(shown())
    if count > 1 and len({drawing for _, _, drawing, _ in frames}) == 1:
        yield "no step changes its picture"
    for number, (place, words, _, label) in enumerate(frames, 1):
        if place != f"{number} / {count}":
            yield f"after {number - 1} steps it stands at {place}"
        if number > 1 and words == frames[number - 2][1]:
            yield f"step {number} says what step {number - 1} says"
        if label != words:
            yield f"the picture of step {number} is called {label!r}"
    for key, to in ([("ArrowLeft", frame) for frame in frames[-2::-1]]
                    + [("End", frames[-1]), ("Home", frames[0])]):
        press_key(tab, key)
        if shown() != to:
            yield f"{key} does not lead to {to[0]}"
    yield from _buttons(tab, figure, frames)


def _buttons(tab: Browser, figure: str, frames: list) -> Iterator[str]:
    """The controls before the slider, from the last to the first."""
    shown, playing = f"{SHOWN}({figure})", "document.activeElement.textContent === 'Stop'"
    press_key(tab, "Tab", shift=True)
    if len(frames) > 1:
        press_key(tab, " ")
        if not tab.wait_for(f"{shown}[0] !== {frames[0][0]!r}", 3):
            yield "Space does not play it"
        if tab.run(playing):
            press_key(tab, " ")
        if tab.run(playing):
            yield "Space does not stop it"
    for name, key, way in ("forward", " ", frames), ("back", "Enter", frames[::-1]):
        tab.run(f"{figure}.querySelector('input').focus()")
        press_key(tab, "Home" if name == "forward" else "End")
        press_key(tab, "Tab", times=2 if name == "forward" else 3, shift=True)
        for to in [*way[1:], way[-1]]:  # once more than there are steps
            press_key(tab, key)
            if tab.run(shown) != to:
                yield f"the button {name} does not lead to {to[0]}"
        if tab.run(f"{SETTLED}.then(() => document.activeElement.ariaLabel)") != name:
            yield f"the button {name} loses the focus at the end"
    with _less_motion(tab):
        yield from _unmoved(tab, figure, frames)


@contextmanager
def _less_motion(tab: Browser) -> Iterator[None]:
    """The reader's system is set to less motion."""
    preference = {"name": "prefers-reduced-motion", "value": "reduce"}
    tab.ask("Emulation.setEmulatedMedia", features=[preference])
    try:
        yield
    finally:
        tab.ask("Emulation.setEmulatedMedia", features=[])


def _unmoved(tab: Browser, figure: str, frames: list) -> Iterator[str]:
    """Play and the choices lead to the last step at once; the focus is on the button back."""
    shown = f"{SHOWN}({figure})"
    press_key(tab, "Tab", times=2)
    press_key(tab, " ")
    if tab.run(shown) != frames[-1] or tab.run("document.activeElement.textContent") != "Play":
        yield "it plays for those who want less motion"
    press_key(tab, "Tab", times=2, shift=True)
    for number in range(tab.run(f"{figure}.querySelectorAll('select').length")):
        press_key(tab, "Tab", shift=True)
        before = tab.run(shown)
        first = tab.run("document.activeElement.selectedIndex") == 0
        press_key(tab, "ArrowDown" if first else "ArrowUp")
        if tab.run(shown) == before:
            yield f"the arrow keys do not change choice {number + 1} from the last"


def stages(tab: Browser, figure: str) -> Iterator[str]:
    """What in the stages of a function keys alone do not do."""
    yield from walk(tab, figure, PANES)
    count = tab.run(f"{figure}.querySelectorAll('{PANES}').length")
    press_key(tab, "ArrowLeft", times=count)
    for pane in range(count):
        if (at := tab.run(f"{FOCUS}({figure}, '{PANES}')")[0]) != pane:
            yield f"the arrow keys lead to pane {at + 1}, not {pane + 1}"
        press_key(tab, "Escape")
        if tab.run(f"{LIT}({figure})")[:2] != [-1, 0]:
            yield f"Escape in pane {pane + 1} does not darken it"
        told = []
        for part in range(tab.run("document.activeElement.querySelectorAll('[data-mark]').length")):
            press_key(tab, "ArrowDown")
            told.append(tab.run(f"{LIT}({figure})"))
            if told[-1][0] != part or not told[-1][1]:
                yield f"pane {pane + 1} does not light part {part + 1}, but {told[-1]}"
        for before in told[-2::-1]:
            press_key(tab, "ArrowUp")
            if tab.run(f"{LIT}({figure})") != before:
                yield f"pane {pane + 1} does not go back to {before}"
        press_key(tab, "ArrowRight")
