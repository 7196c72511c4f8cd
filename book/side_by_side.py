"""The page that has `mini`, the reader's own library, beside the core: each definition twice.

Both have the same names, so a definition of one has its counterpart in the other. The page is
written from the two sources; Sphinx lays it out.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from minijax.notebook import source, weave

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
CHAPTERS = {path.stem[:2]: path for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.md"))}
LAST = "11"  # the chapter after which `mini` has all transformations, and no compiler yet
OPENING = """\
---
html_theme.sidebar_secondary.remove: true
---

# mini beside the core

`mini` is the library that you write in chapters 02 to 11. The core of minijax has the same
definitions under the same names: `mini` stands on the left, the core on the right. A line of the
core is marked where it has a name that `mini` does not use there.
"""


def page() -> str:
    """The page, in MyST's Markdown."""
    cells = [cell for chapter in CHAPTERS.values() for cell in weave.live_cells(chapter)]
    parts = [OPENING]
    for number, modules in weave.explained_modules(NOTEBOOKS / "explained.toml").items():
        for module in [module for module in modules if module.startswith("minijax.core.")]:
            names = [name for name in definitions(source.module_text(module)) if name in mini()]
            parts += [about(module, number)] if names else []
            parts += [entry(source.find(f"{module}.{name}"), cells) for name in names]
    return "\n".join(parts)


@functools.cache
def definitions(text: str) -> dict[str, str]:
    """The text of each function and class of a module."""
    return {node.name: str(ast.get_source_segment(text, node)) for node in ast.parse(text).body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def mini(chapter: str = LAST) -> dict[str, str]:
    """The definitions of `mini` after a chapter."""
    path = NOTEBOOKS / "mini" / f"after_{chapter}.py"
    return definitions(path.read_text(encoding="utf-8")) if path.exists() else {}


def links(chapters: list[str], heading: str = "") -> str:
    """Links to chapters, or to a heading in them."""
    slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    return " and ".join(f"[{heading or f'chapter {number}'}](chapters/{CHAPTERS[number].stem}.ipynb"
                        + f"#{slug}" * bool(heading) + ")" for number in chapters)


def about(module: str, number: str) -> str:
    """The heading of a module; links to its chapter, and to the programs that `mini` gets wrong."""
    prose = re.sub(r"^```.*?^```", "", CHAPTERS[number].read_text(encoding="utf-8"),
                   flags=re.MULTILINE | re.DOTALL)
    before, *after = re.split(r"program\s+that\s+(?:needs it|`mini` gets wrong)", prose)
    says = f"{{doc}}`The module </inside/{module}>` is explained in {links([number])}."
    if after:
        heading = re.findall(r"^##+ (.+)$", before, re.MULTILINE)[-1]
        says += f" Programs that need what it has more: {links([number], heading)}."
    return f"## {module.removeprefix('minijax.')}\n\n{says}\n"


def entry(core: source.Definition, cells: list[weave.LiveCell]) -> str:
    """A definition: what it is, and where the course has it; two columns; methods of the core."""
    name, ours = core.short, mini()[core.short]
    theirs, rest = parted(core, ours)
    texts = {mini(number).get(name): number for number in sorted(CHAPTERS)[::-1] if number <= LAST}
    first, *later = sorted(number for text, number in texts.items() if text)
    read = sorted({cell.chapter[:2] for cell in cells
                   if any(f"{each}.".startswith(f"{core.name}.") for each in cell.names)})
    says = (re.findall(r'"""(.+?)"""', theirs)[0] + f" You write it in {links([first])}"
            + f", and change it in {links(later)}" * bool(later) + "."
            + f" The real one is read in {links(read)}." * bool(read))
    marked = sorted({line for each, line in used(theirs) if each not in dict(used(ours))})
    columns = (f":::{{grid-item}}\n{code(text, lines)}:::\n"
               for text, lines in ((ours, ()), (theirs, marked)))
    methods = ", ".join(f"`{each}`" for each in re.findall(r"^def (\w+)", rest, re.MULTILINE))
    folded = f":::{{dropdown}} Methods of the core alone: {methods}\n{code(rest)}:::\n"
    return (f"### {name}\n\n{says}\n\n::::{{grid}} 1 1 2 2\n:gutter: 2\n:class-container: beside"
            f"\n\n{''.join(columns)}::::\n{folded * bool(rest)}")


def code(text: str, marked: Sequence[int] = ()) -> str:
    """A block of code, with some of its lines marked."""
    options = f":emphasize-lines: {','.join(map(str, marked))}\n" * bool(marked)
    return f"```{{code-block}} python\n{options}\n{text}\n```\n"


def parted(core: source.Definition, ours: str) -> tuple[str, str]:
    """A class of the core without the methods that `mini` does not have; and those methods."""
    [top] = ast.parse(core.text).body
    names = dict.fromkeys(node.name for node in getattr(top, "body", ())
                          if isinstance(top, ast.ClassDef) and isinstance(node, ast.FunctionDef))
    methods = [source.find(f"{core.name}.{name}") for name in names
               if f"def {name}(" not in f"def __init__({ours}"]
    kept = [line for k, line in enumerate(core.text.splitlines(), core.first)
            if not any(method.first <= k <= method.last for method in methods)]
    return (source.shortened(re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).rstrip()),
            "\n\n".join(source.shortened(method.text) for method in methods))


def used(text: str) -> Iterator[tuple[str, int]]:
    """The names in a definition, with their lines: none in annotations, of its own or of Python."""
    [top] = ast.parse(text).body
    for node in list(ast.walk(top)):
        for part in {"annotation", "returns"} & {*node._fields}:
            setattr(node, part, None)
    nodes, own = list(ast.walk(top)), {*dir(builtins)}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.arguments):  # the optional ones tell the two apart
            own |= {each.arg for each in node.args[:len(node.args) - len(node.defaults)]}
            own |= {each.arg for each in (node.vararg, node.kwarg) if each}
    own -= {ast.unparse(node.target) for node in nodes if isinstance(node, ast.AnnAssign)}
    for kind, name in ((ast.Name, "id"), (ast.Attribute, "attr"), (ast.arg, "arg")):
        yield from ((getattr(node, name), node.lineno) for node in nodes
                    if isinstance(node, kind) and getattr(node, name) not in own)
