"""The elementary functions: near the true value everywhere, exact where the value is special."""

import math

import jax
import numpy as np
import pytest
import scipy.special

import minijax
from minijax.compiler import cache, cpu
from minijax.compiler.builder import Builder
from minijax.compiler.loops import Buffer, Kernel, NumpyScalars
from minijax.primitives.slots import elementary

INF, NAN, PI = np.inf, np.nan, np.pi
F32, F64 = np.float32, np.float64
LONG = np.longdouble
has_long = pytest.mark.skipif(np.finfo(LONG).nmant < 60, reason="no float wider than float64 here")


def logistic(x):
    z = np.exp(-np.abs(x))
    return np.where(x < 0, z, 1) / (1 + z)


# Function: its true value, and intervals worth a closer look than "any bits at all".
FUNCTIONS = {
    "exp": (np.exp, [(-110, 95)]),
    "exp2": (np.exp2, [(-155, 130)]),
    "expm1": (np.expm1, [(-20, 95), (-1, 1)]),
    "log": (np.log, [(0.5, 2)]),
    "log1p": (np.log1p, [(-1, 3), (-0.01, 0.01)]),
    "tanh": (np.tanh, [(-10, 10), (-1, 1)]),
    "logistic": (logistic, [(-110, 110), (-3, 3)]),
    "sin": (np.sin, [(-10, 10)]),
    "cos": (np.cos, [(-10, 10)]),
    "tan": (np.tan, [(-10, 10)]),
    "atan": (np.arctan, [(-2, 2)]),
    "asin": (np.arcsin, [(-1, 1)]),
    "acos": (np.arccos, [(-1, 1)]),
    "sinh": (np.sinh, [(-91, 91), (-1, 1)]),
    "cosh": (np.cosh, [(-91, 91)]),
    "asinh": (np.arcsinh, [(-3, 3)]),
    "acosh": (np.arccosh, [(1, 5)]),
    "atanh": (np.arctanh, [(-1, 1)]),
    "cbrt": (np.cbrt, [(-8, 8)]),
    "erf": (scipy.special.erf, [(-5, 5), (-1, 1)]),
    "erfc": (scipy.special.erfc, [(-5, 10.5)]),
}
# NumPy has none of these in more digits; the C library's are good to one unit.
IN_LIBM = {"erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc)}


def run(name, *args):
    """The function on arrays, in the NumPy meaning of the scalar operations."""
    return np.asarray(elementary(name)(NumpyScalars(), *args))


def any_bits(dtype, size):
    unsigned = np.uint32 if dtype == F32 else np.uint64
    return np.random.default_rng(0).integers(0, np.iinfo(unsigned).max, size, unsigned).view(dtype)


def samples(dtype, intervals, size):
    generator = np.random.default_rng(1)
    dense = [generator.uniform(low, high, size).astype(dtype) for low, high in intervals]
    return np.concatenate([any_bits(dtype, size), *dense])


def units(got, exact):
    """How many floats lie between two arrays; equal infinities and two nans are 0 apart."""
    signed = np.int32 if got.dtype == F32 else np.int64

    def position(x):
        bits = x.view(signed).astype(object if got.dtype == F64 else np.int64)
        return np.where(bits < 0, np.iinfo(signed).min - bits, bits)

    distance = np.abs(position(got) - position(exact)).astype(float)
    return np.where(np.isnan(got) & np.isnan(exact), 0, distance)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_float32_is_within_a_few_units_of_the_truth(name):
    truth, intervals = FUNCTIONS[name]
    x = samples(F32, intervals, 40_000)
    got = run(name, x)
    assert got.dtype == F32
    distance = units(got, truth(x.astype(F64)).astype(F32))
    # Those of asinh and atanh are XLA's, whose errors are up to three units.
    assert distance.max() <= (3 if name in ("asinh", "atanh") else 2), x[distance.argmax()]


@pytest.mark.skipif(not cpu.has("fma"), reason="XLA rounds products where there is no such sum")
@pytest.mark.parametrize("name", ["log", "log2", "log1p", "arcsinh"])
def test_the_digits_of_a_float32_are_jaxs(name, as_users_compile):
    x = np.random.default_rng(0).normal(size=20_000).astype(F32) * 3
    x = x if name == "arcsinh" else abs(x) if "log2" in name else np.exp(x) - (name == "log1p")
    np.testing.assert_array_equal(minijax.jit(getattr(minijax.numpy, name))(x),
                                  as_users_compile(getattr(jax.numpy, name))(x))


@pytest.mark.parametrize("power", [.5, -.5, 1.7, 3.5, 1 / 3])
def test_a_power_of_a_float32_is_rounded_once(power):
    x = np.random.default_rng(0).uniform(0, 3, 20_000).astype(F32)
    got = np.asarray(minijax.jit(lambda x: x ** power)(x))
    assert np.mean(got != np.power(x.astype(F64), F64(F32(power))).astype(F32)) < 1e-3


def test_a_power_of_one_half_is_a_root():
    x = np.float32([-np.inf, -1, -0.0, 0, 1, 2, np.inf, np.nan])
    got = minijax.jit(lambda x: x ** .5)
    np.testing.assert_array_equal(got(x), jax.jit(lambda x: x ** .5)(x))
    assert "sqrt" in got.lower(x)._lowered.as_text() and not np.signbit(got(x)[2])


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_the_sine_of_a_float32_is_nearly_always_the_nearest_number(name):
    x = np.random.default_rng(0).uniform(-20, 20, 40_000).astype(F32)
    assert np.mean(run(name, x) != FUNCTIONS[name][0](x.astype(F64)).astype(F32)) < .03


@has_long
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_float64_is_within_four_units_of_the_truth(name):
    truth, intervals = FUNCTIONS[name]
    x = samples(F64, [(8 * low, 8 * high) for low, high in intervals] + intervals, 4_000)
    exact = IN_LIBM[name](x) if name in IN_LIBM else truth(x.astype(LONG)).astype(F64)
    got = run(name, x)
    assert got.dtype == F64
    distance = units(got, exact)
    assert distance.max() <= 4, x[distance.argmax()]


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_powers_are_near_the_truth(dtype):
    generator = np.random.default_rng(0)
    wide = F64 if dtype == F32 else LONG
    x = np.concatenate([np.abs(any_bits(dtype, 5000)), generator.uniform(0.5, 2, 5000)])
    limit = 126 if dtype == F32 else 1020
    bits = np.abs(np.log2(x)) + 1e-3
    y = np.where(np.isfinite(bits), generator.uniform(-limit, limit, 10_000) / bits, 2)
    x, y = x.astype(dtype), y.astype(dtype)
    exact = np.power(x.astype(wide), y.astype(wide)).astype(dtype)
    assert units(run("pow", x, y), exact).max() <= (2 if dtype == F32 else 4)


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_angle_of_a_point_is_near_the_truth(dtype):
    wide = F64 if dtype == F32 else LONG
    x, y = np.random.default_rng(0).normal(size=(2, 20_000)).astype(dtype)
    exact = np.arctan2(y.astype(wide), x.astype(wide)).astype(dtype)
    assert units(run("atan2", y, x), exact).max() <= (2 if dtype == F32 else 4)


SPECIAL = {
    "exp": [(0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (NAN, NAN), (1e4, INF), (-1e4, 0)],
    "exp2": [(0, 1), (3, 8), (-1, 0.5), (INF, INF), (-INF, 0), (NAN, NAN), (-149, 2.0**-149)],
    "expm1": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -1), (NAN, NAN), (1e-40, 1e-40)],
    "log": [(1, 0), (0, -INF), (-0.0, -INF), (INF, INF), (-1, NAN), (-INF, NAN), (NAN, NAN)],
    "log1p": [(0, 0), (-0.0, -0.0), (-1, -INF), (-2, NAN), (INF, INF), (NAN, NAN),
              (1e-40, 1e-40), (-1e-40, -1e-40)],
    "tanh": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (NAN, NAN), (1e-40, 1e-40)],
    "logistic": [(0, 0.5), (INF, 1), (-INF, 0), (NAN, NAN)],
    "sin": [(0, 0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (1e-40, 1e-40)],
    "cos": [(0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "tan": [(0, 0), (-0.0, -0.0), (INF, NAN), (NAN, NAN), (1e-40, 1e-40)],
    "atan": [(0, 0), (-0.0, -0.0), (INF, PI / 2), (-INF, -PI / 2), (NAN, NAN), (1, PI / 4)],
    "asin": [(0, 0), (-0.0, -0.0), (1, PI / 2), (-1, -PI / 2), (1.5, NAN), (NAN, NAN)],
    "acos": [(1, 0), (0, PI / 2), (-1, PI), (1.5, NAN), (-1.5, NAN), (NAN, NAN)],
    "sinh": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (1e4, INF)],
    "cosh": [(0, 1), (-0.0, 1), (INF, INF), (-INF, INF), (NAN, NAN), (-1e4, INF)],
    "asinh": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (1e-40, 1e-40)],
    "acosh": [(1, 0), (0.5, NAN), (-INF, NAN), (INF, INF), (NAN, NAN)],
    "atanh": [(0, 0), (-0.0, -0.0), (1, INF), (-1, -INF), (2, NAN), (NAN, NAN), (1e-40, 1e-40)],
    "cbrt": [(0, 0), (-0.0, -0.0), (8, 2), (-27, -3), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "erf": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (NAN, NAN)],
    "erfc": [(0, 1), (INF, 0), (-INF, 2), (NAN, NAN)],
    "erf_inv": [(0, 0), (-0.0, -0.0), (1, INF), (-1, -INF), (1.5, NAN), (-INF, NAN), (NAN, NAN)],
}


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values_are_exact(name, dtype):
    x, expected = np.array(SPECIAL[name], dtype).T
    got = run(name, x)
    np.testing.assert_array_equal(got, expected)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(got)[zeros], np.signbit(expected)[zeros])


EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, INF, -INF, NAN, 1e30, -1e30, 1e-42]


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("name", ["pow", "atan2"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_pairs_follow_c99(name, dtype):
    x, y = (a.ravel() for a in np.meshgrid(*[np.array(EDGES, dtype)] * 2))
    expected = (np.power if name == "pow" else np.arctan2)(x, y)
    got = run(name, x, y)
    np.testing.assert_allclose(got, expected, rtol=1e-6 if dtype == F32 else 1e-14, atol=0)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(got)[zeros], np.signbit(expected)[zeros])


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_may_be_as_large_as_floats_are(name):
    function = getattr(math, name)
    for dtype, exponents in ((F32, range(20, 128)), (F64, range(20, 1024))):
        numbers = np.random.default_rng(0).uniform(1, 2, len(exponents))
        x = np.ldexp(numbers, exponents).astype(dtype)
        np.testing.assert_allclose(run(name, x), [function(v) for v in x.astype(F64)],
                                   rtol=3e-7 if dtype == F32 else 1e-15)


def test_the_hardest_angles_keep_their_digits():
    # The floats nearest to a multiple of π/2 (Muller, Elementary Functions, 2006, chapter 11).
    x = np.array([16367173 * 2.0**72], F32)
    np.testing.assert_allclose(run("cos", x), math.cos(float(x[0])), rtol=3e-7)
    y = np.array([6381956970095103 * 2.0**797], F64)
    np.testing.assert_allclose(run("cos", y), [-4.6871659242546277e-19], rtol=1e-15)


def test_the_inverse_error_function_is_xlas():
    near_one = F32(1) - np.logspace(-7.2, -1, 5000, dtype=F32)
    x = np.concatenate([samples(F32, [(-1, 1)], 50_000), near_one])
    x = x[np.abs(x) > 2 * np.finfo(F32).tiny]  # XLA takes subnormal numbers for 0
    distance = units(run("erf_inv", x), np.asarray(jax.jit(jax.lax.erf_inv)(x)))
    assert distance.max() <= 4


def test_normal_random_numbers_would_be_jaxs():
    key = jax.random.PRNGKey(0)
    least = np.nextafter(F32(-1), F32(0))
    uniform = np.asarray(jax.random.uniform(key, (50_000,), F32, least, 1.0))
    got = F32(np.sqrt(2)) * run("erf_inv", uniform)
    assert units(got, np.asarray(jax.random.normal(key, (50_000,)))).max() <= 4


def test_the_inverse_error_function_inverts_in_float64():
    x = np.random.default_rng(0).uniform(-0.999, 0.999, 5000)
    np.testing.assert_allclose(scipy.special.erf(run("erf_inv", x)), x, rtol=2e-15)


def compiled(name, arrays):
    """The function on arrays, as machine code."""
    b = Builder()
    inputs = [Buffer(f"x{n}", a.dtype, a.shape, "input") for n, a in enumerate(arrays)]
    output = Buffer("y", arrays[0].dtype, arrays[0].shape, "output")
    with b.loop(arrays[0].size, vectorize="parallel") as i:
        value = elementary(name)(b, *(b.load(x, (i,)) for x in inputs))
        b.store(output, (i,), value)
    body = tuple(b.scopes[0].statements)
    result = np.empty_like(arrays[0])
    kernel = Kernel(name, tuple(inputs), (output,), (), (), 0, {}, body)
    assert cache.compile_or_load(kernel).run([*arrays, result]) == 0
    return result


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("name", [*SPECIAL, "pow", "atan2"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_machine_code_gives_the_same_bits(name, dtype, monkeypatch):
    monkeypatch.setenv("MINIJAX_CACHE_DIR", "")
    generator = np.random.default_rng(0)
    size = 4000 if dtype == F32 else 400
    count = 2 if name in ("pow", "atan2") else 1
    arrays = [np.concatenate([any_bits(dtype, size), generator.normal(size=size).astype(dtype),
                              np.array(EDGES, dtype)]) for _ in range(count)]
    got, expected = compiled(name, arrays), run(name, *arrays)
    np.testing.assert_array_equal(got, expected)
