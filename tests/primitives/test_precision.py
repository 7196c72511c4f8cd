"""How exact an operation is asked to be."""

import jax
import numpy as np
import pytest

from minijax import lax

X = np.float32([[1, 2, 3], [4, 5, 6]])
ROWS_TIMES_ROWS = (((1,), (1,)), ((), ()))


@pytest.mark.parametrize("name", "cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan "
                                 "tanh".split())
def test_functions_take_an_accuracy_and_have_the_highest(name):
    f = getattr(lax, name)
    for accuracy in (lax.AccuracyMode.HIGHEST, lax.Tolerance(rtol=1e-5), None):
        assert f(.5, accuracy=accuracy) == f(.5)


def test_what_is_no_accuracy_is_refused(agrees):
    agrees(lambda lax: lax.exp(.5, accuracy=3))
    agrees(lambda lax: lax.Tolerance(-1.))
    agrees(lambda lax: lax.Tolerance())


@pytest.mark.parametrize("name", ["F32_F32_F32", "BF16_BF16_F32", "TF32_TF32_F32", "F16_F16_F32",
                                  "DEFAULT"])
def test_products_take_an_algorithm_that_the_cpu_has(name, agrees):
    agrees(lambda lax: lax.dot_general(X, X, ROWS_TIMES_ROWS,
                                       precision=lax.DotAlgorithmPreset[name]))
    agrees(lambda lax: lax.dot_general(X, X, ROWS_TIMES_ROWS, precision=name))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", [preset.name for preset in lax.DotAlgorithmPreset])
def test_an_algorithm_rounds_factors_as_its_name_says_or_is_refused_as_in_jax(name, dtype):
    if (name, dtype) == ("F16_F16_F16", "bfloat16"):
        pytest.skip("JAX keeps a sum in float32 in between")
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape).astype(jax.numpy.dtype(dtype)) for shape in ((4, 40), (40, 3)))
    def product(lax):
        try:
            found = lax.dot(x, y, precision=name)
        except ValueError as error:
            return str(error), 0
        return found.dtype, np.asarray(found, np.float32)
    (kind, ours), (their_kind, theirs) = product(lax), product(jax.lax)
    assert kind == their_kind
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-5)


def test_algorithms_have_jaxs_names():
    ours, theirs = ([str(preset) for preset in module.DotAlgorithmPreset]
                    for module in (lax, jax.lax))
    assert ours == theirs


@pytest.mark.parametrize("name", [
    "highest", "float32", "high", "bfloat16_3x", "tensorfloat32", "default", "bfloat16", "fastest",
    None])
def test_a_precision_is_found_by_its_other_names_and_prints_its_own(name):
    ours, theirs = lax.Precision(name), jax.lax.Precision(name)
    assert (str(ours), repr(ours), f"{ours}") == (str(theirs), repr(theirs), f"{theirs}")
