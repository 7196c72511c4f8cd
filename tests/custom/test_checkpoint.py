"""Checkpointing: the same derivatives, with nothing kept but the arguments."""

import collections
import functools
import importlib
import operator

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import ad_checkpoint, extend

X = np.array([0.5, -0.3, 1.2], np.float32)


def chain(lib, wrap):
    @wrap
    def block(x):
        return lib.numpy.sin(lib.numpy.sin(lib.numpy.sin(x))) * x
    return lambda x: block(block(x)).sum()


TRANSFORMED = {
    "eval": lambda lib, f: f(X),
    "grad": lambda lib, f: lib.grad(f)(X),
    "jit grad": lambda lib, f: lib.jit(lib.grad(f))(X),
    "grad jit": lambda lib, f: lib.grad(lib.jit(f))(X),
    "hessian": lambda lib, f: lib.hessian(f)(X),
    "vmap grad": lambda lib, f: lib.vmap(lib.grad(f))(np.stack([X, 2 * X])),
    "jvp": lambda lib, f: lib.jvp(f, (X,), (X,))[1],
    "grad scan": lambda lib, f: lib.grad(lambda x: lib.lax.scan(
        lambda c, y: (lib.checkpoint(lambda c: lib.numpy.sin(c) * y)(c), None),
        x.sum(), X)[0])(X),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_derivatives_are_jaxs(name, beside_jax):
    ours, theirs = beside_jax(lambda lib: TRANSFORMED[name](lib, chain(lib, lib.checkpoint)))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_the_backward_pass_keeps_the_arguments_only():
    f = lambda x: jnp.sin(jnp.sin(jnp.sin(x)))  # noqa: E731
    kept = lambda g: len(minijax.linearize(g, X)[1].args[0])  # noqa: E731
    assert kept(f) == 3 and kept(minijax.checkpoint(f)) == 1


def test_the_second_computation_is_not_merged_with_the_first():
    f = minijax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())
    lowered = minijax.jit(minijax.grad(f)).lower(X)
    assert "checkpoint" in lowered.as_text("simplified")


def test_static_arguments_and_keywords_pass_through():
    f = minijax.checkpoint(lambda x, n, *, k: x ** n * k, static_argnums=(1,))
    assert minijax.grad(f)(2.0, 3, k=2.0) == 24.0


POLICIES = {
    "everything": lambda lib: lib.checkpoint_policies.everything_saveable,
    "nothing": lambda lib: lib.checkpoint_policies.nothing_saveable,
    "dots": lambda lib: lib.checkpoint_policies.dots_saveable,
    "names": lambda lib: lib.checkpoint_policies.save_only_these_names("a"),
    "other names": lambda lib: lib.checkpoint_policies.save_any_names_but_these("a"),
    "no names": lambda lib: lib.checkpoint_policies.save_anything_except_these_names("a", "b"),
    "both": lambda lib: lib.checkpoint_policies.save_from_both_policies(
        lib.checkpoint_policies.dots_saveable,
        lib.checkpoint_policies.save_only_these_names("b")),
    "own": lambda lib: lambda prim, *avals, **params: str(prim) == "sin"}


