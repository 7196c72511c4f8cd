"""Functions of elements as objects agree with JAX: values, dtypes, refusals."""

import inspect

import jax
import numpy as np
import pytest

import minijax
from minijax.util.tracebacks import is_user_frame

jnp = minijax.numpy
KNOWN = [name for name in dir(jax.numpy) if isinstance(getattr(jax.numpy, name), jax.numpy.ufunc)]
TEN = "jnp.frompyfunc(lambda x, y: 10 * x + y, 2, 1)"
TEN_0 = "jnp.frompyfunc(lambda x, y: 10 * x + y, 2, 1, identity=0)"
TWICE = "jnp.frompyfunc(lambda x: 2 * x, 1, 1)"
FMA = "jnp.frompyfunc(lambda x, y, z: x + y * z, 3, 1)"


@pytest.mark.parametrize("name", KNOWN)
def test_the_functions_that_are_objects_are_those_of_jax(name):
    ours, theirs = getattr(jnp, name), getattr(jax.numpy, name)
    assert isinstance(ours, jnp.ufunc) and ours.__doc__
    for field in ("__name__", "nin", "nout", "nargs", "identity"):
        assert getattr(ours, field) == getattr(theirs, field)
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("method", ["__init__", "__call__", "reduce", "accumulate", "at",
                                    "reduceat", "outer"])
def test_methods_have_the_parameters_of_jax(method):
    ours, theirs = (inspect.signature(getattr(top.numpy.ufunc, method)).parameters.values()
                    for top in (minijax, jax))
    assert [(p.name, p.kind, p.default) for p in ours] == [
        (p.name, p.kind, p.default) for p in theirs]


@pytest.mark.parametrize("expression", [
    "jnp.add(1, 2)", "jnp.add(f, 1.5)", "jnp.add(1)", "jnp.add(1, 2, 3)", "jnp.add([1], 2)",
    "jnp.add(1, 2, out=3)", "jnp.add(1, 2, where=3)", "jnp.add(x=1, y=2)", "jnp.negative(1, 2)",
    f"{TEN}(f, f)", f"{TEN}(f, w)", f"{TEN}(1, 2)", f"{TEN}([1], 2)", f"{TEN}(1)",
    f"{TEN}(v, f[:, :2])", f"{FMA}(v, 2, 3)",
    "jnp.frompyfunc(lambda x, y: (x + y, x), 2, 2)(f, 3)",
    "jnp.frompyfunc(3, 2, 1)", "jnp.ufunc(jnp.add, 2.5, 1)", "jnp.ufunc(jnp.add, 2)",
    "jnp.ufunc(jnp.add, 2, 1, call=lambda x, y: 7)(1, 2)",
    "jnp.ufunc(jnp.add, 2, 1, call=lambda x, y: 7)([1], 2)",
    "str(jnp.ufunc(jnp.add, 2, 1, name='plus'))", "setattr(jnp.add, 'nin', 3)",
    "jnp.add == jnp.add, jnp.add == jnp.multiply, len({jnp.add, jnp.add})",
    "jnp.frompyfunc(jnp.sin, 1, 1) == jnp.frompyfunc(jnp.sin, 1, 1)",
    "jax.lax.reduce(w, 0, jnp.add, (0,))", "jax.lax.associative_scan(jnp.add, w)",
    "jax.jit(jnp.add)(1, 2)", "jax.vmap(jnp.add)(f, f)", "jax.grad(jnp.multiply)(2., 3.)",
])
def test_calls(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "add.reduce(f)", "add.reduce(p)", "add.reduce(b)", "add.reduce(e)", "add.reduce([1])",
    "add.reduce(f, axis=(0, 1))", "add.reduce(f, axis=None, keepdims=True)", "add.reduce(3.)",
    "add.reduce(w, dtype='float16', initial=1)", "add.reduce(f, where=b)", "add.reduce(f, where=i)",
    "multiply.reduce(p)", "multiply.reduce(u, initial=3, where=b)", "multiply.reduce(f, out=1)",
    "maximum.reduce(f)", "maximum.reduce(f, where=b)", "maximum.reduce(e)", "minimum.reduce(n)",
    "maximum.reduce(f, axis=None, where=b, initial=0)", "minimum.reduce(f, initial=v)",
    "bitwise_and.reduce(i)", "bitwise_and.reduce(u, axis=None, where=b)", "bitwise_and.reduce(b)",
    "bitwise_and.reduce(i, axis=(0, 1), initial=3)", "bitwise_or.reduce(f)",
    "bitwise_or.reduce(u, dtype='int32', keepdims=True)", "bitwise_xor.reduce(i, axis=None)",
    "logical_and.reduce(i)", "logical_and.reduce(i, dtype=int)", "logical_and.reduce(e)",
    "logical_or.reduce(f, dtype='float32')", "logical_or.reduce(f, keepdims=True, where=b)",
    "logical_xor.reduce(f, axis=(0, 1), initial=True)", "logaddexp.reduce(i)",
    "logaddexp.reduce(f, axis=(0, 1))", "logaddexp.reduce(f, where=b, keepdims=True)",
    "logaddexp.reduce(f, initial=3.)", "logaddexp.reduce(e)", "logaddexp.reduce(n, axis=None)",
    "logaddexp.reduce(c)", "logaddexp2.reduce(f)", "logaddexp2.reduce(f, where=b, initial=1.)",
    "subtract.reduce(f)", "subtract.reduce(p)", "subtract.reduce(b)", "subtract.reduce(e)",
    "subtract.reduce(f, axis=(0, 1))", "subtract.reduce(f, axis=None, keepdims=True)",
    "subtract.reduce(i, initial=3, where=b)", "subtract.reduce(f, where=b)",
    "subtract.reduce(3.)", "subtract.reduce(f, axis=5)", "negative.reduce(f)",
    "subtract.reduce(w, initial=w)", "subtract.reduce(w, dtype='float32')",
])
def test_reduce(agrees_with_jax, expression):
    agrees_with_jax("jnp." + expression)


