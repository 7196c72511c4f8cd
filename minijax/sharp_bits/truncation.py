"""64-bit NumPy data that loses information when it becomes 32 bits wide, and products in TF32.

Rounding alone is no mistake, since nearly every float64 is rounded: see `what_is_lost`.
Builds on `config`, `findings`.  Chapter 20, *Precision, and where NumPy differs*.
JAX has no counterpart.
"""

import math
from typing import Any

import numpy as np

from minijax.core import ShapedArray
from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn, subjaxprs

from minijax.sharp_bits.findings import finding, report

# Neighbours that differ by less, relative to their size, may differ by float64's own rounding.
NOISE = 2.0**-40
LARGE = 1 << 18  # multiplications: smaller products have all digits
FEW = 8  # output features of a convolution: with fewer it has them too
PRODUCTS = {"dot_general": "product", "conv_general_dilated": "convolution"}
WIDE = "jax.config.update('jax_enable_x64', True)"
FIXES = {
    "integers": f"Keep 64 bits with `{WIDE}`, or make the numbers smaller before they come in: "
                "subtract an offset, or take a coarser unit.",
    "range": f"Change the unit before the numbers come in, or keep 64 bits with `{WIDE}`.",
    "products": "Choose a precision: \"highest\" keeps 24 bits, \"default\" is this one. For all "
                "products: jax.config.update('jax_default_matmul_precision', …).",
    "differences": "Subtract an offset in NumPy before the numbers come in (times since the "
                   f"first one, not since 1970), or keep 64 bits with `{WIDE}`."}


def check(x: Any, dtype: np.dtype) -> None:
    """Warn where NumPy data cannot become an array of this dtype without loss.

    Args:
      x: a NumPy array or scalar.
      dtype: what its elements become, unasked.
    """
    if not isinstance(x, np.ndarray | np.generic):
        return
    array = np.asarray(x)
    if array.dtype == dtype or array.dtype.itemsize < 8 or not array.size:
        return
    if lost := what_is_lost(array, dtype):
        kind, how = lost
        shape = f" of shape {array.shape}" if array.ndim else ""
        message = f"{array.dtype} data{shape} becomes {dtype}, {how}."
        report(finding("debug_dtype_truncation", message, FIXES[kind]))


def what_is_lost(x: np.ndarray, dtype: np.dtype) -> tuple[str, str] | None:
    """The information that data loses besides its last digits; None if there is none.

    - Whole numbers: any that does not fit, as it would become another one.
    - Floats that become infinite; or all of them zero.
    - Floats whose differences vanish: neighbours that become equal make up most of the way that
      the data goes up and down.  (What float64 itself cannot tell from noise does not count.)

    Data that is merely rounded is fine, and so is a table whose tails become zero or level off.

    >>> what_is_lost(np.array([1, 2**31]), np.dtype("int32"))
    ('integers', 'in which 1 of 2 values does not fit: 2147483648 becomes -2147483648')
    >>> what_is_lost(np.linspace(0.0, 1.0, 7), np.dtype("float32"))
    >>> what_is_lost(1.7e9 + np.arange(60.0), np.dtype("float32"))[0]
    'differences'
    """
    if x.dtype.kind == "c":
        parts = [what_is_lost(part, dtype.type(0).real.dtype) for part in (x.real, x.imag)]
        return parts[0] or parts[1]
    with np.errstate(all="ignore"):
        rounded = x.astype(dtype)
    if dtype.kind not in "iu":
        return _floats(x, rounded)
    wrong = rounded != x
    return ("integers", _example(x, rounded, wrong, "does", "not fit")) if wrong.any() else None


def check_products(closed: ClosedJaxpr) -> None:
    """Warn of a GPU's large float32 products, and convolutions, whose precision nobody has chosen.

    Args:
      closed: a program that is compiled for a GPU.
    """
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive.name in PRODUCTS and eqn.params["precision"] is None:
            [x, y], [out] = ([v.aval for v in side] for side in (eqn.invars, eqn.outvars))
            name, terms = PRODUCTS[eqn.primitive.name], out.size * terms_of(eqn, x, y)
            if {x.dtype, y.dtype, out.dtype} == {np.dtype(np.float32)} and terms >= LARGE:
                report(finding("debug_dtype_truncation", (
                    f"a {name} of float32[{','.join(map(str, x.shape))}] and float32["
                    f"{','.join(map(str, y.shape))}] on a GPU rounds its factors to TF32: 11 "
                    "significant bits of 24."), FIXES["products"], eqn.source_info))
        for inner in subjaxprs(eqn.params):
            check_products(inner)


def terms_of(eqn: JaxprEqn, x: ShapedArray, y: ShapedArray) -> int:
    """The products of which each element of a result is the sum; 0 where tensor cores do none, as
    for a convolution with few features.
    """
    if eqn.primitive.name == "dot_general":
        (axes, _), _ = eqn.params["dimension_numbers"]
        return math.prod(x.shape[axis] for axis in axes)
    outputs = y.shape[eqn.params["dimension_numbers"].rhs_spec[0]]
    groups = eqn.params["feature_group_count"] * eqn.params["batch_group_count"]
    return y.size // outputs if outputs // groups >= FEW else 0


def _floats(x: np.ndarray, rounded: np.ndarray) -> tuple[str, str] | None:
    infinite = np.isinf(rounded) & np.isfinite(x)
    if infinite.any():
        return "range", _example(x, rounded, infinite, "is", "too large")
    numbers = (x != 0) & np.isfinite(x)
    if numbers.any() and not rounded[numbers].any():
        return "range", _example(x, rounded, numbers, "is", "too small")
    return _differences(x.ravel(), rounded.ravel())


def _differences(x: np.ndarray, rounded: np.ndarray) -> tuple[str, str] | None:
    """Whether most of the data's total variation is lost."""
    with np.errstate(all="ignore"):
        steps = np.abs(np.diff(x))
        matters = np.isfinite(steps) & (steps > NOISE * np.abs(x[1:]))
        equal = matters & (rounded[1:] == rounded[:-1]) & (rounded[1:] != 0)
        if not 2 * steps[equal].sum() > steps[np.isfinite(steps)].sum():
            return None
    place = int(np.flatnonzero(equal)[0])
    pair = " and ".join(repr(float(v)) for v in x[place:place + 2])
    return "differences", (f"in which {equal.sum()} of {len(x) - 1} pairs of neighbours become "
                           f"equal: {pair} are both {float(rounded[place])!r}")


def _example(x: np.ndarray, rounded: np.ndarray, wrong: np.ndarray, verb: str, problem: str) -> str:
    first = int(np.flatnonzero(wrong)[0])
    value, became = x.ravel()[first].item(), rounded.ravel()[first].item()
    verb = verb if wrong.sum() == 1 else {"is": "are", "does": "do"}[verb]
    return (f"in which {wrong.sum()} of {x.size} value{'s' * (x.size > 1)} {verb} {problem}: "
            f"{value} becomes {became}")
