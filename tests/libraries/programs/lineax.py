"""What Lineax's documentation does: operators, solvers, and derivatives through them."""

import jax
import jax.numpy as jnp
import lineax as lx

jax.config.update("jax_enable_x64", True)
A = jax.random.normal(jax.random.key(0), (3, 3)) + 3 * jnp.eye(3)
B = jnp.arange(1.0, 4.0)


def a_system_is_solved():
    return lx.linear_solve(lx.MatrixLinearOperator(A), B).value


def solvers_agree():
    symmetric = lx.MatrixLinearOperator(A @ A.T, lx.positive_semidefinite_tag)
    solvers = lx.LU(), lx.SVD(), lx.Cholesky(), lx.CG(rtol=1e-10, atol=1e-10)
    return [lx.linear_solve(symmetric, B, solver).value for solver in solvers]


def structure_is_used():
    return (lx.linear_solve(lx.DiagonalLinearOperator(B), B * 2).value,
            lx.linear_solve(lx.MatrixLinearOperator(jnp.tril(A), lx.lower_triangular_tag), B).value)


def solutions_are_differentiated():
    def solved(a, b):
        return lx.linear_solve(lx.MatrixLinearOperator(a), b).value.sum()
    return (jax.jit(jax.grad(solved, (0, 1)))(A, B),
            jax.jvp(solved, (A, B), (jnp.ones((3, 3)), jnp.ones(3))))


def many_systems_at_once():
    def solved(b):
        return lx.linear_solve(lx.MatrixLinearOperator(A), b).value
    return jax.vmap(solved)(jnp.eye(3)), jax.jit(jax.vmap(solved))(jnp.ones((2, 3)))


def operators_are_composed():
    m, d = lx.MatrixLinearOperator(A), lx.DiagonalLinearOperator(B)
    jacobian = lx.JacobianLinearOperator(lambda x, args: jnp.sin(x) * args, B, 2.0)
    identity = lx.IdentityLinearOperator(jax.eval_shape(lambda: B))
    return ((m @ d + 2 * identity).mv(B), jacobian.mv(B), (m + d).as_matrix(),
            lx.is_diagonal(d), lx.diagonal(m))


def a_singular_system_is_told():
    singular = lx.MatrixLinearOperator(jnp.zeros((2, 2)))
    solution = lx.linear_solve(singular, jnp.ones(2), lx.LU(), throw=False)
    return solution.result == lx.RESULTS.singular
