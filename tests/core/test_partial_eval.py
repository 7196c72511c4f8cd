"""Partial evaluation: the known half and the unknown half together are the whole."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.core.partial_eval import partial_eval_jaxpr
from minijax.core.jaxpr import check_jaxpr, eval_jaxpr

X, Y = np.float32(0.7), np.float32(-1.3)


def loop(x, y):
    return lax.scan(lambda c, _: ((c[0] * jnp.sin(x), c[1] + c[0] * y), c[0]), (x, y), None, 4)


PROGRAMS = {
    "straight": lambda x, y: (jnp.sin(x), jnp.sin(x) * y, y * 2),
    "nested jit": lambda x, y: minijax.jit(lambda a, b: (jnp.cos(a), a * b))(x, y),
    "scan": loop,
    "cond": lambda x, y: lax.cond(x > 0, lambda a, b: (jnp.sin(a), jnp.sin(a) * b),
                                  lambda a, b: (a, jnp.exp(a) * b), x, y),
    "while": lambda x, y: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] * 2, c[1] * c[0]),
                                         (x, y)),
}


def put_together(halves, unknown_in, args):
    known_args = [a for a, u in zip(args, unknown_in, strict=True) if not u]
    unknown_args = [a for a, u in zip(args, unknown_in, strict=True) if u]
    outs = eval_jaxpr(halves.known.jaxpr, halves.known.consts, *known_args)
    count = len(halves.unknown_out) - sum(halves.unknown_out)
    known, residuals = iter(outs[:count]), outs[count:]
    unknown = iter(eval_jaxpr(halves.unknown.jaxpr, halves.unknown.consts,
                              *halves.needed(args, residuals), *unknown_args))
    return [next(unknown if u else known) for u in halves.unknown_out]


@pytest.mark.parametrize("unknown_in", [[False, True], [True, False], [True, True],
                                        [False, False]], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_halves_give_what_the_whole_gives(name, unknown_in):
    closed = minijax.make_jaxpr(PROGRAMS[name])(X, Y)
    halves = partial_eval_jaxpr(closed, unknown_in)
    check_jaxpr(halves.known.jaxpr)
    check_jaxpr(halves.unknown.jaxpr)
    whole = eval_jaxpr(closed.jaxpr, closed.consts, X, Y)
    for got, want in zip(put_together(halves, unknown_in, [X, Y]), whole, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_what_is_known_does_not_wait():
    closed = minijax.make_jaxpr(lambda x, y: jnp.sin(x) * y)(X, Y)
    halves = partial_eval_jaxpr(closed, [False, True])
    assert [e.primitive.name for e in halves.known.eqns] == ["sin"]
    assert [e.primitive.name for e in halves.unknown.eqns] == ["mul"]


def test_an_input_needed_later_is_forwarded_and_not_copied():
    closed = minijax.make_jaxpr(lambda x, y: x * y)(X, Y)
    halves = partial_eval_jaxpr(closed, [False, True])
    assert halves.needs == (0,) and not halves.residual_avals


def test_a_loop_hands_over_its_constants_once_and_its_state_stacked():
    def f(w, x):
        return lax.scan(lambda c, _: (jnp.tanh(w @ c), None), x, None, 5)[0]
    w, x = np.eye(3, dtype=np.float32), np.ones(3, np.float32)
    program, has = minijax.core.jvp.jvp_jaxpr(minijax.make_jaxpr(f)(w, x), [False, True])
    halves = partial_eval_jaxpr(program, [False, False, True])
    (unknown,) = [e for e in halves.unknown.eqns if e.primitive.name == "scan"]
    shapes = [v.aval.shape for v in unknown.invars]
    assert (3, 3) in shapes and (5, 3, 3) not in shapes and (5, 3) in shapes
