"""Operations of `VJPHiPrimitive` are transformed by their own rules, as in JAX."""

import jax
import jax.experimental.hijax
import numpy as np
import pytest

import minijax
import minijax.experimental.hijax

X, Y = np.array([0.5, -1.0, 2.0], np.float32), np.array([2.0, 3.0, -1.0], np.float32)


def operations(lib):
    """An operation with rules for both modes, with factors that show which one was used; one that
    limits its gradient; and one on a tree, with accumulators and a rule for batches.
    """
    jnp = lib.numpy
    base = lib.experimental.hijax.VJPHiPrimitive

    class Product(base):
        def __init__(self, x, y):
            self.in_avals, self.out_aval, self.params = (x, y), x, {}
            super().__init__()

        def expand(self, x, y):
            return jnp.sin(x) * y

        def vjp_fwd(self, nzs_in, x, y):
            return self(x, y), (jnp.cos(x), jnp.sin(x), y)

        def vjp_bwd_retval(self, res, ct):
            cos, sin, y = res
            return 7 * cos * ct * y, 7 * sin * ct

        def jvp(self, primals, tangents):
            (x, y), (dx, dy) = primals, tangents
            return self(x, y), 5 * (jnp.cos(x) * dx * y + jnp.sin(x) * dy)

        def batch_dim_rule(self, axis_data, in_dims):
            return in_dims[0]

    class Limited(base):
        def __init__(self, low, high, x):
            self.in_avals, self.out_aval, self.params = (low, high, x), x, {}
            super().__init__()

        def expand(self, low, high, x):
            return x

        def vjp_fwd(self, nzs_in, low, high, x):
            return self(low, high, x), (low, high)

        def vjp_bwd_retval(self, res, ct):
            return None, None, jnp.clip(ct, *res)

        def batch_dim_rule(self, axis_data, in_dims):
            return in_dims[2]

    class Scaled(base):
        def __init__(self, tree, factor):
            self.in_avals, self.out_aval = (tree,), {"c": tree["a"], "d": tree["b"]}
            self.params = {"factor": factor}
            super().__init__()

        def expand(self, tree):
            return {"c": tree["a"] * self.factor, "d": tree["b"] ** self.factor}

        def vjp_fwd(self, nzs_in, tree):
            return self(tree), tree["b"]

        def vjp_bwd(self, b, ct, accumulators):
            accumulators["a"].accum(self.factor * ct["c"])
            accumulators["b"].accum(self.factor * b * ct["d"])

        def batch(self, axis_data, args, dims):
            assert axis_data.size == 3
            out = Scaled(lib.tree.map(lib.typeof, args[0]), self.factor)(*args)
            return out, {"c": dims[0]["a"], "d": dims[0]["b"]}

    def call(kind, *args, **params):
        return kind(*(lib.tree.map(lib.typeof, x) for x in args), **params)(*args)
    return (lambda x, y: call(Product, x, y), lambda low, high, x: call(Limited, low, high, x),
            lambda a, b: call(Scaled, {"a": a, "b": b}, factor=2))


USES = {
    "evaluated": lambda lib, f, g, h: (f(X, Y), g(0.1, 0.5, X), h(X, Y)),
    "compiled": lambda lib, f, g, h: lib.jit(lambda: (f(X, Y), g(0.1, 0.5, X), h(X, Y)))(),
    "jvp": lambda lib, f, g, h: lib.jvp(f, (2.0, 3.0), (1.0, 2.0)),
    "jvp, compiled": lambda lib, f, g, h: lib.jit(
        lambda x, t: lib.jvp(f, (x, 3.0), (t, 2.0)))(2.0, 1.0),
    "jvp of jit": lambda lib, f, g, h: lib.jvp(lib.jit(f), (2.0, 3.0), (1.0, 2.0)),
    "grad": lambda lib, f, g, h: lib.grad(f, (0, 1))(2.0, 3.0),
    "grad of one": lambda lib, f, g, h: lib.grad(f, 1)(2.0, 3.0),
    "grad, compiled": lambda lib, f, g, h: lib.jit(lib.grad(f, (0, 1)))(2.0, 3.0),
    "grad of jit": lambda lib, f, g, h: lib.grad(lib.jit(f), (0, 1))(2.0, 3.0),
    "grad of grad": lambda lib, f, g, h: lib.grad(lib.grad(f))(2.0, 3.0),
    "forward of reverse": lambda lib, f, g, h: lib.jvp(lib.grad(f), (2.0, 3.0), (1.0, 1.0)),
    "in a loop": lambda lib, f, g, h: lib.grad(lambda x: lib.lax.scan(
        lambda c, y: (f(c, y), None), x, Y)[0])(2.0),
    "limits": lambda lib, f, g, h: lib.grad(
        lambda *args: 3 * g(*args), (0, 1, 2))(-0.5, 0.5, 2.0),
    "vmap": lambda lib, f, g, h: lib.vmap(f)(X, Y),
    "vmap of jit of grad": lambda lib, f, g, h: lib.vmap(lib.jit(lib.grad(f, (0, 1))))(X, Y),
    "vmap along another axis": lambda lib, f, g, h: lib.vmap(f, (1, 1))(X[None], Y[None]),
    "vmap of limits": lambda lib, f, g, h: lib.vmap(lib.grad(
        lambda x: lib.numpy.sin(g(-0.5, 0.5, x))))(X),
    "grad of a tree": lambda lib, f, g, h: lib.grad(
        lambda a, b: sum(h(a, b).values()), (0, 1))(2.0, 3.0),
    "vmap of a tree": lambda lib, f, g, h: lib.vmap(h)(X, Y),
    "compiled vmap of a tree": lambda lib, f, g, h: lib.jit(lib.vmap(h))(X, Y),
}


