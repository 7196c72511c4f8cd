"""Transposition: <ct, A x> = <A' ct, x> for every linear program."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import Undefined, Zero
from minijax.core.transpose import backward_pass, transpose_jaxpr

X = np.array([0.5, -0.3, 1.2], np.float32)
CT = np.array([1.0, 2.0, -1.0], np.float32)
W = np.arange(9, dtype=np.float32).reshape(3, 3)

LINEAR = {
    "scale": lambda x: 3.0 * x,
    "matrix": lambda x: jnp.asarray(W) @ x,
    "reverse and sum": lambda x: x[::-1] + x.sum(),
    "used twice": lambda x: x + 2 * x,
    "scan": lambda x: lax.scan(lambda c, w: (w * c + x, None), x, jnp.asarray(X))[0],
    "scan rows": lambda x: lax.scan(lambda c, y: (c + y, c * 2), 0.0, x)[1],
    "jit": minijax.jit(lambda x: x * 2 - x[0]),
    "cond": lambda x: lax.cond(True, lambda v: 2 * v, lambda v: v[::-1], x),
}


@pytest.mark.parametrize("name", LINEAR)
def test_the_transpose_is_the_adjoint(name):
    f = LINEAR[name]
    (back,) = minijax.linear_transpose(f, X)(CT)
    np.testing.assert_allclose(np.vdot(CT, f(jnp.asarray(X))), np.vdot(back, X), rtol=1e-5)


@pytest.mark.parametrize("name", LINEAR)
def test_transposing_twice_gives_the_function_back(name):
    f = LINEAR[name]
    once = lambda ct: minijax.linear_transpose(f, X)(ct)[0]  # noqa: E731
    (twice,) = minijax.linear_transpose(once, CT)(X)
    np.testing.assert_allclose(twice, f(jnp.asarray(X)), rtol=1e-5)


def test_an_input_that_does_not_matter_has_a_symbolic_zero():
    closed = minijax.make_jaxpr(lambda x, y: 2.0 * x)(1.0, 2.0)
    avals = closed.in_avals
    found = backward_pass(closed.jaxpr, closed.consts, [Undefined(a) for a in avals],
                          [np.float32(1)])
    assert isinstance(found[1], Zero) and found[0] == 2.0
    _, has = transpose_jaxpr(closed, [True, True], closed.out_avals)
    assert has == (True, False)


def test_a_loop_of_unknown_length_says_what_to_do_instead():
    f = lambda x: lax.while_loop(lambda c: c < 9, lambda c: c * 2, x)  # noqa: E731
    with pytest.raises(ValueError, match=r"Reverse-mode .* Try using lax.scan"):
        minijax.grad(f)(1.0)
