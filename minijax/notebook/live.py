"""Live source: a cell that holds a definition of the package, and changes it when it is edited.

Builds on `source`.  Chapter 02 shows the first.  Objects are changed in place, so that an edit
reaches existing tracers, tables and primitives, and functions imported elsewhere.
JAX has no counterpart.
"""

import __future__

import ast
import linecache
import sys
import types
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from minijax.util import tracebacks
from minijax.notebook import patch, source
from minijax.notebook.patch import Journal, LiveError
from minijax.util.tracebacks import is_boundary


@dataclass
class Edit:
    """A cell whose text differs from the package's, and how to take its changes back."""

    names: tuple[str, ...]
    text: str
    journal: Journal = field(default_factory=Journal)

    def touches(self, name: str) -> bool:
        """Whether it edits the definition, something inside it, or something around it."""
        return any(f"{mine}.".startswith(f"{name}.") or f"{name}.".startswith(f"{mine}.")
                   for mine in self.names)


_edits: list[Edit] = []


def live(names: str | Sequence[str], text: str) -> bool:
    """Let the running package do what `text` says; returns whether that changed anything.

    Args:
      names: the definitions that the text replaces, as in a `%%live` line.
      text: their new source; if it is the package's own, earlier edits of it are undone.

    Whatever goes wrong, the package is as it was before the call.

    >>> import minijax
    >>> old = source.find("minijax.core.trace.Tracer.trace_name").text
    >>> live("minijax.core.trace.Tracer.trace_name", old)
    False
    """
    names = tuple(source.full_names(names.split() if isinstance(names, str) else names))
    original = source.cell_text(names)
    before = [edit for edit in _edits if edit.names == names]
    if text.strip() == original.strip():
        _replace(before, [])
        return bool(before)
    compile(text, "<cell>", "exec", ast.PyCF_ONLY_AST)  # a wrong syntax is an early error
    _replace(before, [Edit(names, text.rstrip() + "\n")])
    return True


def live_reset(*names: str) -> list[str]:
    """Undo the edits of these definitions, or all; returns the names of what was restored."""
    for name in names:
        source.find(name)
    gone = [edit for edit in _edits
            if not names or any(edit.touches(name) for name in names)]
    _replace(gone, [])
    return [name for edit in gone for name in edit.names]


def edited() -> list[str]:
    """The names of the definitions that are not as in the package's files."""
    return [name for edit in _edits for name in edit.names]


def _replace(old: Sequence[Edit], new: Sequence[Edit]) -> None:
    """Undo back to the first of the old edits; make the later ones again, and the new ones."""
    if not old and not new:
        return
    wanted = [edit for edit in _edits if edit not in old] + list(new)
    kept = 0
    while kept < len(_edits) and kept < len(wanted) and _edits[kept] is wanted[kept]:
        kept += 1
    previous = _edits[kept:]
    _undo_down_to(kept)
    try:
        for edit in wanted[kept:]:
            _make(edit)
    except BaseException:
        _undo_down_to(kept)
        for edit in previous:
            _make(edit)
        raise
    finally:
        forget_what_was_traced()


def _undo_down_to(count: int) -> None:
    while len(_edits) > count:
        _edits.pop().journal.undo()


def _make(edit: Edit) -> None:
    edit.journal = Journal()
    try:
        _apply(edit)
    except BaseException:
        edit.journal.undo()
        raise
    _edits.append(edit)


def forget_what_was_traced() -> None:
    """Empty every cache of the package that remembers what its functions did."""
    from minijax.transforms.jit import clear_caches
    clear_caches()
    for module in patch.package_modules():
        for value in list(vars(module).values()):
            if callable(clear := getattr(value, "cache_clear", None)):
                clear()


# ---------------------------------------------------------------- from text to changes


