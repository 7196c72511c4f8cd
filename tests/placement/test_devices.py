"""Arrays lie on a device, and programs run where their arguments lie.

The device is emulated, unless DEVICE names another: `make test-cuda` runs this on a GPU.
"""

import copy
import gc
import os
import pickle

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import config
from minijax.placement.devices import DeviceArray, EmulatedDevice
from minijax.placement.eager_dispatch import default_device

NAME = os.environ.get("DEVICE", "emulator")
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def gpu():
    return jax.devices(NAME)[0]


@pytest.fixture
def on_gpu():
    """All new arrays lie on the device."""
    with config.platforms(NAME):
        yield


def test_an_unknown_platform_is_refused_with_those_there_are():
    with config.platforms("tpu"), pytest.raises(RuntimeError, match="Platforms present are: cpu"):
        default_device()
    with pytest.raises(RuntimeError, match="Unknown backend tpu. Available backends are"):
        jax.devices("tpu")


def test_a_device_says_what_it_is(gpu):
    assert (str(gpu), gpu.platform, gpu.id) == (f"{NAME}:0", "gpu", 0)
    assert gpu is jax.devices(NAME)[0]
    assert repr(EmulatedDevice()) == "EmulatedDevice(id=0)"
    assert EmulatedDevice(0) == jax.devices("emulator")[0]


def test_what_is_put_on_a_device_lies_there(gpu):
    x = jax.device_put(X, gpu)
    assert x.device is gpu and x.devices() == {gpu} and x.committed
    assert x.sharding.device is gpu
    np.testing.assert_array_equal(x, X)
    back = jax.device_put(x, jax.devices("cpu")[0])
    assert back.device.platform == "cpu"
    np.testing.assert_array_equal(back, X)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 2)])
def test_numbers_of_each_kind_come_back_as_they_were(gpu, dtype, shape):
    x = jnp.arange(6).astype(dtype)[:int(np.prod(shape))].reshape(shape)
    there = jax.device_put(x, gpu)
    assert there.dtype == x.dtype and there.shape == x.shape and repr(there) == repr(x)
    assert repr(there + there) == repr(x + x)


def test_keys_lie_there_too(gpu):
    key = jax.device_put(jax.random.key(3), gpu)
    assert key.device is gpu
    for draw in (jax.random.bits, jax.random.uniform):
        np.testing.assert_array_equal(draw(key, (4,)), draw(jax.random.key(3), (4,)))


@pytest.mark.parametrize("f", [
    lambda x: x + 1, jax.jit(lambda x: jnp.tanh(x).sum()), lambda x: jnp.linalg.inv(x @ x.T),
    lambda x: jax.lax.linalg.triangular_solve(x[:, :2] + 2, x[:, :2], left_side=True, lower=True),
    jax.grad(lambda x: (x ** 3).sum()), jax.vmap(jnp.cumsum), lambda x: x.at[0].set(5),
    lambda x: jax.lax.scan(lambda c, row: (c + row, c), x[0], x)[1],
    lambda x: jax.lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, x),
    lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)],
    ids=["an operation", "jit", "a library", "a library given a number", "grad", "vmap",
         "an update", "scan", "while", "cond"])
def test_a_program_runs_where_its_arguments_lie(gpu, f):
    there = f(jax.device_put(X + 1, gpu))
    assert there.device is gpu
    np.testing.assert_allclose(there, f(jnp.array(X + 1)), rtol=1e-5)


def test_arrays_on_the_host_go_along(gpu):
    x, y = jax.device_put(X, gpu), jnp.ones(3)
    assert (x + y).device is (y + x).device is gpu
    f = jax.jit(lambda a, b: a * b)
    assert f(y, y).device.platform == "cpu"
    assert f(x, y).device is f(y, x).device is f(x, 2.0).device is gpu


def test_a_call_is_dispatched_where_its_arguments_lie(gpu, monkeypatch):
    other = EmulatedDevice.numbered(1)
    f = jax.jit(lambda a, b: a * b)
    places = [jax.devices("cpu")[0], gpu, other]
    arrays = {place: jax.device_put(X, place) for place in places}
    for x in [*arrays.values()] * 2:  # the second call adds a dispatcher
        f(x, x), f(x, 2.0)
    monkeypatch.setattr(type(f), "_call_here", lambda *_: pytest.fail("it was forgotten"))
    for place in [*places, *reversed(places)]:
        x = arrays[place]
        assert f(x, x).device is f(x, 2.0).device is place
        np.testing.assert_array_equal(f(x, x), X * X)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="incompatible devices"):
        f(arrays[gpu], arrays[other])
    with jax.default_device(gpu):
        x = arrays[places[0]]
        assert f(x, x).device is f(x, x).device is f(2.0, 3.0).device is gpu
        assert f(arrays[other], 2.0).device is other


def test_on_two_devices_it_is_refused(gpu):
    other = EmulatedDevice.numbered(1)
    x, y = jax.device_put(X, gpu), jax.device_put(X, other)
    with pytest.raises(ValueError, match=f"incompatible devices.*{NAME}:0 and emulator:1"):
        jax.jit(lambda a, b: a + b)(x, y)
    np.testing.assert_array_equal(x + jax.device_put(y, gpu), X + X)


def test_new_arrays_lie_on_the_default_device(gpu):
    cpu = jax.devices("cpu")[0]
    with jax.default_device(gpu):
        assert jnp.zeros(3).device is jnp.array([1, 2]).device is gpu
        assert jax.jit(lambda: jnp.ones(2))().device is gpu
        with jax.default_device(cpu):
            assert jnp.zeros(3).device is cpu
    assert jnp.zeros(3).device is cpu


