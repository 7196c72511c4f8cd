"""Functions with rules of their own: the rule is used everywhere, and its mistakes are named."""

import functools

import jax
import numpy as np
import pytest

import minijax
from minijax import extend

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


def with_masks(lib):
    @lib.custom_jvp
    def f(x, y):
        return lib.numpy.maximum(x, 0.5) * y

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), dx * (x > 0.5) * y + lib.numpy.maximum(x, 0.5) * dy
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


@pytest.mark.parametrize("make", [with_jvp, with_vjp, with_masks])
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


def scaled(lib, nondiff_argnums):
    f = lib.custom_jvp(lambda x, y: lib.numpy.sin(y) * x, nondiff_argnums=nondiff_argnums)
    f.defjvp((lambda x, y, t: (f(x, *y), 7.0 * x * t[0])) if nondiff_argnums else
             lambda p, t: (f(*p), 7.0 * p[0] * t[1]))
    return f


# Where an argument that is not differentiated is traced: a branch, a body, a batch.
CALLED_ON_TRACERS = {
    "itself": lambda lib, f, x, y: f(x, y),
    "cond": lambda lib, f, x, y: lib.lax.cond(x < y, f, lambda x, y: y, x, y),
    "switch": lambda lib, f, x, y: lib.lax.switch(1, [lambda x, y: y, f], x, y),
    "jit": lambda lib, f, x, y: lib.jit(f)(x, y),
    "checkpoint": lambda lib, f, x, y: lib.checkpoint(f)(x, y),
    "scan": lambda lib, f, x, y: lib.lax.scan(
        lambda c, a: (f(a, c), None), y, lib.numpy.stack([x, x + 1]))[0],
    "captured by scan": lambda lib, f, x, y: lib.lax.scan(
        lambda c, _: (f(x, c), None), y, None, length=2)[0],
    "fori_loop": lambda lib, f, x, y: lib.lax.fori_loop(0, 3, lambda i, c: f(1.0 * i, c), y),
    "vmap": lambda lib, f, x, y: lib.vmap(f, (0, None))(lib.numpy.stack([x, x + 1]), y).sum(),
    "jit of vmap": lambda lib, f, x, y: lib.jit(lib.vmap(f))(
        lib.numpy.stack([x, 2 * x]), lib.numpy.stack([y, y])).sum(),
}


DIFFERENTIATED = {
    "grad": lambda lib, g: lib.grad(g, (0, 1))(1.5, 2.0),
    "jvp": lambda lib, g: lib.jvp(g, (1.5, 2.0), (1.0, 1.0)),
    "linearize": lambda lib, g: lib.linearize(lambda y: g(1.5, y), 2.0)[1](1.0),
    "hessian": lambda lib, g: lib.hessian(g, (0, 1))(1.5, 2.0),
    "jit of grad": lambda lib, g: lib.jit(lib.grad(g, 1))(1.5, 2.0),
    "grad of jit": lambda lib, g: lib.grad(lib.jit(g), 1)(1.5, 2.0),
    "vmap of grad": lambda lib, g: lib.vmap(lib.grad(g, 1), (0, None))(X, np.float32(2)),
}


@pytest.mark.parametrize("name", DIFFERENTIATED)
@pytest.mark.parametrize("program", CALLED_ON_TRACERS)
def test_a_rule_is_told_of_tracers_that_are_not_differentiated_when_it_runs(program, name):
    def f(lib):  # JAX: the tracer of a body has ended when the rule runs; a primal has not
        f = scaled(lib, () if lib is jax else (0,))
        return DIFFERENTIATED[name](lib, lambda x, y: CALLED_ON_TRACERS[program](lib, f, x, y))
    same(f)


def test_a_reverse_rule_takes_no_tracer_that_is_not_differentiated(beside_jax):
    def message(lib):
        f = lib.custom_vjp(lambda x, y: y, nondiff_argnums=(0,))
        f.defvjp(lambda x, y: (y, None), lambda x, _, ct: (ct,))
        with pytest.raises(lib.errors.UnexpectedTracerError) as caught:
            lib.jit(lambda x, y: f([x], y))(1.0, 2.0)
        return str(caught.value).splitlines()[0]
    ours, theirs = beside_jax(message)
    assert ours == theirs


class Scale:
    def method(self, x, k=2.0, *, e=1.0):
        return x * k * e

    def __call__(self, x, k=3.0):
        return x * k


def many(x, y=2.0, *xs, e=3.0, **others):
    return x * y * e + sum(xs) + others.get("k", 0.0)


