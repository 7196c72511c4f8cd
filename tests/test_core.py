"""The machine: types, arrays, tracers, levels and primitives."""

import copy
import pickle
import threading

import jax
import numpy as np
import pytest

import minijax
from minijax import core, dtypes, errors, lax
from minijax.core import Primitive, ShapedArray


def test_equal_types_are_one_object_even_across_threads():
    made = []
    threads = [threading.Thread(target=lambda: made.append(ShapedArray((7, 9), np.int16)))
               for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(a is made[0] for a in made)
    assert pickle.loads(pickle.dumps(made[0])) is made[0]


def test_an_array_takes_attributes_of_its_users_which_its_copies_do_not_have():
    def attributes(lib):
        x = lib.numpy.ones(2)
        x.note = 3
        return x.note, [hasattr(copied, "note") for copied in (
            copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), lib.device_put(x),
            lib.jit(lambda y: y)(x), lib.numpy.asarray(x), lib.tree.map(lambda y: y, x))]
    assert attributes(minijax) == attributes(jax)
    for lib in (minijax, jax):
        assert vars(lib.numpy.ones(1)) == {}
        for x in (lib.numpy.ones(2), lib.random.key(0)):
            with pytest.raises(AttributeError):
                x.shape = (2,)
        with pytest.raises(AttributeError, match="no attribute 'note'"):
            lib.jit(lambda x: setattr(x, "note", 3))(1.0)


def test_an_array_is_committed_where_a_device_was_named():
    def committed(lib):
        here, x = lib.devices()[0], lib.numpy.ones(3)
        one = lib.sharding.SingleDeviceSharding(here)
        put = lib.device_put(x, here)
        made = [x, put, lib.device_put(x), lib.device_put(put), lib.device_put(1.0, here),
                lib.device_put(x, one), lib.numpy.asarray(np.ones(3), device=here),
                lib.numpy.ones(3, device=here), x.to_device(here), lib.numpy.asarray(put),
                lib.jit(lambda x: lib.device_put(x, here))(x),
                lib.device_put(lib.random.key(0), here)]
        return [(y.committed, y._committed) for y in made]
    assert committed(minijax) == committed(jax)
    assert not minijax.numpy.ones(3).committed


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int8", "bool", "complex64", "uint16",
                                   "float8_e4m3fn", "int4"])
def test_the_short_texts_of_a_type_are_those_of_jax(dtype):
    def texts(lib):
        aval = lib.typeof(lib.numpy.ones((2, 3), dtype))
        return aval.str_short(), aval.str_short(True), aval.str_short(short_dtypes=True), repr(aval)
    assert texts(minijax) == texts(jax)


def test_a_type_cannot_be_changed():
    with pytest.raises(AttributeError, match="immutable"):
        ShapedArray((), np.float32).dtype = np.int32


@pytest.mark.parametrize("value", [True, 3, 2.5, 1j, np.float16(1), np.int8(3), np.uint32(2),
                                   np.arange(3), np.ones((2, 0)), np.float64(1), -0.0])
def test_the_type_of_a_value_is_what_jax_says(value):
    ours, theirs = core.get_aval(value), jax.typeof(value)
    assert (ours.dtype, ours.shape, ours.weak_type) == (
        theirs.dtype, theirs.shape, theirs.weak_type)


def test_scalars_keep_the_sign_of_zero_and_their_kind():
    assert np.signbit(core.as_value(-0.0)._buffer)
    assert not np.signbit(core.as_value(0.0)._buffer)
    assert core.as_value(True).dtype == bool and core.as_value(1).dtype == np.int32


@pytest.mark.parametrize("value", ["a", None, [1], object(), np.array(["a"])])
def test_what_is_no_array_is_refused(value):
    with pytest.raises(TypeError, match="not a valid JAX array type"):
        core.as_value(value)
    with pytest.raises(TypeError, match="argument to sin as a JAX value.* at position 0"):
        lax.sin_p.bind(value)


def test_an_array_does_not_see_later_writes_to_what_it_was_made_from():
    source = np.arange(4.0, dtype=np.float32)
    array = core.as_value(source[::2])
    source[:] = 9
    np.testing.assert_array_equal(array._buffer, [0, 2])
    assert array._buffer.flags.c_contiguous and not array._buffer.flags.writeable


