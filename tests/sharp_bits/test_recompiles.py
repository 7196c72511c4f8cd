"""A function that is traced again and again is reported once, with what changes and its cure."""

import functools
import logging
import warnings

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import config, errors
from minijax.sharp_bits.recompiles import ALLOWED

MANY = 2 * ALLOWED


def found_in(program):
    """What is found by the check while the program runs."""
    with jax.checking_sharp_bits(False, collect=True) as findings, config.debug_recompiles(True):
        program()
    assert all(found.kind == "debug_recompiles" for found in findings)
    return findings


# ---- loops that trace each time


def a_shape():
    total = jax.jit(lambda x: x.sum())
    for n in range(MANY):
        total(jnp.ones(n))


def a_dtype():
    double = jax.jit(lambda x: 2 * x)
    for dtype in ("int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32"):
        double(np.ones(2, dtype))


def weakness():
    f = jax.jit(lambda *xs: sum(xs))
    for n in range(MANY):
        f(*[1.0 if i <= n else jnp.float32(1) for i in range(MANY)])


def a_tree():
    first, rows = jax.jit(lambda state: state["rows"][0]), []
    for _ in range(MANY):
        rows.append(1.0)
        first({"rows": rows})


def the_number_of_arguments():
    add = jax.jit(lambda *xs: sum(xs))
    for n in range(1, MANY):
        add(*[1.0] * n)


def a_static_value():
    @functools.partial(jax.jit, static_argnums=0)
    def power(n, x):
        return x ** n
    for n in range(MANY):
        power(n, 2.0)


def a_static_name():
    @functools.partial(jax.jit, static_argnames="n")
    def power(x, n=1):
        return x ** n
    for n in range(MANY):
        power(2.0, n=n)


def a_shape_beside_a_static_argument():
    @functools.partial(jax.jit, static_argnums=0)
    def power(n, x):
        return x ** n
    for n in range(MANY):
        power(2, jnp.ones(n))


def a_flag():
    f = jax.jit(lambda x: x + 1)
    for n in range(MANY):
        with config.random_seed_offset(n):
            f(1.0)


def a_new_function():
    for _ in range(MANY):
        jax.jit(lambda x: x + 1)(1.0)


def a_new_partial():
    def power(n, x):
        return x ** n
    for n in range(MANY):
        jax.jit(functools.partial(power, n))(2.0)


def a_new_derivative():
    def loss(x):
        return x * x
    for _ in range(MANY):
        jax.jit(jax.grad(loss))(1.0)


def a_method_of_a_new_object():
    class Model:
        def __init__(self, weight):
            self.weight = weight

        def predict(self, x):
            return self.weight * x
    for n in range(MANY):
        jax.jit(Model(n).predict)(1.0)


LOOPS = {
    a_shape: "the shape of x changes from call to call: now f32[5], before f32[4]",
    a_dtype: "the dtype of x changes from call to call: now u32[2], before ",
    weakness: None,
    a_tree: "the structure of state['rows'] changes from call to call: now list of length 6",
    the_number_of_arguments: "the structure of the arguments changes",
    a_static_value: "the value of the static argument n changes from call to call: now 5, "
                    "before 4",
    a_static_name: "the value of the static argument n changes",
    a_shape_beside_a_static_argument: "the shape of x changes",
    a_flag: "the flag jax_random_seed_offset changes from call to call: now 5, before 4",
    a_new_function: "it is a new function object each time, and the earlier ones are gone",
    a_new_partial: "it is a new function object each time",
    a_new_derivative: "it is a new function object each time",
    a_method_of_a_new_object: "it is the method of another object each time",
}


@pytest.mark.parametrize("loop", [loop for loop, said in LOOPS.items() if said])
def test_a_loop_is_reported_once_with_what_changes(loop):
    (found,) = found_in(loop)
    assert LOOPS[loop] in found.message
    assert f"is traced and compiled for the {ALLOWED + 1}th time" in found.message
    assert found.function == loop.__name__ and found.file == "test_recompiles.py"
    assert found.fix.endswith(".")


def test_each_argument_counts_by_itself():
    assert found_in(weakness) == []


# ---- programs that are traced more than once, and rightly


def a_few_shapes():
    f = jax.jit(lambda x: x.sum())
    for _ in range(MANY):
        for x in (1.0, 1, jnp.ones(2), jnp.ones(3), jnp.ones((2, 2))):
            f(x)


