"""Complex numbers: their parts, their conjugates, and what is made of two real numbers.

Stands on `algebra`.  Chapter 01, *Arrays, dtypes and weak types*.
In JAX: `jax/_src/lax/lax.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import Array, Example, ShapedArray, as_value
from minijax.primitives.algebra import in_parts, neg
from minijax.primitives.emitted import constant, transposed
from minijax.primitives.families import binary, elementwise, unary
from minijax.primitives.slots import COMPLEX, check_dtypes, real_dtype

PARTS = (np.float32, np.float64)


def _complex_examples(count: int) -> list[Example]:
    """Complex arguments, or `count` real ones."""
    found = []
    for dtype in (np.complex64, np.complex128):
        z = np.array([[1 + 2j, -3j], [4, 0]], dtype)
        parts = (z, z.real.copy(), z.imag.copy())[min(count, 1):][:max(count, 1)]
        found += [Example(args) for args in (parts, tuple(x[0, 0] for x in parts),
                                             tuple(x[:0] for x in parts))]
    return found


real_p, real = unary(
    "real", "The real parts of complex numbers.", accepts=COMPLEX, shows="1 + 2j -> 1.",
    impl=np.real, result=real_dtype,
    derivative=lambda t, z, x: real(t),
    transpose=transposed(lambda ct, x: complex(ct, constant(0, ct))),
    examples=lambda: _complex_examples(0))

imag_p, imag = unary(
    "imag", "The imaginary parts of complex numbers.", accepts=COMPLEX, shows="1 + 2j -> 2.",
    impl=np.imag, result=real_dtype,
    derivative=lambda t, z, x: imag(t),
    transpose=transposed(lambda ct, x: complex(constant(0, ct), neg(ct))),
    examples=lambda: _complex_examples(0))

complex_p, complex = binary(
    "complex", "Complex numbers from their real and imaginary parts.", accepts=PARTS,
    impl=in_parts, result=dtypes.to_complex_dtype,
    derivatives=(lambda t, z, x, y: complex(t, constant(0, t)),
                 lambda t, z, x, y: complex(constant(0, t), t)),
    transpose=transposed(lambda ct, x, y: real(ct), lambda ct, x, y: imag(neg(ct))),
    examples=lambda: _complex_examples(2),
    shows="1.0, 2.0 -> 1.+2.j")


def _conj_type(x: ShapedArray, *, input_dtype: Any) -> list[ShapedArray]:
    check_dtypes("conj", [x], [(*PARTS, *COMPLEX)])
    return [x.update(dtype=dtypes.to_complex_dtype(x.dtype))]


def _conj_transpose(ct: Array, x: Any, input_dtype: Any) -> Array:
    return conj(ct) if input_dtype.kind == "c" else real(ct)


conj_p = elementwise(
    "conj",
    impl=lambda x, input_dtype: [np.conj(x).astype(dtypes.to_complex_dtype(x.dtype))],
    abstract_eval=_conj_type,
    derivatives=[lambda t, z, x, input_dtype: conj_p.bind(t, input_dtype=input_dtype)],
    transpose=transposed(_conj_transpose),
    examples=lambda: [e._replace(params={"input_dtype": np.asarray(e.args[0]).dtype})
                      for count in (0, 1) for e in _complex_examples(count)])


def conj(x: Any) -> Any:
    """The complex conjugate; of real numbers, too, a complex one.

    >>> conj(1 + 2j)
    Array(1.-2.j, dtype=complex64, weak_type=True)
    """
    x = as_value(x)
    return conj_p.bind(x, input_dtype=x.dtype)
