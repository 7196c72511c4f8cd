"""Arrays on a GPU go to other libraries and come back over the same memory.

A GPU of NVIDIA's is played by the emulator, whose arrays have addresses, too; with DEVICE=cuda it
is a real one.
"""

import ctypes
import gc
import inspect
import os
import types

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.core import ShapedArray
from minijax.placement import devices
from minijax.compiler.targets import driver
from minijax.compiler.targets.emulator import Emulator
from minijax.numpy import interchange

REAL = os.environ.get("DEVICE") == "cuda"
PLAYED = Emulator()  # one for all tests: programs that are kept have constants on it
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def cuda(monkeypatch):
    """The first GPU of NVIDIA's, which is an emulator unless DEVICE names it."""
    if REAL:
        return jax.devices("cuda")[0]
    device = devices.CudaDevice.numbered(0)
    monkeypatch.setitem(devices.processors, device, PLAYED)
    monkeypatch.setattr(driver, "number_of", lambda address: 0)
    return device


@pytest.fixture(params=["emulator", "cuda"])
def gpu(request, cuda):
    return cuda if request.param == "cuda" else jax.devices("emulator")[0]


def address(x):
    return x.there().address


class Through:
    """Another library's array: what it is asked for, and what it says."""

    def __init__(self, x, **named):
        self.x, self.asked, self.named = x, [], named

    def __dlpack__(self, **options):
        self.asked.append(options)
        return self.x.__dlpack__(**options | self.named)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


class Interface:
    """Another library's array that has CUDA's interface, with something changed."""

    def __init__(self, x, **changed):
        self.x, self.changed = x, changed

    @property
    def __cuda_array_interface__(self):
        return self.x.__cuda_array_interface__ | self.changed


