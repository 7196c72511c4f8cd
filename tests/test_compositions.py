"""Transformations compose in any order: generated to depth three, every result is JAX's."""

import itertools
import random

import jax
import numpy as np
import pytest

import minijax

# Every program and every transformation takes a vector of three numbers to another, so that they
# fit together in any order.  Each is written once, for whichever library it is given.


def programs(lib):
    jnp, lax, nn = lib.numpy, lib.lax, lib.nn

    def rows(x):
        return jnp.stack([x, 2 * x, x - 1])

    return {
        "polynomial": lambda x: x ** 3 - 2.0 * x,
        "trigonometric": lambda x: jnp.sin(x) * jnp.cos(2 * x),
        "exponential": lambda x: jnp.exp(-x * x) + jnp.tanh(x),
        "softmax": lambda x: nn.softmax(x) * x,
        "matrix product": lambda x: rows(x) @ x,
        "indexing": lambda x: x[jnp.array([2, 0, 1])] * x[0],
        "where": lambda x: jnp.where(x > 0, x * x, jnp.sin(x)),
        "reduction": lambda x: x / (1.0 + jnp.sum(x * x)),
        "recurrence": lambda x: lax.scan(lambda c, y: (c * y + jnp.sin(c), c + y),
                                         x[0], x)[1],
        "branches": lambda x: lax.cond(x.sum() > 0, lambda v: v * jnp.sin(v),
                                       lambda v: jnp.exp(v), x),
    }


def transformations(lib):
    jnp, lax = lib.numpy, lib.lax

    def batched(f):
        def run(x):
            out = lib.vmap(f)(jnp.stack([x, 0.5 * x]))
            return out[0] - 0.25 * out[1]
        return run

    def linearized(f):
        return lambda x: lib.linearize(f, x)[1](jnp.cos(x))

    def looped(f):
        return lambda x: lax.scan(lambda c, w: (0.5 * f(c) + w * c, None), x,
                                  jnp.array([0.1, 0.2], jnp.float32))[0]

    def branched(f):
        return lambda x: lax.cond(x[0] * x[1] < 0, f, lambda v: 2 * v, x)

    return {
        "jit": lib.jit,
        "grad": lambda f: lib.grad(lambda x: f(x).sum()),
        "jvp": lambda f: lambda x: lib.jvp(f, (x,), (jnp.cos(x),))[1],
        "vjp": lambda f: lambda x: lib.vjp(f, x)[1](jnp.sin(x))[0],
        "linearize": linearized,
        "vmap": batched,
        "scan": looped,
        "cond": branched,
        "fori": lambda f: lambda x: lax.fori_loop(0, 2, lambda i, v: 0.5 * f(v) + i, x),
    }


X = np.array([0.5, -0.3, 1.2], np.float32)
NAMES = list(transformations(minijax))
PROGRAMS = list(programs(minijax))


def generated():
    """Every pair of transformations once, and triples, each on one program in turn."""
    choose = random.Random(0)
    chains = list(itertools.product(NAMES, repeat=2))
    chains += choose.sample(list(itertools.product(NAMES, repeat=3)), 24)
    chains += [("grad", "jit", "vmap", "grad"), ("jit", "vmap", "jvp", "scan", "cond"),
               ("jit", "grad", "scan", "vmap"), ("vmap", "grad", "jit", "cond")]
    return [(PROGRAMS[i % len(PROGRAMS)], chain) for i, chain in enumerate(chains)]


def applied(lib, program, chain):
    f = programs(lib)[program]
    for name in reversed(chain):
        f = transformations(lib)[name](f)
    return f


@pytest.mark.parametrize(("program", "chain"), generated(),
                         ids=lambda v: "∘".join(v) if isinstance(v, tuple) else v)
def test_a_composition_gives_what_jax_gives(program, chain, jax_says):
    ours = applied(minijax, program, chain)(minijax.numpy.asarray(X))
    theirs = jax_says(lambda: jax.jit(applied(jax, program, chain))(X))
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)


def test_perturbations_of_different_levels_do_not_mix():
    grad, jvp = minijax.grad, minijax.jvp
    # d/dx [x · d/dy (x + y)] = 1, and not 2, which confused levels give
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(2.0) == 1.0
    assert jvp(lambda x: x * jvp(lambda y: x + y, (1.0,), (1.0,))[1], (2.0,), (1.0,))[1] == 1.0
    assert grad(lambda x: grad(lambda y: x * y * y)(3.0) * x)(5.0) == 60.0


def test_a_nested_derivative_sees_the_outer_variable():
    def outer(lib):
        f = lambda x: lib.grad(lambda y: lib.numpy.sin(x * y))(x)  # noqa: E731
        return lib.vmap(lib.grad(f))(lib.numpy.asarray(X))
    np.testing.assert_allclose(outer(minijax), outer(jax), rtol=1e-5)


def test_a_custom_interpreter_written_as_the_tutorial_does_inverts_a_program():
    from minijax import lax
    from minijax.extend.core import Literal

    inverse_registry = {lax.exp_p: minijax.numpy.log, lax.tanh_p: minijax.numpy.arctanh}

    def inverse(fun):
        def wrapped(*args):
            closed = minijax.make_jaxpr(fun)(*args)
            out = inverse_jaxpr(closed.jaxpr, closed.literals, *args)
            return out[0]
        return wrapped

    def inverse_jaxpr(jaxpr, consts, *args):
        env = {}

        def read(var):
            return var.val if type(var) is Literal else env[var]

        def write(var, val):
            env[var] = val

        list(map(write, jaxpr.outvars, args))
        list(map(write, jaxpr.constvars, consts))
        for eqn in jaxpr.eqns[::-1]:
            invals = list(map(read, eqn.outvars))
            if eqn.primitive not in inverse_registry:
                raise NotImplementedError(f"{eqn.primitive} does not have registered inverse.")
            outval = inverse_registry[eqn.primitive](*invals)
            list(map(write, eqn.invars, [outval]))
        return list(map(read, jaxpr.invars))

    def f(x):
        return minijax.numpy.exp(minijax.numpy.tanh(x))
    f_inv = inverse(f)
    assert abs(float(f_inv(f(1.0))) - 1.0) < 1e-5
    assert abs(float(minijax.jit(minijax.vmap(minijax.grad(f_inv)))(X + 1)[0])) < 10
    assert "log" in str(minijax.make_jaxpr(inverse(f))(f(1.0)))


def test_a_custom_interpreter_evaluates_through_bind():
    from minijax.extend.core import Literal

    def eval_jaxpr(jaxpr, consts, *args):
        env = dict(zip(jaxpr.invars, args, strict=True)) | dict(
            zip(jaxpr.constvars, consts, strict=True))

        def read(var):
            return var.val if type(var) is Literal else env[var]
        for eqn in jaxpr.eqns:
            bind_params = eqn.primitive.get_bind_params(eqn.params)
            outvals = eqn.primitive.bind(*map(read, eqn.invars), **bind_params)
            if not eqn.primitive.multiple_results:
                outvals = [outvals]
            env.update(zip(eqn.outvars, outvals, strict=True))
        return list(map(read, jaxpr.outvars))

    for name, f in programs(minijax).items():
        closed = minijax.make_jaxpr(f)(X)
        (out,) = eval_jaxpr(closed.jaxpr, closed.literals, X)
        np.testing.assert_allclose(out, f(minijax.numpy.asarray(X)), rtol=1e-5, err_msg=name)
