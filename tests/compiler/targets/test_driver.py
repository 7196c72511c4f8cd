"""The driver, played by a few functions: what it is asked, and what is said when it cannot work."""

import sys

import numpy as np
import pytest

from minijax.compiler.targets import driver
from tests.compiler.targets.played import Played


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
    monkeypatch.setattr(played, "cuMemsetD8Async", lambda *args: (700,))
    with pytest.raises(RuntimeError, match="INTERNAL: CUDA: no CUDA-capable device"):
        device.clear(1 << 20, 8)


def test_products_are_done_by_the_gpu_itself_and_other_calls_by_the_host(monkeypatch):
    device, _ = gpu(monkeypatch)
    assert device.routine("product_float32_float32_float32") is not None
    assert device.routine("blas_sgetrf") is None
