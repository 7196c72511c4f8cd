"""A jaxpr made simpler computes the same, and typed keys become their words."""

import numpy as np
import pytest

from minijax import lax
from minijax.core import tracing, ShapedArray
from minijax.core.jaxpr import Literal, check_jaxpr, eval_jaxpr, subjaxprs
from minijax.compiler.simplify import simplify

VECTOR = ShapedArray((3,), np.float32)
SCALAR = ShapedArray((), np.float32)


def simplified(f, *avals):
    closed = simplify(tracing.stage(lambda *xs: list(f(*xs)), avals))
    check_jaxpr(closed.jaxpr)
    return closed


def names(closed):
    return [eqn.primitive.name for eqn in closed.eqns]


def test_calls_are_inlined_however_deep():
    import minijax

    inner = minijax.jit(lambda x: lax.sin(x))
    outer = minijax.jit(lambda x: lax.mul(inner(x), inner(x)))
    closed = simplified(lambda x: [outer(x), outer(lax.cos(x))], VECTOR)
    assert names(closed) == ["sin", "mul", "cos", "sin", "mul"]


def test_equal_equations_are_shared_and_different_parameters_are_not():
    closed = simplified(lambda x: [lax.add(lax.exp(x), lax.exp(x)),
                                   lax.integer_pow(x, 2), lax.integer_pow(x, 3)], VECTOR)
    assert names(closed) == ["exp", "add", "integer_pow", "integer_pow"]


def test_literals_of_opposite_zero_are_not_confused():
    closed = simplified(lambda x: [lax.div(x, np.float32(0.0)), lax.div(x, np.float32(-0.0))],
                        SCALAR)
    outs = eval_jaxpr(closed.jaxpr, closed.consts, np.float32(1.0))
    assert [float(x) for x in outs] == [np.inf, -np.inf]


def test_unused_equations_and_constants_disappear():
    table = np.arange(3.0, dtype=np.float32)
    closed = simplified(lambda x: [lax.neg(x), lax.mul(lax.add(x, table), x)][:1], VECTOR)
    assert names(closed) == ["neg"] and closed.consts == []


def test_scalar_arithmetic_on_literals_is_done_beforehand():
    import minijax

    two = minijax.jit(lambda: lax.mul(np.float32(2.0), np.float32(3.0)))
    closed = simplified(lambda x: [lax.mul(x, lax.add(two(), np.float32(1.0)))], SCALAR)
    assert names(closed) == ["mul"]
    assert float(closed.eqns[0].invars[1].val) == 7.0


def test_scalar_constants_become_literals():
    from minijax.core import array_from_buffer

    c = array_from_buffer(np.array(4.0, np.float32), SCALAR)
    closed = simplified(lambda x: [lax.add(x, c)], SCALAR)
    assert closed.consts == [] and isinstance(closed.eqns[0].invars[1], Literal)


def test_bodies_of_loops_are_simplified_too():
    closed = simplified(lambda x: lax.scan(
        lambda c, _: (lax.add(lax.sin(c), lax.sin(c)), None), x, None, length=3)[:1], SCALAR)
    [body] = subjaxprs(closed.eqns[0].params)
    assert names(body) == ["sin", "add"]


def test_effects_are_neither_dropped_nor_merged():
    closed = tracing.stage(lambda x: [x], [SCALAR])
    from minijax.core import Effect, Primitive
    from minijax.core.jaxpr import Var, make_eqn

    class Printed(Effect):
        observable = True

    effect = Printed()
    say_p = Primitive("say", effects=lambda **params: frozenset([effect]),
                      multiple_results=True, abstract_eval=lambda x: [x])
    jaxpr = closed.jaxpr
    eqns = [make_eqn(jaxpr.invars, [Var(SCALAR)], say_p, {}) for _ in range(2)]
    assert all(effect.observable for eqn in eqns for effect in eqn.effects)
    assert all(eqn.effects for eqn in eqns)
    noisy = type(closed)(jaxpr.replace(eqns=tuple(eqns)), ())
    assert names(simplify(noisy)) == ["say", "say"]


def test_simplifying_keeps_the_values():
    def f(x, y):
        a = lax.tanh(lax.add(x, y))
        return [lax.mul(a, a), lax.reduce_max(lax.tanh(lax.add(x, y)), (0,)), y, a]

    closed = tracing.stage(lambda *xs: f(*xs), [VECTOR, VECTOR])
    args = [np.float32([1, 2, 3]), np.float32([0, -1, 5])]
    for old, new in zip(eval_jaxpr(closed.jaxpr, closed.consts, *args),
                        eval_jaxpr(simplify(closed).jaxpr, simplify(closed).consts, *args),
                        strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.fixture
def key():
    from minijax import random

    return random.key(7)


def test_keys_become_words_also_inside_loops_and_shape_operations(key):
    from minijax import random
    from minijax.compiler.lowered import Lowered
    from tests.running_text import run_text

    def f(k):
        keys = random.split(k, 3)
        last = lax.scan(lambda c, x: (lax.select(lax.eq(x, 1), k, c), x), k, np.arange(3))[0]
        return [lax.rev(lax.reshape(keys, (3, 1)), (0,)), last]

    closed = tracing.stage(f, [key.aval])
    words = simplify(closed)
    assert [str(a.dtype) for a in words.in_avals] == ["uint32"]
    assert words.out_avals[0].shape == (3, 1, 2) and words.out_avals[1].shape == (2,)
    expected = eval_jaxpr(closed.jaxpr, closed.consts, key)
    kernel = Lowered(closed, "f").kernel
    given = run_text(kernel, [np.asarray(random.key_data(key))])
    for x, y in zip(expected, given, strict=True):
        np.testing.assert_array_equal(random.key_data(x), y)
