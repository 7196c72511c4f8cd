"""`jit` with the compiler numba on a GPU: NVVM's PTX gives the numbers of the CPU.

Without a GPU the machine for PTX runs it. `LARGE=1` takes all programs, each scalar operation at
the ends of its dtypes, and the examples of each primitive.
"""

import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import minijax
from minijax import config, jit, lax, numpy as jnp, tree
from minijax.compiler.numba_text import NARROW, NotInNumba
from minijax.compiler.targets import driver, numba_nvvm, programs, ptx
from tests import numba_cuda
from tests.compiler.targets import test_ptx_machine as machine
from tests.compiler.targets.played import Played
from tests.compiler.targets.ptx_machine import PtxDevice
from tests.compiler.targets.test_ptx import assembler
from tests.compiler.test_llvm import CASES, CONVERSIONS
from tests.test_laws import LARGE, PRIMITIVES

ON_A_GPU = os.environ.get("DEVICE") == "cuda"


@pytest.fixture(scope="session")
def nvvm(tmp_path_factory):
    """Numba's CUDA target with the NVVM of the assembler's wheel, and without a GPU."""
    assembler()  # or what needs it is skipped
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("toolkit")
        patch.setenv("CUDA_HOME", numba_cuda.toolkit(folder)["CUDA_HOME"])
        from numba.cuda import dispatcher  # whose functions ask for the processor of a GPU
        patch.setattr(dispatcher, "get_current_device",
                      lambda: SimpleNamespace(compute_capability=(8, 0)))
        yield


@pytest.fixture
def device(request):
    """A GPU, or what plays one."""
    if ON_A_GPU:
        return minijax.devices("cuda")[0]
    request.getfixturevalue("nvvm")
    PtxDevice.register()
    return minijax.devices("ptx")[0]


X = np.linspace(-2, 2, 4096, dtype=np.float32).reshape(64, 64)
PROGRAMS = {
    "elementwise": (lambda x: jnp.sin(x) * 2 + jnp.exp(x) // 3, X),
    "reductions": (lambda x: ((x * x).sum(), x.max(1), jnp.argmin(x, 0)), X),
    "softmax": (minijax.nn.softmax, X),
    "scan": (lambda x: lax.scan(lambda c, row: (jnp.tanh(c + row), c.sum()), x[0], x), X[:8]),
    "sort": (lambda x: (jnp.sort(x, 0), jnp.argsort(-x, 1)), X),
    "scatter": (lambda x: x.at[jnp.array([0, 2, 0])].add(1.5), X),
    "random bits": (lambda key: minijax.random.bits(key, (5, 300)), minijax.random.key(3)),
    "cumulative": (lambda x: jnp.cumsum(x.ravel() > 0), X),
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 1e6, lambda c: c * c + 1, x), X),
    "gradient": (minijax.grad(lambda x: jnp.log(jnp.cosh(x)).mean()), X),
    "narrow": (lambda x: (x.astype(jnp.bfloat16) * 3, x.astype(jnp.float16) + 1, x > 0), X),
    "complex numbers": (lambda x: jnp.exp(x + 1j) / (x + 2j), X),
    "a call of the host": (lambda x: jnp.linalg.cholesky(x @ x.T / 64 + jnp.eye(64)).sum(1), X),
    "a Python function": (lambda x: minijax.pure_callback(np.sign, x, x) * 2, X),
    "no elements": (lambda x: x[:0] * 2, X),
}
SHARE = PROGRAMS if LARGE or ON_A_GPU else ["softmax", "scan", "scatter", "random bits"]


def check(name, device):
    f, x = PROGRAMS[name]
    expected = tree.leaves(jit(f)(minijax.device_put(x, minijax.devices("cpu")[0])))
    with config.compiler("numba"):
        outs = tree.leaves(jit(f)(minijax.device_put(x, device)))
    for y, z in zip(outs, expected, strict=True):
        assert (y.aval, y.device) == (z.aval, device)
        error = 1e-5 if jnp.issubdtype(z.dtype, jnp.inexact) else 0
        np.testing.assert_allclose(np.asarray(y, np.complex128), np.asarray(z, np.complex128),
                                   rtol=error, atol=error, err_msg=name)


@pytest.mark.parametrize("name", SHARE)
def test_a_program_gives_the_numbers_of_the_cpu(name, device):
    check(name, device)


@pytest.mark.of_tests
def test_addresses_in_another_order_are_found(monkeypatch, device):
    def swapped(*arguments):
        buffers, *rest = ptx.parameters(*arguments)
        return buffers[::-1], *rest
    monkeypatch.setattr(numba_nvvm, "parameters", swapped)
    minijax.clear_caches()
    with pytest.raises(AssertionError, match="softmax"):
        check("softmax", device)


@pytest.mark.parametrize("name", ["softmax", "sort", "scan"] if LARGE else ["softmax"])
def test_the_launcher_passes_both_compilers_the_same(name, nvvm, monkeypatch):
    f, x = PROGRAMS[name]
    monkeypatch.setattr(driver, "bindings", lambda: played)
    launched = []
    for compiler in ("llvm", "numba"):
        played = Played(room=1 << 30)
        with config.compiler(compiler):
            kernel = jit(f).lower(x)._lowered.launches
            launches = programs.Program(kernel, driver.Gpu()).prepared()
            launches.write(*range(1, 2 + sum(map(len, (
                kernel.inputs, kernel.outputs, kernel.constants)))))
            launches.all()
        launched.append(played.launched)
    assert launched[0] == launched[1]


# ── What it cannot do ────────────────────────────────────────────────────────────────────────

REFUSED = ("float8_e5m2", "float8_e4m3fn", "int4", "uint4")  # dtypes of fewer than 16 bits


@pytest.mark.parametrize("dtype", REFUSED)
def test_numbers_of_fewer_bits_are_refused_by_name(dtype, device):
    x = minijax.device_put(jnp.ones(300, dtype), device)
    with config.compiler("numba"), pytest.raises(NotInNumba, match=f"has no {dtype}"):
        jit(lambda x: x + x)(x)
    assert jit(lambda x: x + x)(x).device == device


def test_without_nvvm_it_says_what_to_install(device, monkeypatch):
    monkeypatch.setitem(sys.modules, "numba.cuda", None)
    with config.compiler("numba"), config.enable_compilation_cache(False), pytest.raises(
            ImportError, match=r"pip install 'minijax\[numba-cuda\]', or use the compiler llvm"):
        jit(lambda x: x + 3)(minijax.device_put(X, device))


# ── Operations and primitives ────────────────────────────────────────────────────────────────

def has_a_type(dtype):
    return dtype.isbuiltin == 1 or dtype in NARROW


DTYPES = [*filter(has_a_type, dict.fromkeys(dtype for _, dtype in CASES))] * LARGE
PAIRS = [pair for pair in CONVERSIONS if all(map(has_a_type, pair))]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_each_operation_is_its_meaning_at_every_edge(dtype, nvvm):
    with config.compiler("numba"):
        machine.test_each_operation_is_its_meaning_at_every_edge(dtype)


@pytest.mark.parametrize("target", DTYPES, ids=str)
def test_each_conversion_is_its_meaning_at_every_edge(target, nvvm, monkeypatch):
    monkeypatch.setattr(machine, "CONVERSIONS", PAIRS)
    with config.compiler("numba"):
        machine.test_each_conversion_is_its_meaning_at_every_edge(target)


@pytest.mark.parametrize("name", PRIMITIVES if LARGE else [])
def test_a_primitive_is_its_meaning(name, nvvm):
    with config.compiler("numba"):
        machine.test_a_primitive_is_its_meaning(name)
