"""Arithmetic of two arrays agrees with JAX: promotion, weak types, broadcasting, limits."""

import inspect

import jax
import pytest

import minijax

NAMES = ("add subtract multiply divide floor_divide remainder fmod maximum minimum fmax fmin "
         "power float_power arctan2 hypot logaddexp logaddexp2 copysign heaviside "
         "nextafter divmod").split()
PAIRS = ["f, v", "i, w", "i, 2.5", "2, 3", "u, w", "h, f", "n, 1.0"]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", NAMES)
def test_a_function_of_two_arrays_agrees_with_jax(agrees_with_jax, name, pair):
    agrees_with_jax(f"jnp.{name}({pair})", rtol=2e-2 if "h" in pair else 2e-5)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "divide", "power"])
def test_bools_agree_with_jax(agrees_with_jax, name):
    for pair in ("b, b", "b, 2", "b, f"):
        agrees_with_jax(f"jnp.{name}({pair})")


@pytest.mark.parametrize("expression", [
    "jnp.add(c, f)", "jnp.multiply(c, c)", "jnp.divide(c, 2)", "jnp.power(c, 2)",
    "jnp.power(f, 3)", "jnp.power(f, -2)", "jnp.power(g, 0.5)",
    "jnp.power(w, jnp.array([1, 2, 0]))",
    "jnp.power(g, w)", "jnp.power(2.0, w)", "jnp.power(v, np.int32(2))", "jnp.power(p, 2)",
    "jnp.power(True, 3)", "jnp.power(w, 0)", "jnp.power(w, jnp.array(2))", "w ** 2.0", "2 ** w",
    "jnp.floor_divide(jnp.array([7, -7, 7, -7]), jnp.array([2, 2, -2, -2]))",
    "jnp.remainder(jnp.array([7.5, -7.5]), jnp.array([[2.0], [-2.0]]))",
    "jnp.floor_divide(jnp.array([1.0, -1.0, 0.0]), 0.0)", "jnp.remainder(1.0, 0.0)",
    "jnp.remainder(5, 0)", "jnp.floor_divide(5, 0)", "jnp.divide(1, 0)", "jnp.fmod(-5, 3)",
    "jnp.remainder(-0.0, 3.0)", "jnp.ldexp(g, w)", "jnp.logaddexp(-jnp.inf, -jnp.inf)",
    "jnp.logaddexp(jnp.inf, 1.0)", "jnp.hypot(3e30, 4e30)", "jnp.hypot(jnp.inf, jnp.nan)",
    "jnp.hypot(0.0, 0.0)", "jnp.int8(127) + jnp.int8(1)", "jnp.uint8(3) - jnp.uint8(5)",
    "jnp.maximum(jnp.nan, 1.0)", "jnp.fmax(jnp.nan, 1.0)", "jnp.heaviside(0.0, jnp.nan)",
])
def test_special_values_and_powers(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=2e-5)


WITH_SIGNS_OF_ZERO = "(lambda y: (y, (y == 0) & jnp.signbit(y.astype('float32'))))"
SPECIAL = "jnp.array([jnp.nan, -2., jnp.inf, 3., -0.]), jnp.array([False, False, True, True, True])"


@pytest.mark.parametrize("of", ["x * m", "m * x", "x * m.astype(float)", "x * (x > 0)", "x * m[0]",
                                "x.astype(jnp.float16) * m", "x.astype(jnp.bfloat16) * m",
                                "jnp.stack([x, x]) * m", "x * (1 - m)", "x * m + 1", "2. * m",
                                "(x * m).sum()", "x * np.array([False, True, False, True, False])",
                                "jnp.stack([x, x]) * m.astype(float)[None]", "x * -m.astype(float)",
                                "jax.nn.one_hot(2, 5) * x", "x * False", "jnp.int8(-3) * m"])
def test_a_number_times_false_is_zero_where_xla_selects(agrees_with_jax, of):
    agrees_with_jax(f"{WITH_SIGNS_OF_ZERO}(jax.jit(lambda x, m: {of})({SPECIAL}))")
    if "astype(float)" not in of:  # eager, these are several programs
        agrees_with_jax(f"{WITH_SIGNS_OF_ZERO}((lambda x, m: {of})({SPECIAL}))")


@pytest.mark.parametrize("expression", [
    f"(lambda x, m: jax.lax.complex(x, x) * m)({SPECIAL})",
    f"(lambda x, m: jax.vjp(lambda y: y * m, x)[1](x / 0))({SPECIAL})",
    f"jax.vmap(lambda x, m: x * m)({SPECIAL})"])
def test_so_are_complex_numbers_and_cotangents(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jnp.add([1], 2)", "jnp.subtract(b, b)", "jnp.add(v, jnp.ones(4))", "jnp.power(w, -1)",
    "jnp.floor_divide(c, 2)", "jnp.hypot(c, 1)", "jnp.add(f, None)", "jnp.multiply((), 1)",
])
def test_refusals(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jax.grad(lambda x: (x ** 3).sum())(f)", "jax.grad(lambda x: (x ** 0).sum())(f)",
    "jax.grad(lambda x: (x ** 2.5).sum())(g)", "jax.grad(lambda x: (2.0 ** x).sum())(g)",
    "jax.grad(lambda x: jnp.power(x, w).sum())(jnp.zeros(3) + 1.5)",
    "jax.grad(lambda x: jnp.power(x, jnp.array([2, 3])).sum())(jnp.zeros(2))",
    "jax.grad(lambda x: jnp.logaddexp(x, 1.0).sum())(g)",
    "jax.grad(lambda x: jnp.logaddexp(x, 1.0))(1.0)",
    "jax.grad(lambda x: jnp.hypot(x, 1.0).sum())(f)", "jax.grad(lambda x: (x % 2.0).sum())(g)",
    "jax.grad(lambda x: jnp.maximum(x, 0).sum())(f)", "jax.grad(lambda x: jnp.maximum(x, x))(1.0)",
    "jax.grad(lambda x: jnp.heaviside(x, 0.5))(1.0)", "jax.grad(lambda x: (x / v).sum())(f)",
    "jax.grad(lambda y: (f / y).sum())(v)", "jax.grad(lambda x: jnp.arctan2(x, 2.0))(1.0)",
    "jax.vmap(lambda x, y: x ** 2 + y % 3, (0, None))(f, 2.0)",
    "jax.jit(lambda x, y: (x // y, x % y))(i, 3)",
    "jax.jit(lambda x, y: jnp.power(x, y))(w, jnp.array([1, 2, 3]))",
    "jax.jit(lambda x: divmod(x, 2.5))(f)",
])
def test_transformed_functions_agree_with_jax(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=2e-5)


@pytest.mark.parametrize("name", (
    "divide arctan2 fmod power hypot copysign floor_divide remainder divmod equal not_equal less "
    "less_equal greater greater_equal left_shift right_shift nextafter").split())
def test_the_arguments_of_a_function_of_two_arrays_are_called_as_in_jax(name):
    ours, theirs = (inspect.signature(getattr(lib, name)) for lib in (minijax.numpy, jax.numpy))
    assert [(p.name, p.kind) for p in ours.parameters.values()] == [
        (p.name, p.kind) for p in theirs.parameters.values()]