@pytest.mark.parametrize("expression", [
    ".reduce(w)", ".reduce(p)", ".reduce(w, initial=5)", ".reduce(i, axis=1, keepdims=True)",
    ".reduce(e)", ".reduce(w, where=w > 0)", ".reduce(i, where=b)", ".reduce(i, None, where=b[0])",
    ".accumulate(w)", ".accumulate(i, axis=1, dtype='float32')", ".accumulate(p)",
    ".outer(w, i)", ".outer([1], 2)", ".outer(1)",
    ".reduceat(v, jnp.array([0, 2, 1]))", ".reduceat(w, jnp.array([0, 9, 1]))",
    ".reduceat(w, jnp.array([0, -1]))", ".reduceat(i, jnp.array([0, 1]), axis=1)",
    ".reduceat(i, w, axis=-3)", ".reduceat(w, jnp.array([0, 2]), dtype='float32')",
    ".reduceat(w, i)", ".reduceat(w, v)", ".reduceat(s, w)", ".reduceat(w, w, axis=None)",
    ".reduceat(w, jnp.array([0]), out=1)", ".reduceat(w, [0])", ".reduceat(w, w[:0])",
    ".reduceat(e, jnp.array([0]))", ".reduceat(b, jnp.array([0]))",
])
def test_what_is_made_of_a_function_of_scalars(agrees_with_jax, expression):
    agrees_with_jax(TEN_0 + expression)


@pytest.mark.parametrize("expression", [
    ".reduce(w)", ".reduce(f, 1)", ".reduce(e)", ".reduce(w, initial=5)", ".reduce(w, where=w > 0)",
])
def test_a_reduction_begins_with_the_identity(agrees_with_jax, expression):
    agrees_with_jax("jnp.frompyfunc(lambda x, y: x * y + 1, 2, 1, identity=0)" + expression)


