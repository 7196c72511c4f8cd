"""Functions of one array agree with JAX in dtype, weak type, shape and value."""

import jax
import numpy as np
import pytest

import minijax

INEXACT = ("exp exp2 expm1 log log1p sqrt cbrt sin cos tan arcsin arccos arctan sinh cosh tanh "
           "arcsinh arccosh arctanh rint fabs log2 log10 deg2rad rad2deg reciprocal sinc").split()
OTHERS = ("absolute negative positive sign signbit square floor ceil trunc round isfinite "
          "isinf isnan isposinf isneginf nan_to_num real imag conj angle "
          "logical_not").split()
# What JAX refuses, or where it warns of a change to come, is in `test_refusals`.
REAL_ONLY = ("cbrt rint deg2rad rad2deg floor ceil trunc signbit arcsin arccos fabs isposinf "
             "isneginf").split()


@pytest.mark.parametrize("sample", ["x", "i", "s"])
@pytest.mark.parametrize("name", INEXACT + OTHERS)
def test_a_function_of_one_real_array_agrees_with_jax(agrees_with_jax, name, sample):
    agrees_with_jax(f"jnp.{name}({sample})", rtol=2e-5)


@pytest.mark.parametrize("sample", ["u", "h"])
@pytest.mark.parametrize("name", ["exp", "rint", *OTHERS])
def test_a_function_of_rarer_dtypes_agrees_with_jax(agrees_with_jax, name, sample):
    agrees_with_jax(f"jnp.{name}({sample})", rtol=2e-2 if sample == "h" else 1e-5)


@pytest.mark.parametrize("name", [n for n in INEXACT + OTHERS if n not in REAL_ONLY])
def test_a_function_of_a_complex_array_agrees_with_jax(agrees_with_jax, name):
    agrees_with_jax(f"jnp.{name}(c)", rtol=2e-5)


@pytest.mark.parametrize("expression", [
    "jnp.round(f, 1)", "jnp.round(f * 123, -1)", "jnp.round(h, 1)", "jnp.round(i, 1)",
    "jnp.round(i, -1)", "jnp.round(c, 1)", "jnp.angle(c, deg=True)", "jnp.real(2j)",
    "jnp.nan_to_num(n, nan=5, posinf=1, neginf=2)", "jnp.nan_to_num(c)", "jnp.abs(-3)",
    "jnp.conjugate(1j)", "jnp.degrees(1)", "jnp.radians(1)", "jnp.around(f)",
    "jnp.asin(0.5)", "jnp.exp(b)", "jnp.abs(b)",
])
def test_arguments_besides_the_array(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jnp.sin([1.0])", "jnp.exp(None)", "jnp.abs((1, 2))", "jnp.negative(b)", "jnp.sign(b)",
    "jnp.floor(c)", "jnp.cbrt(c)", "jnp.signbit(c)", "jnp.isposinf(c)",
])
def test_refusals(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "tanh", "abs", "square", "sinc",
                                  "reciprocal", "cbrt", "arctan", "log1p", "expm1", "log2"])
def test_derivatives_agree_with_jax(agrees_with_jax, name):
    agrees_with_jax(f"jax.grad(lambda x: jnp.{name}(x).sum())(g)", rtol=2e-5)
    agrees_with_jax(f"jax.jit(jax.vmap(jnp.{name}))(g)", rtol=2e-5)


@pytest.mark.parametrize("x", [0.0, 0.3])
def test_sinc_has_all_its_derivatives_at_and_near_zero(agrees_with_jax, x):
    agrees_with_jax(f"jax.grad(jnp.sinc)({x})", rtol=2e-3)
    agrees_with_jax(f"jax.grad(jax.grad(jnp.sinc))({x})", rtol=2e-3)


@pytest.mark.parametrize("name", ["exp", "sqrt", "exp2", "sin"])
def test_functions_of_weak_truths_are_not_weak(name):
    ours, theirs = (getattr(lib.numpy, name)(lib.numpy.isfinite(.5)) for lib in (minijax, jax))
    assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)


@pytest.mark.parametrize("how", ["eager", "compiled"])
@pytest.mark.parametrize("name", ["expm1", "sqrt", "tanh", "tan", "exp", "sin", "sinh"])
def test_infinities_and_nans_on_the_real_axis_of_complex_numbers(name, how):
    """As C's annex G has it: a real number's result is real, or has no finite part."""
    reals = [0, .5, 200, -200, np.inf, -np.inf, np.nan]
    z = np.array([complex(x, y) for x in reals for y in (0., -0.)], np.complex64)
    ours, theirs = (np.asarray((lib.jit if how == "compiled" else lambda f: f)(
        getattr(lib.numpy, name))(z)) for lib in (minijax, jax))
    np.testing.assert_allclose(ours.real, theirs.real, rtol=1e-6)
    is_number = ~np.isnan(theirs.imag)
    np.testing.assert_allclose(ours.imag[is_number], theirs.imag[is_number], rtol=1e-6)
