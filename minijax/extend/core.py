"""The types of programs, for interpreters and primitives written outside the package.

Stands on `core`, `jaxpr`.  Chapter 06.  In JAX: `jax/extend/core/`.
"""

from minijax.core import Primitive
from minijax.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun
