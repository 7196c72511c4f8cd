"""Symbolic zeros, closures, gradients of one's own, forward and backward passes: as in JAX."""

import jax
import numpy as np
import pytest

import minijax

X = np.array([0.5, -1.0, 2.0], np.float32)


def forwards(lib, seen):
    f = lib.custom_jvp(lambda x, y: (x * y, y))

    def rule(primals, tangents):
        zero = [isinstance(t, lib.custom_derivatives.SymbolicZero) for t in tangents]
        seen.append((*zero, [t.shape for t in tangents]))
        (x, y), (dx, dy) = primals, tangents
        slope = 0 if zero[0] else y * dx
        return (x * y, y), (slope if zero[1] else slope + x * dy, dy)
    f.defjvp(rule, symbolic_zeros=True)
    return f


def backwards(lib, seen):
    f = lib.custom_vjp(lambda x, y: (x * y, y))

    def fwd(x, y):
        seen.append((x.perturbed, y.perturbed))
        return (x.value * y.value, y.value), lib.custom_derivatives.custom_vjp_primal_tree_values(
            (x, y))

    def bwd(values, cts):
        zero = [isinstance(ct, lib.custom_derivatives.SymbolicZero) for ct in cts]
        seen.append((*zero, [ct.shape for ct in cts]))
        x, y = values
        return (y * cts[0], x * cts[0]) if not zero[0] else (None, cts[1])
    f.defvjp(fwd, bwd, symbolic_zeros=True)
    return f


PROGRAMS = {
    "by the first": lambda lib, f: lib.grad(lambda x: f(x, 2.0)[0])(3.0),
    "by both": lambda lib, f: lib.grad(lambda x, y: f(x, y)[0], (0, 1))(3.0, 2.0),
    "by an integer": lambda lib, f: lib.grad(lambda x: f(x, 2)[0])(3.0),
    "compiled": lambda lib, f: lib.jit(lib.grad(lambda x: f(x, 2.0)[0]))(3.0),
    "batch of gradients": lambda lib, f: lib.vmap(lib.grad(lambda x, y: f(x, y)[0]))(X, X),
    "gradient of a batch": lambda lib, f: lib.grad(
        lambda x: lib.vmap(f)(x, lib.numpy.asarray(X))[0].sum())(lib.numpy.asarray(X)),
    "in a loop": lambda lib, f: lib.grad(
        lambda x: lib.lax.fori_loop(0, 2, lambda _, c: f(c, 2.0)[0], x))(3.0),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("made", [forwards, backwards])
def test_rules_that_ask_for_symbolic_zeros_get_those_of_jax(made, program):
    def found(lib):
        seen = []
        return lib.tree.leaves(PROGRAMS[program](lib, made(lib, seen))), seen
    (ours, seen), (theirs, theirs_seen) = found(minijax), found(jax)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b)
    if program != "in a loop":  # how often a body is traced is each library's own
        assert seen[-1] == theirs_seen[-1]


def test_arguments_that_are_not_differentiated_may_be_named():
    def found(lib):
        f = lib.custom_jvp(lambda x, y, mode: x * y, nondiff_argnums=(2,), nondiff_argnames=("x",))
        f.defjvp(lambda x, mode, p, t: (x * p[0], {"ten": 10}[mode] * t[0]))
        return f.nondiff_argnums, lib.grad(f, 1)(2.0, 3.0, "ten")
    ours, theirs = found(minijax), found(jax)
    assert set(ours[0]) == set(theirs[0]) and float(ours[1]) == float(theirs[1]) == 10.0


def gradient_of_its_own(lib):
    f = lib.custom_gradient(lambda x, y: (x * y, lambda ct: (10 * ct * y, x)))
    g = lib.custom_gradient(lambda x: ({"a": x}, lambda ct: 5 * ct["a"] * x))
    return [lib.grad(f, (0, 1))(2.0, 3.0), lib.jit(lib.grad(f))(2.0, 3.0), lib.vmap(
        lib.grad(f))(X, X), lib.grad(lambda x: g(x)["a"])(3.0), f(2.0, 3.0)]


