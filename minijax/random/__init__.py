"""Random numbers from explicit keys: `minijax.random`, with JAX's names and JAX's bits.

Stands on `lax`.  Chapter 16, *Random numbers*.  In JAX: `jax/random.py`.
"""

from minijax.random.choices import bernoulli as bernoulli
from minijax.random.choices import categorical as categorical
from minijax.random.choices import choice as choice
from minijax.random.choices import permutation as permutation
from minijax.random.choices import rademacher as rademacher
from minijax.random.choices import randint as randint
from minijax.random.keys import PRNGKey as PRNGKey
from minijax.random.keys import clone as clone
from minijax.random.keys import fold_in as fold_in
from minijax.random.keys import key as key
from minijax.random.keys import key_data as key_data
from minijax.random.keys import key_dtype as key_dtype
from minijax.random.keys import key_impl as key_impl
from minijax.random.keys import split as split
from minijax.random.keys import wrap_key_data as wrap_key_data
from minijax.random.samplers import bits as bits
from minijax.random.samplers import cauchy as cauchy
from minijax.random.samplers import exponential as exponential
from minijax.random.samplers import gumbel as gumbel
from minijax.random.samplers import laplace as laplace
from minijax.random.samplers import logistic as logistic
from minijax.random.samplers import normal as normal
from minijax.random.samplers import truncated_normal as truncated_normal
from minijax.random.samplers import uniform as uniform
from minijax.tracebacks import guard as _guard

_guard(globals())
