"""Changes of objects in place, with undo.

Builds on `core` (for `Primitive`).  `live` uses it; an entry of the journal undoes one step.
JAX has no counterpart.
"""

import contextlib
import functools
import gc
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

MISSING: Any = object()
# What Python itself puts into a class.
AUTOMATIC = frozenset({
    "__module__", "__qualname__", "__dict__", "__weakref__", "__slots__", "__classcell__",
    "__firstlineno__", "__static_attributes__", "__type_params__", "__abstractmethods__",
    "_abc_impl", "__classdictcell__",
})  # fmt: skip
# What one function has from its source; its closure is treated apart.
_FUNCTION_PARTS = ("__code__", "__defaults__", "__kwdefaults__", "__doc__", "__annotations__")


class LiveError(TypeError):
    """A cell asks for a change that objects which exist already cannot follow.

    **What happened.** A live cell changes the running package in place.  The memory layout of
    instances (`__slots__`, the base classes that fix it) was settled when they were made.

    **The fix.** Change methods and attributes; for another layout edit the file, and restart.
    """


class Journal:
    """The changes made, each with the step that takes it back."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], Any]] = []

    def undo(self) -> None:
        while self._steps:
            self._steps.pop()()

    def set(self, obj: Any, name: str, value: Any) -> None:
        """`obj.name = value`; on a class and a module too."""
        own = vars(obj).get(name, MISSING) if hasattr(obj, "__dict__") else MISSING
        old = getattr(obj, name) if own is MISSING and _is_part(obj, name) else own
        back = (lambda: delattr(obj, name)) if old is MISSING else (
            lambda: setattr(obj, name, old))
        self._steps.append(back)
        try:
            setattr(obj, name, value)
        except TypeError as error:
            self._steps.pop()
            raise LiveError(f"{getattr(obj, '__name__', obj)}: {error}") from None

    def delete(self, obj: Any, name: str) -> None:
        old = vars(obj)[name]
        delattr(obj, name)
        self._steps.append(lambda: setattr(obj, name, old))

    def set_cell(self, cell: types.CellType, value: Any) -> None:
        try:
            old = cell.cell_contents
        except ValueError:  # it is empty
            self._steps.append(lambda: delattr(cell, "cell_contents"))
        else:
            self._steps.append(lambda: setattr(cell, "cell_contents", old))
        cell.cell_contents = value

    def remember_attributes(self, obj: Any) -> None:
        """Whatever is assigned to the object's attributes from now on can be undone."""
        if isinstance(obj, type | types.ModuleType):
            return  # these are changed through `set` only
        before = dict(vars(obj))

        def back() -> None:
            vars(obj).clear()
            vars(obj).update(before)
        self._steps.append(back)

    def refill(self, table: Any, contents: Any) -> None:
        """Give a dict, list or set other contents."""
        before = table.copy()
        self._steps.append(lambda: _refill(table, before))
        _refill(table, contents)

    @contextlib.contextmanager
    def watching_tables(self) -> Iterator[None]:
        """What is entered into the package's tables meanwhile can be taken out again."""
        before = [(table, table.copy()) for table in _tables()]
        try:
            yield
        finally:
            for table, contents in before:
                if not _same_entries(table, contents):
                    self._steps.append(functools.partial(_refill, table, contents))


def _tables() -> list[Any]:
    """The dicts, lists and sets that the package's modules name."""
    found = {id(value): value for module in package_modules()
             for name, value in list(vars(module).items())
             if type(value) in (dict, list, set) and not name.startswith("__")}
    return list(found.values())


def _same_entries(table: Any, contents: Any) -> bool:
    """Whether they hold the same objects; their own equality is not asked."""
    mine, theirs = ([*map(id, t), *map(id, t.values() if isinstance(t, dict) else ())]
                    for t in (table, contents))
    return sorted(mine) == sorted(theirs) if isinstance(table, set) else mine == theirs


def _is_part(obj: Any, name: str) -> bool:
    """Whether the attribute is a part of a function or class that its dict does not show."""
    return isinstance(obj, types.FunctionType) and name in _FUNCTION_PARTS or (
        isinstance(obj, type) and name == "__bases__")


def _refill(table: Any, contents: Any) -> None:
    table.clear()
    table.extend(contents) if isinstance(table, list) else table.update(contents)


def package_modules() -> list[types.ModuleType]:
    return [module for name, module in list(sys.modules.items())
            if name == "minijax" or name.startswith("minijax.")]


