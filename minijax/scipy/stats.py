"""`minijax.scipy.stats`: one module a distribution.

Stands on `distributions`.  In JAX: `jax/scipy/stats/__init__.py`.
"""

from minijax.scipy.distributions import (
    bernoulli, beta, binom, cauchy, chi2, expon, gamma, laplace, logistic, multivariate_normal,
    norm, poisson, t, uniform,
)
