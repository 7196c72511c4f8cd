"""What a public function does with its first arguments is what JAX does, however they are given."""

import pytest


@pytest.mark.parametrize("expression", [
    "jnp.reshape(a=f, shape=(-1,))", "jnp.reshape(a=[1, 2], shape=(-1,))", "jnp.negative([1])",
    "jnp.take(indices=jnp.array([1, 0]), a=v)", "jnp.take(v, indices=[0])", "jnp.take([1], v)",
    "jnp.take(v, 1)", "jnp.searchsorted(v=1.5, a=v)", "jnp.quantile(v, q=0.25)",
    "jnp.add(1, [2])", "jnp.add((1,), 2)", "jnp.hypot(3, 4)", "jnp.remainder(True, True)",
    "jnp.expand_dims(f, None)", "jnp.fill_diagonal([1], 2)",
    "jnp.gradient(i)", "jnp.square(b)", "jnp.isclose(b=2.0, a=f)", "jnp.maximum(i, 2.5)",
])
def test_arguments_become_arrays_or_are_refused_at_their_place(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("call", ["jnp.reshape()", "jnp.add(f)", "jnp.take(v)", "jnp.negative()",
                                  "jnp.add(f, f, f)", "jnp.reshape(f, (6,), 'C', 1)"])
def test_a_call_with_the_wrong_number_of_arguments_is_refused(agrees_with_jax, call):
    agrees_with_jax(call)


@pytest.mark.parametrize("call", [
    "jnp.round(f, 0, f)", "jnp.stack([f, f], 0, f)", "jnp.stack([f, f], out=f)",
    "jnp.sum(f, out=f)", "jnp.trace(f, out=f)", "jnp.nanmax(f, None, f)",
    "jnp.einsum('ij->i', f, out=f)", "jnp.argmax(f, None, f)"])
def test_no_function_takes_a_place_for_its_result(agrees_with_jax, call):
    agrees_with_jax(call)


@pytest.mark.parametrize("expression", [
    "jnp.sum(f, None, 'int32')", "jnp.sum(f, dtype='U3')", "jnp.zeros(2, dtype=int)",
    "jnp.zeros_like(f, 'U3')", "jnp.nansum(f, dtype='U3')", "jnp.nanmean(f, dtype='float16')",
    "jnp.vstack([f, f], dtype='U3')", "jnp.eye(2, dtype=complex)", "jnp.full((2,), 1, 'U3')",
    "jnp.trace(m, dtype='U3')", "jnp.std(f, dtype='float16')", "jnp.linspace(0, 1, 3, dtype='U3')"])
def test_a_dtype_is_one_that_an_array_may_have(agrees_with_jax, expression):
    agrees_with_jax(expression)
