"""The promotion lattice, against JAX."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from minijax import config
from minijax.errors import TypePromotionError
from minijax.promotion import promote_types

STRONG = [np.dtype(d) for d in (
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "bfloat16",
    "float16", "float32", "float64", "complex64", "complex128", "int4", "uint4", "int2",
    "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float6_e2m3fn")]
WEAK = [int, float, complex]


def outcome(f):
    try:
        return f()
    except ValueError as problem:
        return type(problem).__name__


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("mode", ["standard", "strict"])
def test_promote_types_agrees_with_jax_on_all_pairs(x64, mode):
    with (config.enable_x64(x64), config.numpy_dtype_promotion(mode),
          jax.enable_x64(x64), jax.numpy_dtype_promotion(mode)):
        for a, b in itertools.product(STRONG + WEAK, repeat=2):
            ours = outcome(lambda: promote_types(a, b))  # noqa: B023
            theirs = outcome(lambda: jnp.promote_types(a, b))  # noqa: B023
            assert ours == theirs, (a, b)


def test_promotion_is_associative():
    # uint64 with a signed type gives a *weak* float, which `promote_types` cannot hand on
    types = [d for d in STRONG[:15] if d != np.dtype("uint64")]
    for x64 in (False, True):
        with config.enable_x64(x64):
            for a, b, c in itertools.combinations(types, 3):
                left = promote_types(promote_types(a, b), c)
                right = promote_types(a, promote_types(c, b))
                assert left == right, (a, b, c)


def test_types_without_a_common_one_are_refused_with_the_way_out():
    with pytest.raises(TypePromotionError, match=r"8-bit floats.*x.astype\('float32'\)"):
        promote_types("float8_e4m3fn", "float32")
    with config.numpy_dtype_promotion("strict"), \
            pytest.raises(TypePromotionError, match="numpy_dtype_promotion=strict"):
        promote_types("int8", "int16")
