"""The reference, written out as reStructuredText from the docstrings of the package.

`pages()` gives every page: the public modules by family, the errors, the table of primitives, and
the modules inside.  It stands on the package alone; Sphinx turns the text into HTML.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import minijax
from minijax.core import LOWERINGS, SLOTS, Cannot, Primitive
from minijax.notebook import source, weave
from minijax.notebook.error_pages import parts_of
from minijax.notebook.errors import short_error
from minijax.notebook.gallery import PRELUDE, exhibit

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
CHAPTERS = {path.stem[:2]: path for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.md"))}

# What users import, in the order in which the reference shows it.
PUBLIC = [
    "minijax", "minijax.numpy", "minijax.numpy.linalg", "minijax.numpy.fft", "minijax.lax",
    "minijax.lax.linalg", "minijax.random", "minijax.nn", "minijax.nn.initializers",
    "minijax.tree", "minijax.tree_util", "minijax.scipy.linalg", "minijax.scipy.special",
    "minijax.scipy.stats", "minijax.ops", "minijax.debug", "minijax.config", "minijax.dtypes",
    "minijax.extend.core", "minijax.extend.rules", "minijax.example_libraries.stax",
    "minijax.example_libraries.optimizers", "minijax.experimental", "minijax.test_util",
    "minijax.notebook",
]  # fmt: skip
# These are so large that each family, the file in which it is written, has a page of its own.
BY_FAMILY = ("minijax.numpy", "minijax.lax")

Pages = dict[str, str]


# ── What is public ───────────────────────────────────────────────────────────────────────────


def modules() -> list[ModuleType]:
    """The public modules that this version of the package has."""
    return [importlib.import_module(name) for name in PUBLIC if _exists(name)]


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is not there
        return False


def public_names(module: ModuleType) -> list[str]:
    """The names that a module offers: of its `__all__`, or what the package itself made.

    Modules among them have pages of their own.
    """
    declared = getattr(module, "__all__", None)
    names = [n for n in dir(module) if _offers(module, n)] if declared is None else declared
    return sorted(n for n in names if not inspect.ismodule(getattr(module, n))
                  and f"{module.__name__}.{n}" not in PUBLIC)  # an object of a module's names


def _offers(module: ModuleType, name: str) -> bool:
    value = getattr(module, name)
    home = str(getattr(value, "__module__", ""))
    if name.startswith("_") or inspect.ismodule(value) or isinstance(value, Primitive):
        return False
    if hasattr(module, "__path__"):  # a façade imports what it gives on, and nothing else
        return home != "__future__"
    own = home == module.__name__ and callable(value) and bool(inspect.getdoc(value))
    return own or name in _imported_to_give_on(module)


@functools.cache
def _imported_to_give_on(module: ModuleType) -> set[str]:
    """The names of a module's statements `from a import b as b`."""
    imports = [node for node in ast.walk(ast.parse(inspect.getsource(module)))
               if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in imports for alias in node.names if alias.asname == alias.name}


# ── One name ─────────────────────────────────────────────────────────────────────────────────


def entry(name: str, value: Any) -> str:
    """The reference of one name: its signature and its docstring."""
    if inspect.isclass(value):
        return _class_entry(name, value)
    if callable(value) and not isinstance(value, type) and _signature(value):
        return directive("function", name + _signature(value), rst(_own_doc(value)))
    return directive("data", name, rst(_own_doc(value)) or _constant(value))


def _class_entry(name: str, cls: type) -> str:
    ours = cls.__module__.startswith("minijax")
    members = [_member(n, vars(cls)[n]) for n in vars(cls) if ours and not n.startswith("_")]
    body = "\n\n".join([rst(_own_doc(cls)), *filter(None, members)])
    kind = "exception" if issubclass(cls, BaseException) else "class"
    return directive(kind, name + _signature(cls), body)


def _member(name: str, value: Any) -> str:
    """A method or a property that has a docstring of its own."""
    function = getattr(value, "__func__", value)
    if not inspect.getdoc(function) or isinstance(value, type):
        return ""
    if isinstance(value, property):
        return directive("property", name, rst(_own_doc(value)))
    if not inspect.isfunction(function):
        return ""
    bound = _signature(function, skip=0 if isinstance(value, staticmethod) else 1)
    return directive("method", name + bound, rst(_own_doc(function)))