NAMED = {
    "default": lambda lib: lambda x, k=2.0: x * k,
    "keyword-only": lambda lib: lambda x, *, e=1.0: x * e,
    "keyword-only without default": lambda lib: lambda x, *, e: x * e,
    "positional-only": lambda lib: lambda x, /, k=2.0: x * k,
    "many": lambda lib: many,
    "partial with a keyword": lambda lib: functools.partial(lambda x, k=2.0: x * k, k=3.0),
    "partial with a value": lambda lib: functools.partial(lambda k, x=2.0: x * k, 3.0),
    "partial of a ufunc": lambda lib: functools.partial(lib.numpy.add, 1.0),
    "Partial": lambda lib: lib.tree_util.Partial(lambda x, k=2.0: x * k, k=4.0),
    "ufunc": lambda lib: lib.numpy.multiply,
    "function": lambda lib: lib.numpy.sin,
    "builtin": lambda lib: abs,
    "without signature": lambda lib: max,
    "class": lambda lib: float,
    "method": lambda lib: Scale().method,
    "object": lambda lib: Scale(),
    "jit": lambda lib: lib.jit(lambda x, *, e=1.0: x * e),
    "no function": lambda lib: None,
}
CALLS = [((2.0,), {}), ((2.0, 3.0), {}), ((2.0, 3.0, 4.0), {}), ((2.0,), {"k": 4.0}), ((), {}),
         ((2.0,), {"e": 4.0}), ((), {"x": 2.0}), ((2.0,), {"x": 3.0}), ((2.0,), {"e": 1.0, "z": 3})]


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp", "custom_vmap"])
@pytest.mark.parametrize("name", NAMED)
def test_arguments_find_their_positions_as_in_jax(name, kind):
    def value(lib, args, kwargs):
        f = NAMED[name](lib)
        g = getattr(lib.custom_batching if kind == "custom_vmap" else lib, kind)(f)
        if kind == "custom_jvp":
            g.defjvp(lambda p, t: (f(*p), 7.0 * t[0]))
        elif kind == "custom_vjp":
            g.defvjp(lambda *p: (f(*p), len(p)),
                     lambda n, ct: (7.0 * ct,) + (None,) * (n - 1))
        else:
            g.def_vmap(lambda size, batched, *p: (7.0 * f(*p), True))
            return lib.vmap(lambda a: g(*a, **kwargs))([x * np.ones(2) for x in args])
        return lib.value_and_grad(lambda a: g(*a, **kwargs))(args)

    def said(lib, args, kwargs):
        try:
            return [*map(np.asarray, lib.tree.leaves(value(lib, args, kwargs)))]
        except (TypeError, ValueError) as error:
            position = str(error).partition("could not be resolved")
            return type(error).__name__, "".join(position[1:])
    for args, kwargs in CALLS:
        ours, theirs = said(minijax, args, kwargs), said(jax, args, kwargs)
        np.testing.assert_equal(ours, theirs, f"{args} {kwargs}")


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
    **{name: lambda lib, rule=rule: staged_rule(lib, rule) for name, rule in {
        "jvp of another tree": lambda x: (x, x),
        "jvp of another shape": lambda x: x[None]}.items()},
    **{name: lambda lib, rule=rule: staged_rule(lib, rule, True) for name, rule in {
        "fwd of another tree": lambda x: [x],
        "fwd of another dtype": lambda x: x > 0}.items()},
    "a symbolic zero of another shape": lambda lib: wrong_zero(lib),
}


def staged_rule(lib, change, reverse=False):
    """The derivative of a loop, in which a function has run before its rule of another type."""
    f = (lib.custom_vjp if reverse else lib.custom_jvp)(lambda x: x)
    if reverse:
        f.defvjp(lambda x: (change(x), None), lambda res, ct: (ct,))
    else:
        f.defjvp(lambda p, t: (change(p[0]), change(t[0])))
    return lib.grad(lambda x: lib.lax.scan(lambda c, _: (f(c), None), x, None, 2)[0])(1.0)


def wrong_zero(lib):
    f = lib.custom_vjp(lambda x, y: (x, y))
    f.defvjp(lambda x, y: (f(x.value, y.value), None), lambda res, cts: cts[::-1],
             symbolic_zeros=True)
    return lib.grad(lambda x, y: f(x, y)[0].sum())(X, X[:2])


