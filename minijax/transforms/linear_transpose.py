"""The transpose of a linear function, as a public transformation.

Builds on `derivatives`, `core.transpose`.  Chapter 07, *Reverse derivatives*.
In JAX: `linear_transpose` of `jax/_src/api.py`.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes, tree_util
from minijax.control_flow.program_rules import separate_known_eqns
from minijax.core import tracing, transpose
from minijax.core.jaxpr import ClosedJaxpr
from minijax.transforms.arguments import flattened
from minijax.transforms.derivatives import no_reduce_axes, unflattened_args
from minijax.util import tracebacks


def linear_transpose(fun: Callable, *primals: Any, reduce_axes: Sequence[Hashable] = ()
                     ) -> Callable:
    """The transpose of a function that is linear.

    Args:
      fun: a linear function of arrays and trees of arrays.
      primals: arguments, or only their types (`ShapeDtypeStruct`).
      reduce_axes: empty; JAX refuses others, too.

    Returns:
      A function from a cotangent of the result to a tuple of cotangents of the arguments.

    >>> linear_transpose(lambda x: 2.0 * x, 1.0)(3.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    no_reduce_axes("transpose", reduce_axes)
    flat, types = flattened(fun, primals, "linear_transpose")
    avals = [_type_of(x) for x in types]
    closed = flat.staged(avals)
    inputs, outputs = ([x.dtype for x in each] for each in (avals, closed.out_avals))
    if not any(all(dtypes.issubdtype(dtype, kind) for dtype in (*inputs, *outputs))
               for kind in (np.inexact, np.integer)):
        raise TypeError("linear_transpose only supports [float or complex] -> [float or complex], "
                        f"and integer -> integer functions, but got {inputs} -> {outputs}.")

    @tracebacks.api_boundary
    def transposed(consts: Sequence[Any], cotangent: Any) -> tuple:
        cts, tree = tree_util.tree_flatten(cotangent)
        if tree != flat.out_tree:
            raise TypeError("cotangent tree does not match function output, "
                            f"expected {flat.out_tree} but got {tree}")
        values = [tracing.check_arg(ct) for ct in cts]
        if any((x.shape, x.dtype) != (ct.shape, ct.dtype)
               for x, ct in zip(closed.out_avals, values, strict=True)):
            raise TypeError("cotangent type does not match function output, "
                            f"expected {tuple(closed.out_avals)} but got {cts}")
        program = separate_known_eqns(ClosedJaxpr(closed.jaxpr, tuple(consts)), [True] * len(avals))
        return unflattened_args(flat.in_tree, transpose.backward_pass(
            program.jaxpr, program.consts, list(map(core.Undefined, avals)), values))
    return tree_util.Partial(transposed, closed.consts)


def _type_of(x: Any) -> core.ShapedArray:
    """The type of a value, or of what has a shape and a dtype as a value has."""
    if not isinstance(x, core.Typed) and hasattr(x, "shape") and hasattr(x, "dtype"):
        return core.ShapedArray(tuple(x.shape), dtypes.canonicalize_dtype(x.dtype))
    return getattr(x, "aval", None) or core.get_aval(x)