@pytest.mark.parametrize("name", POLICIES)
def test_whatever_a_policy_keeps_derivatives_are_jaxs(name, beside_jax):
    def gradients(lib):
        named = importlib.import_module(f"{lib.__name__}.ad_checkpoint").checkpoint_name

        @functools.partial(lib.checkpoint, policy=POLICIES[name](lib))
        def f(w, x):
            h = named(lib.jit(lib.numpy.sin)(w @ x), "a")
            return named(lib.numpy.sin(w @ h), "b").sum() * x.sum()
        w = np.outer(X, X) + np.eye(3, dtype=np.float32)
        return [*lib.grad(f, (0, 1))(w, X), lib.jit(lib.grad(f, 1))(w, X),
                lib.hessian(f, 1)(w, X)]
    for ours, theirs in zip(*beside_jax(gradients), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_what_a_policy_keeps_is_not_computed_again():
    def f(w, x):
        return jnp.sin(ad_checkpoint.checkpoint_name(jnp.sin(w @ x), "a")).sum()
    w = np.ones((3, 3), np.float32)

    def products(policy):
        g = minijax.checkpoint(f, policy=policy)
        _, back = minijax.vjp(lambda w: g(w, X), w)
        return str(minijax.make_jaxpr(back)(1.)).count("dot_general[")
    some = minijax.checkpoint_policies
    assert products(None) == products(some.save_only_these_names("a")) == 2
    assert products(some.everything_saveable) == products(some.dots_saveable) == 1


def test_a_loop_inside_that_starts_from_a_constant_has_its_gradient(beside_jax):
    def gradients(lib):
        @lib.checkpoint
        def f(x, w):
            total, rows = lib.lax.scan(
                lambda c, row: (c + lib.numpy.sin(row * w.sum()), c * row), 0.0, x)
            return total + rows.sum()
        return [*lib.grad(f, (0, 1))(X, X), lib.jit(lib.hessian(f))(X, X)]
    for ours, theirs in zip(*beside_jax(gradients), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_second_derivatives_go_through_what_it_holds(beside_jax):
    def sine(lib):
        return lambda x: lib.numpy.sin(x) * x

    inner = {
        "checkpoint": lambda lib: lib.checkpoint(sine(lib)),
        "jit": lambda lib: lib.jit(sine(lib)),
        "scan": lambda lib: lambda x: lib.lax.scan(
            lambda c, _: (sine(lib)(c), None), x, None, length=3)[0],
        "cond": lambda lib: lambda x: lib.lax.cond(x > 0, sine(lib), lambda x: x, x),
        "fori_loop": lambda lib: lambda x: lib.lax.fori_loop(0, 3, lambda i, c: sine(lib)(c), x),
    }
    for name, f in inner.items():
        ours, theirs = beside_jax(lambda lib: lib.grad(lib.grad(lib.checkpoint(f(lib))))(2.0))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, err_msg=name)


def test_a_linear_function_that_counts_beside_can_be_transposed():
    f = lambda x: minijax.lax.scan(  # noqa: E731
        lambda c, y: ((c[0] + 1, c[1] + c[0] * y), c[0] * y), (0.0, 0.0), x)[0][1]
    np.testing.assert_array_equal(minijax.linear_transpose(f, X)(2.0)[0], [0, 2, 4])


def test_static_arguments_have_numbers_or_names():
    def f(x, times, *, doubled):
        return x ** times * (2 if doubled else 1)
    g = minijax.checkpoint(f, static_argnames=("times", "doubled"))
    assert minijax.grad(g)(2.0, 3, doubled=True) == minijax.grad(g)(2.0, times=3, doubled=True)
    assert minijax.grad(g)(2.0, 3, doubled=True) == 24.0


def test_a_policy_may_answer_with_jaxs_sentinels():
    def kept(answer):
        f = minijax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=lambda *_, **__: answer)
        return [origin.partition("from")[0].rstrip()
                for _, origin in ad_checkpoint.saved_residuals(f, X)]
    assert kept(ad_checkpoint.Recompute) == kept(False) == [""]  # the argument
    assert kept(ad_checkpoint.Saveable) == kept(True) == ["output of cos"] * 2
    assert kept(ad_checkpoint.Offloadable("device", "host")) == kept(True)


def test_an_argument_that_the_second_computation_does_not_read_is_let_go():
    f = minijax.checkpoint(lambda x, y: jnp.sin(x) + y)
    kept = [origin for _, origin in ad_checkpoint.saved_residuals(f, X, X)]
    assert kept == ["from the argument x"]


def test_a_function_is_traced_as_often_as_by_jax(beside_jax):
    def counts(lib):
        seen = []

        def f(x, k=1., **rest):
            seen.append(None)
            return lib.numpy.sin(x) * k

        class Callable:
            def __call__(self, x):
                return f(x)
        g, other = lib.checkpoint(f), lib.checkpoint(Callable())
        static = lib.checkpoint(f, static_argnums=1)
        calls = [lambda: g(X), lambda: lib.grad(lambda x: g(x).sum())(X), lambda: g(X[:2]),
                 lambda: lib.jit(g)(X), lambda: lib.vmap(lambda x: g(x))(np.stack([X, X])),
                 lambda: lib.checkpoint(f)(X), lambda: g(X, 2.), lambda: g(X, k=2.),
                 lambda: static(X, 2), lambda: static(X, 3), lambda: other(X),
                 lambda: lib.grad(lambda c: lib.checkpoint(lambda x: f(x) * c)(1.))(2.)]
        found = []
        for call in calls:
            for _ in range(2):
                seen.clear()
                call()
                found.append(len(seen))
        return found
    ours, theirs = beside_jax(counts)
    assert ours == theirs


def test_a_static_argument_may_be_unhashable():
    f = minijax.checkpoint(lambda x, k: x * k[0], static_argnums=1)
    given = [2.]
    assert minijax.grad(f)(3., given) == 2.
    given[0] = 4.
    assert minijax.grad(f)(3., given) == 4.


