"""Functions with rules of their own: the rule is used everywhere, and its mistakes are named."""

import functools

import jax
import numpy as np
import pytest

import minijax

X = np.array([0.5, -0.3, 1.2], np.float32)


def same(f, rtol=1e-5):
    ours, theirs = f(minijax), f(jax)
    for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


def with_jvp(lib):
    @lib.custom_jvp
    def f(x, y):
        return lib.numpy.sin(x) * y

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), 3.0 * lib.numpy.cos(x) * dx * y + lib.numpy.sin(x) * dy
    return f


def with_vjp(lib):
    @lib.custom_vjp
    def f(x, y):
        return lib.numpy.sin(x) * y

    f.defvjp(lambda x, y: (f(x, y), (x, y)),
             lambda res, ct: (3.0 * lib.numpy.cos(res[0]) * res[1] * ct,
                              lib.numpy.sin(res[0]) * ct))
    return f


TRANSFORMED = {
    "eval": lambda lib, f: f(1.2, 2.0),
    "jit": lambda lib, f: lib.jit(f)(X, X),
    "vmap": lambda lib, f: lib.vmap(f, (0, None))(X, np.float32(2)),
    "grad": lambda lib, f: lib.grad(f, (0, 1))(1.2, 2.0),
    "grad jit": lambda lib, f: lib.grad(lib.jit(f), (0, 1))(1.2, 2.0),
    "jit grad": lambda lib, f: lib.jit(lib.grad(f, (0, 1)))(1.2, 2.0),
    "vmap grad": lambda lib, f: lib.vmap(lib.grad(f, (0, 1)), (0, None))(X, np.float32(2)),
    "grad vmap": lambda lib, f: lib.grad(lambda x, y: lib.vmap(f, (0, None))(x, y).sum(),
                                         (0, 1))(X, np.float32(2)),
    "grad jit vmap": lambda lib, f: lib.grad(lambda x: lib.jit(lib.vmap(f, (0, None)))(
        x, np.float32(2)).sum())(X),
    "grad scan": lambda lib, f: lib.grad(lambda x: lib.lax.scan(
        lambda c, w: (f(c, w), None), x, X)[0])(np.float32(0.4)),
    "grad grad": lambda lib, f: lib.grad(lib.grad(f))(1.2, 2.0),
}


@pytest.mark.parametrize("make", [with_jvp, with_vjp])
@pytest.mark.parametrize("name", TRANSFORMED)
def test_the_rule_is_used_under_every_transformation(make, name):
    same(lambda lib: TRANSFORMED[name](lib, make(lib)))


def test_a_rule_may_branch_in_python_on_values():
    def f(lib):
        @lib.custom_jvp
        def g(x):
            return x * x

        @g.defjvp
        def rule(primals, tangents):
            (x,), (t,) = primals, tangents
            return g(x), (t if x > 0 else -t)
        return lib.grad(g)(-2.0), lib.grad(g)(2.0)
    same(f)


def test_arguments_that_are_not_differentiated_may_be_anything():
    def f(lib):
        @functools.partial(lib.custom_jvp, nondiff_argnums=(0,))
        def apply(fun, x):
            return fun(x)

        @apply.defjvp
        def rule(fun, primals, tangents):
            return fun(primals[0]), 5.0 * tangents[0]

        @functools.partial(lib.custom_vjp, nondiff_argnums=(1,))
        def clip(x, bound):
            return x
        clip.defvjp(lambda x, bound: (x, None),
                    lambda bound, _, ct: (lib.numpy.clip(ct, -bound, bound),))
        return lib.grad(lambda x: apply(lib.numpy.sin, x))(1.0), lib.grad(
            lambda x: 10 * clip(x, 2.0))(1.0)
    same(f)


def test_rules_for_each_argument():
    def f(lib):
        @lib.custom_jvp
        def g(x, y):
            return x * y
        g.defjvps(lambda t, out, x, y: 7.0 * t, None)
        return lib.grad(g, (0, 1))(2.0, 3.0)
    same(f)


def test_rules_for_each_argument_add_nothing_to_the_tangent():
    g = minijax.custom_jvp(lambda x: x * x)
    g.defjvps(lambda t, out, x: t)
    _, tangent = minijax.jvp(g, (1.0,), (-0.0,))
    assert np.signbit(tangent)


def test_trees_integers_and_absent_cotangents():
    def f(lib):
        @lib.custom_vjp
        def g(tree, n):
            return {"out": tree["a"] * n}
        g.defvjp(lambda tree, n: (g(tree, n), n),
                 lambda n, ct: ({"a": ct["out"] * n * 2, "b": None}, None))
        return lib.grad(lambda t: g(t, 3)["out"])({"a": 2.0, "b": 1.0})
    same(f)


def test_closing_over_a_batched_value_works():
    def f(lib):
        def outer(y):
            @lib.custom_jvp
            def g(x):
                return x * y
            g.defjvp(lambda p, t: (g(p[0]), 2 * y * t[0]))
            return lib.vmap(g)(X), g(1.0)
        return lib.vmap(outer)(X)
    same(f)


def without_rule(lib):
    return lib.grad(lib.custom_jvp(lambda x: x))(1.0)


def bad_jvp(result):
    def run(lib):
        f = lib.custom_jvp(lambda x: x)
        f.defjvp(lambda p, t: result(p, t))
        return lib.grad(f)(1.0)
    return run


