"""The book has a page for everything, and what its pages and the READMEs point to is there."""

import ast
import importlib.util
import inspect
import json
import re
import runpy
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import errors
from minijax.core import Primitive

ROOT = Path(__file__).parent.parent
BOOK = ROOT / "book"
MINI = str(ROOT / "notebooks" / "mini" / "after_11.py")


def module_of_the_book(name):
    """One of the scripts in book/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, BOOK / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


reference = module_of_the_book("reference")
side_by_side = module_of_the_book("side_by_side")
build = module_of_the_book("build")
module_of_the_book("keyboard")
module_of_the_book("check")
pdf = module_of_the_book("pdf")


@pytest.fixture(scope="module")
def layout():
    return build.layout()


# ---- the reference


def documented(text):
    """The full names of what a page documents."""
    module, found = "", set()
    for line in text.splitlines():
        if named := re.match(r"\.\. py:(?:current)?module:: (\S+)", line):
            module = named[1]
        elif named := re.match(r"\.\. py:\w+:: (\w+)", line):
            found.add(f"{module}.{named[1]}")
    return found


def test_every_public_name_has_its_place(layout):
    pages = [text for place, text in layout.items() if place.startswith("api/")]
    found = set().union(*map(documented, pages))
    wanted = {f"{module.__name__}.{name}"
              for module in reference.modules() for name in reference.public_names(module)}
    assert len(wanted) > 700
    assert sorted(wanted - found) == []


@pytest.mark.parametrize("module", [jax, jnp, jax.lax, jax.random, jax.nn, jax.tree_util, jax.ops])
def test_no_function_of_a_facade_is_forgotten(module):
    functions = {name for name, value in inspect.getmembers(module)
                 if not name.startswith("_")
                 and (inspect.isfunction(value) or isinstance(value, jnp.ufunc))
                 and not isinstance(value, Primitive)
                 and (hasattr(module, "__path__") or value.__module__ == module.__name__)}
    assert functions <= set(reference.public_names(module))


def test_every_module_that_users_reach_is_listed():
    given = {value.__name__ for value in vars(jax).values() if inspect.ismodule(value)}
    source = inspect.getsource(jax)
    given = {name for name in given
             if re.search(rf"import {name.removeprefix('minijax.')} as", source)}
    elsewhere = {"minijax.errors"}  # each class has its own page
    listed = set(reference.PUBLIC) | elsewhere
    assert {name for name in given
            if name not in listed and not any(p.startswith(name + ".") for p in listed)} == set()


def test_a_module_has_one_entry():
    """That of its page: where another module has it among its names, it is left out."""
    declared = {f"{module.__name__}.{name}" for module in reference.modules()
                for name in reference.public_names(module)}
    assert not declared & {module.__name__ for module in reference.modules()}
    assert "minijax.numpy.sin" in declared


def test_every_error_class_has_a_page_that_says_what_happened(layout):
    classes = reference.error_classes()
    assert errors.ConcretizationTypeError in classes and errors.TracerLeakError in classes
    for cls in classes:
        page = layout[f"errors/{cls.__name__}.rst"]
        assert cls.__doc__ and cls.__doc__.split("\n")[0] in page


def test_every_primitive_is_in_the_table(layout):
    names = {primitive.name for _, primitive in reference.all_primitives()}
    assert {"add", "sort", "scan", "jit"} <= names
    for name in names:
        assert f"``{name}``" in layout["api/primitives.rst"]


@pytest.mark.parametrize("text, wanted", [
    ("any *args and **kwargs", r"any \*args and \*\*kwargs"),
    ("a trailing_ and |x|", r"a trailing\_ and \|x\|"),
    ("`x_`, ``y_``, *words*, **more**", "`x_`, ``y_``, *words*, **more**"),
])
def test_prose_means_itself(text, wanted):
    assert reference.escaped(text) == wanted


def test_no_letter_follows_a_name_in_a_docstring():
    # Sphinx would not find its end: it is to be "calls of `vmap`"
    for path in sorted(Path(jax.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                plain = re.sub(r"``.*?``|>>>.*", "", ast.get_docstring(node) or "", flags=re.DOTALL)
                pairs = re.sub(r"`[^`]+`(?![A-Za-z])", "", plain)
                assert "`" not in pairs, f"{path.name}: {getattr(node, 'name', '')}: {pairs}"


# What stands in the chapters, and was seen in the book: its converter does not know all of LaTeX.
LATEX = {*"approx cdot cos cosh frac ldots le log pi qquad quad sin sqrt sum "
         "tanh text tfrac top".split()}


def test_formulas_are_written_in_what_the_book_can_show():
    for chapter in sorted((ROOT / "notebooks").glob("[0-9]*.md")):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", chapter.read_text(encoding="utf-8"),
                      flags=re.DOTALL)
        formulas = re.findall(r"\$\$.+?\$\$|\$[^$\n]+\$", text, re.DOTALL)
        words = {word for formula in formulas for word in re.findall(r"\\([A-Za-z]+)", formula)}
        assert words <= LATEX, chapter.name


def test_sections_become_lists_of_terms():
    text = reference.rst("One.\n\nArgs:\n  x: first,\n    more.\n  y: last.\n\nReturns:\n  A pair.")
    assert "``x``\n  first,\n  more.\n``y``\n  last." in text
    assert ".. rubric:: Returns\n\nA pair." in text


# ---- mini beside the core


CORE = "types trace conversion primitive jaxpr tracing jvp vmap partial_eval linearize transpose"


def test_what_mini_and_the_core_define_under_one_name_stands_side_by_side(layout):
    page, mini = layout["mini_beside_the_core.md"], runpy.run_path(MINI)
    entries = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##)", page + "## ", re.M | re.S))
    modules = [importlib.import_module(f"minijax.core.{name}") for name in CORE.split()]
    public = [getattr(module, name) for module in modules
              for name in reference.public_names(module) if name in mini]
    public = [value for value in public if inspect.isfunction(value) or inspect.isclass(value)]
    assert {"Trace", "JVPTrace", "Tracer", "Primitive", "Jaxpr", "linearize_flat",
            "SplitTrace", "backward_pass", "vmap_flat"} <= {value.__name__ for value in public}
    assert {value.__name__ for value in public} - entries.keys() == set()
    for value in public:
        name = value.__name__
        ours, theirs = re.findall(rf"^(?:class|def) {name}\b.*?(?=^```)", entries[name],
                                  re.M | re.S)
        assert ours.strip() == side_by_side.mini()[name].strip()
        assert theirs.splitlines()[0] in inspect.getsource(value)
        assert "You write it in [chapter " in entries[name]


def test_a_line_of_the_core_is_marked_where_mini_does_not_use_a_name_of_it(layout):
    axis = layout["mini_beside_the_core.md"].partition("### Axis\n")[2].partition("### ")[0]
    marked, text = re.search(r":emphasize-lines: (\S+)\n\n(.*?)```", axis, re.S).groups()
    lines = [text.splitlines()[int(k) - 1].split(":")[0].strip() for k in marked.split(",")]
    assert lines == ["level", "on_devices", "vma_trace", "sharding"]


def test_a_method_of_the_core_alone_is_folded_and_none_is_lost(layout):
    page = layout["mini_beside_the_core.md"]
    for name in ("ancestry", "concerns", "process_primitive"):
        assert f"def {name}(" in page.partition("### Trace\n")[2].partition("### ")[0]
    assert "Methods of the core alone: `process_primitive`, `ancestry`, `is_open`" in page


def test_links_to_headings_of_chapters_lead_to_one(layout):
    links = re.findall(r"chapters/(\w+)\.ipynb#([\w-]+)", layout["mini_beside_the_core.md"])
    assert links
    for chapter, slug in links:
        text = (ROOT / "notebooks" / f"{chapter}.md").read_text()
        headings = re.findall(r"^##+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
        assert slug in {heading.lower().replace(" ", "-") for heading in headings}


# ---- links


def test_every_page_named_by_a_page_is_there(layout):
    for place, text in layout.items():
        if not place.endswith(".rst"):
            continue
        folder = Path(place).parent
        targets = re.findall(r":doc:`(?:[^`<]*<)?([^`<>]+)>?`", text)
        for tree in re.findall(r"\.\. toctree::\n(?:   .*\n|\n)*", text):
            targets += re.findall(r"^   (?:.*<)?([\w./]+)>?$", tree, re.MULTILINE)
        for target in targets:
            page = target[1:] if target.startswith("/") else (folder / target).as_posix()
            assert {f"{page}.rst", f"{page}.ipynb"} & layout.keys(), (place, target)


def relative_links(text):
    """Where a text of Markdown points to, besides the web and itself."""
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S))
    return [link.partition("#")[0] for link in links if not re.match(r"\w+:|#|data:", link)]


def texts():
    """Everything written in Markdown, with the folder that its links start from."""
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("notebooks/**/*.md")]:
        if ".ipynb_checkpoints" not in path.parts:
            yield path.relative_to(ROOT), path.parent, path.read_text()


@pytest.mark.parametrize("place, folder, text", list(texts()), ids=lambda value: str(value)[:40])
def test_every_link_leads_somewhere(place, folder, text):
    for link in relative_links(text):
        assert (folder / link).exists(), (place, link)


def test_links_in_the_book_are_there_in_its_source(layout):
    for place, content in layout.items():
        text = content if place.endswith(".md") else ""
        if place.endswith(".ipynb"):
            cells = json.loads(content)["cells"]
            text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
        for link in relative_links(text):
            assert (Path(place).parent / link).as_posix() in layout, (place, link)


def test_every_chapter_is_in_both_tables():
    for chapter in build.chapters():
        assert f"]({chapter.name})" in (ROOT / "notebooks" / "README.md").read_text()
        assert f"](notebooks/{chapter.name})" in (ROOT / "README.md").read_text()


# ---- the site


def test_the_configuration_is_read_without_sphinx():
    conf = module_of_the_book("conf")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert conf.version == project["version"]
    assert conf.nb_execution_mode == "off"
    buttons = conf.html_theme_options["launch_buttons"]
    assert not buttons["thebe"]
    has_address = bool(project.get("urls", {}).get("Repository"))
    assert ("binderhub_url" in buttons) == has_address


def test_links_to_modules_lead_to_their_pages_in_the_appendix():
    cell = {"cell_type": "markdown", "source": ["see [`core`](../minijax/core.py)"]}
    text = build.with_links_to_modules(json.dumps({"cells": [cell]}))
    assert "../inside/minijax.core.html" in text


def test_what_is_unchanged_is_left_alone(tmp_path):
    build.write({"a.md": "old", "b/c.md": b"same"}, tmp_path)
    before = (tmp_path / "b" / "c.md").stat().st_mtime_ns
    build.write({"b/c.md": "same", "d.md": "new"}, tmp_path)
    assert not (tmp_path / "a.md").exists()
    assert (tmp_path / "b" / "c.md").stat().st_mtime_ns == before
    assert (tmp_path / "d.md").read_text() == "new"


def test_the_picture_shows_what_jit_does():
    picture = ROOT / "notebooks" / "pictures" / "function_to_machine_code.svg"
    groups = ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}g")
    shown = {g.get("id"): ["".join(t.itertext()) for t in g] for g in groups if g.get("id")}

    def distance(x, y):
        return jnp.sum((x - y) ** 2)

    assert [line in inspect.getsource(distance) for line in shown["python"]] == [True, True]
    lowered = jax.jit(distance).lower(jnp.ones(30), jnp.ones(30))
    for stage in ("jaxpr", "source"):
        lines = [line.strip() for line in lowered.as_text(stage).splitlines()]
        assert [line for line in shown[stage] if line not in lines] == []


# ---------------------------------------------------------------- the whole as one file


def test_the_whole_has_all_pages_and_an_outline(tmp_path):
    from pypdf import PdfReader, PdfWriter
    paths = []
    for name, count in (("a", 2), ("b", 3)):
        paths.append(tmp_path / f"{name}.pdf")
        with PdfWriter() as writer:
            for _ in range(count):
                writer.add_blank_page(100, 100)
            writer.write(paths[-1])
    titles = [pdf.title(chapter) for chapter in build.chapters()[:2]]
    pdf.joined(list(zip(titles, paths, strict=True)), tmp_path / "whole.pdf")
    whole = PdfReader(tmp_path / "whole.pdf")
    assert len(whole.pages) == 5
    assert [(item.title, whole.get_destination_page_number(item)) for item in whole.outline] == [
        (titles[0], 0), (titles[1], 2)]
    assert titles[0].startswith("00 ")
