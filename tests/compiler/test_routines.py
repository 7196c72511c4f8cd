"""Routines of BLAS and LAPACK: their text declares what they call, and their meanings agree."""

import re

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax.compiler import cache, cpu, library, llvm
from minijax.compiler.kernels.products import block_routine
from minijax.compiler.loops import INT64, Buffer, Call, Constant, Kernel
from tests.running_text import meaning


@pytest.mark.parametrize("real", "sd")
@pytest.mark.parametrize("name", ["trsm", "potrf", "getrf", "geqrf", "orgqr", "syevd", "gesdd"])
def test_a_routine_has_machine_code_in_the_library(name, real):
    assert library.blas(real + name)


def test_a_routine_takes_numbers_by_their_addresses():
    x = Buffer("x", np.dtype(np.float64), (2, 2), "output")
    call = Call("blas_dpotrf", tuple(Constant(np.int64(n), INT64) for n in (85, 2)) + (x,))
    text = llvm.assembly(Kernel("k", (), (x,), (), (), 0, {}, (call,)))
    assert "declare void @blas_dpotrf(ptr, ptr, ptr, i64, i64, i64, i64)" in text


def _product(x, y, name):
    if "halves" not in name:
        return x @ y
    x, y = np.ascontiguousarray(x).view(np.int16), np.ascontiguousarray(y.T).view(np.int16)
    return x.astype(np.int32) @ y.astype(np.int32).T


@pytest.mark.parametrize("numbers", ["float32", "float64", "int32", "uint32", "int64",
                                     "halves_int32"])
@pytest.mark.parametrize(("rows", "columns", "k", "row", "column", "stop", "is_whole"), [
    (8, 32, 40, 0, 0, 32, False), (5, 16, 1, 2, 3, 11, False), (1, 8, 256, 0, 7, 8, False),
    (3, 4, 7, 2, 0, 4, False), (8, 32, 40, 0, 0, 32, True), (5, 16, 7, 0, 0, 16, True)])
@pytest.mark.parametrize("added", [False, True])
def test_a_block_of_a_product_leaves_what_is_outside(numbers, rows, columns, k, row, column, stop,
                                                     is_whole, added):
    draw, dtype = np.random.default_rng(0), np.dtype(numbers.removeprefix("halves_"))
    shapes = (k, rows + 2), (k, stop + 3), (rows, stop + 1)
    if dtype.kind == "f":
        x, y, z = (draw.normal(size=shape).astype(dtype) for shape in shapes)
    else:
        ends = np.iinfo(dtype)
        x, y, z = (draw.integers(ends.min, ends.max, shape, dtype) for shape in shapes)
    name = f"block_{numbers}_{rows}x{columns}{'_whole' * is_whole}"
    numbers = 1, rows + 2, stop + 3, k, stop + 1, row, column, stop, added
    wanted, expected = z.copy(), z.copy()
    expected[row:, column:stop] *= added
    expected[row:, column:stop] += _product(x.T[:rows], y[:, :stop], name)[row:, column:]
    down, right, step, terms, below, *rest = numbers
    meaning(name)(x.ravel(), down, right, y.ravel(), step, terms, wanted.ravel(), below, *rest)
    np.testing.assert_allclose(wanted, expected, rtol=1e-4, atol=1e-4)

    buffers = [Buffer("x", x.dtype, x.shape, "input"), Buffer("y", x.dtype, y.shape, "input")]
    out, at = Buffer("z", x.dtype, z.shape, "output"), lambda n: Constant(np.int64(n), INT64)
    call = Call(name, (buffers[0], at(down), at(right), buffers[1], at(step), at(terms), out,
                       at(below), *map(at, rest)))
    found = z.copy()
    made = Kernel("k", tuple(buffers), (out,), (), (), 0, {}, (call,))
    assert cache.compile_or_load(made).run([x, y, found]) == 0
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [3, 40, 512])
def test_the_totals_of_a_block_stay_in_registers(dtype, rows):
    if not cpu.host().triple.startswith("x86_64"):
        pytest.skip("the text of this processor's instructions is another one")
    name, *_ = block_routine(rows, 512, np.dtype(dtype), False)
    assembly = cpu.undisturbed(lambda: cpu.compile(llvm.microkernel_assembly(name), "asm", level=1))
    blocks = re.split(r"^\.L\w+:", assembly, flags=re.M)
    whole, *_ = (block for block in blocks if re.search("v?f?m(add|ul)\\w*p[sd]", block))
    assert not re.search(r"mov[au]p[sd].*%\wmm\d+, .*\(", whole)  # a store


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "uint64"])
@pytest.mark.parametrize("rows, columns", [(16, 16), (8, 8), (16, 5), (5, 16), (4, 4), (8, 1)])
def test_a_transpose_leaves_what_is_beside_it(dtype, rows, columns):
    x = np.random.default_rng(0).integers(0, 99, (rows, columns + 3)).astype(dtype)
    z = np.zeros((columns, rows + 2), dtype)
    buffers = Buffer("x", x.dtype, x.shape, "input"), Buffer("z", z.dtype, z.shape, "output")
    args = [(each, Constant(np.int64(each.shape[1]), INT64)) for each in buffers]
    name = f"transpose_{8 * x.itemsize}_{rows}x{columns}"
    made = Kernel("k", buffers[:1], buffers[1:], (), (), 0, {}, (Call(name, sum(args, ())),))
    assert cache.compile_or_load(made).run([x, z]) == 0
    np.testing.assert_array_equal(z[:, :rows], x[:, :columns].T)
    assert not z[:, rows:].any()


def test_the_meaning_of_syevd_replaces_a_matrix_by_its_vectors():
    x = np.float64([[2, 1], [1, 3]])
    a, w, info = x.ravel().copy(), np.zeros(2), np.zeros(1, np.int64)
    meaning("blas_dsyevd")(ord("V"), ord("L"), 2, a, 2, w, np.zeros(30), 30, np.zeros(20), 20, info)
    vectors = a.reshape(2, 2).T
    np.testing.assert_allclose(x @ vectors, vectors * w, atol=1e-12)
    assert not info[0]


def test_the_meaning_of_gesdd_is_columns_one_after_the_other():
    x = np.float64([[2, 1, 0], [1, 3, 1]])
    s, u, vt = np.zeros(2), np.zeros(4), np.zeros(6)
    meaning("blas_dgesdd")(ord("S"), 2, 3, x.T.ravel().copy(), 2, s, u, 2, vt, 2,
                      np.zeros(99), 99, np.zeros(16), np.zeros(1, np.int64))
    left, right = u.reshape(2, 2).T, vt.reshape(3, 2).T
    np.testing.assert_allclose(left * s @ right, x, atol=1e-12)


def test_a_library_with_32_bit_integers_serves_as_well(monkeypatch):
    x = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    expected = lax.linalg.qr(x)
    monkeypatch.setattr(library, "NUMPYS", "no_such_module")
    monkeypatch.setattr(cache, "blas", library.blas.__wrapped__)
    monkeypatch.setattr(cache, "_loaded", {})
    found = minijax.jit(lambda x: lax.linalg.qr(x))(x)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-5)
    [values] = minijax.jit(lambda x: [minijax.numpy.linalg.eigvalsh(x @ x.T)])(x)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(x @ x.T), atol=1e-4)
    for found, expected in zip(minijax.jit(lambda x: lax.linalg.lu(x))(x), lax.linalg.lu(x),
                               strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
