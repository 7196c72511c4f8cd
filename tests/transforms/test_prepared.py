"""Prepared calls: what is recorded repeats what the function does, and nothing else changes."""

import gc
import os
import warnings
import weakref

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax, nn
from minijax.core import ArrayImpl, Primitive
from minijax.transforms import prepared
from tests.recorded import Refused
from tests.public import NAMES, TABLE
from tests.test_public_functions import cases, function_of, value

EVERY = 1 if os.environ.get("LARGE") else 12


def array(*numbers, dtype=np.float32):
    return jnp.asarray(np.array(numbers, dtype))


def thrice(fun, *args):
    """The result of the third call, which repeats the second."""
    return [fun(*args) for _ in range(3)][-1]


def is_prepared(fun, *args):
    """Whether the third call of a function was prepared."""
    minijax.clear_caches()
    thrice(fun, *args)
    return any(prepared._programs.values())


def same(x, y):
    """Whether two results are the same to the last bit, with their types."""
    if not isinstance(x, ArrayImpl):
        return type(x) is type(y) and (isinstance(x, Refused) or bool(np.all(x == y)))
    assert not x._buffer.flags.writeable and x._buffer.flags.c_contiguous
    return (type(x), x.aval, x.is_literal, vars(x), x._buffer.tobytes()) == (
        type(y), y.aval, y.is_literal, vars(y), y._buffer.tobytes())


@pytest.mark.parametrize("names", [NAMES[k::40] for k in range(0, 40, EVERY)], ids=len)
def test_public_functions_repeat_for_other_numbers_what_they_do(names):
    for module, name in names:
        fun = function_of(minijax, module, name)
        for case in cases(module, name, TABLE[module][name]):
            first, other = (case.with_arrays([jnp.asarray(np.flip(x, axis).copy())
                                              for x in case.arrays()]) for axis in ((), None))
            for _ in range(2):
                value(minijax, fun, case, first)
            repeated = [value(minijax, fun, case, each) for each in (first, other)]
            with prepared.prepared_calls(False):
                evaluated = [value(minijax, fun, case, each) for each in (first, other)]
            for x, y in zip(repeated, evaluated, strict=True):
                assert isinstance(x, Refused) == isinstance(y, Refused), case
                assert isinstance(x, Refused) or all(map(same, x, y)), case


@pytest.mark.parametrize("fun", [
    lambda x: x + x, lambda x: 2 * x, lambda x: -x, jnp.mean, lambda x: x.sum(axis=0),
    lambda x: x[1:], lambda x: x.at[0].set(1.0), lambda x: jnp.stack([x, x]), nn.relu, nn.softmax,
    lambda x: minijax.random.normal(minijax.random.key(0), x.shape), lambda x: jnp.zeros(x.shape)])
def test_usual_calls_are_prepared(fun):
    assert is_prepared(fun, array(1, 2, 3))


@pytest.mark.parametrize("fun", [
    jnp.nonzero, lambda x: x[x > 1], lambda x: float(x[0]), np.asarray, lambda x: x.tolist(), list,
    lambda x: x.at[0].get(mode="fill", fill_value=x[1].item()), jnp.unique, lambda x: x.copy()])
def test_what_follows_from_elements_follows_from_those_of_this_call(fun):
    for x in (array(1, 2), array(3, 0.5)):
        again = thrice(fun, x)
        with prepared.prepared_calls(False):
            assert repr(again) == repr(fun(x))


def test_a_hidden_state_moves_on():
    low, high = array(0, 1)
    draws = [lax.rng_uniform(low, high, (4,)).tolist() for _ in range(5)]
    assert len({*map(tuple, draws)}) == 5


def counts_positive(x):
    return [x * np.float32(x[x > 0].size)]


def writes_into_a_constant(x):
    numbers = np.zeros(2, np.float32)
    out = x + numbers
    numbers[...] = 1
    return [out + numbers]


def reads_a_flag(x):
    return [np.asarray(x) + np.float32(minijax.config.enable_x64.value)]


@pytest.mark.parametrize("impl", [counts_positive, writes_into_a_constant, reads_a_flag])
def test_an_evaluation_rule_may_be_any_python(impl):
    primitive = Primitive("p", impl=impl, abstract_eval=lambda x: [x])
    fun = prepared.prepared(primitive.bind)
    with minijax.enable_x64(True):
        thrice(fun, array(1, 2))
        np.testing.assert_array_equal(fun(array(-1, 3)), impl(np.float32([-1, 3]))[0])


def test_an_effect_happens_at_every_call(capsys):
    def fun(x):
        minijax.debug.print("x is {}", x)
        return x + 1
    thrice(prepared.prepared(fun), array(1, 2))
    assert capsys.readouterr().out.count("x is [1. 2.]") == 3