def with_programs_inside(lib):
    """Functions of a matrix and of three, whose products and sines stand in programs inside."""
    lax, sin, checkpoint = lib.lax, lib.numpy.sin, lib.checkpoint
    named = importlib.import_module(f"{lib.__name__}.ad_checkpoint").checkpoint_name
    step = lambda x, w: sin(named(sin(x @ w), "a"))  # noqa: E731

    def twice(x, w):
        return lax.scan(lambda c, _: (step(c, w), None), x, None, length=2)[0]

    @lib.custom_vjp
    def ruled(x):
        return sin(x)
    ruled.defvjp(lambda x: (sin(x), x), lambda x, ct: (ct * lib.numpy.cos(x),))
    return {
        "scan": lambda x, w: lax.scan(lambda c, w: (step(c, w), c.sum()), x, w)[0].sum(),
        "rows": lambda x, w: lax.scan(lambda c, w: (c + 1, step(c, w)), x, w)[1].sum(),
        "reverse": lambda x, w: sin(lax.scan(lambda c, w: (step(c, w), None), x, w,
                                             reverse=True)[0]).sum(),
        "scan of scan": lambda x, w: lax.scan(lambda c, w: (twice(c, w), None), x, w)[0].sum(),
        "scan of jit": lambda x, w: lax.scan(lambda c, w: (lib.jit(step)(c, w), None), x, w)[
            0].sum(),
        "scan of checkpoint": lambda x, w: lax.scan(
            lambda c, w: (checkpoint(step)(c, w), None), x, w)[0].sum(),
        "cond": lambda x, w: lax.cond(x[0, 0] > 0, lambda x: step(x, w[0]),
                                      lambda x: lib.numpy.cos(x @ w[1]), x).sum(),
        "switch": lambda x, w: lax.switch(1, [lambda x: x, lambda x: step(x, w[0]),
                                              lambda x: step(x, x)], x).sum(),
        "checkpoint": lambda x, w: checkpoint(lambda x: step(x, w[0]))(x).sum(),
        "jit": lambda x, w: lib.jit(lambda x: step(x, w[0]))(x).sum(),
        "custom_vjp": lambda x, w: sin(ruled(x @ w[0])).sum(),
        "known loop": lambda x, w: (twice(w[0], w[1]) @ sin(x)).sum()}


def operations(jaxpr, times=1):
    """How often operations run, a loop's as often as it turns."""
    counts = collections.Counter()
    for eqn in jaxpr.eqns:
        turns = eqn.params["length"] if str(eqn.primitive) == "scan" else 1
        inner = [getattr(p, "jaxpr", p) for value in eqn.params.values() for p in (
            value if isinstance(value, tuple) else [value])]
        inner = [p for p in inner if hasattr(p, "eqns")]
        if not inner:
            counts[str(eqn.primitive)] += times
        for program in inner:
            counts += operations(program, times * turns)
    return counts


@pytest.mark.parametrize("policy", ["everything", "dots", "names", None])
@pytest.mark.parametrize("name", with_programs_inside(minijax))
def test_a_policy_looks_into_loops_and_branches_as_jaxs_does(name, policy, beside_jax):
    x, w = np.eye(2, dtype=np.float32) * .7 + .1, np.linspace(-1, 1, 12, dtype=np.float32)
    w = w.reshape(3, 2, 2)

    def found(lib):
        f = lib.checkpoint(with_programs_inside(lib)[name],
                           policy=policy and POLICIES[policy](lib))
        out, back = lib.vjp(f, x, w)
        counts = operations(lib.make_jaxpr(back)(out).jaxpr)
        gradient = lib.grad(lambda x: f(x, w))
        return ({k: counts[k] for k in ("dot_general", "sin", "cos")}, [out, *back(out)] + (
            [lib.jvp(gradient, (x,), (x,))[1], lib.vmap(gradient)(np.stack([x, -x]))]
            if policy == "names" else []))
    (ours, values), (theirs, wanted) = beside_jax(found)
    assert ours == theirs
    for value, right in zip(values, wanted, strict=True):
        np.testing.assert_allclose(value, right, rtol=1e-4, atol=1e-5)


def test_a_policy_sees_a_scan_with_something_that_is_the_same_in_each_turn():
    """What does not vary is computed before the loop, and not where a policy only asks of types."""
    def f(x, w):
        def turn(c, row):
            return c * jnp.sin(w * 2.0) * row, c
        return minijax.lax.scan(turn, x, jnp.arange(1.0, 4.0))[1].sum()
    kept = minijax.checkpoint(f, policy=minijax.checkpoint_policies.dots_saveable)
    for derive in (minijax.grad, minijax.hessian, lambda g: minijax.jit(minijax.grad(g))):
        np.testing.assert_allclose(derive(kept)(1.5, 0.5), derive(f)(1.5, 0.5), rtol=1e-6)


@pytest.mark.parametrize(("used", "kept"), [
    ([0, 0, 1, 0], [1, 1, 1, 0]), ([1, 1, 0, 0], [1, 1, 0, 0]), ([0, 0, 0, 1], [1, 1, 1, 1])])
def test_parts_of_a_carry_that_no_result_needs_are_dead(used, kept):
    def body(c, _):
        return [c[0], *map(operator.add, c[:-1], c[1:])], None
    jaxpr = minijax.make_jaxpr(
        lambda c: minijax.lax.scan(body, c, None, length=4)[0])([1.0, 2.0, 3.0, 4.0]).jaxpr
    live, inputs = extend.core.dce_jaxpr(jaxpr, list(map(bool, used)))
    assert inputs == list(map(bool, kept))
    assert len(live.eqns[0].params["jaxpr"].eqns) == sum(kept) - 1
    whole, part = (extend.core.ClosedJaxpr(j, ()) for j in (jaxpr, live))
    args = [1.0, 2.0, 3.0, 4.0]
    np.testing.assert_array_equal(
        extend.core.jaxpr_as_fun(part)(*[x for x, k in zip(args, kept, strict=True) if k]),
        [x for x, u in zip(extend.core.jaxpr_as_fun(whole)(*args), used, strict=True) if u])
