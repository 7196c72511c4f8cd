"""The elementary functions, for float32 and float64: no loop, no table.

Stands on exponential.py, trigonometric.py and error_function.py. Formulas of numbers, each of which
is a scalar operation of its name: `s.exp(x)`. Chapter 25.
In JAX: XLA's own polynomials (xla/codegen/math, chlo decompositions), for the rest libm.
"""

from collections.abc import Callable

from .error_function import erf, erf_inv, erfc
from .exponential import (
    acosh, asinh, atanh, cbrt, cosh, exp, exp2, expm1, log, log1p, logistic, pow, sinh, tanh,
)
from .trigonometric import acos, asin, atan, atan2, cos, sin, tan

FORMULAS: dict[str, Callable] = {formula.__name__: formula for formula in (
    exp, exp2, expm1, log, log1p, pow, cbrt, logistic, sinh, cosh, tanh, asinh, acosh, atanh,
    sin, cos, tan, asin, acos, atan, atan2, erf, erfc, erf_inv)}
