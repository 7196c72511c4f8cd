"""The driver, played by a few functions: what it is asked, and what is said when it cannot work."""

import ctypes
import sys
import types

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.compiler.targets import driver, programs, ptx


class Played:
    """NVIDIA's bindings over this process's own memory, as a GPU of some capability."""

    def __init__(self, capability=(9, 0), count=1, starts=True, room=1 << 20):
        self.capability, self.count, self.starts, self.room = capability, count, starts, room
        self.memory, self.launched = {}, []
        self.CUresult = types.SimpleNamespace(CUDA_ERROR_OUT_OF_MEMORY=2)
        self.CUdevice_attribute = types.SimpleNamespace(
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=0,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=1)
        self.CUmemPool_attribute = types.SimpleNamespace(
            CU_MEMPOOL_ATTR_RELEASE_THRESHOLD=4)
        self.CUstream_flags = types.SimpleNamespace(CU_STREAM_NON_BLOCKING=1)

    def cuInit(self, flags):
        return (0,) if self.starts else (100,)

    def cuGetErrorString(self, status):
        return 0, b"no CUDA-capable device is detected"

    def cuDeviceGetCount(self):
        return 0, self.count

    def cuDeviceGetAttribute(self, kind, device):
        return 0, self.capability[kind]

    def cuDeviceGetName(self, size, device):
        return 0, b"GPU of a test\0\0"

    def cuMemAllocAsync(self, nbytes, stream):
        if nbytes > self.room:
            return 2, None
        memory = ctypes.create_string_buffer(nbytes)
        self.memory[ctypes.addressof(memory)] = memory
        return 0, ctypes.addressof(memory)

    def cuMemFreeAsync(self, address, stream):
        del self.memory[address]
        return (0,)

    def cuMemGetInfo(self):
        return 0, 10, self.room

    def copied(self, into, source, nbytes, stream):
        ctypes.memmove(into, source, nbytes)
        return (0,)

    cuMemcpyHtoDAsync = cuMemcpyDtoHAsync = copied

    def cuMemsetD8Async(self, address, byte, nbytes, stream):
        ctypes.memset(address, byte, nbytes)
        return (0,)

    def cuLaunchKernel(self, *args):
        self.launched.append(args)
        return (0,)

    def __getattr__(self, name):  # what only has to succeed
        assert name.startswith("cu")
        return lambda *args: (0, name)


def gpu(monkeypatch, **how):
    played = Played(**how)
    monkeypatch.setattr(driver, "bindings", lambda: played)
    return driver.Gpu(), played


def test_what_is_stored_is_loaded(monkeypatch):
    device, played = gpu(monkeypatch)
    x, y = np.arange(5.0), np.empty(5)
    address = device.allocate(x.nbytes)
    device.store(address, x)
    device.load(address, y)
    np.testing.assert_array_equal(x, y)
    device.clear(address, 16)
    device.load(address, y)
    np.testing.assert_array_equal(y, [0, 0, 2, 3, 4])
    assert device.held == x.nbytes
    device.free(address, x.nbytes)
    assert not played.memory and not device.held


def test_empty_arrays_have_an_address_too(monkeypatch):
    device, _ = gpu(monkeypatch)
    address = device.allocate(0)
    device.store(address, np.empty(0))
    device.load(address, np.empty(0))


def test_a_launch_is_passed_addresses_and_numbers(monkeypatch):
    device, played = gpu(monkeypatch)
    [function] = device.functions("some PTX", ["launch_0"])
    device.launch(function, 7, 256, (1 << 40, 3, 0.5),
                  (ctypes.c_void_p, ctypes.c_int64, ctypes.c_float))
    [(_, *grid, shared, stream, (values, kinds), extra)] = played.launched
    assert grid == [7, 1, 1, 256, 1, 1] and values == (1 << 40, 3, 0.5)
    assert kinds == (ctypes.c_void_p, ctypes.c_int64, ctypes.c_float)


def test_a_program_passes_each_launch_what_it_asks_for(monkeypatch):
    device, played = gpu(monkeypatch)
    made = minijax.jit(lambda x: jnp.cumsum(jnp.sort(x)) + x.sum()).lower(
        np.zeros(100, np.float32))._lowered.launches
    program = programs.Program(made, device)
    x = programs.Memory.of(device, np.ones(100, np.float32))
    [out] = program(x)
    asked = [ptx.parameters(made, each) for each in ptx.launches_of(made.body)]
    assert len(played.launched) == len(asked)
    for (_, *_, (values, kinds), _), (buffers, temps, numbers) in zip(
            played.launched, asked, strict=True):
        assert len(values) == len(kinds) == len(buffers) + temps + len(numbers)
        assert all(isinstance(each, int) for each in values)
    assert any(out.address in values for (*_, (values, _), _) in played.launched)
    played.launched.clear()
    del out, x
    assert played.memory == {}


def test_the_processor_has_the_name_that_the_assembler_knows(monkeypatch):
    assert gpu(monkeypatch, capability=(8, 6))[0].processor == "sm_86"


@pytest.mark.parametrize("how, said", [
    ({"starts": False}, "no CUDA-capable device is detected.*programs run on the CPU"),
    ({"count": 0}, "driver sees no GPU.*CUDA_VISIBLE_DEVICES"),
    ({"capability": (6, 1)}, "too old: it has compute capability 6.1, and 7.0"),
])
def test_a_machine_that_will_not_do_is_told_in_one_sentence(monkeypatch, how, said):
    with pytest.raises(driver.NoGpu, match=said):
        gpu(monkeypatch, **how)


def test_without_the_bindings_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    driver.bindings.cache_clear()
    with pytest.raises(driver.NoGpu, match=r"pip install 'minijax\[cuda\]'"):
        driver.Gpu()


def test_memory_that_is_not_there_is_told_with_what_is_held(monkeypatch):
    device, _ = gpu(monkeypatch)
    device.allocate(1000)
    with pytest.raises(RuntimeError, match="RESOURCE_EX.*allocate 2097152 bytes.*holds 1000"):
        device.allocate(1 << 21)


def test_an_error_of_the_driver_is_told_in_its_own_words(monkeypatch):
    device, played = gpu(monkeypatch)
    monkeypatch.setattr(played, "cuLaunchKernel", lambda *args: (700,), raising=False)
    with pytest.raises(RuntimeError, match="INTERNAL: CUDA: no CUDA-capable device"):
        device.launch("f", 1, 32, (), ())


def test_products_are_done_by_the_gpu_itself_and_other_calls_by_the_host(monkeypatch):
    device, _ = gpu(monkeypatch)
    assert device.routine("product_float32_float32_float32") is not None
    assert device.routine("blas_sgetrf") is None
