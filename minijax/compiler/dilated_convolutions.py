"""Convolutions of images that are dilated by zeros, as in decoders and derivatives of strides.

Results that are as far apart as the numbers of the image meet the same weights: they are a
convolution of the image itself.  Builds on `primitives`.  Chapter 22.  XLA multiplies the zeros.
"""

import itertools
import math
from collections.abc import Sequence

from minijax.core import Array, as_value, tracing
from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn
from minijax.primitives.ad_util import broadcast_at, merged
from minijax.primitives.joining import concatenate
from minijax.primitives.shape import expand_dims
from minijax.primitives.slicing import slice

MIN_PRODUCTS = 1 << 20  # with fewer, several convolutions take longer to compile


def by_phases(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The program that replaces a convolution of a dilated image; None for another equation.

    >>> import minijax, numpy as np
    >>> f = lambda x, w: minijax.lax.conv_transpose(x, w, (2,), "SAME")
    >>> closed = minijax.make_jaxpr(f)(np.ones((99, 99, 8)), np.ones((4, 8, 8)))
    >>> [eqn.params["lhs_dilation"] for eqn in by_phases(closed.eqns[-1]).eqns[1:4:2]]
    [(1,), (1,)]
    """
    if eqn.primitive.name != "conv_general_dilated":
        return None
    (x, w), [out], apart = (v.aval for v in eqn.invars), eqn.outvars, eqn.params["lhs_dilation"]
    _, (outputs, *_), (_, _, *axes) = eqn.params["dimension_numbers"]
    places = [out.aval.shape[d] for d in axes]
    if (math.prod(apart) == 1
            or {*eqn.params["window_strides"], *eqn.params["rhs_dilation"]} != {1}
            or any(n < d for n, d in zip(places, apart, strict=True))
            or out.aval.size * w.size // w.shape[outputs] < MIN_PRODUCTS):
        return None

    def convolved(x: Array, w: Array) -> list[Array]:
        parts = [_of_phase(eqn, phase, x, w) for phase in itertools.product(*map(range, apart))]
        for axis, d in reversed([*zip(axes, apart, strict=True)]):
            parts = [_interleaved(parts[k:k + d], axis) for k in range(0, len(parts), d)]
        return [slice(parts[0], [0] * out.aval.ndim, out.aval.shape)]
    return tracing.stage(convolved, [x, w])


def _of_phase(eqn: JaxprEqn, phase: Sequence[int], x: Array, w: Array) -> Array:
    """The results from this place on, as far apart as the numbers of the image; at the end there
    may be one too many.
    """
    params, (images, weights, results) = eqn.params, eqn.params["dimension_numbers"]
    shape, starts, steps, padding = [*eqn.outvars[0].aval.shape], [0] * w.ndim, [1] * w.ndim, []
    for p, d, (before, _), i, k, o in zip(phase, params["lhs_dilation"], params["padding"],
                                          images[2:], weights[2:], results[2:], strict=True):
        starts[k], steps[k], shape[o] = (before - p) % d, d, -(-shape[o] // d)
        first = (p + starts[k] - before) // d  # number of the image that the window meets
        size = -(-(w.shape[k] - starts[k]) // d)
        padding.append((-first, shape[o] - x.shape[i] + first + size - 1))
        if size <= 0:  # it meets none
            zero = eqn.outvars[0].aval.dtype.type(0)
            return broadcast_at(as_value(zero), (), tuple(shape))
    return eqn.primitive.bind(x, slice(w, starts, w.shape, steps), **params | {
        "padding": tuple(padding), "lhs_dilation": (1,) * len(padding)})


def _interleaved(parts: Sequence[Array], axis: int) -> Array:
    """The first elements along an axis, then the second ones."""
    return merged(concatenate([expand_dims(x, [axis + 1]) for x in parts], axis + 1), axis)
