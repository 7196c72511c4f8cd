"""Complex numbers: their parts, their conjugates, and what is made of two real numbers.

Stands on `families`.  Chapter 01, *Arrays, dtypes and weak types*.
In JAX: `jax/_src/lax/lax.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import Array, Example, ShapedArray, as_value
from minijax.primitives.elementwise import neg
from minijax.primitives.families import (COMPLEX, all_weak, broadcast_shapes, check_dtypes,
                                         constant, elementwise, elementwise_type, transposed)


def _real_dtype(dtype: Any) -> np.dtype:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _complex_dtype(dtype: Any) -> np.dtype:
    return dtype if dtype.kind == "c" else np.dtype(f"c{2 * dtype.itemsize}")


def _refuse(*_: Any, **__: Any) -> Any:
    # JAX: compiles complex numbers too.
    raise NotImplementedError("complex numbers are not compiled; run the function without jit")


def _complex_examples(count: int) -> list[Example]:
    """Complex arguments, or `count` real ones."""
    found = []
    for dtype in (np.complex64, np.complex128):
        z = np.array([[1 + 2j, -3j], [4, 0]], dtype)
        parts = (z, z.real.copy(), z.imag.copy())[min(count, 1):][:max(count, 1)]
        found += [Example(args) for args in (parts, tuple(x[0, 0] for x in parts),
                                             tuple(x[:0] for x in parts))]
    return found


real_p = elementwise(
    "real",
    impl=lambda x: [x.real],
    abstract_eval=elementwise_type("real", [COMPLEX], _real_dtype),
    derivatives=[lambda t, z, x: real(t)],
    transpose=transposed(lambda ct, x: complex(ct, constant(0, ct))),
    element=_refuse,
    examples=lambda: _complex_examples(0))


def real(x: Any) -> Any:
    """The real parts of complex numbers.

    >>> real(1 + 2j)
    Array(1., dtype=float32, weak_type=True)
    """
    return real_p.bind(x)


imag_p = elementwise(
    "imag",
    impl=lambda x: [x.imag],
    abstract_eval=elementwise_type("imag", [COMPLEX], _real_dtype),
    derivatives=[lambda t, z, x: imag(t)],
    transpose=transposed(lambda ct, x: complex(constant(0, ct), neg(ct))),
    element=_refuse,
    examples=lambda: _complex_examples(0))


def imag(x: Any) -> Any:
    """The imaginary parts of complex numbers.

    >>> imag(1 + 2j)
    Array(2., dtype=float32, weak_type=True)
    """
    return imag_p.bind(x)


def _complex_type(x: ShapedArray, y: ShapedArray) -> list[ShapedArray]:
    check_dtypes("complex", [x, y], [(np.float32, np.float64)] * 2)
    return [ShapedArray(broadcast_shapes("complex", [x.shape, y.shape]),
                        _complex_dtype(x.dtype), all_weak([x, y]))]


def _joined(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Part by part: `x + 1j * y` would make nan of an infinite y."""
    z = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)), _complex_dtype(x.dtype))
    z.real, z.imag = x, y
    return z


complex_p = elementwise(
    "complex",
    impl=lambda x, y: [_joined(x, y)],
    abstract_eval=_complex_type,
    derivatives=(lambda t, z, x, y: complex(t, constant(0, t)),
                 lambda t, z, x, y: complex(constant(0, t), t)),
    transpose=transposed(lambda ct, x, y: real(ct), lambda ct, x, y: imag(neg(ct))),
    element=_refuse,
    examples=lambda: _complex_examples(2))


def complex(x: Any, y: Any) -> Any:
    """Complex numbers from their real and imaginary parts.

    >>> complex(1., 2.)
    Array(1.+2.j, dtype=complex64, weak_type=True)
    """
    return complex_p.bind(x, y)


def _conj_type(x: ShapedArray, *, input_dtype: Any) -> list[ShapedArray]:
    check_dtypes("conj", [x], [(np.float32, np.float64, *COMPLEX)])
    return [x.update(dtype=_complex_dtype(x.dtype))]


def _conj_transpose(ct: Array, x: Any, input_dtype: Any) -> Array:
    return conj(ct) if input_dtype.kind == "c" else real(ct)


conj_p = elementwise(
    "conj",
    impl=lambda x, input_dtype: [np.conj(x).astype(_complex_dtype(x.dtype))],
    abstract_eval=_conj_type,
    derivatives=[lambda t, z, x, input_dtype: conj_p.bind(t, input_dtype=input_dtype)],
    transpose=transposed(_conj_transpose),
    element=_refuse,
    examples=lambda: [e._replace(params={"input_dtype": np.asarray(e.args[0]).dtype})
                      for count in (0, 1) for e in _complex_examples(count)])


def conj(x: Any) -> Any:
    """The complex conjugate; of real numbers, too, a complex one.

    >>> conj(1 + 2j)
    Array(1.-2.j, dtype=complex64, weak_type=True)
    """
    x = as_value(x)
    return conj_p.bind(x, input_dtype=x.dtype)