@dataclass
class Scope:
    """Where an edit's statements run, and how they are compiled."""

    module: types.ModuleType
    owner: type | None
    filename: str
    journal: Journal
    bound_later: frozenset[str]  # names that the cell defines, and the module once more below it

    def run(self, nodes: Sequence[ast.stmt], names: dict[str, Any]) -> dict[str, Any]:
        """Run statements as the module's own; what they define goes to `names`."""
        tree = ast.fix_missing_locations(ast.Module(list(nodes), []))
        globals_ = vars(self.module)
        flags = 0
        if globals_.get("annotations") is __future__.annotations:
            flags = __future__.annotations.compiler_flag
        exec(compile(tree, self.filename, "exec", flags, dont_inherit=True), globals_, names)
        return names

    def members(self, cls: type, nodes: Sequence[ast.stmt]) -> dict[str, Any]:
        """What statements of a class's body define, `super()` and private names as in it."""
        before = dict(vars(cls))

        def collect(name: str, bases: tuple, names: dict[str, Any]) -> dict[str, Any]:
            return names

        collect.__prepare__ = lambda name, bases: dict(before)  # type: ignore[attr-defined]
        metaclass = ast.keyword("metaclass", ast.Name("__collect__", ast.Load()))
        body = ast.ClassDef(cls.__name__, [], [metaclass], list(nodes), [])
        if sys.version_info >= (3, 12):
            body.type_params = []
        ast.copy_location(body, nodes[0])
        found = self.run([body], {"__collect__": collect})[cls.__name__]
        if cell := found.pop("__classcell__", None):
            cell.cell_contents = cls
        return {name: value for name, value in found.items()
                if before.get(name, patch.MISSING) is not value and name not in patch.AUTOMATIC}


def _apply(edit: Edit) -> None:
    """Make the changes of an edit, each entered in its journal."""
    parts = source.cell_definitions(edit.names)
    module, owner = source.import_owner(parts[0])
    _keep_apart(module, edit)
    before = ast.parse(source.cell_text(edit.names)).body
    scope = Scope(module, owner, _file_for(edit), edit.journal, _bound_later(parts, before))
    known = {ast.dump(node) for node in before}
    changed = [node for node in ast.parse(edit.text, scope.filename).body
               if ast.dump(node) not in known]
    if owner is not None:
        _change_members(scope, owner, changed)
        return
    for node in changed:
        old = next((n for n in before if isinstance(n, ast.ClassDef)
                    and isinstance(node, ast.ClassDef) and n.name == node.name), None)
        if old is not None and isinstance(node, ast.ClassDef):
            _change_class(scope, getattr(module, node.name), old, node)
        else:
            _change_module(scope, node)


def _bound_later(parts: Sequence[source.Definition], nodes: Sequence[ast.stmt]
                 ) -> frozenset[str]:
    last = parts[-1].last
    names = [] if parts[0].classes else [n for node in nodes for n in source.bound_names(node)]
    return frozenset(n for n in names if source.find(f"{parts[0].module}.{n}").first > last)


def _keep_apart(module: types.ModuleType, edit: Edit) -> None:
    """Find no kernel on disk by its program's name while the package is not as in its files; and
    none by its text, either, while the way to compile texts is edited.
    """
    from minijax.compiler import cache, digest
    edit.journal.set(digest, "package", digest.unnameable)
    if module.__name__ == "minijax.compiler.cpu":
        edit.journal.set(cache, "MAGIC", cache.MAGIC + edit.text.encode())


def _file_for(edit: Edit) -> str:
    """A file name under which tracebacks find the cell's text."""
    filename = f"{tracebacks.LIVE}{' '.join(edit.names)}>"
    lines = edit.text.splitlines(keepends=True)
    linecache.cache[filename] = (len(edit.text), None, lines, filename)
    return filename


