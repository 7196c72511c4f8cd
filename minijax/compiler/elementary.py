"""The elementary functions, for float32 and float64: no loop, no table.

Builds on exponential.py, trigonometric.py and error_function.py: each public function of these from
numbers to a number is a formula, and a scalar operation of its name: `s.exp(x)`. Chapter 25.
In JAX: XLA's own polynomials (xla/codegen/math, chlo decompositions), for the rest libm.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any

from . import error_function, exponential, trigonometric

FORMULAS: dict[str, Callable] = {
    name: f for module in (exponential, trigonometric, error_function)
    for name, f in vars(module).items()
    if isinstance(f, FunctionType) and f.__module__ == module.__name__ and name[0] != "_"
    and set(f.__annotations__.values()) == {Any}}  # else it takes more than numbers: a helper
