"""Lazy attributes and modules, safe under threads and forks.

Builds on nothing.  Chapter 26, *Threads, caches and dispatch*.
JAX uses `functools.cached_property`, and imports everything at once.
"""

import ast
import functools
import importlib
import logging as logging  # registers its lock for forks before ours, which is then taken first
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def hold_over_forks(*locks: Any) -> None:
    """Delay forks while another thread holds one of the locks; a child finds them free.

    Before a fork they are taken from the last to the first, those of earlier calls after them, and
    `importing` before all: a thread that imports may need any of the others. No step is made of
    Python, where a signal could interrupt it.
    """
    if hasattr(os, "register_at_fork"):
        for lock in (*locks, importing):
            os.register_at_fork(before=lock.acquire, after_in_parent=lock.release,
                                after_in_child=lock._at_fork_reinit)


# Held while a part of the package is imported: a child forked meanwhile would wait for ever for
# the module that a thread of its parent was importing.
importing = threading.RLock()
hold_over_forks()


class cached_property(functools.cached_property[T]):
    """`functools.cached_property` without the lock that Python 3.11 holds while it computes.

    That lock is one for all instances: no two threads would compile at a time, and a process
    forked meanwhile would wait for ever. Here threads that meet compute the same value twice.

    >>> class Circle:
    ...     @cached_property
    ...     def area(self):
    ...         return "computed"
    >>> Circle().area
    'computed'
    """

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self.attrname] = self.func(instance)
        return value


# ── Names of public modules ──────────────────────────────────────────────────────────────────

def attach(namespace: dict[str, Any], export: Callable[[str, Any], Any] = lambda name, value: value,
           table: dict[str, str] | None = None) -> list[str]:
    """Load the names of a module when they are first used; return them.

    Args:
      namespace: the globals of the module.
      export: takes a name and its value, and returns what users see.
      table: for each name the module that defines it. By default the names are what the module
        imports under ``if TYPE_CHECKING:``, which type checkers and editors read, too.

    Names that are not in the table are submodules.

    >>> names = {"__name__": "numbers"}
    >>> attach(names, table={"sqrt": "math"})
    ['sqrt']
    >>> names["__getattr__"]("sqrt")(9)
    3.0
    """
    module = namespace["__name__"]
    origins = _checked_imports(namespace) if table is None else {
        name: (origin, name) for name, origin in table.items()}

    def load(name: str) -> Any:
        origin, name_there = origins.get(name, (module, name))
        with importing:
            if origin == module:
                return _submodule(module, name_there)
            value = export(name, getattr(importlib.import_module(origin), name_there))
        return namespace.setdefault(name, value)

    namespace["__getattr__"] = load
    if table is None:
        namespace["__dir__"] = lambda: sorted({*namespace, *origins})
    return list(origins)


def later(module: str, function: str = "", **known: Any) -> Callable:
    """A function that loads a module, and then calls one of its functions.

    It passes the arguments that are `known`, too.

    >>> later("math", "sqrt")(9)
    3.0
    """
    def call(*args: Any, **kwargs: Any) -> Any:
        with importing:
            loaded = importlib.import_module(module)
        return getattr(loaded, function)(*args, **known, **kwargs) if function else None
    return call


def _checked_imports(namespace: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """The imports of a module for type checkers alone: each name, its module, its name there."""
    tree = ast.parse(namespace["__loader__"].get_source(namespace["__name__"]))
    return {alias.asname or alias.name: (str(node.module), alias.name)
            for block in tree.body
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
            for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def _submodule(package: str, name: str) -> Any:
    full, missing = f"{package}.{name}", f"module {package!r} has no attribute {name!r}"
    try:
        if not name.startswith("__"):
            return importlib.import_module(full)
    except ModuleNotFoundError as error:
        if error.name not in (None, full):
            raise
        missing = str(error) if error.name is None else missing
    except ImportError as error:  # JAX has it, and minijax not
        missing = str(error)
    raise AttributeError(missing)


class LastResort:
    """The last finder of modules: for an absent module of JAX it raises with an alternative."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname.startswith("minijax."):
            with importing:
                from minijax.util import absent
            if said := absent.sentence(fullname):
                raise ImportError(said, name=fullname)


sys.meta_path.append(LastResort)
