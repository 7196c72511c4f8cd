"""Primitive fft: discrete Fourier transforms of the last axes, of complex and of real numbers.

Builds on `complex_pairs`: loops transform real and imaginary parts.  Chapter 24.
In JAX: `jax/_src/lax/fft.py`.
"""

import enum
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import Array, Example, Primitive, ShapedArray, as_value, cannot, refuse
from minijax.primitives import ad_util, convert, families, joining
from minijax.primitives.smooth_lengths import LONGEST, LONGEST_COLUMNS, is_smooth
from minijax.primitives.algebra import complex_p, conj, imag, is_complex, real
from minijax.primitives.examples import spaced, table
from minijax.primitives.complex_pairs import Pair, as_pair, map_parts
from minijax.primitives.shape import rev
from minijax.primitives.slicing import part
from minijax.primitives.slots import layout, real_dtype


class FftType(enum.IntEnum):
    """Which transform: forward or inverse, of complex numbers or from and to real ones."""

    FFT, IFFT, RFFT, IRFFT = range(4)


# ── Meaning and type ─────────────────────────────────────────────────────────────────────────

def _impl(x: np.ndarray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> list[np.ndarray]:
    axes = tuple(range(-len(fft_lengths), 0))
    [out] = _type(ShapedArray(x.shape, x.dtype), fft_type=fft_type, fft_lengths=fft_lengths)
    if not math.prod(out.shape) or not x.size:
        return [np.zeros(out.shape, out.dtype)]
    transform = getattr(np.fft, fft_type.name.lower() + "n")
    return [transform(x, fft_lengths, axes).astype(out.dtype, copy=False)]


def _type(x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> list[ShapedArray]:
    count = len(fft_lengths)
    if count > x.ndim:
        raise ValueError(f"FFT input shape {x.shape} must have at least as many input dimensions "
                         f"as fft_lengths {fft_lengths}.")
    name = fft_type.name if fft_type in (FftType.RFFT, FftType.IRFFT) else "FFT"
    rest, last = x.shape[:-count], x.shape[-count:]
    refuse(
        (name == "RFFT" and x.dtype not in (np.float32, np.float64),
         f"RFFT input must be float32 or float64, got {x.dtype}"),
        (name != "RFFT" and not is_complex(x),
         f"{name} input must be complex64 or complex128, got {x.dtype}"),
        (name == "IRFFT" and last[:-1] != fft_lengths[:-1], f"IRFFT input shape {x.shape} minor "
         f"dimensions must be equal to all except the last fft_length, got {fft_lengths=}"),
        (name == "IRFFT" and last[-1] != fft_lengths[-1] // 2 + 1
         and max(last[-1], fft_lengths[-1]) > 0,
         "IRFFT requires innermost dimension to be compatible with fft_length[-1]/2+1. Got: "
         f"{last[-1]} but fft_length is {fft_lengths[-1]}"),
        (name != "IRFFT" and last != fft_lengths, f"{name} input shape {x.shape} minor dimensions "
         f"must be equal to fft_lengths {fft_lengths}"), error=ValueError)
    if name == "RFFT":
        return [x.update(shape=(*rest, *last[:-1], last[-1] // 2 + 1),
                         dtype=dtypes.to_complex_dtype(x.dtype))]
    if name == "IRFFT":
        return [x.update(shape=(*rest, *fft_lengths), dtype=real_dtype(x.dtype))]
    return [x]


# ── Transpose ────────────────────────────────────────────────────────────────────────────────

def _multiplicities(like: Array, n: int) -> Any:
    """How often the full spectrum contains each number of its first half: twice, or once."""
    count = np.full(n // 2 + 1, 2, like.dtype)
    count[0] = 1
    count[-1] = count[-1] if n % 2 else 1
    return ad_util.broadcast_at(as_value(count), (like.ndim - 1,), like.shape)


def _transposed(t: Array, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Array:
    """The matrix of a transform is symmetric; RFFT keeps one of each pair of conjugates."""
    n, size = fft_lengths[-1], math.prod(fft_lengths)
    if not size:
        return ad_util.zeros(x.aval)
    if fft_type is FftType.RFFT:
        out: Any = fft(conj(t) / _multiplicities(t, n), FftType.IRFFT, fft_lengths)
        return out * size
    if fft_type is FftType.IRFFT:
        spectrum = fft(t, FftType.RFFT, fft_lengths)
        return conj(spectrum * _multiplicities(spectrum, n)) * (1 / size)
    return fft(t, fft_type, fft_lengths)


# ── In real numbers ──────────────────────────────────────────────────────────────────────────

def _impl_of_parts(x: np.ndarray, y: np.ndarray, *, axis: int) -> list[np.ndarray]:
    z = x + 1j * y
    return _parts(np.fft.fft(z, axis=axis) if x.size else z, x.dtype)


def _parts(z: np.ndarray, dtype: Any) -> list[np.ndarray]:
    return [np.ascontiguousarray(part, dtype) for part in (z.real, z.imag)]


DERIVED = cannot("`fft` is lowered to it after all transformations: bind `fft_p`.")

def _of_parts(name: str, like: Callable[..., list], **slots: Any) -> Primitive:
    """A transform of real numbers, or of the parts of complex ones."""
    def abstract_eval(*avals: ShapedArray, **params: Any) -> list[ShapedArray]:
        if not all(dtypes.issubdtype(x.dtype, np.floating) for x in avals):
            raise TypeError(f"{name} takes floats, got {', '.join(map(str, avals))}")
        return like(*avals, **params)
    return Primitive(name, abstract_eval=abstract_eval, jvp=DERIVED, transpose=DERIVED,
                     loop=families.kernel(name, anywhere=True), can_fuse_operands=True,
                     multiple_results=True, may_produce_nan=True, **slots)


def _half(x: ShapedArray) -> list[ShapedArray]:
    if x.shape[-1] % 2:
        raise ValueError(f"of_real takes an even length, got {x.shape[-1]}")
    return [x.update(shape=(*x.shape[:-1], x.shape[-1] // 2 + 1))] * 2


def _numbers(shape: Iterable[int], start: int = -2) -> np.ndarray:
    return spaced(start, start + 4, tuple(shape), np.float32)


fourier_p = _of_parts(  # along an axis
    "fourier", lambda x, y, *, axis: [x, y], impl=_impl_of_parts,
    batch=ad_util.batch_in_front("axis"), sharding=layout("along", name="axis"),
    examples=lambda: [
        Example((_numbers(shape), _numbers(shape, -1)), {"axis": axis})
        for *shape, axis in ((6, 0), (3, 5, 1), (2, 37, 1), (0, 3, 1), (2, 1, 1), (6, 3, 0),
                             (2, 4, 5, 3, 1))])
of_real_p = _of_parts(  # the first half of the transform of the last axis, of an even length
    "of_real", _half, impl=lambda x: _parts(np.fft.rfft(x), x.dtype),
    batch=ad_util.batch_in_front(), sharding=layout("stacked", rank=1),
    examples=lambda: [Example((_numbers(shape),)) for shape in ((2,), (2, 12), (3, 8))])
to_real_p = _of_parts(  # the inverse, times the length
    "to_real", lambda x, y: [x.update(shape=(*x.shape[:-1], 2 * x.shape[-1] - 2))],
    batch=ad_util.batch_in_front(), sharding=layout("stacked", rank=1),
    impl=lambda x, y: [(np.fft.irfft(x + 1j * y) * (2 * x.shape[-1] - 2)).astype(x.dtype)],
    examples=lambda: [Example((_numbers(shape), _numbers(shape, -1)))
                      for shape in ((2,), (2, 7), (3, 5))])


def _along(z: Pair, axis: int, inverse: bool) -> Pair:
    """The transform along an axis; the inverse exchanges the real and imaginary parts."""
    last, n = z.re.ndim - 1, z.re.shape[axis]
    z = map_parts(z, lambda x: x * (1 / n)) if inverse and n else z
    where = axis if is_smooth(n, LONGEST_COLUMNS) else last
    order = slice(None, None, -1 if inverse else 1)
    parts = (ad_util.move_axis(x, axis, where) for x in z.parts[order])
    outs = fourier_p.bind(*parts, axis=where)[order]
    return Pair(*(ad_util.move_axis(x, where, axis) for x in outs))


def _in_parts(x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    """One axis after the other: a real input begins with the last one, a real output ends there."""
    [out] = _type(x.aval, fft_type=fft_type, fft_lengths=fft_lengths)
    if not math.prod(out.shape) or not x.size:
        return ad_util.zeros(out)
    inverse = fft_type in (FftType.IFFT, FftType.IRFFT)
    z = Pair(real(x), imag(x)) if is_complex(x) else as_pair(x)
    last, n = z.re.ndim - 1, fft_lengths[-1]
    halved = n % 2 == 0 and is_smooth(n // 2, LONGEST)
    axes = list(range(last, last - len(fft_lengths), -1))
    for axis in axes[::-1] if inverse else axes:
        if fft_type is FftType.IRFFT and axis == last:
            if halved:
                return to_real_p.bind(*map_parts(z, lambda x: x * (1 / n)).parts)[0]
            return _along(_whole(z, n), axis, inverse).re
        if fft_type is FftType.RFFT and axis == last and halved:
            z = Pair(*of_real_p.bind(z.re))
            continue
        z = _along(z, axis, inverse)
        if fft_type is FftType.RFFT and axis == last:
            z = map_parts(z, lambda x: part(x, 0, n // 2 + 1, last))
    return complex_p.bind(*z.parts)


def _whole(z: Pair, n: int) -> Pair:
    """The spectrum of a real signal from its first half."""
    axis = z.re.ndim - 1
    mirrored = map_parts(z.conj(), lambda x: rev(part(x, 1, (n + 1) // 2, axis), (axis,)))
    first = map_parts(z, lambda x: part(x, 0, n // 2 + 1, axis))
    return Pair(*(joining.concatenate([x, y], axis)
                  for x, y in zip(first.parts, mirrored.parts, strict=True)))


# ── The block ────────────────────────────────────────────────────────────────────────────────

def _examples() -> list[Example]:
    def z(*shape: int) -> np.ndarray:
        return (spaced(-2, 2, shape, float) + 1j * spaced(-2, 2, shape, float, 5)).astype("c8")

    x = spaced(-2, 2, (2, 6), np.float64)
    return table(
        "fft_type fft_lengths",
        (z(2, 6), FftType.FFT, (6,)), (z(2, 5), FftType.IFFT, (5,)), (z(37), FftType.FFT, (37,)),
        (z(2, 3, 4), FftType.FFT, (3, 4)), (z(2, 1, 3), FftType.IFFT, (2, 1, 3)),
        (z(0, 3), FftType.FFT, (3,)), (z(2, 0), FftType.IFFT, (0,)), (z(2, 1), FftType.IRFFT, (0,)),
        (x[:, :0], FftType.RFFT, (0,)), (z(2, 0), FftType.IRFFT, (0,)), (x, FftType.RFFT, (6,)),
        (x[:, :5], FftType.RFFT, (2, 5)),
        (x.astype(np.float32), FftType.RFFT, (6,)), (z(2, 4), FftType.IRFFT, (6,)),
        (z(2, 3), FftType.IRFFT, (2, 5)))()


fft_p = Primitive(
    "fft", impl=_impl, abstract_eval=_type,
    jvp=ad_util.linear(0), transpose=ad_util.transposed(_transposed),
    batch=ad_util.batch_in_front(), sharding=layout("transform"),
    program=_in_parts, may_produce_nan=True,
    examples=_examples)


# ── What users call ──────────────────────────────────────────────────────────────────────────

def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """A discrete Fourier transform of the last axes of an array.

    Args:
      x: an array; real for RFFT, for all others complex, or it is converted.
      fft_type: FFT, IFFT, RFFT or IRFFT: a member of `FftType` or its name.
      fft_lengths: the sizes of the last axes, as they are before RFFT and after IRFFT.

    Raises:
      ValueError: when the sizes are not those of the array, or the type has no such name.
      TypeError: when the type is neither a member nor a name.

    >>> fft(np.array([1., 0., 0., 0.]), FftType.RFFT, (4,))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    if isinstance(fft_type, str):
        if fft_type.upper() not in FftType.__members__ or fft_type not in (
                fft_type.lower(), fft_type.upper()):
            raise ValueError(f"Unknown FFT type '{fft_type}'")
        fft_type = FftType[fft_type.upper()]
    elif not isinstance(fft_type, FftType):
        raise TypeError(f"Unknown FFT type value '{fft_type}'")
    x = as_value(x)
    is_real = fft_type is FftType.RFFT
    if is_real and is_complex(x):
        raise ValueError("only real valued inputs supported for rfft")
    to_dtype = dtypes.to_inexact_dtype if is_real else dtypes.to_complex_dtype
    x = convert.convert_element_type(x, to_dtype(x.dtype))
    if not len(fft_lengths):
        return x
    return fft_p.bind(x, fft_type=fft_type, fft_lengths=tuple(fft_lengths))
