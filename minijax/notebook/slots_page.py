"""The table of the slots of a primitive on the page *Write your own*, read from the package.

What a slot is stands in the docstring of `Primitive`, its default in the signature, who calls it in
the sources, and what notices a mistake in `laws`.  Builds on `source`, `laws`.
JAX has no counterpart.
"""

import ast
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import minijax
from minijax.core import LOWERINGS, SLOTS, Primitive
from minijax.notebook import laws, source

BEGIN, END = "<!-- the slots: written by `make notebooks` -->", "<!-- end of the slots -->"
# Where transformations and the compiler call rules; a rule that calls another is no caller here.
CALLERS = ("core", "transforms", "control_flow", "custom", "placement", "compiler", "experimental",
           "sharp_bits", "util")


def woven(text: str) -> str:
    """The page, its table as the package has it."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


def table() -> str:
    """The slots in Markdown, in the order of `Primitive`."""
    calls = callers()
    rows = ["", "| slot | what it holds | without it | called by | a law that notices |",
            "|---|---|---|---|---|"]
    for names, meaning in meanings():
        by = list(dict.fromkeys(by for name in names for by in calls.get(name, ())))[:3]
        noticing = laws.WATCHING.get(names[0], ())[:1]
        rows.append("| " + " | ".join([
            ", ".join(f"`{name}`" for name in names), meaning.replace("``", "`"),
            default_of(names[0]), ", ".join(f"`{name}`" for name in by) or "—",
            ", ".join(law.__name__.replace("_", " ") for law in noticing) or "—"]) + " |")
    return "\n".join([*rows, ""])


def meanings() -> Iterator[tuple[list[str], str]]:
    """The slots that are described together, and their description."""
    arguments = inspect.cleandoc(Primitive.__doc__ or "").partition("Args:\n")[2]
    for names, meaning in re.findall(r"^  ([\w, ]+): (.*?)(?=^  \w|\Z)", arguments, re.M | re.S):
        yield names.split(", "), " ".join(meaning.split())


def default_of(slot: str) -> str:
    """What a slot holds that is not filled."""
    default = inspect.signature(Primitive).parameters[slot].default
    if slot in SLOTS or default is inspect.Parameter.empty:
        return "must be filled"
    if slot in LOWERINGS:
        return "one of them"
    if callable(default):
        return f"`{default.__name__}`" if default.__name__ != "<lambda>" else "none"
    return "none" if default is None else f"`{default}`"


def callers() -> dict[str, list[str]]:
    """For each slot, the definitions that ask a primitive for it."""
    calls: dict[str, list[str]] = {}
    for module in modules():
        for definition in source.definitions(module, limit=10_000):
            for slot in asked_in(definition.text) if "def " in definition.text else ():
                calls.setdefault(slot, []).append(definition.name.removeprefix("minijax."))
    return calls | {"name": [], "examples": ["notebook.laws.check_primitive"]}


def modules() -> Iterator[str]:
    for ring in CALLERS:
        path = Path(minijax.__file__).parent / ring
        yield from (f"minijax.{ring}.{info.name}" for info in pkgutil.iter_modules([str(path)]))


def asked_in(text: str) -> Iterator[str]:
    """The slots that a definition reads: of a primitive by its name, or by `rule`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and re.fullmatch(
                r"(?:.*\.)?primitive|p", ast.unparse(node.value)):
            yield node.attr
        elif (isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".rule") and node.args
              and isinstance(node.args[0], ast.Constant)):
            yield str(node.args[0].value)
