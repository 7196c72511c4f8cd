"""Look at every page of the built book in a browser without a window.

    python book/check.py                          what is wrong; nothing, if all is well
    python book/check.py --look FOLDER PAGE…      pictures of pages, wide and narrow

Each page must load from this machine alone, without an error on the console, with every link and
picture there, and fit a phone; the search must find, solutions unfold, formulas have a size, the
dark theme be dark; each film is stepped through and played, by mouse and by keys alone, and what
`explain` shows is pointed at.  The browser is any Chromium, spoken to over its own protocol; where
there is none, the check says so and passes.
"""

from __future__ import annotations

import argparse
import base64
import functools
import http.server
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlparse

import keyboard

SITE = Path(__file__).parent / "_build" / "html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
            "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
WIDE, NARROW = 1280, 390

# ── The browser ──────────────────────────────────────────────────────────────────────────────


class Browser:
    """One tab of a Chromium, over its DevTools protocol."""

    def __init__(self, socket: Any) -> None:
        self.socket, self.sent = socket, 0
        self.events: list[dict] = []
        self.session = ""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict:
        """Send a command and return its answer; events that come meanwhile are kept."""
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while (answer := json.loads(self.socket.recv())).get("id") != self.sent:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    def run(self, script: str) -> Any:
        """The value of a script in the page; a promise is awaited."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True,
                          awaitPromise=True)
        return answer["result"].get("value")

    def open(self, url: str) -> list[str]:
        """Load a page; returns what went wrong on the way."""
        self.events.clear()
        self.ask("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(json.loads(self.socket.recv()))
        self.run("document.fonts.ready.then(() => 0)")
        return [text for event in self.events if (text := complaint(event, url))]

    def resize(self, width: int, height: int = 900) -> None:
        """Give the window another size."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=width < 600)

    def wait_for(self, script: str, seconds: float = 10) -> Any:
        """The first true value of a script; None when the time is over."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.run(script):
                return value
            time.sleep(0.1)
        return None


def complaint(event: dict, page: str) -> str:
    """What an event of the browser says against a page; empty if nothing."""
    method, params = event.get("method"), event.get("params", {})
    here = urlparse(page).netloc
    if method == "Runtime.exceptionThrown":
        return "exception: " + str(params["exceptionDetails"].get("text"))
    if method == "Runtime.consoleAPICalled" and params["type"] == "error":
        return "console: " + " ".join(str(a.get("value", "")) for a in params["args"])
    if method == "Log.entryAdded" and params["entry"]["level"] == "error":
        return "console: " + params["entry"]["text"]
    if method == "Network.requestWillBeSent":
        url = urlparse(params["request"]["url"])
        if url.scheme.startswith("http") and url.netloc != here:
            return "asks the network for " + url.geturl()
    return ""


def chromium() -> str | None:
    """Where a Chromium is, if there is one."""
    return next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), *BROWSERS))), None)


@contextmanager
def browser(executable: str) -> Iterator[Browser]:
    """A Chromium that lives as long as the block."""
    from websocket import create_connection  # comes with Jupyter

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [executable, "--headless=new", "--remote-debugging-port=0", "--disable-gpu",
             "--no-first-run", "--hide-scrollbars", f"--user-data-dir={profile}",
             *(["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else [])],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            address = next(found[1] for line in process.stderr
                           if (found := re.search(r"listening on (ws://\S+)", line)))
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield Browser(create_connection(address, suppress_origin=True, timeout=60))
        finally:
            process.terminate()
            process.wait(20)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder's pages while the block runs."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


# ── Each page ────────────────────────────────────────────────────────────────────────────────

FACTS = """({
  links: [...document.querySelectorAll('a[href]')].map(a => a.href),
  ids: [...document.querySelectorAll('[id], a[name]')].map(e => e.id || e.name),
  broken: [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.currentSrc),
  flat: [...document.querySelectorAll('math')].filter(m => !m.getBoundingClientRect().height
        && m.checkVisibility()).map(m => m.textContent),
  formulas: document.querySelectorAll('math').length,
  unread: document.querySelectorAll('merror, .system-message, .problematic').length,
  magic: [...document.querySelectorAll('.cell_input pre')]
        .filter(p => /^%%(live|mini)/.test(p.textContent)).length,
  folded: document.querySelectorAll('.bd-article details').length,
  films: document.querySelectorAll('figure.film').length,
  explained: document.querySelectorAll('figure.explain').length,
})"""


# What sticks out of a phone and cannot be scrolled to.
CUT_OFF = """[...document.querySelectorAll(
    '.bd-article :is(h1, h2, h3, p, li, dt, img, svg, table, pre)')].filter(e => {
  if (e.getBoundingClientRect().right < innerWidth + 2 || !e.checkVisibility()) return false;
  for (let p = e; p !== document.body; p = p.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(p).overflowX)) return false;
  return true;
}).map(e => e.tagName + ' ' + e.textContent.slice(0, 40))"""


# Drawings that a phone shrinks until nobody can read their letters.
SHRUNK = """[...document.images].filter(i => i.currentSrc.endsWith('.svg') && i.checkVisibility()
  && i.getBoundingClientRect().width < 0.7 * i.naturalWidth).map(i => i.currentSrc)"""


def check_page(tab: Browser, address: str, page: str) -> tuple[list[str], dict]:
    """What is wrong with a page by itself, and what was found on it."""
    tab.resize(WIDE)
    wrong = tab.open(f"{address}/{page}")
    tab.run("document.querySelectorAll('img[loading=lazy]').forEach(i => i.loading = 'eager')")
    facts = tab.run(FACTS)
    wrong += [f"no picture at {source[:80]}" for source in facts["broken"]]
    wrong += [f"a formula without a size: {text}" for text in facts["flat"]]
    wrong += ["a passage that was not understood"] * bool(facts["unread"])
    wrong += ["a live cell that shows its magic line"] * bool(facts["magic"])
    tab.resize(NARROW)
    overflow = tab.run("document.documentElement.scrollWidth - window.innerWidth")
    wrong += [f"{overflow} pixels wider than a phone"] * (overflow > 1)
    wrong += [f"cut off on a phone: {what!r}" for what in tab.run(CUT_OFF)]
    wrong += [f"too small on a phone: {source}" for source in tab.run(SHRUNK)]
    if facts["folded"]:
        shut = tab.run("[...document.querySelectorAll('.bd-article details')].filter(d => {"
                       "const was = d.open; d.querySelector('summary').click();"
                       "return d.open === was }).length")
        wrong += [f"{shut} solutions do not unfold"] * bool(shut)
    for kind, count, by_mouse, by_keys in (
            ("film", facts["films"], _without_answer, keyboard.film),
            ("explain", facts["explained"], _unlit, keyboard.stages)):
        for number in range(count):
            wrong += check_figure(tab, kind, number, by_mouse)
            figure = f"document.querySelectorAll('figure.{kind}')[{number}]"
            wrong += [f"{kind} {number + 1}, by keys: {what}" for what in by_keys(tab, figure)]
    return wrong, facts


# ── Films ────────────────────────────────────────────────────────────────────────────────────

# What a film shows, and how well its letters stand out from the page: 1 not at all, 21 best.
SEEN = """(film => {
  const light = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(c => c / 255)
    .map(c => c <= 0.04 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0.05);
  const page = light(getComputedStyle(document.body).backgroundColor);
  const contrasts = [...film.querySelectorAll('svg text')]
    .map(t => light(getComputedStyle(t).fill)).map(c => Math.max(c, page) / Math.min(c, page));
  return { drawing: film.querySelector('svg')?.innerHTML, contrast: Math.min(...contrasts, 21),
           place: film.querySelector('[role=group] span')?.textContent,
           words: film.querySelector('figcaption').textContent };
})"""

MIDDLE = """(e => {
  e.scrollIntoView({ block: 'center', behavior: 'instant' });
  const box = e.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
})"""


def press(tab: Browser, element: str, to: str = "") -> None:
    """Press the mouse in the middle of what a script finds, and let it go there or elsewhere."""
    places = [("mousePressed", element), ("mouseMoved", to or element),
              ("mouseReleased", to or element)]
    for kind, where in places:
        x, y = tab.run(f"{MIDDLE}({where})")
        tab.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1,
                clickCount=1)


def _press_in(tab: Browser, element: str, key: str) -> None:
    """Press a key while an element has the focus."""
    tab.run(f"{element}.focus()")
    keyboard.press_key(tab, key)


def check_figure(tab: Browser, kind: str, number: int,
                 complaints: Callable[[Browser, str], Iterator[str]]) -> list[str]:
    """What is wrong with a figure of the page, wide and narrow, light and dark."""
    tab.events.clear()
    wrong = []
    for width, theme in itertools.product((WIDE, NARROW), ("light", "dark")):
        tab.resize(width)
        tab.run(f"document.documentElement.dataset.theme = '{theme}'")
        found = complaints(tab, f"document.querySelectorAll('figure.{kind}')[{number}]")
        wrong += [f"{kind} {number + 1}, {width} wide, {theme}: {what}" for what in found]
    tab.run("document.documentElement.dataset.theme = 'light'")
    page = tab.run("location.href")
    return wrong + [text for event in tab.events if (text := complaint(event, page))]


def _unlit(tab: Browser, figure: str) -> Iterator[str]:
    """What in the stages of a function does not light as it should."""
    panes = f"[...{figure}.querySelectorAll('pre')]"
    for pane in range(tab.run(f"{panes}.length")):
        press(tab, f"[...{panes}[{pane}].querySelectorAll('[data-mark]:not(.gone)')].at(-1)")
        lit = tab.run(f"{panes}.map(pane => pane.querySelectorAll('.lit').length)")
        if 0 in lit:
            yield f"pointing at the end of pane {pane + 1} lights {lit} in the panes"
    press(tab, f"{panes}[1].querySelector('[data-mark]')")
    at = f"{panes}[1].querySelector('.at')?.textContent"
    first = tab.run(at)
    _press_in(tab, f"{figure}.querySelector('.pane')", "ArrowRight")
    _press_in(tab, "document.activeElement", "ArrowDown")
    if tab.run(at) in (None, first):
        yield "the arrow keys do not lead from line to line"


def _without_answer(tab: Browser, film: str) -> Iterator[str]:
    """What in a film does not do what it is there for."""
    part = f"{film}.querySelector"
    slider = f"{part}('input')"
    seen = tab.run(f"{SEEN}({film})")
    if not seen.get("drawing") or not seen.get("place"):
        yield "its script did not run"
        return
    if seen["contrast"] < 3:
        yield f"its letters are hard to read: contrast {seen['contrast']:.1f}"
    _press_in(tab, slider, "End")
    end = tab.run(f"{SEEN}({film})")
    for select in range(tab.run(f"{film}.querySelectorAll('select').length")):
        chosen = f"{film}.querySelectorAll('select')[{select}]"
        tab.run(f"{chosen}.selectedIndex = ({chosen}.selectedIndex + 1) % {chosen}.length")
        tab.run(f"{chosen}.dispatchEvent(new Event('change'))")
        _press_in(tab, slider, "End")
        if tab.run(f"{SEEN}({film})") == end:
            yield f"its choice {select + 1} changes nothing"
    _press_in(tab, slider, "Home")
    first = tab.run(f"{SEEN}({film})")
    buttons = {way: functools.partial(press, tab, f"{part}('button[aria-label={way}]')")
               for way in ("forward", "back")}
    keys = {way: functools.partial(_press_in, tab, slider, key)
            for way, key in (("forward", "ArrowRight"), ("back", "ArrowLeft"))}
    for name, ways in (("button", buttons), ("key", keys)):
        ways["forward"]()
        then = tab.run(f"{SEEN}({film})")
        if then["drawing"] == first["drawing"] or then["words"] == first["words"]:
            yield f"the {name} forward does nothing"
        ways["back"]()
        if tab.run(f"{SEEN}({film})") != first:
            yield f"the {name} back does not lead back"
    press(tab, f"{part}('[role=group] > button:not([aria-label])')")
    if not tab.wait_for(f"{SEEN}({film}).place !== {first['place']!r}", 3):
        yield "it does not play"
    buttons["forward"]()
    parts = f"[...{film}.querySelectorAll('svg :is([data-place], [data-choice])')]"
    if tab.run(f"{parts}.length"):
        middle = f"(all => all[all.length >> 1])({parts})"
        drawings = [tab.run(f"{SEEN}({film})")["drawing"]]
        for end in ("", f"{parts}[0]"):
            press(tab, middle, end)
            drawings.append(tab.run(f"{SEEN}({film})")["drawing"])
        changes = zip(("pressing", "dragging"), itertools.pairwise(drawings), strict=True)
        for what, (before, after) in changes:
            if before == after:
                yield f"{what} over its parts does nothing"
    buttons["back"]()  # which ends what a choice has begun to play


def broken_links(address: str, found: dict[str, dict]) -> Iterator[tuple[str, str]]:
    """Each page with a link of its own that leads nowhere in the site."""
    ids = {page: set(facts["ids"]) for page, facts in found.items()}
    for page, facts in found.items():
        for link in sorted(set(facts["links"])):
            url, fragment = urldefrag(link)
            if not url.startswith(address):
                continue
            place = unquote(urlparse(url).path).lstrip("/") or "index.html"
            if not (SITE / place).is_file():
                yield page, f"a link to {place}, which is not there"
            elif fragment and place in ids and unquote(fragment) not in ids[place]:
                yield page, f"a link to {place}#{fragment}, which has no such place"


# ── The book as a whole ──────────────────────────────────────────────────────────────────────

SEARCHES = {
    "cotangent": "chapters/",
    "ConcretizationTypeError": "errors/ConcretizationTypeError.html",
    "value_and_grad": "api/minijax.html",
}


def check_search(tab: Browser, address: str) -> list[str]:
    """The search finds what it should."""
    wrong = []
    for words, wanted in SEARCHES.items():
        tab.open(f"{address}/search.html?q={words}")
        script = ("[...document.querySelectorAll('#search-results a')].map(a => a.href)"
                  f".some(href => href.includes('{wanted}'))")
        if not tab.wait_for(script):
            wrong.append(f"the search for {words!r} does not find {wanted}")
    return wrong


def check_dark(tab: Browser, address: str) -> list[str]:
    """The menu of themes has a light one with dark letters, and the other way round."""
    tab.resize(WIDE)
    tab.open(f"{address}/index.html")
    light = ("(() => {const c = getComputedStyle(document.body);"
             "const sum = s => s.match(/\\d+/g).slice(0, 3).map(Number)"
             ".reduce((a, b) => a + b); return sum(c.backgroundColor) - sum(c.color)})()")
    seen = {}
    for mode in ("light", "dark"):
        tab.run(f"document.querySelector('.theme-change-button[data-mode={mode}]').click()")
        time.sleep(0.5)
        seen[mode] = tab.run(light)
    well = seen["light"] > 200 and seen["dark"] < -200
    return [] if well else [f"the themes are not light and dark: {seen}"]


def check(executable: str) -> int:
    """Check the whole site; the number of complaints."""
    pages = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html")
                   if not {"_static", "live"} & {*path.parts})
    found, wrong, start = {}, [], time.monotonic()
    with served(SITE) as address, browser(executable) as tab:
        for page in pages:
            complaints, found[page] = check_page(tab, address, page)
            wrong += [(page, text) for text in complaints]
        wrong += broken_links(address, found)
        wrong += [("search.html", text) for text in check_search(tab, address)]
        wrong += [("index.html", text) for text in check_dark(tab, address)]
    for page, text in wrong:
        print(f"{page}: {text}")
    links, formulas, folded, films, explained = (
        sum(len(facts[key]) if key == "links" else facts[key] for facts in found.values())
        for key in ("links", "formulas", "folded", "films", "explained"))
    print(f"{len(pages)} pages, {links} links, {formulas} formulas, {folded} folded passages, "
          f"{films + explained} films and stages, {len(SEARCHES)} searches, two themes, in "
          f"{time.monotonic() - start:.0f} s: "
          + (f"{len(wrong)} complaints" if wrong else "nothing wrong"))
    return len(wrong)


def look(executable: str, folder: Path, pages: list[str]) -> None:
    """Save pictures of pages, wide and narrow."""
    folder.mkdir(parents=True, exist_ok=True)
    with served(SITE) as address, browser(executable) as tab:
        for page in pages:
            for width in (WIDE, NARROW):
                tab.resize(width, 1400)
                tab.open(f"{address}/{page}")
                picture = tab.ask("Page.captureScreenshot", format="png")["data"]
                name = f"{page.replace('/', '_').split('.html')[0]}_{width}.png"
                (folder / name).write_bytes(base64.b64decode(picture))


def main() -> int:
    """The command line; see the top of this file."""
    parser = argparse.ArgumentParser(description="Look at every page of the built book.")
    parser.add_argument("--look", type=Path, metavar="FOLDER")
    parser.add_argument("pages", nargs="*")
    options = parser.parse_args()
    executable = chromium()
    if executable is None:
        print("The pages were not looked at: no Chromium was found. Install one, or set CHROMIUM "
              "to where it is.")
        return 0
    if not (SITE / "index.html").exists():
        print("There is no book yet: make book")
        return 2
    if options.look:
        look(executable, options.look, options.pages or ["index.html"])
        return 0
    return min(check(executable), 1)


if __name__ == "__main__":
    sys.exit(main())
