"""Random numbers from explicit keys: `minijax.random`, with JAX's names and JAX's bits.

Builds on `lax`.  Chapter 16, *Random numbers*.  In JAX: `jax/random.py`.
"""

from typing import TYPE_CHECKING

from minijax.placement.out_sharding import exported
from minijax.util import lazily

if TYPE_CHECKING:
    from minijax.random.choices import (bernoulli, categorical, choice, permutation, rademacher,
                                        randint)
    from minijax.random.families import (
        ball, beta, cauchy, chisquare, dirichlet, double_sided_maxwell, exponential, f, gamma,
        generalized_normal, geometric, laplace, loggamma, logistic, lognormal, maxwell,
        multivariate_normal, orthogonal, pareto, rayleigh, t, triangular, truncated_normal, wald,
        weibull_min)
    from minijax.random.keys import (PRNGKey, clone, fold_in, key, key_data, key_dtype, key_impl,
                                     split, wrap_key_data)
    from minijax.random.rejection import binomial, multinomial, poisson, random_gamma_p
    from minijax.random.samplers import bits, gumbel, normal, uniform

__all__ = lazily.attach(globals(), exported(__name__))
del TYPE_CHECKING, exported, lazily
