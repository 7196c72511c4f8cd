"""Conversions, bit casts, constants, and `stop_gradient`, as JAX has them."""

import warnings

import jax
import numpy as np
import pytest

import minijax
from minijax import lax

FLOATS = np.float32([0., -0., 1.7, -1.7, 255.9, 300., -129., 3e9, -3e9, 1e30, np.inf, -np.inf,
                     np.nan])
INTS = np.int32([0, 1, -1, 300, 2**31 - 1, -2**31])
Z = np.complex64([1 + 2j, -.5j, 3])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", ["bool", "int8", "uint8", "int32", "uint32", "float16",
                                    "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("x", [FLOATS, INTS, np.array([True, False]), Z], ids=lambda x: x.dtype)
def test_conversions_are_those_of_jax(x, target, agrees_closely):
    agrees_closely(lambda lax: lax.convert_element_type(x, jax.numpy.dtype(target)))


@pytest.mark.parametrize("call", [
    lambda lax: lax.convert_element_type(3, "float32"),
    lambda lax: lax.convert_element_type(3, int),
    lambda lax: lax.convert_element_type(2**40, "float32"),
    lambda lax: lax.convert_element_type(300, "int8"),
    lambda lax: lax.convert_element_type(3.5, "int8"),
    lambda lax: lax.convert_element_type(np.nan, "int8"),
    lambda lax: lax.convert_element_type(1., float), lambda lax: lax.convert_element_type(1, bool),
    lambda lax: lax.bitcast_convert_type(True, "int8"),
    lambda lax: lax.bitcast_convert_type(True, bool),
    lambda lax: lax.bitcast_convert_type(FLOATS, "int32"),
    lambda lax: lax.bitcast_convert_type(FLOATS, "uint16"),
    lambda lax: lax.bitcast_convert_type(np.uint8([[1, 2, 3, 4]]), "int32"),
    lambda lax: lax.bitcast_convert_type(np.int8([1, 2, 3]), "float32"),
    lambda lax: lax.bitcast_convert_type(np.int8(1), "int32"),
    lambda lax: lax.bitcast_convert_type(1., "int32"),
    lambda lax: lax.full((2,), 1), lambda lax: lax.full((2,), 1, float),
    lambda lax: lax.full((), 2),
    lambda lax: lax.full((3.,), 1), lambda lax: lax.full((2,), np.ones(2)),
    lambda lax: lax.full((-1,), 1), lambda lax: lax.full((2,), 2.7, "int32"),
    lambda lax: lax.full_like(np.ones(2), 7), lambda lax: lax.full_like(1., 7),
    lambda lax: lax.full_like(np.ones(2), 7, "int8"), lambda lax: lax.full_like(1., 2, shape=(2,)),
    lambda lax: lax.stop_gradient(np.ones(2))])
def test_types_values_and_refusals_are_those_of_jax(call, agrees_closely):
    agrees_closely(call, 1e-7)


def test_a_conversion_to_64_bits_warns_and_gives_32(recwarn):
    assert lax.convert_element_type(np.int32(1), "int64").dtype == np.int32
    assert "truncated to dtype int32" in str(recwarn[0].message)


@pytest.mark.parametrize("dtype", [bool, "bool", int, float, "float32", np.int8, complex])
def test_astype_of_complex_numbers_gives_and_warns_what_jax_gives_and_warns(dtype):
    def heard(lib):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            found = lib.numpy.array([1 + 2j, 1j, 0]).astype(dtype)
        return found.tolist(), str(found.dtype), [(w.category, str(w.message)) for w in given
                                                  if "real" in str(w.message)]
    assert heard(minijax) == heard(jax)


def test_dropping_the_imaginary_part_warns():
    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
        lax.convert_element_type(Z, "float32")


