"""A cast is refused exactly where the new dtype cannot hold the value, wherever the cast is."""

from fractions import Fraction
from math import isfinite

import ml_dtypes
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import config, errors, grad, jit, lax, nn, random, vmap
from minijax.sharp_bits.out_of_bounds import range_held

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = [np.dtype(getattr(ml_dtypes, name, name)) for name in INTEGERS + FLOATS]


@pytest.fixture
def checked():
    with config.debug_unsafe_casts(True):
        yield


def refusal(f, *args):
    """What is said where a cast of `f` does not fit."""
    with pytest.raises(errors.UnsafeCastError) as caught:
        f(*args)
    return str(caught.value).splitlines()[0]


def info(dtype):
    return ml_dtypes.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.finfo(dtype)


def is_float(dtype):
    return dtype.kind not in "iu"


def around(limit, dtype):
    """Values of a dtype near a number, on both sides."""
    if is_float(dtype):
        with np.errstate(over="ignore"):
            value = np.array(float(limit)).astype(dtype)[()]
        found = [value]
        for towards in (-np.inf, np.inf):
            near = value
            with np.errstate(over="ignore"):
                for _ in range(3):
                    near = np.nextafter(near, np.array(towards).astype(dtype)[()])
                    found.append(near)
        return [x for x in found if isfinite(float(x))]
    own = info(dtype)
    return [np.array(n).astype(dtype)[()] for n in range(int(limit) - 3, int(limit) + 4)
            if own.min <= n <= own.max]


def interesting(old, new):
    target = info(new)
    limits = [float(target.min), float(target.max)] if is_float(new) else [target.min, target.max]
    if new in (np.float16, DTYPES[INTEGERS.index("uint16")]):
        limits += [65520, -65520]
    own = info(old)
    bounds = [-1, 0, 1, *limits, *([float(own.min), float(own.max)] if is_float(old)
                                   else [own.min, own.max])]
    return [x for limit in bounds for x in around(limit, old)]


def fits(value, new):
    """By exact arithmetic on integers; by NumPy's own rounding on floats."""
    if is_float(new):
        with np.errstate(over="ignore"):
            return isfinite(float(np.array(value).astype(new)))
    exact = Fraction(float(value)) if is_float(value.dtype) else int(value)
    return info(new).min <= int(exact) <= info(new).max


@pytest.mark.parametrize("new", DTYPES, ids=str)
@pytest.mark.parametrize("old", DTYPES, ids=str)
def test_the_range_is_exactly_that_of_the_values_that_fit(old, new):
    held = range_held(old, new)
    for value in interesting(old, new):
        inside = held is None or old.type(held.low) <= value <= old.type(held.high)
        assert inside == fits(value, new), (value, held)
    if held is not None:
        # the bounds are values of the old dtype: a kernel compares with no other
        exact = float if is_float(old) else int
        assert exact(old.type(held.low)) == held.low and exact(old.type(held.high)) == held.high
        assert held.finite == (not is_float(new) or not is_float(old))


@pytest.mark.parametrize("value, new, said", [
    (np.float32(np.nan), "int32", "int32 cannot hold the float32 nan. Unchecked, the cast gives "
                                  "0."),
    (np.float32(np.inf), "int32", "the float32 inf. Unchecked, the cast gives 2147483647."),
    (np.float32(-1.0), "uint8", "uint8 cannot hold the float32 -1.0. Unchecked, the cast gives 0."),
    (np.float32(300.0), "int8", "the float32 300.0. Unchecked, the cast gives 127."),
    (np.int32(300), "uint8", "uint8 cannot hold the int32 300. Unchecked, the cast gives 44."),
    (np.int32(-1), "uint32", "the int32 -1. Unchecked, the cast gives 4294967295."),
    (np.float32(1e6), "float16", "float16 cannot hold the float32 1000000.0. Unchecked, the cast "
                                 "gives inf."),
    (np.int32(70000), "float16", "float16 cannot hold the int32 70000. Unchecked, the cast gives "
                                 "inf.")])
def test_what_does_not_fit_is_refused_by_every_way_to_cast(value, new, said):
    x, one = jnp.asarray(value), jnp.ones((), value.dtype)
    ways = [lambda x: x.astype(new), lambda x: jnp.astype(x, new),
            lambda x: lax.convert_element_type(x, new), lambda x: jnp.asarray(x, new),
            lambda x: jnp.array(x, dtype=new), lambda x: getattr(jnp, new)(x)]
    for way in ways:
        unchecked = way(x)
        with config.debug_unsafe_casts(True):
            for f in (way, jit(way), lambda x, way=way: vmap(way)(jnp.stack([one, x]))):
                assert said in refusal(f, x)
            with (jax.checking_sharp_bits(False, collect=True) as found,
                  config.debug_unsafe_casts(True)):
                collected = jit(way)(x)
        assert [f.kind for f in found] == ["debug_unsafe_casts"]
        np.testing.assert_array_equal(np.asarray(collected), np.asarray(unchecked))


