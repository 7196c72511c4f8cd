"""Primitive dce_sink: a use of a value, which protects its equations from elimination.

Builds on `core`.  Chapter 06, *Programs as data*, reads programs.
In JAX: `jax/_src/lax/lax.py` (`dce_sink`).
"""

from collections.abc import Sequence
from typing import Any

from minijax import tree_util
from minijax.core import Array, Effect, Outs, Zero
from minijax.primitives.families import without_results


class NoDCEEffect(Effect):
    """A value counts as used: dead code elimination keeps the equation and those it needs."""


def _jvp(primals: Sequence[Array], tangents: Sequence[Any], **params: Any) -> Outs:
    for x in (*primals, *(t for t in tangents if not isinstance(t, Zero))):
        dce_sink_p.bind(x, **params)
    return [], []


dce_sink_p = without_results(
    "dce_sink", NoDCEEffect(),
    impl=lambda *_, **__: [],
    jvp=_jvp,
    batch=lambda axis, args, dims, **params: (dce_sink_p.bind(*args, **params), []),
    loop=lambda b, outs, operands, **_: None,
    handles_keys=True)


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Count a value as used: dead code elimination keeps the equations that make it.

    Args:
      val: a tree of arrays.
      prevent_mlir_dce: accepted for JAX's sake; the compiler does not compute the value.

    >>> import minijax as jax
    >>> jax.make_jaxpr(dce_sink)(1.)
    { lambda ; a:f32[]. let dce_sink[prevent_mlir_dce=False] a in () }
    """
    for leaf in tree_util.tree_leaves(val):
        dce_sink_p.bind(leaf, prevent_mlir_dce=prevent_mlir_dce)
