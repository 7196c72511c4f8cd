"""Scalar types are dtypes, constructors and names, as in JAX."""

import numpy as np
import pytest

import minijax.numpy as jnp

NAMES = ("bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 "
         "float64 complex64 complex128").split()


@pytest.mark.parametrize("name", NAMES)
def test_a_scalar_type_agrees_with_jax(agrees_with_jax, name):
    agrees_with_jax(f"repr(jnp.{name})")
    agrees_with_jax(f"jnp.{name}(1)")
    agrees_with_jax(f"np.dtype(jnp.{name})")
    agrees_with_jax(f"jnp.zeros(2, jnp.{name})")
    agrees_with_jax(f"jnp.issubdtype(jnp.{name}, jnp.floating)")
    agrees_with_jax(f"jnp.{name} == np.dtype(jnp.{name}).type")


@pytest.mark.parametrize("expression", [
    "jnp.result_type(1, 2.0)", "jnp.promote_types('int8', 'uint8')", "jnp.finfo(jnp.bfloat16).eps",
    "jnp.iinfo(jnp.int8).max", "jnp.pi", "jnp.e", "jnp.inf", "jnp.nan", "jnp.newaxis",
    "jnp.dtype('int8')", "jnp.issubdtype(jnp.int8, jnp.signedinteger)",
    "jnp.can_cast('int8', 'int16')",
    "jnp.isdtype(jnp.float32, 'real floating')", "jnp.result_type(v, 1j)", "jnp.result_type(h, w)",
    "jnp.result_type()", "jnp.shape(f)", "jnp.ndim(f)", "jnp.size(f)", "jnp.size(f, 1)",
    "jnp.isscalar(2)", "jnp.isscalar(s)", "jnp.isscalar(v)", "jnp.iscomplexobj(c)",
    "jnp.isrealobj(f)", "jnp.iscomplex(c)", "jnp.isreal(c)", "jnp.iterable(v)", "jnp.iterable(s)",
    "jnp.astype(f, int)", "jnp.copy(f)",
])
def test_questions_about_dtypes_and_shapes(agrees_with_jax, expression):
    agrees_with_jax(expression)


def test_a_scalar_type_is_a_dtype_wherever_numpy_wants_one():
    assert np.zeros(2, jnp.float32).dtype == np.float32
    assert np.float32 == jnp.float32
    assert {np.float32: "found"}[jnp.float32] == "found"
    assert isinstance(np.float32(1), jnp.float32)