def test_tracers_are_arrays_for_isinstance():
    seen = []
    minijax.jit(lambda x: seen.append(isinstance(x, minijax.Array)) or x)(1.0)
    assert seen == [True] and isinstance(core.as_value(1.0), minijax.Array)


def test_a_tracer_says_what_it_stands_for():
    seen = []

    def f(x):
        seen.append(repr(x))
        return x
    minijax.jit(f)(2)
    assert seen == [
        "Traced<ShapedArray(int32[], weak_type=True)>with<DynamicJaxprTrace(level=1/0)>"]
    minijax.vmap(f)(np.ones((3, 2), np.float32))
    assert "ShapedArray(float32[2])" in seen[1] and "BatchTrace(level=1/0)" in seen[1]


def test_nothing_stays_open_after_an_error():
    def fail(x):
        raise RuntimeError("stop")
    for transform in (minijax.jit, minijax.grad, minijax.vmap):
        with pytest.raises(RuntimeError, match="stop"):
            transform(fail)(np.ones(2, np.float32) if transform is minijax.vmap else 1.0)
        assert core.current_trace.get() is core.base_trace


@pytest.mark.parametrize("transform", [minijax.jit, minijax.grad, minijax.vmap],
                         ids=["jit", "grad", "vmap"])
def test_a_leaked_tracer_is_refused_wherever_it_is_used(transform):
    box = []

    def leaking(x):
        box.append(lax.sin(x))
        return lax.mul(x, x)
    transform(leaking)(np.ones(2, np.float32) if transform is minijax.vmap else 1.0)
    for use in (lambda: lax.add(box[0], box[0]), lambda: minijax.jit(lambda v: lax.add(v, box[0]))(
            np.float32(1)), lambda: minijax.jit(lax.sin)(box[0])):
        with pytest.raises(errors.UnexpectedTracerError, match="leaking"):
            use()


def test_the_leak_message_tells_where_the_value_was_made():
    box = []

    def leaking(x):
        box.append(lax.sin(x))
        return x
    minijax.jit(leaking)(np.ones((2, 3), np.float32))
    with pytest.raises(errors.UnexpectedTracerError) as caught:
        lax.cos(box[0])
    line = leaking.__code__.co_firstlineno + 1
    text = str(caught.value)
    assert f"test_core.py:{line}" in text and "float32[2,3]" in text
    assert "final 5 stack frames" in text and "JAX_CHECK_TRACER_LEAKS" in text


def double_primitive(**slots):
    return Primitive("double", impl=lambda x: [2 * x], abstract_eval=lambda x: [x], **slots)


@pytest.mark.parametrize(("transform", "slot", "message"), [
    (minijax.grad, "jvp", "Differentiation rule for 'double' not implemented"),
    (lambda f: lambda x: minijax.vmap(f)(np.ones(2, np.float32)), "batch",
     "Batching rule for 'double' not implemented"),
])
def test_a_missing_rule_is_named_with_the_users_line(transform, slot, message):
    double_p = double_primitive()
    with pytest.raises(NotImplementedError, match=message) as caught:
        transform(lambda x: double_p.bind(x))(1.0)
    assert any("test_core.py" in note for note in caught.value.__notes__)


def test_a_rule_that_cannot_be_says_why():
    double_p = double_primitive(jvp=core.cannot("doubling is our secret"))
    with pytest.raises(NotImplementedError, match="doubling is our secret"):
        minijax.grad(lambda x: double_p.bind(x))(1.0)


def test_a_primitive_defined_as_in_the_tutorial_evaluates_and_stages():
    multiply_add_p = Primitive("multiply_add")
    multiply_add_p.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))
    multiply_add_p.def_abstract_eval(lambda x, y, z: ShapedArray(x.shape, x.dtype))

    def square_add(a, b):
        return multiply_add_p.bind(a, a, b)
    assert square_add(np.float32(2), np.float32(10)) == 14
    assert "multiply_add" in str(minijax.make_jaxpr(square_add)(np.float32(2), np.float32(10)))


