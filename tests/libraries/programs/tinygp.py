"""What tinygp does: Gaussian processes."""

import jax
import jax.numpy as jnp
from tinygp import GaussianProcess, kernels

jax.config.update("jax_enable_x64", True)
X = jnp.array([0.1, 0.5, 1.2, 2.0, 2.6])
Y = jnp.sin(3 * X)


def a_process_is_conditioned():
    kernel = 1.5 * kernels.Matern32(0.7) + kernels.ExpSquared(scale=2.0)
    gp = GaussianProcess(kernel, X, diag=0.1)
    log_density, after = gp.condition(Y, jnp.linspace(0, 3, 4))
    return log_density, after.loc, after.variance, gp.sample(jax.random.key(3), (2,))


def parameters_are_fitted():
    @jax.jit
    def loss(params):
        kernel = jnp.exp(params["size"]) * kernels.Exp(jnp.exp(params["scale"]))
        return -GaussianProcess(kernel, X, diag=jnp.exp(params["noise"])).log_probability(Y)
    params = {"size": 0.1, "scale": -0.3, "noise": -2.0}
    curvature = jax.hessian(lambda scale: loss({**params, "scale": scale}))
    return jax.value_and_grad(loss)(params), curvature(0.2)
