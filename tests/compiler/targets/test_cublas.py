"""The library of large products, played by NumPy: what it is asked, and what is said without it."""

import ctypes
import types

import ml_dtypes
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler.loops import Call, Launch, walk
from minijax.compiler.targets import calls, cublas, launches, tensor_cores
from tests.compiler.targets.test_launches import kernel, run

OF_NUMBERS = {0: np.float32, 1: np.float64, 2: np.float16, 14: ml_dtypes.bfloat16}


class Function:
    """What ctypes gives for a function: it can be told its types."""

    def __init__(self, f):
        self.f = f

    def __call__(self, *args):
        return self.f(*args)


class Played:
    """The library, over this process's own memory: matrices lie by columns."""

    def __init__(self, says=0):
        self.says, self.asked = says, []
        self.cublasCreate_v2 = self.cublasSetStream_v2 = Function(lambda *args: 0)
        self.cublasGetStatusString = Function(lambda status: b"the GPU is on fire")
        self.cublasGemmStridedBatchedEx = Function(self.gemm)

    def gemm(self, handle, turn_a, turn_b, m, n, k, alpha, a, type_a, lda, step_a, b, type_b, ldb,
             step_b, beta, c, type_c, ldc, step_c, batch, how, algorithm):
        self.asked.append((how, algorithm))
        wide = np.float64 if how == 70 else np.float32

        def matrix(address, kind, rows, columns, beyond, step, i):
            assert beyond >= rows
            dtype = np.dtype(OF_NUMBERS[kind])
            count = (columns - 1) * beyond + rows
            raw = (ctypes.c_byte * (count * dtype.itemsize)).from_address(
                address + i * step * dtype.itemsize)
            return np.lib.stride_tricks.as_strided(np.frombuffer(raw, dtype), (rows, columns), (
                dtype.itemsize, beyond * dtype.itemsize), writeable=True)
        for i in range(batch):
            x = matrix(a, type_a, *((k, m) if turn_a else (m, k)), lda, step_a, i).astype(wide)
            y = matrix(b, type_b, *((n, k) if turn_b else (k, n)), ldb, step_b, i).astype(wide)
            real = ctypes.c_double if how == 70 else ctypes.c_float
            assert (real.from_address(alpha).value, real.from_address(beta).value) == (1, 0)
            into = matrix(c, type_c, m, n, ldc, step_c, i)
            into[...] = (x.T if turn_a else x) @ (y.T if turn_b else y)
        return self.says


@pytest.fixture
def played(monkeypatch):
    monkeypatch.setattr(cublas, "handle", cublas.handle.__wrapped__)
    found = Played()
    monkeypatch.setattr(cublas, "library", lambda: found)
    return found


GPU = types.SimpleNamespace(enter=lambda: None, stream=7, name="GPU of a test")
SIZES = {"b": 3, "i": 9, "j": 7, "k": 11}


def call_of(axes, dtype, precision=None, sizes=SIZES, preferred=None):
    """The call that a product becomes, and its factors."""
    x, y = (np.random.default_rng(k).normal(size=[sizes[a] for a in part]).astype(dtype)
            for k, part in enumerate(axes.split("->")[0].split(",")))
    made = kernel(lambda x, y: jnp.einsum(axes, x, y, precision=precision,
                                          preferred_element_type=preferred), x, y)
    [call] = [each for each in walk(made.body) if isinstance(each, Call)]
    return call, x, y


@pytest.mark.parametrize("dtype", list(OF_NUMBERS.values()))
@pytest.mark.parametrize("axes", ["ij,jk", "ji,jk", "ij,kj", "ji,kj", "bij,bjk", "bji,bkj",
                                  "ibj,jbk"])
def test_the_library_is_asked_for_each_layout(monkeypatch, played, axes, dtype):
    monkeypatch.setattr("minijax.compiler.kernels.products.LAUNCHED", 8)
    axes += "->" + "b" * ("b" in axes) + "ik"
    with jax.enable_x64():
        call, x, y = call_of(axes, dtype)
    given = {call.args[0]: x, call.args[4]: y}
    wanted = np.einsum(axes, x.astype(float), y.astype(float))
    for do, pass_on in ((cublas.routine(call.external, GPU), lambda x: x.ctypes.data),
                        (calls.meaning(call.external), np.ravel)):
        out = np.zeros(wanted.shape, dtype)
        memory = {**given, call.args[8]: out}
        flat = out.reshape(-1)
        do(*(pass_on(flat if memory[arg] is out else memory[arg]) if arg in memory else arg.value
             for arg in call.args))
        np.testing.assert_allclose(out.astype(float), wanted, rtol=1e-2, atol=1e-2)
    by_default = {np.float64: 70, np.float32: 77}  # TF32, as in JAX
    assert played.asked == [(by_default.get(dtype, 68), -1)]


def left_to_the_library(f, *args):
    return [each.external for each in walk(launches.scheduled(kernel(f, *args)).body)
            if isinstance(each, Call)]


