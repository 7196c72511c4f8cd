"""What public modules show: their functions as boundaries.

Builds on `tracebacks`.  Chapter 21, *The errors, one by one*.
In JAX: the decorator `api_boundary` and lists of imports.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from minijax.util.tracebacks import api_boundary, is_boundary

# Two names of one function stay one function.
_boundary_of = functools.cache(functools.partial(api_boundary, is_whole=True))


def exported(name: str, value: Any, boundary_of: Callable[[Any], Any] = _boundary_of) -> Any:
    """The public form of a `value` of a module: for a function, a boundary.

    Inside the package functions are called where they are written, and no boundary is crossed.
    Those of a module `arguments` work for the functions that users call, and are none of these.
    """
    is_function = inspect.isfunction(value) and not is_boundary(value) and (
        not value.__module__.endswith(".arguments"))
    return boundary_of(value) if is_function else value


def export_all(namespace: dict[str, Any], export: Callable[[str, Any], Any] = exported) -> None:
    """Make boundaries of all functions of a public module, which calls this at its end."""
    namespace |= {name: export(name, value) for name, value in namespace.items()
                  if not name.startswith("_")}
