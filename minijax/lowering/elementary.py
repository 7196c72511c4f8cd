"""Every elementary function, for float32 and float64: no branch, no call, no table.

Stands on exponential.py, trigonometric.py and error_function.py; `f(s, x)` writes the function with
the builder `s`, or computes it with NumpyScalars. Chapter 25.
In JAX: XLA's own polynomials (xla/codegen/math, chlo decompositions), for the rest libm.
"""

from .error_function import erf, erf_inv, erfc
from .exponential import (
    acosh,
    asinh,
    atanh,
    cbrt,
    cosh,
    exp,
    exp2,
    expm1,
    log,
    log1p,
    logistic,
    pow,
    sinh,
    tanh,
)
from .trigonometric import acos, asin, atan, atan2, cos, sin, tan

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf",
    "erf_inv", "erfc", "exp", "exp2", "expm1", "log", "log1p", "logistic", "pow", "sin", "sinh",
    "tan", "tanh",
]
