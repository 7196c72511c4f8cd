"""The externals of LAPACK: their text declares what they call, and their meanings agree."""

import numpy as np
import pytest

from minijax.lowering import externals
from minijax.lowering.lapack import ROUTINES


@pytest.mark.parametrize("name", ROUTINES)
def test_a_routine_has_machine_code_and_calls_it(name):
    one = externals.external(name)
    [(symbol, address)] = one.symbols().items()
    assert address
    text = one.definition()
    assert f"declare void @{symbol}(" in text
    assert f"call void @{symbol}(" in text
    assert text.count("store ") == text.count("alloca ")


def test_the_meaning_of_syevd_replaces_a_matrix_by_its_vectors():
    x = np.float64([[2, 1], [1, 3]])
    a, w, info = x.ravel().copy(), np.zeros(2), np.zeros(1, np.int64)
    externals.meaning("dsyevd")(ord("L"), 2, a, 2, w, np.zeros(30), 30, np.zeros(20), 20, info)
    vectors = a.reshape(2, 2).T
    np.testing.assert_allclose(x @ vectors, vectors * w, atol=1e-12)
    assert not info[0]


def test_the_meaning_of_gesdd_is_columns_one_after_the_other():
    x = np.float64([[2, 1, 0], [1, 3, 1]])
    s, u, vt = np.zeros(2), np.zeros(4), np.zeros(6)
    externals.meaning("dgesdd")(ord("S"), 2, 3, x.T.ravel().copy(), 2, s, u, 2, vt, 2,
                              np.zeros(99), 99, np.zeros(16), np.zeros(1, np.int64))
    left, right = u.reshape(2, 2).T, vt.reshape(3, 2).T
    np.testing.assert_allclose(left * s @ right, x, atol=1e-12)
