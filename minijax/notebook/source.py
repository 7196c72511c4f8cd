"""The location of a definition in the package, and its exact text.

Builds on the files alone.  The course uses it: live cells, columns, the weaver.
JAX has no counterpart.
"""

import ast
import functools
import importlib
import importlib.util
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

MAX_LINES = 40  # of a cell: what a reader takes in at once


@dataclass(frozen=True)
class Definition:
    """One definition: its dotted name, where it stands, and its text without indentation."""

    name: str
    module: str
    classes: tuple[str, ...]  # the classes around it, the outermost first
    first: int
    last: int
    text: str

    @property
    def owner(self) -> str:
        return ".".join([self.module, *self.classes])

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]


@functools.lru_cache(maxsize=256)
def module_text(module: str) -> str:
    """The source of a module, as its file has it."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        raise LookupError(f"there is no source of {module}")
    return Path(spec.origin).read_text(encoding="utf-8")


@functools.lru_cache(maxsize=256)
def module_tree(module: str) -> ast.Module:
    return ast.parse(module_text(module))


def split_name(name: str) -> tuple[str, list[str]]:
    """The module that a dotted name begins with, and what follows.

    >>> split_name("minijax.core.primitive.Primitive.bind")
    ('minijax.core.primitive', ['Primitive', 'bind'])
    """
    module, *rest = name.split(".")
    while rest and _is_module(f"{module}.{rest[0]}"):
        module = f"{module}.{rest.pop(0)}"
    return module, rest


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def import_owner(definition: Definition) -> tuple[ModuleType, type | None]:
    """The module of a definition, and the class it stands in, if any."""
    module = importlib.import_module(definition.module)
    owner: object = module
    for name in definition.classes:
        owner = getattr(owner, name)
    return module, owner if isinstance(owner, type) else None


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, those under an `if` or `try` too."""
    for node in body:
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from statements(node.body)
            yield from statements(getattr(node, "orelse", []))
        else:
            yield node


def bound_names(node: ast.stmt) -> list[str]:
    """The names that a statement defines.

    >>> bound_names(ast.parse("mul_p, mul = binary('mul')").body[0])
    ['mul_p', 'mul']
    """
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        targets: list[ast.expr] = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        targets = [node.target]
    else:
        return []
    return [part.id for target in targets for part in ast.walk(target)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]


def find(name: str) -> Definition:
    """The definition with a dotted name.

    Raises:
      LookupError: where the package defines no such name.

    >>> print(find("minijax.core.primitive.Primitive.bind_list").text)
    def bind_list(self, *args: Any, **params: Any) -> list:
        outs = self.bind(*args, **params)
        return outs if self.multiple_results else [outs]
    """
    module, parts = split_name(name)
    if not parts:
        raise LookupError(f"{name} is a module: name something that it defines")
    body: Sequence[ast.stmt] = module_tree(module).body
    for place, part in enumerate(parts):
        found = _defining(body, part)
        if not found:
            where = ".".join([module, *parts[:place]])
            raise LookupError(f"{where} does not define {part}{_elsewhere(where, part)}")
        body = getattr(found[-1], "body", ())
    lines = module_text(module).splitlines()
    first, last = _first_line(found[0], lines), found[-1].end_lineno or 0
    text = textwrap.dedent("\n".join(lines[first - 1:last]))
    return Definition(name, module, tuple(parts[:-1]), first, last, text)


def _elsewhere(module: str, name: str) -> str:
    """For the message: the module that does define what this one only imports."""
    home = getattr(getattr(sys.modules.get(module), name, None), "__module__", module)
    return f"; {home} does" if isinstance(home, str) and home != module else ""


def _defining(body: Sequence[ast.stmt], name: str) -> list[ast.stmt]:
    """The statements that together define a name.

    Overloads; a property and its setter.
    """
    group: list[ast.stmt] = []
    previous: ast.stmt | None = None
    for node in statements(body):
        follows = bool(group) and group[-1] is previous
        if name in bound_names(node):
            group = [*group, node] if follows else [node]
        previous = node
    return group


def set_on(node: ast.stmt) -> set[str]:
    """The names whose attributes a statement sets.

    >>> set_on(ast.parse("add_p.jvp = rule").body[0])
    {'add_p'}
    """
    if not isinstance(node, ast.Assign):
        return set()
    return {part.value.id for target in node.targets for part in ast.walk(target)
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)
            and isinstance(part.value, ast.Name)}


_RULED_OFF = re.compile(r"\s*#\s*[─—=-]{2,}")


def _first_line(node: ast.stmt, lines: Sequence[str]) -> int:
    """Where a definition begins: its decorators, and the comment that touches it, belong to it."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(d.lineno for d in decorators)])
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        if _RULED_OFF.match(lines[first - 2]):
            break
        first -= 1
    return first


def full_names(names: Sequence[str]) -> list[str]:
    """Names in full; one with a leading dot stands beside the first.

    >>> full_names(["minijax.core.primitive.Primitive.bind", ".rule"])
    ['minijax.core.primitive.Primitive.bind', 'minijax.core.primitive.Primitive.rule']
    """
    home = names[0].rpartition(".")[0]
    return [home + name if name.startswith(".") else name for name in names]


def cell_definitions(names: Sequence[str]) -> list[Definition]:
    """The definitions that a cell shows.

    Raises:
      LookupError: for an unknown name, and where they do not stand in one module or class.
    """
    found = [find(name) for name in full_names(names)]
    if len({definition.owner for definition in found}) > 1:
        raise LookupError("the definitions of one cell stand in one module or class; these are "
                          f"of {', '.join(dict.fromkeys(d.owner for d in found))}")
    return found


def cell_text(names: Sequence[str]) -> str:
    """What a live cell with these names holds."""
    found = cell_definitions(names)
    parts = [shortened(found[0].text)]
    for before, after in zip(found, found[1:], strict=False):
        parts += ["\n" * (1 + _blank_lines(before, after)), shortened(after.text)]
    return "".join(parts)


def shortened(text: str) -> str:
    """The text of definitions with the first line of each docstring in place of the whole."""
    lines = text.splitlines()
    documented = [node for node in ast.walk(ast.parse(text))
                  if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node)]
    for node in sorted(documented, key=lambda node: node.lineno, reverse=True):
        string = node.body[0]
        first, last = string.lineno, string.end_lineno or 0
        if last > first:
            lines[first - 1:last] = [lines[first - 1].rstrip() + '"""']
    return "\n".join(lines)


def _blank_lines(before: Definition, after: Definition) -> int:
    """As many as between the two in their file, or as between any two of their kind."""
    between = module_text(before.module).splitlines()[before.last:after.first - 1]
    if after.first > before.last and not any(line.strip() for line in between):
        return len(between)
    return 1 if before.classes else 2


# ---------------------------------------------------------------- what a module defines


def definitions(module: str, limit: int = MAX_LINES) -> Iterator[Definition]:
    """What of a module a course has to show.

    Functions, classes, and tables of three lines or more; of a class longer than `limit` its
    methods, one by one.
    """
    seen = set()
    for node in statements(module_tree(module).body):
        for name in bound_names(node)[:1]:
            if name in seen:
                continue
            seen.add(name)
            definition = find(f"{module}.{name}")
            size = definition.last - definition.first + 1
            if isinstance(node, ast.ClassDef) and size > limit:
                methods = {part.name: None for part in node.body
                           if isinstance(part, ast.FunctionDef)}
                yield from (find(f"{module}.{name}.{method}") for method in methods)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef) or size >= 3:
                yield definition
