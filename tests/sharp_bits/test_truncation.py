"""64-bit data that loses what it says is reported; data that is merely rounded is not."""

import warnings

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import config, errors
from minijax.placement import devices
from minijax.sharp_bits.truncation import what_is_lost

RNG = np.random.default_rng(0)
SECONDS = 1.7e9 + np.arange(60.0)

LOST = {
    "milliseconds since 1970": (np.array([1_700_000_000_000]), "1 of 1 value does not fit"),
    "one of many": (np.arange(2**31 - 3, 2**31 + 1), "1 of 4 values does not fit: 2147483648 "
                                                     "becomes -2147483648"),
    "a large unsigned": (np.array([2**32 + 1], np.uint64), "4294967297 becomes 1"),
    "a scalar": (np.int64(2**40), "1099511627776 becomes 0"),
    "beyond float32": (np.array([1.0, 1e39]), "1 of 2 values is too large: 1e+39 becomes inf"),
    "a tiny guard": (np.float64(1e-300), "1 of 1 value is too small: 1e-300 becomes 0.0"),
    "only tiny ones": (np.array([0.0, 1e-50, -1e-60]), "2 of 3 values are too small"),
    "seconds since 1970": (SECONDS, "59 of 59 pairs of neighbours become equal: 1700000000.0 and "
                                    "1700000001.0 are both 1700000000.0"),
    "a signal on an offset": (101325 + 1e-5 * RNG.standard_normal(100), "pairs of neighbours"),
    "an imaginary part": (np.array([1 + 1e300j]), "1e+300 becomes inf"),
}

KEPT = {
    "a grid": np.linspace(0, 1, 1001),
    "normal numbers": RNG.standard_normal(100_000),
    "sorted numbers": np.sort(RNG.random(100_000)),
    "tails that vanish": np.exp(-np.linspace(-50, 50, 1001)**2),
    "a table that levels off": np.tanh(np.linspace(-20, 20, 1001)),
    "a sequence that converges": 1 - 0.5**np.arange(60.0),
    "lengths that differ by rounding": np.linalg.norm(
        (x := RNG.standard_normal((500, 3))) / np.linalg.norm(x, axis=1, keepdims=True), axis=1),
    "many powers of ten": np.logspace(-300, 30, 100),
    "no numbers": np.array([np.inf, -np.inf, np.nan, 0.0, -0.0]),
    "large and small": np.array([[1.0, 2.0], [1e10 + 1, 3.0]]),
    "nothing": np.zeros((0, 3)),
    "counts": np.arange(10),
    "the largest": np.array([2**31 - 1, -2**31]),
    "the largest unsigned": np.array([2**32 - 1], np.uint64),
    "one number": np.float64(np.pi),
    "complex numbers": np.exp(1j * np.linspace(0, 6, 50)),
    "32 bits": np.array([2**31 - 1], np.int32),
}

plus_one = jax.jit(lambda x: x + 1)
WAYS_IN = {
    "asarray": jnp.asarray,
    "array": jnp.array,
    "device_put": jax.device_put,
    "jit": plus_one,
    "an operator": lambda x: jnp.float32(1) * x,
    "a function": jnp.sin,
    "a list": lambda x: jnp.array([x, x]),
    "grad": lambda x: jax.vjp(lambda y: y * 1.0, x),
    "vmap": lambda x: jax.vmap(lambda y: y)(np.stack([x, x])),
    "make_jaxpr": lambda x: jax.make_jaxpr(lambda: jnp.ones(()) * x)(),
}


def found_in(program, *args):
    with (jax.checking_sharp_bits(False, collect=True) as findings,
          config.debug_dtype_truncation(True), warnings.catch_warnings()):
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's own, as in JAX
        program(*args)
    return findings


@pytest.mark.parametrize("name", LOST)
def test_loss_is_found_in(name):
    data, said = LOST[name]
    (found,) = found_in(jnp.asarray, data)
    assert said in found.message and found.kind == "debug_dtype_truncation"
    assert f"{np.asarray(data).dtype} data" in found.message
    assert found.file == "test_truncation.py" and found.fix.endswith(".")


@pytest.mark.parametrize("name", KEPT)
def test_nothing_is_lost_in(name):
    assert found_in(jnp.asarray, KEPT[name]) == []