def _own_doc(value: Any) -> str:
    """The docstring of the thing itself, and not of the class of which it is one."""
    if inspect.isclass(value) and value.__module__.startswith("minijax"):
        return inspect.cleandoc(vars(value).get("__doc__") or "")
    text = inspect.getdoc(value) or ""
    if not str(getattr(value, "__module__", "minijax")).startswith("minijax"):
        return f"{text.partition(chr(10) + chr(10))[0]} (NumPy's own.)"
    return "" if text == inspect.getdoc(type(value)) else text


def _constant(value: Any) -> str:
    if isinstance(value, int | float | str | None):
        return f"Its value is ``{value!r}``."
    return f"An object of type ``{type(value).__name__}``."


class _Short:
    """A default value that a signature shows by its name, not by its address."""

    def __init__(self, value: Any) -> None:
        self.name = getattr(value, "__name__", type(value).__name__)

    def __repr__(self) -> str:
        return self.name


def _signature(value: Any, skip: int = 0) -> str:
    """The arguments with their defaults, without their types; empty where there is none."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [
        p.replace(annotation=p.empty, default=_shortened(p.default))
        for p in list(signature.parameters.values())[skip:]
    ]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def _shortened(default: Any) -> Any:
    plain = default is inspect.Parameter.empty or not repr(default).startswith("<")
    return default if plain else _Short(default)


def directive(kind: str, argument: str, body: str, options: str = "") -> str:
    """A block of Sphinx's Python domain."""
    lines = [f".. py:{kind}:: {argument}", *(["   " + options] if options else []), ""]
    return "\n".join(lines + ["   " + line if line else "" for line in body.splitlines()]) + "\n"


# ── Docstrings ───────────────────────────────────────────────────────────────────────────────

SECTIONS = {"Args": "Arguments", "Returns": "Returns", "Raises": "Raises", "Yields": "Yields"}


def rst(doc: str) -> str:
    """A docstring of the house as reStructuredText: its sections become lists of terms.

    >>> print(rst("Halve.\\n\\nArgs:\\n  x: an array,\\n    or a number."))
    Halve.
    <BLANKLINE>
    .. rubric:: Arguments
    <BLANKLINE>
    ``x``
      an array,
      or a number.
    """
    out: list[str] = []
    section, doctest, literal = "", False, False
    for line in doc.splitlines():
        header = re.fullmatch(r"(Args|Returns|Raises|Yields):", line)
        doctest = line.lstrip().startswith(">>>") or (doctest and bool(line.strip()))
        indented = line.startswith(" ")
        literal = (literal and (indented or not line)) or (not indented and line.endswith("::"))
        if header:
            section = header[1]
            out += [f".. rubric:: {SECTIONS[section]}", ""]
        elif section and indented:
            out += _item(line, section)
        else:
            section = section if not line else ""
            out.append(line if doctest or literal else escaped(line))
    return "\n".join(out).strip("\n")


def _item(line: str, section: str) -> list[str]:
    """A line of a section: a new term with its text, or more of the text."""
    term = re.match(r"  ([\w*`][\w*`, .]*?): +(.*)", line)
    if term and section in ("Args", "Raises"):
        return [f"``{term[1].strip('`')}``", f"  {escaped(term[2])}"]
    depth = 4 if section in ("Args", "Raises") else 2
    return ["  " + escaped(line[depth:]) if depth == 4 else escaped(line[depth:])]


def escaped(line: str) -> str:
    """A line of prose whose stars, bars and trailing underscores mean themselves.

    >>> print(escaped("any *args, `x_p`, |x|, a_ and **bold** words"))
    any \\*args, `x_p`, \\|x\\|, a\\_ and **bold** words
    """
    parts = re.split(r"(``.*?``|:\\w+:`.*?`|`[^`]*`_?|\*\*\S.*?\S\*\*|\*\w[^*]*?\w\*)", line)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"[*|]|(?<=\w)_(?!\w)", r"\\\g<0>", parts[i])
    return "".join(parts)


def summary(value: Any) -> str:
    """The first sentence of a docstring, on one line."""
    first = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    return escaped(re.split(r"(?<=[.!?])\s", first)[0])


# ── Pages ────────────────────────────────────────────────────────────────────────────────────


def heading(title: str, line: str = "=") -> str:
    """A title with its underline."""
    return f"{title}\n{line * len(title)}\n"


def toctree(entries: Iterable[str], options: str = ":hidden:") -> str:
    """Sphinx's list of what lies below a page."""
    return f".. toctree::\n   {options}\n\n" + "".join(f"   {name}\n" for name in entries)


