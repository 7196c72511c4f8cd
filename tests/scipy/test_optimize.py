"""Minima by BFGS: JAX's steps where it goes on, and known minima where it does not."""

import jax
import jax.scipy.optimize
import numpy as np
import pytest

import minijax
import minijax.scipy

jnp, minimize = minijax.numpy, minijax.scipy.optimize.minimize


def himmelblau(np):
    return lambda p: (p[0] ** 2 + p[1] - 11.) ** 2 + (p[0] + p[1] ** 2 - 7.) ** 2


def eggholder(np):
    return lambda p: (-(p[1] + 47) * np.sin(np.sqrt(np.abs(p[0] / 2 + p[1] + 47)))
                      - p[0] * np.sin(np.sqrt(np.abs(p[0] - (p[1] + 47)))))


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize(("function", "start"), [
    (himmelblau, [-3., -3.]), (eggholder, [100., 100.])])
def test_steps_are_those_of_jax(function, start):
    found, wanted = (top.scipy.optimize.minimize(function(top.numpy), top.numpy.array(start),
                                                 method="BFGS") for top in (minijax, jax))
    assert found._fields == wanted._fields and bool(found.success)
    for name, ours, theirs in zip(found._fields, found, wanted, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, 2e-2 if name == "hess_inv" else 1e-5, 1e-4)


@pytest.mark.parametrize("function", [
    lambda np, x: ((x - 3) ** 2).sum(), lambda np, x: (x ** 4).sum(), lambda np, x: x.sum()])
@pytest.mark.parametrize("maxiter", [0, 1, 3])
def test_lbfgs_tries_a_step_of_one_and_counts_steps_as_jax_does(function, maxiter):
    found, wanted = (top.scipy.optimize.minimize(
        lambda x: function(top.numpy, x), top.numpy.ones(2) * 5,  # noqa: B023
        method="l-bfgs-experimental-do-not-rely-on-this", options={"maxiter": maxiter})
        for top in (minijax, jax))
    for name in ("x", "success", "fun", "nfev", "njev", "nit"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), 1e-5)


@pytest.mark.parametrize("start", [[-1.2, 1.], [8., -1., 3.], [0.] * 7])
def test_a_narrow_valley_is_gone_through_to_its_end(start):
    found = minimize(rosenbrock, jnp.array(start), method="bfgs")
    assert int(found.status) in (0, 3)  # a slope of 1e-5 may lie between two float32
    np.testing.assert_allclose(found.x, np.ones(len(start)), 1e-4)
    assert float(jnp.abs(found.jac).max()) < 1e-4
    with minijax.enable_x64(True):
        exact = minimize(rosenbrock, jnp.array(start), method="BFGS", tol=1e-9)
        np.testing.assert_allclose(exact.x, np.ones(len(start)), 1e-9)
        np.testing.assert_allclose(exact.hess_inv, exact.hess_inv.T)
        assert (np.linalg.eigvalsh(exact.hess_inv) > 0).all()


def test_ends_without_a_minimum():
    few = minimize(rosenbrock, jnp.zeros(2), method="BFGS", options={"maxiter": 3})
    assert (int(few.status), int(few.nit), bool(few.success)) == (1, 3, False)
    endless = minimize(lambda x: -jnp.exp(x[0]), jnp.zeros(1), method="BFGS")
    assert int(endless.status) in (3, 5) and not bool(endless.success)
    nowhere = minimize(lambda x: x[0] * jnp.nan, jnp.zeros(1), method="BFGS")
    assert int(nowhere.status) != 0 and not bool(nowhere.success)
    already = minimize(lambda x: (x ** 2).sum(), jnp.zeros(3), method="BFGS")
    assert (int(already.status), int(already.nit), int(already.nfev)) == (0, 0, 1)


def test_values_beyond_the_domain_are_gone_round():
    found = minimize(lambda x: x[0] - jnp.log(x[0]), jnp.array([30.]), method="BFGS")
    np.testing.assert_allclose(found.x, [1], 1e-3)


def test_it_is_compiled_and_batched():
    def lowest(start, c):
        return minimize(lambda x, c: ((x - c) ** 4).sum() + x @ x, start, (c,), method="BFGS",
                        options={"gtol": 1e-6, "norm": 2}).x
    starts = jnp.array([[0., 3.], [1., -1.], [5., 5.]])
    found = minijax.jit(minijax.vmap(lowest, (0, None)))(starts, 2.)
    np.testing.assert_allclose(4 * (found - 2) ** 3 + 2 * found, np.zeros((3, 2)), 0, 1e-5)


@pytest.mark.parametrize("options", [
    "method='CG'", "args=[1], method='BFGS'", "", "method='BFGS', options={'no': 1}"])
def test_refusals(agrees_with_jax, options):
    agrees_with_jax(f"jax.scipy.optimize.minimize(lambda x: x @ x, v, {options})")


def test_a_start_that_is_no_vector_is_refused():
    with pytest.raises(ValueError, match="x0 must be a vector, got shape"):
        minimize(jnp.sum, jnp.ones((2, 2)), method="BFGS")


@pytest.mark.parametrize("start", [[0., 0.], [1., 2. - 3.j, 4.]])
def test_the_last_steps_lead_to_the_minimum_too(start):
    end = np.arange(len(start)) + (1j if np.iscomplexobj(start) else 0)
    result = minijax.jit(lambda x: minimize(
        lambda x: (jnp.abs(x - end) ** 2 * (np.arange(len(start)) * 9 + 1)).sum(), x,
        method="l-bfgs-experimental-do-not-rely-on-this", options={"gtol": 1e-6}))(jnp.array(start))
    np.testing.assert_allclose(result.x, end, atol=2e-5)
    assert result.hess_inv is None


def test_a_steep_function_needs_a_small_inverse():
    result = minimize(lambda x: ((1e4 * x) ** 2).mean(), jnp.ones(2), method="BFGS")
    np.testing.assert_allclose(result.x, 0, atol=1e-6)
