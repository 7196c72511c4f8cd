"""Programs as data: checked, evaluated, cleaned of what nobody reads."""

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import errors, lax
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, check_jaxpr, eval_jaxpr, make_eqn
from minijax.core.dce import without_dead_equations

X = np.array([0.5, -0.3, 1.2], np.float32)


def program(f, *args):
    return minijax.make_jaxpr(f)(*args)


def test_running_a_program_gives_what_the_function_gives():
    f = lambda x: jnp.sin(x) * 2 + x  # noqa: E731
    closed = program(f, X)
    (out,) = eval_jaxpr(closed.jaxpr, closed.consts, X)
    np.testing.assert_array_equal(out, f(X))


def test_running_a_program_can_itself_be_traced():
    closed = program(lambda x: jnp.sin(x) * x, 1.0)
    again = program(lambda x: eval_jaxpr(closed.jaxpr, closed.consts, x)[0], 1.0)
    assert str(again) == str(closed)
    slope = minijax.grad(lambda x: eval_jaxpr(closed.jaxpr, closed.consts, x)[0])(2.0)
    np.testing.assert_allclose(slope, jax.grad(lambda x: jax.numpy.sin(x) * x)(2.0), rtol=1e-5)


def test_equations_keep_the_users_line_when_a_program_is_run_again():
    closed = program(lambda x: jnp.sin(x), 1.0)
    again = program(lambda x: eval_jaxpr(closed.jaxpr, closed.consts, x)[0], 1.0)
    assert again.eqns[0].source_info == closed.eqns[0].source_info
    assert "jnp.sin(x)" in closed.eqns[0].source_info.text


def test_fields_are_lists_as_in_jax_and_frozen():
    jaxpr = program(lambda x: x + 1, 1.0).jaxpr
    assert all(isinstance(field, list) for field in
               (jaxpr.constvars, jaxpr.invars, jaxpr.outvars, jaxpr.eqns, jaxpr.eqns[0].invars))
    with pytest.raises(AttributeError):
        jaxpr.eqns = ()


def test_the_wrong_number_of_arguments_is_refused():
    closed = program(lambda x: x + 1, 1.0)
    with pytest.raises(TypeError, match="takes 1 arguments, got 2"):
        eval_jaxpr(closed.jaxpr, closed.consts, 1.0, 2.0)
    with pytest.raises(ValueError, match="constants"):
        ClosedJaxpr(closed.jaxpr, (1.0,))
    with pytest.raises(ValueError, match="constants"):
        closed.replace(consts=(1.0,))


def scalar():
    return Var(minijax.core.types.ShapedArray((), np.float32))


def broken_programs():
    a, b, c = scalar(), scalar(), scalar()
    sine = make_eqn((a,), (b,), lax.sin_p, {})
    wrong = Var(minijax.core.types.ShapedArray((2,), np.float32))
    yield "used before", Jaxpr((), (a,), (c,), (sine,))
    yield "used before", Jaxpr((), (), (b,), (sine,))
    yield "defined twice", Jaxpr((), (a, b), (b,), (sine,))
    yield "declares outputs", Jaxpr((), (a,), (wrong,),
                                    (make_eqn((a,), (wrong,), lax.sin_p, {}),))


@pytest.mark.parametrize(("message", "jaxpr"), list(broken_programs()),
                         ids=lambda v: v if isinstance(v, str) else "")
def test_a_program_that_does_not_hold_together_is_refused(message, jaxpr):
    with pytest.raises(errors.JaxprTypeError, match=message):
        check_jaxpr(jaxpr)


def test_every_staged_program_holds_together():
    with minijax.config.enable_checks(True):
        for f in (lambda x: jnp.where(x > 0, x, 0).sum(), lambda x: lax.scan(
                lambda c, y: (c * y, c), 1.0, x), lambda x: minijax.nn.softmax(x)):
            check_jaxpr(program(f, X).jaxpr)
            check_jaxpr(program(minijax.jit(minijax.vmap(f)), np.stack([X, X])).jaxpr)


def test_dead_equations_go_and_live_ones_stay():
    def f(x):
        lax.cos(x)
        return lax.sin(x)
    jaxpr = without_dead_equations(program(f, 1.0)).jaxpr
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["sin"]


def test_a_literal_stands_for_its_value_and_type():
    literal = Literal(2.0)
    assert literal.value.weak_type and literal.value.dtype == np.float32
    assert float(literal.value) == 2.0


def test_what_is_derived_from_a_program_is_computed_once():
    closed, calls = program(lambda x: x, 1.0), []
    for _ in range(3):
        closed.derived(("mine",), lambda: calls.append(1))
    assert calls == [1]
