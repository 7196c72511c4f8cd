"""Which elements there are, their kinds, sizes and names, against JAX."""

import copy
import itertools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from minijax import element_types

STRONG = [np.dtype(d) for d in (
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "bfloat16",
    "float16", "float32", "float64", "complex64", "complex128", "int4", "uint4", "int2",
    "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float6_e2m3fn")]

# -- kinds ---------------------------------------------------------------------------------------


def test_issubdtype_agrees_with_jax_on_all_types_and_kinds():
    kinds = [np.bool_, np.integer, np.signedinteger, np.unsignedinteger, np.floating, np.inexact,
             np.complexfloating, np.number, np.generic, np.void, float, int, "float32", "bfloat16"]
    lower = [*STRONG, element_types.float0, float, int, "int8"]
    for a, b in itertools.product(lower, kinds + STRONG):
        assert element_types.issubdtype(a, b) == jnp.issubdtype(a, b), (a, b)


def test_isdtype_agrees_with_jax():
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating",
             "complex floating", "numeric", "int8", ("bool", "float32")]
    for d, kind in itertools.product(STRONG, kinds):
        assert element_types.isdtype(d, kind) == jnp.isdtype(d, kind), (d, kind)
    with pytest.raises(ValueError, match="Unrecognized kind='x'"):
        element_types.isdtype("int8", "x")


def test_short_names_are_those_of_jaxprs():
    wanted = {"bool": "bool", "int32": "i32", "uint8": "u8", "float64": "f64", "bfloat16": "bf16",
              "complex64": "c64", "float8_e4m3fn": "f8_e4m3fn", "int4": "i4"}
    assert {d: element_types.short_name(np.dtype(d)) for d in wanted} == wanted
    assert element_types.short_name(element_types.float0) == "float0"


def test_related_dtypes_agree_with_jax():
    from jax._src import dtypes as theirs
    for d in STRONG[:15]:
        for name in ("to_inexact_dtype", "to_floating_dtype", "to_complex_dtype",
                     "to_numeric_dtype", "itemsize_bits"):
            assert getattr(element_types, name)(d) == getattr(theirs, name)(d), (name, d)


# -- keys and float0 -----------------------------------------------------------------------------


def test_key_types_are_one_object_with_jaxs_name_and_size():
    ours, theirs = element_types.key_dtype("threefry2x32"), jax.random.key(0).dtype
    assert (repr(ours), ours.name, ours.itemsize) == (repr(theirs), theirs.name, theirs.itemsize)
    for copied in (copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert copied is ours
    assert ours != np.dtype("uint32")
    assert hash(ours) == hash(element_types.key_dtype("threefry2x32"))


def test_keys_are_a_kind_of_their_own():
    key = element_types.key_dtype("threefry2x32")
    for kind in (element_types.prng_key, element_types.extended):
        assert element_types.issubdtype(key, kind)
    assert not element_types.issubdtype(key, np.number)
    assert not element_types.issubdtype("int8", key)


def test_an_unknown_generator_is_refused():
    with pytest.raises(ValueError, match="no generator 'mt19937'; there is threefry2x32"):
        element_types.key_dtype("mt19937")


def test_float0_is_jaxs_and_takes_no_space():
    assert element_types.float0 == jax.dtypes.float0 and element_types.float0.itemsize == 0
    assert element_types.is_valid_dtype(element_types.float0)
