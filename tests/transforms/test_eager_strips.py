"""Long formulas, evaluated by compiled code: their meaning but for contraction, for every shape."""

import numpy as np
import pytest

import minijax
from minijax import config, lax
from minijax.transforms import eager_strips
from minijax.primitives.families import FormulaPrimitive
from tests.test_laws import PRIMITIVES

LONG = [p for p in PRIMITIVES.values() if isinstance(p, FormulaPrimitive)]
RIM = [0., -0., np.inf, -np.inf, np.nan, 1., -1., 2., -2.5, .5, 1e30, -1e30, 1e-30]


def arguments(p, n, dtype):
    generator = np.random.default_rng(n)
    args = [generator.normal(size=n) * 10. ** generator.uniform(-3, 2, n) for _ in
            p.examples()[0].args]
    for x in args:
        x[:len(RIM)] = generator.permutation(RIM)[:n]
    return [x.astype(dtype) for x in args]


@pytest.mark.parametrize("p", LONG, ids=str)
def test_compiled_strips_are_the_meaning_but_for_contraction(p):
    params = p.examples()[0].params
    for dtype in ("float32", "float64"):
        with config.enable_x64(True), np.errstate(all="ignore"):
            for n in (0, 1, 17, 300):
                args = arguments(p, n, dtype)
                [wanted] = p.impl(*args, **params)
                few = 8 * np.finfo(dtype).eps
                np.testing.assert_allclose(np.asarray(p.bind(*args, **params)), wanted, few, few)


def test_operands_stretch_and_have_any_rank():
    x, q = np.linspace(1.5, 3., 20, dtype="f4").reshape(20, 1), np.float32([[.5, 1., 2.]])
    [wanted] = lax.zeta_p.impl(x, q)
    found = lax.zeta(x, q)
    assert found.shape == (20, 3)
    np.testing.assert_array_equal(found, wanted)
    assert lax.lgamma(3.).weak_type and not lax.lgamma(np.float32(3)).weak_type


def test_arrays_of_many_shapes_share_one_program():
    eager_strips._program.cache_clear()
    for shape in ((), (3,), (2, 5), (1, 4, 4), (60,), (8, 8)):
        lax.lgamma(np.ones(shape, np.float32))
    assert eager_strips._program.cache_info().currsize == 1


@pytest.mark.parametrize("way", ["disable_jit", "numpy"])
def test_without_the_compiler_the_meaning_runs(way, monkeypatch):
    monkeypatch.setattr(eager_strips, "executable", None)  # which would compile it
    x = np.float32([.3, 4.])
    [wanted] = lax.lgamma_p.impl(x)
    if way == "disable_jit":
        with minijax.disable_jit():
            found = lax.lgamma(x)
    else:
        with minijax.default_device(minijax.devices("numpy")[0]):
            found = lax.lgamma(x)
    np.testing.assert_array_equal(found, wanted)


def test_narrow_numbers_and_those_without_machine_code():
    for dtype in (minijax.numpy.bfloat16, np.float16, minijax.numpy.float8_e4m3fn):
        x = minijax.numpy.array([.5, 2.5, 3.], dtype)
        [wanted] = lax.lgamma_p.impl(x._buffer)
        found = lax.lgamma(x)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.astype("float32"), wanted.astype("float32"))
