"""Lay out the source of the book, and have Sphinx make the site of it.

    python book/build.py            the site, in book/_build/html

The chapters come from their `.ipynb` halves with the outputs stored there: nothing is executed,
and nothing is fetched.  The reference comes from the docstrings, through `reference.py`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
import tomllib
from pathlib import Path

BOOK = Path(__file__).parent
ROOT = BOOK.parent
NOTEBOOKS = ROOT / "notebooks"
SOURCE = BOOK / "_build" / "source"
SITE = BOOK / "_build" / "html"

# The chapters that run in a browser: those on machine code do not.
IN_A_BROWSER = [f"{number:02}" for number in (*range(1, 24), 25, 27)]

Files = dict[str, str | bytes]


def chapters() -> list[Path]:
    """The chapters, in reading order."""
    return sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


def layout() -> Files:
    """Every file of the book's source, by its place in it."""
    from reference import pages
    from side_by_side import page

    files: Files = {"index.md": (BOOK / "index.md").read_text(),
                    "mini_beside_the_core.md": page()}
    for chapter in chapters():
        text = with_links_to_modules(chapter.read_text())
        files[f"chapters/{chapter.name}"] = with_buttons(text, buttons(chapter))
    course = (NOTEBOOKS / "README.md").read_text()
    files["chapters/README.md"] = course + _list_of_chapters()
    files["chapters/write_your_own.md"] = (NOTEBOOKS / "write_your_own.md").read_text()
    files["chapters/data/README.md"] = "---\norphan: true\n---\n" + (
        NOTEBOOKS / "data" / "README.md").read_text()
    for picture in sorted((NOTEBOOKS / "pictures").iterdir()):
        files[f"chapters/pictures/{picture.name}"] = picture.read_bytes()
    return files | pages()


def _list_of_chapters() -> str:
    """The chapters as Sphinx's list, under the page of the course; each with its number."""
    entries = "".join(f"{c.stem[:2]} · {_title(c)} <{c.stem}>\n"
                      + "Write your own <write_your_own>\n" * c.stem.startswith("11_")
                      for c in chapters())
    return f"\n```{{toctree}}\n:hidden:\n\n{entries}```\n"


def _title(chapter: Path) -> str:
    """The first heading of a chapter, up to its colon."""
    cells = json.loads(chapter.read_text())["cells"]
    text = next("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return re.search(r"^# +([^:\n]+)", text, re.MULTILINE)[1]  # type: ignore[index]


def with_links_to_modules(notebook: str) -> str:
    """A notebook whose links to files of the package lead to their pages in the appendix."""
    cells = json.loads(notebook)
    for cell in cells["cells"]:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            cell["source"] = re.sub(
                r"\[([^\]]+)\]\(\.\./(minijax/[\w/]+)\.py\)",
                _to_the_appendix, text)
    return json.dumps(cells)


def buttons(chapter: Path, repository: str | None = None, live: bool | None = None) -> str:
    """Links that run a chapter: in the browser, on a site with live chapters, and in Colab.

    Args:
      chapter: its file.
      repository: the address of the project on GitHub; that of pyproject.toml by default.
      live: whether the site has live chapters; by default whether LIVE=1.
    """
    if repository is None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        repository = project.get("urls", {}).get("Repository", "")
    links = []
    live = os.environ.get("LIVE") == "1" if live is None else live
    if live and chapter.stem[:2] in IN_A_BROWSER:
        links.append(f'<a href="../live/lab/index.html?path={chapter.name}">▶ Run in the '
                     "browser</a> (online: NumPy comes from a CDN)")
    if found := re.match(r"https://github\.com/([\w.-]+/[\w-]+)", repository):
        links.append(f'<a href="https://colab.research.google.com/github/{found[1]}/blob/main/'
                     f'notebooks/{chapter.name}">Open in Colab</a> (first <code>%pip install '
                     f"git+{repository}</code>)")
    return " · ".join(links)


def with_buttons(notebook: str, links: str) -> str:
    """A notebook with these links under its title."""
    cells = json.loads(notebook)
    for cell in cells["cells"][:2] if links else []:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and text.startswith("# "):
            title, _, rest = text.partition("\n")
            cell["source"] = f"{title}\n\n{links}\n{rest}"
    return json.dumps(cells)


def _to_the_appendix(link: re.Match[str]) -> str:
    page, text = link[2].replace("/", "."), link[1].strip("`")
    return f'<a href="../inside/{page}.html"><code>{text}</code></a>'


def write(files: Files, folder: Path) -> None:
    """Make a folder hold these files and no others; what is unchanged is left alone."""
    for old in [path for path in folder.rglob("*") if path.is_file()]:
        if old.relative_to(folder).as_posix() not in files:
            old.unlink()
    for place, content in files.items():
        path = folder / place
        data = content.encode() if isinstance(content, str) else content
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def main() -> int:
    """Build; 0 if Sphinx had nothing to warn of."""
    sys.path[:0] = [str(BOOK), str(ROOT)]
    try:
        from sphinx.cmd.build import build_main
    except ModuleNotFoundError:
        print("The book needs Sphinx: pip install -e '.[course,book]', or make book")
        return 2
    start = time.perf_counter()
    write(layout(), SOURCE)
    shutil.rmtree(SITE, ignore_errors=True)
    failed = build_main(["-b", "html", "-c", str(BOOK), "-d", str(BOOK / "_build" / "doctrees"),
                         "-q", "-E", "--keep-going", "-W", str(SOURCE), str(SITE)])
    if not failed:
        count = sum(1 for _ in SITE.rglob("*.html"))
        print(f"{count} pages in {time.perf_counter() - start:.0f} s: "
              f"{(SITE / 'index.html').relative_to(ROOT)}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