@pytest.mark.parametrize("dtype, least", [("float32", 64), ("float64", 256), ("float16", 64),
                                          ("bfloat16", 64)])
def test_the_library_is_left_what_is_large(dtype, least):
    with jax.enable_x64():
        large, small = (np.zeros((n, n), jnp.dtype(dtype)) for n in (least, least - 1))
        [name] = left_to_the_library(jnp.matmul, large, large)
        assert name == f"product_{dtype}_{dtype}_{dtype}" + "_tf32" * (dtype == "float32")
        assert left_to_the_library(jnp.matmul, small, small) == []


def test_integers_are_never_left_to_it_and_unlike_factors_as_the_wider_of_them():
    whole, single = np.zeros((256, 256), np.int32), np.zeros((256, 256), np.float32)
    short = single.astype(np.float16)
    assert left_to_the_library(jnp.matmul, whole, whole) == []
    mixed = lambda x, y: jax.lax.dot_general(x, y, (((1,), (0,)), ((), ())))
    assert left_to_the_library(mixed, short, single) == ["product_float32_float32_float32_tf32"]
    wide = lambda x: jax.lax.dot(x, x, preferred_element_type=np.float32)
    assert left_to_the_library(wide, short) == ["product_float16_float16_float32"]


def test_fewer_digits_only_where_a_precision_lets_them_be():
    x = np.zeros((256, 256), np.float32)
    full, fewer = ("product_float32_float32_float32" + tail for tail in ("", "_tf32"))
    for precision, name in ((None, fewer), ("highest", full), ("float32", full),
                            ("tensorfloat32", fewer), ("default", fewer), ("F32_F32_F32", full),
                            (("highest", "default"), full)):
        f = lambda x, p=precision: jnp.dot(x, x, precision=p)
        assert left_to_the_library(f, x) == [name]
    for default, name in (("tensorfloat32", fewer), ("highest", full)):
        with jax.default_matmul_precision(default):
            assert left_to_the_library(lambda x: x @ x, x) == [name]


def test_fewer_digits_are_another_way_to_compute(monkeypatch, played):
    x = np.ones((1, 1), np.float32)
    do = cublas.routine("product_float32_float32_float32_tf32", GPU)
    do(*[x.ctypes.data, 1, 1, 1] * 2, x.ctypes.data, 1, 1, 1, 1)
    assert played.asked == [(77, -1)]


def test_what_follows_a_large_product_is_a_launch_of_its_own(monkeypatch):
    monkeypatch.setattr(tensor_cores, "is_faster", lambda product: False)
    x = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float16)
    [found], made = run(lambda x: jnp.tanh(x @ x), x)
    assert [type(each) for each in made.body] == [Call, Launch]
    np.testing.assert_allclose(found.astype(float), np.tanh(x.astype(float) @ x.astype(float)),
                               atol=1e-2)


def test_other_calls_are_not_the_librarys():
    assert cublas.routine("blas_sgetrf", GPU) is None


def test_what_the_library_says_is_told(monkeypatch):
    found = Played(says=13)
    monkeypatch.setattr(cublas, "library", lambda: found)
    monkeypatch.setattr(cublas, "handle", cublas.handle.__wrapped__)
    x = np.ones((1, 1), np.float32)
    with pytest.raises(RuntimeError, match="INTERNAL: cuBLAS: the GPU is on fire, said to pro"):
        cublas.routine("product_float32_float32_float32", GPU)(
            *[x.ctypes.data, 1, 1, 1] * 2, x.ctypes.data, 1, 1, 1, 1)


def test_without_the_library_what_would_help_is_said(monkeypatch):
    monkeypatch.setattr(cublas, "library_files", lambda: iter([[]]))
    with pytest.raises(cublas.NoCublas, match="is not installed.*pip install 'minijax.cuda.'"):
        cublas.library.__wrapped__()
    monkeypatch.setattr(cublas, "library_files", lambda: iter([["/nowhere/libcublas.so.12"]]))
    with pytest.raises(cublas.NoCublas, match="libcublas.so.12 cannot be loaded"):
        cublas.library.__wrapped__()


def test_the_library_is_looked_for_in_its_wheels_and_then_in_the_system(monkeypatch, tmp_path):
    wheels, files = {"nvidia.cublas": "12", "nvidia.cu13": "13"}, []
    for package, version in wheels.items():
        place = tmp_path / package / cublas.FILES[0]
        place.mkdir(parents=True)
        names = [pattern.replace("*", version) for pattern in cublas.FILES[1:]]
        for name in names:
            (place / name).touch()
        files.append([str(place / name) for name in names])
    monkeypatch.setattr(cublas.importlib.util, "find_spec", lambda name: types.SimpleNamespace(
        submodule_search_locations=[tmp_path / name]))
    monkeypatch.setattr(cublas.ctypes.util, "find_library", lambda name: "libcublas.so")
    assert list(cublas.library_files()) == [*files, ["libcublas.so"]]
