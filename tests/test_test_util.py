"""`check_grads` passes right derivatives, and no wrong ones: the same as JAX's."""

import jax
import jax.test_util
import numpy as np
import pytest

import minijax
import minijax.test_util

TREE = {"x": np.array([0.3, -1.2], np.float32), "n": 2.0}


def right(lib):
    return lambda tree: {"y": lib.numpy.sin(tree["x"]) * tree["n"]}


def wrong(lib):
    f = lib.custom_jvp(lambda x: lib.numpy.sin(x))
    f.defjvp(lambda p, t: (f(*p), 1.1 * lib.numpy.cos(p[0]) * t[0]))
    return lambda tree: f(tree["x"])


@pytest.mark.parametrize("lib", [minijax, jax])
@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("lin",), ("fwd", "rev")])
def test_right_derivatives_pass_and_wrong_ones_do_not(lib, modes):
    lib.test_util.check_grads(right(lib), (TREE,), order=2, modes=modes, atol=5e-2, rtol=5e-2)
    with pytest.raises(AssertionError):
        lib.test_util.check_grads(wrong(lib), (TREE,), order=1, modes=modes)


@pytest.mark.parametrize("lib", [minijax, jax])
def test_tolerances_may_be_of_dtypes(lib):
    loose = {np.float32: 0.5}
    lib.test_util.check_grads(wrong(lib), (TREE,), order=1, atol=loose, rtol=loose)


def test_complex_and_integer_arguments_take_part():
    z = np.complex64(0.4 + 0.3j)
    minijax.test_util.check_grads(lambda z: z * z, (z,), order=2)
    minijax.test_util.check_jvp(lambda x, n: x * n, lambda p, t: minijax.jvp(
        lambda x, n: x * n, p, t), (2.0, 3))