def test_a_meaning_of_another_type_than_promised_is_refused_by_name():
    x = np.arange(2, dtype=np.int32)
    for wrong in (lambda x: [x + 0.5], lambda x: [x.astype(np.int64)], lambda x: [x[:1]],
                  lambda x: [x[None]], lambda x: [x > 0]):
        liar_p = Primitive("liar", impl=wrong, abstract_eval=lambda x: [x])
        with pytest.raises(TypeError, match=r"rule of liar returned .* returned int32\[2\]"):
            liar_p.bind(x)
    fair_p = Primitive("fair", impl=lambda x: [x.T], abstract_eval=lambda x: [x])
    np.testing.assert_array_equal(fair_p.bind(x), x)


def test_what_a_tutorials_primitive_returns_is_an_array_as_the_flags_have_it():
    half_p = Primitive("half")
    half_p.def_impl(lambda x: np.float64(0.5) * np.asarray(x, np.float64))
    half_p.def_abstract_eval(lambda x: ShapedArray(x.shape, dtypes.canonicalize_dtype("float64")))
    assert half_p.bind(3.0).dtype == np.float32 and half_p.bind(3.0) == 1.5
    with minijax.enable_x64(True):
        assert half_p.bind(3.0).dtype == np.float64


def test_nobody_can_change_the_types_that_a_rule_gave():
    kind_p = Primitive("kind", abstract_eval=lambda x, **_: [x])
    for params in ({}, {"not_hashable": []}):
        assert kind_p.type_of([core.get_aval(2.0)], params) == (core.get_aval(2.0),)


def test_a_primitive_or_a_function_among_the_parameters_has_no_effects():
    holder_p = Primitive("holder", impl=lambda x, **_: [x], abstract_eval=lambda x, **_: [x])
    for inner in (lax.sin_p, (lax.sin_p, np.sin), [lax.sin_p], np.arange(3), holder_p.bind):
        closed = minijax.make_jaxpr(lambda x, inner=inner: holder_p.bind(x, inner=inner))(1.0)
        assert closed.effects == core.no_effects
    printing = minijax.make_jaxpr(lambda x: minijax.debug.print("{}", x))(1.0)
    for programs in (printing, printing.jaxpr, (1, printing), [printing]):
        assert core.joined_effects(inner=programs) == printing.effects != core.no_effects


def test_a_shape_primitive_on_keys_works_on_their_words():
    keys = core.ArrayImpl(np.arange(12, dtype=np.uint32).reshape(2, 3, 2),
                          ShapedArray((2, 3), dtypes.key_dtype("threefry2x32")))
    turned = lax.transpose(keys, (1, 0))
    assert turned.shape == (3, 2) and turned.dtype == keys.dtype
    np.testing.assert_array_equal(turned._buffer, keys._buffer.transpose(1, 0, 2))


def test_a_named_axis_is_known_only_inside_its_vmap():
    index = minijax.vmap(minijax.jit(lambda x: lax.axis_index("i")), axis_name="i")
    np.testing.assert_array_equal(index(np.ones(3, np.float32)), [0, 1, 2])
    with pytest.raises(NameError, match="unbound axis name: i"):
        lax.axis_index("i")


def test_the_same_trace_is_not_reused_under_another_axis_size():
    @minijax.jit
    def f(x):
        return x * lax.axis_size("i")
    for n in (2, 3):
        out = minijax.vmap(f, axis_name="i")(np.ones(n, np.float32))
        np.testing.assert_array_equal(out, np.full(n, n))


@pytest.mark.parametrize("lib", [minijax, jax])
def test_what_bind_is_given_of_an_equation_is_a_mapping_as_in_jax(lib):
    """Interpreters of equations, jaxtap's among them, hand it on as keywords."""
    [eqn] = lib.make_jaxpr(lambda x: lib.lax.reduce_sum(x, axes=(0,)))(np.ones(3)).eqns
    assert eqn.primitive.get_bind_params(eqn.params)["axes"] == (0,)


@pytest.mark.parametrize("lib", [minijax, jax])
def test_a_function_with_a_rule_of_its_own_is_bound_by_its_subfunctions(lib):
    """Equinox calls the first; other interpreters bind them, and the rule is kept."""
    f = lib.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 7))
    [eqn] = lib.make_jaxpr(f)(1.0).eqns
    params = eqn.primitive.get_bind_params(eqn.params)
    assert params["subfuns"][0].call_wrapped(lib.numpy.float32(3.0)) == [6.0]
    for transformed in (lib.grad, lambda f: lib.jit(lib.grad(f))):
        assert transformed(lambda x: eqn.primitive.bind(x, **params)[0])(3.0) == 7.0
