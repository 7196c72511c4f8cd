"""`minijax.scipy.signal`: convolution, spectra of the segments of a signal, and trends.

Builds on `numpy`, `numpy.fft`, `lax`.
In JAX: `jax/_src/scipy/signal.py`.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax, numpy as jnp
from minijax.core import Array, refuse
from minijax.errors import warn
from minijax.numpy.arguments import (ArrayLike, as_array, canonical_axes, promote_dtypes_inexact,
                                     promoted, static_int)
from minijax.transforms.prepared import export_all as _export_all

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve",
           "istft", "stft", "welch"]


# ── Convolutions ─────────────────────────────────────────────────────────────────────────────

def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full",
                axes: Sequence[int] | None = None) -> Array:
    """The convolution by Fourier transforms, which is quick for two large arrays.

    >>> fftconvolve(jnp.array([1., 2.]), jnp.array([1., 1.])).round()
    Array([1., 3., 2.], dtype=float32)

    Args:
      in1, in2: arrays of as many axes.
      mode: "full"; "same", the middle of that, as large as `in1`; or "valid", where they overlap.
      axes: along which; the other axes must be of one size. By default along all.

    Raises:
      ValueError: for different numbers of axes, other modes, and sizes that do not fit.
    """
    x, y = promoted("fftconvolve", promote_dtypes_inexact, in1, in2)
    refuse((x.ndim != y.ndim, "in1 and in2 should have the same dimensionality"),
           (mode not in ("same", "full", "valid"), "mode must be one of ['same', 'full', 'valid']"),
           error=ValueError)
    axes = sorted(canonical_axes(axes, x.ndim))
    if any(x.shape[i] != y.shape[i] for i in range(x.ndim) if i not in axes):
        raise ValueError(f"mapped axes must have same shape; got in1.shape={x.shape} "
                         f"in2.shape={y.shape} axes={tuple(axes)}")
    if mode == "valid":
        x, y = _larger_first([x, y], axes, "For 'valid' mode, One input must be at least as "
                             "large as the other in every dimension.")
    full = [x.shape[a] + y.shape[a] - 1 for a in axes]
    is_complex = x.dtype.kind == "c"
    forth, back = (jnp.fft.fftn, jnp.fft.ifftn) if is_complex else (jnp.fft.rfftn, jnp.fft.irfftn)
    out = back(forth(x, full, axes) * forth(y, full, axes), full, axes) if axes else x * y
    for axis, size in zip(axes, full, strict=True):
        sizes = {"full": size, "same": x.shape[axis], "valid": x.shape[axis] - y.shape[axis] + 1}
        start = (size - sizes[mode]) // 2
        out = lax.slice_in_dim(out, start, start + sizes[mode], axis=axis)
    return out


def convolve(in1: Array, in2: Array, mode: str = "full", method: str = "auto",
             precision: Any = None) -> Array:
    """The convolution of two arrays of as many axes.

    >>> convolve(jnp.array([1., 2., 3.]), jnp.array([1., 1.]))
    Array([1., 3., 5., 3.], dtype=float32)

    Args:
      in1, in2: the arrays, one of which is at least as large as the other along every axis.
      mode: "full"; "same", the middle of that, as large as `in1`; or "valid", where they overlap.
      method: "direct", which "auto" stands for, or "fft".
      precision: of the products.

    Raises:
      ValueError: for arrays that do not fit or are empty, another mode, and another method.
    """
    if method == "fft":
        return fftconvolve(in1, in2, mode=mode)
    if method not in ("direct", "auto"):
        raise ValueError(f"Got {method=}; expected 'auto', 'fft', or 'direct'.")
    return _direct_convolve(in1, in2, mode, precision)


def convolve2d(in1: Array, in2: Array, mode: str = "full", boundary: str = "fill",
               fillvalue: float = 0, precision: Any = None) -> Array:
    """`convolve` of two matrices, around which there are zeros.

    >>> convolve2d(jnp.ones((2, 2)), jnp.ones((1, 2)))
    Array([[1., 2., 1.],
           [1., 2., 1.]], dtype=float32)

    Raises:
      ValueError: as `convolve`, and for other numbers of axes.
      NotImplementedError: for another boundary.
    """
    _check_matrices("convolve2d", in1, in2, boundary, fillvalue)
    return _direct_convolve(in1, in2, mode, precision)


def correlate(in1: Array, in2: Array, mode: str = "full", method: str = "auto",
              precision: Any = None) -> Array:
    """The convolution with the second array reversed and conjugate; see `convolve`.

    >>> correlate(jnp.array([1., 2., 3.]), jnp.array([0., 1.]))
    Array([1., 2., 3., 0.], dtype=float32)
    """
    return convolve(in1, jnp.flip(in2.conj()), mode, precision=precision, method=method)


def correlate2d(in1: Array, in2: Array, mode: str = "full", boundary: str = "fill",
                fillvalue: float = 0, precision: Any = None) -> Array:
    """`correlate` of two matrices, around which there are zeros; see `convolve2d`.

    >>> correlate2d(jnp.ones((2, 2)), jnp.ones((1, 2)), mode="valid")
    Array([[2.],
           [2.]], dtype=float32)
    """
    _check_matrices("correlate2d", in1, in2, boundary, fillvalue)
    pairs = list(zip(in1.shape, in2.shape, strict=True))
    smaller = all(a <= b for a, b in pairs) and (mode == "full" or mode == "valid" and any(
        a < b for a, b in pairs))
    if not smaller:  # SciPy reverses both, which differs where there is no middle element
        return jnp.flip(_direct_convolve(jnp.flip(in1), in2.conj(), mode, precision))
    out = _direct_convolve(jnp.flip(in2), in1.conj(), mode, precision)
    return out.conj() if mode == "full" else out


def _check_matrices(name: str, in1: Any, in2: Any, boundary: str, fillvalue: float) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(f"{name}() only supports boundary='fill', fillvalue=0")
    if np.ndim(in1) != 2 or np.ndim(in2) != 2:
        raise ValueError(f"{name}() only supports 2-dimensional inputs.")


def _larger_first(pair: list, axes: Sequence[int], refusal: str) -> list:
    for x, y in (pair, pair[::-1]):
        if all(x.shape[a] >= y.shape[a] for a in axes):
            return [x, y]
    raise ValueError(refusal)


def _direct_convolve(in1: Any, in2: Any, mode: str, precision: Any) -> Array:
    refuse((mode not in ("full", "same", "valid"), "mode must be one of ['full', 'same', 'valid']"),
           (in1.ndim != in2.ndim, "in1 and in2 must have the same number of dimensions"),
           (in1.size == 0 or in2.size == 0, "zero-size arrays not supported in convolutions, got "
            f"shapes {in1.shape} and {in2.shape}."), error=ValueError)
    pair = promote_dtypes_inexact(in1, in2)
    x, kernel = _larger_first(pair, range(in1.ndim),
                              "One input must be smaller than the other in every dimension.")
    padding = {"full": [(n - 1, n - 1) for n in kernel.shape],
               "valid": [(0, 0)] * kernel.ndim,
               "same": [(n - 1 - (m - 1) // 2, n - m + (m - 1) // 2)
                        for n, m in zip(kernel.shape, pair[1].shape, strict=True)]}
    return lax.conv_general_dilated(x[None, None], jnp.flip(kernel)[None, None], (1,) * x.ndim,
                                    padding[mode], precision=precision)[0, 0]


# ── Trends ───────────────────────────────────────────────────────────────────────────────────

def detrend(data: ArrayLike, axis: int = -1, type: str = "linear", bp: Any = 0,
            overwrite_data: None = None) -> Array:
    """The data without the line, or the constant, that fits them best.

    >>> abs(detrend(jnp.array([1., 2., 3.]))).max() < 1e-5
    Array(True, dtype=bool)

    Args:
      data: an array of numbers.
      axis: along which.
      type: "linear", or "constant", which takes away the mean.
      bp: for "linear", where pieces begin that have lines of their own.
      overwrite_data: None.

    Raises:
      ValueError: for another type, and pieces that begin outside of the data.
    """
    if overwrite_data is not None:
        raise NotImplementedError("overwrite_data argument not implemented.")
    if type not in ("constant", "linear"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    [x] = promote_dtypes_inexact(jnp.asarray(data))
    if type == "constant":
        return x - jnp.mean(x, axis, keepdims=True)
    size = x.shape[axis]
    cuts = np.unique(np.r_[0, bp, size])
    if cuts[0] < 0 or cuts[-1] > size:
        raise ValueError(
            "Breakpoints must be non-negative and less than length of data along given axis.")
    columns = jnp.moveaxis(x, axis, 0)
    flat = jnp.reshape(columns, (size, -1))
    segments = [_subtract_line(flat[a:b]) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    return jnp.moveaxis(jnp.reshape(jnp.concatenate(segments), columns.shape), 0, axis)


def _subtract_line(y: Any) -> Any:
    """Each column minus its least-squares line."""
    n = y.shape[0]
    centered = np.arange(n) - (n - 1) / 2
    direction = jnp.array(centered / max(np.sqrt(np.sum(centered ** 2)), 1e-30), y.dtype)
    y = y - jnp.mean(y, axis=0)
    return y - direction[:, None] * jnp.matmul(direction, y, precision=lax.Precision.HIGHEST)


# ── Spectra ──────────────────────────────────────────────────────────────────────────────────

def stft(x: Array, fs: ArrayLike = 1.0, window: Any = "hann", nperseg: int = 256,
         noverlap: int | None = None, nfft: int | None = None, detrend: Any = False,
         return_onesided: bool = True, boundary: str | None = "zeros", padded: bool = True,
         axis: int = -1) -> tuple[Array, Array, Array]:
    """The Fourier transforms of pieces of a signal.

    >>> frequencies, times, transforms = stft(jnp.ones(32), nperseg=16)
    >>> transforms.shape
    (9, 5)

    Args:
      x: the signal.
      fs: how many of its numbers there are in a unit of time.
      window: what a piece is multiplied by: an array, or what SciPy's `get_window` takes.
      nperseg, noverlap: how long pieces are, and how much of one is in the next, by default half.
      nfft: the length of the transforms, by default that of pieces.
      detrend: what of a piece is taken away before: a type of `detrend`, a function, or nothing.
      return_onesided: whether frequencies below 0, which say nothing new, are left out.
      boundary: what there is before and after: "zeros", "even", "odd", "constant", or None.
      padded: whether zeros make the last piece a whole one.
      axis: of time; the frequencies take its place, and pieces come last.

    Returns:
      The frequencies, the times of the pieces, and the transforms.

    Raises:
      ValueError: for lengths that do not fit.
    """
    return _spectra(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided,
                    "spectrum", axis, "stft", boundary, padded)


def csd(x: Array, y: ArrayLike | None, fs: ArrayLike = 1.0, window: Any = "hann",
        nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
        detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
        axis: int = -1, average: str = "mean") -> tuple[Array, Array]:
    """The cross-spectral density of two signals, by Welch's method.

    >>> frequencies, density = csd(jnp.ones(32), jnp.ones(32), nperseg=16)
    >>> density.shape, density.dtype
    ((9,), dtype('complex64'))

    Args:
      x, y: the signals; None: both are `x`.
      fs, window, nperseg, noverlap, nfft, detrend, return_onesided, axis: as those of `stft`.
      scaling: "density", of power in a unit of frequency, or "spectrum".
      average: of the pieces: "mean" or "median".

    Returns:
      The frequencies, and the density or the power at each.

    Raises:
      ValueError: for lengths that do not fit, and unknown names.
    """
    frequencies, _, spectra = _spectra(x, y, fs, window, nperseg, noverlap, nfft, detrend,
                                       return_onesided, scaling, axis, "psd", None, False)
    spectra = spectra if y is None else spectra + 0j
    if spectra.ndim >= 2 and spectra.size:
        spectra = spectra[..., 0] if spectra.shape[-1] == 1 else _average(spectra, average)
    return frequencies, spectra


def welch(x: Array, fs: ArrayLike = 1.0, window: Any = "hann", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, detrend: Any = "constant",
          return_onesided: bool = True, scaling: str = "density", axis: int = -1,
          average: str = "mean") -> tuple[Array, Array]:
    """The power spectral density of a signal: its `csd` with itself.

    >>> frequencies, density = welch(jnp.ones(32), nperseg=16)
    >>> density.shape
    (9,)
    """
    frequencies, spectrum = csd(x, None, fs, window, nperseg, noverlap, nfft, detrend,
                                return_onesided, scaling, axis, average)
    return frequencies, spectrum.real


def _average(spectra: Any, average: str) -> Any:
    if average not in ("median", "mean"):
        raise ValueError(f'average must be "median" or "mean", got {average}')
    if average == "mean":
        return jnp.mean(spectra, axis=-1)
    n = np.arange(2., spectra.shape[-1], 2)
    bias = jnp.array(1 + np.sum(1 / (n + 1) - 1 / n), spectra.dtype)  # of the median of powers
    if spectra.dtype.kind == "c":
        parts = jnp.median(spectra.real, axis=-1), jnp.median(spectra.imag, axis=-1)
        return lax.complex(*parts) / bias
    return jnp.median(spectra, axis=-1) / bias


def _window(window: Any, length: int, dtype: Any) -> Any:
    """The weights of a segment."""
    if not isinstance(window, str | tuple):
        return jnp.asarray(window, dtype)
    if window == "hann":
        weights = np.sin(np.linspace(0, np.pi, length, endpoint=False)) ** 2
        return jnp.array(weights if length > 1 else [1.], dtype)
    from scipy.signal import get_window
    return jnp.array(get_window(window, length), dtype)


def _window_of(window: Any, nperseg: Any, size: int, dtype: Any) -> tuple[Any, int]:
    """The weights of a segment of a signal of this size, and its length."""
    length = None if nperseg is None else static_int(nperseg, "nperseg of windowed-FFT")
    if length is not None and length < 1:
        raise ValueError("nperseg must be a positive integer")
    if isinstance(window, str | tuple):
        length = size if length is None else length
        if length > size:
            warn(f"nperseg={length} is greater than input_length={size}, using nperseg={size}")
        return _window(window, min(length, size), dtype), min(length, size)
    weights = _window(window, 0, dtype)
    refuse((weights.ndim != 1, "window must be 1-D"),
           (size < weights.size, "window is longer than input signal"),
           (length not in (None, weights.size), "value specified for nperseg is different from "
            "length of window"), error=ValueError)
    return weights, weights.size


_BOUNDARIES: dict[str | None, Callable[[Any, int], Any]] = {
    "even": lambda x, n: _pad_time(x, n, n, "reflect"),
    "odd": lambda x, n: _odd_extension(x, n),
    "constant": lambda x, n: _pad_time(x, n, n, "edge"),
    "zeros": lambda x, n: _pad_time(x, n, n),
    None: lambda x, n: x}


def _odd_extension(x: Any, n: int) -> Any:
    """A signal extended at both ends by its rotation about each end point."""
    if n < 1:
        return x
    if n > x.shape[-1] - 1:
        raise ValueError(f"The extension length n ({n}) is too big. It must not exceed "
                         f"x.shape[axis]-1, which is {x.shape[-1] - 1}.")
    before, after = x[..., 1:n + 1][..., ::-1], x[..., -n - 1:-1][..., ::-1]
    return jnp.concatenate([2 * x[..., :1] - before, x, 2 * x[..., -1:] - after], axis=-1)


def _spectra(x: Any, y: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any,
             detrend_type: Any, onesided: bool, scaling: str, axis: int, mode: str,
             boundary: str | None, padded: bool) -> tuple[Any, Any, Any]:
    """The frequencies, and the times and spectra of the segments, of one signal or of two."""
    if boundary not in _BOUNDARIES:
        raise ValueError(f"Unknown boundary option '{boundary}', must be one of: "
                         f"{list(_BOUNDARIES)}")
    signals = promoted("spectral_helper", promote_dtypes_inexact, x, *[] if y is None else [y])
    if len({s.ndim for s in signals}) > 1:
        raise ValueError("two-arguments must have the same rank ({x.ndim} vs {y.ndim}).")
    axis = range(signals[0].ndim)[operator.index(axis)]
    dtype = signals[0].dtype
    weights, length = _window_of(window, nperseg, signals[0].shape[axis], dtype)
    overlap = length // 2 if noverlap is None else static_int(noverlap, "noverlap of windowed-FFT")
    size = length if nfft is None else static_int(nfft, "nfft of windowed-FFT")
    refuse((size < length, "nfft must be greater than or equal to nperseg."),
           (overlap >= length, "noverlap must be less than nperseg."), error=ValueError)
    signals = [jnp.moveaxis(s, axis, -1) for s in signals]
    longest = max(s.shape[-1] for s in signals)
    step, extend = length - overlap, _BOUNDARIES[boundary]
    signals = [extend(_pad_time(s, 0, longest - s.shape[-1]), length // 2) for s in signals]
    if padded:
        missing = (-(signals[0].shape[-1] - length) % step) % length
        signals = [_pad_time(s, 0, missing) for s in signals]
    if onesided and any(s.dtype.kind == "c" for s in signals):
        warn("Input data is complex, switching to return_onesided=False")
        onesided = False
    real = jnp.finfo(dtype).dtype
    frequencies = (jnp.fft.rfftfreq if onesided else jnp.fft.fftfreq)(size, 1 / fs, dtype=real)
    detrender = _detrender(detrend_type)
    transforms = [_segment_ffts(s, weights, detrender, step, size, onesided) for s in signals]
    scale = _scale(weights, fs, scaling)
    if mode == "stft":
        spectra = transforms[0] * jnp.sqrt(scale)
    else:
        spectra = jnp.conj(transforms[0]) * transforms[-1] * scale
        if onesided:  # frequencies that also occur below 0 count twice
            spectra = spectra.at[..., 1:None if size % 2 else -1].multiply(2)
    times = jnp.arange(length / 2, signals[0].shape[-1] - length / 2 + 1, step, dtype=real) / fs
    times = times if boundary is None else times - length / 2 / fs
    spectra = spectra.astype(jnp.result_type(dtype, np.complex64))
    spectra = spectra.real if y is None and mode == "psd" else spectra
    return frequencies, times, jnp.moveaxis(spectra, -1, axis)


def _pad_time(x: Any, before: int, after: int, mode: str = "constant") -> Any:
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(before, after)], mode)


def _scale(weights: Any, fs: Any, scaling: str) -> Any:
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Unknown scaling: {scaling}")
    power = fs * jnp.sum(weights * weights) if scaling == "density" else jnp.sum(weights) ** 2
    return 1. / power


def _detrender(kind: Any) -> Callable[[Any], Any]:
    if isinstance(kind, str):
        return lambda segments: detrend(segments, type=kind, axis=-1)
    if not kind:
        return lambda segments: segments
    if not callable(kind):
        raise ValueError(f"Unsupported detrend type: {kind}")
    return kind


def _segment_ffts(x: Any, weights: Any, detrender: Callable, step: int, size: int, onesided: bool
                  ) -> Any:
    """The Fourier transform of each segment of a signal: (…, segments, frequencies)."""
    length = weights.shape[0]
    starts = np.arange(0, x.shape[-1] - length + 1, step)
    segments = detrender(x[..., starts[:, None] + np.arange(length)])
    if onesided:
        return jnp.fft.rfft(jnp.real(segments * weights), n=size)
    return jnp.fft.fft(segments * weights, n=size)


def istft(Zxx: Array, fs: ArrayLike = 1.0, window: Any = "hann", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, input_onesided: bool = True,
          boundary: bool = True, time_axis: int = -1, freq_axis: int = -2) -> tuple[Array, Array]:
    """The signal of which `stft` has made this.

    >>> x = jnp.sin(jnp.arange(32.))
    >>> times, signal = istft(stft(x, nperseg=16)[2])
    >>> abs(signal - x).max() < 1e-5
    Array(True, dtype=bool)

    Args:
      Zxx: the transforms of pieces.
      fs, window, nperseg, noverlap, nfft: what they were made with; by default as long as it was.
      input_onesided: whether frequencies below 0 were left out.
      boundary: whether there was something before and after the signal.
      time_axis, freq_axis: along which the pieces lie, and their frequencies.

    Returns:
      The times, and the signal.

    Raises:
      ValueError: for lengths and axes that do not fit.
    """
    z = as_array("istft", Zxx)
    if z.ndim < 2:
        raise ValueError("Input stft must be at least 2d!")
    freq, time = range(z.ndim)[freq_axis], range(z.ndim)[time_axis]
    if freq == time:
        raise ValueError("Must specify differing time and frequency axes!")
    usual = 2 * (z.shape[freq] - 1) if input_onesided else z.shape[freq]
    length = static_int(nperseg or usual, "nperseg: segment length of STFT")
    size = static_int(nfft, "nfft of STFT") if nfft is not None else (
        usual + (input_onesided and length == usual + 1))
    overlap = static_int(noverlap or length // 2, "noverlap of STFT")
    refuse((length < 1, "nperseg must be a positive integer"),
           (size < length, f"FFT length ({size}) must be longer than nperseg ({length})."),
           (overlap >= length, "noverlap must be less than nperseg."), error=ValueError)
    z = jnp.moveaxis(z.astype(jnp.result_type(z.dtype, np.complex64)), (time, freq), (-2, -1))
    segments = (jnp.fft.irfft if input_onesided else jnp.fft.ifft)(z, n=nfft)[..., :length]
    weights = _window(window, length, segments.dtype)
    refuse((weights.ndim != 1, "window must be 1-D"),
           (weights.size != length, f"window must have length of {length}"), error=ValueError)
    x = _overlap_add(segments * jnp.sum(weights) * weights, length - overlap)
    norm = _overlap_add(jnp.broadcast_to(weights * weights, segments.shape[-2:]), length - overlap)
    if boundary:
        x, norm = (a[..., length // 2:-(length // 2)] for a in (x, norm))
    x = x / jnp.where(jnp.real(norm) > 1e-10, norm, 1.)
    x = jnp.moveaxis(x, -1, time - (freq < time)) if time != z.ndim - 1 else x
    # as in JAX, the times are those of the first axis, not of the axis of the signal
    return jnp.arange(x.shape[0], dtype=jnp.finfo(x.dtype).dtype) / fs, x


def _overlap_add(segments: Any, step: int) -> Any:
    """The sum of (…, segments, length), each of which begins a step after the one before."""
    count, length = segments.shape[-2:]
    indices = step * np.arange(count)[:, None] + np.arange(length)
    zeros = jnp.zeros((*segments.shape[:-2], step * (count - 1) + length), segments.dtype)
    return zeros.at[..., indices].add(segments)


_export_all(globals())