def test_numpys_own_arrays_are_looked_at_when_they_come_in(checked):
    assert "int8 cannot hold the int64 200" in refusal(
        lambda: jnp.asarray(np.array([1, 200]), dtype="int8"))
    assert "float16 cannot hold the float64 1e+30" in refusal(
        lambda: jnp.float16(np.float64(1e30)))
    jnp.asarray(np.array([1, 100]), dtype="int8")


def test_the_error_names_function_file_and_line(checked):
    @jit
    def mask(x):
        y = x / 0.0
        return y.astype(int) + 1

    with pytest.raises(ValueError) as caught:
        lax.scan(lambda c, v: (c + mask(v), None), 0, jnp.ones(3))
    found = caught.value.finding
    assert (found.function, found.file) == ("mask", "test_casts.py")
    assert found.line == mask.__wrapped__.__code__.co_firstlineno + 3
    assert "return y.astype(int) + 1" in str(caught.value)


def test_what_fits_is_not_refused(checked):
    @jit
    def f(x):
        wide = jnp.array([jnp.nan, jnp.inf, -jnp.inf, 65519.0])
        return (x.astype(bool), wide.astype(bool), wide.astype("float16"), wide.astype("bfloat16"),
                (x > 0).astype("int8"), jnp.array([-0.9, 255.9]).astype("uint8"),
                jnp.array([-2147483648.0, 2147483520.0]).astype("int32"),
                jnp.float32(16777217).astype("int32"))
    f(jnp.arange(3.0))


def test_the_branch_that_does_not_run_may_hold_a_cast_that_does_not_fit(checked):
    def f(x):
        return lax.cond(jnp.isfinite(x), lambda: x.astype(int), lambda: -1)
    assert vmap(f)(jnp.array([1.5, jnp.nan])).tolist() == [1, -1]
    assert jit(f)(jnp.nan) == -1


def test_the_derivative_of_a_cast_is_not_looked_at_again(checked):
    f = grad(lambda x: x.astype("float16").astype("float32") * 1e6)
    text = str(jax.make_jaxpr(f)(1.0))
    assert text.count("check[") == 1
    assert jnp.isinf(jit(f)(1.0))  # the slope does not fit into float16: no value of the program


def test_casts_of_the_package_itself_are_its_own(checked):
    key = random.key(0)
    for call in (lambda: random.randint(key, (9,), -5, 2 ** 31 - 1),
                 lambda: random.randint(key, (9,), -2 ** 31, 2 ** 31 - 1),
                 lambda: random.randint(key, (9,), 0, 255, "uint8"),
                 lambda: random.fold_in(key, jnp.int32(-1)),
                 lambda: random.key(-1), lambda: random.bits(key, (3,), "uint8"),
                 lambda: random.normal(key, (3,), "bfloat16"),
                 lambda: random.permutation(key, 9), lambda: nn.one_hot(jnp.array([-1, 2]), 3),
                 lambda: jnp.array([-1.0, jnp.nan]).round(), lambda: jnp.sum(jnp.ones(3, "int8")),
                 lambda: jnp.argsort(jnp.array([jnp.nan, 1.0])), lambda: jnp.int8(3) + 1,
                 lambda: jnp.histogram(jnp.array([1.0, jnp.inf, 2.0]), range=(0.0, 3.0)),
                 lambda: jnp.zeros(3, "int8").at[0].set(3), lambda: jnp.mean(jnp.arange(3)),
                 lambda: jnp.power(jnp.int8(2), 3), lambda: jnp.arange(3)[jnp.array([-1], "int8")]):
        call()


def test_programs_are_the_same_where_the_flag_is_off():
    def f(x):
        return x.astype("int8"), lax.convert_element_type(x, "uint32"), jnp.int16(x)
    before = str(jax.make_jaxpr(f)(1.0))
    with config.debug_unsafe_casts(True):
        assert str(jax.make_jaxpr(f)(1.0)).count("check[") == 3
    assert str(jax.make_jaxpr(f)(1.0)) == before and "check" not in before


def test_keys_and_complex_numbers_are_not_looked_at(checked):
    assert range_held(random.key(0).dtype, np.dtype("int8")) is None
    assert range_held(np.dtype("complex64"), np.dtype("complex64")) is None
    assert range_held(np.dtype(bool), np.dtype("int8")) is None