@pytest.mark.parametrize("dtype", [
    "bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2), (1, 3, 1)], ids=str)
def test_by_dlpack_the_memory_stays_the_same(gpu, dtype, shape):
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    x = jax.device_put(jnp.asarray(numbers), gpu)
    y = jnp.from_dlpack(x)
    assert y.device is gpu and y.dtype == x.dtype and y.shape == x.shape
    assert address(y) == address(x)
    np.testing.assert_array_equal(np.asarray(y + y), np.asarray(jnp.asarray(numbers) * 2)
                                  if dtype != "bool" else numbers)


def test_the_platform_says_who_can_read_it(cuda):
    assert jax.device_put(X, cuda).__dlpack_device__() == (2, 0)
    assert jax.device_put(X, jax.devices("emulator")[0]).__dlpack_device__() == (12, 0)
    assert jnp.asarray(X).__dlpack_device__() == (1, 0)


def test_the_owner_lives_as_long_as_what_reads_its_memory(gpu):
    gc.collect()
    held = gpu.processor.held
    x = jax.device_put(X, gpu)
    y = jnp.from_dlpack(x)
    x.delete()
    del x
    gc.collect()
    np.testing.assert_array_equal(y, X)
    assert gpu.processor.held == held + X.nbytes
    del y
    gc.collect()
    assert gpu.processor.held == held and not interchange._exported


def test_a_capsule_that_nobody_reads_gives_its_memory_back(gpu):
    x = jax.device_put(X, gpu)
    held = gpu.processor.held
    for version in (None, (1, 0)):
        capsule = x.__dlpack__(max_version=version)
        interchange.forget_unread()
        assert interchange._exported
        del capsule
        interchange.forget_unread()
        assert not interchange._exported and gpu.processor.held == held


def test_a_capsule_is_read_once(gpu):
    x = Through(jax.device_put(X, gpu))
    capsule = x.__dlpack__(max_version=(1, 0))
    x.__dlpack__ = lambda **options: capsule
    jnp.from_dlpack(x)
    with pytest.raises(BufferError, match="used_dltensor_versioned"):
        jnp.from_dlpack(x)


def test_who_knows_no_read_only_memory_is_given_a_copy(gpu):
    x = jax.device_put(X, gpu)

    class Old(Through):
        def __dlpack__(self, stream=None):
            return self.x.__dlpack__(stream=stream)

    y = jnp.from_dlpack(Old(x))
    assert address(y) != address(x)
    np.testing.assert_array_equal(y, X)
    with pytest.raises(BufferError, match="no read-only memory before version 1"):
        x.__dlpack__(copy=False)


@pytest.mark.parametrize("copy, flags", [(None, interchange.READ_ONLY), (True, 2)])
def test_the_flags_say_what_was_done(gpu, copy, flags):
    capsule = jax.device_put(X, gpu).__dlpack__(max_version=(1, 0), copy=copy)
    managed = interchange.managed_in(capsule)
    assert (managed.major, managed.flags) == (1, flags)


def test_what_is_asked_to_be_copied_is_copied(gpu):
    x = jax.device_put(X, gpu)
    assert address(jnp.from_dlpack(x, copy=True)) != address(x)
    assert address(jnp.from_dlpack(x, copy=False)) == address(x)


def test_streams_are_waited_for_as_the_protocol_says(cuda, monkeypatch):
    x, waited = jax.device_put(X, cuda), []
    monkeypatch.setattr(cuda.processor, "wait", lambda stream=None: waited.append(stream))
    x.__dlpack__(max_version=(1, 0), stream=-1)
    assert not waited
    x.__dlpack__(max_version=(1, 0), stream=2)
    assert waited == [None]
    through = Through(x)
    jnp.from_dlpack(through)
    assert through.asked == [{"max_version": (1, 0), "stream": cuda.processor.number}]
    waited.clear()
    y = jnp.asarray(Interface(x, stream=7))
    assert 7 in waited
    waited.clear()
    del y
    assert waited == [None]  # before the owner may go


def test_numpy_reads_what_lies_on_a_gpu_when_it_asks_for_the_host(gpu):
    x = jax.device_put(X, gpu)
    np.testing.assert_array_equal(np.from_dlpack(x, device="cpu"), X)
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(x)
    with pytest.raises(BufferError, match="jax.device_put"):
        x.__dlpack__(max_version=(1, 0), dl_device=(2, 5))


def test_what_lies_elsewhere_is_refused():
    class OnMetal:
        def __dlpack_device__(self):
            return 8, 0

    with pytest.raises(BufferError, match=r"device \(8, 0\) is not supported"):
        jnp.from_dlpack(OnMetal())


def test_numpy_reads_the_capsules_that_are_made_here():
    owner = jnp.arange(12, dtype="int16").reshape(3, 1, 4)._buffer
    memory = types.SimpleNamespace(device=Emulator())

    class OnHost:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **_):
            return interchange.capsule(owner.ctypes.data, ShapedArray(owner.shape, owner.dtype),
                                       (1, 0), memory, interchange.READ_ONLY)

    found = np.from_dlpack(OnHost())
    np.testing.assert_array_equal(found, owner)
    assert found.ctypes.data == owner.ctypes.data and not found.flags.writeable


def test_steps_that_are_not_those_of_rows_are_refused(gpu):
    capsule = jax.device_put(X, gpu).__dlpack__(max_version=(1, 0))
    interchange.managed_in(capsule).tensor.strides[0] = 4
    x = Through(jax.device_put(X, gpu))
    x.__dlpack__ = lambda **options: capsule
    with pytest.raises(BufferError, match=r"strides of \(16, 4\) bytes.*contiguous first"):
        jnp.from_dlpack(x)


@pytest.mark.parametrize("shape, strides, is_fine", [
    ((2, 3), (12, 4), True), ((2, 3), (4, 8), False), ((6,), (8,), False), ((1, 3), (99, 4), True),
    ((0, 3), (1, 1), True), ((), (), True), ((3,), (-4,), False)])
def test_contiguous_is_row_by_row_without_gaps(shape, strides, is_fine):
    check = interchange.check_contiguous
    if is_fine:
        check(shape, strides, np.dtype("float32"))
    else:
        with pytest.raises(BufferError):
            check(shape, strides, np.dtype("float32"))


# ── CUDA's array interface ───────────────────────────────────────────────────────────────────

def test_only_arrays_on_a_cuda_device_have_the_interface(cuda):
    x = jax.device_put(X, cuda)
    assert x.__cuda_array_interface__ == {
        "version": 3, "shape": (2, 3), "typestr": "<f4", "strides": None, "stream": None,
        "data": (address(x), True)}
    assert jax.device_put(np.zeros((0, 2)), cuda).__cuda_array_interface__["data"][0] == 0
    for other in (jnp.asarray(X), jax.device_put(X, jax.devices("emulator")[0]),
                  jax.device_put(jnp.ones(2, "bfloat16"), cuda)):
        assert not hasattr(other, "__cuda_array_interface__")
    jax.jit(lambda x: [x, hasattr(x, "__cuda_array_interface__")].pop(0))(X)
    with pytest.raises(TypeError, match="key_data"):
        hasattr(jax.device_put(jax.random.key(0), cuda), "__cuda_array_interface__")


@pytest.mark.parametrize("view", [Interface, Through])
def test_an_array_of_another_library_is_read_where_it_lies(cuda, view):
    x = jax.device_put(X, cuda)
    other = view(x)
    found = jnp.asarray(other)
    assert found.device is cuda and address(found) == address(x)
    copied = jnp.array(other)
    assert copied.device is cuda and address(copied) != address(x)
    np.testing.assert_array_equal(found + 1, X + 1)
    np.testing.assert_array_equal(copied, X)
    np.testing.assert_array_equal(jnp.asarray(other, dtype="int32"), X.astype("int32"))


def test_wide_numbers_are_narrowed_as_numpy_s_are(cuda):
    with jax.enable_x64(True):
        x = jax.device_put(X.astype(np.float64), cuda)
        assert jnp.asarray(Interface(x)).dtype == "float64"
    for found in (jnp.asarray(Interface(x)), jnp.from_dlpack(Through(x))):
        assert found.dtype == "float32" and found.device is cuda
        np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize("changed, said", [
    ({"strides": (4, 8)}, "contiguous"), ({"mask": 1}, "mask"), ({"typestr": "<M8[s]"}, "datetime"),
    ({"typestr": ">f4"}, "float32|>f4")])
def test_what_cannot_be_taken_is_refused(cuda, changed, said):
    with pytest.raises(BufferError, match=said):
        jnp.asarray(Interface(jax.device_put(X, cuda), **changed))


def test_memory_of_others_is_not_given_back_twice(cuda):
    gc.collect()
    freed = []

    def give_back(where):
        freed.append(where)

    deleter = interchange.DELETER(give_back)
    x = jax.device_put(X, cuda)

    class Other(Through):
        def __dlpack__(self, **options):
            capsule = self.x.__dlpack__(**options)
            interchange.managed_in(capsule).deleter = deleter
            return capsule

    y = jnp.from_dlpack(Other(x))
    z = y + 1
    del y
    gc.collect()
    assert len(freed) == 1
    np.testing.assert_array_equal(z, X + 1)
    interchange._exported.pop(freed[0])
    assert ctypes.sizeof(interchange.Managed) == 64 and ctypes.sizeof(interchange.Versioned) == 80


# ── With a GPU, and other libraries ──────────────────────────────────────────────────────────

@pytest.mark.skipif(not REAL, reason="it needs a GPU: make test-cuda")
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_other_libraries_read_and_give_memory_of_a_gpu(cuda, library):
    other = pytest.importorskip(library)
    x = jax.device_put(X, cuda)
    theirs = other.from_dlpack(x)
    assert theirs.sum().item() == X.sum()
    for back in (jnp.from_dlpack(theirs * 2), jnp.asarray(theirs * 2)):
        assert back.device is cuda
        np.testing.assert_array_equal(back, X * 2)


def test_the_protocol_has_its_parameters():
    names = inspect.signature(jnp.ones(1).__dlpack__).parameters
    assert list(names) == ["stream", "max_version", "dl_device", "copy"]