def bad_vjp(fwd, bwd):
    def run(lib):
        f = lib.custom_vjp(lambda x, y: x * y)
        f.defvjp(fwd, bwd)
        return lib.grad(f)(1.0, 2.0)
    return run


def pair(x, y):
    return x * y, None


BAD = {
    "no rule": without_rule,
    "no pair": bad_jvp(lambda p, t: p[0]),
    "another tree": bad_jvp(lambda p, t: (p[0], (t[0],))),
    "another dtype": bad_jvp(lambda p, t: (p[0], 1)),
    "forward mode of a vjp rule": lambda lib: lib.jvp(with_vjp(lib), (1.0, 2.0), (1.0, 1.0)),
    "too few cotangents": bad_vjp(pair, lambda res, ct: (ct,)),
    "a cotangent of another shape": bad_vjp(pair, lambda res, ct: (X, ct)),
}


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_named_in_jaxs_words(name, refused_alike):
    refused_alike(BAD[name])


def test_a_batched_rule_may_have_an_integer_argument():
    def slopes(lib):
        @lib.custom_jvp
        def scaled(x, n):
            return x * n

        @scaled.defjvp
        def rule(primals, tangents):
            (x, n), (t, _) = primals, tangents
            return scaled(x, n), 10.0 * t * n
        slope = lib.grad(lambda x: lib.vmap(scaled)(x, lib.numpy.array([1, 2, 3])).sum())
        return slope(X), lib.jit(slope)(X)
    same(slopes)


UNMAPPED = {
    "vmap": lambda lib, f: lib.vmap(lambda x, y: (f(x), y), (None, 0), (None, 0)),
    "jvp of vmap": lambda lib, f: lambda x, y: lib.jvp(
        lib.vmap(lambda x, y: (f(x), f(x) * y), (None, 0), (None, 0)), (x, y), (x, y)),
    "grad in vmap": lambda lib, f: lib.vmap(
        lambda x, y: (lib.grad(f)(x), lib.grad(f)(y)), (None, 0), (None, 0)),
    "vmap of vmap": lambda lib, f: lib.vmap(
        lib.vmap(lambda x, y: (f(x), y), (None, 0), (None, 0)), (0, None), (0, None)),
    "aux of jacfwd": lambda lib, f: lambda x, y: lib.jacfwd(
        lambda y: (f(y), (f(y), lib.nn.relu(x))), has_aux=True)(y),
}


@pytest.mark.parametrize("mapped", UNMAPPED)
@pytest.mark.parametrize("jitted", [False, True])
def test_under_vmap_what_is_the_same_for_all_stays_one_value(mapped, jitted):
    def found(lib):
        f = lib.custom_jvp(lambda x: lib.numpy.sin(x))
        f.defjvp(lambda p, t: (lib.numpy.sin(p[0]), 3 * t[0]))
        program = UNMAPPED[mapped](lib, f)
        x = np.float32([1, 2]) if mapped == "vmap of vmap" else np.float32(2)
        return lib.tree.leaves((lib.jit(program) if jitted else program)(x, np.float32([3, 4, 5])))
    for ours, theirs in zip(found(minijax), found(jax), strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def without_a_cotangent(lib):
    """``h(x, y) = x * y``, which gives nothing back to x."""
    h = lib.custom_vjp(lambda x, y: x * y)
    h.defvjp(lambda x, y: (x * y, None), lambda _, ct: (None, ct))
    return h


def counting(lib):
    """``f(x, s) = x, s``, whose derivative by s is what s is next, as layers of 8 bits have it."""
    f = lib.custom_vjp(lambda x, s: (x * 1, s * 1))
    f.defvjp(lambda x, s: ((x * 1, s * 1), s), lambda s, ct: (None, s + 1))
    return f


@pytest.mark.parametrize("program", [
    lambda lib, f, h: lambda s: h(f(1., s)[0], s),
    lambda lib, f, h: lambda s: h(lib.numpy.sin(2 * f(1., s)[0]), s),
    lambda lib, f, h: lambda s: h(h(f(1., s)[0], 1.), 1.),
    lambda lib, f, h: lib.jit(lambda s: h(f(1., s)[0], s)),
    lambda lib, f, h: lambda s: h(lib.jit(lambda s: f(1., s)[0])(s), s),
    lambda lib, f, h: lambda s: (f(1., s), s * 2.)[1],
    lambda lib, f, h: lambda s: lib.lax.stop_gradient(f(1., s)[0]),
    lambda lib, f, h: lambda s: h(1., s) * f(s, 1.)[0].astype(int),
    lambda lib, f, h: lambda s: h(lib.custom_derivatives.linear_call(
        lambda r, x: x * r, lambda r, ct: ct + r, 1., s), s)],
    ids=["none", "none of none through others", "none twice", "inside of jit", "all of a jit",
         "unused", "stopped", "an integer", "a linear call"])
def test_a_rule_is_asked_for_zero_cotangents_where_jax_asks(program):
    def derivatives(lib):
        f = program(lib, counting(lib), without_a_cotangent(lib))
        return lib.grad(f)(3.), lib.jit(lib.grad(f))(3.), lib.vjp(f, 3.)[1](lib.numpy.float32(1))
    same(derivatives)
