"""What the tests of single primitives share: the comparison with JAX."""

import jax
import numpy as np
import pytest

from minijax import lax
from tests.wording import wording


def outcome(f, module, args):
    try:
        return f(module, *args)
    except Exception as error:
        return error


def compare(ours, theirs):
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        assert type(ours) is type(theirs), (ours, theirs)
        assert wording(ours) == wording(theirs)
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


def compare_closely(ours, theirs, tolerance):
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        compare(ours, theirs)
        return
    assert str(ours.dtype) == str(theirs.dtype)
    assert ours.shape == theirs.shape
    assert ours.weak_type == theirs.weak_type
    wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
    one, other = (np.asarray(x) for x in (ours, theirs))
    if tolerance:
        one, other = one.astype(wide), other.astype(wide)
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=0)


@pytest.fixture
def agrees_closely():
    """As `agrees`, up to a relative tolerance; and the weak types are the same, too."""
    def check(f, tolerance=0, *args):
        found, wanted = outcome(f, lax, args), outcome(f, jax.lax, args)
        wanted = wanted if isinstance(wanted, Exception) else jax.numpy.asarray(wanted)
        compare_closely(found, wanted, tolerance)
    return check
