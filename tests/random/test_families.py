"""Distributions with parameters, whose numbers are those of JAX for the same key."""

import functools
import inspect

import jax
import numpy as np
import pytest

import minijax

MANY = (300,)
DRAWS = {
    "ball": [((3, 2, (50,)), {}), ((2, 1., (50,)), {})],
    "beta": [((2., 3., MANY), {}), ((.2, .3, MANY), {})],
    "binomial": [((10, .3, MANY), {}), ((100, .7, MANY), {}),
                 ((np.float32([5, 50, np.nan, -1, np.inf]), .4), {}),
                 ((10, np.float32([0, 1, 2, -.5, np.nan])), {})],
    "chisquare": [((3., MANY), {})],
    "dirichlet": [((np.float32([1, 2, 3]), (50,)), {}), ((1.,), {})],
    "double_sided_maxwell": [((0., 2., MANY), {})],
    "f": [((3., 4., MANY), {})],
    "gamma": [((2., MANY), {}), ((np.float32([.3, 2, 30]),), {}), ((.3, MANY, "bfloat16"), {}),
              ((2., MANY, int), {}), ((np.ones(3), (2,)), {}), ((2., (0,)), {})],
    "generalized_normal": [((1.5, MANY), {})],
    "geometric": [((.2, MANY), {}), ((.2, MANY, float), {})],
    "loggamma": [((.1, MANY), {})],
    "lognormal": [((), {"shape": MANY}), ((2., MANY), {})],
    "maxwell": [((MANY,), {})],
    "multinomial": [((10, np.float32([.2, .3, .5])), {}),
                    ((np.float32([5, 100]), np.float32([.2, .3, .5])), {"shape": (4, 2, 3)})],
    "multivariate_normal": [
        *(((np.float32([1, 2]), np.float32([[2, .5], [.5, 1]]), (50,)), {"method": m})
          for m in ("cholesky", "eigh", "svd", "x")),
        ((np.zeros(2), np.eye(3)), {}), ((0., np.eye(3)), {})],
    "orthogonal": [((3,), {}), ((3, (2,)), {"m": 2}), ((2,), {"m": 4})],
    "pareto": [((2., MANY), {})],
    "poisson": [((3., MANY), {}), ((30., MANY), {}), ((3., MANY, "int8"), {}),
                ((np.float32([0, 1, 20, 1000]), (50, 4)), {})],
    "rayleigh": [((2., MANY), {})],
    "t": [((3., MANY), {})],
    "triangular": [((0., .3, 1., MANY), {})],
    "wald": [((2., MANY), {})],
    "weibull_min": [((2., 3., MANY), {})],
}


def outcome(library, name, args, options):
    try:
        return getattr(library.random, name)(library.random.key(7), *args, **options)
    except (TypeError, ValueError) as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("name", DRAWS)
def test_the_numbers_are_those_of_jax(name, jax_says):
    for args, options in DRAWS[name]:
        found = outcome(minijax, name, args, options)
        wanted = jax_says(functools.partial(outcome, jax, name, args, options))
        if isinstance(wanted, tuple):
            assert found == wanted
            continue
        assert str(found.dtype) == str(wanted.dtype)
        rough = 2e-6 if str(found.dtype) == "float32" else 2e-2
        np.testing.assert_allclose(np.asarray(found, float), np.asarray(wanted, float),
                                   rtol=rough, atol=rough)


@pytest.mark.parametrize("name", DRAWS)
def test_arguments_have_jaxs_names_and_order(name):
    ours, theirs = (list(inspect.signature(getattr(library.random, name)).parameters)
                    for library in (minijax, jax))
    assert ours == theirs


@pytest.mark.parametrize("program", [
    lambda j, a: j.random.gamma(j.random.key(1), a, (5,)),
    lambda j, a: j.random.loggamma(j.random.key(1), a, (5,)),
    lambda j, a: j.random.beta(j.random.key(1), a, 3., (5,)),
    lambda j, a: j.random.t(j.random.key(1), a, (5,))], ids=["gamma", "loggamma", "beta", "t"])
@pytest.mark.parametrize("a", [.4, 2.5])
def test_numbers_move_with_their_parameters_as_in_jax(program, a, jax_says):
    def slope(j):
        return j.jit(j.grad(lambda a: program(j, a).sum()))(a)
    found, wanted = slope(minijax), jax_says(lambda: slope(jax))
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-4)


@pytest.mark.parametrize("name", ["gamma", "poisson"])
def test_a_batch_of_keys_draws_what_each_draws(name, jax_says):
    def drawn(j):
        return np.asarray(j.vmap(getattr(j.random, name))(
            j.random.split(j.random.key(0), 3), np.float32([1, 2, 30])))
    np.testing.assert_allclose(drawn(minijax), jax_says(lambda: drawn(jax)), rtol=1e-6)


@pytest.mark.parametrize("name", DRAWS)
def test_no_key_is_used_twice_on_the_way_to(name):
    args, options = DRAWS[name][0]
    with minijax.debug_key_reuse(True):
        getattr(minijax.random, name)(minijax.random.key(7), *args, **options)
        minijax.jit(lambda key: getattr(minijax.random, name)(key, *args, **options))(
            minijax.random.key(7))
