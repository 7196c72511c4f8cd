"""Products of numbers in blocks, each block with a scale: `scaled_dot`.

Builds on `contract`.  Each scale is broadcast over its block; one product does the rest.
In JAX: `jax/_src/lax/scaled_dot.py`.
"""

from typing import Any

import numpy as np

from minijax import core, dtypes
from minijax.core import Array, refuse
from minijax.primitives import algebra, convert
from minijax.primitives.axes import Axes, as_dims
from minijax.primitives.contract import DotDimensionNumbers, dot_general
from minijax.primitives.shape import broadcast_in_dim, reshape


def scaled_dot(lhs: Any, rhs: Any, *, lhs_scale: Any = None, rhs_scale: Any = None,
               dimension_numbers: Any = None, preferred_element_type: Any = None) -> Array:
    """``(lhs * lhs_scale) @ (rhs * rhs_scale)``, where a scale is for a block of numbers.

    Args:
      lhs, rhs: arrays of one rank, of floats of few bits as a rule.
      lhs_scale, rhs_scale: of their shapes, but shorter along contracted axes: one scale for a
        block of two or more numbers.  None: ones.
      dimension_numbers: as in `dot_general`; by default those of stacks of matrices.
      preferred_element_type: the dtype of the sum and of the result; by default bfloat16, in which
        numbers are scaled in any case.

    Returns:
      An array whose axes are the batch, the remaining ones of lhs, and those of rhs.

    Raises:
      TypeError: for shapes that do not fit.

    >>> import numpy as np
    >>> scaled_dot(np.ones((1, 4)), np.ones((4, 1)), lhs_scale=np.array([[1., 2.]]))
    Array([[6]], dtype=bfloat16)
    """
    dtype = (dtypes.bfloat16 if preferred_element_type is None else
             dtypes.check_user_dtype_supported(preferred_element_type, "scaled_dot"))
    lhs, rhs = map(core.as_value, (lhs, rhs))
    numbers = _numbers(dimension_numbers, lhs, rhs)
    scales = [None if s is None else core.as_value(s) for s in (lhs_scale, rhs_scale)]
    _check([lhs, rhs], list(map(_shape_of_scale, (lhs, rhs), scales, numbers[0])), numbers)
    product = dot_general(
        _scaled(lhs, scales[0]), _scaled(rhs, scales[1]), numbers, preferred_element_type=(
            dtype if dtype in (np.float32, np.float64) else dtypes.bfloat16))
    return convert.convert_element_type(product, dtype)


def _numbers(dimension_numbers: Any, lhs: Array, rhs: Array) -> DotDimensionNumbers:
    if dimension_numbers is not None:
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        return ((as_dims(lhs_contract), as_dims(rhs_contract)),
                (as_dims(lhs_batch), as_dims(rhs_batch)))
    refuse((lhs.ndim < 2, "scaled_dot does not support 0-rank and 1-rank operands."))
    batch = tuple(range(lhs.ndim - 2))
    return ((lhs.ndim - 1,), (lhs.ndim - 2,)), (batch, batch)


def _shape_of_scale(x: Array, scale: Any, contract: Axes) -> tuple[int, ...]:
    """The shape of a scale; without one, a single number along contracted axes."""
    if scale is not None:
        return scale.shape
    return tuple(1 if d in contract else n for d, n in enumerate(x.shape))


def _check(sides: list[Array], scales: list[tuple[int, ...]], numbers: DotDimensionNumbers) -> None:
    contract, batch = numbers
    ranks = [x.ndim for x in sides] + [len(s) for s in scales]
    refuse((len(set(ranks)) > 1, "All input tensors must have the same rank. Got lhs rank: {} rhs "
            "rank: {} lhs_scale rank: {} rhs_scale rank: {}.".format(*ranks)),
           (len(contract[0]) != len(contract[1]), "LHS and RHS must have the same number of "
            f"contracting dimensions, got {len(contract[0])} and {len(contract[1])}."))
    for pair in zip(*batch, strict=False):
        sizes = {shape[d] for d, *shapes in zip(pair, [x.shape for x in sides], scales,
                                                strict=True) for shape in shapes}
        refuse((len(sizes) > 1, "All input tensors must have the same batch dimension size for "
                                f"batch dims {pair}."))
    for left, right in zip(*contract, strict=True):
        n, m = sides[0].shape[left], sides[1].shape[right]
        refuse((n != m, f"LHS contracting dim {left} of size {n} does not match RHS contracting "
                        f"dim {right} of size {m}."))
    for side, x, scale, axes in zip(("LHS", "RHS"), sides, scales, contract, strict=True):
        _check_scale(side, x.shape, scale, axes)


def _check_scale(side: str, shape: tuple[int, ...], scale: tuple[int, ...], contract: Axes) -> None:
    for d, (n, m) in enumerate(zip(shape, scale, strict=True)):
        if d not in contract:
            refuse((n != m, f"{side} dim {d} of size {n} does not match scale dim size {m}."))
            continue
        refuse((m == 0 or n % m != 0, f"{side} contracting dim {d} of size {n} must be divisible "
                                      f"by its scale's dim size {m}."))
        refuse((n // m < 2, f"The ratio of {side} contracting dim {d} to its scale's dim size "
                            f"({n // m}) must be at least 2."))


def _scaled(x: Array, scale: Any) -> Array:
    """`x` times its scale, repeated over the blocks, in bfloat16."""
    x = convert.convert_element_type(x, dtypes.bfloat16)
    if scale is None:
        return x
    sizes = [size for n, m in zip(x.shape, scale.shape, strict=True)
             for size in (m, n // m if m else 1)]
    blocks = broadcast_in_dim(scale, sizes, range(0, len(sizes), 2))
    return algebra.mul(x, convert.convert_element_type(reshape(blocks, x.shape), dtypes.bfloat16))
