"""The types of programs, for interpreters and primitives written outside the package.

Stands on `core`, `jaxpr`.  Chapter 06.  In JAX: `jax/extend/core/`.
"""

from collections.abc import Iterator
from typing import Any

from minijax import jaxpr as jaxprs
from minijax.core import Primitive
from minijax.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The programs among an equation's parameters.

    >>> from minijax import make_jaxpr, jit, numpy as jnp
    >>> eqn, = make_jaxpr(jit(jnp.sin))(1.0).eqns
    >>> list(jaxprs_in_params(eqn.params))
    [{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }]
    """
    return (closed.jaxpr for closed in jaxprs.subjaxprs(params))


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs inside a program: those among the parameters of its equations."""
    return (inner for eqn in jaxpr.eqns for inner in jaxprs_in_params(eqn.params))