@pytest.mark.parametrize("use", USES)
def test_each_transformation_uses_its_rule(use):
    ours, theirs = (lib.tree.leaves(USES[use](lib, *operations(lib))) for lib in (minijax, jax))
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)
        assert np.asarray(x).dtype == np.asarray(y).dtype


def test_forward_mode_and_batches_compose_where_jax_has_no_rule():
    f, _, h = operations(minijax)
    np.testing.assert_allclose(
        minijax.vmap(minijax.jacfwd(f))(X, Y), 5 * np.cos(X) * Y, rtol=1e-6)
    np.testing.assert_allclose(
        minijax.jacrev(minijax.vmap(f))(X, Y), np.diag(7 * np.cos(X) * Y), rtol=1e-6)
    np.testing.assert_allclose(minijax.linearize(f, X, Y)[1](X, Y),
                               5 * (np.cos(X) * Y * X + np.sin(X) * Y), rtol=1e-6)
    one = minijax.grad(lambda a, b: h(a, b)["d"], (0, 1))  # no cotangent of the other result
    for wrap in (minijax.vmap, lambda f: minijax.jit(minijax.vmap(f))):
        np.testing.assert_allclose(wrap(one)(X, Y), (0 * X, 2 * Y))
    np.testing.assert_allclose(minijax.vmap(h, (None, 0))(2.0, Y)["d"], Y ** 2)


def bare(lib, **rules):
    """An operation on a number with these rules."""
    def init(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        base.__init__(self)
    base = lib.experimental.hijax.VJPHiPrimitive
    kind = type("Bare", (base,), {"__init__": init, **rules})
    return lambda x: kind(lib.typeof(x))(x)


def test_rules_of_one_mode_are_enough_for_it():
    forward = {"expand": lambda self, x: 2 * x,
               "jvp": lambda self, primals, tangents: (self(*primals), 5 * tangents[0])}
    linear = {"expand": lambda self, x: x * x, "lin": lambda self, nzs, x: (self(x), 2 * x),
              "linearized": lambda self, x, t: x * t}
    for lib in (minijax, jax):
        assert lib.jvp(bare(lib, **forward), (1.0,), (1.0,)) == (2, 5)
        assert lib.linearize(bare(lib, **linear), 3.0)[1](1.0) == 6
    assert minijax.grad(bare(minijax, **forward))(1.0) == 5  # JAX wants the other rule
    assert minijax.jvp(bare(minijax, **linear), (3.0,), (1.0,)) == (9, 6)


MISTAKES = {
    "nothing declared": lambda lib: type("A", (lib.experimental.hijax.VJPHiPrimitive,), {})(),
    "both backward rules": lambda lib: bare(lib, vjp_bwd=1, vjp_bwd_retval=1)(1.0),
    "no value": lambda lib: bare(lib)(1.0),
    "no rule": lambda lib: lib.grad(bare(lib))(1.0),
    "half a rule": lambda lib: lib.grad(bare(
        lib, expand=lambda self, x: x, vjp_fwd=lambda self, _, x: (x, None)))(1.0),
    "reverse only": lambda lib: lib.jvp(bare(
        lib, expand=lambda self, x: x, vjp_fwd=lambda self, _, x: (x, None)), (1.0,), (1.0,)),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_what_a_subclass_lacks_is_refused_in_jaxs_words(case):
    with pytest.raises((AttributeError, NotImplementedError)) as theirs:
        MISTAKES[case](jax)
    with pytest.raises((AttributeError, NotImplementedError)) as ours:
        MISTAKES[case](minijax)
    assert type(ours.value) is type(theirs.value)
    assert str(ours.value).partition("<class")[0] == str(theirs.value).partition("<class")[0]
    assert str(ours.value).partition(">")[2] == str(theirs.value).partition(">")[2]


def test_types_are_those_declared():
    with pytest.raises(TypeError, match=r"Bare declares a result of type float32\[\], got int32"):
        bare(minijax, expand=lambda self, x: 1)(1.0)
    with pytest.raises(TypeError, match="declares arguments of type"):
        bare(minijax, expand=lambda self, x: x, __call__=lambda self, x: super(
            type(self), self).__call__(x, x))(1.0)


def test_operations_of_one_class_and_the_same_parameters_are_equal_and_a_program_shows_them():
    class Add(minijax.experimental.hijax.VJPHiPrimitive):
        def __init__(self, n):
            self.in_avals = (minijax.typeof(1.0),)
            self.out_aval, self.params = minijax.typeof(1.0), {"n": n}
            super().__init__()

        def expand(self, x):
            return x + self.n
    assert Add(1) == Add(1) != Add(2) and len({Add(1), Add(1), Add(2)}) == 2
    assert "call_hi_primitive[_prim=Add[{'n': 2}]]" in str(minijax.make_jaxpr(Add(2))(1.0))