def test_a_call_with_unused_results_loses_what_computes_them():
    f = minijax.custom_jvp(lambda x: (minijax.numpy.sin(x), minijax.numpy.exp(x)))
    f.defjvp(lambda p, t: (f(*p), (2 * t[0], 3 * t[0])))
    jaxpr, _ = extend.core.dce_jaxpr(minijax.make_jaxpr(f)(1.0).jaxpr, [False, True])
    (call,) = jaxpr.eqns
    assert [eqn.primitive.name for eqn in call.params["call_jaxpr"].eqns] == ["exp"]
    as_fun = extend.core.jaxpr_as_fun(extend.core.ClosedJaxpr(jaxpr, ()))
    assert minijax.jvp(lambda x: as_fun(x)[0], (1.0,), (1.0,))[1] == 3


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
def test_under_vmap_what_is_the_same_for_all_stays_one_value(mapped, jitted, beside_jax):
    def found(lib):
        f = lib.custom_jvp(lambda x: lib.numpy.sin(x))
        f.defjvp(lambda p, t: (lib.numpy.sin(p[0]), 3 * t[0]))
        program = UNMAPPED[mapped](lib, f)
        x = np.float32([1, 2]) if mapped == "vmap of vmap" else np.float32(2)
        return lib.tree.leaves((lib.jit(program) if jitted else program)(x, np.float32([3, 4, 5])))
    for ours, theirs in zip(*beside_jax(found), strict=True):
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


@pytest.mark.parametrize("tangent_of", [
    lambda lib, n, dn: dn, lambda lib, n, dn: lib.numpy.zeros_like(n), lambda lib, n, dn: 0.0,
    lambda lib, n, dn: lib.custom_derivatives.zero_from_primal(n),
    lambda lib, n, dn: np.zeros(2, lib.dtypes.float0)])
@pytest.mark.parametrize("results", [1, 2])
@pytest.mark.parametrize("compiled", [False, True])
def test_the_tangent_of_an_integer_result(tangent_of, results, compiled, beside_jax):
    def told(lib):
        f = lib.custom_jvp(lambda x, n: (x * n, n)[-results:])
        f.defjvp(lambda primals, tangents: (f(*primals), (
            tangents[0] * primals[1], tangent_of(lib, primals[1], tangents[1]))[-results:]))
        derivative = lambda x, n: lib.jvp(f, (x, n), (1.0, np.zeros((), lib.dtypes.float0)))
        try:
            out = (lib.jit(derivative) if compiled else derivative)(2.0, 3)
        except TypeError as error:
            return str(error)
        return [(np.shape(x), getattr(x, "dtype", "float32")) for x in lib.tree.leaves(out[1])]
    ours, theirs = beside_jax(told)
    assert ours == theirs


@pytest.mark.parametrize("name", ["add", "multiply", "equal", "maximum", "hypot"])
def test_functions_refuse_arrays_of_float0(name, beside_jax):
    zeros = np.zeros(3, minijax.float0)
    told = beside_jax(
        lambda lib: str(pytest.raises(TypeError, getattr(lib.numpy, name), zeros, 1).value))
    assert told[0].partition("\n\n")[0] == told[1]


@pytest.mark.parametrize("dtypes", [("bfloat16", "float32"), ("float32", "float16"),
                                    ("float32", "int32"), ("complex64", "float32")])
def test_the_cotangent_of_a_rule_may_have_another_dtype(dtypes):
    def gradients(lib):
        of_x, of_cotangent = dtypes
        f = lib.custom_vjp(lambda x: x * x)
        f.defvjp(lambda x: (x * x, x), lambda x, g: (
            lib.numpy.real(g * x).astype(of_cotangent),))
        loss = lambda x: lib.numpy.real(f(x)).astype("float32")  # noqa: E731
        x = lib.numpy.asarray(2, of_x)
        return [str(grad(x).dtype) for grad in (lib.grad(loss), lib.jit(lib.grad(loss)))]
    assert gradients(minijax) == gradients(jax)
    for lib in (minijax, jax):
        f = lib.custom_vjp(lambda x: x)
        f.defvjp(lambda x: (x, None), lambda _, g: (g[:1],))
        with pytest.raises(ValueError, match="the shapes do not match"):
            lib.grad(lambda x, f=f: f(x).sum())(np.ones(2, np.float32))


def test_a_flag_forbids_custom_vjp_functions_that_close_over_tracers():
    def outer(x):
        f = minijax.custom_vjp(lambda y: x * y)
        f.defvjp(lambda y: (f(y), None), lambda res, ct: (ct,))
        return f(3.0)
    assert minijax.vmap(outer)(X).shape == X.shape
    with minijax.config.flags["custom_vjp3"](True), pytest.raises(
            minijax.errors.UnexpectedTracerError, match="can't close over Tracers"):
        minijax.vmap(outer)(X)
