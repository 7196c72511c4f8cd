"""Every elementary function, for float32 and float64: no branch, no call, no table.

Stands on exponential.py, trigonometric.py and error_function.py. Formulas of numbers:
`primitives.slots.elementary(name)` writes one with a builder, or computes it. Chapter 25.
In JAX: XLA's own polynomials (xla/codegen/math, chlo decompositions), for the rest libm.
"""

from .error_function import *  # noqa: F403
from .exponential import *  # noqa: F403
from .trigonometric import *  # noqa: F403