def closures(lib):
    def f(x, n):
        closure, consts = lib.closure_convert(lambda y: lib.numpy.sin(y * x) * n, 1.0)
        return closure(2.0, *consts) * len(consts)
    return [lib.grad(f)(0.5, 3), lib.jit(f)(0.5, 3)]


def passes(lib):
    def f(x, y):
        return {"a": lib.numpy.sin(x) * y}, y
    found = []
    for jitted in (True, False):
        fwd, bwd = lib.fwd_and_bwd(f, (0, 1), has_aux=True, jitted=jitted)
        result, residuals, aux = fwd(2.0, 3.0)
        found += [result, aux, bwd(residuals, {"a": 2.0}), bwd(residuals, {"a": 1.0})]
    fwd, bwd = lib.fwd_and_bwd(lambda x: x * x, 0)
    return [*found, bwd(fwd(3.0)[1], 1.0)]


def derivatives_as_trees(lib):
    _, pull = lib.vjp(lambda x: lib.numpy.sin(x) * x, 2.0)
    _, push = lib.linearize(lambda x: lib.numpy.sin(x) * x, 2.0)
    return [lib.jit(lambda pull, ct: pull(ct))(pull, 3.0), lib.jit(pull)(3.0),
            lib.vmap(push)(lib.numpy.asarray(X)), len(lib.tree.leaves(pull)) > 0]


def sums(lib):
    return lib.vmap(lambda x: (x, 2 * x, 1), out_axes=(None, 0, None), sum_match=True)(X)


@pytest.mark.parametrize("program", [gradient_of_its_own, closures, passes, derivatives_as_trees,
                                     sums])
def test_helpers_do_what_they_do_in_jax(program):
    ours, theirs = (lib.tree.leaves(program(lib)) for lib in (minijax, jax))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_backward_pass_is_compiled_once():
    fwd, bwd = minijax.fwd_and_bwd(lambda x: minijax.numpy.sin(x) * x, 0)
    for x in (1.0, 2.0, 3.0):
        _, residuals = fwd(x)
        bwd(residuals, 1.0)
    assert fwd._cache_size() == bwd._cache_size() == 1


REFUSED = {
    "symbolic and remat": lambda lib: lib.custom_vjp(lambda x: x).defvjp(
        None, None, symbolic_zeros=True, optimize_remat=True),
    "grad": lambda lib: lib.grad(lambda x: x, reduce_axes=("i",)),
    "value_and_grad": lambda lib: lib.value_and_grad(lambda x: x, reduce_axes=("i",)),
    "vjp": lambda lib: lib.vjp(lambda x: x, 1.0, reduce_axes=("i",)),
    "transpose": lambda lib: lib.linear_transpose(lambda x: x, 1.0, reduce_axes=("i",)),
    "residuals": lambda lib: lib.grad(
        (lambda f: [f.defvjp(lambda x: (x, "no array"), lambda _, ct: (ct,)), f][1])(
            lib.custom_vjp(lambda x: x)))(1.0),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_jax_refuses_is_refused_in_its_words(case):
    with pytest.raises((NotImplementedError, TypeError)) as theirs:
        REFUSED[case](jax)
    with pytest.raises(theirs.type) as ours:
        REFUSED[case](minijax)
    assert str(ours.value).split("\n")[0] == str(theirs.value).split("\n")[0]


def test_a_number_that_python_knows_stays_one_among_the_residuals():
    def told(lib):
        seen, f = [], lib.custom_vjp(lambda x: x * 2)

        def pull(residuals, ct):
            seen.append([isinstance(r, kind) for r, kind in zip(residuals[1:], (bool, int, float),
                                                                strict=True)])
            return (ct * residuals[0] * residuals[2],)
        f.defvjp(lambda x: (x * 2, (x, True, 3, 2.5)), pull)
        found = [lib.grad(f)(2.0), lib.jit(lib.grad(f))(2.0), lib.vmap(lib.grad(f))(X),
                 lib.grad(lib.jit(f))(2.0)]
        return seen, [np.asarray(x).tolist() for x in found]
    assert told(minijax) == told(jax)


def test_zeros_are_made_for_whole_trees():
    def made(lib):
        zeros = lib.custom_derivatives.zero_from_primal
        tree = zeros({"a": 1.0, "b": X})
        return (lib.tree.map(np.shape, tree), tree["b"].tolist(),
                repr(zeros([1.0], symbolic_zeros=True)))
    assert made(minijax) == made(jax)


def test_what_is_linear_is_transposed_by_what_it_computes():
    """The rule of the function says nothing about that: here it is wrong on purpose."""
    def transposed(lib):
        f = lib.custom_jvp(lambda x, y: 2 * x * y)
        f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 99))
        g = lambda x: f(x, 3.0)  # noqa: E731
        return [lib.linear_transpose(h, 1.0)(5.0)[0].item() for h in (g, lib.jit(g))]
    assert transposed(minijax) == transposed(jax) == [30.0, 30.0]


