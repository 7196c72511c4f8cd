"""Solutions of equations without a matrix are JAX's, and so are their derivatives."""

import jax.scipy.sparse.linalg  # noqa: F401
import pytest

A = "jnp.array([[4., 1., .5], [1., 3., 0.], [.5, 0., 5.]])"
B = "jnp.array([[4., 1., .5], [-1., 3., 0.], [2.5, 0., 5.]])"
METHODS = [("cg", A), ("bicgstab", A), ("bicgstab", B), ("gmres", A), ("gmres", B)]


@pytest.mark.parametrize("name, matrix", METHODS)
@pytest.mark.parametrize("arguments", [
    "{}, v", "lambda x: {} @ x, v, v / 2", "{}, v, M=jnp.diag(jnp.array([.25, .3, .2]))",
    "lambda x: {{'a': {} @ x['a']}}, {{'a': v}}", "{} + 0j, v + 1j",
])
def test_solutions(agrees_with_jax, name, matrix, arguments):
    call = f"jax.scipy.sparse.linalg.{name}({arguments.format(matrix)}, tol=1e-6)[0]"
    agrees_with_jax(f"jax.tree.leaves({call})[0]", 1e-4)


@pytest.mark.parametrize("name, matrix", METHODS[1:4:2])
@pytest.mark.parametrize("expression", [
    "jax.grad(lambda b: f(a, b)[0].sum())(v)", "jax.grad(lambda a: f(a, v)[0].sum())(a)",
    "jax.vmap(lambda b: f(a, b)[0])(g)", "jax.jit(lambda a, b: f(a, b)[0])(a, v)",
])
def test_transformed(agrees_with_jax, name, matrix, expression):
    agrees_with_jax(f"(lambda f, a: {expression})(jax.scipy.sparse.linalg.{name}, {matrix})", 1e-3)


@pytest.mark.parametrize("expression", [
    f"gmres({B}, v)[1]", f"gmres({B}, v, restart=2, solve_method='incremental')[0]",
    f"gmres({B}, v, solve_method='none')", "cg(f, v)", "cg(3, v)", f"cg({A}, v, w[:2])",
    f"cg({A}, v, {{'a': v}})", f"cg({A}, v)[1]", f"gmres({A} * 0, v)[0][0] + jnp.nan",
])
def test_arguments(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.sparse.linalg." + expression, 1e-3)


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("name, matrix", METHODS[:3])
def test_a_few_steps(agrees_with_jax, name, matrix, steps):
    agrees_with_jax(f"jax.scipy.sparse.linalg.{name}({matrix}, v, maxiter={steps})[0]", 1e-4)


@pytest.mark.parametrize("name", ["cg", "bicgstab", "gmres"])
@pytest.mark.parametrize("arguments", [
    "v * 0", "v * 0, tol=0.", "{A} @ v, v", "{A} @ v, v, tol=0.", "v * 0, v * 1e-21, tol=0.",
    "v * 1e-21", "{A} @ v, v * (1 + 1e-7)"])
def test_a_residual_of_nearly_nothing_is_0(agrees_with_jax, name, arguments):
    agrees_with_jax(f"jax.scipy.sparse.linalg.{name}({A}, {arguments.format(A=A)})", 1e-5)
