"""Elements joined by functions of the user's, beside JAX."""

import jax
import numpy as np
import pytest

import minijax
from minijax.test_util import check_grads

X = np.random.default_rng(0).normal(size=(2, 3, 5)).astype(np.float32)
WINDOW = (1, 2, 2)


@pytest.mark.parametrize("program", [
    lambda j, x: j.lax.reduce(x, 0., j.lax.add, (1,)),
    lambda j, x: j.lax.reduce(x, 1., lambda a, b: b * a, (0, 2)),
    lambda j, x: j.lax.reduce(x, -np.inf, j.lax.max, (2,)),
    lambda j, x: j.lax.reduce(x, 2., lambda a, b: a * b, (0, 1)),
    lambda j, x: j.lax.reduce(x > 0, True, j.lax.bitwise_and, (0,)),
    lambda j, x: j.lax.reduce(x, 3., lambda a, b: j.numpy.logaddexp(a, b), (1, 2)),
    lambda j, x: j.lax.reduce((x, x > 0), (-np.inf, False), lambda a, b: (
        j.numpy.where(a[0] > b[0], a[0], b[0]), a[1] | b[1]), (2,)),
    lambda j, x: j.lax.reduce((x * 10).astype(int), -np.inf, j.lax.max, (1,)),
    lambda j, x: j.lax.reduce(x + 2j * x, 0., j.lax.add, (1,)),
    lambda j, x: j.lax.reduce_window(x, 1., j.lax.mul, WINDOW, (1, 1, 2), "SAME"),
    lambda j, x: j.lax.reduce_window(x, 0., j.lax.max, WINDOW, (1, 1, 1), padding="SAME"),
    lambda j, x: j.lax.reduce_window(x > 0, False, j.lax.max, WINDOW, (1, 1, 1)),
    lambda j, x: j.lax.reduce_window((x, -x), (0., 0.), lambda a, b: (
        a[0] + b[0], j.numpy.maximum(a[1], b[1])), WINDOW, window_dilation=(1, 1, 2)),
])
def test_the_results_are_those_of_jax(program, beside_jax):
    found, wanted = beside_jax(
        lambda j: jax.tree.leaves([program(j, X), j.jit(lambda x: program(j, x))(X)]))
    for one, other in zip(found, wanted, strict=True):
        assert str(one.dtype) == str(other.dtype)
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5)


def test_a_function_of_ones_own_has_derivatives_and_batches():
    def program(j):
        f = lambda x: j.lax.reduce(x, 2., lambda a, b: a * b, (0, 1)).sum()
        return j.grad(f)(X), j.vmap(f)(X[None])
    for one, other in zip(*map(program, (minijax, jax)), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-4, atol=1e-5)


JOIN = lambda a, b: a * b + a


def test_a_window_joined_so_moves_with_what_it_begins_with_and_has_derivatives_and_batches(
        beside_jax):
    def begins_with(j):
        return lambda c: j.lax.reduce_window(j.numpy.asarray(X), c, JOIN, WINDOW, (1, 2, 2))
    ours, theirs = beside_jax(lambda j: begins_with(j))
    batch = minijax.vmap(ours)(np.float32([1, 2]))
    np.testing.assert_allclose(batch, np.stack([theirs(c) for c in np.float32([1, 2])]), rtol=1e-5)
    check_grads(ours, (1.5,), 2)  # JAX: has no derivative in this
    check_grads(
        lambda x: minijax.lax.reduce_window(x, 2., JOIN, WINDOW, (1, 2, 2)), (X,), 1)


def test_what_a_function_joins_is_one_operation_in_a_program_as_in_jax(beside_jax):
    def printed(j):
        f = j.vmap(lambda x: (j.lax.reduce(x, 2., JOIN, (1,)),
                              j.lax.reduce_window(x, 2., JOIN, WINDOW[1:], (1, 1))))
        return [(str(eqn.primitive), {k: str(v).replace(" ", "").replace("\n", "")
                                      for k, v in eqn.params.items() if k != "computation"})
                for eqn in j.make_jaxpr(f)(X).eqns]
    ours, theirs = beside_jax(printed)
    assert ours == theirs


def test_a_function_that_closes_over_tracers_is_refused_as_in_jax():
    for j in (minijax, jax):
        with pytest.raises(NotImplementedError, match="can't close over Tracers"):
            j.vmap(lambda c, j=j: j.lax.reduce(X, 1., lambda a, b: a * b + c, (1,)))(X[0, 0])


@pytest.mark.parametrize("call", [
    lambda lax: lax.reduce(X, 1, lax.add, (1,)),
    lambda lax: lax.reduce(X, np.float32([1, 2]), JOIN, (1,)),
    lambda lax: lax.reduce_window(X, 1, lax.add, WINDOW, (1, 1, 1)),
    lambda lax: lax.reduce_window(X, np.float32([1, 2]), lax.add, WINDOW, (1, 1, 1)),
    lambda lax: lax.reduce_window([], [], lax.add, WINDOW, (1, 1, 1)),
    lambda lax: lax.reduce(X, 0., lax.add, (7,)), lambda lax: lax.reduce(X, 0., lax.add, (1, 1)),
    lambda lax: lax.reduce_window((X, X), (0.,), lambda a, b: a, WINDOW)])
def test_what_does_not_fit_is_refused_in_jaxs_words(call):
    found, wanted = [], []
    for lax, errors in ((minijax.lax, found), (jax.lax, wanted)):
        with pytest.raises((TypeError, ValueError)) as caught:
            call(lax)
        errors.append((type(caught.value), str(caught.value)))
    assert found == wanted


@pytest.mark.parametrize("join", [lambda a, b: a > b, lambda a, b: (a, b), lambda a, b: None])
def test_elements_of_another_type_are_refused_by_name(join):
    with pytest.raises(ValueError, match="reduce expected the computation to return elements of "
                                         "the types that it takes"):
        minijax.lax.reduce(X, 1., join, (1,))
    with pytest.raises(ValueError):
        jax.lax.reduce(X, 1., join, (1,))
