"""Print the chapters of the built book, and the slides where they are, as PDF, by a Chromium.

    python book/pdf.py          in build/course/pdf, from book/_build/html and build/course/slides

All chapters together are `minijax.pdf` there, with an outline.
"""

from __future__ import annotations

import base64
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from build import ROOT, SITE, chapters
from check import BROWSERS, browser, served

COURSE = ROOT / "build" / "course"


def pages() -> Iterator[tuple[Path, str]]:
    """Folders that are served, and the places of the pages in them."""
    for chapter in chapters():
        yield SITE, f"chapters/{chapter.stem}.html"
    for path in sorted((COURSE / "slides").glob("*.html")):
        yield path.parent, path.name


def joined(chapters: Sequence[tuple[str, Path]], whole: Path) -> None:
    """Write one file with the pages of all chapters; its outline leads to each by its title."""
    from pypdf import PdfWriter
    with PdfWriter() as writer:
        for title, path in chapters:
            writer.append(path, outline_item=title)
        writer.write(whole)


def title(chapter: Path) -> str:
    """A chapter's heading, with its number.

    >>> title(next(path for path in chapters() if path.stem.startswith("22_")))
    '22 Simplifying'
    """
    heading = re.search(r"^# (.+)$", chapter.with_suffix(".md").read_text(encoding="utf-8"), re.M)
    assert heading, chapter
    return f"{chapter.stem[:2]} {heading[1]}"


def main() -> int:
    """Print all pages that are there; 0 if there is a browser and a page."""
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        print("A PDF needs a Chromium on the PATH, which prints the pages")
        return 2
    there = [(folder, place) for folder, place in pages() if (folder / place).is_file()]
    if not there:
        print("There is nothing to print: make book, or make slides, comes first")
        return 2
    (COURSE / "pdf").mkdir(parents=True, exist_ok=True)
    with browser(executable) as tab:
        for folder, place in there:
            with served(folder) as address:
                tab.open(f"{address}/{place}")
                slide = folder != SITE
                printed = tab.ask("Page.printToPDF", landscape=slide, printBackground=True)
                (COURSE / "pdf" / Path(place).with_suffix(".pdf").name).write_bytes(
                    base64.b64decode(printed["data"]))
    printed_chapters = [(title(chapter), COURSE / "pdf" / f"{chapter.stem}.pdf")
                        for chapter in chapters()]
    joined([(name, path) for name, path in printed_chapters if path.is_file()],
           COURSE / "pdf" / "minijax.pdf")
    print(f"{len(there)} files in {COURSE / 'pdf'}, and all chapters in minijax.pdf")
    return 0


if __name__ == "__main__":
    sys.exit(main())
