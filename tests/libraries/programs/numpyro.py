"""What NumPyro does: models, samplers, variational inference."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, log_likelihood
from numpyro.infer.autoguide import AutoNormal

numpyro.enable_x64()
KEY = jax.random.key(3)
X, Y = jnp.linspace(-1, 1, 6), jnp.array([-1.1, -0.6, 0.1, 0.4, 0.9, 1.7])


def model(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0, 2))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(slope * x, noise), obs=y)


def a_posterior_is_sampled():
    sampler = MCMC(NUTS(model, max_tree_depth=3), num_warmup=5, num_samples=5, progress_bar=False)
    sampler.run(KEY, X, Y)
    draws = sampler.get_samples()
    return draws, log_likelihood(model, draws, X, Y), Predictive(model, draws)(KEY, X)


def a_guide_is_fitted():
    inference = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.05), Trace_ELBO())
    result = inference.run(KEY, 5, X, Y, progress_bar=False)
    return result.params, result.losses


def distributions_have_numbers():
    some = [dist.Gamma(2.0, 3.0), dist.StudentT(3.0), dist.Dirichlet(jnp.ones(3)),
            dist.Mixture(dist.Categorical(jnp.array([0.3, 0.7])), [dist.Normal(), dist.Cauchy()])]
    draws = [d.sample(KEY, (2,)) for d in some]
    return draws, [d.log_prob(x) for d, x in zip(some, draws, strict=True)], [
        dist.kl_divergence(dist.Normal(0, 1), dist.Normal(1, 2))]
