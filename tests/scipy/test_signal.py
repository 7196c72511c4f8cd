"""Convolutions, trends and spectra are JAX's."""

import jax.scipy.signal  # noqa: F401
import pytest

LONG = "jnp.sin(jnp.arange(40.) ** 1.3)"


MODES = ["full", "same", "valid", "none"]
CONVOLUTIONS = [
    "convolve(v, g[0][:2], {})", "convolve(g[0][:2], v, {})", "convolve(f, g, {})",
    "convolve(i, f, {})", "convolve(c, f[:1], {})", "convolve(t, t[:, :2, :3], {}, 'fft')",
    "convolve(v, f, {})", "convolve(v, v[:0], {})", "convolve(f[:, :2], g[:1], {})",
    "convolve(v, v, {}, 'other')", "convolve2d(f, g[:, :2], {})", "convolve2d(v, v, {})",
    "convolve2d(f, f, {}, 'wrap')", "correlate(v, g[0][:2], {})", "correlate(c, c[:1], {})",
    "correlate2d(f, g[:, :2], {})", "correlate2d(g[:, :2], f, {})", "correlate2d(c, c[:, :2], {})",
    "correlate2d(c[:, :2], c, {})", "correlate2d(f, g, {})", "fftconvolve(f, g[:, :2], {})",
    "fftconvolve(f, g, {}, axes=1)", "fftconvolve(t, t[:, :2], {}, axes=(1, -1))",
    "fftconvolve(c, f, {})", "fftconvolve(f, v, {})", "fftconvolve(f, g[:1], {}, axes=1)",
    "fftconvolve(f[:1], g[:, :2], {})",
]


@pytest.mark.parametrize("expression, mode", [
    (expression, MODES[i % 4]) for i, expression in enumerate(CONVOLUTIONS)])
def test_convolutions(agrees_with_jax, expression, mode):
    agrees_with_jax("jax.scipy.signal." + expression.format(repr(mode)), 1e-5, 1e-4)


@pytest.mark.parametrize("expression", [
    f"detrend({LONG})", f"detrend({LONG}, type='constant')", f"detrend({LONG}, bp=[10, 25])",
    "detrend(t, axis=1)", "detrend(i)", "detrend(c)", "detrend(v, type='cubic')",
    "detrend(v, bp=9)", "detrend(v, overwrite_data=True)", "detrend(t, axis=0, type='constant')",
])
def test_trends(agrees_with_jax, expression):
    agrees_with_jax(f"jax.scipy.signal.{expression}", 1e-5, 2e-5)


@pytest.mark.parametrize("expression", [
    "stft({}, nperseg=16)", "stft({}, nperseg=15, noverlap=4, nfft=20)", "stft({})",
    "stft({}, nperseg=8, boundary='even', detrend='linear')", "stft({} * 1j, nperseg=16)",
    "stft({}, nperseg=8, boundary='odd', padded=False)", "stft({}, nperseg=8, boundary='constant')",
    "stft({}, 2., 'hamming', 8, return_onesided=False)", "stft({}, window=jnp.ones(8), nperseg=8)",
    "stft({}.reshape(4, 10), nperseg=4, axis=0, boundary=None)", "stft({}, nperseg=0)",
    "stft({}, nperseg=8, noverlap=8)", "stft({}, nperseg=8, nfft=4)", "stft({}, boundary='none')",
    "welch({})", "welch({}, 3., nperseg=8)", "welch({}, nperseg=8, average='median')",
    "welch({}, nperseg=8, scaling='spectrum', detrend=False)", "welch({}, nperseg=8, average='no')",
    "welch({}, scaling='no')", "welch({}.reshape(4, 10), nperseg=5, axis=1)",
    "csd({}, jnp.cos(jnp.arange(40.)), nperseg=16)", "csd({}, {}[:20], nperseg=8)",
    "csd({}, jnp.arange(40.), nperseg=8, average='median')", "csd({}, f, nperseg=8)",
    "welch(jnp.arange(16), nperseg=8)", "welch({}, window=f)", "welch({}, window=jnp.ones(50))",
])
def test_spectra(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.signal." + expression.replace("{}", LONG), 1e-4, 2e-6)


@pytest.mark.parametrize("expression", [
    "istft(jax.scipy.signal.stft({}, nperseg=16)[2])", "istft(c)", "istft(c, nperseg=2)",
    "istft(jax.scipy.signal.stft({}, nperseg=8, noverlap=6)[2], noverlap=6)",
    "istft(jax.scipy.signal.stft({}, nperseg=8, window='boxcar')[2], window='boxcar')",
    "istft(jax.scipy.signal.stft({}.reshape(2, 20), nperseg=8)[2])", "istft(v)",
    "istft(jax.scipy.signal.stft({} * 1j, nperseg=8)[2], input_onesided=False)",
    "istft(c, time_axis=0, freq_axis=0)", "istft(c, time_axis=0, freq_axis=1, boundary=False)",
    "istft(t[0] + 0j, nfft=2)", "istft(t[0], noverlap=4)", "istft(t[0], window=v)",
])
def test_signals_come_back(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.signal." + expression.replace("{}", LONG), 1e-4, 2e-6)


@pytest.mark.parametrize("expression", [
    f"jax.grad(lambda x: jax.scipy.signal.welch(x, nperseg=8)[1].sum())({LONG})",
    "jax.vmap(lambda x: jax.scipy.signal.convolve(x, v, 'same'))(f)",
    "jax.jit(jax.scipy.signal.fftconvolve)(g, g)",
    "jax.grad(lambda x: (jax.scipy.signal.fftconvolve(x, g) ** 2).sum())(g)",
])
def test_transformed(agrees_with_jax, expression):
    agrees_with_jax(expression, 1e-3)
