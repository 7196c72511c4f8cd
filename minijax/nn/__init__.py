"""`minijax.nn`: activations, normalisers, initializers and attention for neural networks.

Builds on `numpy`.  Chapter 00, *A tour*, trains a network with it.
In JAX: `jax/nn/__init__.py`.
"""

from typing import TYPE_CHECKING

from minijax.util import lazily
from minijax.transforms.prepared import exported

if TYPE_CHECKING:
    from minijax.nn import initializers
    from minijax.nn.activations import (celu, elu, gelu, glu, hard_sigmoid, hard_silu, hard_swish,
                                        hard_tanh, identity, leaky_relu, log1mexp, log_sigmoid,
                                        mish, relu, relu6, selu, sigmoid, silu, soft_sign, softplus,
                                        sparse_plus, sparse_sigmoid, squareplus, swish)
    from minijax.nn.attention import dot_product_attention
    from minijax.nn.normalisers import (log_softmax, logmeanexp, logsumexp, one_hot, softmax,
                                        standardize)
    from minijax.nn.scaled import get_scaled_dot_general_config, scaled_dot_general, scaled_matmul
    from minijax.numpy import tanh

__all__ = lazily.attach(globals(), exported)
del TYPE_CHECKING, exported, lazily