def _change_module(scope: Scope, node: ast.stmt) -> None:
    """Run one statement of a module and put what it defines in the place of the old."""
    found = _run_settings(scope, node)
    names = vars(scope.module)
    for name, value in found.items():
        if name in scope.bound_later:
            continue
        if name in names:
            old = names[name]
            if is_boundary(old) and not is_boundary(value):  # put around it when it was exported
                old = old.__wrapped__
            patch.exchange(old, value, name, scope.journal)
        else:
            scope.journal.set(scope.module, name, value)


def _run_settings(scope: Scope, node: ast.stmt) -> dict[str, Any]:
    """Run a statement; what it sets on objects that exist can be undone."""
    for name in (source.set_on(node) | _spoken_to(node)) & set(vars(scope.module)):
        if hasattr(obj := getattr(scope.module, name), "__dict__"):
            scope.journal.remember_attributes(obj)
    with scope.journal.watching_tables():  # it may register what it defines
        return scope.run([node], {})


def _spoken_to(node: ast.stmt) -> set[str]:
    """The objects of whose methods a statement makes use, as in `@relu.defjvp`."""
    spoken = list(getattr(node, "decorator_list", []))
    if isinstance(node, ast.Expr):
        spoken.append(node.value)
    return {part.value.id for expression in spoken for part in ast.walk(expression)
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name)}


def _change_members(scope: Scope, cls: type, nodes: Sequence[ast.stmt]) -> None:
    if not nodes:
        return
    if any("__slots__" in source.bound_names(node) for node in nodes):
        raise LiveError(f"the slots of {cls.__name__} are part of its instances, and there are "
                        "some; a class that lives can change its methods and attributes only")
    for name, value in scope.members(cls, nodes).items():
        patch.exchange_member(cls, name, value, scope.journal)


def _change_class(scope: Scope, cls: type, old: ast.ClassDef, new: ast.ClassDef) -> None:
    """Change what differs between two texts of a class; the rest, its tables too, stays."""
    known = {ast.dump(node) for node in old.body}
    changed = [node for node in new.body if ast.dump(node) not in known]
    if _header(old) != _header(new) or _fields(old) != _fields(new):
        _rebuild_class(scope, cls, new, changed)
        return
    _change_members(scope, cls, changed)
    left = {name for node in new.body for name in source.bound_names(node)}
    for name in {name for node in old.body for name in source.bound_names(node)} - left:
        if name in vars(cls):
            scope.journal.delete(cls, name)


def _header(node: ast.ClassDef) -> list[str]:
    return [ast.dump(part) for part in (*node.bases, *node.keywords, *node.decorator_list)]


def _fields(node: ast.ClassDef) -> list[str]:
    """The annotated fields, from which decorators and `NamedTuple` make methods."""
    made = [*node.decorator_list, *(b for b in node.bases if "Tuple" in ast.dump(b))]
    return [ast.dump(part) for part in node.body if isinstance(part, ast.AnnAssign) and made]


def _rebuild_class(scope: Scope, cls: type, node: ast.ClassDef,
                   changed: Sequence[ast.stmt]) -> None:
    """Make the class anew, and move all that it has into the old one; but tables stay."""
    new = scope.run([node], {})[cls.__name__]
    patch.redirect(new, cls, scope.journal)
    if vars(new).get("__slots__") != vars(cls).get("__slots__"):
        raise LiveError(f"the slots of {cls.__name__} are part of its instances, and there are "
                        "some; a class that lives can change its methods and attributes only")
    stays = {name for part in node.body if isinstance(part, ast.Assign) and part not in changed
             for name in source.bound_names(part)}
    if new.__bases__ != cls.__bases__:
        scope.journal.set(cls, "__bases__", new.__bases__)
    for name, value in list(vars(new).items()):
        if name not in stays | patch.AUTOMATIC and not patch.belongs_to_layout(value):
            patch.exchange_member(cls, name, value, scope.journal)
    for name, value in list(vars(cls).items()):
        gone = name not in vars(new) and name not in patch.AUTOMATIC
        if gone and not patch.belongs_to_layout(value):
            scope.journal.delete(cls, name)
