"""`minijax.scipy.stats`: densities, probabilities and quantiles, one module a distribution.

Stands on `numpy`, `scipy.special`.  In JAX: `jax/scipy/stats/__init__.py`.
"""

from minijax.scipy.stats import bernoulli as bernoulli
from minijax.scipy.stats import beta as beta
from minijax.scipy.stats import binom as binom
from minijax.scipy.stats import cauchy as cauchy
from minijax.scipy.stats import chi2 as chi2
from minijax.scipy.stats import expon as expon
from minijax.scipy.stats import gamma as gamma
from minijax.scipy.stats import laplace as laplace
from minijax.scipy.stats import logistic as logistic
from minijax.scipy.stats import multivariate_normal as multivariate_normal
from minijax.scipy.stats import norm as norm
from minijax.scipy.stats import poisson as poisson
from minijax.scipy.stats import t as t
from minijax.scipy.stats import uniform as uniform
from minijax.tracebacks import guard as _guard

_guard(*map(vars, (bernoulli, beta, binom, cauchy, chi2, expon, gamma, laplace, logistic,
                   multivariate_normal, norm, poisson, t, uniform)))