@pytest.mark.parametrize("way", WAYS_IN)
def test_loss_is_found_whichever_way_data_comes_in(way):
    assert found_in(WAYS_IN[way], np.array([2.0**200, 1.0]))
    assert not found_in(WAYS_IN[way], np.array([0.1, 1.0]))


def test_every_call_of_a_compiled_function_is_looked_at():
    config.update("jax_debug_dtype_truncation", True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", errors.SharpBitWarning)
            for _ in range(3):
                plus_one(np.arange(3))
            with pytest.raises(errors.SharpBitWarning):
                plus_one(np.arange(3) + 2**40)
    finally:
        config.update("jax_debug_dtype_truncation", False)


def test_what_is_asked_for_by_name_is_nobodys_mistake():
    assert not found_in(lambda: jnp.asarray(SECONDS, dtype="float32"))
    assert not found_in(lambda: jnp.float32(SECONDS))


def test_with_64_bits_nothing_is_lost():
    with config.enable_x64(True):
        assert not found_in(plus_one, SECONDS)


def test_a_seed_may_be_longer_than_a_word():
    assert not found_in(lambda: jax.random.key(2**40 + 1))


def test_a_mixed_list_is_looked_at_as_one():
    assert not found_in(lambda: jnp.array([np.float64(1e-300), 1.0]))
    assert not found_in(lambda: jnp.array([np.int64(3), 2.5]))
    assert found_in(lambda: jnp.array([np.float64(1.7e9), np.float64(1.7e9 + 1)]))


def test_the_warning_stands_at_the_line_of_the_user():
    with config.debug_dtype_truncation(True), pytest.warns(errors.SharpBitWarning) as given:
        jnp.asarray(SECONDS)
    assert given[0].filename == __file__ and "Subtract an offset" in str(given[0].message)


def test_whole_numbers_are_lost_exactly_where_they_change():
    for value in RNG.integers(-2**33, 2**33, 200):
        lost = what_is_lost(np.array([value]), np.dtype("int32")) is not None
        assert lost == (not -2**31 <= value < 2**31)


# ── Products in TF32 ─────────────────────────────────────────────────────────────────────────

X = np.ones((64, 64), np.float32)


def found_on_a_gpu(f, *args):
    """What the switch finds when a function is compiled for an NVIDIA GPU."""
    device = devices.CudaDevice()
    with pytest.MonkeyPatch.context() as patch, jax.checking_sharp_bits(collect=True) as findings:
        patch.setattr(devices.GpuDevice, "compiled", lambda self, lowered: None)
        device.compiled(jax.jit(f).lower(*args)._lowered)
    return findings


def test_a_large_product_on_a_gpu_whose_precision_nobody_chose_is_found():
    def f(x):
        return jax.lax.cond(x[0, 0] > 0, lambda x: x @ x, lambda x: x, x)
    [each] = found_on_a_gpu(f, X)
    assert each.kind == "debug_dtype_truncation" and each.file == "test_truncation.py"
    assert "float32[64,64]" in each.message and "TF32" in each.message
    assert '"highest" keeps 24 bits' in each.fix


def convolved(features, precision=None, groups=1):
    w = np.ones((features, 32 // groups, 3, 3), np.float32)
    return lambda x: jax.lax.conv_general_dilated(
        x, w, (1, 1), "SAME", precision=precision, feature_group_count=groups)


IMAGES = np.ones((1, 32, 16, 16), np.float32)


def test_so_is_a_large_convolution():
    [each] = found_on_a_gpu(convolved(8), IMAGES)
    assert "a convolution of float32[1,32,16,16] and float32[8,32,3,3]" in each.message


@pytest.mark.parametrize("f, x", [
    (convolved(8, "highest"), IMAGES), (convolved(4), IMAGES), (convolved(32, groups=32), IMAGES),
    (lambda x: jnp.matmul(x, x, precision="highest"), X),
    (lambda x: jnp.matmul(x, x, precision="default"), X),
    (lambda x: x @ x, X[:32, :32]), (lambda x: x @ x, X.astype(np.float16)),
    (lambda x: x @ x, X.astype(np.int32))])
def test_chosen_small_and_other_products_are_not(f, x):
    assert found_on_a_gpu(f, x) == []