def test_the_platform_of_the_environment_is_the_default(on_gpu, gpu):
    assert jax.default_backend() == "gpu" and jax.devices() == [gpu]
    assert jnp.arange(3).device is gpu


def test_calls_of_one_kind_are_dispatched_there(gpu):
    f = jax.jit(lambda x, y: {"sum": x + y["b"]})
    config.update("jax_platforms", NAME)
    try:
        for x in (jnp.ones(3), np.ones(3, np.float32), jnp.ones(3)):
            out = f(x, {"b": 2.0})["sum"]
            assert out.device is gpu
            np.testing.assert_array_equal(out, [3, 3, 3])
    finally:
        config.update("jax_platforms", None)
    assert f(np.ones(3), {"b": 2.0})["sum"].device.platform == "cpu"


def test_jit_for_a_device_runs_there(gpu):
    f = jax.jit(lambda x: x * 2, device=gpu)
    for _ in range(2):
        assert f(X).device is f(jnp.ones(3)).device is gpu
    assert jax.jit(lambda x: x * 2, backend=NAME)(X).device is gpu
    cpu = jax.jit(lambda x: x * 2, backend="cpu")
    assert cpu(jax.device_put(X, gpu)).device.platform == "cpu"


def test_creation_takes_a_device(gpu):
    for made in (jnp.zeros(3, device=gpu), jnp.array([1.0], device=gpu),
                 jnp.asarray(X, device=gpu), jnp.arange(4, device=gpu), jnp.eye(2, device=gpu),
                 jnp.full_like(X, 7, device=gpu), jnp.linspace(0, 1, 3, device=gpu)):
        assert made.device is gpu


def test_compiled_ahead_of_time_it_runs_on_the_default_device(gpu):
    with jax.default_device(gpu):
        compiled = jax.jit(jnp.sin).lower(X).compile()
    np.testing.assert_allclose(compiled(X), np.sin(X), rtol=1e-6)
    assert compiled(X).device is gpu


def test_a_donated_array_gives_its_memory_back(gpu):
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jax.device_put(X, gpu)
    gc.collect()  # what other tests have left
    held = gpu.processor.held
    y = f(x)
    assert x.is_deleted() and gpu.processor.held == held
    for read in (lambda: np.asarray(x), lambda: x + 1):
        with pytest.raises(RuntimeError, match="Array has been deleted"):
            read()
    with pytest.raises(ValueError, match="Buffer has been deleted or donated"):
        f(x)
    np.testing.assert_array_equal(y, X + 1)


def test_memory_is_given_back_when_nobody_has_the_array(gpu):
    gc.collect()
    held = gpu.processor.held
    x = jax.device_put(np.zeros(1000, np.float32), gpu)
    assert gpu.processor.held == held + 4000
    del x
    gc.collect()
    assert gpu.processor.held == held


def test_a_copy_stays_when_the_array_is_deleted(gpu):
    x = jax.device_put(X, gpu)
    for other in (x.copy(), copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        np.testing.assert_array_equal(other, X)
    y = copy.copy(x)
    x.delete()
    assert y.device is gpu
    np.testing.assert_array_equal(y, X)


def test_what_is_asked_of_an_array_is_answered(gpu):
    x = jax.device_put(X, gpu)
    assert isinstance(x, DeviceArray) and isinstance(x, jax.Array)
    assert x.tolist() == X.tolist() and x[1, 2].item() == 5.0 and len(x) == 2
    assert float(x[0, 1]) == 1.0 and [row.tolist() for row in x] == X.tolist()
    assert x.block_until_ready() is x and jax.block_until_ready([x])[0] is x
    assert isinstance(jax.device_get(x), np.ndarray)


def test_an_error_on_the_way_leaves_it_working(gpu):
    def refuse(_):
        raise ValueError("not this one")
    x = jax.device_put(X, gpu)
    with pytest.raises(RuntimeError, match="not this one"):
        jax.jit(lambda x: (jax.debug.callback(refuse, x), x + 1)[1])(x)
    np.testing.assert_array_equal(x + 1, X + 1)


@pytest.mark.parametrize("check", ["debug_nans", "debug_out_of_bounds", "debug_key_reuse"])
def test_the_sharp_bits_are_told_there_too(gpu, check):
    bad = {"debug_nans": lambda: jax.jit(jnp.log)(jax.device_put(-X, gpu)),
           "debug_out_of_bounds": lambda: jax.jit(lambda x, i: x[i])(jax.device_put(X, gpu), 7),
           "debug_key_reuse": lambda: [jax.random.normal(key, (2,)) for key in
                                       [jax.device_put(jax.random.key(0), gpu)] * 2]}[check]
    bad()
    error = {"debug_nans": FloatingPointError, "debug_out_of_bounds": IndexError,
             "debug_key_reuse": jax.errors.KeyReuseError}[check]
    with getattr(jax, check)(True), pytest.raises(error):
        bad()


def test_a_copy_of_a_key_is_the_same_key_there_too(gpu):
    keys = jax.device_put(jax.random.split(jax.random.key(0)), gpu)
    with jax.debug_key_reuse(True):
        jax.random.normal(keys[0])
        with pytest.raises(jax.errors.KeyReuseError):
            jax.random.normal(keys.copy()[0])


def test_an_error_names_the_type_of_an_array_as_on_the_cpu(gpu):
    with pytest.raises(TypeError, match=r"for \+: 'ArrayImpl' and 'list'"):
        jax.device_put(X, gpu) + [1, 2, 3]