# ---------------------------------------------------------------- one object for another


def exchange(old: Any, new: Any, name: str, journal: Journal) -> None:
    """Make a module's object be what the new one is; or put the new one in all its places."""
    if old is not new and not in_place(old, new, journal):
        for module, place in _places(old, name):
            journal.set(module, place, new)


def in_place(old: Any, new: Any, journal: Journal) -> bool:
    """Give an object the contents of another; False where its kind cannot be changed."""
    from minijax.core import Primitive
    if isinstance(old, types.FunctionType) and isinstance(new, types.FunctionType):
        _change_function(old, new, journal)
    elif type(old) is not type(new):
        return False
    elif isinstance(old, Primitive):
        redirect(new, old, journal)
        journal.remember_attributes(old)
        vars(old).clear()
        for slot, rule in vars(new).items():  # some rules are methods of their primitive
            of_new = isinstance(rule, types.MethodType) and rule.__self__ is new
            vars(old)[slot] = types.MethodType(rule.__func__, old) if of_new else rule
    elif isinstance(old, dict | list | set):
        journal.refill(old, new)
    elif isinstance(inner := getattr(old, "__wrapped__", None), types.FunctionType):
        return in_place(inner, new.__wrapped__, journal)
    else:
        return False
    return True


def redirect(new: Any, old: Any, journal: Journal) -> None:
    """Let the functions that closed over the new object mean the old one, which lives on."""
    for cell in gc.get_referrers(new):
        if isinstance(cell, types.CellType):
            journal.set_cell(cell, old)


def _change_function(old: types.FunctionType, new: types.FunctionType, journal: Journal) -> None:
    mine, theirs = old.__closure__ or (), new.__closure__ or ()
    if old.__code__.co_freevars == new.__code__.co_freevars:
        for cell, other in zip(mine, theirs, strict=True):
            if not _same_contents(cell, other) and other.cell_contents is not old:
                journal.set_cell(cell, other.cell_contents)
        code = new.__code__
    else:
        code = _code_that_calls(new, old.__code__.co_freevars)
    for part in _FUNCTION_PARTS[1:]:
        journal.set(old, part, getattr(new, part))
    journal.set(old, "__code__", code)


def _same_contents(cell: types.CellType, other: types.CellType) -> bool:
    try:
        return cell.cell_contents is other.cell_contents
    except ValueError:
        return True


def _code_that_calls(function: Callable, freevars: tuple[str, ...]) -> types.CodeType:
    """The code of a function with these free variables that hands its call on.

    A function's closure is fixed, so one with other free variables cannot move in; the number of
    free variables must stay, though this code reads none of them.
    """
    def call(*args: Any, **kwargs: Any) -> Any:
        function: Any = "the function"
        return function(*args, **kwargs)

    constants = tuple(function if constant == "the function" else constant
                      for constant in call.__code__.co_consts)
    return call.__code__.replace(co_consts=constants, co_freevars=freevars,
                                 co_name=function.__name__)


def _places(old: Any, name: str) -> Iterator[tuple[Any, str]]:
    """Where the package refers to an object: names of modules, slots of primitives.

    A number or string may be the same by chance; it is followed under its own name only.
    """
    from minijax.core import Primitive
    plain = isinstance(old, int | float | complex | str | bytes | None)
    for module in package_modules():
        for place, value in list(vars(module).items()):
            if value is old and (place == name or not plain):
                yield module, place
            elif isinstance(value, Primitive) and not plain:
                yield from ((value, slot) for slot, rule in list(vars(value).items())
                            if rule is old)


# ---------------------------------------------------------------- members of classes


def exchange_member(cls: type, name: str, value: Any, journal: Journal) -> None:
    """Give a class another member, in place where the old one is a function."""
    old = vars(cls).get(name, MISSING)
    if isinstance(value, staticmethod | classmethod) and type(old) is type(value):
        exchanged = in_place(old.__func__, value.__func__, journal)
    else:
        exchanged = old is not MISSING and not isinstance(value, property) and (
            isinstance(value, types.FunctionType) or hasattr(value, "cache_clear")) and (
            in_place(old, value, journal))
    if exchanged:
        return
    journal.set(cls, name, value)
    if isinstance(value, functools.cached_property) and value.attrname is None:
        value.__set_name__(cls, name)


def belongs_to_layout(value: Any) -> bool:
    """Whether a member of a class reads a slot of its instances."""
    return isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType)