def opening(module: ModuleType) -> str:
    """What a module says about itself."""
    return rst(inspect.getdoc(module) or "")


def pages() -> Pages:
    """Every page of the reference, by its place in the source of the book."""
    made: Pages = {}
    listed = []
    for module in modules():
        made |= _module_pages(module)
        listed.append(module)
    made["api/primitives.rst"] = primitives_page()
    made["api/index.rst"] = _index(listed)
    return made | error_pages() | inside_pages()


def _index(listed: list[ModuleType]) -> str:
    rows = "".join(
        f"   * - :doc:`{m.__name__} <{m.__name__}>`\n     - {summary(m)}\n" for m in listed)
    rows += "   * - :doc:`primitives`\n     - Every primitive, and which rules it has.\n"
    return "\n".join([
        heading("Reference"),
        "Everything one imports, written out from the docstrings. The examples are run as tests,"
        " and [source] beside a name opens the lines that do the work. How the package is built"
        " inside is under :doc:`/inside/index`.\n",
        f".. list-table::\n   :widths: 30 70\n\n{rows}",
        toctree([*[m.__name__ for m in listed], "primitives"]),
    ])


def _module_pages(module: ModuleType) -> Pages:
    name = module.__name__
    if name not in BY_FAMILY:
        return {f"api/{name}.rst": _one_page(module)}
    made, below = {}, []
    for family, names in families(module).items():
        place = f"{name}.{family}"
        made[f"api/{place}.rst"] = _family_page(module, family, names)
        below.append((place, family, names))
    made[f"api/{name}.rst"] = _families_index(module, below)
    return made


def _one_page(module: ModuleType) -> str:
    functions_first = sorted(
        public_names(module), key=lambda name: inspect.isclass(getattr(module, name)))
    return "\n".join([
        heading(module.__name__), opening(module), "", f".. py:module:: {module.__name__}\n",
        *entries(module, functions_first),
    ])


def entries(module: ModuleType, names: list[str]) -> Iterator[str]:
    """The reference of some names of a module; a second name of a thing refers to the first."""
    first: dict[int, str] = {}
    for name in names:
        value = getattr(module, name)
        known = first.setdefault(id(value), name)
        if known == name or not callable(value):
            yield entry(name, value)
        else:
            role = "class" if inspect.isclass(value) else "func"
            kind = "class" if inspect.isclass(value) else "function"
            yield directive(kind, name + _signature(value), f"Another name of :{role}:`{known}`.")


def families(module: ModuleType) -> dict[str, list[str]]:
    """The public names of a large module, by the file in which each is written."""
    found: dict[str, list[str]] = {}
    for name in public_names(module):
        home = str(getattr(getattr(module, name), "__module__", None))
        ours = home.startswith(("minijax.numpy.", "minijax.primitives.", "minijax.control_flow.",
                                "minijax.custom.", "minijax.placement.", "minijax.transforms."))
        fallback = "scalar_types" if module.__name__ == "minijax.numpy" else "other"
        found.setdefault(home.split(".")[2] if ours else fallback, []).append(name)
    return dict(sorted(found.items()))


def _family_module(module: ModuleType, family: str, names: list[str]) -> ModuleType | None:
    homes = {str(getattr(getattr(module, name), "__module__", "")) for name in names}
    named = [home for home in sorted(homes) if home.split(".")[-1] == family]
    return importlib.import_module(named[0]) if named else None


def _title(family: str) -> str:
    return family.replace("_", " ").capitalize()


def _family_page(module: ModuleType, family: str, names: list[str]) -> str:
    home = _family_module(module, family, names)
    return "\n".join([
        heading(f"{module.__name__}: {_title(family).lower()}"),
        summary(home) if home else "", "",
        f".. py:currentmodule:: {module.__name__}\n",
        *entries(module, names),
    ])


def _families_index(module: ModuleType, below: list[tuple[str, str, list[str]]]) -> str:
    parts = [heading(module.__name__), opening(module), "", f".. py:module:: {module.__name__}\n"]
    for place, family, names in below:
        home = _family_module(module, family, names)
        links = " · ".join(f":py:obj:`~{module.__name__}.{name}`" for name in names)
        says = summary(home) if home else ""
        parts += [heading(_title(family), "-"), f"{says} (:doc:`all of it <{place}>`)\n", links, ""]
    return "\n".join([*parts, toctree(f"{_title(family)} <{place}>" for place, family, _ in below)])


