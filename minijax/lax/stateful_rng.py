"""Random numbers from a generator with a hidden state: `lax.rng_uniform`.

Builds on `core`; compiled code reaches the generator, NumPy's, through `compiler.host`.
In JAX: `jax/_src/lax/lax.py`, and the state is XLA's.
"""

import functools
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import Array, Effect, Primitive, ShapedArray, cannot, refuse
from minijax.primitives.axes import Shape, canonical_shape, check_sizes


class StateEffect(Effect):
    """A hidden state changes: the equation returns other numbers each time."""

    def __repr__(self) -> str:
        return "RandomState"


state_effect = StateEffect()
_generator = np.random.default_rng()  # from the system's entropy, so no run repeats another


def _draw(low: np.ndarray, high: np.ndarray, *, shape: Shape) -> list[np.ndarray]:
    dtype = low.dtype
    if np.issubdtype(dtype, np.integer):
        a, b = int(low), int(high)  # Python's, as a + 1 may exceed the dtype
        return [np.asarray(_generator.integers(a, max(b, a + 1), shape, dtype))]
    steps = 1 << dtypes.finfo(dtype).nmant  # fractions of which are exact, and less than one
    with np.errstate(all="ignore"):
        fraction = (_generator.integers(0, steps, shape) / steps).astype(dtype)
        sample = np.asarray(low + (high - low) * fraction)
    return [np.where(sample < high, sample, low).astype(dtype)]  # may have been rounded to `high`


def _type(a: ShapedArray, b: ShapedArray, *, shape: Shape) -> list[ShapedArray]:
    is_real = any(dtypes.issubdtype(a.dtype, kind) for kind in (np.integer, np.floating))
    refuse((a.dtype != b.dtype, "Arguments to rng_uniform must have identical dtypes, got "
            f"{a.dtype} and {b.dtype}."),
           (bool(a.shape or b.shape), "Arguments to rng_uniform must be scalars; got shapes "
            f"{a.shape} and {b.shape}."),
           (not is_real, f"rng_uniform must get integers or real numbers, got {a.dtype}."),
           error=ValueError)
    check_sizes("rng_uniform", "shape", shape)
    return [ShapedArray(shape, a.dtype, weak_type=a.weak_type and b.weak_type)]


rng_uniform_p = Primitive(
    "rng_uniform",
    impl=_draw,
    abstract_eval=_type,
    jvp=cannot("each call draws new numbers; jax.random.uniform has a derivative."),
    transpose=cannot("each call draws new numbers; it is not linear."),
    batch=cannot("it draws numbers for one call; jax.random.uniform draws them for a batch."),
    loop=lambda b, outs, operands, *, shape: b.host_call(
        functools.partial(_draw, shape=shape), operands, outs),
    effects=lambda **_: frozenset([state_effect]),
    may_produce_nan=True,
    examples=list)  # no two evaluations agree; its tests look at the range and the spread


def rng_uniform(a: Any, b: Any, shape: Any) -> Array:
    """Random numbers from `a` up to but not including `b`, different on each call.

    The state is hidden: no seed repeats them, in JAX neither.  Prefer `jax.random.uniform`.

    Args:
      a, b: scalars of one integer or real dtype; where b is not above a, all that is drawn is a.
      shape: of the result.

    Raises:
      ValueError: for bounds that are no scalars, or not of one dtype of numbers.

    >>> rng_uniform(0., 1., (2, 3)).shape
    (2, 3)
    """
    return rng_uniform_p.bind(a, b, shape=canonical_shape(shape))
