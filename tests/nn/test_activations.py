"""Activation functions agree with JAX, at their corners and in their derivatives too."""

import pytest

NAMES = ("relu relu6 sigmoid softplus log_sigmoid soft_sign silu swish mish gelu elu selu celu "
         "leaky_relu hard_tanh hard_sigmoid hard_silu squareplus sparse_plus sparse_sigmoid tanh "
         "identity log1mexp").split()


@pytest.mark.parametrize("sample", ["n", "i", "h"])
@pytest.mark.parametrize("name", NAMES)
def test_an_activation_agrees_with_jax(agrees_with_jax, name, sample):
    # far below zero gelu is what two nearly equal numbers differ by: compared on the scale of 1
    shift = "1 + " if name == "gelu" else ""
    agrees_with_jax(f"{shift}nn.{name}({sample})", rtol=3e-2 if sample == "h" else 1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_its_derivative_agrees_with_jax(agrees_with_jax, name):
    agrees_with_jax(f"jax.vmap(jax.grad(nn.{name}))(f.ravel())", rtol=1e-4)


@pytest.mark.parametrize("expression", [
    "jax.grad(nn.relu)(0.0)", "jax.grad(nn.relu)(jnp.nan)", "jax.grad(nn.relu6)(6.0)",
    "jax.grad(jax.grad(nn.relu))(2.0)", "jax.grad(nn.elu)(0.0)", "jax.grad(nn.leaky_relu)(0.0)",
    "jax.jit(jax.grad(lambda x: nn.relu(x).sum()))(f)", "jax.jit(nn.gelu)(f)",
    "nn.gelu(f, approximate=False)", "nn.elu(f, 0.5)", "nn.celu(f, 2.0)", "nn.leaky_relu(f, 0.2)",
    "nn.squareplus(f, 1)", "nn.glu(t)", "nn.glu(f, axis=0)",
    "nn.softplus(100.0)", "nn.softplus(-100.0)", "jax.grad(nn.softplus)(0.0)",
    "nn.log1mexp(jnp.array([1e-6, 0.1, 0.6, 0.8, 20.0, 0.0]))", "jax.grad(nn.log1mexp)(0.0)",
    "nn.identity([1.0, 2])", "nn.relu([1.0])", "nn.sigmoid(3)",
])
def test_corners_and_arguments(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-5)
