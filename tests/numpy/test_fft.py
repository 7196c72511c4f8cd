"""Fourier transforms agree with JAX's and NumPy's, obey their laws, and are as exact as JAX's."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax
from minijax import config, lax, numpy as jnp
from tests.oracle import evaluated


@pytest.mark.parametrize("expression", [
    "fft(f)", "fft(c)", "fft(i)", "fft(v, 5)", "fft(v, 2)", "fft(t, axis=0)", "fft(t, 3, -2)",
    "fft(f, norm='ortho')", "fft(f, norm='forward')", "fft(f, norm='backward')", "fft(f, norm='x')",
    "fft(v, 0)", "fft(v, -1)", "fft(v, axis=1)", "fft(v, axis=None)", "fft(1.)",
    "fft(e)", "fft(f, None)", "fft(m.astype('float16'))", "fft(m > 0)", "fft([1., 2.])",
    "ifft(c)", "ifft(f, 5, 0, 'ortho')", "ifft(c, norm='forward')", "ifft(v, 1)",
    "rfft(f)", "rfft(i, 7)", "rfft(f, 4, 0, 'ortho')", "rfft(c)", "rfft(v, 1)",
    "rfft(m.astype('float16'))", "rfft(f, norm='forward')", "irfft(f)", "irfft(c)", "irfft(c, 5)",
    "irfft(c, 7, norm='ortho')", "irfft(f, 1)", "irfft(f, 2)", "irfft(t, axis=1)",
    "irfft(v[:1])", "hfft(f)", "hfft(c, 5)", "hfft(c, norm='ortho')", "hfft(f, axis=(0, 1))",
    "hfft(f, norm='forward')", "ihfft(f)", "ihfft(f, 5)", "ihfft(f, norm='ortho')", "ihfft(c)",
    "ihfft(f, axis=[0])", "fft2(f)", "fft2(t, (3, 2))", "fft2(t, axes=(0, 2))", "fft2(v)",
    "fft2(t, axes=(0,))", "ifft2(c)", "ifft2(t, (2, 5), (2, 0), 'ortho')", "rfft2(f)",
    "rfft2(t, axes=(1, 0))",
    "rfft2(c)", "irfft2(f)", "irfft2(c, (2, 5))", "irfft2(t, axes=(1, 0))", "fftn(t)",
    "fftn(t, (3,))", "fftn(t, (3, 2), (0, 1))", "fftn(t, (3, 2), (0,))", "fftn(t, axes=(0, 0))",
    "fftn(t, axes=())", "fftn(jnp.stack([t, t]))", "fftn(jnp.stack([[t, t]]), norm='ortho')",
    "fftn(t, (0,))", "ifftn(t)", "ifftn(jnp.stack([t, t]), (1, 2, 3, 4))", "rfftn(t)",
    "rfftn(jnp.stack([t, t]))", "rfftn(t, (3, 3), (2, 0))", "irfftn(t)", "irfftn(t, (2, 2, 5))",
    "irfftn(jnp.stack([t, t]))", "irfftn(t, axes=(1,), norm='forward')", "fftfreq(8)",
    "fftfreq(7, 0.5)", "fftfreq(4, dtype='float16')", "fftfreq(4, dtype=int)", "fftfreq([4])",
    "fftfreq(4, [1.])", "fftfreq(4, v[0])", "fftfreq(1)", "rfftfreq(8)", "rfftfreq(7, 0.5)",
    "rfftfreq([4])", "rfftfreq(4, (1.,))", "rfftfreq(4, dtype='float16')", "fftshift(v)",
    "fftshift(f)", "fftshift(f, 1)", "fftshift(t, (0, 2))", "ifftshift(v)",
    "ifftshift(f, -1)", "ifftshift(t, [1])", "ifftshift(i)",
])
def test_results_and_refusals_are_those_of_jax(expression, jax_says):
    def value(lib):
        """With the class of an error, and the begin of its text."""
        x = evaluated("jnp.fft." + expression, lib)
        is_error = isinstance(x, Exception)
        return x, is_error and (type(x).__name__, str(x).splitlines()[0])

    (found, ours), (wanted, theirs) = value(minijax), jax_says(lambda: value(jax))
    assert ours == theirs
    if not theirs:
        assert (found.dtype, found.shape, found.weak_type) == (
            wanted.dtype, wanted.shape, wanted.weak_type)
        scale = 1e-6 * max(1, *np.abs(wanted).ravel()) if wanted.size else 0
        np.testing.assert_allclose(found, wanted, atol=scale)


def signal(rows, n, seed=0, dtype=np.complex64):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(rows, n)) + 1j * rng.normal(size=(rows, n))
    return (z if np.dtype(dtype).kind == "c" else z.real).astype(dtype)


def error(found, wanted):
    return float(np.linalg.norm(np.asarray(found) - wanted) / np.linalg.norm(wanted))


def errors(run, name, wanted, jax_says):
    """That of minijax, and that of JAX."""
    return (error(run(minijax, name), wanted),
            jax_says(lambda: error(run(jax, name), wanted)))


@pytest.mark.parametrize(("rows", "n"), [
    (200, 2), (200, 3), (100, 8), (9, 13), (100, 17), (50, 23), (50, 37), (20, 96), (20, 101),
    (3, 1024), (1, 1155), (1, 12000), (2, 1 << 14)])
def test_compiled_transforms_err_at_most_twice_as_much_as_jax(rows, n, jax_says):
    z = signal(rows, n)
    for name in ("fft", "ifft"):
        wanted = getattr(np.fft, name)(z.astype(complex))
        found, theirs = errors(lambda lib, name: lib.jit(getattr(lib.numpy.fft, name))(z), name,
                               wanted, jax_says)
        assert found <= 2 * theirs + 1e-8, (name, found, theirs)


@pytest.mark.parametrize(("shape", "axis"), [
    ((12, 33), 0), ((2, 13, 3, 7), 1), ((3, 37, 5), 1), ((60, 16), 0), ((250, 20), 0),
    ((8, 1, 3), 0), ((2500, 2), 0), ((2, 96, 1, 1), 1), ((1, 40), 0)])
def test_transforms_along_any_axis_err_at_most_twice_as_much_as_jax(shape, axis, jax_says):
    z = signal(1, int(np.prod(shape))).reshape(shape)
    for name in ("fft", "ifft"):
        wanted = getattr(np.fft, name)(z.astype(complex), axis=axis)
        found, theirs = errors(lambda lib, name: lib.jit(lambda z: getattr(lib.numpy.fft, name)(
            z, axis=axis))(z), name, wanted, jax_says)
        assert found <= 2 * theirs + 1e-8, (name, found, theirs)


@pytest.mark.parametrize("run", [jnp.fft.fft, jnp.fft.ifft, jnp.fft.rfft, jnp.fft.fft2],
                         ids=lambda f: f.__name__)
def test_the_result_is_written_once_where_it_is_asked_for(run):
    x = np.ones((240, 400), np.float32 if run is jnp.fft.rfft else np.complex64)
    lowered = minijax.jit(run).lower(x)
    stored = x.nbytes if run is jnp.fft.fft2 else 0  # between its two axes
    assert lowered.compile().memory_analysis().temp_size_in_bytes < stored + 100_000
    assert ".flat[" not in lowered.as_text()  # loops that copy whole arrays


@pytest.mark.parametrize("n", [1, 2, 4, 5, 6, 12, 37, 64, 74, 250, 1 << 14, 1 << 15])
def test_real_transforms_err_at_most_twice_as_much_as_jax(n, jax_says):
    x, z = signal(50, n, dtype=np.float32), signal(50, n // 2 + 1)
    for name, wanted in (("rfft", np.fft.rfft(x.astype(float))),
                         ("irfft", np.fft.irfft(z.astype(complex), n))):
        found, theirs = errors(lambda lib, name: lib.jit(lambda x: getattr(lib.numpy.fft, name)(
            x, n))(x if name == "rfft" else z), name, wanted, jax_says)
        assert found <= 2 * theirs + 1e-8, (name, found, theirs)


@pytest.mark.parametrize("n", [6, 37, 1 << 14])
def test_numbers_of_64_bits_are_transformed_in_64_bits(n):
    with config.enable_x64(True):
        z = signal(2, n, dtype=complex)
        found = minijax.jit(jnp.fft.fft)(z)
        assert found.dtype == complex and error(found, np.fft.fft(z)) < 1e-14


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 70), seed=st.integers(0, 99), shift=st.integers(0, 70))
def test_laws_of_transforms(n, seed, shift):
    x, y = (jnp.asarray(signal(1, n, seed + k)[0]) for k in range(2))
    f = jnp.fft.fft(x)
    close = lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4, rtol=1e-4)
    close(jnp.fft.ifft(f), x)
    close(jnp.fft.fft(2 * x + y), 2 * f + jnp.fft.fft(y))
    close(jnp.sum(abs(f) ** 2) / n, jnp.sum(abs(x) ** 2))
    turn = np.exp(-2j * np.pi * shift * np.arange(n) / n)
    close(jnp.fft.fft(jnp.roll(x, shift)), f * turn.astype(np.complex64))


@pytest.mark.parametrize("n", [1, 6, 23])
def test_transforms_stand_in_loops_and_derivatives(n):
    x = jnp.asarray(signal(3, n, dtype=np.float32))

    def f(x, lib):
        def turn(x, _):
            return lib.numpy.fft.irfft(lib.numpy.fft.rfft(x) * .5, n), None
        x, _ = lib.lax.scan(turn, x, None, length=2)
        return lib.numpy.sum(abs(lib.numpy.fft.fft(lib.numpy.sin(x))) ** 2)

    wanted = jax.vmap(jax.grad(lambda x: f(x, jax)))(np.asarray(x))
    found = minijax.vmap(minijax.grad(lambda x: f(x, minijax)))
    for run in (found, minijax.jit(found)):
        np.testing.assert_allclose(run(x), wanted, rtol=1e-4, atol=1e-4)


def test_a_transform_in_a_while_loop():
    z = jnp.asarray(signal(1, 12)[0])
    run = lambda z: lax.while_loop(lambda c: c[0] < 4, lambda c: (
        c[0] + 1, jnp.fft.fft(c[1], norm="ortho")), (0, z))[1]
    np.testing.assert_allclose(minijax.jit(run)(z), z, rtol=1e-5, atol=1e-5)


def test_nothing_is_transformed_to_nothing():
    found = minijax.jit(jnp.fft.fft)(jnp.zeros((0, 5)))
    assert found.shape == (0, 5) and found.dtype == np.complex64


@pytest.mark.parametrize("run", [lambda f: f, minijax.jit], ids=["eager", "compiled"])
def test_half_a_spectrum_of_another_size_is_refused(run):
    with pytest.raises(ValueError, match="Got: 3 but fft_length is 10"):
        run(lambda z: lax.fft(z, "irfft", (10,)))(jnp.ones(3))
