"""The elementary functions, for float32 and float64: no loop, no table.

Stands on exponential.py, trigonometric.py and error_function.py. Formulas of numbers, each of which
is a scalar operation of its name: `s.exp(x)`. Chapter 25.
In JAX: XLA's own polynomials (xla/codegen/math, chlo decompositions), for the rest libm.
"""

from collections.abc import Callable

from . import error_function, exponential, trigonometric

FORMULAS: dict[str, Callable] = {name: getattr(module, name) for module, names in (
    (exponential, "exp exp2 expm1 log log1p pow cbrt logistic sinh cosh tanh asinh acosh atanh"),
    (trigonometric, "sin cos tan asin acos atan atan2"), (error_function, "erf erfc erf_inv"),
) for name in names.split()}
