"""Few numbers are added up in the order of JAX, compiled and not; many in short chains."""

import jax
import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from minijax.compiler import cpu
from minijax.primitives.summation import CHAIN, FEW, WINDOW, total, windows

# Shapes and axes; but not all of 4, 8, … rows of up to eight: LLVM puts such rows in vectors.
CASES = [((n,), (0,)) for n in (1, 2, 7, 8, 16, 31, 32, 33, 64, 70, 100, 1000, 1025, 4095)] + [
    ((10, 10), (0, 1)), ((6, 20), (0, 1)), ((40, 3), (0, 1)), ((3, 40), (0, 1)),
    ((70, 50), (0, 1)), ((50, 7), (0,)), ((50, 7), (1,)), ((9, 100), (1,)), ((100, 9), (0,)),
    ((4, 5, 6), (0, 2)), ((4, 50, 9), (1, 2)), ((4, 50, 6), (0, 2)), ((2, 1, 40), (1, 2)),
    ((64, 63), (0,)), ((64, 63), (1,)), ((0, 40), (1,)), ((40, 0), (0,))]

needs_fma = pytest.mark.skipif(
    not cpu.has("fma"), reason="JAX's answers are those of a processor with FMA")


def sample(*shape, seed=0, spread=2.0):
    return np.random.default_rng(seed).uniform(-spread, spread, shape).astype(np.float32)


@pytest.fixture
def has_the_bits_of_jax(as_users_compile, jax_says):
    """`check(f, *args, ways)`: `f(jnp, *args)` gives JAX's numbers, compiled and not."""
    def check(f, *args, ways=("eager", "compiled")):
        theirs = jax_says(lambda: np.asarray(
            as_users_compile(lambda *args: f(jax.numpy, *args))(*args)))
        calls = {"eager": lambda: f(jnp, *map(jnp.asarray, args)),
                 "compiled": lambda: minijax.jit(lambda *args: f(jnp, *args))(*args)}
        for way in ways:
            np.testing.assert_array_equal(calls[way](), theirs, way)
    return check


@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize("shape, axes", CASES)
def test_few_numbers_are_combined_in_the_order_of_jax(name, shape, axes, has_the_bits_of_jax):
    has_the_bits_of_jax(lambda np, x: getattr(np, name)(x, axes), sample(*shape))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64"])
def test_so_are_those_of_other_dtypes(dtype, has_the_bits_of_jax):
    has_the_bits_of_jax(lambda np, x: np.sum((x * x).astype(dtype), 1).astype("complex64"),
                        sample(7, 100), ways=["compiled"])
    has_the_bits_of_jax(lambda np, x: np.sum(x.astype(dtype), 1).astype("complex64"),
                        sample(7, 100))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("shape, axis", [
    ((1,), 0), ((16,), 0), ((17,), 0), ((32,), 0), ((300,), 0), ((70_001,), 0), ((50, 20), 1),
    ((40, 9), 0), ((3, 300, 5), 1)])
def test_running_totals_of_any_length_are_those_of_jax(name, shape, axis, has_the_bits_of_jax):
    x = sample(*shape) if name == "cumsum" else 1 + sample(*shape, spread=.01)
    has_the_bits_of_jax(lambda np, x: getattr(np, name)(x, axis), x)


@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
@pytest.mark.parametrize("window", [(4, 3), (3, 5), (7, 1), (6, 6)])
def test_windows_are_added_up_in_the_order_of_jax(window, strides, has_the_bits_of_jax):
    def sums(np, x):
        lax = (jax if np is jax.numpy else minijax).lax
        return lax.reduce_window(x, 0., lax.add, window, strides, "SAME")
    has_the_bits_of_jax(sums, sample(20, 30))


@pytest.mark.parametrize("n", [33, 64, 1000])
def test_long_products_of_vectors_are_those_of_jax(n, has_the_bits_of_jax):
    x, y = sample(n), sample(n, seed=1)
    has_the_bits_of_jax(lambda np, x, y: np.dot(x, y), x, y)
    has_the_bits_of_jax(lambda np, x, y: np.sum(x * y), x, y)


@needs_fma
@pytest.mark.parametrize("n", [1, 3, 10, 32])
def test_short_ones_are_chains_of_fused_multiply_adds(n, has_the_bits_of_jax):
    x, y = sample(n), sample(n, seed=1)
    has_the_bits_of_jax(lambda np, x, y: np.dot(x, y), x, y, ways=["compiled"])
    has_the_bits_of_jax(lambda np, x, y: np.sum(x * y), x, y, ways=["compiled"])


@needs_fma
@pytest.mark.parametrize("n, columns", [(10, 3), (33, 8), (300, 10)])
def test_so_are_products_of_a_vector_and_columns(n, columns, has_the_bits_of_jax):
    has_the_bits_of_jax(lambda np, x, y: x @ y, sample(n), sample(n, columns), ways=["compiled"])


def test_losses_of_few_points_are_those_of_jax(has_the_bits_of_jax):
    has_the_bits_of_jax(lambda np, x, y: np.mean((x - y) ** 2), sample(100), sample(100, seed=1))
    has_the_bits_of_jax(lambda np, x: np.linalg.norm(x), sample(100))
    has_the_bits_of_jax(lambda np, x: np.mean(x, 0) + np.sum(x, 0), sample(50, 7))
    has_the_bits_of_jax(lambda np, x: np.trapezoid(x, dx=.3), sample(200))


@needs_fma
def test_numbers_between_two_are_those_of_jax(has_the_bits_of_jax):
    has_the_bits_of_jax(lambda np, x: np.linspace(x[0], x[1], 50), sample(2), ways=["eager"])


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 70, 4095])
def test_windows_cover_an_axis(n):
    count, lacking = windows(n)
    assert (count - 1) * WINDOW < n <= count * WINDOW
    assert lacking == (count * WINDOW - n) // 2 * (count > 1)


def test_many_numbers_are_added_up_in_short_chains():
    x = np.full((FEW, CHAIN), np.float32(.1))
    exact = np.sum(x, dtype=np.float64)
    assert abs(total(x, (0, 1)) - exact) < 1e-6 * exact
