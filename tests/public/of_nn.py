"""The table of `nn`."""

import numpy as np

from .draw import KEEP, RICH, Maker, call, named, reduction, unary

NN: dict[str, Maker] = {
    **named("relu relu6 sigmoid silu swish soft_sign softplus log_sigmoid hard_sigmoid hard_silu "
            "hard_swish hard_tanh identity selu mish sparse_plus sparse_sigmoid squareplus "
            "tanh", unary("fffheis")),
    "log1mexp": unary("fffh", domain="positive"),
    **named("celu elu", unary("fffhs", alpha=[0.5, 2.0])),
    "leaky_relu": unary("fffhs", negative_slope=[0.2]),
    "gelu": unary("fffhs", approximate=[True, False]),
    "glu": lambda d: call(d.array("fh", (2, 4)), **d.some(axis=lambda: d.choice([0, 1]))),
    **named("softmax log_softmax", reduction("fffh", shapes=RICH, domain="finite")),
    **named("logsumexp", reduction("fffhi", domain="finite", **KEEP)),
    "logmeanexp": reduction("fff", domain="finite", **KEEP),
    "standardize": reduction("fff", shapes=RICH, domain="finite", epsilon=[1e-3]),
    "dot_product_attention": lambda d: call(
        *(d.array("f", (2, 3, 2, 4), "unit") for _ in range(3)), **d.some(is_causal=True)),
    "get_scaled_dot_general_config": lambda d: call(first=("mxfp9",)),
    "scaled_dot_general": lambda d: call(d.array("f", (2, 3, 4), "unit"), d.array(
        "f", (2, 5, 4), "unit"), static=((((2,), (2,)), ((0,), (0,))),)),
    "one_hot": lambda d: call(d.array("iu"), static=(4,), **d.some(
        axis=0, dtype=np.float32)),
}
