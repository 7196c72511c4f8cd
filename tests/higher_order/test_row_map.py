"""Mapping over rows: the results are JAX's, whatever the batch size."""

import jax
import numpy as np
import pytest

import minijax


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 7])
def test_a_function_is_mapped_over_rows(batch_size):
    rows = {"a": np.arange(15, dtype=np.float32).reshape(5, 3), "b": np.arange(5)}

    def run(lib):
        return lib.lax.map(lambda r: (r["a"].sum() * r["b"], r["a"][::-1]), rows,
                           batch_size=batch_size)
    for ours, theirs in zip(run(minijax), run(jax), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
