"""`scaled_dot` beside JAX: values, defaults, what is refused."""

import jax
import numpy as np
import pytest

import minijax

RNG = np.random.default_rng(0)
LHS, RHS = RNG.standard_normal((2, 4, 64)), RNG.standard_normal((2, 64, 3))
LHS_SCALE, RHS_SCALE = RNG.uniform(.2, 3, (2, 4, 2)), RNG.uniform(.2, 3, (2, 4, 3))


def both(f):
    return [f(lib, lambda x, dtype="float8_e4m3fn", lib=lib: lib.numpy.asarray(x, dtype))
            for lib in (minijax, jax)]


def same(found, wanted):
    assert found.shape == wanted.shape and str(found.dtype) == str(wanted.dtype)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


OPTIONS = [
    {}, {"lhs_scale": LHS_SCALE}, {"rhs_scale": RHS_SCALE},
    *({"lhs_scale": LHS_SCALE, "rhs_scale": RHS_SCALE, "preferred_element_type": dtype}
      for dtype in (None, "bfloat16", "float16", "int32", "float8_e4m3fn")),
    {"dimension_numbers": (((2,), (1,)), ((), ())), "rhs_scale": RHS_SCALE}]


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_values_are_those_of_jax(options):
    same(*both(lambda lib, array: lib.lax.scaled_dot(array(LHS), array(RHS), **{
        name: array(x, "float8_e8m0fnu") if "scale" in name else x
        for name, x in options.items()})))


def test_sums_in_float32():
    found, wanted = both(lambda lib, array: lib.lax.scaled_dot(
        array(LHS), array(RHS), lhs_scale=array(LHS_SCALE), preferred_element_type=np.float32))
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


def test_several_axes_have_blocks():
    x = RNG.standard_normal((4, 6, 3))
    same(*both(lambda lib, array: lib.lax.scaled_dot(
        array(x), array(x), lhs_scale=array(np.ones((2, 1, 3))),
        dimension_numbers=(((0, 1), (0, 1)), ((2,), (2,))))))


def test_compiled_and_in_batches():
    def product(x, y, s):
        return minijax.lax.scaled_dot(x, y, lhs_scale=s, preferred_element_type=np.float32)
    given = [np.float32(x) for x in (LHS, RHS, LHS_SCALE)]
    wanted = np.asarray(product(*given))
    np.testing.assert_allclose(minijax.jit(product)(*given), wanted, 1e-5, 1e-5)
    np.testing.assert_allclose(minijax.vmap(product)(*given), wanted, 1e-5, 1e-5)


REFUSED = [
    ((4,), (4,), {}), ((2, 4), (4,), {}), ((2, 4), (2, 4, 3), {}), ((2, 1), (1, 2), {}),
    ((2, 4), (6, 3), {}), ((1, 2, 4), (2, 4, 3), {}),
    ((2, 4), (4, 3), {"lhs_scale": (2, 3)}), ((2, 4), (4, 3), {"lhs_scale": (2, 4)}),
    ((2, 4), (4, 3), {"lhs_scale": (1, 2)}), ((2, 4), (4, 3), {"rhs_scale": (2, 2)}),
    ((2, 4), (4, 3), {"rhs_scale": (3, 3)}), ((2, 4), (4, 3), {"lhs_scale": (2, 2, 1)}),
    ((2, 4), (4, 3), {"dimension_numbers": (((1,), ()), ((), ()))})]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_does_not_fit_is_refused_in_jaxs_words(case):
    def said(lib, _):
        lhs, rhs, options = case
        with pytest.raises(TypeError) as error:
            lib.lax.scaled_dot(lib.numpy.ones(lhs), lib.numpy.ones(rhs), **{
                name: lib.numpy.ones(x) if "scale" in name else x for name, x in options.items()})
        return str(error.value).splitlines()[0]
    found, wanted = both(said)
    assert found == wanted
