"""The hessian of a log-posterior: logistic regression, its mode, and the spread around it."""

import jax.numpy as jnp
from jax import grad, hessian, jacfwd, jacrev, jit, jvp, random
from jax.nn import log_sigmoid


def log_posterior(weights, features, labels):
    log_prior = -0.5 * jnp.sum(weights ** 2) / 4.0
    return log_prior + jnp.sum(log_sigmoid(labels * (features @ weights)))


@jit
def newton_step(weights, features, labels):
    slope = grad(log_posterior)(weights, features, labels)
    curvature = hessian(log_posterior)(weights, features, labels)
    return weights - jnp.linalg.solve(curvature, slope)


def hessian_times(f, x, v):
    return jvp(grad(f), (x,), (v,))[1]


def main():
    keys = random.split(random.PRNGKey(3), 3)
    true = jnp.array([1.0, -2.0, 0.5, 0.0])
    features = random.normal(keys[0], (80, 4))
    labels = jnp.where(random.bernoulli(keys[1], 1 / (1 + jnp.exp(-features @ true))), 1.0, -1.0)
    weights = jnp.zeros(4)
    for _ in range(6):
        weights = newton_step(weights, features, labels)

    def at(w):
        return log_posterior(w, features, labels)

    curvature = jit(hessian(at))(weights)
    covariance = jnp.linalg.inv(-curvature)
    return {"mode": weights, "hessian": curvature,
            "forward over reverse": jacfwd(jacrev(at))(weights),
            "reverse over forward": jacrev(jacfwd(at))(weights),
            "hessian times": hessian_times(at, weights, true),
            "deviations": jnp.sqrt(jnp.diag(covariance)),
            "third": jacfwd(hessian(at))(weights)}


if __name__ == "__main__":
    print(main())