@pytest.mark.parametrize("expression", [
    f"{TEN}.reduce(e)", f"{FMA}.reduce(f)", f"{FMA}.outer(1, 2)",
    f"{FMA}.at(v, k, 1, inplace=False)", "jnp.frompyfunc(lambda x, y: (x, y), 2, 2).reduce(f)",
    *(f"jnp.{way}" for way in (
        "add.accumulate(p)", "add.accumulate(b)", "add.accumulate(f, None)", "add.accumulate(3)",
        "multiply.accumulate(p)", "multiply.accumulate(p, dtype='float32')",
        "subtract.accumulate(f)", "subtract.accumulate(f, None)", "subtract.accumulate(s)",
        "subtract.accumulate(p, dtype='int32')", "subtract.accumulate(e)", "subtract.accumulate(b)",
        "maximum.accumulate(b)", "minimum.accumulate(n)", "logical_and.accumulate(f)",
        "logical_xor.accumulate(i, 1)", "logaddexp.accumulate(i)", "bitwise_or.accumulate(u)",
        "negative.accumulate(f)", "logical_or.reduceat(i, k)", "add.reduceat(p, k)",
        "subtract.reduceat(f, jnp.array([0, 1]), 1)", "add.reduceat(b, jnp.array([0, 1]))",
        "add.outer(f, 3.)", "add.outer(1, 3.)", "multiply.outer(f, v)", "negative.outer(1, 2)")),
])
def test_accumulate_reduceat_outer(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jnp.add.at(v, k, w, inplace=False)", "jnp.add.at(v, jnp.array([0, 0, 5]), 1, inplace=False)",
    "jnp.add.at(b[0], k, True, inplace=False)", "jnp.multiply.at(b[0], k, b[1], inplace=False)",
    "jnp.subtract.at(w, jnp.array([0, 0, -1]), 3, inplace=False)", "jnp.add.at(v, k, w)",
    "jnp.multiply.at(f, (k[1:], k[:2]), 2, inplace=False)", "jnp.add.at(v, [0], 1, inplace=False)",
    "jnp.negative.at(v, jnp.array([0, 0, 2]), inplace=False)", "jnp.negative.at(v, k)",
    "jnp.negative.at(v, k, 3, inplace=False)", "jnp.logical_and.at(w, k, 1, inplace=False)",
    "jnp.maximum.at(w, jnp.array([0, 0, 2]), w, inplace=False)",
    "jnp.maximum.at(w, [0, 0], 7, inplace=False)", "jnp.maximum.at(w, k[:0], 7, inplace=False)",
    f"{TWICE}.at(v, jnp.array([0, 0, 7]), inplace=False)", f"{TEN}.at(w, k, w, inplace=False)",
    f"{TEN}.at(w, jnp.array([0, -1, 9]), 1, inplace=False)", f"{TEN}.at(w, 0, 1, inplace=False)",
    f"{TEN}.at(i, jnp.array([0, 0]), 1, inplace=False)", f"{TEN}.at(w, None, 1, inplace=False)",
    f"{TEN}.at(w, k, 1.5, inplace=False)", f"{TEN}.at(w, k[:1], w, inplace=False)",
    f"{TEN}.at([1], 0, 1, inplace=False)", f"{TEN}.at(w, 0, inplace=False)",
])
def test_at(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("program", [
    "jax.grad(lambda x: jnp.frompyfunc(lambda a, b: a * b, 2, 1).reduce(x))(v)",
    "jax.grad(lambda x: jnp.frompyfunc(lambda a, b: a * b, 2, 1).accumulate(x).sum())(v)",
    "jax.grad(lambda x: (jnp.multiply.reduceat(x, k[1:]) ** 2).sum())(v)",
    "jax.grad(lambda x: jnp.maximum.at(x, k, 2., inplace=False).sum())(v)",
    "jax.grad(lambda x: jnp.logaddexp.reduce(x))(v)",
    "jax.vmap(jnp.subtract.reduce)(f)", "jax.jit(jnp.subtract.accumulate)(f)",
    "jax.jit(jnp.add.reduce, static_argnames='axis')(f, axis=1)",
])
def test_they_are_transformed(agrees_with_jax, program):
    agrees_with_jax(program)


def test_another_way_to_reduce_takes_the_place_of_going_through_all():
    calls = []
    ways = {name: lambda *args, name=name, **named: calls.append((name, sorted(named)))
            for name in ("reduce", "accumulate", "at", "reduceat")}
    plus = jnp.ufunc(lambda x, y: x + y, 2, 1, name="plus", **ways)
    x = np.arange(3)
    plus.reduce(x), plus.accumulate(x), plus.at(x, 0, 1, inplace=False), plus.reduceat(x, x)
    assert calls == [("reduce", ["axis", "dtype", "initial", "keepdims", "where"]),
                     ("accumulate", ["axis", "dtype"]), ("at", []), ("reduceat", ["axis", "dtype"])]


@pytest.mark.parametrize("call", [
    lambda: jnp.add([1], 2), lambda: jnp.add.reduce([1]), lambda: jnp.subtract.accumulate([1]),
    lambda: jnp.subtract.at(np.ones(2), [0], 1, inplace=False),
    lambda: jnp.subtract.reduceat(np.ones(2), [0]), lambda: jnp.subtract.outer([1], 2)])
def test_a_traceback_shows_the_line_of_the_user_alone(call):
    with pytest.raises(TypeError) as caught:
        call()
    entry = caught.value.__traceback__
    while entry is not None:
        assert is_user_frame(entry.tb_frame)
        entry = entry.tb_next


def test_a_reduction_begins_with_one_number(agrees_with_jax):
    for name in ("sum", "prod", "max", "min", "nansum"):
        agrees_with_jax(f"jnp.{name}(f, initial=v)")


def test_a_running_sum_takes_a_number_for_an_array_of_one(agrees_with_jax):
    for name in ("cumsum", "cumprod", "nancumsum"):
        for axis in (None, 0, -1, 1):
            agrees_with_jax(f"jnp.{name}(s, axis={axis})")
