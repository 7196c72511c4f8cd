"""What the book adds to Sphinx: live cells, wide drawings, links to the source, and MathML.

Browsers draw MathML by themselves (Firefox and Safari always have, Chromium since 2023), so the
site needs no script and no fonts for formulas, and works without a network.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

LIVE = re.compile(r"%%(?:live +([^\n]*\S)|(mini))[^\n]*\n+")
MAGIC = re.compile(r"^\s*(%%?|!)\w", re.MULTILINE)


class LiveCells(SphinxTransform):
    """A cell `%%live minijax.core.bind` is shown as Python, under the name of what it holds.

    One of the reader's library, `%%mini`, is shown under the library's name.
    """

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Walk over the code cells of a chapter."""
        for cell in self.document.findall(_is_source):
            for block in list(cell.findall(nodes.literal_block)):
                if live := LIVE.match(block.rawsource or block.astext()):
                    _show_live(block, live)
                elif not MAGIC.search(block.astext()):
                    block["language"] = "python"


def _is_source(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code_source"


def _show_live(block: nodes.literal_block, live: re.Match[str]) -> None:
    """Put the name of the definition above its source, in place of the magic line."""
    source = (block.rawsource or block.astext())[live.end():]
    shown = nodes.literal_block(source, source, language="python", classes=block["classes"])
    holds = live[1] or live[2]
    name = nodes.paragraph("", "", nodes.literal(holds, holds), classes=["live-name"])
    block.replace_self([name, shown])


# ── Pictures ─────────────────────────────────────────────────────────────────────────────────

PHONE = 510  # a drawing that is wider scrolls on a phone, so that its letters can be read


class WideDrawings(SphinxTransform):
    """A drawing wider than a phone has a class of its own, for `book.css`."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Look into the drawings of a page."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for image in self.document.findall(nodes.image):
            drawing = folder / image["uri"]
            if drawing.suffix == ".svg" and drawing.is_file() and _width(drawing) > PHONE:
                image["classes"].append("wide-drawing")


def _width(drawing: Path) -> float:
    """How wide a drawing says it is."""
    found = re.search(r'viewBox="[\d.]+ [\d.]+ ([\d.]+)', drawing.read_text(encoding="utf-8"))
    return float(found[1]) if found else 0


# ── Links to the source ──────────────────────────────────────────────────────────────────────


class OwnSourceOnly(SphinxTransform):
    """What was made by NumPy, and is given on, has no link to its source."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Take the module, which the link is made from, out of the signatures of others."""
        for signature in self.document.findall(addnodes.desc_signature):
            if (module := signature.get("module")) and not _is_ours(module, signature):
                signature["module"] = None


def _is_ours(module: str, signature: nodes.Element) -> bool:
    value: Any = import_module(module)
    for part in signature["fullname"].split("."):
        value = getattr(value, part, None)
    return str(getattr(value, "__module__", "")).startswith("minijax")


def without_links_back(app: Sphinx, page: str, template: str, context: Any, doctree: Any) -> None:
    """A name has several pages, and the link back from its source knows one: leave it out."""
    if page.startswith("_modules/"):
        context["body"] = re.sub(r'<a class="viewcode-back".*?</a>', "", context["body"])


# ── Formulas ─────────────────────────────────────────────────────────────────────────────────


def inline_math(self: Any, node: nodes.math) -> None:
    """Write a formula inside a sentence."""
    self.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def block_math(self: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own."""
    self.body.append(f'<div class="formula">{mathml(node.astext(), block=True)}</div>\n')
    raise nodes.SkipNode


def mathml(tex: str, block: bool) -> str:
    """A formula of TeX as MathML.

    Raises:
      docutils.utils.math.MathError: for a command that is not known.
    """
    if block and r"\\" in tex and r"\begin" not in tex:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    tex = re.sub(r"\\(begin|end)\{(align|equation|gather)\*?\}", r"\\\1{aligned}", tex)
    return tex2mathml(tex, as_block=block)


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx's entry."""
    app.add_transform(LiveCells)
    app.add_transform(WideDrawings)
    app.add_transform(OwnSourceOnly)
    app.connect("html-page-context", without_links_back)
    app.add_html_math_renderer("mathml", inline_renderers=(inline_math, None),
                               block_renderers=(block_math, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
