"""Functions mapped over arrays agree with JAX."""

import numpy as np
import pytest

import minijax


@pytest.mark.parametrize("expression", [
    "jnp.vectorize(lambda x: x + 1)(f)", "jnp.vectorize(lambda x, y: x * y)(f, v)",
    "jnp.vectorize(lambda x, y: x * y)(f[:, :1], v)",
    "jnp.vectorize(jnp.dot, signature='(n),(n)->()')(t, jnp.ones(4))",
    "jnp.vectorize(jnp.dot, signature='(n),(n)->()')(t[:, :1], jnp.ones((3, 4)))",
    "jnp.vectorize(jnp.dot, signature='(n,m),(m)->(n)')(t, jnp.ones(4))",
    "jnp.vectorize(lambda x: (x, x), signature='()->(),()')(v)",
    "jnp.vectorize(lambda x, n: x * n, excluded={1})(v, 3)",
    "jnp.vectorize(lambda x: jnp.where(x > 0, x, 0))(f)", "jnp.apply_along_axis(jnp.sum, 0, f)",
    "jnp.apply_along_axis(jnp.sort, 1, f)",
    "jnp.apply_along_axis(lambda x: jnp.outer(x, x), 1, f)",
    "jax.jit(jnp.vectorize(lambda x, y: x * y))(f, v)",
    "jax.grad(lambda x: jnp.vectorize(jnp.sin)(x).sum())(f)",
    "jnp.vectorize(jnp.dot, signature='(n),(n)->')(v, v)",
    "jnp.vectorize(jnp.dot, signature='(n),(n)->()')(v, f.T)",
    "jnp.vectorize(jnp.dot, signature='(n),(n)->()')(v)",
    "jnp.vectorize(lambda x, y: x if y is None else y)(v, None)",
    "jnp.vectorize(lambda x, y: x, signature='(n),()->(n)')(f, None)",
    "jnp.vectorize(lambda x: None)(v)", "jnp.vectorize(lambda x: [x, x])(v)",
    "list(jnp.vectorize(lambda x: {'a': x})(v).items())",
    "jnp.vectorize(lambda x: [x, x], signature='()->(n)')(v)",
    "jnp.vectorize(lambda x, y: x)([1., 2.], 3.)",
])
def test_vectorize(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("result", [
    "(v.sum(), v * 2)", "[v[:, None] * v, 3, 4.5]", "{'a': v, 'b': ()}", "None", "jnp.ones((2, 3))",
])
@pytest.mark.parametrize("array, axis", [("f", 0), ("f", 1), ("v", 0), ("t", -2)])
def test_along_an_axis_a_function_may_return_a_tree(agrees_with_jax, result, array, axis):
    agrees_with_jax("(lambda out: [str(jax.tree.structure(out)), *jax.tree.leaves(out)])("
                    f"jnp.apply_along_axis(lambda v: {result}, {axis}, {array}))")


def test_a_call_without_a_batch_is_the_call_of_the_function():
    program = minijax.make_jaxpr(minijax.numpy.vectorize(
        minijax.numpy.flip, signature="(n)->(n)"))(np.ones(3, np.float32))
    assert [str(eqn.primitive) for eqn in program.eqns] == ["rev"]