TREE = {"a": 2., "b": (3., 4.)}
COTANGENTS = {
    "one for the whole": lambda g: g, "one for a part": lambda g: {"a": g, "b": 2 * g},
    "None": lambda g: None, "None for a part": lambda g: {"a": g, "b": None},
    "None for a leaf": lambda g: {"a": g, "b": (None, g)},
    "a list for a tuple": lambda g: {"a": g, "b": [g, g]}, "a key is missing": lambda g: {"a": g},
    "too deep": lambda g: {"a": (g,), "b": (g, g)},
    "another shape": lambda g: {"a": g, "b": (g, np.ones(3, np.float32))}}


@pytest.mark.parametrize("name", COTANGENTS)
def test_cotangents_may_be_a_prefix_of_the_arguments_as_in_jax(name):
    def found(lib):
        @lib.custom_vjp
        def f(t):
            return t["a"] * t["b"][0] + t["b"][1]
        f.defvjp(lambda t: (f(t), None), lambda _, g: (COTANGENTS[name](g),))
        try:
            return lib.tree.map(float, lib.grad(f)(TREE))
        except (TypeError, ValueError) as error:
            return type(error).__name__, str(error).partition("\n")[0]
    assert found(minijax) == found(jax)


@pytest.mark.parametrize("differentiate", [
    lambda f: minijax.grad(f, has_aux=True)(2.)[1],
    lambda f: minijax.value_and_grad(f, has_aux=True)(2.)[0][1],
    lambda f: minijax.jvp(f, (2.,), (1.,), has_aux=True)[2],
    lambda f: minijax.vjp(f, 2., has_aux=True)[2],
    lambda f: minijax.linearize(f, 2., has_aux=True)[2],
    lambda f: minijax.jacrev(f, has_aux=True)(2.)[1],
    lambda f: minijax.jacfwd(f, has_aux=True)(2.)[1]])
def test_the_tree_of_aux_is_made_anew_where_the_derivative_has_ended(differentiate):
    """So that objects in it know no tracers: Flax' variables remember where they were made."""
    made = []

    class Noting:
        def __init__(self, x):
            self.x = x
            made.append(x)
    minijax.tree_util.register_pytree_node(
        Noting, lambda v: ((v.x,), None), lambda _, c: Noting(*c))
    aux = differentiate(lambda x: (x * x, Noting(x)))
    assert aux is not None and made[-1] == 2. and not isinstance(made[-1], minijax.core.Tracer)


@pytest.mark.parametrize("x", [1, 2.5, True, np.int64(3), np.float64(1.5)], ids=repr)
def test_numbers_stay_numbers_outside_of_transformations(x):
    def result(lib):
        f = lib.custom_jvp(lambda x: x + x)
        f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
        return f(x)
    ours, theirs = result(minijax), result(jax)
    assert repr(ours) == repr(theirs) if type(x).__module__ == "builtins" else (
        ours.dtype == theirs.dtype)
