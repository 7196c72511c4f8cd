"""What JAX's tests import from inside of JAX: ours where we have it, otherwise a stand-in.

`jax._src.X.name` is looked up in `INTERNALS`, in the table of `minijax.as_jax.names`, and in the
modules of ours whose path is nearest.  A name that is nowhere may be imported; a test that uses it
stops with `NeedsInternals`.  JAX's own helpers of tests are read from the checkout.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

from minijax.as_jax import finder, names
from minijax.util import absent

INTERNAL = "jax._src"
# Helpers of tests, which run as they are in the checkout.
HELPERS = ("test_util", "test_loader", "test_warning_util", "public_test_util", "lax_reference",
           "hypothesis_test_util", "internal_test_util")
# JAX's module → where ours has its names, besides the modules whose path is nearest.
PLACES = {
    "core": "extend.core extend.core.primitives core.jaxpr core.tracing core.trace core.primitive "
            "core errors",
    "api": "transforms.api transforms.jit",
    "interpreters.ad": "extend.rules core.jvp core",
    "interpreters.batching": "extend.rules extend.vmappable core.vmap",
    "interpreters.partial_eval": "core.tracing core.partial_eval core.dce extend.core",
    "interpreters.mlir": "extend.rules",
    "interpreters.pxla": "sharding",
    "api_util": "as_jax.internals",
    "linear_util": "extend.linear_util",
    "sharding_impls": "sharding placement.named_sharding",
    "mesh": "sharding placement.meshes",
    "custom_derivatives": "custom_derivatives",
    "numpy.util": "numpy.arguments",
    "numpy.array_constructors": "numpy",
    "state.types": "transforms.array_refs",
    "xla_bridge": "extend.backend",
    "debugging": "debug",
    "util": "as_jax.internals", "traceback_util": "util.tracebacks errors",
    "array": "core",
    "pjit": "sharding transforms.jit transforms.compiled experimental.pjit",
    "ad_checkpoint": "ad_checkpoint",
    "random": "primitives.keys",
    "random.prng": "extend.random primitives.keys dtypes",
    "random.threefry2x32": "extend.random primitives.keys primitives.threefry",
}

running = False  # a test runs: what is missing may no longer be passed on


class NeedsInternals(BaseException):
    """A test uses something inside of JAX that has no counterpart here."""


class Missing:
    """An object inside of JAX: it may be imported and mentioned, not used."""

    def __init__(self, name: str):
        self.__dict__.update(__name__=name, __qualname__=name)

    def _use(self, *_: Any, **__: Any) -> Missing:
        if running:
            raise NeedsInternals(self.__name__)
        return Missing(f"{self.__name__}()")

    def __getattr__(self, name: str) -> Any:
        if name == "__bases__" and running:  # `issubclass` asks for it
            raise NeedsInternals(self.__name__)
        if name.startswith("__") and name != "__members__":
            raise AttributeError(name)
        return Missing(f"{self.__name__}.{name}")

    def __mro_entries__(self, bases: tuple) -> tuple:
        return ()

    def __iter__(self) -> Any:
        self._use()
        return iter([Missing(f"{self.__name__}[0]")])  # one case of a parametrised test

    __call__ = __getitem__ = __setitem__ = __enter__ = __exit__ = __bool__ = __len__ = _use
    __instancecheck__ = __or__ = __ror__ = __add__ = __int__ = __index__ = _use
    __eq__ = __lt__ = __gt__ = __le__ = __ge__ = _use  # type: ignore[assignment]
    __hash__ = object.__hash__


class StandIn(types.ModuleType):
    """A module inside of JAX."""

    def __init__(self, name: str):
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = ours(self.__name__, name)
        setattr(self, name, value)
        return value


def places(module: str) -> list[str]:
    """Our modules that may have the names of one of JAX's, the nearest first."""
    path = module.removeprefix("jax.").removeprefix("_src").removeprefix(".")
    parts = path.split(".") if path else []
    nearest = [".".join(parts[:n]) for n in range(len(parts), -1, -1)]
    return [f"minijax.{x}".rstrip(".") for x in (*PLACES.get(path, "").split(), *nearest)]


def ours(module: str, name: str) -> Any:
    """Our object of a name in one of JAX's modules, a module inside of JAX, or what is missing."""
    from tests.jax_suite.internals import INTERNALS
    full = f"{module}.{name}"
    path = full.removeprefix(f"{INTERNAL}.")
    if path in INTERNALS:
        return INTERNALS[path]
    if is_module(full):
        return importlib.import_module(full)
    for row in (full, f"jax.{path}"):
        if row in names.OURS:
            return finder.ours_at(names.OURS[row])
    for place in places(module):
        if (there := finder.import_if_present(place)) and hasattr(there, name) and not (
                isinstance(getattr(there, name), types.ModuleType)):
            return getattr(there, name)
    return Missing(full)


checkout = Path()  # of JAX's repository


def is_module(name: str) -> bool:
    """Whether JAX has a module of this name."""
    path = checkout.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds JAX's helpers of tests, and what is inside of JAX."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None
                  ) -> importlib.machinery.ModuleSpec | None:
        private = fullname == INTERNAL or fullname.startswith(f"{INTERNAL}.")
        if not fullname.startswith("jax.") or not (
                is_module(fullname) or absent.sentence(fullname)):
            return None
        if private and fullname.split(".")[2:3] and fullname.split(".")[2] in HELPERS:
            file = checkout.joinpath(*fullname.split("."))
            if file.is_dir():
                return importlib.util.spec_from_file_location(
                    fullname, file / "__init__.py", submodule_search_locations=[str(file)])
            return importlib.util.spec_from_file_location(fullname, file.with_suffix(".py"))
        if private or absent.sentence(fullname) or "._" in fullname or (
                finder.module_for(fullname) is None):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """A stand-in is filled name by name."""


def install(folder: Path) -> None:
    """Make `jax` minijax in this process, and what is inside of JAX stand-ins."""
    global checkout
    checkout = folder
    finder.install()
    sys.meta_path.insert(0, Finder())
    experimental: Any = importlib.import_module("jax.experimental")
    for name in ("primal_tangent_dtype",):  # public names that tests import and few cases use
        setattr(experimental, name, Missing(f"jax.experimental.{name}"))
