"""The externals: what each means, and that its machine code does the same."""

import numpy as np
import pytest

from minijax.lowering import cache, cpu, library, routines
from minijax.lowering.loops import INT64, Buffer, Call, Constant, Kernel
from tests.running_text import meaning

SIZES = [(3, 5, 4), (1, 1, 1), (0, 3, 2), (3, 0, 2), (2, 3, 0), (257, 70, 90), (66, 259, 80)]


@pytest.fixture(autouse=True)
def nothing_on_disk(monkeypatch):
    monkeypatch.setenv("MINIJAX_CACHE_DIR", "")


def product(name, dtype, transpose_a, transpose_b, m, n, k, padding=0):
    """Operands of a product, the arguments of the call, and the expected result.

    BLAS reads columns where these have rows, so the operands change places.
    """
    generator = np.random.default_rng(0)
    stored_a = (k, m) if transpose_a else (m, k)
    stored_b = (n, k) if transpose_b else (k, n)
    arrays = [generator.normal(size=(rows, columns + padding)).astype(dtype)
              for rows, columns in (stored_a, stored_b)]
    a, b = (x[:, :shape[1]] for x, shape in zip(arrays, (stored_a, stored_b), strict=True))
    expected = (a.T if transpose_a else a) @ (b.T if transpose_b else b)
    letters = [ord("NT"[turned]) for turned in (transpose_b, transpose_a)]
    strides = [max(arrays[1].shape[1], 1), max(arrays[0].shape[1], 1), n]
    return arrays[::-1], (*letters, n, m, k), strides, expected


def compiled(name, arrays, numbers, strides, shape):
    buffers = [Buffer(x, array.dtype, array.shape, "input")
               for x, array in zip("ba", arrays, strict=True)]
    result = Buffer("c", arrays[0].dtype, shape, "output")
    args = [Constant(np.int64(number), INT64) for number in numbers]
    for buffer, stride in zip([*buffers, result], strides, strict=True):
        args += [buffer, Constant(np.int64(stride), INT64)]
    kernel = Kernel("k", tuple(buffers), (result,), (), (), 0, {}, (Call(name, tuple(args)),))
    out = np.full(shape, np.nan, arrays[0].dtype)
    assert cache.compile_or_load(kernel)([*arrays, out]) == 0
    return out


@pytest.mark.parametrize("name", ["sgemm", "dgemm"])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_a_product_is_right_in_numpy_and_in_machine_code(name, transpose_a, transpose_b):
    dtype = np.float32 if name == "sgemm" else np.float64
    for m, n, k in SIZES:
        arrays, numbers, strides, expected = product(name, dtype, transpose_a, transpose_b, m, n, k)
        c = np.full(m * n, np.nan, dtype)
        b, a = (x.reshape(-1) for x in arrays)
        meaning(name)(*numbers, b, strides[0], a, strides[1], c, strides[2])
        np.testing.assert_allclose(c.reshape(m, n), expected, rtol=1e-5)
        np.testing.assert_allclose(compiled(name, arrays, numbers, strides, (m, n)), expected,
                                   rtol=1e-5, atol=1e-5)


def test_rows_of_an_operand_may_lie_apart():
    arrays, numbers, strides, expected = product("sgemm", np.float32, False, True, 3, 5, 4, 2)
    np.testing.assert_allclose(compiled("sgemm", arrays, numbers, strides, (3, 5)), expected,
                               rtol=1e-5)


def test_a_blas_with_32_bit_integers_serves_as_well(monkeypatch):
    monkeypatch.setattr(routines, "blas", library._scipy_blas)
    assert routines.symbols("sgemm") != {"blas_sgemm": library.blas("sgemm")}
    arrays, numbers, strides, expected = product("sgemm", np.float32, True, False, 3, 5, 4)
    np.testing.assert_allclose(compiled("sgemm", arrays, numbers, strides, (3, 5)), expected,
                               rtol=1e-5)


def test_an_unknown_external_is_refused_with_the_names_there_are():
    with pytest.raises(KeyError, match="no external 'zgemm'; there are sgemm, dgemm"):
        routines.definition("zgemm")


def test_a_missing_library_says_what_to_do():
    assert "install one of them from a wheel" in str(library.MissingLibrary("sgemm"))


def test_the_runtime_has_what_llvm_may_call():
    assert {"memcpy", "memset", "fmod", "fmodf"} <= set(library.runtime_addresses())
    assert all(cpu.undisturbed(lambda: cache.addresses(["sgemm"])).values())
