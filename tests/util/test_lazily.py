"""Public modules load their names when they are first used."""

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import minijax
from minijax.util import lazily

LAZY = ["minijax", "minijax.core", "minijax.numpy", "minijax.lax", "minijax.random", "minijax.nn",
        "minijax.scipy", "minijax.tree_util"]


def origins(name):
    module = importlib.import_module(name)
    return module, lazily._checked_imports(vars(module))


@pytest.mark.parametrize("name", LAZY)
def test_every_name_is_there_and_is_that_of_its_module(name):
    module, names = origins(name)
    assert names and set(names) <= set(dir(module))
    for public, (origin, name_there) in names.items():
        value, home = getattr(module, public), importlib.import_module(origin)
        theirs = getattr(home, name_there)
        assert value is theirs or callable(value) and (
            inspect.unwrap(value, stop=lambda f: f is theirs) is theirs)


@pytest.mark.parametrize("name", LAZY)
def test_no_name_is_also_a_module_of_the_package_which_an_import_would_put_in_its_place(name):
    module, names = origins(name)
    modules = {info.name for info in pkgutil.iter_modules(getattr(module, "__path__", []))}
    assert not [public for public, (origin, _) in names.items()
                if public in modules and origin != name]


def test_only_what_is_imported_for_type_checkers_is_taken():
    class Loader:
        get_source = staticmethod(lambda name: (
            "if TYPE_CHECKING:\n    from a import b as c\nif True:\n    from d import e\n"))
    assert lazily._checked_imports({"__name__": "x", "__loader__": Loader}) == {"c": ("a", "b")}


def test_a_name_that_is_missing_is_an_attribute_error_as_of_any_module():
    with pytest.raises(AttributeError, match=r"module 'minijax\.numpy' has no attribute 'sinn'"):
        minijax.numpy.sinn  # noqa: B018
    assert not hasattr(minijax.numpy, "__wrapped__")


def test_importing_the_package_loads_neither_numpys_functions_nor_the_compiler():
    loaded = subprocess.run(
        [sys.executable, "-c", "import minijax, sys; print(*sys.modules)"],
        capture_output=True, text=True, check=True).stdout.split()
    heavy = ("minijax.numpy", "minijax.lax", "minijax.primitives", "minijax.compiler",
             "minijax.transforms", "minijax.placement")
    assert not [name for name in loaded if name.startswith(heavy)]