# ── Errors ───────────────────────────────────────────────────────────────────────────────────


def error_classes() -> list[type]:
    """The error classes of the package, in the order in which they are written."""
    return [cls for cls in vars(minijax.errors).values()
            if inspect.isclass(cls) and issubclass(cls, BaseException)
            and cls.__module__ == "minijax.errors" and not cls.__name__.startswith("_")]


def error_pages() -> Pages:
    """One page for each error class, and one that lists them."""
    made = {f"errors/{cls.__name__}.rst": _error_page(cls) for cls in error_classes()}
    rows = "".join(f"   * - :doc:`{c.__name__}`\n     - {summary(c)}\n" for c in error_classes())
    made["errors/index.rst"] = "\n".join([
        heading("Errors"),
        "Each error that minijax raises of its own, why it comes, and what to write instead. "
        "The words of the messages are JAX's. Every example is run as a test, and raises its "
        "error; every fix is run, and does not. They assume these names:\n",
        ".. code-block:: python\n\n" + textwrap.indent(PRELUDE, "   "),
        f".. list-table::\n   :widths: 36 64\n\n{rows}",
        toctree(c.__name__ for c in error_classes()),
    ])
    return made


def _error_page(cls: type) -> str:
    bases = [b.__name__ for b in cls.__mro__[1:]
             if issubclass(b, Exception) and not b.__name__.startswith("_")]
    caught = ", ".join(f"``{base}``" for base in bases if base != "Exception")
    return "\n".join([
        heading(cls.__name__), ".. py:currentmodule:: minijax.errors\n",
        rst(_own_doc(cls)), "", _what_it_says(cls),
        directive("exception", cls.__name__,
                  f"``except`` catches it as {caught} too." if caught else ""),
    ])


def _what_it_says(cls: type) -> str:
    """What the first example on the page of an error says when it is run."""
    if "The smallest example" not in parts_of(cls):
        return ""
    said = textwrap.indent(short_error(exhibit(cls).error), "   ")
    return f"**What the example says.**\n\n.. code-block:: text\n   :class: said\n\n{said}\n"


# ── The table of primitives ──────────────────────────────────────────────────────────────────


def all_primitives() -> list[tuple[str, Primitive]]:
    """Every primitive of the package with the module that holds its block."""
    found: dict[int, tuple[str, Primitive]] = {}
    for package in ("minijax.primitives", "minijax.control_flow", "minijax.custom",
                    "minijax.placement", "minijax.transforms"):
        for info in pkgutil.iter_modules(importlib.import_module(package).__path__, package + "."):
            for value in vars(importlib.import_module(info.name)).values():
                if isinstance(value, Primitive):
                    found.setdefault(id(value), (info.name, value))
    return sorted(found.values(), key=lambda pair: (pair[0], pair[1].name))


COLUMNS = {"jvp": "jvp", "transpose": "transpose", "batch": "vmap"}


def primitives_page() -> str:
    """The rows and columns of the house: which primitive has which rule, and why not."""
    rows: list[str] = []
    reasons: dict[str, list[str]] = {}
    for module, primitive in all_primitives():
        rules = {column: getattr(primitive, slot) for slot, column in COLUMNS.items()}
        for column, rule in rules.items():
            if isinstance(rule, Cannot):
                reasons.setdefault(f"No {column}: {rule.reason}", []).append(primitive.name)
        lowered = next((kind for kind in LOWERINGS if getattr(primitive, kind) is not None), "–")
        place = module.rpartition(".")[2]
        cells = [f"``{primitive.name}``", *map(_cell, rules.values()), lowered,
                 f":doc:`{place} </inside/{module}>`"]
        rows.append("   * - " + "\n     - ".join(cells) + "\n")
    header = "   * - primitive\n" + "".join(f"     - {c}\n" for c in COLUMNS.values())
    header += "     - lowered by\n     - its block is in\n"
    return "\n".join([
        heading("Primitives"),
        f"What programs are made of: {len(rows)} operations. Each is one block in which every rule"
        " has its slot (" + ", ".join(f"``{slot}``" for slot in SLOTS) + " and one lowering)."
        " A slot that has no meaning holds its reason; the reasons are listed below.\n",
        ".. list-table::\n   :header-rows: 1\n   :class: primitives\n\n" + header + "".join(rows),
        heading("Why not", "-"),
        *[f"{escaped(reason)}\n  {', '.join(f'``{name}``' for name in names)}\n"
          for reason, names in reasons.items()],
    ])