@pytest.mark.parametrize("call", [
    lambda jnp: jnp.any(Z), lambda jnp: jnp.all(Z), lambda jnp: jnp.logical_not(Z),
    lambda jnp: jnp.where(Z, 1, 2), lambda jnp: jnp.count_nonzero(Z), lambda jnp: jnp.isclose(Z, Z),
    lambda jnp: jnp.full(2, 1j, dtype=bool), lambda jnp: jnp.full_like(Z, 1j, dtype=bool),
    lambda jnp: jnp.asarray(Z, dtype=bool), lambda jnp: jnp.sum(Z, dtype=np.float32)])
def test_those_functions_warn_of_a_dropped_part_that_do_in_jax(call):
    def warned(lib):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            call(lib.numpy)
        return any(w.category is np.exceptions.ComplexWarning for w in given)
    assert warned(minijax) == warned(jax)


@pytest.mark.filterwarnings("error::numpy.exceptions.ComplexWarning")
def test_a_gradient_comes_back_to_a_real_factor_without_a_warning():
    z = np.array([1 + 2j, 3 - 1j], np.complex64)
    found, wanted = (lib.grad(lambda x, lib=lib: lib.numpy.abs(x * z).sum())(
        lib.numpy.array([3., -1.])) for lib in (minijax, jax))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_conversion_that_changes_nothing_is_no_equation():
    assert not minijax.make_jaxpr(lambda x: lax.convert_element_type(x, "float32"))(
        np.float32(1)).eqns


def test_a_key_is_not_converted():
    key = minijax.random.key(0)
    with pytest.raises(ValueError, match="Cannot convert_element_type from key<fry> to float32"):
        lax.convert_element_type(key, "float32")


def test_stop_gradient_stops_the_gradient_of_every_leaf():
    f = lambda x: lax.mul(lax.stop_gradient({"a": x})["a"], x)
    assert minijax.grad(f)(3.) == 3.


@pytest.mark.parametrize("number, dtype", [
    (2.5, "int32"), (-2.5, "int32"), (2, "float32"), (1j, "complex64"), (2., "complex64"),
    (np.float32(2.5), "int32"), (np.int64(7), "float16"), (2**40, "float32"), (True, "float32")])
def test_a_number_of_the_program_is_converted_while_it_is_traced(number, dtype):
    programs = [module.make_jaxpr(lambda m=module: m.lax.convert_element_type(number, dtype))()
                for module in (minijax, jax)]
    assert str(programs[0]) == str(programs[1])
    ours, theirs = (m.lax.convert_element_type(number, dtype) for m in (minijax, jax))
    assert (ours.dtype, ours.item()) == (theirs.dtype, theirs.item())


def test_a_complex_number_beside_an_array_is_no_equation():
    x = np.ones(2, np.float32)
    programs = [m.make_jaxpr(lambda x: x + 1j)(m.numpy.asarray(x)) for m in (minijax, jax)]
    assert str(programs[0]) == str(programs[1])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("source", ["float32", "bfloat16", "float16", "int32"])
@pytest.mark.parametrize("target", ["int2", "int4", "uint2", "uint4", "float8_e4m3fn",
                                    "float8_e5m2", "float4_e2m1fn", "float8_e8m0fnu"])
def test_what_does_not_fit_few_bits_becomes_what_it_becomes_in_jax(source, target):
    numbers = [0, 1, -1, 2.5, -2.5, 7.6, 9, -9, 100]
    more = [] if source == "int32" else [3e9, np.nan, np.inf, -np.inf, 2.**-127, 1.2 * 2.**-127]
    x = np.array([*numbers, *more], "float32").astype(minijax.numpy.dtype(source))
    ours, theirs = (np.asarray(lib.numpy.asarray(x).astype(target)).astype(float)
                    for lib in (minijax, jax))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("x", [
    3, 2.5, np.float64(1), np.ones(2, "int16"), int, float, "int32", np.dtype("int64"),
    np.float64, FLOATS, None, [1], object])
def test_dtype_takes_values_types_and_names_as_jax_does(x):
    def found(lib):
        try:
            return lib.lax.dtype(x)
        except (TypeError, ValueError) as error:
            return type(error)
    assert found(minijax) == found(jax)
