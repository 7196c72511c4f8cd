"""The types of programs, for interpreters and primitives written outside the package.

Stands on `core`, `jaxpr`.  Chapter 06.  In JAX: `jax/extend/core/`.
"""

from minijax.core import Primitive as Primitive
from minijax.jaxpr import ClosedJaxpr as ClosedJaxpr
from minijax.jaxpr import Jaxpr as Jaxpr
from minijax.jaxpr import JaxprEqn as JaxprEqn
from minijax.jaxpr import Literal as Literal
from minijax.jaxpr import Var as Var
from minijax.jaxpr import jaxpr_as_fun as jaxpr_as_fun