def _cell(rule: Any) -> str:
    return "yes" if callable(rule) else "no" if isinstance(rule, Cannot) else "–"


# ── Inside ───────────────────────────────────────────────────────────────────────────────────

FLOORS = {
    "Ground": ("errors", "config", "util", "tree_util", "tree", "dtypes"),
    "The core": ("core",),
    "Primitives, the rows": ("primitives",),
    "Compiler": ("compiler",),
    "Programs with programs inside": ("transforms", "control_flow", "custom", "placement"),
    "What users import": (),
}


def inside_pages() -> Pages:
    """The appendix: a page for each module that users do not import, and one with all floors.

    So has each module that the course explains, for what no chapter shows.
    """
    found = sorted(info.name for info in pkgutil.walk_packages(minijax.__path__, "minijax.")
                   if not info.name.rpartition(".")[2].startswith("_")
                   and "as_jax" not in info.name)  # which takes the place of JAX
    elsewhere = {name: f"/api/{name}" for name in PUBLIC if name not in BY_FAMILY}
    elsewhere["minijax.errors"] = "/errors/index"
    nearest = _nearest_chapters()
    inner = [name for name in found if name in nearest or name not in elsewhere]
    cells = [cell for chapter in CHAPTERS.values() for cell in weave.live_cells(chapter)]
    made = {f"inside/{name}.rst": _inside_page(name, nearest.get(name), cells) for name in inner}
    parts = [heading("Inside the package"),
             "Every module, from the ground up, with all that it defines. Imports"
             " point down the house only; what a module says at its top is the best introduction"
             " to it.\n"]
    for floor, heads in FLOORS.items():
        below = [name for name in found if _floor(name) == (floor if heads else None)]
        parts += [heading(floor, "-"), ".. list-table::\n   :widths: 30 70\n",
                  *[_row(name, name if name in inner else elsewhere[name]) for name in below], ""]
    made["inside/index.rst"] = "\n".join(parts)
    return made


def _nearest_chapters() -> dict[str, str]:
    """The chapter that comes nearest to a module, for those that the course explains."""
    asked = weave.explained_modules(NOTEBOOKS / "explained.toml")
    return {module: number for number, modules in asked.items() for module in modules
            if number in CHAPTERS}


def _row(name: str, page: str) -> str:
    says = summary(importlib.import_module(name))
    return f"   * - :doc:`{name.removeprefix('minijax.')} <{page}>`\n     - {says}"


def _floor(name: str) -> str | None:
    head = name.split(".")[1]
    return next((floor for floor, heads in FLOORS.items() if head in heads), None)


def _inside_page(name: str, chapter: str | None, cells: Sequence[weave.LiveCell]) -> str:
    module = importlib.import_module(name)
    explained = f" · explained in {_chapter_link(chapter)}" if chapter else ""
    # An orphan stands in no sidebar (a hundred lines would), and a name has one place in the
    # index: where users import it from.
    return "\n".join([
        ":orphan:\n", heading(name), f":doc:`Inside the package <index>`{explained}\n",
        opening(module), "", f".. py:currentmodule:: {name}\n",
        *[_with_source(d, weave.shown_by(d, cells)) for d in source.definitions(name)],
    ])


def _chapter_link(number: str) -> str:
    return f":doc:`chapter {number} </chapters/{CHAPTERS[number].stem}>`"


def _with_source(definition: source.Definition, cells: Sequence[weave.LiveCell]) -> str:
    """A definition: what it says of itself, or how it stands; and the chapters that show it.

    Sphinx puts a link to the source beside functions and classes.
    """
    module, owner = source.import_owner(definition)
    value = getattr(owner or module, definition.short)
    name = ".".join([*definition.classes, definition.short])
    numbers = dict.fromkeys(cell.chapter[:2] for cell in cells)
    shown = f"Shown in {', '.join(map(_chapter_link, numbers))}." if numbers else ""
    kinds = {"class": inspect.isclass, "function": inspect.isfunction}
    kind = next((kind for kind, is_such in kinds.items() if is_such(value)), "data")
    name += _signature(value) if kind != "data" else ""
    if kind != "data" and value.__doc__:
        says = rst(_own_doc(value))
    else:
        says = ".. code-block:: python\n\n" + textwrap.indent(definition.text, "   ")
    return directive(kind, name, f"{says}\n\n{shown}", ":no-index:")
