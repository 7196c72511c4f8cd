"""First weights are those of JAX, number for number (normal ones within four ulp)."""

import pytest


@pytest.mark.parametrize("expression", [
    "zeros(KEY, (2, 3))", "ones(KEY, (2,), 'bfloat16')", "constant(7)(KEY, (2,))",
    "uniform()(KEY, (5,))", "uniform(2.0)(KEY, (2, 3))", "normal()(KEY, (50,))",
    "normal(1.0)(KEY, (3, 4), 'float16')", "truncated_normal()(KEY, (50,))",
    "glorot_uniform()(KEY, (3, 5))", "glorot_normal()(KEY, (3, 5))", "he_normal()(KEY, (3, 5))",
    "he_uniform()(KEY, (3, 5))", "lecun_normal()(KEY, (4, 3, 5))", "lecun_uniform()(KEY, (3, 5))",
    "xavier_uniform()(KEY, (3, 5))", "kaiming_normal(in_axis=0, out_axis=1)(KEY, (3, 5))",
    "variance_scaling(1.0, 'fan_out', 'normal')(KEY, (3, 5))",
    "variance_scaling(1.0, 'fan_geo_avg', 'uniform', batch_axis=0)(KEY, (2, 3, 5))",
    "orthogonal()(KEY, (4, 3))", "orthogonal(2.0, 0)(KEY, (2, 3, 2))", "orthogonal()(KEY, (2, 5))",
    "orthogonal()(KEY, (3,))", "orthogonal()(KEY, (0, 3))", "delta_orthogonal()(KEY, (3, 2, 3))",
    "delta_orthogonal(2.0)(KEY, (2, 3, 2, 2))", "delta_orthogonal()(KEY, (3, 3))",
    "delta_orthogonal()(KEY, (3, 4, 3))",
    "lecun_normal()(KEY, (3, 5), 'complex64')", "he_uniform()(KEY, (3, 5), 'complex64')",
    "variance_scaling(2.0, 'fan_avg', 'normal')(KEY, (3, 5), 'complex64')",
    "uniform()(KEY, (3,), 'complex64')", "truncated_normal()(KEY, (3,), 'complex64')",
    "variance_scaling(1.0, 'fan_magic', 'normal')(KEY, (3, 5))",
    "variance_scaling(1.0, 'fan_in', 'magic')(KEY, (3, 5))", "glorot_normal()(KEY, (3,))",
])
def test_weights_are_those_of_jax(agrees_with_jax, expression):
    expression = expression.replace("KEY", "jax.random.key(3)")
    agrees_with_jax(f"nn.initializers.{expression}", rtol=3e-3 if "16" in expression else 3e-6)


def test_weights_can_be_made_under_jit():
    import minijax

    init = minijax.nn.initializers.he_normal()
    made = minijax.jit(lambda key: init(key, (3, 2)))(minijax.random.key(0))
    assert made.shape == (3, 2)
