"""Forward derivatives: tangents beside primals, symbolic zeros, concrete branches."""

import numpy as np
import pytest

import minijax
from minijax import core, dtypes, jit, jvp, lax
from minijax.core import Zero
from minijax.core.jvp import jvp_flat, jvp_jaxpr

X = np.array([0.5, -0.3, 1.2], np.float32)


def test_a_tangent_rides_along():
    outs, dots = jvp_flat(lambda x: [lax.sin(x)], [core.as_value(X)], [core.as_value(X * 2)])
    np.testing.assert_allclose(outs[0], np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(dots[0], np.cos(X) * X * 2, rtol=1e-6)


def test_what_has_no_tangent_stays_a_symbolic_zero():
    x = core.as_value(X)
    _, dots = jvp_flat(lambda x, y: [lax.sin(y), lax.mul(x, y)], [x, x],
                       [core.as_value(X), Zero(x.aval)])
    assert isinstance(dots[0], Zero) and not isinstance(dots[1], Zero)


def test_integers_have_float0_tangents():
    _, dots = jvp_flat(lambda x, n: [n, x], [core.as_value(X), core.as_value(3)],
                       [core.as_value(X), Zero(core.ShapedArray((), dtypes.float0))])
    assert dots[0].aval.dtype == dtypes.float0


def test_a_python_branch_follows_the_primal():
    f = lambda x: lax.sin(x) if x > 0 else lax.mul(x, x)  # noqa: E731
    assert minijax.jvp(f, (-3.0,), (1.0,))[1] == -6.0
    np.testing.assert_allclose(minijax.grad(minijax.grad(f))(2.0), -np.sin(2.0), rtol=1e-6)


def test_the_program_of_a_derivative_takes_only_the_tangents_that_exist():
    closed = minijax.make_jaxpr(lambda x, y: (lax.sin(x), lax.cos(y)))(1.0, 2.0)
    program, has = jvp_jaxpr(closed, [True, False])
    assert len(program.in_avals) == 3 and has == (True, False)
    forced, has = jvp_jaxpr(closed, [True, False], keep=[True, True])
    assert has == (True, True) and len(forced.out_avals) == 4


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivatives_nest(order):
    f = lax.exp
    for _ in range(order):
        f = (lambda g: lambda x: minijax.jvp(g, (x,), (1.0,))[1])(f)
    np.testing.assert_allclose(f(0.3), np.exp(np.float32(0.3)), rtol=1e-6)


@pytest.mark.parametrize("loop", [
    lambda f, x: lax.scan(lambda c, _: (f(c), None), x, None, 2)[0],
    lambda f, x: lax.fori_loop(0, 2, lambda _, c: f(c), x),
    lambda f, x: lax.cond(x > 0, f, f, x), lambda f, x: jit(f)(x), lambda f, x: f(x)])
@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_a_derivative_without_a_rule_is_refused_where_nobody_reads_the_result_too(loop, wrap):
    def body(c):
        lax.zeta(c, 2.5)
        return c * 2
    with pytest.raises(NotImplementedError, match="'zeta' not implemented"):
        wrap(lambda x: jvp(lambda x: loop(body, x), (x,), (1.,)))(1.5)