def layers():
    layer = jax.jit(lambda w, b, x: jnp.tanh(x @ w + b))
    for m, n in [(8, 16), (16, 12), (12, 10), (10, 3)] * 2:
        layer(jnp.ones((m, n)), jnp.ones(n), jnp.ones((4, m)))


def models_that_are_kept():
    models = [jax.jit(lambda x, n=n: n * x) for n in range(MANY)]
    return [model(1.0) for model in models]


def one_function_jitted_again():
    def f(x):
        return x + 1
    for _ in range(MANY):
        jax.jit(f)(1.0)


def a_method_jitted_again():
    class Model:
        def predict(self, x):
            return 2 * x
    model = Model()
    for _ in range(MANY):
        jax.jit(model.predict)(1.0)


def samplers_of_our_own():
    for n in range(MANY):
        jax.random.normal(jax.random.key(0), (n,))
        jnp.linspace(0, 1, n + 1)


@pytest.mark.parametrize("program", [
    a_few_shapes, layers, models_that_are_kept, one_function_jitted_again, a_method_jitted_again,
    samplers_of_our_own])
def test_nothing_is_said_of(program):
    assert found_in(program) == []


def test_without_collecting_it_is_a_warning_at_the_line_of_the_call():
    total = jax.jit(lambda x: x.sum())
    with config.debug_recompiles(True), pytest.warns(errors.SharpBitWarning) as given:
        for n in range(MANY):
            total(jnp.ones(n))
    assert given[0].filename == __file__ and "Pad the argument" in str(given[0].message)


def test_without_the_flag_nothing_is_said_or_kept(monkeypatch):
    from minijax.sharp_bits import recompiles
    kept = []
    monkeypatch.setattr(recompiles, "History", lambda: kept.append("a history"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a_shape()
        a_new_function()
    assert not kept


# ---- explain_cache_misses: the same reasons, in the log, for each miss


def log_of(program, caplog):
    with config.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        program()
    return [record.message for record in caplog.records]


def test_the_log_says_of_each_miss_why(caplog):
    @jax.jit
    def f(x, y=1.0):
        return x + y

    def program():
        f(jnp.ones(3))
        f(jnp.ones(4))
        f(jnp.ones(4))
        f(jnp.ones(4), 2)
    first, second, third = log_of(program, caplog)
    assert first.startswith("TRACING CACHE MISS at ")
    assert "never seen function:\n    f defined at " in first
    assert ("closest previous key:\n  different input types:\n"
            "  * at x, now f32[4] and before f32[3]") in second
    assert ("different input pytree:\n  * at input path [0], now tuple of length 2 and before "
            "tuple of length 1, so") in third


def test_the_log_groups_what_is_different_as_jax_does(caplog):
    f = jax.jit(lambda x, n: x * n, static_argnums=1)

    def program():
        f(np.float32(1), 2)
        f(1.0, 2)
        with jax.numpy_rank_promotion("warn"):
            f(1.0, 3)
    _, second, third = log_of(program, caplog)
    assert "* at x, now f32[]{weak_type=True} and before f32[]{weak_type=False}, see http" in second
    assert ("  * the value of the static argument n: now 3 and before 2\n"
            "  Tracing context doesn't match, e.g. due to config or context manager.\n"
            "  * jax_numpy_rank_promotion differs: now warn and before allow") in third


def test_the_log_says_when_a_function_is_made_anew(caplog):
    def program():
        for _ in range(2):
            jax.jit(lambda x: x + 1)(1.0)
    first, second = log_of(program, caplog)
    assert "but seen another function" not in first
    assert "but seen another function defined on the same line" in second


def test_the_log_says_when_a_function_closed_over_what_is_gone(caplog):
    held = []
    inner = jax.jit(lambda y: held[-1] * y)

    def outer(x):
        held.append(x)
        return inner(2.0)

    def program():
        jax.grad(outer)(3.0)
        jax.grad(outer)(3.0)
    _, second = log_of(program, caplog)
    assert "* what the function closes over: now another value and before one of a " in second


def test_a_function_that_is_jitted_as_a_method_and_with_a_static_object_is_no_trouble():
    class Layer:
        def scaled(self, x):
            return x * 2.0
    layer = Layer()
    with jax.checking_sharp_bits():
        jax.jit(layer.scaled)(1.0)
        assert jax.jit(Layer.scaled, static_argnums=0)(layer, 1.0) == 2.0
        assert jax.jit(layer.scaled)(2.0) == 4.0
