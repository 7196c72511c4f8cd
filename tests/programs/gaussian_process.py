"""Gaussian-process regression: hyperparameters by gradient ascent on the marginal likelihood."""

import jax.numpy as jnp
from jax import grad, jit, random, value_and_grad, vmap
from jax.scipy.linalg import cho_solve, solve_triangular


def softplus(x):
    return jnp.logaddexp(x, 0.0)


def kernel(params, x1, x2):
    scaled = (x1 - x2) / softplus(params["length"])
    return softplus(params["amplitude"]) * jnp.exp(-0.5 * jnp.sum(scaled ** 2))


def gram(params, xs1, xs2):
    return vmap(lambda a: vmap(lambda b: kernel(params, a, b))(xs2))(xs1)


def factor(params, xs):
    noise = softplus(params["noise"]) + 1e-3
    return jnp.linalg.cholesky(gram(params, xs, xs) + noise * jnp.eye(len(xs)))


def log_marginal_likelihood(params, xs, ys):
    chol = factor(params, xs)
    weights = cho_solve((chol, True), ys)
    log_det = 2 * jnp.sum(jnp.log(jnp.diag(chol)))
    return -0.5 * (ys @ weights + log_det + len(ys) * jnp.log(2 * jnp.pi))


@jit
def ascend(params, xs, ys):
    value, grads = value_and_grad(log_marginal_likelihood)(params, xs, ys)
    return {name: params[name] + 0.01 * grads[name] for name in params}, value


@jit
def predict(params, xs, ys, at):
    chol = factor(params, xs)
    across = gram(params, xs, at)
    mean = across.T @ cho_solve((chol, True), ys)
    half = solve_triangular(chol, across, lower=True)
    covariance = gram(params, at, at) - half.T @ half
    return mean, jnp.sqrt(jnp.diag(covariance))


def main():
    key_x, key_y = random.split(random.PRNGKey(2))
    xs = jnp.sort(random.uniform(key_x, (25, 1), minval=-3.0, maxval=3.0), axis=0)
    ys = jnp.sin(2 * xs[:, 0]) + 0.1 * random.normal(key_y, (25,))
    params = {"amplitude": jnp.array(0.0), "length": jnp.zeros(1), "noise": jnp.array(-1.0)}
    first_gradient = grad(log_marginal_likelihood)(params, xs, ys)
    values = []
    for _ in range(40):
        params, value = ascend(params, xs, ys)
        values.append(value)
    mean, deviation = predict(params, xs, ys, jnp.linspace(-3.5, 3.5, 15)[:, None])
    return {"likelihoods": jnp.array(values), "params": params, "mean": mean,
            "deviation": deviation, "first gradient": first_gradient}


if __name__ == "__main__":
    print(main())