def test_an_exponent_that_python_reads_is_not_taken_from_an_earlier_call():
    x = array(2, 3)
    assert [thrice(jnp.power, x, array(n, dtype=np.int32)[0]).tolist() for n in (2, 3)] == [
        [4, 9], [8, 27]]


@pytest.mark.parametrize("held", [lambda n: slice(n, None), lambda n: (slice(0, n), None),
                                  lambda n: (..., [n]), lambda n: (n, n)])
def test_arrays_in_an_index_are_not_taken_from_an_earlier_call(held):
    x = jnp.arange(9).reshape(3, 3)
    for n in (1, 2, 0):
        index = held(jnp.asarray(n))
        for fun in (lambda at: x[at], lambda at: x.at[at].set(-1), lambda at: x.at[at].get()):
            np.testing.assert_array_equal(thrice(fun, index), fun(held(n)))


def test_numbers_that_are_equal_in_python_are_told_apart():
    x = array(1, 2)
    assert np.signbit(thrice(jnp.multiply, x, -0.0)).all()
    assert not np.signbit(thrice(jnp.multiply, x, 0.0)).any()
    counts = array(1, 2, dtype=np.int32)
    assert [thrice(jnp.add, counts, one).dtype for one in (1, 1.0, True)] == [
        np.int32, np.float32, np.int32]


def test_a_function_warns_at_every_call():
    x = array(1, 2j, dtype=np.complex64)
    for _ in range(4):
        with pytest.warns(match="imaginary part"):
            lax.convert_element_type(x, np.float32)


def test_flags_are_part_of_the_key():
    x = array(-1, 2)
    assert np.isnan(thrice(jnp.log, x)[0])
    with minijax.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.log(x)
    thrice(jnp.arange, 3)
    with minijax.enable_x64(True):
        assert thrice(jnp.arange, 3).dtype == np.int64
        assert thrice(minijax.random.uniform, minijax.random.key(0), (3,)).dtype == np.float64
    assert jnp.arange(3).dtype == np.int32


def test_calls_are_prepared_where_the_default_device_is_the_cpu():
    x = array(1, 2)
    with minijax.default_device(minijax.devices("cpu")[0]):
        assert is_prepared(jnp.mean, x)
    with minijax.default_device(minijax.devices("numpy")[0]):
        assert not is_prepared(jnp.mean, x)


def test_transformations_see_every_primitive_of_a_prepared_function():
    x = array(1, 2)
    thrice(jnp.mean, x)
    assert [eqn.primitive.name for eqn in minijax.make_jaxpr(jnp.mean)(x).eqns] == [
        "reduce_sum", "div"]
    np.testing.assert_array_equal(minijax.grad(jnp.mean)(x), [0.5, 0.5])


def test_another_evaluation_of_a_primitive_is_seen():
    x, impl = array(1, 2), lax.sin_p.impl
    thrice(lax.sin, x)
    try:
        lax.sin_p.def_impl(lambda x: x + 1)
        np.testing.assert_array_equal(thrice(lax.sin, x), [2, 3])
    finally:
        lax.sin_p.impl = impl
        minijax.clear_caches()


def test_a_deleted_array_is_refused_as_ever():
    x = array(1, 2)
    thrice(jnp.sin, x)
    x.delete()
    with pytest.raises(RuntimeError, match="has been deleted"):
        jnp.sin(x)


def test_programs_keep_no_array_alive_and_are_bounded(monkeypatch):
    minijax.clear_caches()
    assert not prepared._programs
    x = array(*range(5))
    thrice(lambda x: jnp.concatenate([x, x]) + x[0], x)
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None
    monkeypatch.setattr(prepared, "MOST", 20)
    y = array(1, 2)
    for k in range(100):
        jnp.add(y, k)
    assert len(prepared._programs) <= 20


def test_a_result_is_no_view_of_a_larger_array():
    x = array(*range(100))
    assert thrice(lambda: x[:2])._buffer.base is None
    assert thrice(lambda: jnp.split(x, 4))[0]._buffer.base is None


def test_an_interrupt_leaves_the_call_to_be_recorded_again(monkeypatch):
    from minijax.transforms import recording
    minijax.clear_caches()
    x = array(1, 2)
    jnp.sin(x)

    def interrupted(*args):
        raise KeyboardInterrupt
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(recording.Recorder, "program", interrupted)
        jnp.sin(x)
    assert not any(prepared._programs.values())
    jnp.sin(x)
    assert any(prepared._programs.values())


def test_errors_are_those_of_the_function():
    x = array(1, 2)
    thrice(jnp.add, x, x)
    with pytest.raises(TypeError, match="incompatible shapes"):
        thrice(jnp.add, x, array(1, 2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        thrice(jnp.divide, x, array(0, 0))
