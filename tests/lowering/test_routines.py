"""Routines of BLAS and LAPACK: their text declares what they call, and their meanings agree."""

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax.lowering import library, routines
from minijax.lowering.routines import ROUTINES, definition, symbols
from tests.running_text import meaning


@pytest.mark.parametrize("name", ROUTINES)
def test_a_routine_has_machine_code_and_calls_it(name):
    [(symbol, address)] = symbols(name).items()
    assert address
    text = definition(name)
    assert f"declare void @{symbol}(" in text
    assert f"call void @{symbol}(" in text
    assert text.count("store ") == text.count("alloca ")


def test_the_meaning_of_syevd_replaces_a_matrix_by_its_vectors():
    x = np.float64([[2, 1], [1, 3]])
    a, w, info = x.ravel().copy(), np.zeros(2), np.zeros(1, np.int64)
    meaning("dsyevd")(ord("L"), 2, a, 2, w, np.zeros(30), 30, np.zeros(20), 20, info)
    vectors = a.reshape(2, 2).T
    np.testing.assert_allclose(x @ vectors, vectors * w, atol=1e-12)
    assert not info[0]


def test_the_meaning_of_gesdd_is_columns_one_after_the_other():
    x = np.float64([[2, 1, 0], [1, 3, 1]])
    s, u, vt = np.zeros(2), np.zeros(4), np.zeros(6)
    meaning("dgesdd")(ord("S"), 2, 3, x.T.ravel().copy(), 2, s, u, 2, vt, 2,
                      np.zeros(99), 99, np.zeros(16), np.zeros(1, np.int64))
    left, right = u.reshape(2, 2).T, vt.reshape(3, 2).T
    np.testing.assert_allclose(left * s @ right, x, atol=1e-12)


def test_a_library_with_32_bit_integers_serves_as_well(monkeypatch):
    x = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    expected = lax.linalg.qr(x)
    monkeypatch.setattr(routines, "blas", library._scipy_blas)
    found = minijax.jit(lambda x: lax.linalg.qr(x))(x)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-5)
    [values] = minijax.jit(lambda x: [minijax.numpy.linalg.eigvalsh(x @ x.T)])(x)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(x @ x.T), atol=1e-4)
    for found, expected in zip(minijax.jit(lambda x: lax.linalg.lu(x))(x), lax.linalg.lu(x),
                               strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
