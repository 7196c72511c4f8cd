"""The import hook: `jax.x` is the module `minijax.x` itself, and `names` adds JAX's internals.

Builds on `names`.  JAX has no counterpart.
"""

import difflib
import functools
import importlib
import importlib.abc
import importlib.util
import re
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any, NoReturn

from minijax.util import absent
from minijax.as_jax.names import OURS

ROOT, PACKAGE = "jax", "minijax"


class View(types.ModuleType):
    """A module of JAX that has more names than ours, or has no counterpart here."""

    def __init__(self, name: str, ours: types.ModuleType | None):
        super().__init__(name, f"What minijax has of `{name}`.")
        self.__dict__.update(__path__=[], _ours=ours)

    def __getattr__(self, name: str) -> Any:
        full = f"{self.__name__}.{name}"
        if full in OURS:
            value = ours_at(OURS[full])
        elif not isinstance(getattr(self._ours, name, self), types.ModuleType):
            return getattr(self._ours, name)  # a function may have the name of its module
        elif not name.startswith("__") and module_for(full):
            value = importlib.import_module(full)
        elif hasattr(self._ours, name):
            return getattr(self._ours, name)  # not cached: it may be lazy, or change
        else:
            refuse(self, name)
        setattr(self, name, value)
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(absent.sentence(self.__name__))  # imported as a function

    def __dir__(self) -> list[str]:
        start = f"{self.__name__}."
        rows = {row.removeprefix(start).partition(".")[0] for row in OURS if row.startswith(start)}
        return sorted({*super().__dir__(), *dir(self._ours), *rows})


def ours_at(path: str) -> Any:
    """The object at a dotted path in the package."""
    module, _, name = path.rpartition(".")
    if (submodule := import_if_present(f"{PACKAGE}.{path}")) is not None:
        return submodule
    parent = importlib.import_module(f"{PACKAGE}.{module}" if module else PACKAGE)
    return getattr(parent, name)


@functools.cache
def module_for(name: str) -> types.ModuleType | None:
    """The module that is `name` here, such as ``jax.numpy``; None where there is none."""
    path = OURS.get(name) or (
        name.removeprefix(ROOT).removeprefix(".").removeprefix("_src").removeprefix("."))
    ours = import_if_present(f"{PACKAGE}.{path}".rstrip("."))
    if name == f"{ROOT}._src" or any(row.startswith(f"{name}.") for row in OURS):
        return View(name, None if name == f"{ROOT}._src" else ours)
    if ours and not hasattr(ours, "__getattr__"):
        vars(ours)["__getattr__"] = functools.partial(refuse, ours)
    return ours


def imported(name: str) -> types.ModuleType | None:
    """The module that an import gives: one that minijax lacks can be imported, and refuses use.

    A library may import Pallas for a kernel that it never runs on a CPU; of `jax.lib` JAX itself
    has no more.
    """
    lacks = not name.startswith(f"{ROOT}.lib.") and absent.sentence(name)
    return module_for(name) or (View(name, None) if lacks else None)


def import_if_present(name: str) -> types.ModuleType | None:
    """A module of the package, imported where it exists."""
    if absent.sentence(name):
        return None
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or name.startswith(error.name):
            return None
        raise


def refuse(module: types.ModuleType, name: str) -> NoReturn:
    """Raise for a name of JAX's that minijax lacks, with the nearest that it has."""
    raise AttributeError(missing(module.__name__, name, dir(module)), name=name, obj=module)


def missing(module: str, name: str, names: list[str]) -> str:
    if sentence := absent.sentence(f"{module}.{name}"):
        return sentence
    theirs = {f"{PACKAGE}.{ours}": row for row, ours in OURS.items() if ours.startswith("as_jax.")}
    where = theirs.get(module) or re.sub(f"^{PACKAGE}", ROOT, module)
    closest = difflib.get_close_matches(name, [n for n in names if not n.startswith("_")], 1)
    hint = f"; the closest name is {where}.{closest[0]}" if closest else ""
    return f"minijax, which is `jax` in this process, has no {where}.{name}{hint}."


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `jax` and what is inside it."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] != ROOT or imported(fullname) is None:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        module: Any = imported(spec.name)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Give a module of ours its own spec back, which the import system replaced."""
        if module.__spec__ and module.__spec__.loader_state:
            module.__spec__ = module.__spec__.loader_state


class LastResort(importlib.abc.MetaPathFinder):
    """Raises when no finder has a module: the error names what `from jax.x import y` lacks."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        parent, _, name = fullname.rpartition(".")
        if parent.partition(".")[0] in (ROOT, PACKAGE) and parent in sys.modules:
            # a name of its own: for an error with this module's the import system has other words
            refusal = ImportError if absent.sentence(fullname) else ModuleNotFoundError
            raise refusal(missing(parent, name, dir(sys.modules[parent])))


def install() -> None:
    """Make `jax` minijax, from now on.

    Raises:
      ImportError: where JAX itself was imported before.
    """
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return
    if ROOT in sys.modules:
        where = getattr(sys.modules[ROOT], "__file__", "an unknown place")
        raise ImportError(f"JAX itself is loaded already (from {where}), and a process can have "
                          "one `jax` only. Import minijax.as_jax first, before any library that "
                          "imports jax; or start with `python -m minijax.as_jax script.py`, "
                          "`pytest -p minijax.as_jax`.")
    sys.meta_path.insert(0, Finder())
    sys.meta_path.append(LastResort())
