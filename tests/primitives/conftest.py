"""What the tests of single primitives share: the comparison with JAX."""

import jax
import numpy as np
import pytest

from minijax import lax


def outcome(f, module, args):
    try:
        return f(module, *args)
    except Exception as error:
        return error


def compare(ours, theirs):
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        assert type(ours) is type(theirs), (ours, theirs)
        assert str(ours) == str(theirs)
        return
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            compare(one, other)
        return
    assert str(ours.dtype) == str(theirs.dtype)
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


@pytest.fixture
def agrees():
    """`agrees(f, *args)`: `f(lax, *args)` gives the same array, or the same error, in both."""
    return lambda f, *args: compare(outcome(f, lax, args), outcome(f, jax.lax, args))
